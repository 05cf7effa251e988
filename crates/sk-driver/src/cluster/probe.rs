//! Checks that the API server reaches the driver's webhook, before the run starts and periodically during it.
//!
//! The check creates a pod as a dry run in a namespace of the run. The webhook annotates it, so an annotated answer
//! proves the whole path: configuration, Service, certificate, listener. A run whose pods are not admitted measures
//! nothing, so it does not start. If the webhook becomes unreachable later, the run continues, because controllers
//! retry, and the record says for how long.

use std::sync::Arc;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Api, PostParams};
use serde_json::json;
use sk_api::simulation::names;
use sk_core::{Gvk, ObjectKey};

use super::applier::Done;
use super::context::Context;
use super::request::{Refusal, is_webhook_failure};
use super::virtualise::toleration;

/// Annotation on a dry request: whether the webhook was asked.
pub(crate) const PROBE: &str = "simkube.io/webhook-probe";
/// What the webhook makes of it.
pub(crate) const SEEN: &str = "seen";

/// The recorded namespace that the probe's own stands for; no trace has it.
const NAMESPACE: &str = "sk-webhook-probe";
/// How often the probe tries until the webhook is reached.
const LOOK: Duration = Duration::from_millis(200);
/// How often the probe tries during the run: one dry request, which the API server answers in milliseconds.
const EVERY: Duration = Duration::from_secs(2);
/// A dry request without a response after this time says nothing.
const LIMIT: Duration = Duration::from_secs(15);

/// What one dry request showed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Reachability {
    /// The API server called the webhook, and it responded.
    Reached,
    /// The webhook was not called, or did not respond.
    Missed(String),
    /// Unknown: the API server is unreachable, or another policy refused the pod.
    Unclear(String),
}

/// Asks whether the webhook is reached.
pub(crate) struct Probe {
    context: Arc<Context>,
    pods: Api<Pod>,
    pod: Pod,
}

impl Probe {
    /// Creates the namespace of the dry requests. It goes with the run's root.
    pub(crate) async fn new(context: &Arc<Context>) -> Result<Self, Refusal> {
        let namespace = context.virtualiser.namespace(NAMESPACE);
        let kind = context.kinds.get(&Gvk::new_static("", "v1", "Namespace"), &context.retry).await?;
        let value = context.virtualiser.new_namespace(NAMESPACE);
        let made = context.applier().apply(&kind, &ObjectKey::cluster(namespace.clone()), &value).await?;
        if made == Done::LeftAlone {
            let why = format!("the namespace {namespace} was there before the run; choose another virtualNsPrefix");
            return Err(Refusal::Malformed(why));
        }
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "probe", "namespace": namespace, "annotations": {PROBE: "asked"}},
            "spec": {
                "automountServiceAccountToken": false, "nodeSelector": {names::NODE_SELECTOR.0: names::NODE_SELECTOR.1},
                "tolerations": [toleration()], "containers": [{"name": "none", "image": "none"}],
            },
        });
        Ok(Self {
            pods: Api::namespaced(context.client.clone(), &namespace),
            pod: serde_json::from_value(pod).expect("this is a pod"),
            context: context.clone(),
        })
    }

    /// Asks once.
    pub(crate) async fn look(&self) -> Reachability {
        let parameters = PostParams { dry_run: true, ..PostParams::default() };
        match tokio::time::timeout(LIMIT, self.pods.create(&parameters, &self.pod)).await {
            Err(_) => Reachability::Unclear(format!("no answer within {LIMIT:?}")),
            Ok(answer) => judge(answer),
        }
    }

    /// Asks until the webhook was reached, for so long; otherwise what was heard last.
    pub(crate) async fn until_reached(&self, limit: Duration) -> Result<(), Reachability> {
        let began = Instant::now();
        loop {
            let answer = self.look().await;
            if answer == Reachability::Reached {
                return Ok(());
            }
            if began.elapsed() >= limit || !self.context.retry.pause(LOOK).await {
                return Err(answer);
            }
        }
    }

    /// Asks again and again, and adds up for how long the webhook was not reached: a look that is answered late stands for
    /// all the time since the one before.
    pub(crate) async fn watch_over(self) {
        let (mut was_reached, mut last_look) = (true, Instant::now());
        loop {
            tokio::time::sleep(EVERY).await;
            let answer = self.look().await;
            let since = last_look.elapsed();
            last_look = Instant::now();
            match answer {
                Reachability::Reached if !was_reached => {
                    tracing::info!("the API server reaches the webhook again");
                    was_reached = true;
                }
                Reachability::Reached | Reachability::Unclear(_) => {}
                Reachability::Missed(words) => {
                    self.context.counters.count(|totals| totals.webhook_outage_secs += since.as_secs_f64());
                    if was_reached {
                        tracing::warn!("the API server does not reach the webhook; new pods wait for it: {words}");
                    }
                    was_reached = false;
                }
            }
        }
    }
}

fn judge(answer: Result<Pod, kube::Error>) -> Reachability {
    match answer {
        Ok(pod) if pod.annotations().get(PROBE).is_some_and(|word| word == SEEN) => Reachability::Reached,
        Ok(_) => Reachability::Missed("the API server admits new pods without calling the webhook".to_owned()),
        Err(error) => {
            let words = error.to_string();
            if is_webhook_failure(&words) { Reachability::Missed(words) } else { Reachability::Unclear(words) }
        }
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    #[test]
    fn only_the_mark_shows_that_the_webhook_was_reached() {
        let pod = |word: &str| serde_json::from_value(json!({"metadata": {"annotations": {PROBE: word}}})).unwrap();
        assert_eq!(judge(Ok(pod(SEEN))), Reachability::Reached);
        assert!(matches!(judge(Ok(pod("asked"))), Reachability::Missed(_)));
        let refused = |words: &str| Err(kube::Error::Api(Status::failure(words, "x").with_code(500).boxed()));
        assert!(matches!(judge(refused("failed calling webhook \"a\": connection refused")), Reachability::Missed(_)));
        assert!(matches!(judge(refused("denied by a policy")), Reachability::Unclear(_)));
    }
}
