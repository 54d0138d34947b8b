//! The conversation with an adapter.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::abilities::Abilities;
use super::error::{AdapterError, Trouble};
use super::launch::Launch;
use super::message::{MAX_LINE_BYTES, Operation, PROTOCOL, REQUIRED};
use super::process::{Output, Process, one_line};
use super::reply::{Answer, FailureKind, Greeting, Reply, ReplyLine};
use super::state::State;

/// Bytes of a bad line that are shown.
const EXCERPT_BYTES: usize = 120;
/// Characters of a message that are shown.
const MESSAGE_CHARS: usize = 200;

/// A request whose reply is due.
struct Pending {
    id: u64,
    operation: &'static str,
    state: bool,
    leaves_open: bool,
}

/// An adapter that has said hello. After an error it is dead, and every further call returns that error again.
pub struct Adapter {
    process: Process,
    time_out: Duration,
    next_id: u64,
    pending: VecDeque<Pending>,
    greeting: Greeting,
    abilities: Abilities,
    dead: Option<AdapterError>,
}

impl Adapter {
    /// Starts the process and shakes hands with it.
    ///
    /// # Errors
    /// When it does not start, does not answer in time, speaks another protocol, or lacks an operation that every adapter must have.
    pub fn start(launch: &Launch) -> Result<Self, AdapterError> {
        let greeting = Greeting {
            protocol: PROTOCOL,
            name: String::new(),
            version: String::new(),
            build: None,
            operations: vec!["hello".to_owned()],
            features: Vec::new(),
        };
        let mut adapter = Self {
            process: Process::start(launch)?,
            time_out: launch.time_out,
            next_id: 1,
            pending: VecDeque::new(),
            abilities: Abilities::new(&greeting.operations, &greeting.features),
            greeting,
            dead: None,
        };
        let runner = format!("cleanslate {}", env!("CARGO_PKG_VERSION"));
        let reply = adapter.call(&Operation::Hello { protocol: PROTOCOL, runner }, false)?;
        let wrong = match reply.outcome {
            Ok(Answer::Hello(greeting)) => match check(&greeting) {
                Ok(()) => {
                    adapter.abilities = Abilities::new(&greeting.operations, &greeting.features);
                    adapter.greeting = greeting;
                    return Ok(adapter);
                }
                Err(why) => why,
            },
            Ok(_) => "it is answered by something else".to_owned(),
            Err(failure) => shorten(&format!("{}: {}", failure.name, failure.message)),
        };
        Err(adapter.die(Trouble::Hello(wrong), false))
    }

    /// Who the adapter says that it is.
    #[must_use]
    pub fn greeting(&self) -> &Greeting {
        &self.greeting
    }

