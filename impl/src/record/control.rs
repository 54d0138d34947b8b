//! Control records: their types and values (Kafka: `ControlRecordType`, `EndTransactionMarker`).

use std::fmt;

use bytes::{BufMut, Bytes, BytesMut};

use super::cursor::Cursor;
use super::encode_error::EncodeError;
use super::error::DecodeError;
use super::kraft::{KRaftVersion, KRaftVoters, LeaderChange, SnapshotFooter, SnapshotHeader};
use super::mirror_pid_reset::MirrorPidResetRecord;
use crate::types::CoordinatorEpoch;

/// The version that keys and values are written with.
const CURRENT_VERSION: i16 = 0;

/// The type of a control record, from its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ControlRecordType {
    /// 0: a transaction was aborted.
    Abort,
    /// 1: a transaction was committed.
    Commit,
    /// 2: KRaft has a leader.
    LeaderChange,
    /// 3: the beginning of a KRaft snapshot.
    SnapshotHeader,
    /// 4: the end of a KRaft snapshot.
    SnapshotFooter,
    /// 5: the KRaft version.
    KRaftVersion,
    /// 6: the KRaft voters.
    KRaftVoters,
    /// 7: the barrier of a mirror.
    MirrorPidReset,
    /// Any other id, to be ignored by readers.
    Unknown(i16),
}

impl ControlRecordType {
    /// The type with this id.
    #[must_use]
    pub fn from_id(id: i16) -> Self {
        match id {
            0 => Self::Abort,
            1 => Self::Commit,
            2 => Self::LeaderChange,
            3 => Self::SnapshotHeader,
            4 => Self::SnapshotFooter,
            5 => Self::KRaftVersion,
            6 => Self::KRaftVoters,
            7 => Self::MirrorPidReset,
            other => Self::Unknown(other),
        }
    }

    /// The id in the key.
    #[must_use]
    pub fn id(self) -> i16 {
        match self {
            Self::Abort => 0,
            Self::Commit => 1,
            Self::LeaderChange => 2,
            Self::SnapshotHeader => 3,
            Self::SnapshotFooter => 4,
            Self::KRaftVersion => 5,
            Self::KRaftVoters => 6,
            Self::MirrorPidReset => 7,
            Self::Unknown(id) => id,
        }
    }

    /// The version that values of this type are written with (Kafka: the constants of `ControlRecordUtils`); `None` for a type
    /// that is not known.
    #[must_use]
    pub fn current_version(self) -> Option<i16> {
        if let Self::Unknown(_) = self { None } else { Some(CURRENT_VERSION) }
    }

    /// The name that Kafka has for the type.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Abort => "ABORT",
            Self::Commit => "COMMIT",
            Self::LeaderChange => "LEADER_CHANGE",
            Self::SnapshotHeader => "SNAPSHOT_HEADER",
            Self::SnapshotFooter => "SNAPSHOT_FOOTER",
            Self::KRaftVersion => "KRAFT_VERSION",
            Self::KRaftVoters => "KRAFT_VOTERS",
            Self::MirrorPidReset => "MIRROR_PID_RESET",
            Self::Unknown(_) => "UNKNOWN",
        }
    }

    /// Whether this type ends a transaction.
    #[must_use]
    pub fn is_end_txn_marker(self) -> bool {
        matches!(self, Self::Abort | Self::Commit)
    }

    /// The key of a control record of this type: version 0 and the id.
    #[must_use]
    pub fn key(self) -> Bytes {
        let mut out = BytesMut::with_capacity(4);
        out.put_i16(CURRENT_VERSION);
        out.put_i16(self.id());
        out.freeze()
    }

    /// Reads the key of a control record. A version above 0 is read as 0, and bytes behind the id are ignored.
    ///
    /// # Errors
    /// When fewer than 4 bytes are there, or the version is negative.
    pub fn decode_key(key: &Bytes) -> Result<Self, DecodeError> {
        decode_key(Some(Cursor::new(key)), 0)
    }
}

impl fmt::Display for ControlRecordType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name(), self.id())
    }
}

