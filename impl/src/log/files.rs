//! The names of a log's files, as Kafka has them in a partition directory.

pub(super) use crate::psm::DELETED;
use crate::types::Offset;

/// The segment that a new log begins with: 20 digits of its base offset, 0.
pub const LOG_FILE: &str = "00000000000000000000.log";

/// The aborted transactions of that segment.
pub const TXN_INDEX_FILE: &str = "00000000000000000000.txnindex";

/// Leader epochs and where they begin.
pub const LEADER_EPOCH_CHECKPOINT: &str = "leader-epoch-checkpoint";

/// The offset in the name of a file: the number in front of the first dot, as in the names of all files of a segment and of snapshots, also
/// of those that are to be deleted (Kafka: `LogFileUtils.offsetFromFile`). `None` where there is none, as in the names of other files.
#[must_use]
pub fn offset_from_file(name: &str) -> Option<Offset> {
    let (digits, _) = name.split_once('.')?;
    digits.parse().ok().map(Offset)
}

/// Of a checkpoint that is to be deleted.
pub(super) const DELETED_CHECKPOINT: &str = ".checkpoint.deleted";
/// Of a segment that a cleaning round has not finished.
pub(super) const CLEANED: &str = ".cleaned";
/// Of a finished segment that is to take the place of others.
pub(super) const SWAP: &str = ".swap";

/// The files of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SegmentFile {
    Log,
    OffsetIndex,
    TimeIndex,
    TxnIndex,
}

impl SegmentFile {
    pub(super) const ALL: [Self; 4] = [Self::Log, Self::OffsetIndex, Self::TimeIndex, Self::TxnIndex];

    /// The suffix behind the base offset.
    pub(super) fn suffix(self) -> &'static str {
        match self {
            Self::Log => ".log",
            Self::OffsetIndex => ".index",
            Self::TimeIndex => ".timeindex",
            Self::TxnIndex => ".txnindex",
        }
    }

    /// The name of this file of the segment with this base offset.
    pub(super) fn name(self, base_offset: Offset) -> String {
        format!("{base_offset:0>20}{}", self.suffix())
    }

    /// Which file of which segment this is the name of.
    pub(super) fn parse(name: &str) -> Option<(Offset, Self)> {
        let file = Self::ALL.into_iter().find(|file| name.ends_with(file.suffix()))?;
        let offset = Offset(name.strip_suffix(file.suffix())?.parse().ok()?);
        (file.name(offset) == name).then_some((offset, file))
    }
}
