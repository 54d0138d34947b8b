//! The stateright actors: one enum over producers, replicas, coordinators, controllers and the operator. They only carry messages to the
//! pure transitions of `replica`, `client` and `controller` and send what those return.

use std::borrow::Cow;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use stateright::actor::{Actor, Id, Out, model_timeout};

use crate::client::{self, Coordinator, Phase, Producer, ProducerConfig, ProducerKind};
use crate::controller::Controller;
use crate::design::Design;
use crate::ids::{Broker, Cluster};
use crate::message::{Msg, Request};
use crate::mirror::MirrorMeta;
use crate::replica::{Ask, Durable, Replica, ReplicaConfig};
use crate::source::{Act, Source, SourceConfig};
use crate::topology::{Command, ScriptLine};

/// Where the actors of a scenario are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Directory {
    /// The replicas: the first actors, by their broker.
    pub brokers: Vec<Broker>,
    /// The coordinator that serves each cluster, by [`Cluster::index`].
    pub coordinators: [Option<usize>; 4],
    /// The controller of each cluster.
    pub controllers: [Option<usize>; 4],
    /// The operator.
    pub operator: usize,
}

impl Directory {
    /// The actor of a broker.
    #[must_use]
    pub fn replica(&self, broker: Broker) -> Option<usize> {
        self.brokers.iter().position(|b| *b == broker)
    }

    /// The broker that an actor is, if it is one.
    #[must_use]
    pub fn broker(&self, actor: usize) -> Option<Broker> {
        self.brokers.get(actor).copied()
    }

    /// Whoever is asked first for the leader of a cluster's partition; requests follow the leadership from there.
    fn partition(&self, cluster: Cluster) -> Option<Id> {
        self.replica(Broker { cluster, number: 0 }).map(Id::from)
    }

    fn coordinator(&self, cluster: Cluster) -> Option<Id> {
        self.coordinators.get(cluster.index()).copied().flatten().map(Id::from)
    }

    fn controller(&self, cluster: Cluster) -> Option<Id> {
        self.controllers.get(cluster.index()).copied().flatten().map(Id::from)
    }
}

/// Which of the things that time brings can happen at all in a scenario.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Chances {
    /// Transactions may abort.
    pub aborts: bool,
    /// Batches and markers may be sent again.
    pub retries: bool,
    /// Batches may be given up.
    pub bumps: bool,
    /// Segments may roll.
    pub rolls: bool,
    /// Brokers may restart in good order.
    pub restarts: bool,
    /// An in-sync follower may be elected.
    pub elections: bool,
    /// A replica that is not in sync may be elected.
    pub unclean: bool,
}

/// What an actor is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// A client of one cluster.
    Producer(ProducerConfig),
    /// A broker's replica of the partition.
    Replica(Box<ReplicaConfig>),
    /// A source about which only its guarantee is known.
    Source(Box<SourceConfig>),
    /// A cluster's coordinator.
    Coordinator(Cluster),
    /// A cluster's controller.
    Controller {
        /// The cluster.
        cluster: Cluster,
        /// Whether it has a second replica.
        has_follower: bool,
        /// The cluster that it mirrors at the start.
        mirrors: Option<Cluster>,
        /// The rules.
        design: Design,
    },
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
    /// What may happen.
    pub chances: Chances,
}

/// An actor's state.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum NodeState {
    /// Of a producer.
    Producer(Producer),
    /// Of a replica.
    Replica(Box<Replica>),
    /// Of an arbitrary source.
    Source(Box<Source>),
    /// Of a coordinator.
    Coordinator(Coordinator),
    /// Of a controller.
    Controller(Controller),
    /// Of the operator: a bit for each line of the script that is done.
    Operator(u8),
}

impl NodeState {
    /// The replica, if it has one.
    #[must_use]
    pub fn replica(&self) -> Option<&Replica> {
        match self {
            Self::Replica(replica) => Some(replica),
            Self::Source(source) => Some(&source.replica),
            _ => None,
        }
    }

