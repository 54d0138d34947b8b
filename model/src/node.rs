//! The stateright actors: one enum over producers, replicas, coordinators and the operator. They only carry messages to the pure
//! transitions of `replica` and `client` and send what those return.

use std::borrow::Cow;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use stateright::actor::{Actor, Id, Out, model_timeout};

use crate::client::{self, Coordinator, Phase, Producer, ProducerConfig, ProducerKind};
use crate::ids::Cluster;
use crate::message::Msg;
use crate::replica::{Ask, Durable, Replica, ReplicaConfig, Served};
use crate::topology::{Command, ScriptLine};

/// Where the actors of a scenario are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Directory {
    /// The replica of each cluster, by [`Cluster::index`].
    pub replicas: [Option<usize>; 4],
    /// The coordinator of each cluster.
    pub coordinators: [Option<usize>; 4],
    /// The operator.
    pub operator: usize,
}

impl Directory {
    fn replica(&self, cluster: Cluster) -> Option<Id> {
        self.replicas.get(cluster.index()).copied().flatten().map(Id::from)
    }

    fn coordinator(&self, cluster: Cluster) -> Option<Id> {
        self.coordinators.get(cluster.index()).copied().flatten().map(Id::from)
    }
}

/// What an actor is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// A client of one cluster.
    Producer {
        /// Its configuration.
        config: ProducerConfig,
        /// Whether its transactions may abort.
        aborts: bool,
    },
    /// A cluster's replica of the partition.
    Replica(Box<ReplicaConfig>),
    /// A cluster's coordinator.
    Coordinator(Cluster),
    /// The operator with the script, cut to the number of commands that the bounds allow.
    Operator(Vec<ScriptLine>),
}

/// An actor of a scenario.
#[derive(Clone, Debug)]
pub struct Node {
    /// What it is.
    pub role: Role,
    /// Where the others are.
    pub directory: Arc<Directory>,
}

/// An actor's state.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum NodeState {
    /// Of a producer.
    Producer(Producer),
    /// Of a replica.
    Replica(Box<Replica>),
    /// Of a coordinator.
    Coordinator(Coordinator),
    /// Of the operator: a bit for each line of the script that is done.
    Operator(u8),
}

/// A timer: something that an actor may do by itself at any time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Timer {
    /// The next durable step of a stop or start sequence.
    NextStep,
    /// A producer ends its transaction.
    EndTransaction {
        /// ABORT rather than COMMIT.
        abort: bool,
    },
}

/// What a replica finds when it starts again.
///
/// A replica's state always holds the same [`Durable`] as its storage, also while it is down, so the hash of the state covers it: adding
/// it to the hash of the system a second time would only cost time. A test checks that the two are never different.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Saved(pub Arc<Durable>);

impl Hash for Saved {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

impl Actor for Node {
    type Msg = Msg;
    type Timer = Timer;
    type State = NodeState;
    type Storage = Saved;
    type Random = ();

    fn on_start(&self, _id: Id, storage: &Option<Saved>, out: &mut Out<Self>) -> NodeState {
        match &self.role {
            Role::Producer { config, .. } => self.start_producer(config, out),
            Role::Coordinator(_) => NodeState::Coordinator(Coordinator::INITIAL),
            Role::Operator(script) => {
                let first = script.iter().enumerate().filter(|(_, line)| line.after.is_none());
                first.for_each(|(i, line)| self.command(i, line, out));
                NodeState::Operator(0)
            }
            Role::Replica(config) => {
                let replica = storage.as_ref().map_or_else(|| config.initial(), |saved| config.recovered(&saved.0));
                out.save(Saved(Arc::clone(&replica.durable)));
                self.ask(config.resume(&replica), out);
                NodeState::Replica(Box::new(replica))
            }
        }
    }

