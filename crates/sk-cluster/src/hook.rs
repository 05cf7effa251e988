//! Runs one hook of a Simulation: a program with arguments, without a shell, with a timeout, and with the Simulation on
//! its standard input if `sendSim` is set.
//!
//! This module only starts, feeds, waits and reports. A hook that exceeds its timeout, or whose caller gives up, is
//! killed with all that it has started; what a hook that ended by itself leaves running is not waited for.

use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use sk_api::simulation::{Hook, Simulation};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};

/// The end of each of a hook's two outputs that is kept: enough for a log.
const MAX_OUTPUT_BYTES: usize = 64 << 10;

/// The end of what it said that a failure tells: enough for an error message, little enough for a status.
const MAX_WORDS_BYTES: usize = 2048;

/// How long it is listened after the hook's end: what it has written is there already, and whoever else still holds its
/// output is not waited for.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// What a hook has written, the end of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Said {
    /// On standard output.
    pub stdout: String,
    /// On standard error.
    pub stderr: String,
}

impl Said {
    /// All lines, those of standard output first.
    pub fn lines(&self) -> impl Iterator<Item = &str> {
        self.stdout.lines().chain(self.stderr.lines())
    }
}

/// Why a hook failed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The Simulation cannot be written as JSON.
    #[error("cannot write the Simulation to its stdin: {0}")]
    Encode(#[from] serde_json::Error),
    /// The hook did not start.
    #[error("cannot be started: {0}")]
    Start(#[source] io::Error),
    /// Waiting for the process failed.
    #[error("cannot be waited for: {0}")]
    Wait(#[source] io::Error),
    /// The hook exceeded its timeout.
    #[error("did not end within {0} s and was killed")]
    Timeout(u32),
    /// The hook failed.
    #[error("{status}{}", last_words(&said.stderr))]
    Status {
        /// How.
        status: ExitStatus,
        /// What it wrote.
        said: Said,
    },
}

/// Runs a hook to its end.
pub async fn run(hook: &Hook, simulation: &Simulation) -> Result<Said, Failure> {
    let input = if hook.send_sim { serde_json::to_vec(simulation)? } else { Vec::new() };
    let mut child = Command::new(&hook.cmd)
        .args(&hook.args)
        .stdin(if hook.send_sim { Stdio::piped() } else { Stdio::null() })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(Failure::Start)?;
    let group = Group::of(&child);
    let limit = Duration::from_secs(hook.timeout_seconds.into());
    match tokio::time::timeout(limit, to_the_end(&mut child, &input)).await {
        Ok(result) => {
            group.outlives();
            result
        }
        // All of it is killed when the group is dropped.
        Err(_) => Err(Failure::Timeout(hook.timeout_seconds)),
    }
}

/// A hook and what it has started. Dropped, all of it is killed: a program that may no longer act leaves nothing of a
/// hook behind that still does.
struct Group(Option<Pid>);

impl Group {
    fn of(child: &Child) -> Self {
        Self(child.id().and_then(|id| Pid::from_raw(id.try_into().ok()?)))
    }

    /// The hook has ended by itself: what it leaves running it means to, and its number is no longer its own.
    fn outlives(mut self) {
        self.0 = None;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            // One that has just ended is as good as killed.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

async fn to_the_end(child: &mut Child, input: &[u8]) -> Result<Said, Failure> {
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let feed = async {
        if let Some(mut stdin) = stdin {
            // A hook that does not read what it is sent is not a failure.
            let _ = stdin.write_all(input).await;
        }
    };
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let pipes = async { tokio::join!(feed, tail(stdout, &mut out), tail(stderr, &mut err)) };
    let ended = async {
        tokio::pin!(pipes);
        tokio::select! {
            status = child.wait() => {
                let _ = tokio::time::timeout(LAST_WORDS, &mut pipes).await;
                status
            }
            _ = &mut pipes => child.wait().await,
        }
    };
    let status = ended.await.map_err(Failure::Wait)?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let said = Said { stdout: text(&out), stderr: text(&err) };
    if status.success() { Ok(said) } else { Err(Failure::Status { status, said }) }
}

/// Reads all, keeps the end.
async fn tail(from: Option<impl AsyncRead + Unpin>, kept: &mut Vec<u8>) {
    let Some(mut from) = from else { return };
    let mut buffer = vec![0; 8 << 10];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        kept.extend_from_slice(&buffer[..read]);
        kept.drain(..kept.len().saturating_sub(MAX_OUTPUT_BYTES));
    }
}

fn last_words(stderr: &str) -> String {
    let words = stderr.trim();
    let earliest = words.len().saturating_sub(MAX_WORDS_BYTES);
    let start = (earliest..words.len()).find(|at| words.is_char_boundary(*at)).unwrap_or(words.len());
    if words.is_empty() { String::new() } else { format!(": {}", &words[start..]) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    async fn run_hook(hook: serde_json::Value) -> Result<Said, String> {
        let simulation = json!({
            "apiVersion": "simkube.io/v1", "kind": "Simulation", "metadata": {"name": "a"},
            "spec": {"driver": {"tracePath": "/a"}},
        });
        let hook = serde_json::from_value(hook).unwrap();
        let ended = run(&hook, &serde_json::from_value(simulation).unwrap()).await;
        ended.map_err(|failure| failure.to_string())
    }

    #[tokio::test]
    async fn a_hook_gets_the_simulation_if_it_wants_it() {
        let script = "read line; case $line in *tracePath*) echo seen; exit 0;; esac; exit 4";
        let said = run_hook(json!({"cmd": "sh", "args": ["-c", script], "sendSim": true})).await.unwrap();
        assert_eq!(said.lines().collect::<Vec<_>>(), ["seen"]);
        let refused = run_hook(json!({"cmd": "sh", "args": ["-c", script]})).await;
        assert_eq!(refused, Err("exit status: 4".to_owned()));
    }

    #[tokio::test]
    async fn a_failure_is_told_with_the_end_of_what_the_hook_said() {
        let script = "head -c 1000000 /dev/zero | tr '\\0' x >&2; echo; echo the end >&2; exit 1";
        let words = run_hook(json!({"cmd": "sh", "args": ["-c", script]})).await.unwrap_err();
        assert!(words.starts_with("exit status: 1: xxx") && words.ends_with("the end"), "{words}");
        assert!(words.len() < MAX_WORDS_BYTES + 50);
        let missing = run_hook(json!({"cmd": "no-such-program"})).await.unwrap_err();
        assert!(missing.starts_with("cannot be started: "), "{missing}");
    }

    #[tokio::test]
    async fn a_hook_that_floods_is_bounded_and_its_end_is_kept() {
        let script = "head -c 1000000 /dev/zero | tr '\\0' x; echo; echo the end";
        let said = run_hook(json!({"cmd": "sh", "args": ["-c", script]})).await.unwrap();
        assert!(said.stdout.len() <= MAX_OUTPUT_BYTES && said.stdout.ends_with("the end\n"));
    }

    #[tokio::test]
    async fn a_hook_that_does_not_end_is_killed() {
        let words = run_hook(json!({"cmd": "sleep", "args": ["600"], "timeoutSeconds": 1})).await.unwrap_err();
        assert_eq!(words, "did not end within 1 s and was killed");
    }

    /// Waits until a process is gone, or a zombie that nobody has fetched.
    async fn is_gone(pid: &str) {
        let file = format!("/proc/{pid}/stat");
        while std::fs::read_to_string(&file).is_ok_and(|stat| !stat.contains(") Z ")) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    #[tokio::test]
    async fn what_a_killed_hook_has_started_is_killed_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let note = folder.path().join("pid");
        let script = format!("sleep 600 & echo $! > {}; wait", note.display());
        let words = run_hook(json!({"cmd": "sh", "args": ["-c", script], "timeoutSeconds": 3})).await.unwrap_err();
        assert_eq!(words, "did not end within 3 s and was killed");
        let pid = std::fs::read_to_string(&note).expect("the hook began within its time");
        tokio::time::timeout(Duration::from_secs(60), is_gone(pid.trim())).await.expect("it goes");
    }

    #[tokio::test]
    async fn a_hook_that_leaves_something_running_with_its_output_has_ended_all_the_same() {
        let script = "sleep 60 & echo $!; echo the end >&2; exit 3";
        let words = run_hook(json!({"cmd": "sh", "args": ["-c", script], "timeoutSeconds": 50})).await.unwrap_err();
        assert_eq!(words, "exit status: 3: the end");
    }
}
