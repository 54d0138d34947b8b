//! `specs/findings`: each violation that a page tells is found again, with exactly this length, in exactly these designs, and is gone with
//! the fix that the page names; and the page tells the story and draws the logs as the model does.
//!
//! `UPDATE=1 cargo test --release -p cleanslate-model --test findings` writes the numbers, stories and drawings again.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may fail loudly, in its helpers too")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};

use cleanslate_model::bounds::Bounds;
use cleanslate_model::design::{Design, NAMED};
use cleanslate_model::ids::Cluster;
use cleanslate_model::property::PROPERTIES;
use cleanslate_model::scenario::Scenario;
use cleanslate_model::search::{Caps, Ending, Report, actions_of, search};
use cleanslate_model::story;
use cleanslate_model::topology::Topology;
use stateright::Model as _;

/// The columns of the table, in order.
const COLUMNS: [&str; 9] = ["id", "design", "topology", "bounds", "property", "steps", "fix", "named", "varied"];

/// One line of the table. A verdict is the number of steps of the shortest trace, or `-` if the property holds.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Row {
    id: String,
    design: String,
    topology: String,
    bounds: String,
    property: String,
    steps: String,
    /// The design in which the property holds at the same bounds; `-` if none is claimed.
    fix: String,
    /// The verdicts of the named designs, in their order; `.` if they are not asked.
    named: String,
    /// Their verdicts with the choices that `design` makes beyond its name; `.` if they are not asked.
    varied: String,
}

fn specs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../specs")
}

