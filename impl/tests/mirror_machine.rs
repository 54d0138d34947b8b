//! The mirror's state machine: every event in every state, in both forms.
#![cfg(test)]

use MirrorEffect as Do;
use MirrorEvent as On;
use MirrorState::{EpochFencing, Failed, LogAlignment, Mirroring, Paused, Pausing, Stopped, Stopping, UleRecovery};
use cleanslate_log::mirror::{
    ElectedEpoch, FailedAttempts, Machine, MirrorDesign, MirrorEffect, MirrorError, MirrorEvent, MirrorState, MirrorStatus,
    StateForm,
};

const ALIGNED: On = On::LogAligned { source_epoch_ahead: false };
const ALIGNED_BEHIND: On = On::LogAligned { source_epoch_ahead: true };
const ERROR: On = On::Failure { retryable: true };
const HOPELESS: On = On::Failure { retryable: false };

const NINE: Machine = Machine { form: StateForm::Nine, max_attempts: 2, elected_epoch: ElectedEpoch::FromStopping };
const SIX: Machine = Machine { form: StateForm::Six, max_attempts: 2, elected_epoch: ElectedEpoch::FromStopping };

fn status(state: MirrorState) -> MirrorStatus {
    MirrorStatus { state, ..MirrorStatus::default() }
}

/// What is legal in the nine-state form, apart from failures, retries and elections, which are legal by other rules.
const LEGAL_NINE: [(MirrorState, On, MirrorState, &[Do]); 17] = [
    (Stopped, On::Start, LogAlignment, &[Do::StoreStatus, Do::AlignLog]),
    (Failed, On::Start, LogAlignment, &[Do::StoreStatus, Do::AlignLog]),
    (LogAlignment, ALIGNED, Mirroring, &[Do::StoreStatus, Do::StartFetcher]),
    (LogAlignment, ALIGNED_BEHIND, EpochFencing, &[Do::StoreStatus, Do::RaiseLeaderEpoch]),
    (EpochFencing, On::EpochRaised, Mirroring, &[Do::StoreStatus, Do::StartFetcher]),
    (Mirroring, On::SourceEpochAhead, EpochFencing, &[Do::StoreStatus, Do::RemoveFetcher, Do::RaiseLeaderEpoch]),
    (Mirroring, On::UncleanElection, UleRecovery, &[Do::StoreStatus, Do::RemoveFetcher, Do::AwaitAllReplicas]),
    (UleRecovery, On::ReplicasRejoined, Mirroring, &[Do::StoreStatus, Do::StartFetcher]),
    (Mirroring, On::Pause, Pausing, &[Do::StoreStatus, Do::RemoveFetcher]),
    (Pausing, On::FetcherRemoved, Paused, &[Do::StoreStatus]),
    (Paused, On::Resume, Mirroring, &[Do::StoreStatus, Do::StartFetcher]),
    (LogAlignment, On::Stop, Stopping, &[Do::StoreStatus, Do::RunStopSequence]),
    (EpochFencing, On::Stop, Stopping, &[Do::StoreStatus, Do::RunStopSequence]),
    (Mirroring, On::Stop, Stopping, &[Do::StoreStatus, Do::RunStopSequence]),
    (Pausing, On::Stop, Stopping, &[Do::StoreStatus, Do::RunStopSequence]),
    (Paused, On::Stop, Stopping, &[Do::StoreStatus, Do::RunStopSequence]),
    (Stopping, On::StopSequenceDone, Stopped, &[Do::StoreStatus]),
];

/// The same of the six-state form.
const LEGAL_SIX: [(MirrorState, On, MirrorState, &[Do]); 11] = [
    (Stopped, On::Start, LogAlignment, &[Do::StoreStatus, Do::AlignLog]),
    (Failed, On::Start, LogAlignment, &[Do::StoreStatus, Do::AlignLog]),
    (LogAlignment, ALIGNED, Mirroring, &[Do::StoreStatus, Do::StartFetcher]),
    (LogAlignment, ALIGNED_BEHIND, Mirroring, &[Do::StoreStatus, Do::StartFetcher]),
    (Mirroring, On::Pause, Paused, &[Do::StoreStatus, Do::RemoveFetcher]),
    (Paused, On::Resume, Mirroring, &[Do::StoreStatus, Do::StartFetcher]),
    (LogAlignment, On::Stop, Stopping, &[Do::StoreStatus, Do::RunStopSequence]),
    (Mirroring, On::Stop, Stopping, &[Do::StoreStatus, Do::RunStopSequence]),
    (Paused, On::Stop, Stopping, &[Do::StoreStatus, Do::RunStopSequence]),
    (Failed, On::Stop, Stopping, &[Do::StoreStatus, Do::RunStopSequence]),
    (Stopping, On::StopSequenceDone, Stopped, &[Do::StoreStatus]),
];

