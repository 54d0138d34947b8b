//! Compressed streams as Kafka's readers take them: where they end, and what is wrong with them first.
#![cfg(test)]

use bytes::Bytes;
use cleanslate_log::record::{Compression, DecodeError, RecordBatch};

#[path = "data/record/hex.rs"]
mod hex;
use hex::hex;

fn decompress(codec: Compression, stream: &[u8]) -> Result<Bytes, DecodeError> {
    cleanslate_log::record::decompress(codec, &Bytes::copy_from_slice(stream), 1 << 20)
}

/// A frame of compressed blocks, each of which may become 64 KiB.
fn lz4_frame(blocks: &[&[u8]]) -> Vec<u8> {
    let mut frame = hex("04224d18 6040 82").to_vec();
    for block in blocks {
        frame.extend_from_slice(&u32::try_from(block.len()).unwrap().to_le_bytes());
        frame.extend_from_slice(block);
    }
    frame.extend_from_slice(&[0; 4]);
    frame
}

#[test]
fn lz4_blocks_that_kafka_takes() {
    let lines = include_str!("data/record/lz4_blocks.txt").lines().filter(|line| !line.starts_with('#'));
    let (mut taken, mut refused) = (0, 0);
    for line in lines {
        let (block, expected) = line.split_once(' ').unwrap();
        let result = decompress(Compression::Lz4, &lz4_frame(&[&hex(block)]));
        let out = result.as_ref().map(|out| format!("{} {:x}", out.len(), crc32fast::hash(out)));
        assert_eq!(out.as_deref().unwrap_or("-"), expected, "{block}: {result:?}");
        let count = if result.is_ok() { &mut taken } else { &mut refused };
        *count += 1;
    }
    assert_eq!((taken, refused), (30, 138));
}

/// How near to the end of the 64 KiB that a block may become its last sequences may begin.
#[test]
fn lz4_blocks_at_the_end_of_their_room() {
    /// Literals, and a match of a length and a distance.
    type Sequence = (u8, Option<(u8, u8)>);
    fn sequence((literals, copy): Sequence) -> Vec<u8> {
        let (length, distance) = copy.unwrap_or((4, 0));
        let mut bytes = vec![literals.min(15) << 4 | (length - 4).min(15)];
        bytes.extend(literals.checked_sub(15));
        bytes.extend(vec![b'x'; literals.into()]);
        bytes.extend(copy.iter().flat_map(|_| [distance, 0]));
        bytes.extend((length - 4).checked_sub(15));
        bytes
    }
    let least_room = |sequences: &[Sequence]| {
        let takes = |room: usize| {
            let long = 65536 - 9 - 4 - 15 - room;
            let mut block = [&b"\x9fabcdefghi\x01\x00"[..], &vec![255; long / 255], &[u8::try_from(long % 255).unwrap()]].concat();
            block.extend(sequences.iter().flat_map(|one| sequence(*one)));
            decompress(Compression::Lz4, &lz4_frame(&[&block])).is_ok()
        };
        let least = (0..100).find(|room| takes(*room));
        assert_eq!(least.map_or(0, |least| 100 - least), (0..100).filter(|room| takes(*room)).count());
        least
    };
    for (literals, expected) in [(0, None), (1, None), (4, Some(5)), (5, Some(5)), (11, Some(11)), (12, Some(12)), (15, Some(15))] {
        assert_eq!(least_room(&[(literals, None)]), expected, "{literals} literals");
    }
    let expected = [
        ((14, 18, 8), [Some(32), Some(36), Some(37), Some(49)]),
        ((14, 18, 9), [Some(32), Some(36), Some(37), Some(49)]),
        ((14, 18, 7), [Some(37), Some(37), Some(37), Some(49)]),
        ((0, 18, 8), [None, None, Some(23), Some(35)]),
        ((14, 19, 8), [None, Some(38), Some(38), Some(50)]),
        ((14, 4, 8), [Some(32), Some(32), Some(26), Some(35)]),
        ((0, 4, 8), [None, None, Some(12), Some(21)]),
    ];
    for ((literals, length, distance), expected) in expected {
        for (last, expected) in [0, 4, 5, 17].into_iter().zip(expected) {
            let sequences = [(literals, Some((length, distance))), (last, None)];
            assert_eq!(least_room(&sequences), expected, "{sequences:?}");
        }
    }
}

/// Kafka's reader takes a block that becomes nothing for the end of the stream.
#[test]
fn an_lz4_block_of_nothing() {
    let of = |blocks: &[&[u8]]| decompress(Compression::Lz4, &lz4_frame(blocks)).ok();
    assert_eq!(of(&[b"\x30abc", b"\x20de"]), Some(Bytes::from_static(b"abcde")));
    assert_eq!(of(&[b"\x30abc", b"\0", b"\x20de"]), Some(Bytes::from_static(b"abc")));
    assert_eq!(of(&[b"\0", b"\xff"]), Some(Bytes::new()));
}

/// What is wrong with a batch first, and how many records come before that.
#[test]
fn damaged_streams_as_kafka_reads_them() {
    let lines = include_str!("data/record/damaged_streams.txt").lines().filter(|line| !line.starts_with('#'));
    let mut count = 0;
    for line in lines {
        let [batch, at_once, one_by_one]: [&str; 3] = line.split(" | ").collect::<Vec<_>>().try_into().unwrap();
        let batch = RecordBatch::decode(&hex(batch), 0).unwrap().0;
        let all = batch.records().map_or_else(|error| error.kafka_class().to_owned(), |records| records.len().to_string());
        let (mut records, mut class) = (0, String::new());
        for record in batch.record_reader(1 << 20) {
            match record {
                Ok(_) => records += 1,
                Err(error) => class = format!(" {}", error.kafka_class()),
            }
        }
        assert_eq!((all.as_str(), format!("{records}{class}").as_str()), (at_once, one_by_one), "{line}");
        count += 1;
    }
    assert_eq!(count, 154);
}

/// Kafka's reader takes 128 KiB and 3 bytes of a stream at a time. A frame that is cut is the end where another one ended in the same.
#[test]
fn zstd_frames_that_are_cut_behind_another() {
    let whole = hex("28b52ffd 0400 190000 616263 990977ad");
    assert_eq!(decompress(Compression::Zstd, &whole), Ok(Bytes::from_static(b"abc")));
    for tail in ["28", "28b52ffd", "28b52ffd04", "502a4d18 05000000 6162", "28b52ffd 0400 190000 616263 99"] {
        let stream = [&whole[..], &hex(tail)].concat();
        let expected = if tail.contains("6263") { "abcabc" } else { "abc" };
        assert_eq!(decompress(Compression::Zstd, &stream).as_deref(), Ok(expected.as_bytes()), "{tail}");
    }
    let refused = |stream: &[u8]| decompress(Compression::Zstd, stream).is_err();
    assert!(refused(&[&whole[..], &[0]].concat()));
    // A frame to skip of 4 GiB less one byte.
    assert!(refused(&[&whole[..], &hex("502a4d18 ffffffff 61")].concat()));
    let skipped = |length: u32| [&hex("502a4d18")[..], &length.to_le_bytes(), &vec![0; length as usize]].concat();
    let up_to = u32::try_from(128 * 1024 + 3 - 8 - whole.len()).unwrap();
    assert!(!refused(&[&skipped(up_to - 1)[..], &whole, &whole[..1]].concat()));
    assert!(refused(&[&skipped(up_to)[..], &whole, &whole[..1]].concat()));
}
