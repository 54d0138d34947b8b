//! The adapter's process: three threads carry its input, its output and its stderr, so that no wait here is without an end.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::error::{AdapterError, Trouble};
use super::launch::Launch;
use super::message::MAX_LINE_BYTES;

/// Names the adapter's working directory.
const DIRECTORY: &str = "CLEANSLATE_ADAPTER_DIR";
/// Lines of stderr that are kept, and bytes of each.
const STDERR_LINES: usize = 20;
const STDERR_LINE_BYTES: u64 = 400;
/// Lines of output that wait to be looked at; behind them, the adapter is made to wait.
const WAITING_LINES: usize = 64;
/// Bytes of requests that are held back until a reply is waited for: one wake of each side for all of them.
const HELD_BYTES: usize = 1 << 16;
/// How long a process may take to end after its output ended, and its stderr after the process.
const GRACE: Duration = Duration::from_millis(500);
const POLL: Duration = Duration::from_millis(2);

/// Something that came from the adapter's stdout.
pub(super) enum Output {
    /// A line, without its line feed.
    Line(Vec<u8>),
    /// More than a line may have: its beginning. Nothing comes after it.
    TooLong(Vec<u8>),
    /// The beginning of a line, and the end of the output.
    Cut(Vec<u8>),
}

/// A running adapter. Dropping it kills the process, reaps it, and deletes its files.
pub(super) struct Process {
    child: Child,
    input: Option<Sender<Vec<u8>>>,
    /// Lines that have been sent by the caller, and not yet handed to the thread that writes them.
    held: Vec<u8>,
    output: Receiver<Output>,
    stderr: Arc<Mutex<VecDeque<String>>>,
    stderr_ended: Receiver<()>,
    directory: PathBuf,
}

