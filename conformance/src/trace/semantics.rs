//! What a well-formed trace must also be: names declared and unique, steps numbered, counts bounded.

use std::collections::BTreeSet;

use super::format::{Batch, Control, Expect, Op, ReplicaState, ScenarioRef, Step, Trace};
use super::locate::Place;

/// The most replicas in a trace.
pub const MAX_REPLICAS: usize = 64;
/// The most real producers in a trace.
pub const MAX_PRODUCERS: usize = 1024;
/// The most steps in a trace.
pub const MAX_STEPS: usize = 100_000;
/// The most operations in one step.
pub const MAX_OPS_PER_STEP: usize = 256;
/// The most records in one batch.
pub(super) const MAX_RECORDS_PER_BATCH: u32 = 10_000;
/// The most records that all appends of a trace may have together: a small file must not ask a target for gigabytes.
pub const MAX_RECORDS: u64 = 1_000_000;
/// The most batches that one mirror operation may read.
pub const MAX_BATCHES_PER_MIRROR: u32 = 10_000;
/// The longest name.
pub(super) const MAX_NAME_BYTES: usize = 64;

/// A contradiction inside a trace.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) place: Place,
    pub(crate) step: Option<usize>,
    pub(crate) message: String,
}

type Checked = Result<(), Fault>;

fn fault(place: &Place, message: impl Into<String>) -> Checked {
    Err(Fault { place: place.clone(), step: None, message: message.into() })
}

fn ensure(holds: bool, place: &Place, message: impl FnOnce() -> String) -> Checked {
    if holds { Ok(()) } else { fault(place, message()) }
}

/// The first contradiction of `trace`, if there is one.
pub(crate) fn check(trace: &Trace) -> Checked {
    let root = Place::default();
    one_line(&root.key("title"), &trace.title)?;
    if let Some(violation) = &trace.violation {
        one_line(&root.key("violation"), violation)?;
    }
    if let Some(property) = &trace.property {
        name(&root.key("property"), property)?;
    }
    scenario(&root.key("scenario"), &trace.scenario)?;
    let names = Names::collect(trace, &root)?;
    let steps = root.key("steps");
    ensure(trace.steps.len() <= MAX_STEPS, &steps, || format!("expected at most {MAX_STEPS} steps, found {}", trace.steps.len()))?;
    let mut records = 0_u64;
    for (i, step) in trace.steps.iter().enumerate() {
        names.step(&steps.index(i), i, step, &mut records).map_err(|f| Fault { step: Some(i + 1), ..f })?;
    }
    Ok(())
}

fn scenario(at: &Place, scenario: &ScenarioRef) -> Checked {
    one_line(&at.key("design"), &scenario.design)?;
    one_line(&at.key("topology"), &scenario.topology)?;
    for (axis, choice) in &scenario.axes {
        let place = at.key("axes").key(axis);
        name(&place, axis)?;
        one_line(&place, choice)?;
    }
    for key in scenario.bounds.keys() {
        name(&at.key("bounds").key(key), key)?;
    }
    Ok(())
}

fn one_line(place: &Place, text: &str) -> Checked {
    ensure(!text.chars().any(char::is_control), place, || "expected one line of text, found a control character".to_owned())
}

fn name(place: &Place, text: &str) -> Checked {
    let printable = text.bytes().all(|b| b.is_ascii_graphic());
    ensure(printable && !text.is_empty() && text.len() <= MAX_NAME_BYTES, place, || {
        format!("expected a name of 1 to {MAX_NAME_BYTES} printable ASCII characters without spaces, found {text:?}")
    })
}

fn offset(place: &Place, field: &str, value: i64) -> Checked {
    ensure(value >= 0, &place.key(field), || format!("expected an offset of 0 or more, found {value}"))
}

/// The names that a trace declares.
struct Names<'a> {
    replicas: BTreeSet<&'a str>,
    clusters: BTreeSet<&'a str>,
    producers: BTreeSet<&'a str>,
}

