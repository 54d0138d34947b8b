//! The values of the control records that KRaft writes (Kafka: `LeaderChangeMessage`, `SnapshotHeaderRecord`,
//! `SnapshotFooterRecord`, `KRaftVersionRecord`, `VotersRecord`).
//!
//! All are read and written with version 0 of their schema, whatever their own version field says, as Kafka does.
//! Unknown tagged fields and bytes behind the value are ignored when reading.

use bytes::{BufMut, BytesMut};

use super::cursor::Cursor;
use super::encode_error::EncodeError;
use super::error::DecodeError;
use super::wire::{compact_array, compact_string, put_compact_array, put_compact_string, put_no_tagged_fields, skip_tagged_fields};
use crate::types::TimestampMs;

/// A leader tells the voters of its epoch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct LeaderChange {
    /// The version field.
    pub version: i16,
    /// The node id of the leader.
    pub leader_id: i32,
    /// The node ids of all voters.
    pub voters: Vec<i32>,
    /// The node ids of the voters that elected the leader.
    pub granting_voters: Vec<i32>,
}

impl LeaderChange {
    pub(super) fn decode(cursor: &mut Cursor<'_>) -> Result<Self, DecodeError> {
        let message = Self {
            version: cursor.i16("leader change version")?,
            leader_id: cursor.i32("leader id")?,
            voters: compact_array(cursor, "voters", decode_voter_id)?,
            granting_voters: compact_array(cursor, "granting voters", decode_voter_id)?,
        };
        skip_tagged_fields(cursor)?;
        Ok(message)
    }

    pub(super) fn encode(&self, out: &mut BytesMut) -> Result<(), EncodeError> {
        out.put_i16(self.version);
        out.put_i32(self.leader_id);
        put_compact_array(out, &self.voters, "voters", put_voter_id)?;
        put_compact_array(out, &self.granting_voters, "granting voters", put_voter_id)?;
        put_no_tagged_fields(out);
        Ok(())
    }
}

fn decode_voter_id(cursor: &mut Cursor<'_>) -> Result<i32, DecodeError> {
    let id = cursor.i32("voter id")?;
    skip_tagged_fields(cursor)?;
    Ok(id)
}

// The signature is that of an element writer, of which others can fail.
fn put_voter_id(out: &mut BytesMut, id: &i32) -> Result<(), EncodeError> {
    out.put_i32(*id);
    put_no_tagged_fields(out);
    Ok(())
}

/// The first record of a KRaft snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct SnapshotHeader {
    /// The version field.
    pub version: i16,
    /// Timestamp of the last batch that the snapshot contains, in milliseconds.
    pub last_contained_log_timestamp: TimestampMs,
}

impl SnapshotHeader {
    pub(super) fn decode(cursor: &mut Cursor<'_>) -> Result<Self, DecodeError> {
        let message = Self {
            version: cursor.i16("snapshot header version")?,
            last_contained_log_timestamp: TimestampMs(cursor.i64("last contained log timestamp")?),
        };
        skip_tagged_fields(cursor)?;
        Ok(message)
    }

    pub(super) fn encode(&self, out: &mut BytesMut) {
        out.put_i16(self.version);
        out.put_i64(self.last_contained_log_timestamp.get());
        put_no_tagged_fields(out);
    }
}

/// The last record of a KRaft snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct SnapshotFooter {
    /// The version field.
    pub version: i16,
}

impl SnapshotFooter {
    pub(super) fn decode(cursor: &mut Cursor<'_>) -> Result<Self, DecodeError> {
        let message = Self { version: cursor.i16("snapshot footer version")? };
        skip_tagged_fields(cursor)?;
        Ok(message)
    }

    pub(super) fn encode(&self, out: &mut BytesMut) {
        out.put_i16(self.version);
        put_no_tagged_fields(out);
    }
}