#[test]
fn every_event_in_every_state() {
    let ruled_otherwise = [ERROR, HOPELESS, On::Retry, On::Recover, On::LeaderElected, On::LeaderResigned];
    for (machine, legal) in [(NINE, &LEGAL_NINE[..]), (SIX, &LEGAL_SIX[..])] {
        let mut allowed = 0;
        for state in MirrorState::ALL {
            for event in On::ALL.into_iter().filter(|event| !ruled_otherwise.contains(event)) {
                let row = legal.iter().find(|(from, on, ..)| (*from, *on) == (state, event));
                let found = machine.next(&status(state), event);
                match row {
                    Some((.., to, effects)) => {
                        allowed += 1;
                        let found = found.unwrap();
                        assert_eq!((found.status, &found.effects[..]), (status(*to), *effects), "{state} {event:?}");
                    }
                    None => assert_eq!(found, Err(MirrorError::IllegalEvent { state, event }), "{:?}", machine.form),
                }
            }
        }
        assert_eq!(allowed, legal.len());
    }
}

#[test]
fn transitions_are_those_that_some_event_makes() {
    for (machine, legal) in [(NINE, &LEGAL_NINE[..]), (SIX, &LEGAL_SIX[..])] {
        for from in MirrorState::ALL {
            for to in MirrorState::ALL {
                let by_event = legal.iter().any(|(f, _, t, _)| (*f, *t) == (from, to));
                assert_eq!(machine.may_become(from, to), by_event || from == to || to == Failed, "{from} to {to}");
            }
        }
    }
}

#[test]
fn the_forms_have_the_states_that_their_tables_name() {
    for (form, legal) in [(StateForm::Nine, &LEGAL_NINE[..]), (StateForm::Six, &LEGAL_SIX[..])] {
        for state in MirrorState::ALL {
            let named = legal.iter().any(|(from, _, to, _)| [*from, *to].contains(&state));
            assert_eq!(form.has(state), named, "{form:?} {state}");
        }
    }
}

/// A failure is possible anywhere; it ends a fetcher, and leads back to where it happened.
#[test]
fn failures() {
    for state in MirrorState::ALL.into_iter().filter(|state| *state != Failed) {
        let failed = NINE.next(&status(state), ERROR).unwrap();
        assert_eq!(failed.status, MirrorStatus { state: Failed, failed_from: Some(state), failed_attempts: FailedAttempts(1) });
        // A pause or a stop may fail before it has come to the fetcher.
        let may_fetch = [Mirroring, Pausing, Stopping].contains(&state);
        assert_eq!(failed.effects.contains(&Do::RemoveFetcher), may_fetch, "{state}");
        assert_eq!(failed.effects.last(), Some(&Do::ScheduleRetry));
        let retried = NINE.next(&failed.status, On::Retry).unwrap();
        assert_eq!(retried.status, MirrorStatus { failed_attempts: FailedAttempts(1), ..status(state) });
        // What a leader does in the state is done again from its beginning.
        let elected = NINE.next(&status(state), On::LeaderElected).unwrap().effects;
        let work: Vec<Do> = elected.into_iter().filter(|effect| *effect != Do::AssignLeaderEpoch).collect();
        assert_eq!(retried.effects, [&[Do::StoreStatus][..], &work].concat(), "{state}");
        // Nothing failed, so there is nothing to try again.
        for event in [On::Retry, On::Recover] {
            assert!(NINE.next(&status(state), event).is_err(), "{state} {event:?}");
        }
    }
}

