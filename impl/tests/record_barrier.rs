//! The two layouts of a barrier's value are told apart, and nothing else is taken for either.
#![cfg(test)]

use bytes::Bytes;
use cleanslate_log::record::{DecodeError, MirrorPidResetLayout, MirrorPidResetRecord};

#[test]
fn the_layouts_of_the_barrier_are_not_confused() {
    use MirrorPidResetLayout::{VersionOnly, WithSourceClusterId};
    let with_id = MirrorPidResetRecord { version: 0, source_cluster_id: Some("MkU3OEVBNTcwNTJENDM2Qg".to_owned()) };
    let version_only = MirrorPidResetRecord { version: 0, source_cluster_id: None };
    let (long, short) = (with_id.encode().unwrap(), version_only.encode().unwrap());
    assert_eq!((long.len(), &short[..]), (26, &[0, 0, 0][..]));
    assert_eq!((with_id.layout(), version_only.layout()), (WithSourceClusterId, VersionOnly));
    assert_eq!(MirrorPidResetRecord::decode(&long), Ok(with_id.clone()));
    assert_eq!(MirrorPidResetRecord::decode(&short), Ok(version_only.clone()));
    assert_eq!(MirrorPidResetRecord::decode_as(WithSourceClusterId, &long), Ok(with_id));
    assert_eq!(MirrorPidResetRecord::decode_as(VersionOnly, &short), Ok(version_only));
    let error = MirrorPidResetRecord::decode_as(VersionOnly, &long).unwrap_err();
    assert!(matches!(error, DecodeError::UnexpectedEnd { what: "tagged field", .. }), "{error}");
    let error = MirrorPidResetRecord::decode_as(WithSourceClusterId, &short).unwrap_err();
    assert_eq!(error, DecodeError::Null { position: 2, what: "source cluster id" });
}

#[test]
fn a_barrier_value_that_is_neither_layout_is_an_error() {
    let check = |value: &[u8]| MirrorPidResetRecord::decode(&Bytes::copy_from_slice(value)).unwrap_err();
    let id = Some("MkU3OEVBNTcwNTJENDM2Qg".to_owned());
    let with_id = MirrorPidResetRecord { version: 0, source_cluster_id: id }.encode().unwrap();
    for length in 0..with_id.len() {
        assert!(check(&with_id[..length]).position() <= length);
    }
    assert!(matches!(check(&[]), DecodeError::UnexpectedEnd { position: 0, .. }));
    assert!(matches!(check(&[0, 0]), DecodeError::UnexpectedEnd { position: 2, .. }));
    assert!(matches!(check(&[0, 0, 0, 0]), DecodeError::TrailingBytes { position: 3, remaining: 1, .. }));
    assert!(matches!(check(&[0xff, 0xff, 0]), DecodeError::NegativeVersion { position: 0, version: -1, .. }));
    assert!(matches!(check(&[0, 0, 2, 0xff, 0]), DecodeError::InvalidUtf8 { position: 3, .. }));
    assert!(matches!(check(&[0, 0, 2, b'a', 0, 0]), DecodeError::TrailingBytes { position: 5, .. }));
    assert!(matches!(check(&[0, 0, 0x81, 0x80, 0x02]), DecodeError::StringTooLong { length: 32768, .. }));
    // One tagged field: number 1 with one byte, or an empty id and then number 1 without bytes.
    assert_eq!(check(&[0, 0, 1, 1, 1, 0]), DecodeError::AmbiguousMirrorPidReset { position: 2 });
}

#[test]
fn a_barrier_with_an_unknown_tagged_field_reads() {
    let read = |value: &'static [u8]| MirrorPidResetRecord::decode(&Bytes::from_static(value));
    let with_id = MirrorPidResetRecord { version: 0, source_cluster_id: Some("ab".to_owned()) };
    assert_eq!(read(&[0, 0, 3, b'a', b'b', 1, 9, 2, 0, 0]), Ok(with_id));
    let version_only = MirrorPidResetRecord { version: 3, source_cluster_id: None };
    assert_eq!(read(&[0, 3, 1, 9, 4, 0, 0, 0, 0]), Ok(version_only));
}
