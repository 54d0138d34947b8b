//! Random sequences, shrunk when they show a difference.

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config as ProptestConfig, RngAlgorithm, TestRng, TestRunner};

use super::action::{Plan, Which, plans};
use super::compare::{Difference, compare, receive, send};
use super::concrete::{Concrete, START_MS};
use super::known::Masks;
use super::needs::Names;
use crate::adapter::message::Operation;
use crate::adapter::reply::Reply;
use crate::adapter::{Abilities, AdapterError, Requests};

/// How often a failing sequence is run again with simpler values.
const MAX_SIMPLER: usize = 200;

/// A sequence on which the two sides part.
#[derive(Clone, Debug)]
pub struct Failing {
    /// The number of the sequence in the run, from 0.
    pub number: u64,
    /// What was done.
    pub plan: Plan,
    /// The requests, and what came of them here.
    pub requests: Vec<(Operation, Reply)>,
    /// Where they part.
    pub difference: Difference,
}

impl Failing {
    /// Takes another plan if that shows a difference too; tells whether it does.
    fn improve(&mut self, adapter: &mut impl Requests, masks: &mut Masks, plan: Plan) -> Result<bool, AdapterError> {
        let (requests, _) = requests(&plan, &adapter.abilities());
        let Some(difference) = compare(adapter, &requests, masks)? else { return Ok(false) };
        *self = Self { number: self.number, plan, requests, difference };
        Ok(true)
    }

    /// Leaves out actions, first many at once, as long as there is a difference.
    fn drop_actions(&mut self, adapter: &mut impl Requests, masks: &mut Masks) -> Result<(), AdapterError> {
        let mut size = self.plan.actions.len().div_ceil(2).max(1);
        loop {
            let mut from = 0;
            while from < self.plan.actions.len() {
                let mut plan = self.plan.clone();
                let to = from.saturating_add(size).min(plan.actions.len());
                plan.actions.drain(from..to);
                if !self.improve(adapter, masks, plan)? {
                    from = to;
                }
            }
            if size == 1 {
                return Ok(());
            }
            size /= 2;
        }
    }
}

/// The requests of a plan, with what came of them here. Actions that need what the other side lacks are left out; what they need is told.
#[must_use]
pub fn requests(plan: &Plan, abilities: &Abilities) -> (Vec<(Operation, Reply)>, Names) {
    let mut concrete = Concrete::new(abilities.clone());
    concrete.begin(START_MS, &plan.config);
    for action in &plan.actions {
        concrete.act(action);
    }
    concrete.transplant(Which::A, &plan.config, plan.transplant_clean);
    (concrete.requests, concrete.left_out)
}

/// The random sequences of a seed.
pub struct Random {
    runner: TestRunner,
    length: usize,
    abilities: Abilities,
    /// What actions of the sequences need that were left out because the other side lacks it.
    pub left_out: Names,
    made: u64,
    /// Sent, but not compared yet: while one side works on it, the other makes the next.
    sent: Option<Sent>,
}

struct Sent {
    number: u64,
    tree: Box<dyn ValueTree<Value = Plan>>,
    requests: Vec<(Operation, Reply)>,
}

impl Random {
    /// Sequences of so many actions, as far as the other side can do them; the same ones for the same seed.
    #[must_use]
    pub fn new(seed: u64, length: usize, abilities: Abilities) -> Self {
        let mut bytes = [0; 32];
        bytes.iter_mut().zip(seed.to_be_bytes()).for_each(|(byte, value)| *byte = value);
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
        Self {
            runner: TestRunner::new_with_rng(ProptestConfig::default(), rng),
            length,
            abilities,
            left_out: Names::new(),
            made: 0,
            sent: None,
        }
    }

    /// Sends the next sequence to both sides, and compares the one before; one that shows a difference is made as small as possible.
    /// Also returns how many requests were compared.
    ///
    /// # Errors
    /// When the adapter misbehaves.
    pub fn next(&mut self, adapter: &mut impl Requests, masks: &mut Masks) -> Result<(usize, Option<Box<Failing>>), AdapterError> {
        let next = self.make();
        let result = self.finish(adapter, masks)?;
        if let Some(next) = &next {
            send(adapter, &next.requests)?;
        }
        self.sent = next;
        Ok(result)
    }

    fn make(&mut self) -> Option<Sent> {
        let number = self.made;
        self.made = self.made.saturating_add(1);
        let tree = plans(self.length).new_tree(&mut self.runner).ok()?;
        let (requests, mut left_out) = requests(&tree.current(), &self.abilities);
        self.left_out.append(&mut left_out);
        Some(Sent { number, tree: Box::new(tree), requests })
    }

    /// Compares the sequence that was sent last, if any.
    ///
    /// # Errors
    /// When the adapter misbehaves.
    pub fn finish(
        &mut self,
        adapter: &mut impl Requests,
        masks: &mut Masks,
    ) -> Result<(usize, Option<Box<Failing>>), AdapterError> {
        let Some(Sent { number, mut tree, requests }) = self.sent.take() else { return Ok((0, None)) };
        let length = requests.len();
        let Some(difference) = receive(adapter, &requests, masks)? else { return Ok((length, None)) };
        let mut smallest = Failing { number, plan: tree.current(), requests, difference };
        let mut runs = 0;
        let mut goes_on = tree.simplify();
        while goes_on && runs < MAX_SIMPLER {
            runs += 1;
            goes_on = if smallest.improve(adapter, masks, tree.current())? { tree.simplify() } else { tree.complicate() };
        }
        smallest.drop_actions(adapter, masks)?;
        Ok((length, Some(Box::new(smallest))))
    }
}
