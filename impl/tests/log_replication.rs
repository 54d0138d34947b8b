//! What a copy of another log does to producer state: almost anything goes, and grouping can matter.
#![cfg(test)]

mod log_support;

use cleanslate_log::barrier::ReplicationPath;
use cleanslate_log::log::LogConfig;
use cleanslate_log::types::{LeaderEpoch, Offset};
use log_support::{NOW, TestLog, batches, check, show};

#[track_caller]
fn stock(lines: &[(&str, &str)], state: &str) {
    check(&LogConfig::default(), lines, state);
}

#[test]
fn two_producers_under_one_id_corrupt_each_other_silently() {
    stock(&[("copy 5.0#0 | 5.0#1 | 5.0#0 | 5.0#2 | 5.0#40", "0 | 1 | 2 | 3 | 4")], "LEO 5 HW 0 LSO 0 {5:e0[0@0,1@1,0@2,2@3,40@4]}");
    stock(&[("copy 5.3#0 | 5.0#0", "0 | 1")], "LEO 2 HW 0 LSO 0 {5:e0[0@1]}");
    stock(&[("copy 5.3#0 | 5.0#0 | 5.3#1", "0 | 1 | 2")], "LEO 3 HW 0 LSO 0 {5:e3[1@2]}");
}

#[test]
fn a_marker_ends_the_transaction_of_another_producer_under_the_same_id() {
    stock(&[("copy t5.0#0 | t5.0#0 | CM5.0", "0 | 1 | 2"), ("copy AB5.0", "3")], "LEO 4 HW 0 LSO 0 {5:e0[0@0,0@1]c0}");
    stock(&[("copy t5.0#0 | t5.0#0 | AB5.0 | CM5.0", "0 | 1 | 2 | 3")], "LEO 4 HW 0 LSO 0 {5:e0[0@0,0@1]c0} aborted 5/0/2/3");
    stock(&[("copy t5.7#0 | t5.0#0 | CM5.0", "0 | 1 | 2")], "LEO 3 HW 0 LSO 0 {5:e0[0@1]c0}");
}

#[test]
fn data_outside_an_open_transaction_is_refused_even_in_a_copy() {
    for other in ["5.0#1", "5.0#0", "5.9#0"] {
        stock(&[("copy t5.0#0", "0"), (&format!("copy {other}"), "InvalidTxnStateException")], "LEO 1 HW 0 LSO 0 {5:e0[0@0]txn@0}");
    }
}

#[test]
fn coordinator_epochs_go_back_in_a_copy_and_fence_a_leader() {
    stock(&[("copy CM5.0c7 | CM5.0c2", "0 | 1")], "LEO 2 HW 0 LSO 0 {5:e0[]c2}");
    stock(
        &[("copy CM5.0c7", "0"), ("coordinator CM5.0c0", "TransactionCoordinatorFencedException")],
        "LEO 1 HW 0 LSO 0 {5:e0[]c7}",
    );
}

#[test]
fn what_a_copy_may_hold() {
    // Unknown id, any sequence; a gap; going back; a repetition at new offsets.
    stock(&[("copy 5.0#50 | 5.0#99 | 5.0#3 | 5.0#3", "0 | 1 | 2 | 3")], "LEO 4 HW 0 LSO 0 {5:e0[50@0,99@1,3@2,3@3]}");
    // A higher epoch need not start at 0, and keeps the open transaction of the lower one.
    stock(&[("copy 5.0#0 | 5.4#7", "0 | 1")], "LEO 2 HW 0 LSO 0 {5:e4[7@1]}");
    stock(&[("copy t5.0#0 | t5.1#0 | AB5.1", "0 | 1 | 2")], "LEO 3 HW 0 LSO 0 {5:e1[0@1]c0} aborted 5/0/2/3");
    // A lower epoch keeps it too; a marker of a lower epoch ends it.
    stock(&[("copy t5.3#0 | t5.1#0", "0 | 1")], "LEO 2 HW 0 LSO 0 {5:e1[0@1]txn@0}");
    stock(&[("copy t5.3#0 | AB5.1", "0 | 1")], "LEO 2 HW 0 LSO 0 {5:e1[]c0} aborted 5/0/1/2");
    // A marker of an unknown id; markers between another id's data.
    stock(&[("copy AB5.4c3", "0")], "LEO 1 HW 0 LSO 0 {5:e4[]c3}");
    stock(&[("copy t5.0#0 | CM6.0 | t5.0#1", "0 | 1 | 2")], "LEO 3 HW 0 LSO 0 {5:e0[0@0,1@2]txn@0 6:e0[]c0}");
    // Control batches of other types: poison under an id, nothing without.
    stock(
        &[
            ("copy CTL9 | CTL7 | BAR<A", "0 | 1 | 2"),
            ("copy CTL9:5.0", "IllegalArgumentException"),
            ("copy CTL7:5.0", "IllegalArgumentException"),
        ],
        "LEO 3 HW 0 LSO 0 {}",
    );
}

/// The same batches one by one and in one call, after the same beginning.
#[track_caller]
fn grouping(before: &str, group: &str, one_by_one: &str, grouped: &str) {
    let run = |lines: [String; 2]| {
        let mut log = TestLog::new(&LogConfig::default());
        for line in &lines {
            let outcome = log.run(line);
            assert!(!outcome.contains("Exception"), "{line}: {outcome}");
        }
        show(&log.log)
    };
    let before = format!("copy {before}");
    let single = group.split(' ').collect::<Vec<_>>().join(" | ");
    assert_eq!(run([before.clone(), format!("copy {single}")]), one_by_one);
    assert_eq!(run([before, format!("copy {group}")]), grouped);
}