impl<'a> Names<'a> {
    fn collect(trace: &'a Trace, root: &Place) -> Result<Self, Fault> {
        let mut names = Self { replicas: BTreeSet::new(), clusters: BTreeSet::new(), producers: BTreeSet::new() };
        let replicas = root.key("replicas");
        let count = trace.replicas.len();
        ensure((1..=MAX_REPLICAS).contains(&count), &replicas, || format!("expected 1 to {MAX_REPLICAS} replicas, found {count}"))?;
        for (i, replica) in trace.replicas.iter().enumerate() {
            let at = replicas.index(i);
            name(&at.key("name"), &replica.name)?;
            name(&at.key("cluster"), &replica.cluster)?;
            let new = names.replicas.insert(&replica.name);
            ensure(new, &at.key("name"), || format!("expected a unique name, found replica {:?} again", replica.name))?;
            names.clusters.insert(&replica.cluster);
        }
        for (i, replica) in trace.replicas.iter().enumerate() {
            if let Some(source) = &replica.mirrors {
                let at = replicas.index(i).key("mirrors");
                names.cluster(&at, source)?;
                ensure(*source != replica.cluster, &at, || "expected another cluster than the replica's own".to_owned())?;
            }
        }
        let producers = root.key("producers");
        let count = trace.producers.len();
        ensure(count <= MAX_PRODUCERS, &producers, || format!("expected at most {MAX_PRODUCERS} producers, found {count}"))?;
        for (i, producer) in trace.producers.iter().enumerate() {
            let at = producers.index(i);
            name(&at.key("name"), &producer.name)?;
            names.cluster(&at.key("cluster"), &producer.cluster)?;
            let new = names.producers.insert(&producer.name);
            ensure(new, &at.key("name"), || format!("expected a unique name, found producer {:?} again", producer.name))?;
        }
        Ok(names)
    }

    fn replica(&self, place: &Place, name: &str) -> Checked {
        ensure(self.replicas.contains(name), place, || unknown("replica", name, &self.replicas))
    }

    fn cluster(&self, place: &Place, name: &str) -> Checked {
        ensure(self.clusters.contains(name), place, || unknown("cluster", name, &self.clusters))
    }

    fn producer(&self, place: &Place, name: Option<&str>) -> Checked {
        match name {
            Some(name) => ensure(self.producers.contains(name), place, || unknown("producer", name, &self.producers)),
            None => Ok(()),
        }
    }

    fn step(&self, at: &Place, i: usize, step: &Step, records: &mut u64) -> Checked {
        let n = i + 1;
        ensure(usize::try_from(step.n) == Ok(n), &at.key("n"), || format!("expected step number {n}, found {}", step.n))?;
        one_line(&at.key("say"), &step.say)?;
        let count = step.ops.len();
        ensure(count <= MAX_OPS_PER_STEP, &at.key("ops"), || {
            format!("expected at most {MAX_OPS_PER_STEP} operations, found {count}")
        })?;
        for (j, op) in step.ops.iter().enumerate() {
            self.op(&at.key("ops").index(j), op)?;
            if let Op::Append { batch, .. } = op {
                *records = records.saturating_add(u64::from(batch.records));
            }
        }
        ensure(*records <= MAX_RECORDS, at, || format!("expected at most {MAX_RECORDS} appended records in a trace"))?;
        for (replica, state) in &step.state {
            let place = at.key("state").key(replica);
            self.replica(&place, replica)?;
            self.state(&place, state)?;
        }
        Ok(())
    }