    fn on_msg(&self, _id: Id, state: &mut Cow<NodeState>, src: Id, msg: Msg, out: &mut Out<Self>) {
        match (&self.role, &**state) {
            (Role::Producer { config, aborts }, NodeState::Producer(producer)) => {
                let mut producer = *producer;
                self.producer_msg(config, *aborts, &mut producer, msg, out);
                *state = Cow::Owned(NodeState::Producer(producer));
            }
            (Role::Coordinator(cluster), NodeState::Coordinator(coordinator)) => {
                let mut coordinator = *coordinator;
                self.coordinator_msg(*cluster, &mut coordinator, src, msg, out);
                *state = Cow::Owned(NodeState::Coordinator(coordinator));
            }
            (Role::Operator(script), NodeState::Operator(done)) => {
                if let Msg::Done(line) = msg {
                    let next = script.iter().enumerate().filter(|(_, l)| l.after == Some(line));
                    next.for_each(|(i, l)| self.command(i, l, out));
                    *state = Cow::Owned(NodeState::Operator(done | 1_u8.checked_shl(u32::from(line)).unwrap_or(0)));
                }
            }
            (Role::Replica(config), NodeState::Replica(replica)) => {
                let mut next = replica.clone();
                if self.replica_msg(config, &mut next, src, msg, out) {
                    save_if_changed(replica, &next, out);
                    *state = Cow::Owned(NodeState::Replica(next));
                }
            }
            _ => {}
        }
    }

    fn on_timeout(&self, _id: Id, state: &mut Cow<NodeState>, timer: &Timer, out: &mut Out<Self>) {
        match (&self.role, &**state, timer) {
            (Role::Producer { config, .. }, NodeState::Producer(producer), Timer::EndTransaction { abort }) => {
                let mut producer = *producer;
                let (next_epoch, author) = config.end_transaction(&mut producer);
                if let Some(coordinator) = self.directory.coordinator(config.cluster) {
                    out.send(coordinator, Msg::EndTxn { commit: !*abort, id: producer.id, next_epoch, author });
                }
                out.cancel_timer(Timer::EndTransaction { abort: !*abort });
                *state = Cow::Owned(NodeState::Producer(producer));
            }
            (Role::Replica(config), NodeState::Replica(replica), Timer::NextStep) => {
                let mut next = replica.clone();
                let asks = config.next_step(&mut next);
                self.ask(asks, out);
                save_if_changed(replica, &next, out);
                *state = Cow::Owned(NodeState::Replica(next));
            }
            _ => {}
        }
    }

    fn name(&self) -> String {
        match &self.role {
            Role::Producer { config, .. } => format!("producer {}", config.writer.0),
            Role::Replica(config) => format!("{}", config.cluster),
            Role::Coordinator(cluster) => format!("{cluster}'s coordinator"),
            Role::Operator(_) => "operator".to_owned(),
        }
    }
}

fn save_if_changed(before: &Replica, after: &Replica, out: &mut Out<Node>) {
    if !Arc::ptr_eq(&before.durable, &after.durable) {
        out.save(Saved(Arc::clone(&after.durable)));
    }
}

impl Node {
    fn start_producer(&self, config: &ProducerConfig, out: &mut Out<Self>) -> NodeState {
        let mut producer = config.initial();
        if config.kind == ProducerKind::Plain {
            self.send_next(config, &mut producer, out);
        } else if let Some(coordinator) = self.directory.coordinator(config.cluster) {
            out.send(coordinator, Msg::InitProducerId);
        }
        NodeState::Producer(producer)
    }

    fn send_next(&self, config: &ProducerConfig, producer: &mut Producer, out: &mut Out<Self>) {
        if let (Some(batch), Some(leader)) = (config.next_batch(producer), self.directory.replica(config.cluster)) {
            out.send(leader, Msg::Produce(batch));
        }
    }

    fn producer_msg(&self, config: &ProducerConfig, aborts: bool, producer: &mut Producer, msg: Msg, out: &mut Out<Self>) {
        let goes_on = match msg {
            Msg::ProducerIdIs(id) => {
                config.got_id(producer, id);
                true
            }
            Msg::ProduceResult(outcome) => config.got_result(producer, outcome),
            Msg::TxnEnded { ended } => config.transaction_ended(producer, ended),
            _ => false,
        };
        if goes_on {
            self.send_next(config, producer, out);
        } else if producer.phase == Phase::InTransaction {
            out.set_timer(Timer::EndTransaction { abort: false }, model_timeout());
            if aborts {
                out.set_timer(Timer::EndTransaction { abort: true }, model_timeout());
            }
        }
    }

