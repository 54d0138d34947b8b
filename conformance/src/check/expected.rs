//! The table of expected verdicts, `specs/verdicts.tsv`.

use thiserror::Error;

use super::job::{GroupVerdict, JobReport, Verdict};
use super::plan::Job;

/// The table that this build was made with.
const TABLE: &str = include_str!("../../../specs/verdicts.tsv");

/// One line of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    /// `small` or `ci`.
    pub bounds: String,
    /// The design.
    pub design: String,
    /// The topology.
    pub topology: String,
    /// The group's id.
    pub group: String,
    /// The verdict.
    pub verdict: Verdict,
    /// The property that breaks first, if one does.
    pub property: Option<String>,
    /// The length of its shortest trace.
    pub length: Option<u32>,
    /// The number of states.
    pub states: u64,
}

/// The table.
#[derive(Clone, Debug)]
pub struct ExpectedTable(Vec<Expected>);

/// Why the table cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "specs/verdicts.tsv:{line}: expected eight fields separated by tabs: bounds, design, topology, group, verdict, property, length, states"
)]
pub struct ExpectedError {
    /// The line, from 1.
    pub line: usize,
}

impl ExpectedTable {
    /// The table that this build was made with.
    ///
    /// # Errors
    /// [`ExpectedError`] with the line.
    pub fn load() -> Result<Self, ExpectedError> {
        Self::parse(TABLE)
    }

    /// Reads a table: tabs between fields, `-` for none, `#` starts a comment line.
    ///
    /// # Errors
    /// [`ExpectedError`] with the line.
    pub fn parse(text: &str) -> Result<Self, ExpectedError> {
        let lines = text.lines().enumerate().filter(|(_, l)| !l.starts_with('#') && !l.trim().is_empty());
        lines.map(|(i, l)| line(l).ok_or(ExpectedError { line: i + 1 })).collect::<Result<_, _>>().map(Self)
    }

    /// The line of a job's group, if the job is one of the table's.
    #[must_use]
    pub fn of(&self, job: &Job, group: &str) -> Option<&Expected> {
        let fits = |e: &&Expected| {
            Some(e.bounds.as_str()) == job.bounds_name
                && e.design == job.design
                && e.topology == job.topology.name
                && e.group == group
        };
        self.0.iter().find(fits).filter(|_| job.focus.is_none())
    }
}

fn line(text: &str) -> Option<Expected> {
    let fields: Vec<&str> = text.split('\t').collect();
    let [bounds, design, topology, group, verdict, property, length, states] = <[&str; 8]>::try_from(fields).ok()?;
    let some = |field: &str| (field != "-").then(|| field.to_owned());
    Some(Expected {
        bounds: bounds.to_owned(),
        design: design.to_owned(),
        topology: topology.to_owned(),
        group: group.to_owned(),
        verdict: Verdict::by_name(verdict)?,
        property: some(property),
        length: match some(length) {
            Some(n) => Some(n.parse().ok()?),
            None => None,
        },
        states: states.parse().ok()?,
    })
}

impl Expected {
    /// How a result differs from what is expected, or none. `whole_group`: all properties of the group were checked.
    #[must_use]
    pub fn difference(&self, report: &JobReport, result: &GroupVerdict, whole_group: bool) -> Option<String> {
        if result.verdict != self.verdict {
            return Some(format!("expected {}, found {}", self.verdict.name(), result.verdict.name()));
        }
        if !report.complete {
            // A violation that was found before the cut is a violation; the rest cannot be compared.
            return None;
        }
        if report.states != self.states {
            return Some(format!("expected {} states, found {}", self.states, report.states));
        }
        // Which property breaks first, and in how many steps, is told by the shortest traces alone.
        if !whole_group || report.measures.is_none() {
            return None;
        }
        let property = result.shortest().map(|(p, _)| p.id);
        if property != self.property.as_deref() {
            let name = |p: Option<&str>| p.unwrap_or("no property").to_owned();
            return Some(format!("expected {} to break first, found {}", name(self.property.as_deref()), name(property)));
        }
        let length = result.shortest().map(|(_, c)| c.length);
        let steps = |n: Option<u32>| n.map_or_else(|| "no trace".to_owned(), |n| format!("a trace of {n} steps"));
        (length != self.length).then(|| format!("expected {}, found {}", steps(self.length), steps(length)))
    }
}
