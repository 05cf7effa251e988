//! Carries out a scenario's steps at their times while the cluster is being watched.

use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, EvictParams, Patch as ApiPatch, PatchParams, PropagationPolicy};
use kube::{Api, Client};
use serde_json::Value;
use sk_core::ObjectRef;

use super::RecordError;
use super::live::{Live, duration, reference};
use crate::canonical::Observation;
use crate::control_plane::access::{create_value, dynamic_api};
use crate::control_plane::{ControlError, ControlPlane};
use crate::fixture::Refusal;
use crate::scenario::{Action, Condition, Delete, Evict, Patch, Propagation, Scenario, Step, with_uids};

/// How long a condition may take to come true: the slowest that Kubernetes does in a scenario is to wait for the next minute.
const CONDITION_LIMIT: Duration = Duration::from_secs(90);
/// How long a step may take in all, with its requests and the waiting for each of its objects.
const STEP_LIMIT: Duration = Duration::from_secs(180);
/// How often conditions are looked at when nothing happens.
const LOOK: Duration = Duration::from_millis(20);
const FIELD_MANAGER: &str = "scenario";

/// What came of a scenario.
pub(super) struct Played {
    /// Everything that was seen.
    pub(super) observations: Vec<Observation>,
    /// Everything that was refused.
    pub(super) refusals: Vec<Refusal>,
    /// When each step began, in milliseconds since the watch began.
    pub(super) steps: Vec<u64>,
}

/// Plays all steps.
pub(super) async fn play(cluster: &ControlPlane, scenario: &Scenario) -> Result<Played, RecordError> {
    let live = Live::of(&cluster.client(), &scenario.watch).await?;
    let mut player = Player { client: cluster.client(), live, refusals: Vec::new() };
    let (began, mut steps) = (Instant::now(), Vec::new());
    for (index, step) in scenario.steps.iter().enumerate() {
        let wait = duration(step.at).saturating_sub(began.elapsed());
        let failed =
            |source| RecordError::Step { scenario: scenario.name.clone(), number: index + 1, source: Box::new(source) };
        player.live.follow_for(wait).await.map_err(failed)?;
        steps.push(player.live.now_ms());
        let played = tokio::time::timeout(STEP_LIMIT, player.step(index + 1, step)).await;
        played.unwrap_or(Err(RecordError::NoAnswer(STEP_LIMIT.as_secs()))).map_err(failed)?;
    }
    Ok(Played { observations: player.live.into_observations(), refusals: player.refusals, steps })
}

struct Player {
    client: Client,
    live: Live,
    refusals: Vec<Refusal>,
}

impl Player {
    async fn step(&mut self, number: usize, step: &Step) -> Result<(), RecordError> {
        match (self.act(step).await, step.refused) {
            (Ok(()), false) => {}
            (Err(error), true) => self.refusals.push(refusal(number, error)?),
            (Ok(()), true) => return Err(RecordError::NotRefused),
            (Err(error), false) => return Err(error),
        }
        self.live.expect_change();
        let unmet = |live: &Live| step.until.iter().find(|condition| !live.holds(condition)).map(describe);
        self.until(unmet).await
    }

    async fn act(&mut self, step: &Step) -> Result<(), RecordError> {
        match &step.action {
            Action::Create(objects) => self.create(objects, &step.until).await,
            Action::Apply(object) => self.apply(object).await.map_err(boxed),
            Action::Patch(patch) => self.patch(patch).await.map_err(boxed),
            Action::Delete(delete) => self.delete(delete).await.map_err(boxed),
            Action::Evict(evict) => self.evict(evict).await.map_err(boxed),
            Action::Wait => Ok(()),
        }
    }

    async fn create(&mut self, objects: &[Value], until: &[Condition]) -> Result<(), RecordError> {
        let each: Vec<_> = until
            .iter()
            .filter_map(|condition| if let Condition::Each(field) = condition { Some(field) } else { None })
            .collect();
        for object in objects {
            let object = with_uids(object, &|target| self.live.uid(target));
            let created = create_value(self.client.clone(), &object).await.map_err(boxed)?;
            let created = serde_json::to_value(created).ok().and_then(|created| reference(&created));
            let Some(created) = created else { continue };
            for field in &each {
                let missing = |live: &Live| match live.field(&created, field) {
                    Some(_) => None,
                    None => Some(format!("{created} has {field}")),
                };
                self.until(missing).await?;
            }
        }
        Ok(())
    }