/// Reads a key; `position` is where to blame its absence on.
pub(super) fn decode_key(key: Option<Cursor<'_>>, position: usize) -> Result<ControlRecordType, DecodeError> {
    let what = "control record key";
    let mut cursor = key.ok_or(DecodeError::Null { position, what })?;
    cursor.require(4, what)?;
    let position = cursor.position();
    let version = cursor.i16(what)?;
    if version < 0 {
        return Err(DecodeError::NegativeVersion { position, what: "control record key version", version });
    }
    cursor.i16(what).map(ControlRecordType::from_id)
}

/// The end of a transaction on one partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EndTxnMarker {
    /// Committed, or aborted.
    pub commit: bool,
    /// Epoch of the transaction coordinator that wrote the marker.
    pub coordinator_epoch: CoordinatorEpoch,
}

impl EndTxnMarker {
    /// The marker of a type.
    ///
    /// # Errors
    /// [`EncodeError::NoEndTxnType`] when the type is neither COMMIT nor ABORT.
    pub fn of_type(record_type: ControlRecordType, coordinator_epoch: CoordinatorEpoch) -> Result<Self, EncodeError> {
        let commit = match record_type {
            ControlRecordType::Commit => true,
            ControlRecordType::Abort => false,
            other => return Err(EncodeError::NoEndTxnType { type_id: other.id() }),
        };
        Ok(Self { commit, coordinator_epoch })
    }

    /// Reads the value of a marker whose type is known from the key. A version above 0 is read as 0, and bytes behind it are
    /// ignored.
    ///
    /// # Errors
    /// When the type is neither COMMIT nor ABORT, or the value is malformed.
    pub fn decode_value(record_type: ControlRecordType, value: &Bytes) -> Result<Self, DecodeError> {
        match record_type {
            ControlRecordType::Abort => decode_marker(&mut Cursor::new(value), false),
            ControlRecordType::Commit => decode_marker(&mut Cursor::new(value), true),
            found => Err(DecodeError::UnexpectedControlType { position: 0, expected: "COMMIT or ABORT", found }),
        }
    }
}

/// A control record with its value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ControlRecord {
    /// Types 0 and 1.
    EndTxnMarker(EndTxnMarker),
    /// Type 2.
    LeaderChange(LeaderChange),
    /// Type 3.
    SnapshotHeader(SnapshotHeader),
    /// Type 4.
    SnapshotFooter(SnapshotFooter),
    /// Type 5.
    KRaftVersion(KRaftVersion),
    /// Type 6.
    KRaftVoters(KRaftVoters),
    /// Type 7.
    MirrorPidReset(MirrorPidResetRecord),
    /// A type that is not known, whose value nothing is known about.
    Unknown {
        /// The id in the key.
        type_id: i16,
        /// The value; `None` is null.
        value: Option<Bytes>,
    },
}

impl ControlRecord {
    /// The type of the record.
    #[must_use]
    pub fn record_type(&self) -> ControlRecordType {
        match self {
            Self::EndTxnMarker(EndTxnMarker { commit: true, .. }) => ControlRecordType::Commit,
            Self::EndTxnMarker(EndTxnMarker { commit: false, .. }) => ControlRecordType::Abort,
            Self::LeaderChange(_) => ControlRecordType::LeaderChange,
            Self::SnapshotHeader(_) => ControlRecordType::SnapshotHeader,
            Self::SnapshotFooter(_) => ControlRecordType::SnapshotFooter,
            Self::KRaftVersion(_) => ControlRecordType::KRaftVersion,
            Self::KRaftVoters(_) => ControlRecordType::KRaftVoters,
            Self::MirrorPidReset(_) => ControlRecordType::MirrorPidReset,
            Self::Unknown { type_id, .. } => ControlRecordType::from_id(*type_id),
        }
    }

    /// Reads a control record from a record's key and value. Positions in errors count from the beginning of the key
    /// when it is at fault, else of the value.
    ///
    /// # Errors
    /// When the key is malformed, or the value of a known type is.
    pub fn decode(key: Option<&Bytes>, value: Option<&Bytes>) -> Result<Self, DecodeError> {
        Self::decode_parts(key.map(Cursor::new), value.map(Cursor::new), 0)
    }

