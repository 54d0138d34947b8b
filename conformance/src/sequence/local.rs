//! The log of this project behind the adapter protocol, in the same process and over storage in memory.

use std::collections::BTreeMap;

use bytes::Bytes;
use cleanslate_log::barrier::ReplicationPath;
use cleanslate_log::log::{AppendResult, CleanOptions, FetchIsolation, LogConfig, OpenOptions, PartitionLog, Recovery};
use cleanslate_log::psm::{AppendOrigin, TransactionVersion, VerificationGuard, VerificationRequest};
use cleanslate_log::storage::{MemoryStorage, Storage};
use cleanslate_log::types::{LeaderEpoch, Offset, ProducerEpoch, ProducerId, Sequence, TimestampMs};

use super::local_state::state_of;
use crate::adapter::Hex;
use crate::adapter::message::{Config, Cut, HighWatermarkRule, Isolation, Operation, Origin};
use crate::adapter::reply::{
    Aborted, Answer, Append, Changed, Compacted, Done, EpochEnd, Failure, FailureKind, FileEntry, Files, Guard, HighWatermark,
    LatestSnapshot, Read, Reply, Retention, Rolled, Tasks,
};

/// How many keys the offset map of the adapter around Kafka's cleaner holds: nine tenths of 65536 bytes in slots of 24.
const MAX_KEYS: usize = 2457;

/// A named log.
#[derive(Clone, Debug)]
struct Replica {
    config: LogConfig,
    now: TimestampMs,
    /// Guards that were handed out before the log was opened last.
    earlier_guards: u64,
    place: Place,
}

#[derive(Clone, Debug)]
enum Place {
    Open(Box<PartitionLog<MemoryStorage>>),
    Closed(MemoryStorage),
}

/// The logs of an adapter.
#[derive(Clone, Debug, Default)]
pub struct Local {
    replicas: BTreeMap<String, Replica>,
}

type Outcome = Result<Answer, Failure>;

fn protocol(name: &str, message: impl Into<String>) -> Failure {
    Failure { kind: FailureKind::Protocol, name: name.to_owned(), message: message.into() }
}

fn exception(class: &str, error: &impl std::fmt::Display) -> Failure {
    Failure { kind: FailureKind::Exception, name: class.to_owned(), message: error.to_string() }
}

macro_rules! refused {
    () => {
        |error| exception(error.kafka_class(), &error)
    };
}

impl Local {
    /// Carries out a request; `state` asks for the state afterwards.
    pub fn call(&mut self, operation: &Operation, state: bool) -> Reply {
        let outcome = self.execute(operation);
        let state = if state { operation.log().and_then(|log| self.state(log)) } else { None };
        Reply { outcome, state }
    }

    /// The state of a log, if it is open.
    #[must_use]
    pub fn state(&self, log: &str) -> Option<crate::adapter::State> {
        let replica = self.replicas.get(log)?;
        match &replica.place {
            Place::Open(log) => Some(state_of(log, replica.earlier_guards)),
            Place::Closed(_) => None,
        }
    }

    /// The open log of this name.
    #[must_use]
    pub fn log(&self, name: &str) -> Option<&PartitionLog<MemoryStorage>> {
        match self.replicas.get(name).map(|replica| &replica.place) {
            Some(Place::Open(log)) => Some(log),
            _ => None,
        }
    }

    /// The files of a log by name, open or not.
    #[must_use]
    pub fn stored(&self, name: &str) -> Vec<(String, Bytes)> {
        let storage = match self.replicas.get(name).map(|replica| &replica.place) {
            Some(Place::Open(log)) => log.storage(),
            Some(Place::Closed(storage)) => storage,
            None => return Vec::new(),
        };
        let names = storage.names().unwrap_or_default().into_iter();
        names.filter_map(|name| storage.read_all(&name).ok().flatten().map(|bytes| (name, bytes))).collect()
    }