    async fn apply(&self, object: &Value) -> Result<(), ControlError> {
        let named = || ControlError::NoObject(object.to_string().chars().take(200).collect());
        let target = reference(object).ok_or_else(named)?;
        let api = self.api(&target).await?;
        let parameters = PatchParams::apply(FIELD_MANAGER).force();
        let applied = api.patch(&target.key.name, &parameters, &ApiPatch::Apply(object)).await;
        applied.map(drop).map_err(ControlError::request(format!("apply {target}")))
    }

    async fn patch(&self, patch: &Patch) -> Result<(), ControlError> {
        let Patch { of: target, merge, status } = patch;
        let merge = with_uids(merge, &|target| self.live.uid(target));
        let api = self.api(&target.0).await?;
        let (name, parameters, merge) = (&target.0.key.name, PatchParams::default(), ApiPatch::Merge(merge));
        let patched = match status {
            true => api.patch_status(name, &parameters, &merge).await,
            false => api.patch(name, &parameters, &merge).await,
        };
        patched.map(drop).map_err(ControlError::request(format!("patch {target}")))
    }

    async fn delete(&self, delete: &Delete) -> Result<(), ControlError> {
        let target = &delete.of;
        let api = self.api(&target.0).await?;
        let policy = delete.propagation.map(|propagation| match propagation {
            Propagation::Background => PropagationPolicy::Background,
            Propagation::Foreground => PropagationPolicy::Foreground,
            Propagation::Orphan => PropagationPolicy::Orphan,
        });
        let parameters =
            DeleteParams { propagation_policy: policy, grace_period_seconds: delete.grace, ..DeleteParams::default() };
        let deleted = api.delete(&target.0.key.name, &parameters).await;
        deleted.map(drop).map_err(ControlError::request(format!("delete {target}")))
    }

    async fn evict(&self, evict: &Evict) -> Result<(), ControlError> {
        let key = &evict.of.0.key;
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), key.namespace_or_empty());
        let evicted = pods.evict(&key.name, &EvictParams::default()).await;
        evicted.map(drop).map_err(ControlError::request(format!("evict {}", evict.of)))
    }

    async fn api(&self, target: &ObjectRef) -> Result<kube::Api<kube::api::DynamicObject>, ControlError> {
        dynamic_api(self.client.clone(), &target.gvk, target.key.namespace.as_deref()).await
    }

    /// Follows the cluster until nothing is unmet any more.
    async fn until(&mut self, unmet: impl Fn(&Live) -> Option<String>) -> Result<(), RecordError> {
        let began = Instant::now();
        while let Some(condition) = unmet(&self.live) {
            if began.elapsed() > CONDITION_LIMIT {
                return Err(RecordError::InVain { condition, limit_secs: CONDITION_LIMIT.as_secs() });
            }
            self.live.follow_once(LOOK).await?;
        }
        Ok(())
    }
}

/// The server's message; any other failure is not a refusal.
fn refusal(step: usize, error: RecordError) -> Result<Refusal, RecordError> {
    let RecordError::Request(request) = &error else { return Err(error) };
    let ControlError::Request { source, .. } = &**request else { return Err(error) };
    let kube::Error::Api(status) = &**source else { return Err(error) };
    Ok(Refusal { step, code: status.code, reason: status.reason.clone(), message: status.message.clone() })
}

fn boxed(error: ControlError) -> RecordError {
    RecordError::Request(Box::new(error))
}

fn describe(condition: &Condition) -> String {
    match condition {
        Condition::Field(field) => match &field.is {
            Some(value) => format!("{} of {} is {value}", field.at, field.of),
            None => format!("{} has {}", field.of, field.at),
        },
        Condition::Each(field) => format!("each created object has {field}"),
        Condition::Gone(target) => format!("{target} is gone"),
        Condition::Count(count) => format!("there are {} of {}", count.is, count.of),
        Condition::Quiet(span) => format!("nothing changes for {span}"),
    }
}
