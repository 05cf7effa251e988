//! Runs the hooks before and after each repetition.
//!
//! How one is run is [`sk_cluster::hook`]'s. Here the end of its output goes to the log, and a hook that fails ends the
//! run, unless `ignoreFailure` is set.

use sk_api::simulation::{Hook, Simulation};
use sk_cluster::hook::{self, Failure};

use super::request::RetryPolicy;

/// Why a hook failed.
#[derive(Debug, thiserror::Error)]
pub enum HookError {
    /// The hook did not start.
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
    /// The hook failed.
    #[error("{when} hook `{cmd}` failed: {failure}")]
    Failed {
        /// `preRun` or `postRun`.
        when: &'static str,
        /// The program.
        cmd: String,
        /// Its exit status with the end of what it said, or that it took too long.
        #[source]
        failure: Failure,
    },
}

/// Runs hooks one after the other. What still runs when a stopped run has no more time is killed.
pub(crate) async fn run_all(
    when: &'static str,
    hooks: &[Hook],
    simulation: &Simulation,
    retry: &RetryPolicy,
) -> Result<(), HookError> {
    for hook in hooks {
        let ended = tokio::select! {
            ended = run(when, hook, simulation) => ended,
            () = retry.over() => return Err(HookError::Stopped { when, cmd: hook.cmd.clone() }),
        };
        match ended {
            Err(error) if hook.ignore_failure => tracing::warn!("{error}; ignored, because it has ignoreFailure"),
            ended => ended?,
        }
    }
    Ok(())
}

async fn run(when: &'static str, hook: &Hook, simulation: &Simulation) -> Result<(), HookError> {
    let cmd = hook.cmd.clone();
    tracing::info!("{when} hook `{cmd}` starts");
    let ended = hook::run(hook, simulation).await;
    if let Ok(said) | Err(Failure::Status { said, .. }) = &ended {
        said.lines().for_each(|line| tracing::info!("{when} hook `{cmd}`: {line}"));
    }
    ended.map(drop).map_err(|failure| match failure {
        Failure::Start(source) => HookError::Start { when, cmd, source },
        failure => HookError::Failed { when, cmd, failure },
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use crate::cluster::counters::Counters;
    use crate::cluster::stop::Stop;

    fn simulation() -> Simulation {
        let json = json!({
            "apiVersion": "simkube.io/v1", "kind": "Simulation", "metadata": {"name": "s"},
            "spec": {"driver": {"tracePath": "/t"}},
        });
        serde_json::from_value(json).unwrap()
    }

    fn retry() -> RetryPolicy {
        RetryPolicy::new(&Counters::default(), &Stop::default(), Duration::ZERO)
    }

    fn shell(script: &str, more: &serde_json::Value) -> Hook {
        let mut hook = json!({"cmd": "sh", "args": ["-c", script]});
        hook.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
        serde_json::from_value(hook).unwrap()
    }

    #[tokio::test]
    async fn a_failing_hook_fails_the_run_unless_it_asks_not_to() {
        let hook = shell("echo so it is >&2; exit 3", &json!({}));
        let error = run_all("preRun", &[hook], &simulation(), &retry()).await.unwrap_err().to_string();
        assert!(error.contains("exit status: 3") && error.contains("so it is"), "{error}");
        let ignored = shell("exit 3", &json!({"ignoreFailure": true}));
        run_all("preRun", &[ignored], &simulation(), &retry()).await.unwrap();
        let missing: Hook = serde_json::from_value(json!({"cmd": "no-such-program"})).unwrap();
        let error = run_all("postRun", &[missing], &simulation(), &retry()).await.unwrap_err().to_string();
        assert!(error.contains("cannot be started"), "{error}");
    }

    #[tokio::test]
    async fn a_hook_gets_the_simulation_if_it_asks_and_nothing_otherwise() {
        let reads = |send| shell("grep -q '\"kind\":\"Simulation\"'", &json!({"sendSim": send}));
        run_all("preRun", &[reads(true)], &simulation(), &retry()).await.unwrap();
        run_all("preRun", &[reads(false)], &simulation(), &retry()).await.unwrap_err();
    }

    #[tokio::test]
    async fn a_hook_that_hangs_is_killed() {
        let hangs = shell("sleep 100", &json!({"timeoutSeconds": 1}));
        let error = run_all("preRun", &[hangs], &simulation(), &retry()).await.unwrap_err().to_string();
        assert!(error.contains("did not end within 1 s"), "{error}");
    }

    #[tokio::test]
    async fn a_hook_of_a_run_that_was_stopped_is_killed_when_its_time_is_over() {
        let stop = Stop::default();
        stop.insist("enough");
        let retry = RetryPolicy::new(&Counters::default(), &stop, Duration::from_millis(50));
        let error = run_all("postRun", &[shell("sleep 100", &json!({}))], &simulation(), &retry).await.unwrap_err();
        assert!(error.to_string().contains("asked to stop"), "{error}");
    }
}
