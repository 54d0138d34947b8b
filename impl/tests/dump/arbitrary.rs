//! Bytes that no log wrote: nothing panics, and what ends a dump is an error.

use bytes::Bytes;
use cleanslate_log::dump::DumpOptions;
use cleanslate_log::record::{BatchBuilder, Compression};
use cleanslate_log::storage::{MemoryStorage, Storage};
use cleanslate_log::types::Offset;
use proptest::collection::vec;
use proptest::prelude::*;

use super::support::dump;

const NAMES: [&str; 6] = [
    "00000000000000000007.log",
    "00000000000000000007.index",
    "00000000000000000007.timeindex",
    "00000000000000000007.txnindex",
    "00000000000000000007.snapshot",
    "00000000000000000007-0000000001.checkpoint",
];

/// Bytes with many zeros, so that lengths and counts are often small.
fn noise() -> impl Strategy<Value = Vec<u8>> {
    vec(prop_oneof![3 => Just(0), 1 => 0..=70_u8, 1 => any::<u8>()], 0..300)
}

/// Two batches, with bytes that were turned.
fn damaged_log() -> impl Strategy<Value = Vec<u8>> {
    (vec((any::<prop::sample::Index>(), 1..=255_u8), 0..4), any::<bool>(), noise()).prop_map(|(flips, control, tail)| {
        let batch = |offset, codec| {
            let key: &[u8] = if control { &[0, 0, 0, 1] } else { b"key" };
            let builder = BatchBuilder::new(Offset(offset)).control(control).compression(codec);
            builder.record(Some(key), Some(&[0, 0, 0, 0, 0, 5])).build().unwrap().bytes().to_vec()
        };
        let mut bytes = [batch(7, Compression::None), batch(8, Compression::Lz4), tail].concat();
        for (at, flip) in flips {
            let at = at.index(bytes.len());
            bytes[at] ^= flip;
        }
        bytes
    })
}

fn options() -> impl Strategy<Value = DumpOptions> {
    (any::<[bool; 6]>(), prop::option::of(0..400_u64)).prop_map(|(flags, max_bytes)| {
        let [json, deep_iteration, print_data_log, skip_record_metadata, index_sanity_check, verify_index_only] = flags;
        let max_decompressed_bytes = 1 << 16;
        DumpOptions {
            json,
            deep_iteration,
            print_data_log,
            skip_record_metadata,
            max_bytes,
            index_sanity_check,
            verify_index_only,
            max_decompressed_bytes,
            ..DumpOptions::default()
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn arbitrary_files_do_no_harm(
        log in prop_oneof![damaged_log(), noise()], others in prop::array::uniform5(noise()), options in options(),
    ) {
        let mut storage = MemoryStorage::new();
        for (name, bytes) in NAMES.iter().zip(std::iter::once(log).chain(others)) {
            storage.append(name, &Bytes::from(bytes)).unwrap();
        }
        for name in NAMES {
            let dumped = dump(&storage, &[name], options.clone());
            if let Some(error) = dumped.error {
                prop_assert!(error.kafka_class().is_some(), "{name}: {error}");
            }
            if options.json {
                for line in dumped.out.lines() {
                    let line: serde_json::Value = serde_json::from_str(line).unwrap();
                    prop_assert_eq!(&line["file"], name);
                }
            }
        }
    }
}
