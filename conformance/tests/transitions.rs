//! What the model does to single logs: collected, and taken on another implementation.
#![cfg(test)]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]

use std::collections::VecDeque;
use std::sync::Arc;

use cleanslate_conformance::adapter::{Abilities, AdapterError, Failure, FailureKind, Operation, Reply, Requests};
use cleanslate_conformance::sequence::local_requests::LocalRequests;
use cleanslate_conformance::target::Observed;
use cleanslate_conformance::transitions::collect::collect;
use cleanslate_conformance::transitions::take::take;

#[test]
fn every_transition_is_taken_and_agrees() {
    let collection = collect("small").unwrap();
    let graph = &collection.graph;
    assert_eq!((collection.scenarios.len(), collection.edges, graph.transitions.len()), (56, 34590, 221));
    let taken = take(graph, &mut LocalRequests::default()).unwrap();
    assert!(taken.parting.is_none(), "{}", taken.parting.unwrap());
    assert_eq!(taken.transitions, graph.transitions.len());
}

#[test]
fn a_wrong_result_and_a_wrong_picture_are_found_wherever_they_are() {
    let graph = collect("small").unwrap().graph;
    for index in 0..graph.transitions.len() {
        let mut wrong = graph.clone();
        wrong.transitions[index].result = Observed::Duplicate { base_offset: 77, last_offset: 77 };
        let parting = take(&wrong, &mut LocalRequests::default()).unwrap().parting.unwrap();
        assert_eq!((parting.parts[0].0.as_str(), &parting.op), ("result", &graph.transitions[index].op.to_string()));
    }
    for index in 0..graph.pictures.len() {
        let mut wrong = graph.clone();
        let mut picture = wrong.pictures[index].as_ref().clone();
        picture.state.last_stable_offset += 1;
        wrong.pictures[index] = Arc::new(picture);
        if index == 0 {
            let why = take(&wrong, &mut LocalRequests::default()).unwrap_err().to_string();
            assert!(why.contains("a log was created, and differs from an empty one"), "{why}");
            continue;
        }
        let parting = take(&wrong, &mut LocalRequests::default()).unwrap().parting.unwrap();
        assert!(parting.parts.iter().any(|(part, ..)| part.contains("last_stable_offset")), "{parting}");
        assert!(!parting.requests.is_empty());
    }
}

/// The log of this project, but that it refuses every request of one kind.
struct Refusing {
    log: LocalRequests,
    what: &'static str,
    refused: VecDeque<bool>,
}

impl Requests for Refusing {
    fn send(&mut self, operation: &Operation, state: bool) -> Result<(), AdapterError> {
        let refused = operation.name() == self.what;
        self.refused.push_back(refused);
        if refused { Ok(()) } else { self.log.send(operation, state) }
    }

    fn receive(&mut self) -> Result<Option<Reply>, AdapterError> {
        if self.refused.pop_front() == Some(true) {
            let failure =
                Failure { kind: FailureKind::Exception, name: "KafkaStorageException".to_owned(), message: String::new() };
            return Ok(Some(Reply { outcome: Err(failure), state: None }));
        }
        self.log.receive()
    }

    fn requests(&self) -> u64 {
        self.log.requests()
    }

    fn abilities(&self) -> Abilities {
        self.log.abilities()
    }
}

#[test]
fn an_operation_of_two_requests_is_refused_where_either_is() {
    let graph = collect("small,commands=0,rolls=1,crashes=1").unwrap().graph;
    for (what, op) in [
        ("roll", "a new segment begins"),
        ("flush", "a new segment begins"),
        ("crash", "a crash and a start"),
        ("open", "a crash and a start"),
    ] {
        let mut other = Refusing { log: LocalRequests::default(), what, refused: VecDeque::new() };
        let parting = take(&graph, &mut other).unwrap().parting.unwrap();
        assert_eq!(parting.op, op);
        let (part, expected, actual) = &parting.parts[0];
        let refused = "Error(\"KafkaStorageException\")";
        assert_eq!((part.as_str(), expected.as_str(), actual.as_str()), ("result", "Done", refused), "{what}");
    }
}

#[test]
fn bounds_that_are_none_are_an_error() {
    assert!(collect("nonsense").unwrap_err().to_string().contains("unknown bound 'nonsense'"));
}

#[test]
fn what_transitions_need_of_an_adapter_depends_on_the_bounds() {
    let needs = |bounds: &str| collect(bounds).unwrap().graph.needs().into_iter().collect::<Vec<_>>();
    assert!(needs("small,commands=0").is_empty());
    assert_eq!(needs("small,commands=0,crashes=1"), ["snapshots"]);
    assert_eq!(needs("small,commands=0,rolls=1"), ["flush", "roll", "snapshots"]);
}
