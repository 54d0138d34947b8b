//! Implementations that can do less than the protocol has: they are held against what they can do, and agree.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use cleanslate_conformance::adapter::message::{Config, OPTIONAL, REQUIRED};
use cleanslate_conformance::adapter::reply::Read;
use cleanslate_conformance::adapter::state::LeaderEpoch;
use cleanslate_conformance::adapter::{Abilities, AdapterError, Answer, FEATURES, FailureKind, Operation, Reply, Requests, State};
use cleanslate_conformance::sequence::compare::compare;
use cleanslate_conformance::sequence::file::SequenceFile;
use cleanslate_conformance::sequence::known::Masks;
use cleanslate_conformance::sequence::local_requests::LocalRequests;
use cleanslate_conformance::sequence::needs::{missing, worded};
use cleanslate_conformance::sequence::random::Random;

/// The log of this project, which does without what is not listed, as somebody might who has not built it.
struct Limited {
    log: LocalRequests,
    abilities: Abilities,
    /// The requests on their way: how many the log was asked in the place of each, and whether the state was asked for.
    sent: VecDeque<usize>,
    asked: u64,
}

impl Limited {
    fn new(abilities: Abilities) -> Self {
        Self { log: LocalRequests::default(), abilities, sent: VecDeque::new(), asked: 0 }
    }

    fn has(&self, feature: &str) -> bool {
        self.abilities.has(feature)
    }

    /// Whether the log is brought to forget its snapshots. Each start enters leader epochs, so a second one is made only where none are told.
    fn forgets(&self) -> bool {
        !self.has("snapshots") && !self.has("leader-epochs")
    }

    /// What the log is asked for in the place of a request; the last of it is answered.
    fn translated(&self, operation: &Operation) -> Vec<Operation> {
        let forget = |log: &str| Operation::DeleteSnapshots { log: log.to_owned(), before: i64::MAX };
        match operation.clone() {
            Operation::Create { log, now_ms, config } => {
                vec![Operation::Create { log, now_ms, config: self.heeded(config) }]
            }
            Operation::Crash { log, cuts, lost } if self.forgets() => {
                vec![forget(&log), Operation::Crash { log, cuts, lost }]
            }
            // Without snapshots, entries are made of what the log holds after a stop in good order too.
            Operation::Open { log, log_start, now_ms, .. } if self.forgets() => {
                let lost = vec!["*.snapshot".to_owned()];
                let crash = Operation::Crash { log: log.clone(), cuts: Vec::new(), lost };
                let recovery_point = i64::MAX - 1;
                vec![operation.clone(), crash, Operation::Open { log, clean: false, recovery_point, log_start, now_ms }]
            }
            Operation::Truncate { log, offset } if self.forgets() => {
                vec![forget(&log), Operation::Truncate { log, offset }]
            }
            other => vec![other],
        }
    }

    /// The settings without those that are ignored.
    fn heeded(&self, config: Config) -> Config {
        let mut config = config;
        if !self.has("segments") {
            (config.segment_bytes, config.index_bytes, config.index_interval_bytes) = (None, None, None);
        }
        if !self.has("virtual-time") {
            config.producer_expiration_ms = Some(i32::MAX);
        }
        config
    }

    fn shown(&self, state: State) -> State {
        State {
            verification: state.verification.filter(|_| self.has("transaction-verification")),
            snapshots: state.snapshots.filter(|_| self.has("snapshots")),
            leader_epochs: state.leader_epochs.filter(|_| self.has("leader-epochs")),
            aborted_transactions: state.aborted_transactions.filter(|_| self.has("transaction-index")),
            segments: state.segments.filter(|_| self.has("segments")),
            ..state
        }
    }
}

impl Requests for Limited {
    fn send(&mut self, operation: &Operation, state: bool) -> Result<(), AdapterError> {
        assert!(self.abilities.knows(operation.name()), "{operation:?} was asked for");
        let translated = self.translated(operation);
        self.sent.push_back(translated.len());
        self.asked += 1;
        translated.iter().try_for_each(|operation| self.log.send(operation, state))
    }

    fn receive(&mut self) -> Result<Option<Reply>, AdapterError> {
        let mut reply = None;
        for _ in 0..self.sent.pop_front().unwrap_or(0) {
            reply = self.log.receive()?;
        }
        Ok(reply.map(|reply| {
            let outcome = match reply.outcome {
                Ok(Answer::Read(read)) if !self.has("transaction-index") => Ok(Answer::Read(Read { aborted: None, ..read })),
                outcome => outcome,
            };
            assert!(outcome.as_ref().err().is_none_or(|failure| failure.kind != FailureKind::Protocol), "{outcome:?}");
            Reply { outcome, state: reply.state.map(|state| self.shown(state)) }
        }))
    }