    /// The clock of a log.
    #[must_use]
    pub fn now(&self, name: &str) -> TimestampMs {
        self.replicas.get(name).map_or(TimestampMs::NONE, |replica| replica.now)
    }

    fn replica(&mut self, name: &str) -> Result<&mut Replica, Failure> {
        self.replicas.get_mut(name).ok_or_else(|| protocol("unknown-log", format!("there is no log {name}")))
    }

    fn open(&mut self, name: &str) -> Result<(&mut PartitionLog<MemoryStorage>, TimestampMs), Failure> {
        let replica = self.replica(name)?;
        match &mut replica.place {
            Place::Open(log) => Ok((log, replica.now)),
            Place::Closed(_) => Err(protocol("log-closed", format!("log {name} is not open"))),
        }
    }

    fn execute(&mut self, operation: &Operation) -> Outcome {
        match operation {
            Operation::Create { log, now_ms, config } => self.create(log, TimestampMs(*now_ms), config),
            Operation::AppendLeader { .. } | Operation::AppendFollower { .. } | Operation::StartVerification { .. } => {
                self.append(operation)
            }
            Operation::Read { log, offset, max_bytes, isolation, min_one_message } => {
                self.read(log, *offset, *max_bytes, *isolation, *min_one_message)
            }
            Operation::Close { .. }
            | Operation::Crash { .. }
            | Operation::Open { .. }
            | Operation::Files { .. }
            | Operation::PutFile { .. }
            | Operation::Drop { .. } => self.live(operation),
            Operation::Reset {} | Operation::Bye {} => {
                self.replicas.clear();
                Ok(Answer::Done(Done {}))
            }
            Operation::Hello { .. } => Err(protocol("unknown-operation", "there is nobody to greet in the same process")),
            Operation::SetTime { log, now_ms } => {
                self.replica(log)?.now = TimestampMs(*now_ms);
                Ok(Answer::Done(Done {}))
            }
            other => self.keep(other),
        }
    }

    fn create(&mut self, name: &str, now: TimestampMs, config: &Config) -> Outcome {
        if self.replicas.contains_key(name) {
            return Err(protocol("log-exists", format!("there is a log {name} already")));
        }
        let config = settings(config);
        let log = PartitionLog::create(MemoryStorage::new(), config.clone(), now).map_err(refused!())?;
        let place = Place::Open(Box::new(log));
        self.replicas.insert(name.to_owned(), Replica { config, now, earlier_guards: 0, place });
        Ok(Answer::Done(Done {}))
    }

    fn append(&mut self, operation: &Operation) -> Outcome {
        match operation {
            Operation::AppendLeader { log, batch, origin, leader_epoch, transaction_version, guard } => {
                let earlier = self.replica(log)?.earlier_guards;
                // A guard of an earlier life of the log verifies nothing, but is not "none" either.
                let guard = match u64::from(*guard) {
                    0 => VerificationGuard::SENTINEL,
                    n => n.checked_sub(earlier).filter(|n| *n > 0).map_or(VerificationGuard(u64::MAX), VerificationGuard),
                };
                let (log, now) = self.open(log)?;
                let origin = match origin {
                    Origin::Client => AppendOrigin::Client,
                    Origin::Coordinator => AppendOrigin::Coordinator,
                    Origin::Replication => AppendOrigin::Replication,
                };
                let tv = match transaction_version {
                    0 => TransactionVersion::V0,
                    1 => TransactionVersion::V1,
                    2 => TransactionVersion::V2,
                    _ => TransactionVersion::Unknown,
                };
                let bytes = Bytes::copy_from_slice(&batch.0);
                let result = log.append_verified(bytes, origin, LeaderEpoch(*leader_epoch), tv, guard, now);
                Ok(appended(&result.map_err(refused!())?))
            }
            Operation::AppendFollower { log, batches, leader_epoch } => {
                let (log, now) = self.open(log)?;
                let bytes = Bytes::copy_from_slice(&batches.0);
                let result = log.append_as_follower(bytes, LeaderEpoch(*leader_epoch), ReplicationPath::IntraCluster, now);
                Ok(appended(&result.map_err(refused!())?))
            }
            Operation::StartVerification { log, producer_id, producer_epoch, sequence, epoch_bump } => {
                let earlier = self.replica(log)?.earlier_guards;
                let (log, now) = self.open(log)?;
                let request = VerificationRequest {
                    producer_id: ProducerId(*producer_id),
                    producer_epoch: ProducerEpoch(*producer_epoch),
                    sequence: Sequence(*sequence),
                    supports_epoch_bump: *epoch_bump,
                };
                let guard = log.maybe_start_transaction_verification(&request, now).map_err(refused!())?;
                Ok(Answer::Guard(Guard { guard: guard_number(guard, earlier) }))
            }
            other => Err(protocol("unknown-operation", other.name())),
        }
    }

