//! Whose log directory it is (Kafka: `MetaProperties`, `PropertiesUtils`).
//!
//! ```text
//! #
//! #Tue Dec 01 03:33:52 UTC 2026
//! node.id=1
//! directory.id=8h1ZOXEPQ1udjd9otWWi_Q
//! version=1
//! cluster.id=Q2xlYW5zbGF0ZUFscGhhMQ
//! ```

use std::collections::BTreeMap;

use bytes::Bytes;

use super::properties::{self, BadEscape};
use super::uuid::{Uuid, UuidError};
use crate::types::{NodeId, TimestampMs};

/// The file.
pub const META_PROPERTIES_FILE: &str = "meta.properties";

/// The version of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MetaPropertiesVersion {
    /// With `broker.id`, and everything optional: from before KRaft.
    V0,
    /// With `node.id`; that and `cluster.id` have to be there.
    V1,
}

/// What the file says.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MetaProperties {
    /// The version of the file.
    pub version: MetaPropertiesVersion,
    /// The cluster.
    pub cluster_id: Option<String>,
    /// The broker or controller.
    pub node_id: Option<NodeId>,
    /// The directory.
    pub directory_id: Option<Uuid>,
}

/// Why the file cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MetaPropertiesError {
    /// Four hexadecimal digits do not follow a `\u`.
    #[error("byte {position}: expected four hexadecimal digits behind \\u")]
    Escape {
        /// Where the backslash is.
        position: usize,
    },
    /// The version is neither 0 nor 1.
    #[error("version {found:?}, expected 0 or 1")]
    Version {
        /// What is there.
        found: String,
    },
    /// A key is not there.
    #[error("{key} is not there")]
    Missing {
        /// The key.
        key: &'static str,
    },
    /// A value is no number.
    #[error("{key} is no number")]
    Number {
        /// The key.
        key: &'static str,
    },
    /// The id of the directory is none.
    #[error("directory.id: {0}")]
    DirectoryId(#[from] UuidError),
}

impl MetaPropertiesError {
    /// The simple name of the exception class that Kafka throws in this case.
    #[must_use]
    pub fn kafka_class(&self) -> &'static str {
        match self {
            Self::Escape { .. } => "IllegalArgumentException",
            _ => "RuntimeException",
        }
    }
}

impl From<BadEscape> for MetaPropertiesError {
    fn from(BadEscape(position): BadEscape) -> Self {
        Self::Escape { position }
    }
}

impl MetaPropertiesVersion {
    fn number(self) -> &'static str {
        match self {
            Self::V0 => "0",
            Self::V1 => "1",
        }
    }

    fn node_id_key(self) -> &'static str {
        match self {
            Self::V0 => "broker.id",
            Self::V1 => "node.id",
        }
    }
}

impl MetaProperties {
    /// The bytes of the file, in the order in which Java's `Properties` have these keys. `now`, in milliseconds, is the
    /// time in the comment on top, which is in UTC here.
    #[must_use]
    pub fn encode(&self, now: TimestampMs) -> Bytes {
        let mut text = properties::head(now);
        if let Some(node_id) = self.node_id {
            text.push_str(&properties::line(self.version.node_id_key(), &node_id.to_string()));
        }
        if let Some(directory_id) = self.directory_id {
            text.push_str(&properties::line("directory.id", &directory_id.to_string()));
        }
        text.push_str(&properties::line("version", self.version.number()));
        if let Some(cluster_id) = &self.cluster_id {
            text.push_str(&properties::line("cluster.id", cluster_id));
        }
        Bytes::from(text)
    }

    /// Reads the bytes of a file. As in Kafka they are read as Latin-1 but written as UTF-8.
    ///
    /// # Errors
    /// When the version is unknown, what it demands is not there, or a value cannot be read.
    pub fn decode(file: &Bytes) -> Result<Self, MetaPropertiesError> {
        let properties = properties::decode(file)?;
        let version = match properties.get("version").map_or("0", String::as_str) {
            number if number.trim().parse() == Ok(0) => MetaPropertiesVersion::V0,
            number if number.trim().parse() == Ok(1) => MetaPropertiesVersion::V1,
            found => return Err(MetaPropertiesError::Version { found: found.to_owned() }),
        };
        let node_id = node_id(&properties, version)?;
        let directory_id = properties.get("directory.id").map(|id| id.parse()).transpose()?;
        let cluster_id = properties.get("cluster.id").cloned();
        if version == MetaPropertiesVersion::V1 && cluster_id.is_none() {
            return Err(MetaPropertiesError::Missing { key: "cluster.id" });
        }
        Ok(Self { version, cluster_id, node_id, directory_id })
    }
}

fn node_id(properties: &BTreeMap<String, String>, version: MetaPropertiesVersion) -> Result<Option<NodeId>, MetaPropertiesError> {
    let key = version.node_id_key();
    match properties.get(key) {
        Some(number) => number.parse().map(|number| Some(NodeId(number))).map_err(|_| MetaPropertiesError::Number { key }),
        None if version == MetaPropertiesVersion::V0 => Ok(None),
        None => Err(MetaPropertiesError::Missing { key }),
    }
}