    /// How many requests have been sent.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.next_id.saturating_sub(1)
    }

    /// What the adapter lists.
    #[must_use]
    pub fn abilities(&self) -> &Abilities {
        &self.abilities
    }

    /// Sends a request without waiting; replies come from [`Self::receive`] in the order of the requests. What has not been read by the
    /// adapter is held in memory. `state` asks for the state of the log that the operation is on.
    ///
    /// # Errors
    /// When the adapter is dead, does not list the operation, or the request is too long. The latter two leave it alive.
    pub fn send(&mut self, operation: &Operation, state: bool) -> Result<(), AdapterError> {
        self.alive()?;
        let name = operation.name();
        if !self.abilities.knows(name) {
            return Err(AdapterError::new(Trouble::NotListed(format!("the operation {name}"))));
        }
        let id = self.next_id;
        let is_state = matches!(operation, Operation::State { .. });
        let asked = state && operation.is_on_a_log();
        let line = operation
            .to_line(id, asked && !is_state)
            .map_err(|e| AdapterError::new(Trouble::Request { operation: name, why: shorten(&e.to_string()) }))?;
        let bytes = line.len().saturating_sub(1);
        if bytes > MAX_LINE_BYTES {
            return Err(AdapterError::new(Trouble::LongRequest { bytes }));
        }
        self.next_id += 1;
        let state = asked || is_state;
        self.pending.push_back(Pending { id, operation: name, state, leaves_open: operation.leaves_open() });
        self.process.send(&line);
        Ok(())
    }

    /// The reply to the oldest request that has not been answered; none if there is no such request.
    ///
    /// # Errors
    /// When the adapter misbehaves; see [`Trouble`].
    pub fn receive(&mut self) -> Result<Option<Reply>, AdapterError> {
        self.alive()?;
        let Some(due) = self.pending.pop_front() else { return Ok(None) };
        let (id, operation) = (due.id, due.operation);
        let line = match self.process.next(self.time_out) {
            Ok(Some(Output::Line(line))) => line,
            Ok(Some(Output::TooLong(start))) => {
                return Err(self.die(Trouble::LongLine { limit: MAX_LINE_BYTES, excerpt: excerpt(&start) }, false));
            }
            Ok(Some(Output::Cut(start))) => return Err(self.die(Trouble::CutLine { excerpt: excerpt(&start) }, true)),
            Ok(None) => return Err(self.die(Trouble::Ended { operation, id }, true)),
            Err(_) => return Err(self.die(Trouble::TimeOut { operation, id, within: self.time_out }, false)),
        };
        self.read(&due, &line).map(Some).map_err(|trouble| self.die(trouble, false))
    }

    /// Sends one request and waits for its reply. Replies to earlier requests that have not been received are read, and lost.
    ///
    /// # Errors
    /// As [`Self::send`] and [`Self::receive`].
    pub fn call(&mut self, operation: &Operation, state: bool) -> Result<Reply, AdapterError> {
        self.send(operation, state)?;
        while self.pending.len() > 1 {
            self.receive()?;
        }
        let (operation, id) = (operation.name(), self.next_id);
        self.receive()?.ok_or_else(|| AdapterError::new(Trouble::Ended { operation, id }))
    }

    /// Says goodbye and waits for the end of the process.
    ///
    /// # Errors
    /// When the adapter misbehaves, prints more than its replies, or does not exit with status 0 in time.
    pub fn finish(mut self) -> Result<(), AdapterError> {
        if let Err(failure) = self.call(&Operation::Bye {}, false)?.outcome {
            let why = shorten(&format!("{}: {}", failure.name, failure.message));
            return Err(self.die(Trouble::Bye(why), false));
        }
        self.process.close_input();
        let began = Instant::now();
        match self.process.next(self.time_out) {
            Ok(None) => {}
            Ok(Some(Output::Line(line) | Output::TooLong(line) | Output::Cut(line))) => {
                return Err(self.die(Trouble::Unasked { excerpt: excerpt(&line) }, false));
            }
            Err(_) => {
                let ended = self.process.wait(Duration::ZERO).is_some_and(|status| status.success());
                let trouble = if ended { Trouble::LeftBehind } else { Trouble::Lingers { within: self.time_out } };
                return Err(self.die(trouble, false));
            }
        }
        match self.process.wait(self.time_out.saturating_sub(began.elapsed())) {
            Some(status) if status.success() => Ok(()),
            _ => Err(self.die(Trouble::Lingers { within: self.time_out }, false)),
        }
    }

    fn alive(&self) -> Result<(), AdapterError> {
        self.dead.clone().map_or(Ok(()), Err)
    }

    fn die(&mut self, trouble: Trouble, ended: bool) -> AdapterError {
        let error = self.process.diagnose(trouble, ended);
        self.dead = Some(error.clone());
        error
    }

    /// Reads a reply line and holds it against what was asked and what the adapter said of itself.
    fn read(&self, due: &Pending, line: &[u8]) -> Result<Reply, Trouble> {
        let (id, operation) = (due.id, due.operation);
        let garbage = |why: String| Trouble::Garbage { operation, id, excerpt: excerpt(line), why: shorten(&why) };
        let reply = ReplyLine::parse(line).map_err(garbage)?;
        if reply.id != Some(id) || reply.op.as_deref() != Some(operation) {
            return Err(Trouble::WrongReply {
                operation,
                id,
                found_operation: reply.op.map_or_else(|| "null".to_owned(), |op| shorten(&op)),
                found_id: reply.id.map_or_else(|| "null".to_owned(), |id| id.to_string()),
                excerpt: excerpt(line),
            });
        }
        let reply = reply.read().map_err(garbage)?;
        if let Err(failure) = &reply.outcome
            && failure.kind == FailureKind::Protocol
            && failure.name == "unknown-operation"
            && operation != "hello"
        {
            let listed = format!("the operation {operation}");
            return Err(Trouble::Lie { listed, found: "does not know it".to_owned() });
        }
        match &reply.state {
            Some(_) if !due.state => return Err(garbage("nobody asked for the state".to_owned())),
            None if due.state && due.leaves_open && reply.outcome.is_ok() => {
                return Err(garbage("the state is missing".to_owned()));
            }
            Some(state) => self.check_features(state)?,
            None => {}
        }
        Ok(reply)
    }

    fn check_features(&self, state: &State) -> Result<(), Trouble> {
        for (feature, is_there) in state.featured() {
            let listed = format!("the feature {feature}");
            match (self.abilities.has(feature), is_there) {
                (true, false) => return Err(Trouble::Lie { listed, found: "its state is without it".to_owned() }),
                (false, true) => {
                    return Err(Trouble::Lie { listed: format!("no {feature}"), found: "its state has it".to_owned() });
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// What every adapter must say in its greeting.
fn check(greeting: &Greeting) -> Result<(), String> {
    if greeting.protocol != PROTOCOL {
        return Err(format!("expected protocol {PROTOCOL}, found {}", greeting.protocol));
    }
    match REQUIRED.iter().find(|required| !greeting.operations.iter().any(|listed| listed == *required)) {
        Some(missing) => Err(format!("the operation {missing} is required of every adapter, and not listed")),
        None => Ok(()),
    }
}

/// The beginning of a line, safe to print.
fn excerpt(line: &[u8]) -> String {
    let text = one_line(line.get(..EXCERPT_BYTES).unwrap_or(line));
    if line.len() > EXCERPT_BYTES { format!("{text:?}...") } else { format!("{text:?}") }
}

/// Text of an adapter that is shown within a line.
fn shorten(text: &str) -> String {
    let line = one_line(text.as_bytes());
    let mut chars = line.chars();
    let mut start: String = chars.by_ref().take(MESSAGE_CHARS).collect();
    if chars.next().is_some() {
        start.push_str("...");
    }
    start
}