    fn read(&mut self, log: &str, offset: i64, max_bytes: u32, isolation: Isolation, min_one_message: bool) -> Outcome {
        let (log, _) = self.open(log)?;
        let isolation = match isolation {
            Isolation::LogEnd => FetchIsolation::LogEnd,
            Isolation::HighWatermark => FetchIsolation::HighWatermark,
            Isolation::Committed => FetchIsolation::TxnCommitted,
        };
        let max_bytes = usize::try_from(max_bytes).unwrap_or(usize::MAX);
        let data = log.fetch(Offset(offset), isolation, max_bytes, min_one_message).map_err(refused!())?;
        let aborted = data.aborted.map(|aborted| {
            let of = |a: cleanslate_log::log::AbortedTxn| Aborted {
                producer_id: a.producer_id.get(),
                first_offset: a.first_offset.get(),
            };
            aborted.into_iter().map(of).collect()
        });
        Ok(Answer::Read(Read { records: Hex::from(data.records.as_ref()), aborted }))
    }

    /// What changes offsets, segments and snapshots of an open log.
    fn keep(&mut self, operation: &Operation) -> Outcome {
        let name = operation.log().ok_or_else(|| protocol("unknown-operation", operation.name()))?;
        let (log, now) = self.open(name)?;
        let changed = |changed| Answer::Changed(Changed { changed });
        Ok(match operation {
            Operation::Truncate { offset, .. } => changed(log.truncate_to(Offset(*offset), now).map_err(refused!())?),
            Operation::TruncateFully { offset, .. } => {
                log.truncate_fully_and_start_at(Offset(*offset), now).map_err(refused!())?;
                Answer::Done(Done {})
            }
            Operation::HighWatermark { offset, rule, .. } => {
                let offset = Offset(*offset);
                match rule {
                    HighWatermarkRule::Set => drop(log.update_high_watermark(offset)),
                    HighWatermarkRule::Follower => drop(log.maybe_update_high_watermark(offset)),
                    HighWatermarkRule::Leader => drop(log.maybe_increment_high_watermark(offset).map_err(refused!())?),
                }
                Answer::HighWatermark(HighWatermark { high_watermark: log.high_watermark().get() })
            }
            Operation::LogStart { offset, .. } => {
                changed(log.maybe_increment_log_start_offset(Offset(*offset)).map_err(refused!())?)
            }
            Operation::BecomeLeader { leader_epoch, .. } => {
                log.assign_epoch_start_offset(LeaderEpoch(*leader_epoch)).map_err(refused!())?;
                Answer::Done(Done {})
            }
            Operation::EndOffsetForEpoch { leader_epoch, .. } => {
                let found = log.end_offset_for_epoch(LeaderEpoch(*leader_epoch));
                Answer::EpochEnd(EpochEnd {
                    leader_epoch: found.and_then(|(epoch, _)| u32::try_from(epoch.get()).ok()),
                    end_offset: found.map(|(_, end)| end.get()),
                })
            }
            Operation::Roll { .. } => Answer::Rolled(Rolled { base_offset: log.roll(now).map_err(refused!())?.get() }),
            Operation::Flush { .. } => {
                log.flush().map_err(refused!())?;
                Answer::Done(Done {})
            }
            Operation::Snapshot { .. } => {
                log.take_snapshot().map_err(refused!())?;
                let files = cleanslate_log::psm::snapshot_files(log.storage());
                let files = files.map_err(|error| exception("KafkaStorageException", &error))?;
                Answer::Snapshot(LatestSnapshot { latest: files.last().map(|file| file.offset.get()) })
            }
            Operation::DeleteSnapshots { before, .. } => {
                log.delete_snapshots_before(Offset(*before)).map_err(refused!())?;
                Answer::Done(Done {})
            }
            Operation::Expire { now_ms, .. } => {
                log.remove_expired_producers(TimestampMs(*now_ms));
                Answer::Done(Done {})
            }
            Operation::Retention { .. } => {
                let segments = log.delete_old_segments(now).map_err(refused!())?;
                Answer::Retention(Retention { segments: u32::try_from(segments).unwrap_or(u32::MAX) })
            }
            Operation::Compact { first_dirty, first_uncleanable, now_ms, .. } => {
                let options = CleanOptions {
                    first_dirty: Offset(*first_dirty),
                    first_uncleanable: Offset(*first_uncleanable),
                    now: TimestampMs(*now_ms),
                    max_keys: MAX_KEYS,
                };
                Answer::Compacted(Compacted { next_dirty: log.compact(&options).map_err(refused!())?.get() })
            }
            Operation::RunTasks { .. } => Answer::Tasks(Tasks { tasks: Vec::new() }),
            Operation::State { .. } => Answer::Done(Done {}),
            other => return Err(protocol("unknown-operation", other.name())),
        })
    }

