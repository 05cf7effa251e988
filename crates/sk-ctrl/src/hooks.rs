//! Runs one of a Simulation's hooks: a program with arguments, no shell between, a limit of time, and the Simulation on
//! its standard input if it wants that.
//!
//! A hook is code that whoever may create Simulations has run in the controller's pod. That is why installations have to
//! allow it, and why nothing here does more than start, feed, wait and tell.

use std::process::Stdio;
use std::time::Duration;

use sk_api::simulation::{Hook, Simulation};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};

/// The end of a hook's output that is kept: enough for an error message, little enough for a status.
const MAX_OUTPUT: usize = 2048;

/// Runs a hook to its end. If it fails, what is returned says how, in words.
pub(crate) async fn run(hook: &Hook, simulation: &Simulation) -> Result<(), String> {
    let input =
        if hook.send_sim { serde_json::to_vec(simulation).map_err(|error| error.to_string())? } else { Vec::new() };
    let mut child = Command::new(&hook.cmd)
        .args(&hook.args)
        .stdin(if hook.send_sim { Stdio::piped() } else { Stdio::null() })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| format!("cannot be started: {error}"))?;
    let limit = Duration::from_secs(hook.timeout_seconds.into());
    match tokio::time::timeout(limit, to_the_end(&mut child, &input)).await {
        Ok(result) => result,
        // The child is killed when it is dropped.
        Err(_) => Err(format!("did not end within {} s and was killed", hook.timeout_seconds)),
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
    let ((), _, complaint) = tokio::join!(feed, tail(stdout), tail(stderr));
    let status = child.wait().await.map_err(|error| format!("cannot be waited for: {error}"))?;
    if status.success() {
        return Ok(());
    }
    let complaint = complaint.trim();
    Err(if complaint.is_empty() { status.to_string() } else { format!("{status}: {complaint}") })
}

/// Reads all, keeps the end.
async fn tail(from: Option<impl AsyncRead + Unpin>) -> String {
    let Some(mut from) = from else { return String::new() };
    let (mut kept, mut buffer) = (Vec::new(), [0; MAX_OUTPUT]);
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        kept.extend_from_slice(&buffer[..read]);
        kept.drain(..kept.len().saturating_sub(MAX_OUTPUT));
    }
    String::from_utf8_lossy(&kept).into_owned()
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
}