/// The KRaft version from here on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct KRaftVersion {
    /// The version field.
    pub version: i16,
    /// The KRaft version.
    pub kraft_version: i16,
}

impl KRaftVersion {
    pub(super) fn decode(cursor: &mut Cursor<'_>) -> Result<Self, DecodeError> {
        let message = Self { version: cursor.i16("KRaft version record version")?, kraft_version: cursor.i16("KRaft version")? };
        skip_tagged_fields(cursor)?;
        Ok(message)
    }

    pub(super) fn encode(&self, out: &mut BytesMut) {
        out.put_i16(self.version);
        out.put_i16(self.kraft_version);
        put_no_tagged_fields(out);
    }
}

/// The voters from here on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct KRaftVoters {
    /// The version field.
    pub version: i16,
    /// The voters.
    pub voters: Vec<Voter>,
}

/// A voter of KRaft.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Voter {
    /// Its node id.
    pub voter_id: i32,
    /// The id of its metadata log directory, a UUID with the most significant byte first.
    pub directory_id: [u8; 16],
    /// Where it listens.
    pub endpoints: Vec<VoterEndpoint>,
    /// The smallest KRaft version it supports.
    pub min_supported_version: i16,
    /// The largest KRaft version it supports.
    pub max_supported_version: i16,
}

/// Where a voter listens.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct VoterEndpoint {
    /// Name of the listener.
    pub name: String,
    /// Host name or address.
    pub host: String,
    /// TCP port.
    pub port: u16,
}

impl KRaftVoters {
    pub(super) fn decode(cursor: &mut Cursor<'_>) -> Result<Self, DecodeError> {
        let message = Self { version: cursor.i16("voters version")?, voters: compact_array(cursor, "voters", Voter::decode)? };
        skip_tagged_fields(cursor)?;
        Ok(message)
    }

    pub(super) fn encode(&self, out: &mut BytesMut) -> Result<(), EncodeError> {
        out.put_i16(self.version);
        put_compact_array(out, &self.voters, "voters", |out, voter| voter.encode(out))?;
        put_no_tagged_fields(out);
        Ok(())
    }
}

impl Voter {
    fn decode(cursor: &mut Cursor<'_>) -> Result<Self, DecodeError> {
        let voter_id = cursor.i32("voter id")?;
        let directory_id = cursor.uuid("voter directory id")?;
        let endpoints = compact_array(cursor, "endpoints", VoterEndpoint::decode)?;
        let min_supported_version = cursor.i16("minimum KRaft version")?;
        let max_supported_version = cursor.i16("maximum KRaft version")?;
        skip_tagged_fields(cursor)?; // of the version range
        skip_tagged_fields(cursor)?; // of the voter
        Ok(Self { voter_id, directory_id, endpoints, min_supported_version, max_supported_version })
    }

    fn encode(&self, out: &mut BytesMut) -> Result<(), EncodeError> {
        out.put_i32(self.voter_id);
        out.extend_from_slice(&self.directory_id);
        put_compact_array(out, &self.endpoints, "endpoints", |out, endpoint| endpoint.encode(out))?;
        out.put_i16(self.min_supported_version);
        out.put_i16(self.max_supported_version);
        put_no_tagged_fields(out); // of the version range
        put_no_tagged_fields(out); // of the voter
        Ok(())
    }
}

impl VoterEndpoint {
    fn decode(cursor: &mut Cursor<'_>) -> Result<Self, DecodeError> {
        let endpoint = Self {
            name: compact_string(cursor, "listener name")?,
            host: compact_string(cursor, "host")?,
            port: cursor.u16("port")?,
        };
        skip_tagged_fields(cursor)?;
        Ok(endpoint)
    }

    fn encode(&self, out: &mut BytesMut) -> Result<(), EncodeError> {
        put_compact_string(out, &self.name, "listener name")?;
        put_compact_string(out, &self.host, "host")?;
        out.put_u16(self.port);
        put_no_tagged_fields(out);
        Ok(())
    }
}