    /// Stops, starts and files.
    fn live(&mut self, operation: &Operation) -> Outcome {
        let name = operation.log().unwrap_or_default();
        match operation {
            Operation::Close { .. } => {
                let (log, _) = self.open(name)?;
                let closed = log.close_clean();
                self.stop(name)?;
                closed.map_err(refused!())?;
            }
            Operation::Crash { cuts, lost, .. } => {
                self.open(name)?;
                let storage = self.stop(name)?;
                damage(storage, cuts, lost).map_err(|error| exception("KafkaStorageException", &error))?;
            }
            Operation::Open { clean, recovery_point, log_start, now_ms, .. } => {
                let options = OpenOptions {
                    recovery: if *clean { Recovery::Clean } else { Recovery::Unclean },
                    recovery_point: Offset(*recovery_point),
                    log_start_offset: Offset(*log_start),
                };
                self.start(name, options, now_ms.map(TimestampMs))?;
            }
            Operation::Files { content, .. } => return self.files(name, *content),
            Operation::PutFile { file, content, .. } => {
                let bytes = Bytes::copy_from_slice(&content.0);
                match &mut self.replica(name)?.place {
                    Place::Closed(storage) => {
                        storage.replace(file, &bytes).map_err(|error| exception("KafkaStorageException", &error))?;
                    }
                    Place::Open(_) => return Err(protocol("log-open", format!("log {name} is open"))),
                }
            }
            _ => {
                self.replica(name)?;
                self.replicas.remove(name);
            }
        }
        Ok(Answer::Done(Done {}))
    }

    /// Lets go of an open log; returns its storage.
    fn stop(&mut self, name: &str) -> Result<&mut MemoryStorage, Failure> {
        let replica = self.replica(name)?;
        if let Place::Open(log) = &replica.place {
            let given = log.producer_state().guards_given();
            replica.earlier_guards = replica.earlier_guards.saturating_add(given);
            replica.place = Place::Closed(log.storage().clone());
        }
        match &mut replica.place {
            Place::Closed(storage) => Ok(storage),
            Place::Open(_) => Err(protocol("log-open", format!("log {name} is open"))),
        }
    }