    /// The same, for a change.
    pub fn replica_mut(&mut self) -> Option<&mut Replica> {
        match self {
            Self::Replica(replica) => Some(replica),
            Self::Source(source) => Some(&mut source.replica),
            _ => None,
        }
    }
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
    /// A producer sends its batch, or asks for its marker, again.
    Retry,
    /// A producer gives its batch up and goes on with the next epoch.
    GiveUp,
    /// A log begins a new segment.
    Roll,
    /// A broker stops in good order and starts again.
    Restart,
    /// A controller makes the follower leader.
    Elect {
        /// Although it is not in sync.
        unclean: bool,
    },
    /// Something happens to the log of an arbitrary source.
    Source(Act),
}

impl Timer {
    /// Its name, for statistics.
    #[must_use]
    pub const fn kind(self) -> &'static str {
        match self {
            Self::NextStep => "NextStep",
            Self::EndTransaction { abort: false } => "EndTransaction COMMIT",
            Self::EndTransaction { abort: true } => "EndTransaction ABORT",
            Self::Retry => "Retry",
            Self::GiveUp => "GiveUp",
            Self::Roll => "Roll",
            Self::Restart => "Restart",
            Self::Elect { unclean: false } => "Elect",
            Self::Elect { unclean: true } => "Elect unclean",
            Self::Source(Act::Append(_)) => "Source appends",
            Self::Source(Act::Replicate(_)) => "Source replicates",
            Self::Source(Act::Raise(_)) => "Source raises its epoch",
            Self::Source(Act::Cut(_)) => "Source is cut",
        }
    }
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
            Role::Producer(config) => self.start_producer(config, out),
            Role::Coordinator(_) => NodeState::Coordinator(Coordinator::INITIAL),
            Role::Source(config) => NodeState::Source(Box::new(config.initial())),
            Role::Controller { has_follower, mirrors, .. } => self.start_controller(*has_follower, *mirrors, out),
            Role::Operator(script) => {
                let first = script.iter().enumerate().filter(|(_, line)| line.after.is_none());
                first.for_each(|(i, line)| self.command(i, line, out));
                NodeState::Operator(0)
            }
            Role::Replica(config) => {
                self.set_chances(out);
                let replica = match storage {
                    Some(saved) => {
                        self.tell_controller(config, Msg::Started, out);
                        config.recovered(&saved.0)
                    }
                    None => {
                        let mut replica = config.initial();
                        let asks = match replica.role {
                            crate::replica::Role::Leader => config.resume(&mut replica),
                            _ => config.fetches(&replica),
                        };
                        self.carry_out(config, &replica, None, asks, out);
                        replica
                    }
                };
                out.save(Saved(Arc::clone(&replica.durable)));
                NodeState::Replica(Box::new(replica))
            }
        }
    }

    fn on_msg(&self, _id: Id, state: &mut Cow<NodeState>, src: Id, msg: Msg, out: &mut Out<Self>) {
        match (&self.role, &**state) {
            (Role::Producer(config), NodeState::Producer(producer)) => {
                let mut producer = *producer;
                self.producer_msg(config, &mut producer, &msg, out);
                *state = Cow::Owned(NodeState::Producer(producer));
            }
            (Role::Coordinator(cluster), NodeState::Coordinator(coordinator)) => {
                let mut coordinator = *coordinator;
                self.coordinator_msg(*cluster, &mut coordinator, src, &msg, out);
                *state = Cow::Owned(NodeState::Coordinator(coordinator));
            }
            (Role::Controller { cluster, design, .. }, NodeState::Controller(controller)) => {
                let mut controller = *controller;
                self.controller_msg(*cluster, design, &mut controller, src, &msg, out);
                *state = Cow::Owned(NodeState::Controller(controller));
            }
            (Role::Operator(script), NodeState::Operator(done)) => {
                if let Msg::Done(line) = msg {
                    let next = script.iter().enumerate().filter(|(_, l)| l.after == Some(line));
                    next.for_each(|(i, l)| self.command(i, l, out));
                    *state = Cow::Owned(NodeState::Operator(done | 1_u8.checked_shl(u32::from(line)).unwrap_or(0)));
                }
            }
            (Role::Source(config), NodeState::Source(source)) => {
                let asks = match msg {
                    Msg::Fetch(request) => config.replica.serve_mirror(&source.replica, &request),
                    _ => None,
                };
                self.carry_out(&config.replica, &source.replica, Some(src), asks.unwrap_or_default(), out);
            }
            (Role::Replica(config), NodeState::Replica(replica)) => {
                let mut next = replica.clone();
                if let Some(asks) = self.replica_msg(config, &mut next, src, msg) {
                    self.carry_out(config, &next, Some(src), asks, out);
                    save_if_changed(replica, &next, out);
                    *state = Cow::Owned(NodeState::Replica(next));
                }
            }
            _ => {}
        }
    }

    fn on_timeout(&self, _id: Id, state: &mut Cow<NodeState>, timer: &Timer, out: &mut Out<Self>) {
        match (&self.role, &**state) {
            (Role::Producer(config), NodeState::Producer(producer)) => {
                let mut producer = *producer;
                self.producer_timeout(config, &mut producer, *timer, out);
                *state = Cow::Owned(NodeState::Producer(producer));
            }
            (Role::Controller { cluster, design, .. }, NodeState::Controller(controller)) => {
                let mut controller = *controller;
                self.set_chances(out);
                if let Timer::Elect { unclean } = timer
                    && let Some(told) = controller.elect(design, *unclean)
                {
                    self.tell(*cluster, told, out);
                    *state = Cow::Owned(NodeState::Controller(controller));
                }
            }
            (Role::Source(config), NodeState::Source(source)) => {
                if let Timer::Source(act) = timer
                    && let Some(next) = config.apply(source, *act)
                {
                    *state = Cow::Owned(NodeState::Source(Box::new(next)));
                }
            }
            (Role::Replica(config), NodeState::Replica(replica)) => {
                let mut next = replica.clone();
                let asks = match timer {
                    Timer::NextStep => config.next_step(&mut next),
                    Timer::Roll => {
                        self.set_chances(out);
                        if config.roll(&mut next).is_none() {
                            return;
                        }
                        Vec::new()
                    }
                    Timer::Restart => {
                        self.set_chances(out);
                        config.restart(&mut next);
                        self.tell_controller(config, Msg::Started, out);
                        out.cancel_timer(Timer::NextStep);
                        Vec::new()
                    }
                    _ => return,
                };
                self.carry_out(config, &next, None, asks, out);
                save_if_changed(replica, &next, out);
                *state = Cow::Owned(NodeState::Replica(next));
            }
            _ => {}
        }
    }

    fn name(&self) -> String {
        match &self.role {
            Role::Producer(config) => format!("producer {}", config.writer.0),
            Role::Replica(config) => format!("{}", config.broker),
            Role::Source(config) => format!("{}", config.replica.broker),
            Role::Coordinator(cluster) => format!("{cluster}'s coordinator"),
            Role::Controller { cluster, .. } => format!("{cluster}'s controller"),
            Role::Operator(_) => "operator".to_owned(),
        }
    }
}

