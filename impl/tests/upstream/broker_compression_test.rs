#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what goes wrong in a test ends it")]
//! Kafka's BrokerCompressionTest.

use cleanslate_log::log::{FetchIsolation, LogConfig};
use cleanslate_log::record::{BatchReader, Compression};
use cleanslate_log::types::Offset;

use crate::upstream::support::{lead, new_log, plain};

const CODECS: [Compression; 5] = [Compression::None, Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd];

/// Every codec of a producer with every setting of the log; without a setting the producer's stays.
#[test]
fn test_broker_side_compression() {
    for sent in CODECS {
        for setting in CODECS.map(Some).into_iter().chain([None]) {
            let mut log = new_log(&LogConfig { compression: setting, ..LogConfig::default() });
            lead(&mut log, plain(2).compression(sent)).unwrap();
            let bytes = log.fetch(Offset(0), FetchIsolation::LogEnd, 4096, true).unwrap().records;
            let batch = BatchReader::new(bytes).next().unwrap().unwrap();
            assert_eq!(batch.attributes().compression(), Some(setting.unwrap_or(sent)), "{sent:?} {setting:?}");
            assert_eq!(batch.records().unwrap().len(), 2);
        }
    }
}