    fn op(&self, at: &Place, op: &Op) -> Checked {
        self.replica(&at.key("replica"), op.replica())?;
        match op {
            Op::Append { by, batch: sent, expect, .. } => {
                self.producer(&at.key("by"), by.as_deref())?;
                batch(&at.key("batch"), sent)?;
                author(&at.key("by"), by.as_deref(), sent)?;
                outcome(&at.key("expect"), expect)
            }
            Op::Mirror { replica, from, offset: first, batches, expect } => {
                self.replica(&at.key("from"), from)?;
                ensure(from != replica, &at.key("from"), || "expected another replica than the one that appends".to_owned())?;
                offset(at, "offset", *first)?;
                let within = (1..=MAX_BATCHES_PER_MIRROR).contains(batches);
                ensure(within, &at.key("batches"), || format!("expected 1 to {MAX_BATCHES_PER_MIRROR} batches, found {batches}"))?;
                outcome(&at.key("expect"), expect)
            }
            Op::Truncate { offset: o, .. } | Op::HighWatermark { offset: o, .. } | Op::LastMirroredOffset { offset: o, .. } => {
                offset(at, "offset", *o)
            }
            Op::MirrorState { source, .. } | Op::LearnMirrorState { source, .. } => match source {
                Some(source) => self.cluster(&at.key("source"), source),
                None => Ok(()),
            },
            Op::Crash { .. } | Op::Recover { .. } | Op::Lead { .. } | Op::Roll { .. } => Ok(()),
        }
    }

    fn state(&self, at: &Place, state: &ReplicaState) -> Checked {
        offset(at, "log_start_offset", state.log_start_offset)?;
        offset(at, "log_end_offset", state.log_end_offset)?;
        offset(at, "high_watermark", state.high_watermark)?;
        offset(at, "last_stable_offset", state.last_stable_offset)?;
        let mut next = 0_i64;
        for (i, entry) in state.log.iter().enumerate() {
            let place = at.key("log").index(i);
            ensure(entry.offset >= next, &place.key("offset"), || {
                format!("expected offset {next} or more, found {}", entry.offset)
            })?;
            batch(&place.key("batch"), &entry.batch)?;
            self.producer(&place.key("by"), entry.by.as_deref())?;
            next = entry.offset.saturating_add(i64::from(entry.batch.records));
        }
        for (i, entry) in state.producers.iter().enumerate() {
            let place = at.key("producers").index(i);
            let earlier = state.producers.get(..i).unwrap_or_default();
            let ascends = earlier.last().is_none_or(|e| e.producer_id < entry.producer_id);
            ensure(ascends, &place.key("producer_id"), || "expected the entries in ascending order of producer id".to_owned())?;
        }
        Ok(())
    }
}

fn unknown(what: &str, name: &str, declared: &BTreeSet<&str>) -> String {
    let names: Vec<&str> = declared.iter().copied().take(20).collect();
    format!("expected a declared {what} ({}), found {name:?}", if names.is_empty() { "none".to_owned() } else { names.join(", ") })
}

fn batch(at: &Place, batch: &Batch) -> Checked {
    let records = batch.records;
    let most = if batch.control.is_some() { 1 } else { MAX_RECORDS_PER_BATCH };
    ensure((1..=most).contains(&records), &at.key("records"), || format!("expected 1 to {most} records, found {records}"))?;
    if let Some(Control::MirrorPidReset { source_cluster }) = &batch.control {
        name(&at.key("control").key("source_cluster"), source_cluster)?;
    }
    let epoch = batch.producer_epoch;
    ensure(epoch >= -1, &at.key("producer_epoch"), || format!("expected an epoch, or -1 for none, found {epoch}"))?;
    let sequence = batch.base_sequence;
    ensure(sequence >= -1, &at.key("base_sequence"), || format!("expected a sequence, or -1 for none, found {sequence}"))
}

/// Data has an author, a barrier has none; a marker may be written for a producer or by a stopping mirror.
fn author(at: &Place, by: Option<&str>, batch: &Batch) -> Checked {
    match (&batch.control, by) {
        (None, None) => fault(at, "expected the producer of a data batch, found none"),
        (Some(Control::MirrorPidReset { .. }), Some(by)) => fault(at, format!("expected none for a barrier, found {by:?}")),
        _ => Ok(()),
    }
}

fn outcome(at: &Place, expect: &Expect) -> Checked {
    match expect {
        Expect::Appended { base_offset, last_offset } | Expect::Duplicate { base_offset, last_offset } => {
            ensure(0 <= *base_offset && base_offset <= last_offset, at, || {
                format!("expected base_offset of 0 or more and last_offset not below it, found {base_offset} and {last_offset}")
            })
        }
        Expect::Error(class) => name(at, class),
    }
}
