//! A source about which nothing is known but its guarantee: the environment of one link (LINK-2).
//!
//! It is no cluster with producers, replicas and a coordinator. Its log does anything that G1 to G5 of `specs/chains.md` allow, and nothing
//! else, so it stands for every source that a mirror can have, however long the chain behind it. What its log is asked, it answers by
//! the rules of any leader ([`crate::replica`], [`crate::epochs`]).

use crate::batch::{Batch, Kind};
use crate::bounds::Bounds;
use crate::design::{Barrier, Design};
use crate::ids::{Broker, Cluster, CoordinatorEpoch, LeaderEpoch, Offset, ProducerEpoch, ProducerId, Sequence};
use crate::psm::Origin;
use crate::replica::{Replica, ReplicaConfig};
use crate::truth::{Author, Ghost, Known, Order, Writer};

/// How many real producers take turns under each id.
const WRITERS: u8 = 2;

/// The cluster that the barriers in the log name as their source. It is none of the link's: whoever was mirrored there is long gone.
const FORMER: Cluster = Cluster::D;

/// An assumption about the source that is dropped, to show that the step needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dropped {
    /// G3: a second real producer goes on under an id without a barrier.
    OneWriter,
    /// G4: sequences have gaps, epochs fall, transactions are open at a barrier.
    Order,
    /// G5: a log that was cut goes on under the epochs that it had.
    Epochs,
}

/// Which source it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceConfig {
    /// Its log's rules.
    pub replica: ReplicaConfig,
    /// How much happens.
    pub bounds: Bounds,
    /// The number of its first real producer.
    pub first_writer: Writer,
    /// What it does not keep.
    pub dropped: Option<Dropped>,
}

/// The source's state.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Source {
    /// Its log.
    pub replica: Replica,
    /// How many batches were written, those that were cut included.
    pub written: u8,
    /// How often the log was cut.
    pub cuts: u8,
    /// How often the epoch was raised for its own sake.
    pub raises: u8,
    /// The epoch that the next batch has at least: above all that a reader may have read and the log has lost.
    pub floor: LeaderEpoch,
}

/// Something that happens to the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Act {
    /// A batch is appended.
    Append(Batch),
    /// Readers may read up to here.
    Replicate(Offset),
    /// The leader epoch rises.
    Raise(LeaderEpoch),
    /// The log is cut here, as after an election.
    Cut(Offset),
}

impl SourceConfig {
    /// The source of a link, before anything has happened to it.
    #[must_use]
    pub fn new(design: Design, cluster: Cluster, bounds: Bounds, first_writer: Writer, dropped: Option<Dropped>) -> Self {
        let broker = Broker { cluster, number: 0 };
        let replica = ReplicaConfig { design, broker, has_peer: false, bulk: false, mirrors: None };
        Self { replica, bounds, first_writer, dropped }
    }

    /// The source before its first step.
    #[must_use]
    pub fn initial(&self) -> Source {
        Source { replica: self.replica.initial(), written: 0, cuts: 0, raises: 0, floor: LeaderEpoch::default() }
    }

    /// The ids under which its batches are stored. Behind a hop of a design that maps ids, the mapped ones are among them.
    #[must_use]
    pub fn ids(&self) -> Vec<ProducerId> {
        let mapped = self.replica.design.pid_mapping.apply(ProducerId::FIRST);
        let second = if mapped == ProducerId::FIRST { ProducerId(ProducerId::FIRST.0 + 1) } else { mapped };
        [ProducerId::FIRST, second].into_iter().take(usize::from(self.bounds.ids)).collect()
    }

    /// Its real producers.
    pub fn writers(&self) -> impl Iterator<Item = Writer> + use<> {
        let first = self.first_writer.0;
        (0..self.bounds.ids.saturating_mul(WRITERS)).map(move |number| Writer(first.saturating_add(number)))
    }

