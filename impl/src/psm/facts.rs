//! What the producer state needs to know of a batch.

use crate::record::{ControlRecord, ControlRecordType, DecodeError, EndTxnMarker, RecordBatch};
use crate::types::{CoordinatorEpoch, Offset, ProducerEpoch, ProducerId, SegmentPosition, Sequence, TimestampMs};

/// Who appends (Kafka: `AppendOrigin`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AppendOrigin {
    /// A producer: everything is checked.
    Client,
    /// The transaction coordinator (markers) or the broker itself: no sequences, no duplicates, but epochs.
    Coordinator,
    /// The leader of the metadata log: batches come with offsets and its epoch. No sequences, no duplicates, no verified
    /// transactions, but epochs.
    RaftLeader,
    /// A copy of another log, or the replay of this one: what came is what counts, with few exceptions.
    Replication,
}

/// The version of the transaction protocol that a marker was written under (Kafka: `TransactionVersion`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TransactionVersion {
    /// Not told; right for everything but a marker that a leader appends.
    #[default]
    Unknown,
    /// The first protocol.
    V0,
    /// With flexible records in the transaction log; markers as with 0.
    V1,
    /// KIP-890: each transaction ends with a higher producer epoch.
    V2,
}

/// Which producer ids the producer state looks at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProducerIdVisibility {
    /// 0 and above, as Kafka does (`hasProducerId`): -1 is none, and what is below it counts as none too.
    #[default]
    Stock,
    /// All but -1, as the designs assume that map ids to negative ones.
    Mapped,
}

impl ProducerIdVisibility {
    /// Whether state is kept for this id.
    #[must_use]
    pub fn sees(self, id: ProducerId) -> bool {
        match self {
            Self::Stock => id > ProducerId::NONE,
            Self::Mapped => id != ProducerId::NONE,
        }
    }
}

/// What a batch is to the producer state. Of a control batch only the first record counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BatchKind {
    /// Data.
    Data,
    /// A control batch that compaction has emptied.
    EmptyControl,
    /// The end of a transaction.
    Marker {
        /// COMMIT; else ABORT.
        commit: bool,
        /// Epoch of the coordinator that wrote the marker.
        coordinator_epoch: CoordinatorEpoch,
        /// Timestamp of the control record, in milliseconds.
        timestamp: TimestampMs,
    },
    /// MIRROR_PID_RESET.
    Barrier {
        /// The cluster that was mirrored; `None` when the value does not tell, or cannot be read.
        source_cluster_id: Option<String>,
    },
    /// A control record of another type.
    OtherControl {
        /// The type in the record's key.
        type_id: i16,
    },
    /// A control batch whose first record cannot be read. That matters only under a producer id.
    MalformedControl(DecodeError),
}

/// What the producer state needs to know of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchFacts {
    /// The first offset.
    pub base_offset: Offset,
    /// The last offset.
    pub last_offset: Offset,
    /// The producer; -1 for none.
    pub producer_id: ProducerId,
    /// Its epoch; -1 for none.
    pub producer_epoch: ProducerEpoch,
    /// Sequence of the first record; -1 for none.
    pub base_sequence: Sequence,
    /// Sequence of the last record; -1 for none.
    pub last_sequence: Sequence,
    /// The largest timestamp, in milliseconds.
    pub max_timestamp: TimestampMs,
    /// Whether the batch belongs to a transaction.
    pub transactional: bool,
    /// Data, or which control batch.
    pub kind: BatchKind,
    /// Where the batch lies in the log, if that is known: an append tells, a replay does not.
    pub position: Option<SegmentPosition>,
}

impl BatchFacts {
    /// Whether this is a control batch.
    #[must_use]
    pub fn is_control(&self) -> bool {
        self.kind != BatchKind::Data
    }

    /// Last offset less first offset; in the 32 bits of Java's `int`.
    #[must_use]
    pub fn offset_delta(&self) -> i32 {
        let delta = self.last_offset.get().wrapping_sub(self.base_offset.get());
        i32::try_from(delta).unwrap_or(i32::MAX)
    }
}

impl From<&RecordBatch> for BatchFacts {
    fn from(batch: &RecordBatch) -> Self {
        Self {
            base_offset: batch.base_offset(),
            last_offset: batch.last_offset(),
            producer_id: batch.producer_id(),
            producer_epoch: batch.producer_epoch(),
            base_sequence: batch.base_sequence(),
            last_sequence: batch.last_sequence(),
            max_timestamp: batch.max_timestamp(),
            transactional: batch.is_transactional(),
            kind: kind_of(batch),
            position: None,
        }
    }
}

fn kind_of(batch: &RecordBatch) -> BatchKind {
    if !batch.is_control() {
        return BatchKind::Data;
    }
    match batch.control_type() {
        Err(error) => BatchKind::MalformedControl(error),
        Ok(None) => BatchKind::EmptyControl,
        Ok(Some(ControlRecordType::MirrorPidReset)) => BatchKind::Barrier {
            source_cluster_id: match batch.control_record() {
                Ok(Some(ControlRecord::MirrorPidReset(record))) => record.source_cluster_id,
                _ => None,
            },
        },
        Ok(Some(ControlRecordType::Abort | ControlRecordType::Commit)) => marker_of(batch),
        Ok(Some(other)) => BatchKind::OtherControl { type_id: other.id() },
    }
}

fn marker_of(batch: &RecordBatch) -> BatchKind {
    match batch.control_record() {
        Ok(Some(ControlRecord::EndTxnMarker(EndTxnMarker { commit, coordinator_epoch }))) => {
            BatchKind::Marker { commit, coordinator_epoch, timestamp: first_timestamp(batch) }
        }
        Err(error) => BatchKind::MalformedControl(error),
        // The type was read from the same record just before; there is no other case.
        Ok(_) => BatchKind::EmptyControl,
    }
}

/// Timestamp of the first record; where a later one cannot be read, the batch's.
fn first_timestamp(batch: &RecordBatch) -> TimestampMs {
    let records = batch.records().unwrap_or_default();
    records.first().map_or(batch.max_timestamp(), |record| record.timestamp)
}