    fn requests(&self) -> u64 {
        self.asked
    }

    fn abilities(&self) -> Abilities {
        self.abilities.clone()
    }
}

/// All that every adapter has, and these.
fn with(more: &[&str]) -> Abilities {
    let optional = OPTIONAL.iter().filter(|name| more.contains(name));
    let operations: Vec<String> = REQUIRED.iter().chain(optional).map(|&name| name.to_owned()).collect();
    let features: Vec<String> = FEATURES.iter().filter(|name| more.contains(name)).map(|&name| name.to_owned()).collect();
    Abilities::new(&operations, &features)
}

/// All but these.
fn without(less: &[&str]) -> Abilities {
    let names = OPTIONAL.iter().chain(&FEATURES).copied();
    with(&names.filter(|name| !less.contains(name)).collect::<Vec<_>>())
}

fn stored() -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("sequences");
    std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect()
}

/// Runs the stored sequences that can be run, and random ones; returns how many stored ones were run, and what was left out of the others.
fn run(abilities: &Abilities) -> (usize, Vec<&'static str>) {
    let (mut other, mut masks, mut ran) = (Limited::new(abilities.clone()), Masks::default(), 0);
    for path in stored() {
        let requests = worded(SequenceFile::read(&path).unwrap().run(), abilities);
        if missing(&requests, abilities).is_empty() {
            ran += 1;
            let difference = compare(&mut other, &requests, &mut masks).unwrap();
            assert_eq!(difference, None, "{}", path.display());
        }
    }
    let mut random = Random::new(3, 30, abilities.clone());
    for number in 0..=200 {
        let (_, failing) =
            if number < 200 { random.next(&mut other, &mut masks) } else { random.finish(&mut other, &mut masks) }.unwrap();
        if let Some(failing) = failing {
            panic!("{abilities:?}: {:#?} {:#?}", failing.plan, failing.difference);
        }
    }
    (ran, random.left_out.into_iter().collect())
}

#[test]
fn one_that_can_do_all_leaves_nothing_out() {
    assert!(without(&[]).is_all());
    assert_eq!(run(&without(&[])), (stored().len(), Vec::new()));
}

#[test]
fn one_that_can_do_what_is_required_agrees() {
    let (ran, left_out) = run(&with(&[]));
    assert_eq!(with(&[]), Abilities::required());
    assert!(ran > 0, "{ran} stored sequences need nothing");
    for name in ["compact", "crash-files", "files", "roll", "set-time", "snapshots", "transaction-verification", "virtual-time"] {
        assert!(left_out.contains(&name), "{name}: {left_out:?}");
    }
    assert!(!left_out.contains(&"run-tasks"), "{left_out:?}");
}

#[test]
fn each_ability_can_be_lacking_alone() {
    // A log whose time stands still forgets old producers at other starts than one that never forgets: not told apart yet.
    for name in OPTIONAL.iter().chain(&FEATURES).filter(|name| **name != "virtual-time") {
        let (ran, left_out) = run(&without(&[name]));
        assert!(ran > 5, "without {name}: {ran} of the stored sequences");
        assert!(left_out.iter().all(|left| left == name), "without {name}: {left_out:?}");
    }
}

#[test]
fn each_ability_can_be_had_alone() {
    for name in OPTIONAL.iter().chain(&FEATURES) {
        let (ran, _) = run(&with(&[name]));
        assert!(ran > 0, "with {name} alone: {ran} of the stored sequences");
    }
}

/// An array that is told is compared.
#[test]
fn what_is_told_is_compared() {
    let requests = SequenceFile::read(&stored().into_iter().find(|path| path.ends_with("truncation-after-a-roll.json")).unwrap())
        .unwrap()
        .run();
    let mut wrong = requests.clone();
    let state = wrong.iter_mut().rev().find_map(|(_, reply)| reply.state.as_mut()).unwrap();
    state.leader_epochs = Some(vec![LeaderEpoch { epoch: 99, start_offset: 0 }]);
    let found = |abilities: Abilities| {
        let difference = compare(&mut Limited::new(abilities), &wrong, &mut Masks::default()).unwrap();
        difference.map(|difference| difference.parts.into_iter().map(|(part, ..)| part).collect::<Vec<_>>())
    };
    assert_eq!(found(without(&[])), Some(vec!["leader_epochs".to_owned()]));
    assert_eq!(found(without(&["leader-epochs"])), None);
}