fn save_if_changed(before: &Replica, after: &Replica, out: &mut Out<Node>) {
    if !Arc::ptr_eq(&before.durable, &after.durable) {
        out.save(Saved(Arc::clone(&after.durable)));
    }
}

/// Producers.
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
        if config.next_batch(producer).is_some() {
            self.send_in_flight(config, producer, false, out);
        }
        self.set_producer_timers(config, producer, out);
    }

    fn send_in_flight(&self, config: &ProducerConfig, producer: &Producer, resent: bool, out: &mut Out<Self>) {
        if let Some(leader) = self.directory.partition(config.cluster) {
            let batch = config.batch_in_flight(producer);
            out.send(leader, Msg::Produce(Request { batch, producer: self.actor_of(config), correlation: producer.sent, resent }));
        }
    }

    fn actor_of(&self, config: &ProducerConfig) -> u8 {
        u8::try_from(self.directory.operator + 1).unwrap_or(u8::MAX).saturating_add(config.writer.0)
    }

    /// A producer that waits for an answer may lose patience.
    fn set_producer_timers(&self, config: &ProducerConfig, producer: &Producer, out: &mut Out<Self>) {
        let waits = matches!(producer.phase, Phase::InFlight | Phase::Ending);
        let gives_up = producer.phase == Phase::InFlight && config.kind == ProducerKind::Idempotent;
        for (timer, wanted, possible) in
            [(Timer::Retry, waits, self.chances.retries), (Timer::GiveUp, gives_up, self.chances.bumps)]
        {
            if wanted && possible {
                out.set_timer(timer, model_timeout());
            } else if possible {
                out.cancel_timer(timer);
            }
        }
    }

    fn producer_msg(&self, config: &ProducerConfig, producer: &mut Producer, msg: &Msg, out: &mut Out<Self>) {
        let goes_on = match msg {
            Msg::ProducerIdIs(id) => {
                config.got_id(producer, *id);
                true
            }
            // An answer to an earlier copy comes too late.
            Msg::ProduceResult { outcome, correlation } if *correlation == producer.sent && producer.phase == Phase::InFlight => {
                config.got_result(producer, *outcome)
            }
            Msg::TxnEnded { ended, correlation } if *correlation == producer.sent && producer.phase == Phase::Ending => {
                config.transaction_ended(producer, *ended)
            }
            Msg::Lost { correlation } if *correlation == producer.sent && producer.waits_for(producer.sent.saturating_sub(1)) => {
                config.give_up(producer);
                true
            }
            Msg::Fenced if producer.phase == Phase::InTransaction => {
                out.cancel_timer(Timer::EndTransaction { abort: false });
                out.cancel_timer(Timer::EndTransaction { abort: true });
                config.give_up(producer);
                true
            }
            _ => return,
        };
        if goes_on {
            self.send_next(config, producer, out);
            return;
        }
        self.set_producer_timers(config, producer, out);
        if producer.phase == Phase::InTransaction {
            out.set_timer(Timer::EndTransaction { abort: false }, model_timeout());
            if self.chances.aborts {
                out.set_timer(Timer::EndTransaction { abort: true }, model_timeout());
            }
        }
    }

    fn producer_timeout(&self, config: &ProducerConfig, producer: &mut Producer, timer: Timer, out: &mut Out<Self>) {
        match timer {
            Timer::EndTransaction { abort } => {
                config.end_transaction(producer, !abort);
                self.ask_for_marker(config, producer, false, out);
                out.cancel_timer(Timer::EndTransaction { abort: !abort });
                self.set_producer_timers(config, producer, out);
            }
            Timer::Retry => {
                if producer.phase == Phase::Ending {
                    self.ask_for_marker(config, producer, true, out);
                } else {
                    self.send_in_flight(config, producer, true, out);
                }
                self.set_producer_timers(config, producer, out);
            }
            Timer::GiveUp => {
                config.give_up(producer);
                self.send_next(config, producer, out);
            }
            _ => {}
        }
    }

    fn ask_for_marker(&self, config: &ProducerConfig, producer: &Producer, resent: bool, out: &mut Out<Self>) {
        if let Some(coordinator) = self.directory.coordinator(config.cluster) {
            out.send(coordinator, Msg::EndTxn { producer: self.actor_of(config), end: config.end_of(producer), resent });
        }
    }
}