    /// Everything that may happen to the log now.
    #[must_use]
    pub fn acts(&self, source: &Source) -> Vec<Act> {
        let (end, high_watermark) = (source.replica.log_end(), source.replica.high_watermark);
        let mut acts = Vec::new();
        let unreplicated = end.0.saturating_sub(high_watermark.0);
        if source.written < self.bounds.source && (self.bounds.tail == 0 || unreplicated < self.bounds.tail) {
            acts.extend(self.batches(source).into_iter().map(Act::Append));
        }
        acts.extend((high_watermark.0..end.0).map(|at| Act::Replicate(Offset(at + 1))));
        if source.raises < self.bounds.raises {
            // One election, or several of which this log shows nothing.
            acts.extend([1, 2].map(|by| Act::Raise(LeaderEpoch(self.epoch(source).0.saturating_add(by)))));
        }
        if source.cuts < self.bounds.cuts {
            acts.extend((0..end.0).map(|at| Act::Cut(Offset(at))));
        }
        acts
    }

    /// What comes of it; none if the checks that every leader makes refuse it.
    #[must_use]
    pub fn apply(&self, source: &Source, act: Act) -> Option<Source> {
        let mut next = source.clone();
        match act {
            Act::Append(batch) => {
                next.written = next.written.saturating_add(1);
                let origin = match self.dropped {
                    // No leader would take it.
                    Some(Dropped::Order) => Origin::Replication,
                    _ => origin(&source.replica, &batch),
                };
                if !self.replica.append_at_source(&mut next.replica, batch, origin) {
                    return None;
                }
                if self.bounds.tail == 0 {
                    let end = next.replica.log_end();
                    ReplicaConfig::replicate_at_source(&mut next.replica, end);
                }
            }
            Act::Replicate(to) => ReplicaConfig::replicate_at_source(&mut next.replica, to),
            Act::Raise(to) => {
                next.raises = next.raises.saturating_add(1);
                ReplicaConfig::raise_at_source(&mut next.replica, to);
            }
            Act::Cut(to) => {
                next.cuts = next.cuts.saturating_add(1);
                if self.dropped != Some(Dropped::Epochs) {
                    next.floor = self.epoch(source).next();
                }
                self.replica.cut_at_source(&mut next.replica, to);
            }
        }
        Some(next)
    }

    /// The epoch of the next batch.
    fn epoch(&self, source: &Source) -> LeaderEpoch {
        source.replica.epoch.max(source.floor)
    }

    /// Every batch that may come next.
    fn batches(&self, source: &Source) -> Vec<Batch> {
        let order = Order::behind(&source.replica.durable.log);
        let mut batches = Vec::new();
        for (number, id) in self.ids().into_iter().enumerate() {
            let first = self.first_writer.0.saturating_add(u8::try_from(number).unwrap_or(0).saturating_mul(WRITERS));
            let writers = (0..WRITERS).map(|w| Writer(first.saturating_add(w)));
            match order.known().iter().find(|known| known.id == id) {
                Some(known) => batches.extend(self.next_of_id(source, known, writers)),
                None => batches.extend(writers.flat_map(|writer| self.first_of_id(source, id, writer))),
            }
        }
        let open = order.known().iter().any(|k| k.open) && self.dropped != Some(Dropped::Order);
        if self.replica.design.barrier == Barrier::OnStop && !open {
            let author = Author { writer: None, cluster: self.replica.broker.cluster, serial: serial(source) };
            batches.push(Batch { leader_epoch: self.epoch(source), ..Batch::barrier(FORMER, Ghost::new(author)) });
        }
        batches
    }

    /// A producer begins under an id of which nothing is known: at the beginning of what it writes, or in the middle.
    fn first_of_id(&self, source: &Source, id: ProducerId, writer: Writer) -> Vec<Batch> {
        let starts = [(ProducerEpoch(0), Sequence(0)), (ProducerEpoch(1), Sequence(1))];
        let data = |(epoch, sequence)| {
            [false, true].map(|transactional| self.batch(source, id, epoch, sequence, Kind::Data { transactional }, writer))
        };
        starts.into_iter().flat_map(data).collect()
    }

