//! Gzip (Java: `GZIPInputStream`).

use std::io::{Cursor, Read as _, Write as _};

use bytes::Bytes;
use flate2::bufread::GzDecoder;
use flate2::write::GzEncoder;

use super::{Failure, Output};

/// How many bytes of a stream are inflated at a time.
const CHUNK_BYTES: usize = 8 * 1024;
/// How a member begins that can follow another: magic and method.
const MEMBER_START: [u8; 3] = [0x1f, 0x8b, 0x08];

pub(super) fn compress(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes)?;
    encoder.finish()
}

/// Members one after the other, which are one stream. What follows a member without being one is ignored.
pub(super) struct Members {
    /// `None` behind the last.
    member: Option<GzDecoder<Cursor<Bytes>>>,
}

impl Members {
    pub(super) fn new(bytes: Bytes) -> Self {
        Self { member: Some(GzDecoder::new(Cursor::new(bytes))) }
    }

    /// Inflates some bytes; false at the end.
    pub(super) fn step(&mut self, out: &mut Output) -> Result<bool, Failure> {
        let mut chunk = [0; CHUNK_BYTES];
        while let Some(member) = &mut self.member {
            let read = member.read(&mut chunk).map_err(|_| Failure::Corrupt("the gzip member is damaged or cut"))?;
            if read > 0 {
                out.push(chunk.get(..read).unwrap_or_default())?;
                return Ok(true);
            }
            let rest = self.member.take().map(GzDecoder::into_inner).unwrap_or_default();
            let at = usize::try_from(rest.position()).unwrap_or(usize::MAX);
            if rest.get_ref().get(at..).unwrap_or_default().starts_with(&MEMBER_START) {
                self.member = Some(GzDecoder::new(rest));
            }
        }
        Ok(false)
    }
}
