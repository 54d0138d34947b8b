//! What an adapter can do wrong.

use std::time::Duration;

use thiserror::Error;

/// An adapter that cannot be used any more: what happened, and what is known about the process. One line when shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdapterError {
    /// What happened.
    pub trouble: Box<Trouble>,
    /// How the process ended, if it ended by itself.
    pub exit: Option<String>,
    /// The last lines of its stderr, oldest first.
    pub stderr: Vec<String>,
}

impl AdapterError {
    /// A trouble without a process.
    #[must_use]
    pub fn new(trouble: Trouble) -> Self {
        Self { trouble: Box::new(trouble), exit: None, stderr: Vec::new() }
    }
}

impl std::fmt::Display for AdapterError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "adapter: {}", self.trouble)?;
        if let Some(exit) = &self.exit {
            write!(f, "; {exit}")?;
        }
        match self.stderr.last() {
            Some(line) => write!(f, "; last line of its stderr: {line}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for AdapterError {}

/// What an adapter did wrong, or what kept it from being asked.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Trouble {
    /// The command line cannot be read.
    #[error("the command {command:?} cannot be read: {why}")]
    Command {
        /// The command line.
        command: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The process did not start.
    #[error("{program} cannot be started: {why}")]
    Start {
        /// The program.
        program: String,
        /// The system's reason.
        why: String,
    },
    /// No reply in time.
    #[error("no reply to {operation} (id {id}) within {} ms", within.as_millis())]
    TimeOut {
        /// The operation that was not answered.
        operation: &'static str,
        /// The id of the request.
        id: u64,
        /// How long the runner waited.
        within: Duration,
    },
    /// The output ended.
    #[error("its output ended before the reply to {operation} (id {id})")]
    Ended {
        /// The operation that was not answered.
        operation: &'static str,
        /// The id of the request.
        id: u64,
    },
    /// The output ended in the middle of a line.
    #[error("its output ended in the middle of a line: {excerpt}")]
    CutLine {
        /// The beginning of the line.
        excerpt: String,
    },
    /// A line that is too long.
    #[error("a line of its output has more than {limit} bytes: {excerpt}")]
    LongLine {
        /// The limit.
        limit: usize,
        /// The beginning of the line.
        excerpt: String,
    },
    /// A line that is not a reply.
    #[error("expected the reply to {operation} (id {id}), found {excerpt}: {why}")]
    Garbage {
        /// The operation whose reply was due.
        operation: &'static str,
        /// The id of the request.
        id: u64,
        /// The beginning of the line.
        excerpt: String,
        /// What is wrong with it.
        why: String,
    },
    /// A reply to something else than what is due.
    #[error("expected the reply to {operation} (id {id}), found one to {found_operation} (id {found_id}): {excerpt}")]
    WrongReply {
        /// The operation whose reply was due.
        operation: &'static str,
        /// The id of the request.
        id: u64,
        /// The operation that was answered, or `null`.
        found_operation: String,
        /// The id that was answered, or `null`.
        found_id: String,
        /// The beginning of the line.
        excerpt: String,
    },
    /// A reply that nobody asked for.
    #[error("a line after its last reply: {excerpt}")]
    Unasked {
        /// The beginning of the line.
        excerpt: String,
    },
    /// The handshake failed.
    #[error("hello: {0}")]
    Hello(String),
    /// The goodbye was refused.
    #[error("bye: {0}")]
    Bye(String),
    /// The runner wants an operation or a feature that the adapter does not list.
    #[error("it does not list {0}")]
    NotListed(String),
    /// What the adapter says contradicts what it listed.
    #[error("it lists {listed}, but {found}")]
    Lie {
        /// The operation or feature.
        listed: String,
        /// What shows that it is not so.
        found: String,
    },
    /// The runner's own request is too long.
    #[error("a request of {bytes} bytes is longer than a line may be")]
    LongRequest {
        /// Its length.
        bytes: usize,
    },
    /// A request that cannot be written.
    #[error("the request {operation} cannot be written: {why}")]
    Request {
        /// The operation.
        operation: &'static str,
        /// The reason.
        why: String,
    },
    /// The process ended, and left something behind.
    #[error("it ended, but left a process behind that holds its output open")]
    LeftBehind,
    /// The process did not end as it should.
    #[error("it did not end with exit status 0 within {} ms after bye", within.as_millis())]
    Lingers {
        /// How long the runner waited.
        within: Duration,
    },
}
