//! The lifecycle of one pod: prepare, run, restart, terminate, delete, with a status update at each step.

use std::fs;
use std::path::Path;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DeleteParams, Patch, PatchParams, Preconditions};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::prepare::{Prepared, Refusal, prepare};
use super::status::{self, ContainerLife};
use super::{Context, Order};
use crate::child_process::{ChildProcess, Program};

/// Before a container is started again. A kubelet begins with 10 s; nobody here should have to wait for that.
const RESTART_DELAY: Duration = Duration::from_secs(1);
/// How long a pod has to end if it does not say: Kubernetes' default.
const DEFAULT_GRACE: Duration = Duration::from_secs(30);
/// Tries to report a status. The API server may be restarting; this is longer than that takes.
const REPORT_TRIES: u32 = 60;
/// The end of a log that a kubelet takes for last words.
const MAX_LAST_WORDS: usize = 2048;
const REPORT_PAUSE: Duration = Duration::from_secs(1);

/// Lives a pod's life to its end.
pub(super) async fn live(context: Context, pod: Pod, mut orders: watch::Receiver<Order>) {
    let name = pod.metadata.name.clone().unwrap_or_default();
    let namespace = pod.metadata.namespace.clone().unwrap_or_default();
    let api = Api::namespaced(context.client.clone(), &namespace);
    let life = Life { context, pod, api, name };
    match prepare(&life.context, &life.pod).await {
        Ok(prepared) => life.run(&prepared, &mut orders).await,
        Err(Refusal::Image(reason)) => life.report(&status::image_missing(&life.container(), &reason)).await,
        Err(Refusal::Never(reason)) => {
            life.context.note(&format!("{namespace}/{} cannot be run: {reason}", life.name));
            life.report(&status::refused(&reason)).await;
        }
    }
    // A pod that has ended stays until somebody deletes it; then it has nothing left to wait for.
    let deleted = orders.wait_for(|order| *order != Order::Run).await.map(|order| *order);
    if matches!(deleted, Ok(Order::End)) {
        life.delete().await;
    }
}

struct Life {
    context: Context,
    pod: Pod,
    api: Api<Pod>,
    name: String,
}

impl Life {
    async fn run(&self, prepared: &Prepared, orders: &mut watch::Receiver<Order>) {
        let pod_started = now();
        let mut container = self.container();
        loop {
            container.started = now();
            let mut process = match self.program(prepared, container.restarts).start() {
                Ok(process) => process,
                Err(error) => return self.report(&status::refused(&format!("start the process: {error}"))).await,
            };
            self.report(&status::running(&container, &pod_started, &self.context.address)).await;
            let code = until_ended(&mut process, orders).await;
            let ended = now();
            let told_to_end = *orders.borrow() != Order::Run;
            if told_to_end || !self.starts_again_after(code) {
                let words = self.last_words(prepared, code, container.restarts);
                return self.report(&status::ended(&container, code, &ended, &words)).await;
            }
            container.restarts += 1;
            self.report(&status::waiting(&container, code, &ended)).await;
            let told = tokio::time::timeout(RESTART_DELAY, orders.wait_for(|order| *order != Order::Run)).await.is_ok();
            if told {
                return self.report(&status::ended(&container, code, &ended, "")).await;
            }
        }
    }

    fn container(&self) -> ContainerLife {
        let container = self.pod.spec.as_ref().and_then(|spec| spec.containers.first());
        ContainerLife {
            name: container.map(|container| container.name.clone()).unwrap_or_default(),
            image: container.and_then(|container| container.image.clone()).unwrap_or_default(),
            restarts: 0,
            started: String::new(),
        }
    }

    /// What the process has left in the file for it or, if it failed and the pod wants that, the end of its log.
    fn last_words(&self, prepared: &Prepared, code: i32, restarts: u32) -> String {
        let end_of = |file: &Path| {
            let bytes = fs::read(file).unwrap_or_default();
            String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(MAX_LAST_WORDS)..]).into_owned()
        };
        let said = end_of(&prepared.last_words);
        let container = self.pod.spec.as_ref().and_then(|spec| spec.containers.first());
        let policy = container.and_then(|container| container.termination_message_policy.as_deref());
        if said.is_empty() && code != 0 && policy == Some("FallbackToLogsOnError") {
            return end_of(&self.context.log(&self.pod, restarts));
        }
        said
    }

    fn program(&self, prepared: &Prepared, restarts: u32) -> Program {
        Program {
            supervision: self.context.supervision.clone(),
            command: prepared.command.clone(),
            env: prepared.env.clone(),
            folder: Some(prepared.folder.clone()),
            log: self.context.log(&self.pod, restarts),
            grace: self.grace(),
        }
    }

    fn grace(&self) -> Duration {
        let seconds = self.pod.spec.as_ref().and_then(|spec| spec.termination_grace_period_seconds);
        seconds.and_then(|seconds| u64::try_from(seconds).ok()).map_or(DEFAULT_GRACE, Duration::from_secs)
    }

    fn starts_again_after(&self, code: i32) -> bool {
        match self.pod.spec.as_ref().and_then(|spec| spec.restart_policy.as_deref()) {
            Some("Never") => false,
            Some("OnFailure") => code != 0,
            _ => true,
        }
    }

    /// Writes the status, again and again while the API server is away. A pod that is gone needs none.
    async fn report(&self, status: &Value) {
        let patch = Patch::Strategic(json!({"metadata": {"uid": self.pod.metadata.uid}, "status": status}));
        for _ in 0..REPORT_TRIES {
            match self.api.patch_status(&self.name, &PatchParams::default(), &patch).await {
                Ok(_) => return,
                Err(kube::Error::Api(refusal)) if refusal.is_not_found() || refusal.is_conflict() => return,
                Err(error) => self.context.note(&format!("report the status of {}: {error}", self.name)),
            }
            tokio::time::sleep(REPORT_PAUSE).await;
        }
    }

    /// Removes the pod for good, as a kubelet does when its containers have ended.
    async fn delete(&self) {
        let preconditions = Some(Preconditions { uid: self.pod.metadata.uid.clone(), resource_version: None });
        let parameters = DeleteParams { grace_period_seconds: Some(0), preconditions, ..DeleteParams::default() };
        if let Err(error) = self.api.delete(&self.name, &parameters).await {
            self.context.note(&format!("delete {}: {error}", self.name));
        }
    }
}

/// Waits for the process, and passes on the order to end. Returns its exit code.
async fn until_ended(process: &mut ChildProcess, orders: &mut watch::Receiver<Order>) -> i32 {
    let told = tokio::select! {
        status = process.wait() => return status.code().unwrap_or(-1),
        // A runner that is gone gives no orders; the process goes with it.
        order = orders.wait_for(|order| *order != Order::Run) => order.map_or(Order::Kill, |order| *order),
    };
    match told {
        Order::End => process.ask_to_end(),
        Order::Run | Order::Kill => process.kill(),
    }
    process.wait().await.code().unwrap_or(-1)
}

fn now() -> String {
    jiff::Timestamp::now().strftime("%FT%TZ").to_string()
}