    /// As [`ControlRecord::decode`], for a caller that wants one type and no other (Kafka: `ControlRecordUtils`). The value of
    /// another is not looked at.
    ///
    /// # Errors
    /// [`DecodeError::UnexpectedControlType`] for another type; or as [`ControlRecord::decode`].
    pub fn decode_as(expected: ControlRecordType, key: Option<&Bytes>, value: Option<&Bytes>) -> Result<Self, DecodeError> {
        let found = decode_key(key.map(Cursor::new), 0)?;
        if found != expected {
            return Err(DecodeError::UnexpectedControlType { position: 0, expected: expected.name(), found });
        }
        Self::decode(key, value)
    }

    /// Reads a control record; `position` is where to blame the absence of the key or the value on.
    pub(super) fn decode_parts(key: Option<Cursor<'_>>, value: Option<Cursor<'_>>, position: usize) -> Result<Self, DecodeError> {
        let record_type = decode_key(key, position)?;
        if let ControlRecordType::Unknown(type_id) = record_type {
            return Ok(Self::Unknown { type_id, value: value.map(Cursor::into_bytes) });
        }
        let mut cursor = value.ok_or(DecodeError::Null { position, what: "control record value" })?;
        match record_type {
            ControlRecordType::Abort => decode_marker(&mut cursor, false).map(Self::EndTxnMarker),
            ControlRecordType::Commit => decode_marker(&mut cursor, true).map(Self::EndTxnMarker),
            ControlRecordType::LeaderChange => LeaderChange::decode(&mut cursor).map(Self::LeaderChange),
            ControlRecordType::SnapshotHeader => SnapshotHeader::decode(&mut cursor).map(Self::SnapshotHeader),
            ControlRecordType::SnapshotFooter => SnapshotFooter::decode(&mut cursor).map(Self::SnapshotFooter),
            ControlRecordType::KRaftVersion => KRaftVersion::decode(&mut cursor).map(Self::KRaftVersion),
            ControlRecordType::KRaftVoters => KRaftVoters::decode(&mut cursor).map(Self::KRaftVoters),
            ControlRecordType::MirrorPidReset => MirrorPidResetRecord::decode_at(cursor).map(Self::MirrorPidReset),
            ControlRecordType::Unknown(type_id) => Ok(Self::Unknown { type_id, value: Some(cursor.into_bytes()) }),
        }
    }

    /// The bytes of the record's value.
    ///
    /// # Errors
    /// For an unknown type (Kafka: `ControlRecordType.recordKey`), and when a field is too long or a version negative.
    pub fn encode_value(&self) -> Result<Bytes, EncodeError> {
        let mut out = BytesMut::new();
        match self {
            Self::EndTxnMarker(marker) => {
                out.put_i16(CURRENT_VERSION);
                out.put_i32(marker.coordinator_epoch.get());
            }
            Self::LeaderChange(message) => message.encode(&mut out)?,
            Self::SnapshotHeader(message) => message.encode(&mut out),
            Self::SnapshotFooter(message) => message.encode(&mut out),
            Self::KRaftVersion(message) => message.encode(&mut out),
            Self::KRaftVoters(message) => message.encode(&mut out)?,
            Self::MirrorPidReset(message) => return message.encode(),
            Self::Unknown { type_id, .. } => {
                return Err(EncodeError::UnknownControlType { type_id: *type_id });
            }
        }
        Ok(out.freeze())
    }
}

/// Reads the value of an end-transaction marker. A version above 0 is read as 0, and bytes behind it are ignored.
fn decode_marker(cursor: &mut Cursor<'_>, commit: bool) -> Result<EndTxnMarker, DecodeError> {
    let position = cursor.position();
    cursor.require(6, "end-transaction marker")?;
    let version = cursor.i16("end-transaction marker version")?;
    if version < 0 {
        return Err(DecodeError::NegativeVersion { position, what: "end-transaction marker version", version });
    }
    let coordinator_epoch = CoordinatorEpoch(cursor.i32("coordinator epoch")?);
    Ok(EndTxnMarker { commit, coordinator_epoch })
}