#[test]
fn grouping_matters_where_an_epoch_is_left_and_entered_again() {
    grouping("7.0#0 | 7.0#1", "7.1#0 7.0#2", "LEO 4 HW 0 LSO 0 {7:e0[2@3]}", "LEO 4 HW 0 LSO 0 {7:e0[0@0,1@1,2@3]}");
    grouping("7.0#0 | 7.0#1", "CM7.1 7.0#2", "LEO 4 HW 0 LSO 0 {7:e0[2@3]c0}", "LEO 4 HW 0 LSO 0 {7:e0[0@0,1@1,2@3]c0}");
}

#[test]
fn grouping_shows_in_the_index_and_nowhere_else() {
    grouping(
        "-",
        "t7.0#0 AB7.0 - t8.0#0",
        "LEO 5 HW 0 LSO 0 {7:e0[0@1]c0 8:e0[0@4]txn@4} aborted 7/1/2/3",
        "LEO 5 HW 0 LSO 0 {7:e0[0@1]c0 8:e0[0@4]txn@4} aborted 7/1/2/4",
    );
    for (group, same) in [
        ("7.0#0 7.0#1 7.0#2 7.0#3 7.0#4 7.0#5 7.0#6", "LEO 8 HW 0 LSO 0 {7:e0[2@3,3@4,4@5,5@6,6@7]}"),
        ("7.0#0 7.1#0", "LEO 3 HW 0 LSO 0 {7:e1[0@2]}"),
        ("7.0#0 7.1#0 7.0#1", "LEO 4 HW 0 LSO 0 {7:e0[1@3]}"),
        ("t7.0#0 AB7.0 t7.0#1", "LEO 4 HW 0 LSO 0 {7:e0[0@1,1@3]c0txn@3} aborted 7/1/2/3"),
        ("CM7.1 7.1#0", "LEO 3 HW 0 LSO 0 {7:e1[0@2]c0}"),
        ("7.3#0 CM7.1 7.3#1", "LEO 4 HW 0 LSO 0 {7:e3[1@3]c0}"),
        ("7.0#0 CTL7 8.0#0", "LEO 4 HW 0 LSO 0 {7:e0[0@1] 8:e0[0@3]}"),
    ] {
        grouping("-", group, same, same);
    }
}

#[test]
fn a_copy_is_appended_as_a_whole_or_not_at_all() {
    stock(&[("copy t5.0#0", "0"), ("copy 6.0#0 5.0#1", "InvalidTxnStateException")], "LEO 1 HW 0 LSO 0 {5:e0[0@0]txn@0}");
    stock(
        &[("copy t5.0#0", "0"), ("copy 6.0#0 | 5.0#1", "1 | InvalidTxnStateException")],
        "LEO 2 HW 0 LSO 0 {5:e0[0@0]txn@0 6:e0[0@1]}",
    );
}

#[track_caller]
fn follow(log: &mut TestLog, specs: &str, at: i64, leader_epoch: i32, expected: Result<i64, &str>) {
    let bytes = batches(specs, Offset(at));
    let path = ReplicationPath::IntraCluster;
    let result = log.log.append_as_follower(bytes, LeaderEpoch(leader_epoch), path, NOW);
    let result = result.map(|r| r.first_offset.get());
    let result = result.as_ref().map_err(|error| error.kafka_class());
    assert_eq!(result.copied(), expected, "{specs}");
}

#[test]
fn offsets_may_leave_gaps_but_not_go_back() {
    let mut log = TestLog::new(&LogConfig::default());
    follow(&mut log, "-x3", 4, 0, Ok(4));
    assert_eq!(log.log.log_end_offset(), Offset(7));
    for at in [0, 3, 6] {
        follow(&mut log, "-", at, 0, Err("UnexpectedAppendOffsetException"));
    }
    follow(&mut log, "-", 9, 0, Ok(9));
    // Bytes in reverse order.
    let mut bytes = batches("-", Offset(12)).to_vec();
    bytes.extend_from_slice(&batches("-", Offset(11)));
    let path = ReplicationPath::IntraCluster;
    let result = log.log.append_as_follower(bytes.into(), LeaderEpoch(0), path, NOW);
    assert_eq!(result.unwrap_err().kafka_class(), "OffsetsOutOfOrderException");
    follow(&mut log, "-", i64::MAX, 0, Err("OffsetsOutOfOrderException"));
    assert_eq!(show(&log.log), "LEO 10 HW 0 LSO 0 {}");
}

#[test]
fn batches_above_the_leader_epoch_are_dropped_with_all_behind_them() {
    let mut log = TestLog::new(&LogConfig::default());
    follow(&mut log, "E5/5.0#0", 0, 3, Ok(-1));
    follow(&mut log, "E3/5.0#0 E5/5.0#1 E3/5.0#2", 0, 3, Ok(0));
    assert_eq!(show(&log.log), "LEO 1 HW 0 LSO 0 {5:e0[0@0]}");
    // An epoch that goes back forgets the higher one.
    follow(&mut log, "E1/5.0#1", 1, 3, Ok(1));
    let entries = log.log.leader_epochs().entries();
    assert_eq!(entries.len(), 1);
    assert_eq!(entries[0].epoch, LeaderEpoch(1));
    follow(&mut log, "E-1/5.0#2", 2, 3, Err("IllegalArgumentException"));
}
