//! Runs one hook of a Simulation: a program with arguments, without a shell, with a timeout, and with the Simulation on
//! its standard input if `sendSim` is set.
//!
//! A hook is code that everybody who may create Simulations can run in the controller's pod. That is why an
//! installation has to allow hooks, and why this module only starts, feeds, waits and reports.

use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use sk_api::simulation::{Hook, Simulation};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};

/// The end of a hook's output that is kept: enough for an error message, little enough for a status.
const MAX_OUTPUT: usize = 2048;

/// How long it is listened after the hook's end: what it has written is there already, and whoever else still holds its
/// output is not waited for.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Runs a hook to its end. If it fails, what is returned says how, in words.
pub(crate) async fn run(hook: &Hook, simulation: &Simulation) -> Result<(), String> {
    let input =
        if hook.send_sim { serde_json::to_vec(simulation).map_err(|error| error.to_string())? } else { Vec::new() };
    let mut child = Command::new(&hook.cmd)
        .args(&hook.args)
        .stdin(if hook.send_sim { Stdio::piped() } else { Stdio::null() })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| format!("cannot be started: {error}"))?;
    let group = Group::of(&child);
    let limit = Duration::from_secs(hook.timeout_seconds.into());
    match tokio::time::timeout(limit, to_the_end(&mut child, &input)).await {
        Ok(result) => {
            group.outlives();
            result
        }
        // All of it is killed when the group is dropped.
        Err(_) => Err(format!("did not end within {} s and was killed", hook.timeout_seconds)),
    }
}

/// A hook and what it has started. Dropped, all of it is killed: a controller that may no longer act leaves nothing of a
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

async fn to_the_end(child: &mut Child, input: &[u8]) -> Result<(), String> {
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let feed = async {
        if let Some(mut stdin) = stdin {
            // A hook that does not read what it is sent is no failure.
            let _ = stdin.write_all(input).await;
        }
    };
    let (mut said, mut stderr_tail) = (Vec::new(), Vec::new());
    let pipes = async { tokio::join!(feed, tail(stdout, &mut said), tail(stderr, &mut stderr_tail)) };
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
    let status = ended.await.map_err(|error| format!("cannot be waited for: {error}"))?;
    if status.success() {
        return Ok(());
    }
    let stderr_tail = String::from_utf8_lossy(&stderr_tail);
    let stderr_tail = stderr_tail.trim();
    Err(if stderr_tail.is_empty() { status.to_string() } else { format!("{status}: {stderr_tail}") })
}

/// Reads all, keeps the end.
async fn tail(from: Option<impl AsyncRead + Unpin>, kept: &mut Vec<u8>) {
    let Some(mut from) = from else { return };
    let mut buffer = [0; MAX_OUTPUT];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        kept.extend_from_slice(&buffer[..read]);
        kept.drain(..kept.len().saturating_sub(MAX_OUTPUT));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    async fn run_hook(hook: serde_json::Value) -> Result<(), String> {
        let simulation = json!({
            "apiVersion": "simkube.io/v1", "kind": "Simulation", "metadata": {"name": "a"},
            "spec": {"driver": {"tracePath": "/a"}},
        });
        run(&serde_json::from_value(hook).unwrap(), &serde_json::from_value(simulation).unwrap()).await
    }

    #[tokio::test]
    async fn a_hook_gets_the_simulation_if_it_wants_it() {
        let script = "read line; case $line in *tracePath*) exit 0;; esac; exit 4";
        run_hook(json!({"cmd": "sh", "args": ["-c", script], "sendSim": true})).await.unwrap();
        let refused = run_hook(json!({"cmd": "sh", "args": ["-c", script]})).await;
        assert_eq!(refused, Err("exit status: 4".to_owned()));
    }

    #[tokio::test]
    async fn a_failure_is_told_with_the_end_of_what_the_hook_said() {
        let script = "head -c 100000 /dev/zero | tr '\\0' x >&2; echo; echo the end >&2; exit 1";
        let words = run_hook(json!({"cmd": "sh", "args": ["-c", script]})).await.unwrap_err();
        assert!(words.starts_with("exit status: 1: xxx") && words.ends_with("the end"), "{words}");
        assert!(words.len() < MAX_OUTPUT + 50);
        let missing = run_hook(json!({"cmd": "no-such-program"})).await.unwrap_err();
        assert!(missing.starts_with("cannot be started: "), "{missing}");
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
        let script = "sleep 60 & echo the end >&2; exit 3";
        let words = run_hook(json!({"cmd": "sh", "args": ["-c", script], "timeoutSeconds": 50})).await.unwrap_err();
        assert_eq!(words, "exit status: 3: the end");
    }
}
