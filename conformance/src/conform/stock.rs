//! Traces on an implementation that may have only the rules of stock Kafka.
//!
//! A design may ask for rules that stock Kafka does not have: a barrier that clears, entries of negative producer ids. The steps before the
//! first that needs such a rule must agree all the same, and in that step the implementation must do what stock rules say: only then the
//! rest of the trace is skipped, and not failed. What stock rules say is told by the log of this project, run under them.

use std::path::Path;

use crate::replay::{Divergence, ReplayError, ReplayReport, record, replay};
use crate::target::Target;
use crate::target::in_process::{InProcess, StockRules};
use crate::trace::format::Trace;

/// Characters of a value that are shown where a trace is skipped.
const SHOWN_CHARS: usize = 60;

/// How a trace went on an implementation that may have only stock rules.
#[derive(Clone, Debug)]
pub struct StockReplay {
    /// The run by the trace's own expectations, up to where it parts from them.
    pub report: ReplayReport,
    /// The rule that the next step needs and the implementation does not have; none if the trace was run to its end, or the implementation
    /// is wrong.
    pub needs: Option<String>,
}

impl StockReplay {
    /// The reason to skip the rest, in one line.
    #[must_use]
    pub fn skipped(&self) -> Option<String> {
        let (rule, at) = (self.needs.as_ref()?, self.report.divergence.as_ref()?);
        let (agreed, step) = (self.report.steps_agreed, at.step);
        let parting = format!("{}: {} instead of {}", at.field, short(&at.actual), short(&at.expected));
        let target = &self.report.target;
        Some(format!("step {step} needs {rule}, which {target} does not have; the {agreed} before it agree ({parting})"))
    }
}

/// The beginning of a value that may be long.
fn short(value: &str) -> String {
    let mut chars = value.chars();
    let start: String = chars.by_ref().take(SHOWN_CHARS).collect();
    if chars.next().is_some() { start + "..." } else { start }
}

/// Runs a trace on `target`; where they part, finds out whether stock rules are the reason.
///
/// # Errors
/// When the target cannot carry out a step.
pub fn replay_with_stock_rules(trace: &Trace, file: Option<&Path>, target: &mut dyn Target) -> Result<StockReplay, ReplayError> {
    let report = replay(trace, file, target)?;
    let Some(Divergence { step, .. }) = report.divergence else { return Ok(StockReplay { report, needs: None }) };
    let Some((stock, rule)) = until_stock_rules_part(trace)? else { return Ok(StockReplay { report, needs: None }) };
    let here = stock.steps.last().is_some_and(|last| last.n == step);
    let needs = if here && replay(&stock, file, target)?.divergence.is_none() { Some(rule) } else { None };
    Ok(StockReplay { report, needs })
}

/// The steps of a trace up to the first in which stock rules lead elsewhere, with what stock rules say there, and the rule that the step
/// needs. None if they lead nowhere else.
fn until_stock_rules_part(trace: &Trace) -> Result<Option<(Trace, String)>, ReplayError> {
    let parting = |stock: StockRules| -> Result<Option<usize>, ReplayError> {
        let report = replay(trace, None, &mut InProcess::under(stock))?;
        Ok(report.divergence.map(|_| report.steps_agreed))
    };
    let both = StockRules { barriers: true, ids: true };
    let Some(agreed) = parting(both)? else { return Ok(None) };
    // Where the design's own rules do not lead there either, the trace is wrong, and no rule is missing.
    if parting(StockRules::default())?.is_some_and(|by_design| by_design <= agreed) {
        return Ok(None);
    }
    let axis = |name: &str| trace.scenario.axes.get(name).map_or("", String::as_str).to_owned();
    let mut rules = Vec::new();
    if parting(StockRules { barriers: true, ids: false })? == Some(agreed) {
        rules.push(format!("a barrier that clears producer entries (clears={})", axis("clears")));
    }
    if parting(StockRules { barriers: false, ids: true })? == Some(agreed) {
        rules.push(format!("producer entries of negative ids (psm-ids={})", axis("psm-ids")));
    }
    let rule = if rules.is_empty() { "rules of its design".to_owned() } else { rules.join(" and ") };
    let steps = trace.steps.iter().take(agreed.saturating_add(1)).cloned().collect();
    let shortened = Trace { steps, property: None, violation: None, ..trace.clone() };
    Ok(Some((record(&shortened, &mut InProcess::under(both))?, rule)))
}
