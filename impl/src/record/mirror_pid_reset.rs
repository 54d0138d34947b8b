//! The value of a barrier: the MIRROR_PID_RESET control record of KIP-1279.
//!
//! Two layouts are about. The earlier one carries the id of the source cluster, the later one does not; both call
//! themselves version 0, so the version cannot tell them apart. What each writer produces cannot be read as the other:
//!
//! ```text
//! with source cluster id     i16 version | uvarint length+1 | UTF-8 | 00     00 00 17 <22 bytes> 00
//! version only               i16 version | 00                                00 00 00
//! ```
//!
//! The later layout goes on with what is a null string in the earlier one. The earlier layout's string length is, to a
//! reader of the later one, a count of tagged fields, which take two bytes each and so do not fit.

use bytes::{BufMut, Bytes, BytesMut};

use super::cursor::Cursor;
use super::encode_error::EncodeError;
use super::error::DecodeError;
use super::wire::{compact_string, put_compact_string, put_no_tagged_fields, skip_tagged_fields};

/// The layouts of the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MirrorPidResetLayout {
    /// The earlier layout: version, source cluster id, tagged fields.
    WithSourceClusterId,
    /// The later layout: version, tagged fields.
    VersionOnly,
}

/// The value of a barrier.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct MirrorPidResetRecord {
    /// The version field; 0 from all writers. A higher one is read as if it were 0.
    pub version: i16,
    /// Id of the cluster that was mirrored from, or `None` in the later layout, which does not have it.
    pub source_cluster_id: Option<String>,
}

impl MirrorPidResetRecord {
    /// The layout that this value is written in.
    #[must_use]
    pub fn layout(&self) -> MirrorPidResetLayout {
        match self.source_cluster_id {
            Some(_) => MirrorPidResetLayout::WithSourceClusterId,
            None => MirrorPidResetLayout::VersionOnly,
        }
    }

    /// The bytes of the value: with a source cluster id in the earlier layout, else in the later one.
    ///
    /// # Errors
    /// When the version is negative or the id is longer than 32767 bytes.
    pub fn encode(&self) -> Result<Bytes, EncodeError> {
        if self.version < 0 {
            return Err(EncodeError::NegativeVersion { what: "barrier version", version: self.version });
        }
        let mut out = BytesMut::new();
        out.put_i16(self.version);
        if let Some(id) = &self.source_cluster_id {
            put_compact_string(&mut out, id, "source cluster id")?;
        }
        put_no_tagged_fields(&mut out);
        Ok(out.freeze())
    }

    /// Reads a value of either layout, of which all bytes must be part.
    ///
    /// # Errors
    /// When the bytes are neither layout, or (only with unknown tagged fields) could be both.
    pub fn decode(value: &Bytes) -> Result<Self, DecodeError> {
        Self::decode_at(Cursor::new(value))
    }

    /// Reads a value that is known to have the given layout.
    ///
    /// # Errors
    /// When the bytes are not of that layout, or more bytes follow.
    pub fn decode_as(layout: MirrorPidResetLayout, value: &Bytes) -> Result<Self, DecodeError> {
        Self::decode_layout(layout, Cursor::new(value))
    }

    pub(super) fn decode_at(cursor: Cursor<'_>) -> Result<Self, DecodeError> {
        let mut behind_version = cursor.clone();
        decode_version(&mut behind_version)?;
        let with_id = Self::decode_layout(MirrorPidResetLayout::WithSourceClusterId, cursor.clone());
        let version_only = Self::decode_layout(MirrorPidResetLayout::VersionOnly, cursor);
        match (with_id, version_only) {
            (Ok(_), Ok(_)) => Err(DecodeError::AmbiguousMirrorPidReset { position: behind_version.position() }),
            (Ok(record), Err(_)) | (Err(_), Ok(record)) => Ok(record),
            // A first byte of 0 is how the later layout goes on; anything else looks like a length.
            (Err(with_id), Err(version_only)) => match behind_version.i8("tagged fields") {
                Ok(0) | Err(_) => Err(version_only),
                Ok(_) => Err(with_id),
            },
        }
    }

    fn decode_layout(layout: MirrorPidResetLayout, mut cursor: Cursor<'_>) -> Result<Self, DecodeError> {
        let version = decode_version(&mut cursor)?;
        let source_cluster_id = match layout {
            MirrorPidResetLayout::WithSourceClusterId => Some(compact_string(&mut cursor, "source cluster id")?),
            MirrorPidResetLayout::VersionOnly => None,
        };
        skip_tagged_fields(&mut cursor)?;
        cursor.finish("barrier value")?;
        Ok(Self { version, source_cluster_id })
    }
}

fn decode_version(cursor: &mut Cursor<'_>) -> Result<i16, DecodeError> {
    let position = cursor.position();
    let version = cursor.i16("barrier version")?;
    if version < 0 {
        return Err(DecodeError::NegativeVersion { position, what: "barrier version", version });
    }
    Ok(version)
}