/// Coordinators, controllers, the operator.
impl Node {
    fn coordinator_msg(&self, cluster: Cluster, coordinator: &mut Coordinator, src: Id, msg: &Msg, out: &mut Out<Self>) {
        match msg {
            Msg::InitProducerId => out.send(src, Msg::ProducerIdIs(coordinator.hand_out())),
            Msg::EndTxn { producer, end, resent } => {
                if let Some(leader) = self.directory.partition(end.partition) {
                    let request = Request {
                        batch: client::marker(end, cluster),
                        producer: *producer,
                        correlation: end.correlation,
                        resent: *resent,
                    };
                    out.send(leader, Msg::WriteMarker(request));
                }
            }
            _ => {}
        }
    }

    fn start_controller(&self, has_follower: bool, mirrors: Option<Cluster>, out: &mut Out<Self>) -> NodeState {
        if has_follower {
            self.set_chances(out);
        }
        NodeState::Controller(Controller::initial(has_follower, MirrorMeta::initial(mirrors)))
    }

    fn controller_msg(
        &self,
        cluster: Cluster,
        design: &Design,
        controller: &mut Controller,
        src: Id,
        msg: &Msg,
        out: &mut Out<Self>,
    ) {
        let Some(writer) = self.directory.broker(usize::from(src)) else { return };
        let told = match msg {
            Msg::Started => controller.started(design, writer.number),
            Msg::FollowerInSync(epoch) => {
                controller.follower_in_sync(*epoch);
                Vec::new()
            }
            Msg::WhoLeads => controller.follow(writer.number),
            Msg::StoreMirror { epoch, mirror, done } => match controller.store(design, writer.number, *epoch, *mirror) {
                Some(told) => {
                    done.iter().for_each(|line| out.send(Id::from(self.directory.operator), Msg::Done(*line)));
                    told
                }
                None => Vec::new(),
            },
            Msg::RaiseEpoch { epoch, to } => controller.raise_epoch(*epoch, *to),
            _ => Vec::new(),
        };
        self.tell(cluster, told, out);
    }