#[test]
fn attempts_are_counted_until_one_succeeds_or_they_are_used_up() {
    let mut now = status(Mirroring);
    for attempt in 1..=2 {
        let failed = NINE.next(&now, ERROR).unwrap();
        assert_eq!(failed.status.failed_attempts, FailedAttempts(attempt));
        assert!(failed.effects.contains(&Do::ScheduleRetry));
        now = NINE.next(&failed.status, On::Retry).unwrap().status;
    }
    let exhausted = NINE.next(&now, ERROR).unwrap();
    assert!(!exhausted.effects.contains(&Do::ScheduleRetry));
    assert!(NINE.next(&exhausted.status, On::Retry).is_err());
    // The operator brings back the state, and the count begins anew.
    assert_eq!(NINE.next(&exhausted.status, On::Recover).unwrap().status, status(Mirroring));
    // So does going on.
    assert_eq!(NINE.next(&now, On::Pause).unwrap().status, status(Pausing));
}

#[test]
fn what_is_hopeless_is_not_tried_again_by_itself() {
    let hopeless = NINE.next(&status(Mirroring), HOPELESS).unwrap();
    assert_eq!(hopeless.effects, [Do::StoreStatus, Do::RemoveFetcher]);
    assert!(NINE.next(&hopeless.status, On::Retry).is_err());
    // Another failure makes it no better, and the state that failed is not forgotten.
    let again = NINE.next(&hopeless.status, ERROR).unwrap().status;
    assert_eq!(again, hopeless.status);
    assert_eq!(NINE.next(&again, On::Recover).unwrap().status, status(Mirroring));
    assert_eq!(NINE.next(&again, On::Start).unwrap().status, status(LogAlignment));
}

#[test]
fn a_new_leader_does_the_work_of_the_state_from_its_beginning() {
    let retrying = MirrorStatus { state: Failed, failed_from: Some(Mirroring), failed_attempts: FailedAttempts(1) };
    for (now, work) in [
        (status(LogAlignment), &[Do::AlignLog][..]),
        (status(EpochFencing), &[Do::RaiseLeaderEpoch]),
        (status(UleRecovery), &[Do::AwaitAllReplicas]),
        (status(Mirroring), &[Do::StartFetcher]),
        (status(Pausing), &[Do::RemoveFetcher]),
        (status(Paused), &[]),
        (status(Stopping), &[Do::AssignLeaderEpoch, Do::RunStopSequence]),
        (status(Stopped), &[Do::AssignLeaderEpoch]),
        (retrying, &[Do::ScheduleRetry]),
    ] {
        let elected = NINE.next(&now, On::LeaderElected).unwrap();
        assert_eq!((elected.status, &elected.effects[..]), (now, work), "{}", now.state);
        let resigned = NINE.next(&now, On::LeaderResigned).unwrap();
        assert_eq!((resigned.status, &resigned.effects[..]), (now, &[Do::RemoveFetcher][..]));
    }
}

/// Noted while the mirror stops, the epoch of a new leader would be taken for the source's latest.
#[test]
fn where_a_new_leader_notes_its_epoch() {
    let later = Machine { elected_epoch: ElectedEpoch::FromStopped, ..NINE };
    for state in MirrorState::ALL {
        let notes = |machine: Machine| {
            let elected = machine.next(&status(state), On::LeaderElected).unwrap();
            elected.effects.contains(&Do::AssignLeaderEpoch)
        };
        assert_eq!((notes(NINE), notes(later)), ([Stopping, Stopped].contains(&state), state == Stopped), "{state}");
    }
}

/// Clients append in STOPPED only; the broker's own control batches also in STOPPING; the fetcher runs in MIRRORING.
#[test]
fn what_each_state_allows() {
    for state in MirrorState::ALL {
        let allowed = state.permissions();
        assert_eq!(allowed.appends, state == Stopped, "{state}");
        assert_eq!(allowed.stop_appends, [Stopping, Stopped].contains(&state), "{state}");
        assert_eq!(allowed.mirror_fetches, state == Mirroring, "{state}");
    }
}

#[test]
fn earlier_names_of_states() {
    for (name, state) in [("PREPARING", LogAlignment), ("LOG_TRUNCATION", LogAlignment), ("ULE_LOG_TRUNCATION", UleRecovery)] {
        assert_eq!(name.parse(), Ok(state));
    }
}

#[test]
fn a_machine_is_made_from_a_design() {
    let design = MirrorDesign { states: StateForm::Nine, max_attempts: 2, ..MirrorDesign::default() };
    assert_eq!(Machine::from(&design), NINE);
}
