#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]
//! Where the last round of each log ended.

use std::collections::BTreeMap;

use cleanslate_log::log::{CleanOptions, CleanerManager, CleaningState, LogError};
use cleanslate_log::types::Offset;

use super::{ANY, checkpoint, filthy, grab, manager};
use crate::upstream::support::{NOW, start_at};

#[test]
fn test_update_checkpoints_should_add_offset_to_partition() {
    let mut manager = manager(&[("a", 0)]);
    manager.update_checkpoint(&"b", Some(Offset(1)));
    assert_eq!(manager.checkpoints(), &BTreeMap::from([("a", Offset(0)), ("b", Offset(1))]));
}

#[test]
fn test_update_checkpoints_should_remove_partition_data() {
    let mut manager = manager(&[("a", 0)]);
    manager.update_checkpoint(&"a", None);
    assert_eq!(manager.checkpoints(), &BTreeMap::new());
}

#[test]
fn test_maybe_truncate_checkpoint_should_truncate_data() {
    let mut manager = manager(&[("a", 15)]);
    for (end, left) in [(20, 15), (10, 10)] {
        manager.truncate_checkpoint(&"a", Offset(end));
        assert_eq!(checkpoint(&manager, "a"), Some(left));
    }
    manager.truncate_checkpoint(&"b", Offset(5));
    assert_eq!(checkpoint(&manager, "b"), None);
}

#[test]
fn test_checkpoint_updated_for_invalid_offset_no_cleaning() {
    let mut log = filthy(20);
    start_at(&mut log, 20);
    let mut manager = manager(&[("a", 15)]);
    assert_eq!(grab(&mut manager, &[("a", &log)]), None);
    assert_eq!(checkpoint(&manager, "a"), Some(20));
}

#[test]
fn test_checkpoint_updated_for_invalid_offset_not_selected() {
    let (mut first, second) = (filthy(20), filthy(25));
    start_at(&mut first, 15);
    let mut manager = manager(&[("a", 10), ("b", 5)]);
    assert_eq!(grab(&mut manager, &[("a", &first), ("b", &second)]).map(|(key, _)| key), Some("b"));
    assert_eq!((checkpoint(&manager, "a"), checkpoint(&manager, "b")), (Some(15), Some(5)));
}

/// Directory and partition.
type Place = (&'static str, &'static str);
const HERE: Place = ("log-dir", "log");
const ELSEWHERE: Place = ("log-dir-2", "log");
const OTHER: Place = ("log-dir-2", "log2");

fn in_directories(checkpoints: &[Place]) -> CleanerManager<Place> {
    let mut manager = CleanerManager::new(BTreeMap::new());
    checkpoints.iter().for_each(|place| manager.update_checkpoint(place, Some(Offset(10))));
    manager
}

fn checkpoints(manager: &CleanerManager<Place>) -> Vec<(Place, i64)> {
    manager.checkpoints().iter().map(|(place, offset)| (*place, offset.get())).collect()
}

#[test]
fn test_handle_log_dir_failure_should_remove_dir_and_data() {
    let mut manager = in_directories(&[HERE, OTHER]);
    assert_eq!(checkpoints(&manager), [(HERE, 10), (OTHER, 10)]);
    let mut log = filthy(20);
    assert_eq!(manager.grab_filthiest([(HERE, &log)], &ANY, NOW).unwrap().unwrap().0, HERE);
    manager.forget_logs(|(directory, _)| *directory == HERE.0);
    assert_eq!(checkpoints(&manager), [(OTHER, 10)]);
    // The round that goes on is told to end, and does not bring the offset back.
    assert_eq!(manager.state(&HERE), Some(CleaningState::Aborted));
    let options = CleanOptions { first_dirty: Offset(0), first_uncleanable: Offset(20), now: NOW, max_keys: 10 };
    let stopped = log.compact_while(&options, || manager.state(&HERE) == Some(CleaningState::InProgress));
    assert_eq!(stopped, Err(LogError::CleaningStopped { base_offset: Offset(0) }));
    manager.done_cleaning(&HERE, Offset(20)).unwrap();
    assert_eq!(checkpoints(&manager), [(OTHER, 10)]);
}

#[test]
fn test_alter_checkpoint_dir_should_remove_data_in_src_dir_and_add_in_new_dir() {
    let mut manager = in_directories(&[HERE]);
    // Who moves a log pauses its cleaning, and lets it go on in the directory that it is in then.
    manager.abort_and_pause(&HERE).unwrap();
    manager.move_log(&HERE, &ELSEWHERE);
    assert_eq!(checkpoints(&manager), [(ELSEWHERE, 10)]);
    assert_eq!([HERE, ELSEWHERE].map(|place| manager.state(&place)), [None, Some(CleaningState::Paused(1))]);
    manager.resume(&ELSEWHERE).unwrap();
    manager.forget_logs(|(directory, _)| *directory == ELSEWHERE.0);
    assert_eq!(checkpoints(&manager), []);
}