    fn tell(&self, cluster: Cluster, told: Vec<(u8, Msg)>, out: &mut Out<Self>) {
        for (number, msg) in told {
            if let Some(replica) = self.directory.replica(Broker { cluster, number }) {
                out.send(Id::from(replica), msg);
            }
        }
    }

    fn store(&self, config: &ReplicaConfig, replica: &Replica, done: Option<u8>, out: &mut Out<Self>) {
        self.tell_controller(config, Msg::StoreMirror { epoch: replica.epoch, mirror: replica.mirror, done }, out);
    }

    fn tell_controller(&self, config: &ReplicaConfig, msg: Msg, out: &mut Out<Self>) {
        if let Some(controller) = self.directory.controller(config.broker.cluster) {
            out.send(controller, msg);
        }
    }

    fn command(&self, index: usize, line: &ScriptLine, out: &mut Out<Self>) {
        let (Some(leader), Ok(number)) = (self.directory.partition(line.at), u8::try_from(index)) else { return };
        out.send(
            leader,
            match line.command {
                Command::Stop => Msg::Stop(number),
                Command::Start(source) => Msg::Start { source, line: number },
            },
        );
    }
}

/// Replicas.
impl Node {
    /// Sets the timers of what may happen at any time to this actor.
    fn set_chances(&self, out: &mut Out<Self>) {
        let chances = match self.role {
            Role::Replica(_) => [(Timer::Roll, self.chances.rolls), (Timer::Restart, self.chances.restarts)],
            Role::Controller { .. } => {
                [(Timer::Elect { unclean: false }, self.chances.elections), (Timer::Elect { unclean: true }, self.chances.unclean)]
            }
            _ => return,
        };
        chances.iter().filter(|(_, possible)| *possible).for_each(|(timer, _)| out.set_timer(*timer, model_timeout()));
    }

