//! Runs the hooks before and after each repetition.
//!
//! There is no shell. The output of a hook goes to the log, bounded. A hook that fails ends the run, unless
//! `ignoreFailure` is set. A hook that exceeds its timeout is killed with all its child processes; processes that a
//! finished hook leaves behind are not waited for.

use std::process::Stdio;
use std::time::Duration;

use sk_api::simulation::{Hook, Simulation};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};

use super::request::Patience;

/// Of each hook's output, so much is logged.
const MAX_OUTPUT_BYTES: u64 = 64 << 10;

/// When a hook has ended, what it has said is there in a moment; only what it left running could still hold its output open.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Why a hook failed.
#[derive(Debug, thiserror::Error)]
pub enum HookError {
    /// It did not start.
    #[error("{when} hook `{cmd}` cannot be started: {source}; is it in the driver's image?")]
    Start {
        /// `preRun` or `postRun`.
        when: &'static str,
        /// The program.
        cmd: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// The run was asked to stop.
    #[error("{when} hook `{cmd}` was killed: the driver was asked to stop")]
    Stopped {
        /// `preRun` or `postRun`.
        when: &'static str,
        /// The program.
        cmd: String,
    },
    /// It ended badly.
    #[error("{when} hook `{cmd}` failed: {problem}")]
    Failed {
        /// `preRun` or `postRun`.
        when: &'static str,
        /// The program.
        cmd: String,
        /// Its exit status, or that it took too long; with the end of what it said.
        problem: String,
    },
}

/// Runs hooks one after the other. What still runs when a stopped run has no more time is killed.
pub(crate) async fn run_all(
    when: &'static str,
    hooks: &[Hook],
    simulation: &Simulation,
    patience: &Patience,
) -> Result<(), HookError> {
    for hook in hooks {
        let ended = tokio::select! {
            ended = run(when, hook, simulation) => ended,
            () = patience.over() => return Err(HookError::Stopped { when, cmd: hook.cmd.clone() }),
        };
        match ended {
            Err(error) if hook.ignore_failure => tracing::warn!("{error}; ignored, as it asks"),
            ended => ended?,
        }
    }
    Ok(())
}

async fn run(when: &'static str, hook: &Hook, simulation: &Simulation) -> Result<(), HookError> {
    let cmd = hook.cmd.clone();
    tracing::info!("{when} hook `{cmd}` starts");
    let started = Command::new(&hook.cmd)
        .args(&hook.args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn();
    let mut child = started.map_err(|source| HookError::Start { when, cmd: cmd.clone(), source })?;
    let mut group = Group::of(&child);
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let told = if hook.send_sim { serde_json::to_vec(simulation).unwrap_or_default() } else { Vec::new() };
    let tell = async {
        if let Some(mut stdin) = stdin {
            // A hook need not read what it is sent.
            let _ = stdin.write_all(&told).await;
        }
    };
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let limit = Duration::from_secs(hook.timeout_seconds.into());
    let ended = {
        let talking = async { tokio::join!(tell, read(stdout, &mut out), read(stderr, &mut err)) };
        let all = async {
            tokio::pin!(talking);
            tokio::select! {
                status = child.wait() => {
                    let _ = tokio::time::timeout(LAST_WORDS, talking).await;
                    status
                }
                _ = &mut talking => child.wait().await,
            }
        };
        tokio::time::timeout(limit, all).await
    };
    let failed = |problem: String| Err(HookError::Failed { when, cmd: cmd.clone(), problem });
    let Ok(status) = ended else {
        return failed(format!("it took longer than {limit:?}"));
    };
    group.leave();
    let (out, err) = (String::from_utf8_lossy(&out), String::from_utf8_lossy(&err));
    for line in out.lines().chain(err.lines()) {
        tracing::info!("{when} hook `{cmd}`: {line}");
    }
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => failed(format!("{status}{}", last_words(&err))),
        Err(error) => failed(error.to_string()),
    }
}

/// A hook and all that it has started. Killed when it is dropped before it was left.
struct Group(Option<rustix::process::Pid>);

impl Group {
    fn of(child: &Child) -> Self {
        let pid = child.id().and_then(|pid| i32::try_from(pid).ok());
        Self(pid.and_then(rustix::process::Pid::from_raw))
    }

