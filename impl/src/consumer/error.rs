//! Why a consumer does not get the next record.

use bytes::Bytes;

use crate::record::{DecodeError, Header, TimestampType};
use crate::types::{Offset, TimestampMs};

/// Why the next record cannot be handed out. The position stays in front of it: to go on, one has to seek past it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConsumeError<E> {
    /// The bytes cannot be read, or a checksum is wrong (Kafka: `KafkaException`). It is the same at every further call.
    #[error("no record can be read from offset {position} on: {source}")]
    Corrupt {
        /// The position of the consumer.
        position: Offset,
        /// What is wrong.
        source: DecodeError,
    },
    /// A deserializer refuses the record. At the next call it is asked again.
    #[error("{0}")]
    Deserialization(Box<DeserializationError<E>>),
}

impl<E> ConsumeError<E> {
    /// The simple name of the exception class that Kafka throws in this case.
    #[must_use]
    pub fn kafka_class(&self) -> &'static str {
        match self {
            Self::Corrupt { .. } => "KafkaException",
            Self::Deserialization(_) => "RecordDeserializationException",
        }
    }
}

/// Which part of a record a deserializer refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// The key.
    Key,
    /// The value.
    Value,
}

/// A record that a deserializer refused, with all there is of it, for whoever wants to keep it elsewhere
/// (Kafka: `RecordDeserializationException`).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the {origin:?} at offset {offset} cannot be deserialized: {cause}")]
pub struct DeserializationError<E> {
    /// The part that was refused.
    pub origin: Origin,
    /// The record's offset.
    pub offset: Offset,
    /// The record's timestamp in milliseconds.
    pub timestamp: TimestampMs,
    /// What the timestamp means; `None` in magic 0.
    pub timestamp_type: Option<TimestampType>,
    /// The bytes of the key; `None` is null.
    pub key: Option<Bytes>,
    /// The bytes of the value; `None` is null.
    pub value: Option<Bytes>,
    /// The headers.
    pub headers: Vec<Header>,
    /// What the deserializer said.
    pub cause: E,
}
