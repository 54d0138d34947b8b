//! Adapters made of a few lines of shell.

use std::time::Duration;

use cleanslate_conformance::adapter::{Adapter, AdapterError, Config, Launch, Operation, Reply};

/// Longer than anything here takes.
pub(crate) const PATIENT: Duration = Duration::from_secs(120);
/// For what never comes, after something that does: an adapter has to have answered to `hello` by then.
pub(crate) const SOON: Duration = Duration::from_secs(3);

/// The words of the toys. `next` takes a request, and ends the process when there is none. `reply OPERATION FIELD` answers it.
const WORDS: &str = r#"
id=0
next() { IFS= read -r line || exit 0; id=$((id + 1)); }
say() { printf '%s\n' "$1"; }
reply() { say "{\"id\":$id,\"op\":\"$1\",$2}"; }
required='"hello","create","append-leader","append-follower","read","truncate","high-watermark","close","crash","open","state","drop","reset","bye"'
hello() { reply hello "\"ok\":{\"protocol\":$1,\"name\":\"toy\",\"version\":\"0.1\",\"operations\":[$2],\"features\":[$3]}"; }
greet() { next; hello 1 "$required" "$1"; }
bye() { next; reply bye '"ok":{}'; }
tell() { reply reset "\"error\":{\"kind\":\"internal\",\"name\":\"told\",\"message\":\"$1\"}"; }
while_it_runs() { while [ -d "$CLEANSLATE_ADAPTER_DIR" ]; do sleep 1; done; }
"#;

/// A program of these words.
pub(crate) fn toy(script: &str, time_out: Duration) -> Launch {
    Launch { words: vec!["sh".to_owned(), "-c".to_owned(), format!("{WORDS}\n{script}")], time_out }
}

/// One that has said hello, without features.
pub(crate) fn greeted(script: &str) -> Adapter {
    Adapter::start(&toy(&format!("greet\n{script}"), PATIENT)).unwrap()
}

pub(crate) fn create() -> Operation {
    Operation::Create { log: "A".to_owned(), now_ms: 0, config: Config::default() }
}

pub(crate) fn reset() -> Operation {
    Operation::Reset {}
}

/// What the toy has told.
pub(crate) fn told(reply: Reply) -> String {
    reply.outcome.unwrap_err().message
}

/// What goes wrong in a conversation of `hello`, `create` and `bye`.
pub(crate) fn trouble_of(launch: &Launch) -> AdapterError {
    let run = || -> Result<(), AdapterError> {
        let mut adapter = Adapter::start(launch)?;
        adapter.call(&create(), false)?;
        adapter.finish()
    };
    let error = run().unwrap_err();
    assert_one_line(&error);
    error
}

/// The same of a toy that is given all the time that it needs.
pub(crate) fn trouble(script: &str) -> AdapterError {
    trouble_of(&toy(script, PATIENT))
}

pub(crate) fn assert_one_line(error: &AdapterError) {
    let shown = error.to_string();
    assert!(shown.starts_with("adapter: "), "{shown}");
    assert!(!shown.chars().any(char::is_control), "{shown:?}");
    assert!(shown.len() < 1500, "{shown}");
    assert!(error.stderr.len() <= 20 && error.stderr.iter().all(|line| line.len() <= 1200), "{error:?}");
}