impl Process {
    pub(super) fn start(launch: &Launch) -> Result<Self, AdapterError> {
        let (program, arguments) = launch
            .words
            .split_first()
            .ok_or_else(|| AdapterError::new(Trouble::Command { command: String::new(), why: "it is empty" }))?;
        let shown = one_line(program.as_bytes());
        let fail = |why: String| AdapterError::new(Trouble::Start { program: shown.clone(), why });
        let directory = make_directory().map_err(|e| fail(format!("no directory for its files: {e}")))?;
        let spawned = Command::new(program)
            .args(arguments)
            .env(DIRECTORY, &directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let mut child = match spawned {
            Ok(child) => child,
            Err(e) => {
                remove(&directory);
                return Err(fail(e.to_string()));
            }
        };
        let (input, to_write) = channel();
        let (lines, output) = sync_channel(WAITING_LINES);
        let (ended, stderr_ended) = channel();
        let stderr = Arc::new(Mutex::new(VecDeque::new()));
        let kept = Arc::clone(&stderr);
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        // From here on, dropping it cleans up.
        let process = Self { child, input: Some(input), held: Vec::new(), output, stderr, stderr_ended, directory };
        let (Some(stdin), Some(stdout), Some(errors)) = pipes else { return Err(fail("it has no pipes".to_owned())) };
        spawn("adapter-input", move || write_all(stdin, &to_write))
            .and_then(|()| spawn("adapter-output", move || read_lines(stdout, &lines)))
            .and_then(|()| spawn("adapter-stderr", move || keep_last(errors, &kept, &ended)))
            .map_err(|e| fail(format!("no thread for its pipes: {e}")))?;
        Ok(process)
    }

    /// Hands a line to the process: at the latest when the next piece of output is waited for. A process that has ended is noticed by its output.
    pub(super) fn send(&mut self, line: &[u8]) {
        self.held.extend_from_slice(line);
        if self.held.len() >= HELD_BYTES {
            self.hand_over();
        }
    }

    fn hand_over(&mut self) {
        if let Some(input) = self.input.as_ref().filter(|_| !self.held.is_empty()) {
            // An error means that the writer has seen the pipe close.
            let _ = input.send(std::mem::take(&mut self.held));
        }
    }

    /// Closes the process's input after what was sent.
    pub(super) fn close_input(&mut self) {
        self.hand_over();
        self.input = None;
    }

    /// The next piece of output: `Ok(None)` at its end, an error when the time is over.
    pub(super) fn next(&mut self, within: Duration) -> Result<Option<Output>, RecvTimeoutError> {
        self.hand_over();
        match self.output.recv_timeout(within) {
            Ok(output) => Ok(Some(output)),
            Err(RecvTimeoutError::Disconnected) => Ok(None),
            Err(RecvTimeoutError::Timeout) => Err(RecvTimeoutError::Timeout),
        }
    }

    /// How the process ended, if it does so in time.
    pub(super) fn wait(&mut self, within: Duration) -> Option<ExitStatus> {
        let began = Instant::now();
        loop {
            match self.child.try_wait() {
                Ok(None) if began.elapsed() < within => std::thread::sleep(POLL),
                Ok(status) => return status,
                Err(_) => return None,
            }
        }
    }

    /// Ends the process and tells what is known about it. `ended`: it seems to have ended by itself, and its exit status is worth a wait.
    pub(super) fn diagnose(&mut self, trouble: Trouble, ended: bool) -> AdapterError {
        let status = self.wait(if ended { GRACE } else { Duration::ZERO });
        self.kill();
        // Nothing is sent but the end of the thread: an error is what is waited for. A grandchild may hold the pipe open, hence the limit.
        let _ = self.stderr_ended.recv_timeout(GRACE);
        let stderr = self.stderr.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect();
        AdapterError { trouble: Box::new(trouble), exit: status.map(|s| format!("it ended with {s}")), stderr }
    }

    fn kill(&mut self) {
        // Both fail only for a process that has been reaped already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
        remove(&self.directory);
    }
}

/// An empty directory of this process's own, in memory where the system has such.
fn make_directory() -> std::io::Result<PathBuf> {
    static MADE: AtomicU64 = AtomicU64::new(0);
    let name = || format!("cleanslate-adapter-{}-{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
    // A name may be left over from a process that was killed, whose id came again.
    let mut last = std::io::Error::other("no free name");
    for parent in [PathBuf::from("/dev/shm"), std::env::temp_dir()] {
        for _ in 0..100 {
            let directory = parent.join(name());
            match std::fs::create_dir(&directory) {
                Ok(()) => return Ok(directory),
                Err(e) => last = e,
            }
            if last.kind() != std::io::ErrorKind::AlreadyExists {
                break;
            }
        }
    }
    Err(last)
}

fn remove(directory: &PathBuf) {
    // What cannot be deleted is left to the system: there is nobody to tell.
    let _ = std::fs::remove_dir_all(directory);
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    std::thread::Builder::new().name(name.to_owned()).spawn(work).map(drop)
}

fn write_all(mut pipe: impl Write, lines: &Receiver<Vec<u8>>) {
    while let Ok(first) = lines.recv() {
        let mut bytes = first;
        // What has been sent meanwhile goes out together.
        while bytes.len() < MAX_LINE_BYTES {
            match lines.try_recv() {
                Ok(more) => bytes.extend(more),
                Err(_) => break,
            }
        }
        if pipe.write_all(&bytes).and_then(|()| pipe.flush()).is_err() {
            return;
        }
    }
}

fn read_lines(pipe: impl Read, lines: &SyncSender<Output>) {
    let mut pipe = BufReader::with_capacity(1 << 16, pipe);
    loop {
        let mut line = Vec::new();
        // One more than a line may have: its line feed, or what shows that it is too long.
        let limit = u64::try_from(MAX_LINE_BYTES).unwrap_or(u64::MAX).saturating_add(1);
        let read = pipe.by_ref().take(limit).read_until(b'\n', &mut line);
        let output = match (read, line.pop()) {
            (Ok(_), Some(b'\n')) => Output::Line(line),
            (Ok(_), Some(last)) => {
                line.push(last);
                if line.len() > MAX_LINE_BYTES { Output::TooLong(line) } else { Output::Cut(line) }
            }
            (Ok(_), None) | (Err(_), _) => return,
        };
        let is_last = !matches!(output, Output::Line(_));
        if lines.send(output).is_err() || is_last {
            return;
        }
    }
}

fn keep_last(pipe: impl Read, kept: &Mutex<VecDeque<String>>, _ended: &Sender<()>) {
    let mut pipe = BufReader::new(pipe);
    loop {
        let mut line = Vec::new();
        match pipe.by_ref().take(STDERR_LINE_BYTES).read_until(b'\n', &mut line) {
            Ok(1..) => {}
            Ok(0) | Err(_) => return,
        }
        let text = one_line(&line);
        if !text.is_empty() {
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            if kept.len() == STDERR_LINES {
                kept.pop_front();
            }
            kept.push_back(text);
        }
        // Of a long line the beginning is enough.
        if !line.ends_with(b"\n") && pipe.skip_until(b'\n').is_err() {
            return;
        }
    }
}

/// Bytes of an adapter as one line that is safe to print.
pub(super) fn one_line(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.trim_end().chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