    /// A producer goes on under its id.
    fn next_of_id(&self, source: &Source, known: &Known, writers: impl Iterator<Item = Writer>) -> Vec<Batch> {
        let Some(writer) = known.writer else { return Vec::new() };
        let next = Sequence(known.last.map_or(0, |last| last.0.saturating_add(1)));
        let newer = ProducerEpoch(known.epoch.0.saturating_add(1));
        let data = |epoch, sequence, transactional, writer| {
            self.batch(source, known.id, epoch, sequence, Kind::Data { transactional }, writer)
        };
        let mut batches = vec![data(known.epoch, next, true, writer)];
        if known.open {
            batches.extend(self.ends(source, known, newer, writer));
        } else {
            batches.push(data(known.epoch, next, false, writer));
            batches.extend([true, false].map(|transactional| data(newer, Sequence(0), transactional, writer)));
        }
        if self.dropped == Some(Dropped::OneWriter) {
            batches.extend(writers.filter(|w| *w != writer).map(|w| data(known.epoch, next, known.open, w)));
        }
        if self.dropped == Some(Dropped::Order) {
            batches.push(data(known.epoch, Sequence(next.0.saturating_add(1)), known.open, writer));
            batches.push(data(ProducerEpoch(known.epoch.0.saturating_sub(1).max(0)), Sequence(0), known.open, writer));
        }
        batches
    }

    /// The ends of an open transaction: of transaction version 2, with the next epoch, and what a stop writes, with the same.
    fn ends(&self, source: &Source, known: &Known, newer: ProducerEpoch, writer: Writer) -> Vec<Batch> {
        // Coordinators of different former clusters do not agree on their epochs.
        let own = CoordinatorEpoch(if writer.0.saturating_sub(self.first_writer.0).is_multiple_of(WRITERS) { 3 } else { 0 });
        let stop = known.coordinator.max(CoordinatorEpoch(0));
        let ends =
            [(newer, true, own.max(known.coordinator)), (newer, false, own.max(known.coordinator)), (known.epoch, false, stop)];
        let marker = |(epoch, commit, coordinator_epoch)| Batch {
            // A marker is numbered behind the newest batch of its transaction, since batches have every second number; that of a stop
            // comes after all that its producer writes, and no two of them are one.
            author: self.author(writer, if epoch == newer { known.serial.saturating_add(1) } else { u8::MAX - source.written }),
            ..self.batch(source, known.id, epoch, Sequence(-1), Kind::Marker { commit, coordinator_epoch }, writer)
        };
        ends.into_iter().map(marker).collect()
    }

    fn author(&self, writer: Writer, serial: u8) -> Ghost<Author> {
        Ghost::new(Author { writer: Some(writer), cluster: self.replica.broker.cluster, serial })
    }

    fn batch(
        &self,
        source: &Source,
        id: ProducerId,
        epoch: ProducerEpoch,
        sequence: Sequence,
        kind: Kind,
        writer: Writer,
    ) -> Batch {
        Batch {
            producer_id: id,
            producer_epoch: epoch,
            sequence,
            kind,
            leader_epoch: self.epoch(source),
            author: self.author(writer, serial(source)),
        }
    }
}

/// The number of the next batch: no two batches have the same, also if one of them was cut.
const fn serial(source: &Source) -> u8 {
    source.written.saturating_mul(2)
}

/// Whose append it is. A stop ends a transaction with the producer's own epoch.
fn origin(replica: &Replica, batch: &Batch) -> Origin {
    match batch.kind {
        Kind::Data { .. } => Origin::Client,
        Kind::Marker { .. } if replica.psm.entry(batch.producer_id).is_some_and(|e| e.epoch == batch.producer_epoch) => {
            Origin::StoppingMirror
        }
        Kind::Marker { .. } => Origin::Coordinator,
        Kind::Barrier { .. } => Origin::StoppingMirror,
    }
}