fn update() -> bool {
    std::env::var_os("UPDATE").is_some()
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn table() -> Vec<Row> {
    let text = read(&specs().join("findings/findings.tsv"));
    let (header, rows) = text.split_once('\n').unwrap();
    assert_eq!(header.split('\t').collect::<Vec<_>>(), COLUMNS);
    rows.lines()
        .map(|line| {
            let fields: Vec<String> = line.split('\t').map(ToOwned::to_owned).collect();
            let [id, design, topology, bounds, property, steps, fix, named, varied] =
                fields.try_into().unwrap_or_else(|f| panic!("{f:?}"));
            Row { id, design, topology, bounds, property, steps, fix, named, varied }
        })
        .collect()
}

fn written(rows: &[Row]) -> String {
    let line = |r: &Row| {
        [&r.id, &r.design, &r.topology, &r.bounds, &r.property, &r.steps, &r.fix, &r.named, &r.varied]
            .map(String::as_str)
            .join("\t")
    };
    let lines: Vec<String> = rows.iter().map(line).collect();
    format!("{}\n{}\n", COLUMNS.join("\t"), lines.join("\n"))
}

fn scenario(design: &str, topology: &str, bounds: &str) -> Scenario {
    let design = Design::parse(design).unwrap_or_else(|e| panic!("{e}"));
    let topology = Topology::by_name(topology).unwrap_or_else(|| panic!("no topology '{topology}'"));
    Scenario::new(design, topology, Bounds::parse(bounds, topology).unwrap_or_else(|e| panic!("{e}")))
}

fn explore(scenario: &Scenario) -> Report {
    let report = search(scenario, Caps { states: Some(300_000), depth: None }, |_| None);
    assert_eq!(report.ending, Ending::Complete, "{} at {:?} is too large for this test", scenario.topology.name, scenario.bounds);
    report
}

/// `PROPERTY` or `PROPERTY@CLUSTER`.
fn focus(property: &str) -> (&str, Option<Cluster>) {
    let (id, cluster) = property.split_once('@').map_or((property, None), |(id, c)| (id, Some(c)));
    assert!(PROPERTIES.iter().any(|p| p.id == id), "no property '{id}'");
    (id, cluster.map(|name| Cluster::ALL.into_iter().find(|c| c.to_string() == name).unwrap()))
}

/// Design, topology, bounds, and the cluster that is looked at.
type Question = (String, String, String, Option<String>);

/// What was explored already: the length of each property's shortest trace.
#[derive(Default)]
struct Explored(BTreeMap<Question, BTreeMap<&'static str, usize>>);

impl Explored {
    fn verdict(&mut self, design: &str, row: &Row) -> String {
        let (id, cluster) = focus(&row.property);
        // Two texts may be one design; it is explored once.
        let mut s = scenario(design, &row.topology, &row.bounds);
        s.focus = cluster;
        let key = (format!("{:?}", s.design), row.topology.clone(), row.bounds.clone(), cluster.map(|c| c.to_string()));
        let lengths = self.0.entry(key).or_insert_with(|| {
            explore(&s)
                .discoveries
                .iter()
                .filter(|d| PROPERTIES.iter().any(|p| p.id == d.property))
                .map(|d| (d.property, d.actions.len()))
                .collect()
        });
        lengths.get(id).map_or_else(|| "-".to_owned(), ToString::to_string)
    }

    fn all(&mut self, suffix: &str, row: &Row) -> String {
        NAMED.iter().map(|d| self.verdict(&format!("{}{suffix}", d.name), row)).collect::<Vec<_>>().join(" ")
    }
}

/// The choices that a design makes beyond its name, with the `+` before them.
fn choices(design: &str) -> &str {
    design.find('+').map_or("", |at| &design[at..])
}

fn fresh(row: &Row, explored: &mut Explored) -> Row {
    let asked = |column: &str| column != ".";
    Row {
        steps: explored.verdict(&row.design, row),
        named: if asked(&row.named) { explored.all("", row) } else { ".".to_owned() },
        varied: if asked(&row.varied) { explored.all(choices(&row.design), row) } else { ".".to_owned() },
        ..row.clone()
    }
}

/// The table as the model says that it is, in two threads.
fn found() -> Vec<Row> {
    let rows = table();
    let parts: Vec<&[Row]> = rows.chunks(rows.len().div_ceil(2)).collect();
    std::thread::scope(|scope| {
        let threads: Vec<_> = parts
            .iter()
            .map(|part| {
                scope.spawn(|| {
                    let mut explored = Explored::default();
                    let check = |row: &Row| {
                        let now = fresh(row, &mut explored);
                        assert_ne!(now.steps, "-", "{}: no violation of {}", row.id, row.property);
                        let fixed = row.fix == "-" || explored.verdict(&row.fix, row) == "-";
                        assert!(fixed, "{}: {} breaks {}", row.id, row.fix, row.property);
                        now
                    };
                    part.iter().map(check).collect::<Vec<_>>()
                })
            })
            .collect();
        threads.into_iter().flat_map(|t| t.join().unwrap()).collect()
    })
}

/// The table; when all is written again, the new one.
fn rows() -> Vec<Row> {
    static WRITTEN: OnceLock<Vec<Row>> = OnceLock::new();
    if !update() {
        return table();
    }
    let rows = WRITTEN.get_or_init(|| {
        let rows = found();
        std::fs::write(specs().join("findings/findings.tsv"), written(&rows)).unwrap();
        rows
    });
    rows.clone()
}

#[test]
fn every_violation_is_found_again_and_gone_with_its_fix() {
    if update() {
        rows();
        return;
    }
    for (told, now) in table().iter().zip(&found()) {
        assert_eq!(told, now, "{} is told differently", told.id);
    }
}

/// The logs, one row a replica, one column an offset.
fn drawing(picture: &str) -> String {
    let rows: Vec<Vec<&str>> = picture.lines().map(|l| l.split(" | ").collect()).collect();
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let cells = |i: usize| rows.iter().filter_map(move |r| r.get(i)).filter(|c| !c.starts_with(' '));
    let width = |i: usize| cells(i).map(|c| c.trim_end().len()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let draw = |row: &Vec<&str>| {
        if row[0].starts_with(' ') {
            return format!("  {}", row[0]);
        }
        let cells: Vec<String> = row.iter().enumerate().map(|(i, c)| format!("{:<w$}", c.trim_end(), w = widths[i])).collect();
        format!("  {}", cells.join(" | ")).trim_end().to_owned()
    };
    rows.iter().map(draw).collect::<Vec<_>>().join("\n")
}

fn verdict_line(name: &str, verdicts: &str) -> String {
    let cells: Vec<&str> = verdicts.split(' ').map(|v| if v == "-" { "holds" } else { v }).collect();
    format!("| {name} | {} |", cells.join(" | "))
}

/// What a page says of one line of the table.
fn told(row: &Row) -> String {
    let mut s = scenario(&row.design, &row.topology, &row.bounds);
    let (id, cluster) = focus(&row.property);
    s.focus = cluster;
    let report = explore(&s);
    let discovery = report.discovery(id).unwrap_or_else(|| panic!("{}: no violation of {}", row.id, row.property));
    let mut state = s.init_states()[0].clone();
    let mut lines = Vec::new();
    for (i, action) in actions_of(&s, discovery).unwrap().iter().enumerate() {
        let (steps, next) = s.explain(&state, action).unwrap();
        lines.push(format!("{:>3}  {}", i + 1, story::step_line(&s, &state, &steps, &next)));
        state = next;
    }
    let Row { design, topology, bounds, property, .. } = row;
    let command =
        format!("$ cargo run --release -- check --design {design} --topology {topology} --bounds {bounds} --property {property}");
    let mut text = format!("```text\n{command}\n\n{}\n\n{}\n```\n", lines.join("\n"), drawing(&story::picture(&s, &state)));
    if row.named != "." || row.varied != "." {
        let names: Vec<String> = NAMED.iter().map(|d| format!("`{}`", d.name)).collect();
        text += &format!("\n| | {} |\n|---|{}\n", names.join(" | "), "---|".repeat(names.len()));
    }
    if row.named != "." {
        text += &format!("{}\n", verdict_line("as it stands", &row.named));
    }
    if row.varied != "." {
        text += &format!("{}\n", verdict_line(&format!("with `{}`", &choices(design)[1..]), &row.varied));
    }
    if row.fix != "-" {
        text += &format!("\nHolds at the same bounds: `{}`.\n", row.fix);
    }
    text
}

fn page(id: &str) -> PathBuf {
    if id.starts_with("sound-") { specs().join("sound.md") } else { specs().join("findings").join(format!("{id}.md")) }
}

/// Puts what the model tells between the marks of each line, in order; what is there already is taken out.
fn retold(mut text: String, rows: &[&Row]) -> String {
    let mut from = 0;
    for row in rows {
        let begin = format!("<!-- trace {} -->\n", row.id);
        let at = text[from..].find(&begin).unwrap_or_else(|| panic!("the page lacks {begin}")) + from + begin.len();
        let end = text[at..].find("<!-- end -->").unwrap_or_else(|| panic!("no end after {begin}")) + at;
        let new = told(row);
        text.replace_range(at..end, &new);
        from = at + new.len();
    }
    text
}

fn compare(path: &Path, now: &str) {
    if update() {
        std::fs::write(path, now).unwrap();
    } else {
        assert_eq!(read(path), now, "{} differs; UPDATE=1 writes it again", path.display());
    }
}

/// Held while pages are read or written: the tests run side by side.
static PAGES: Mutex<()> = Mutex::new(());

#[test]
fn pages_tell_what_the_model_does() {
    let rows = rows();
    let _pages = PAGES.lock();
    let mut by_page: BTreeMap<PathBuf, Vec<&Row>> = BTreeMap::new();
    rows.iter().for_each(|row| by_page.entry(page(&row.id)).or_default().push(row));
    for (path, rows) in by_page {
        compare(&path, &retold(read(&path), &rows));
    }
}

#[test]
fn the_list_of_findings_is_complete() {
    let rows = rows();
    let _pages = PAGES.lock();
    let dir = specs().join("findings");
    let names: BTreeSet<String> = std::fs::read_dir(&dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    let pages: Vec<&str> =
        names.iter().filter_map(|n| n.strip_suffix(".md")).filter(|n| *n != "README" && !n.starts_with("log-")).collect();
    let lines: Vec<String> = pages
        .iter()
        .map(|id| {
            let text = read(&dir.join(format!("{id}.md")));
            let title = text.lines().next().unwrap().trim_start_matches("# ").to_owned();
            let own: Vec<&Row> = rows.iter().filter(|r| r.id == *id).collect();
            let first = own.first().unwrap_or_else(|| panic!("{id} has no line in findings.tsv"));
            format!("| [{}]({id}.md) | {title} | `{}` | `{}` | {} |", &id[..2], first.design, first.property, first.steps)
        })
        .collect();
    let path = dir.join("README.md");
    let text = read(&path);
    for id in names.iter().filter_map(|n| n.strip_suffix(".md")).filter(|n| n.starts_with("log-")) {
        let page = read(&dir.join(format!("{id}.md")));
        let title = page.lines().next().unwrap().trim_start_matches("# ").to_owned();
        assert!(text.contains(&format!("- [{id}]({id}.md): {title}\n")), "README.md lacks {id}");
        let sequence = page.split('`').find(|word| word.starts_with("conformance/sequences/")).unwrap();
        assert!(specs().join("..").join(sequence).is_file(), "{id} names {sequence}, which is not there");
    }
    let begin = "| page | what happens | design | property | steps |\n|---|---|---|---|---|\n";
    let (before, _) = text.split_once(begin).unwrap_or_else(|| panic!("README.md lacks its table"));
    compare(&path, &format!("{before}{begin}{}\n", lines.join("\n")));
}