    /// None if the message was not taken: it stays on its way, as a request that its sender repeats until it is taken.
    fn replica_msg(&self, config: &ReplicaConfig, replica: &mut Replica, src: Id, msg: Msg) -> Option<Vec<Ask>> {
        let sender = self.directory.broker(usize::from(src));
        match msg {
            Msg::Produce(request) => config.produce(replica, request),
            Msg::WriteMarker(request) => config.write_marker(replica, request),
            Msg::Fetch(request) if sender == Some(config.broker.other()) => config.serve_follower(replica, &request),
            Msg::Fetch(request) => config.serve_mirror(replica, &request),
            Msg::Fetched(response) if sender == Some(config.broker.other()) => Some(config.replicate(replica, response)),
            Msg::Fetched(response) => Some(config.mirror(replica, sender?, response)),
            Msg::Stop(line) => config.stop(replica, line),
            Msg::Start { source, line } => config.start(replica, source, line),
            Msg::DescribeMirror => config.describe(replica, sender?.cluster).map(|recorded| vec![Ask::Describe(recorded)]),
            Msg::LastMirroredIs(recorded) => Some(config.align(replica, recorded)),
            Msg::Lead { epoch, in_sync, mirror } => Some(config.lead(replica, epoch, in_sync, mirror)),
            Msg::Follow { epoch, mirror } => Some(config.follow(replica, epoch, mirror)),
            Msg::StepDown => Some(config.step_down(replica)),
            Msg::FollowerLost => config.follower_lost(replica),
            Msg::EpochIs { leader, epoch } => Some(config.epoch_is(replica, leader, epoch)),
            Msg::MirrorIs(mirror) => Some(config.mirror_is(replica, mirror)),
            _ => None,
        }
    }

    /// Sends what a handler asked for. `src` is the sender of the message that it answers.
    fn carry_out(&self, config: &ReplicaConfig, replica: &Replica, src: Option<Id>, asks: Vec<Ask>, out: &mut Out<Self>) {
        for ask in asks {
            match ask {
                Ask::NextStep => out.set_timer(Timer::NextStep, model_timeout()),
                Ask::Fetch(cluster, request) => {
                    // A follower asks the other replica, a mirror whoever leads at its source.
                    let leader = if cluster == config.broker.cluster {
                        self.directory.replica(config.broker.other()).map(Id::from)
                    } else {
                        self.directory.partition(cluster)
                    };
                    leader.into_iter().for_each(|id| out.send(id, Msg::Fetch(request)));
                }
                Ask::Respond(response) => src.into_iter().for_each(|id| out.send(id, Msg::Fetched(response.clone()))),
                Ask::DescribeMirror(source) => {
                    self.directory.partition(source).into_iter().for_each(|id| out.send(id, Msg::DescribeMirror));
                }
                Ask::Describe(recorded) => src.into_iter().for_each(|id| out.send(id, Msg::LastMirroredIs(recorded))),
                Ask::Answer(request, outcome, marker) => {
                    let correlation = request.correlation;
                    let answer = if marker {
                        Msg::TxnEnded { ended: !matches!(outcome, crate::effect::Outcome::Rejected(_)), correlation }
                    } else {
                        Msg::ProduceResult { outcome, correlation }
                    };
                    out.send(Id::from(usize::from(request.producer)), answer);
                }
                Ask::GiveUp(request) => {
                    out.send(Id::from(usize::from(request.producer)), Msg::Lost { correlation: request.correlation });
                }
                Ask::StoreMirror => self.store(config, replica, None, out),
                Ask::Done(line) => self.store(config, replica, Some(line), out),
                Ask::WhoLeads => self.tell_controller(config, Msg::WhoLeads, out),
                Ask::FollowerInSync => self.tell_controller(config, Msg::FollowerInSync(replica.epoch), out),
                Ask::RaiseEpoch(epoch, to) => self.tell_controller(config, Msg::RaiseEpoch { epoch, to }, out),
            }
        }
    }
}
