//! The upper part of a scenario file, as people write it.

use cleanslate_model::bounds::Bounds;
use cleanslate_model::design::Design;
use cleanslate_model::topology::Topology;

/// What divides what people write from what the runner writes.
const DASHES: &str = "----------------------------------------------------------------";

/// A scenario file.
pub(crate) struct ScenarioFile {
    /// What stands above the dashes.
    pub above: String,
    /// What stands below them.
    pub below: String,
    /// The parts, in order.
    pub parts: Vec<Part>,
}

/// A run.
#[derive(Clone)]
pub(crate) struct Part {
    /// The line in which it begins.
    pub line: usize,
    /// The design as written.
    pub design_name: String,
    /// The design.
    pub design: Design,
    /// The topology.
    pub topology: &'static Topology,
    /// The bounds.
    pub bounds: Bounds,
    /// The steps with their lines.
    pub steps: Vec<(usize, Step)>,
    /// What is expected at the end, with the lines.
    pub expected: Vec<(usize, Expected)>,
}

/// A line of the steps.
#[derive(Clone)]
pub(crate) enum Step {
    /// Take the step that is called so.
    Take(String),
    /// No step that is called so is possible.
    NotPossible(String),
}

/// An `expect:` line.
#[derive(Clone)]
pub(crate) enum Expected {
    /// Exactly these properties are violated, perhaps none.
    Violates(Vec<String>),
    /// The log of this replica holds this.
    Log(String, String),
    /// The drawing shows this, however many blanks there are.
    Shows(String),
}

#[derive(Clone, Copy, Default)]
struct Setting {
    topology: Option<&'static Topology>,
    bounds: Option<Bounds>,
}

impl ScenarioFile {
    /// Reads a file; an error names the line.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (above, below) = text.split_once(&format!("{DASHES}\n")).unwrap_or((text, ""));
        let mut parts: Vec<Part> = Vec::new();
        let mut setting = Setting::default();
        let mut in_steps = false;
        for (line, content) in above.lines().enumerate().map(|(i, l)| (i + 1, l)) {
            let at = |why: String| format!("line {line}: {why}");
            if in_steps && content.starts_with("  ") {
                let step = content.trim();
                let step =
                    step.strip_prefix("not possible: ").map_or_else(|| Step::Take(step.into()), |s| Step::NotPossible(s.into()));
                parts.last_mut().unwrap().steps.push((line, step));
                continue;
            }
            in_steps = false;
            let Some((key, value)) = content.split_once(':').filter(|(k, _)| parts_of_speech(k)) else {
                if !parts.is_empty() && content.contains(':') {
                    return Err(at(format!("what does '{content}' mean?")));
                }
                continue;
            };
            let value = value.trim();
            if key == "design" {
                parts.push(new_part(line, value, &setting).map_err(at)?);
                continue;
            }
            let earlier = parts.iter().rev().nth(1).map(|p| p.steps.clone());
            let Some(part) = parts.last_mut() else { continue };
            match key {
                "topology" => {
                    part.topology = Topology::by_name(value).ok_or_else(|| at(format!("there is no topology '{value}'")))?;
                    setting.topology = Some(part.topology);
                }
                "bounds" => {
                    part.bounds = Bounds::parse(value, part.topology).map_err(|e| at(e.to_string()))?;
                    setting.bounds = Some(part.bounds);
                }
                "steps" if value == "as above" => {
                    part.steps = earlier.ok_or_else(|| at("there are no steps above".to_owned()))?;
                    in_steps = true;
                }
                "steps" => in_steps = true,
                _ => part.expected.push((line, expected(value).map_err(at)?)),
            }
        }
        if let Some(silent) = parts.iter().find(|p| !p.expected.iter().any(|(_, e)| matches!(e, Expected::Violates(_)))) {
            return Err(format!("the part that begins in line {} does not say what is expected", silent.line));
        }
        if parts.is_empty() {
            return Err("there is no design".to_owned());
        }
        Ok(Self { above: above.trim_end().to_owned() + "\n", below: below.to_owned(), parts })
    }

    /// The file with this below the dashes.
    pub(crate) fn with(&self, below: &str) -> String {
        format!("{}\n{DASHES}\n{below}", self.above)
    }
}

fn parts_of_speech(key: &str) -> bool {
    ["design", "topology", "bounds", "steps", "expect"].contains(&key)
}

/// A part has the topology and the bounds of the one before it unless it names others.
fn new_part(line: usize, name: &str, setting: &Setting) -> Result<Part, String> {
    let design = Design::parse(name).map_err(|e| e.to_string())?;
    let topology = setting.topology.unwrap_or_else(|| Topology::by_name("active-passive").unwrap());
    let bounds = setting.bounds.unwrap_or(Bounds::SMALL);
    Ok(Part { line, design_name: name.to_owned(), design, topology, bounds, steps: Vec::new(), expected: Vec::new() })
}

fn expected(value: &str) -> Result<Expected, String> {
    if value == "holds" {
        return Ok(Expected::Violates(Vec::new()));
    }
    if let Some(list) = value.strip_prefix("violates ") {
        let names: Vec<String> = list.split(", ").map(str::to_owned).collect();
        if let Some(unknown) = names.iter().find(|n| cleanslate_model::property::by_id(n).is_none()) {
            return Err(format!("there is no property '{unknown}'"));
        }
        return Ok(Expected::Violates(names));
    }
    if let Some((replica, log)) = value.strip_prefix("log ").and_then(|v| v.split_once(": ")) {
        return Ok(Expected::Log(replica.to_owned(), log.to_owned()));
    }
    value.strip_prefix("shows ").map(|s| Expected::Shows(s.to_owned())).ok_or_else(|| format!("what does 'expect: {value}' mean?"))
}