    fn leave(&mut self) {
        self.0 = None;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            // One that is gone needs no killing.
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
    }
}

/// Reads to the end and keeps the beginning, so that a talkative hook is not held up.
async fn read(output: Option<impl AsyncRead + Unpin>, kept: &mut Vec<u8>) {
    let Some(mut output) = output else { return };
    let _ = (&mut output).take(MAX_OUTPUT_BYTES).read_to_end(kept).await;
    let _ = tokio::io::copy(&mut output, &mut tokio::io::sink()).await;
}

fn last_words(text: &str) -> String {
    text.lines()
        .next_back()
        .map(|line| format!("; its last line: {}", line.chars().take(300).collect::<String>()))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cluster::stop::Stop;
    use crate::cluster::tally::Tally;

    fn simulation() -> Simulation {
        let json = json!({
            "apiVersion": "simkube.io/v1", "kind": "Simulation", "metadata": {"name": "s"},
            "spec": {"driver": {"tracePath": "/t"}},
        });
        serde_json::from_value(json).unwrap()
    }

    fn patience() -> Patience {
        Patience::new(&Tally::default(), &Stop::default(), Duration::ZERO)
    }

    fn shell(script: &str, more: &serde_json::Value) -> Hook {
        let mut hook = json!({"cmd": "sh", "args": ["-c", script]});
        hook.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
        serde_json::from_value(hook).unwrap()
    }

    #[tokio::test]
    async fn a_failing_hook_fails_the_run_unless_it_asks_not_to() {
        let hook = shell("echo so it is >&2; exit 3", &json!({}));
        let error = run_all("preRun", &[hook], &simulation(), &patience()).await.unwrap_err().to_string();
        assert!(error.contains("exit status: 3") && error.contains("so it is"), "{error}");
        let ignored = shell("exit 3", &json!({"ignoreFailure": true}));
        run_all("preRun", &[ignored], &simulation(), &patience()).await.unwrap();
        let missing: Hook = serde_json::from_value(json!({"cmd": "no-such-program"})).unwrap();
        let error = run_all("postRun", &[missing], &simulation(), &patience()).await.unwrap_err().to_string();
        assert!(error.contains("cannot be started"), "{error}");
    }

    #[tokio::test]
    async fn a_hook_gets_the_simulation_if_it_asks_and_nothing_otherwise() {
        let reads = |send| shell("grep -q '\"kind\":\"Simulation\"'", &json!({"sendSim": send}));
        run_all("preRun", &[reads(true)], &simulation(), &patience()).await.unwrap();
        run_all("preRun", &[reads(false)], &simulation(), &patience()).await.unwrap_err();
    }

    #[tokio::test]
    async fn a_hook_that_hangs_or_floods_is_bounded() {
        let hangs = shell("sleep 100", &json!({"timeoutSeconds": 1}));
        let error = run_all("preRun", &[hangs], &simulation(), &patience()).await.unwrap_err().to_string();
        assert!(error.contains("took longer"), "{error}");
        let floods = shell("head -c 1000000 /dev/zero", &json!({}));
        run_all("preRun", &[floods], &simulation(), &patience()).await.unwrap();
    }

    /// Waits until a process is gone, or only waits to be reaped.
    async fn is_gone(pid: &str) {
        let runs = || {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
        };
        let gone = async {
            while runs() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), gone).await.expect("it was killed");
    }

    #[tokio::test]
    async fn what_a_hook_started_is_killed_with_it_and_not_waited_for_if_the_hook_ends_by_itself() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pid");
        let started = format!("sleep 1000 & echo $! > '{}'", file.display());
        let hangs = shell(&format!("{started}; wait"), &json!({"timeoutSeconds": 5}));
        let error = run_all("preRun", &[hangs], &simulation(), &patience()).await.unwrap_err().to_string();
        assert!(error.contains("took longer"), "{error}");
        is_gone(std::fs::read_to_string(&file).unwrap().trim()).await;
        let leaves = shell(&format!("{started}; echo said >&2; exit 3"), &json!({"timeoutSeconds": 900}));
        let error = run_all("preRun", &[leaves], &simulation(), &patience()).await.unwrap_err().to_string();
        assert!(error.contains("exit status: 3") && error.contains("said"), "{error}");
        let left = std::fs::read_to_string(&file).unwrap();
        assert!(std::process::Command::new("kill").arg(left.trim()).status().unwrap().success(), "it is still there");
    }

    #[tokio::test]
    async fn a_hook_of_a_run_that_was_stopped_is_killed_when_its_time_is_over() {
        let stop = Stop::default();
        stop.insist("enough");
        let patience = Patience::new(&Tally::default(), &stop, Duration::from_millis(50));
        let error = run_all("postRun", &[shell("sleep 100", &json!({}))], &simulation(), &patience).await.unwrap_err();
        assert!(error.to_string().contains("asked to stop"), "{error}");
    }
}