    fn start(&mut self, name: &str, options: OpenOptions, now: Option<TimestampMs>) -> Result<(), Failure> {
        let replica = self.replica(name)?;
        let Place::Closed(storage) = &replica.place else {
            return Err(protocol("log-open", format!("log {name} is open")));
        };
        replica.now = now.unwrap_or(replica.now);
        let opened = PartitionLog::open(storage.clone(), replica.config.clone(), options, replica.now);
        let (log, _) = opened.map_err(refused!())?;
        replica.place = Place::Open(Box::new(log));
        Ok(())
    }

    fn files(&mut self, name: &str, content: bool) -> Outcome {
        let storage = match &self.replica(name)?.place {
            Place::Open(log) => log.storage(),
            Place::Closed(storage) => storage,
        };
        let failed = |error: cleanslate_log::storage::StorageError| exception("KafkaStorageException", &error);
        let mut files = Vec::new();
        for name in storage.names().map_err(failed)? {
            let bytes = storage.read_all(&name).map_err(failed)?.unwrap_or_default();
            files.push(FileEntry {
                size: bytes.len() as u64,
                // Content is compared as it is.
                sha256: String::new(),
                content: content.then(|| Hex::from(bytes.as_ref())),
                name,
            });
        }
        Ok(Answer::Files(Files { files }))
    }
}

pub(super) fn guard_number(guard: VerificationGuard, earlier: u64) -> u32 {
    if guard == VerificationGuard::SENTINEL { 0 } else { u32::try_from(guard.0.saturating_add(earlier)).unwrap_or(u32::MAX) }
}

fn appended(result: &AppendResult) -> Answer {
    let (base_offset, last_offset) = (result.first_offset.get(), result.last_offset.get());
    Answer::Append(if result.last_offset == Offset::UNKNOWN {
        Append::Nothing {}
    } else if result.duplicate {
        Append::Duplicate { base_offset, last_offset }
    } else {
        Append::Appended { base_offset, last_offset }
    })
}

fn damage(storage: &mut MemoryStorage, cuts: &[Cut], lost: &[String]) -> Result<(), cleanslate_log::storage::StorageError> {
    for cut in cuts {
        let len = storage.len(&cut.file)?.unwrap_or(0);
        storage.truncate(&cut.file, len.saturating_sub(cut.bytes))?;
    }
    for pattern in lost {
        for name in storage.names()? {
            let gone = pattern.strip_prefix('*').map_or(name == *pattern, |end| name.ends_with(end));
            if gone {
                storage.remove(&name)?;
            }
        }
    }
    Ok(())
}

/// The settings of the protocol as those of the log.
fn settings(config: &Config) -> LogConfig {
    let default = LogConfig::default();
    let size = |value: Option<i32>, default: usize| value.and_then(|v| usize::try_from(v).ok()).unwrap_or(default);
    let policy = config.cleanup_policy.as_deref().unwrap_or("delete");
    LogConfig {
        producer_id_expiration_ms: i64::from(config.producer_expiration_ms.unwrap_or(86_400_000)),
        transaction_verification: config.verification.unwrap_or(false),
        max_message_bytes: size(config.max_message_bytes, 1 << 20),
        segment_bytes: size(config.segment_bytes, 1 << 30),
        segment_ms: config.segment_ms.unwrap_or(default.segment_ms),
        segment_index_bytes: size(config.index_bytes, 4096),
        index_interval_bytes: size(config.index_interval_bytes, 4096),
        timestamp_after_max_ms: i64::MAX,
        timestamp_before_max_ms: i64::MAX,
        timestamp_type: match config.timestamp_type.as_deref() {
            Some("LogAppendTime") => cleanslate_log::record::TimestampType::LogAppendTime,
            _ => cleanslate_log::record::TimestampType::CreateTime,
        },
        compact: policy.contains("compact"),
        delete: policy.contains("delete"),
        retention_ms: config.retention_ms.unwrap_or(-1),
        retention_bytes: config.retention_bytes.unwrap_or(-1),
        delete_retention_ms: config.delete_retention_ms.unwrap_or(default.delete_retention_ms),
        ..default
    }
}