    fn coordinator_msg(&self, cluster: Cluster, coordinator: &mut Coordinator, src: Id, msg: Msg, out: &mut Out<Self>) {
        match msg {
            Msg::InitProducerId => out.send(src, Msg::ProducerIdIs(coordinator.hand_out())),
            Msg::EndTxn { commit, id, next_epoch, author } => {
                if let (Some(leader), Ok(producer)) = (self.directory.replica(cluster), u8::try_from(usize::from(src))) {
                    let marker = client::marker(commit, id, next_epoch, cluster, author);
                    out.send(leader, Msg::WriteMarker { marker, producer });
                }
            }
            Msg::MarkerResult { outcome, producer } => {
                let ended = !matches!(outcome, crate::effect::Outcome::Rejected(_));
                out.send(Id::from(usize::from(producer)), Msg::TxnEnded { ended });
            }
            _ => {}
        }
    }

    /// True if the message was taken; otherwise it stays on its way, as a request that its sender repeats until it is taken.
    fn replica_msg(&self, config: &ReplicaConfig, replica: &mut Replica, src: Id, msg: Msg, out: &mut Out<Self>) -> bool {
        let asks = match msg {
            Msg::Produce(batch) => {
                let Some(outcome) = config.produce(replica, batch) else { return false };
                out.send(src, Msg::ProduceResult(outcome));
                None
            }
            Msg::WriteMarker { marker, producer } => {
                let Some(outcome) = config.write_marker(replica, marker) else { return false };
                out.send(src, Msg::MarkerResult { outcome, producer });
                None
            }
            Msg::Fetch(offset) => {
                match config.serve_fetch(replica, offset) {
                    Some(Served::Batch(batch)) => out.send(src, Msg::Fetched(offset, batch)),
                    Some(Served::OutOfRange(end)) => out.send(src, Msg::FetchOutOfRange(end)),
                    None => return false,
                }
                None
            }
            Msg::Fetched(offset, batch) => config.fetched(replica, offset, batch),
            Msg::FetchOutOfRange(end) => config.out_of_range(replica, end),
            Msg::Stop(line) => {
                let ask = config.stop(replica, line);
                if ask.is_none() {
                    return false;
                }
                ask
            }
            Msg::Start { source, line } => {
                let ask = config.start(replica, source, line);
                if ask.is_none() {
                    return false;
                }
                ask
            }
            Msg::DescribeMirror => {
                out.send(src, Msg::LastMirroredOffsetIs(replica.durable.last_mirrored_offset));
                None
            }
            Msg::LastMirroredOffsetIs(offset) => config.align(replica, offset),
            _ => return false,
        };
        self.ask(asks, out);
        true
    }

    fn ask(&self, asks: impl IntoIterator<Item = Ask>, out: &mut Out<Self>) {
        for ask in asks {
            match ask {
                Ask::NextStep => out.set_timer(Timer::NextStep, model_timeout()),
                Ask::Fetch(source, offset) => {
                    self.directory.replica(source).into_iter().for_each(|id| out.send(id, Msg::Fetch(offset)));
                }
                Ask::DescribeMirror(source) => {
                    self.directory.replica(source).into_iter().for_each(|id| out.send(id, Msg::DescribeMirror));
                }
                Ask::Done(line) => out.send(Id::from(self.directory.operator), Msg::Done(line)),
            }
        }
    }

    fn command(&self, index: usize, line: &ScriptLine, out: &mut Out<Self>) {
        let (Some(replica), Ok(number)) = (self.directory.replica(line.at), u8::try_from(index)) else { return };
        out.send(
            replica,
            match line.command {
                Command::Stop => Msg::Stop(number),
                Command::Start(source) => Msg::Start { source, line: number },
            },
        );
    }
}
