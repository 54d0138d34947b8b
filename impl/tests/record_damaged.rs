//! Damaged batches end the reading or give an error that says where.
#![cfg(test)]

use bytes::{BufMut, Bytes};
use cleanslate_log::record::{BatchReader, DecodeError, HEADER_BYTES, MAGIC_V2, RecordBatch};

#[path = "data/record/vectors.rs"]
mod vectors;

#[test]
fn a_buffer_of_all_vectors_reads_one_by_one() {
    let all: Vec<u8> = vectors::VECTORS.iter().flat_map(|vector| vector.bytes()).collect();
    let all = Bytes::from(all);
    let mut reader = BatchReader::new(all.clone());
    let mut position = 0;
    for vector in vectors::VECTORS {
        assert_eq!(reader.position(), position);
        let batch = reader.next().unwrap().unwrap();
        assert_eq!(batch.bytes(), &vector.bytes());
        assert_eq!(RecordBatch::decode(&all, position), Ok((batch, position + vector.size)));
        position += vector.size;
    }
    assert!(reader.next().is_none());
    assert_eq!(reader.position(), all.len());
}

#[test]
fn a_batch_cut_anywhere_ends_the_reading_and_is_an_error_to_decode() {
    for vector in vectors::VECTORS {
        for length in 0..vector.size {
            let cut = vector.bytes().slice(..length);
            assert_eq!(BatchReader::new(cut.clone()).next(), None, "{} cut to {length}", vector.name);
            let error = RecordBatch::decode(&cut, 0).unwrap_err();
            let DecodeError::UnexpectedEnd { position, needed, available, .. } = error else {
                panic!("{} cut to {length}: {error}", vector.name)
            };
            assert_eq!((position, available), (0, length));
            assert!(needed > available && needed <= vector.size);
            // As the second batch of a buffer, it is blamed on where it begins.
            let first = vectors::COMMIT.bytes();
            let both = Bytes::from([&first[..], &cut[..]].concat());
            assert_eq!(RecordBatch::decode(&both, first.len()).unwrap_err().position(), first.len());
            assert_eq!(BatchReader::new(both).map(|batch| batch.unwrap().size_in_bytes()).sum::<usize>(), first.len());
        }
    }
}

/// A batch whose length field agrees with a body that was cut is an error in the records, if nothing else.
#[test]
fn records_cut_anywhere_are_an_error() {
    for vector in vectors::VECTORS {
        for length in HEADER_BYTES..vector.size {
            let mut cut = vector.bytes()[..length].to_vec();
            cut[8..12].copy_from_slice(&i32::try_from(length - 12).unwrap().to_be_bytes());
            let (batch, _) = RecordBatch::decode(&Bytes::from(cut), 0).unwrap();
            assert!(matches!(batch.ensure_valid(), Err(DecodeError::CrcMismatch { position: 17, .. })));
            let error = batch.records().unwrap_err();
            assert!((HEADER_BYTES..=length).contains(&error.position()), "{} cut to {length}: {error}", vector.name);
            if batch.is_control() {
                assert!(batch.control_record().is_err());
                assert!(batch.control_type().is_err());
            }
        }
    }
}

#[test]
fn a_flipped_byte_is_noticed_unless_it_is_in_base_offset_or_leader_epoch() {
    for vector in vectors::VECTORS {
        for position in 0..vector.size {
            for flip in [0x01, 0x80, 0xff] {
                let mut flipped = vector.bytes().to_vec();
                flipped[position] ^= flip;
                let valid = RecordBatch::decode(&Bytes::from(flipped), 0).and_then(|(batch, _)| batch.ensure_valid());
                let outside_crc = (0..8).contains(&position) || (12..16).contains(&position);
                assert_eq!(valid.is_ok(), outside_crc, "{} byte {position}: {valid:?}", vector.name);
            }
        }
    }
}

/// The beginning of a batch: base offset 0, the length field, leader epoch 0 and the magic.
fn beginning(length: i32, magic: i8) -> Vec<u8> {
    let mut bytes = vec![0; 8];
    bytes.put_i32(length);
    bytes.put_i32(0);
    bytes.put_i8(magic);
    bytes
}

fn first(bytes: &[u8]) -> Option<Result<RecordBatch, DecodeError>> {
    let mut reader = BatchReader::new(Bytes::copy_from_slice(bytes));
    let first = reader.next();
    assert_eq!(reader.next(), None, "nothing follows an error or the end");
    first
}

#[test]
fn the_size_is_judged_after_12_bytes_and_the_magic_after_17() {
    let bad_size = beginning(13, 9);
    assert_eq!(first(&bad_size[..11]), None);
    let error = DecodeError::BatchLengthTooSmall { position: 8, length: 13, minimum: 14 };
    assert_eq!(first(&bad_size[..12]), Some(Err(error)));
    let bad_magic = beginning(14, 3);
    assert_eq!(first(&bad_magic[..16]), None);
    assert_eq!(first(&bad_magic), Some(Err(DecodeError::UnknownMagic { position: 16, magic: 3 })));
    let bad_magic = beginning(i32::MAX, -1);
    assert_eq!(first(&bad_magic), Some(Err(DecodeError::UnknownMagic { position: 16, magic: -1 })));
    assert_eq!(first(&beginning(i32::MAX, 2)), None);
    let negative = Some(Err(DecodeError::BatchLengthTooSmall { position: 8, length: -1, minimum: 14 }));
    assert_eq!(first(&beginning(-1, 2)), negative);
}

#[test]
fn a_tail_of_zeros_is_an_error() {
    let valid = vectors::COMMIT.bytes();
    let mut reader = BatchReader::new(Bytes::from([&valid[..], &[0; 12]].concat()));
    assert!(reader.next().unwrap().is_ok());
    let error = DecodeError::BatchLengthTooSmall { position: valid.len() + 8, length: 0, minimum: 14 };
    assert_eq!(reader.next(), Some(Err(error)));
    assert_eq!(reader.position(), valid.len());
    assert_eq!(reader.next(), None);
}

#[test]
fn legacy_magic_is_an_error_of_its_own() {
    for magic in [0, 1] {
        let mut bytes = beginning(14, magic);
        bytes.resize(26, 0);
        assert_eq!(first(&bytes), Some(Err(DecodeError::UnsupportedMagic { position: 16, magic })));
        assert_eq!(first(&bytes[..25]), None);
    }
}

#[test]
fn a_batch_of_magic_2_that_is_shorter_than_a_header_is_an_error() {
    let mut bytes = beginning(48, MAGIC_V2);
    bytes.resize(60, 0);
    let error = DecodeError::BatchLengthTooSmall { position: 8, length: 48, minimum: 49 };
    assert_eq!(first(&bytes), Some(Err(error.clone())));
    let both = Bytes::from([&vectors::ABORT.bytes()[..], &bytes].concat());
    assert_eq!(RecordBatch::decode(&both, 78), Err(error.shifted_by(78)));
    assert_eq!(RecordBatch::decode(&both, usize::MAX).unwrap_err().position(), both.len());
}
