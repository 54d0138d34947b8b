//! Takes the steps of a scenario file and tells them.

use std::fmt::Write as _;

use cleanslate_model::message::Msg;
use cleanslate_model::property::PROPERTIES;
use cleanslate_model::scenario::{Action, Scenario, State};
use cleanslate_model::story;
use stateright::Model as _;
use stateright::actor::ActorModelAction;

use crate::draw;
use crate::format::{Expected, Part, ScenarioFile, Step};

/// A step that can be taken.
struct Possible {
    action: Action,
    /// What it is called before it is taken.
    call: String,
    /// What the model tells of it.
    story: String,
}

/// What the runner writes below the dashes; an error names the line.
pub(crate) fn told(file: &ScenarioFile) -> Result<String, String> {
    let parts: Vec<String> = file.parts.iter().map(told_part).collect::<Result<_, _>>()?;
    Ok(parts.join("\n"))
}

fn told_part(part: &Part) -> Result<String, String> {
    let scenario = Scenario::new(part.design, part.topology, part.bounds);
    let mut state = scenario.init_states().into_iter().next().ok_or("the scenario has no beginning")?;
    let mut text = format!("{} in {}\n\n", part.design_name, part.topology.name);
    let mut broken = violated(&scenario, &state);
    let mut number = 0;
    for (line, step) in &part.steps {
        let possible = possible(&scenario, &state);
        match step {
            Step::Take(name) => {
                let taken = the_one(&possible, name).map_err(|why| format!("line {line}: {why}"))?;
                state = scenario.next_state(&state, taken.action.clone()).ok_or("the step goes nowhere")?;
                number += 1;
                let _ = writeln!(text, "{number:>3}  {}", taken.story);
                let now = violated(&scenario, &state);
                note(&mut text, "from here on violated", &now, &broken);
                note(&mut text, "no longer violated", &broken, &now);
                broken = now;
            }
            Step::NotPossible(name) => {
                let found: Vec<_> = possible.iter().filter(|p| p.is_called(name)).collect();
                if !found.is_empty() {
                    return Err(format!("line {line}: '{name}' is possible:{}", list(&found)));
                }
                let _ = writeln!(text, "     (Not possible here: {name}.)");
            }
        }
    }
    let drawing = draw::drawing(&scenario, &state);
    let _ = write!(text, "\n{drawing}\n");
    let _ = writeln!(text, "violated: {}", names(&broken));
    let held: Vec<&str> = PROPERTIES.iter().map(|p| p.id).filter(|id| !broken.contains(id)).collect();
    text.push_str(&wrapped("kept:     ", &held));
    check(part, &scenario, &state, &broken, &drawing).map_err(|why| format!("{why}\n{text}"))?;
    Ok(text)
}

fn check(part: &Part, scenario: &Scenario, state: &State, broken: &[&str], drawing: &str) -> Result<(), String> {
    let blanks_aside = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    for (line, expected) in &part.expected {
        match expected {
            Expected::Violates(names_expected) => {
                let mut wanted: Vec<&str> = names_expected.iter().map(String::as_str).collect();
                let mut found = broken.to_vec();
                wanted.sort_unstable();
                found.sort_unstable();
                if wanted != found {
                    return Err(format!("line {line}: expected {}, violated is {}", names(&wanted), names(&found)));
                }
            }
            Expected::Log(name, wanted) => {
                let found = draw::log(scenario, state, name).ok_or_else(|| format!("line {line}: there is no replica '{name}'"))?;
                if *wanted != found {
                    return Err(format!("line {line}: expected {wanted}, the log of {name} is {found}"));
                }
            }
            Expected::Shows(wanted) => {
                if !blanks_aside(drawing).contains(&blanks_aside(wanted)) {
                    return Err(format!("line {line}: the drawing does not show '{wanted}'"));
                }
            }
        }
    }
    Ok(())
}

impl Possible {
    fn is_called(&self, name: &str) -> bool {
        self.call.contains(name) || self.story.contains(name)
    }
}

/// The steps that can be taken and change something.
fn possible(scenario: &Scenario, state: &State) -> Vec<Possible> {
    let mut actions = Vec::new();
    scenario.actions(state, &mut actions);
    let told = |action: Action| {
        let (steps, next) = scenario.explain(state, &action)?;
        let call = story::action_line(scenario, &action) + if is_resent(&action) { ", sent again" } else { "" };
        let story = story::step_line(scenario, state, &steps, &next);
        (next != *state).then_some(Possible { action, call, story })
    };
    let mut possible: Vec<_> = actions.into_iter().filter_map(told).collect();
    possible.sort_by(|a, b| (&a.story, &a.call).cmp(&(&b.story, &b.call)));
    possible
}

/// Whether this is the arrival of a copy that was sent when another one was already on its way.
fn is_resent(action: &Action) -> bool {
    match action {
        ActorModelAction::Deliver { msg: Msg::Produce(request) | Msg::WriteMarker(request), .. } => request.resent,
        _ => false,
    }
}

/// The only step that is called so: the whole of what it is called, or, if no step is called so in full, a part of it.
fn the_one<'p>(possible: &'p [Possible], name: &str) -> Result<&'p Possible, String> {
    let whole: Vec<_> = possible.iter().filter(|p| p.call == name || p.story.trim_end_matches('.') == name).collect();
    let found = if whole.is_empty() { possible.iter().filter(|p| p.is_called(name)).collect() } else { whole };
    match found.as_slice() {
        [one] => Ok(one),
        [] => Err(format!("no possible step is called '{name}'; possible are:{}", list(&possible.iter().collect::<Vec<_>>()))),
        several => Err(format!("'{name}' may be any of:{}", list(several))),
    }
}

fn list(steps: &[&Possible]) -> String {
    steps.iter().map(|p| format!("\n  {}   <- {}", p.story, p.call)).collect()
}

fn violated(scenario: &Scenario, state: &State) -> Vec<&'static str> {
    PROPERTIES.iter().filter(|p| !(p.condition)(scenario, state)).map(|p| p.id).collect()
}

fn note(text: &mut String, what: &str, these: &[&str], but_not: &[&str]) {
    let news: Vec<&str> = these.iter().copied().filter(|id| !but_not.contains(id)).collect();
    if !news.is_empty() {
        let _ = writeln!(text, "     ({what}: {}.)", news.join(", "));
    }
}

fn names(ids: &[&str]) -> String {
    if ids.is_empty() { "nothing".to_owned() } else { ids.join(", ") }
}

/// A list in lines of bearable length.
fn wrapped(head: &str, words: &[&str]) -> String {
    let mut text = head.to_owned();
    let mut column = head.len();
    for (i, word) in words.iter().enumerate() {
        let word = if i + 1 < words.len() { format!("{word}, ") } else { (*word).to_owned() };
        if column + word.len() > 110 {
            let _ = write!(text, "\n{:>1$}", "", head.len());
            column = head.len();
        }
        column += word.len();
        text.push_str(&word);
    }
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.join("\n") + "\n"
}
