//! Designs, topologies and bounds by name; errors name what there is.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may fail loudly, in its helpers too")]

use cleanslate_model::bounds::Bounds;
use cleanslate_model::design::{Design, NAMED};
use cleanslate_model::topology::{TOPOLOGIES, Topology};

#[test]
fn every_design_can_be_built_from_its_axes() {
    for named in NAMED {
        let mut design = Design::parse("raw").unwrap();
        for (key, choice) in named.design.axes() {
            design.set(key, &choice).unwrap();
        }
        assert_eq!(design, named.design, "{}", named.name);
    }
}

#[test]
fn a_variant_differs_in_its_axis_alone() {
    let variant = Design::parse("raw-barrier+propagated=inert").unwrap();
    assert_eq!(variant, Design::parse("raw-barrier-inert").unwrap());
    let partial = Design::parse("raw-barrier+applied-by=leader/follower").unwrap();
    assert_eq!(partial.applied_by.to_string(), "leader/follower");
    let order = Design::parse("raw-barrier+stop-order=truncate/record/bump/abort/writable/write-barrier").unwrap();
    assert_eq!(order.stop_order.to_string(), "truncate/record/bump/abort/writable/write-barrier");
}

#[test]
fn errors_name_the_choices() {
    let error = |text: &str| Design::parse(text).unwrap_err().to_string();
    assert_eq!(
        error("row"),
        "unknown design 'row'; designs are raw, negate, negate-once, negate-once-barrier, raw-barrier-inert, raw-barrier, \
         raw-barrier-abort, sound; \
         append +AXIS=CHOICE to vary one"
    );
    assert!(error("raw+barier=none").starts_with("unknown axis 'barier'; axes are pid-mapping, psm-ids, barrier,"));
    assert_eq!(error("raw+timing=late"), "axis 'timing' has no choice 'late'; choices are analysis, position");
    assert_eq!(error("raw+timing"), "axis 'timing' has no choice ''; choices are analysis, position");
    assert!(error("raw+applied-by=leader/nobody").contains("all, none, or some of leader/follower/reload/segment-recovery"));
    assert!(error("raw+stop-order=truncate").contains("an order of truncate/record/bump/abort/write-barrier/writable"));
    assert!(error("raw+stop-order=truncate/truncate/writable/record/bump/abort").contains("an order of"));
}

#[test]
fn bounds() {
    let topology = Topology::by_name("chain").unwrap();
    let parse = |text| Bounds::parse(text, topology);
    assert_eq!(parse("ci").unwrap(), Bounds::ci(topology));
    assert_eq!(parse("small").unwrap(), Bounds::SMALL);
    assert_eq!(parse("small,batches=3").unwrap(), Bounds { batches: 3, ..Bounds::SMALL });
    assert_eq!(parse("small,cuts=0").unwrap(), Bounds::SMALL);
    assert_eq!(parse("crashes=2").unwrap(), Bounds { crashes: 2, ..Bounds::ci(topology) });
    for (text, error) in [
        ("big", "unknown bound 'big'; use small, ci, deep or KEY=N with KEY one of plain, idempotent,"),
        ("", "a bound is missing in ''; use small, ci, deep or KEY=N"),
        ("small,,batches=2", "a bound is missing in 'small,,batches=2'"),
        ("small,cuts=1", "bound 'cuts' is about an arbitrary source, which topology 'chain' does not have"),
        ("batch=2", "unknown bound 'batch=2'"),
        ("batches=7", "bound 'batches' takes a number from 0 to 6, not '7'"),
        ("batches=-1", "bound 'batches' takes a number from 0 to 6, not '-1'"),
        ("crashes=", "bound 'crashes' takes a number from 0 to 4, not ''"),
    ] {
        let found = parse(text).unwrap_err().to_string();
        assert!(found.starts_with(error), "{text}: {found}");
    }
}

#[test]
fn ci_bounds_of_every_topology_are_in_range() {
    for topology in TOPOLOGIES {
        let list: Vec<_> = Bounds::ci(topology).to_map().into_iter().map(|(k, v)| format!("{k}={v}")).collect();
        assert_eq!(Bounds::parse(&list.join(","), topology), Ok(Bounds::ci(topology)));
    }
}
