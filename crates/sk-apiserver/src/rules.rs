//! Validation of objects from a trace or a manifest, for a server that stores objects as they came.
//!
//! [`ApiServer::judge`] runs the rules of `validation` on a copy with defaults before the server handles a request. So
//! a replay stores what the trace holds, and refuses what a real server would have refused, with its messages. Writes
//! of controllers need no validation: they start from objects that passed it. A template that passed once is not
//! validated again.

use std::sync::Arc;

use sk_core::ObjectKey;
use sk_core::lookup::hash_of;

use crate::admission;
use crate::error::Invalid;
use crate::kinds::{self, Body, DeploymentSpec, PodSpec, ReplicaSet};
use crate::server::ApiServer;
use crate::{ApiError, Object, Request, defaults, schema, validation};

/// By which rules objects from outside are judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rules {
    /// Only those without which a controller or the scheduler would run wild.
    #[default]
    Bearable,
    /// Those for objects of a recording. It leaves out what is not needed to simulate (commands, most of a volume), so
    /// of a pod's spec only what placement and lifecycles depend on is judged; service accounts and priority classes
    /// that it lacks are taken for granted.
    Recorded,
    /// All that a server has: for what people write. Pods need their service account and their priority class.
    Written,
}

/// The parts of a pod's spec that a recording holds as they were written.
const KEPT: [&str; 12] = [
    "activeDeadlineSeconds",
    "affinity",
    "containers",
    "initContainers",
    "nodeSelector",
    "overhead",
    "preemptionPolicy",
    "priorityClassName",
    "restartPolicy",
    "schedulingGates",
    "tolerations",
    "topologySpreadConstraints",
];
/// The same of a container.
const KEPT_OF_CONTAINER: [&str; 2] = ["name", "resources"];
/// How many judged objects are remembered, 16 bytes each.
const MEMORY: usize = 1 << 16;

impl ApiServer {
    /// Would a server take what a client sends? Asked before [`Self::handle`] of requests from outside.
    pub fn judge(&mut self, request: &Request) -> Result<(), ApiError> {
        let (object, may_exist) = match request {
            Request::Create(object) => (object, false),
            Request::Apply(object) | Request::Update(object) => (object, true),
            // These are checked where they are handled. A trace holds no patches.
            Request::Patch { .. }
            | Request::UpdateStatus(_)
            | Request::PatchPodStatus { .. }
            | Request::Bind { .. }
            | Request::Evict { .. }
            | Request::Delete { .. }
            | Request::Scale { .. }
            | Request::RemoveFinalizer { .. }
            | Request::FinalizeNamespace { .. } => return Ok(()),
        };
        let rules = self.admission.rules;
        if rules == Rules::Bearable || !self.has_namespace(object) {
            return Ok(());
        }
        self.admission.judge_metadata(object)?;
        let stored = may_exist.then(|| self.store().get(&object.gvk, &object.key).cloned()).flatten();
        let wrong = match &object.body {
            // A pod's spec does not change here: applied again, the pod gets labels and annotations.
            Body::Pod(_) if stored.is_some() => return Ok(()),
            Body::Pod(pod) => self.admission.judge_pod_spec(&pod.spec),
            Body::Node(node) => validation::node(node),
            _ if stored.as_deref().is_some_and(|stored| only_resizes(stored, object)) => return Ok(()),
            Body::ReplicaSet(set) if self.is_judged(object, set) => return Ok(()),
            _ => self.judge_others(object, stored.as_deref())?,
        };
        let wrong: Vec<Invalid> =
            wrong.into_iter().filter(|one| rules == Rules::Written || is_kept(one.field())).collect();
        if wrong.is_empty() { Ok(()) } else { Err(ApiError::invalid(&object.gvk, &object.key.name, &wrong)) }
    }

    /// Without one, the server refuses the request before it reads the object.
    fn has_namespace(&self, object: &Object) -> bool {
        let Some(namespace) = &object.key.namespace else { return true };
        self.store().get(&kinds::NAMESPACE, &ObjectKey::cluster(namespace.clone())).is_some()
    }

    /// Is it a replica set with the very template of the Deployment that made it? That was judged with the Deployment.
    fn is_judged(&self, object: &Object, set: &ReplicaSet) -> bool {
        let owner = object.controller().and_then(|owner| self.store().now().with_uid(owner.uid));
        let made_by = owner.and_then(|(_, owner)| owner.deployment());
        made_by.is_some_and(|deployment| Arc::ptr_eq(&deployment.spec.template.spec, &set.spec.template.spec))
    }

    fn judge_others(&mut self, object: &Object, stored: Option<&Object>) -> Result<validation::Errors, ApiError> {
        let Some(of) = schema::find(&object.gvk) else { return Ok(Vec::new()) };
        let (mut now, mut before) = (object.to_json(), stored.map(Object::to_json));
        // Its size says nothing of its template: an object that only grows or shrinks was judged before.
        let fingerprint = |value: &serde_json::Value| {
            let spec = value.get("spec").and_then(serde_json::Value::as_object);
            let fields = spec.into_iter().flatten().filter(|(name, size)| *name != "replicas" || !is_size(size));
            hash_of(serde_json::json!(fields.collect::<Vec<_>>()).to_string().as_bytes())
        };
        let key = (hash_of(object.gvk.to_string().as_bytes()) ^ fingerprint(&now), before.as_ref().map(fingerprint));
        if self.admission.judged.contains(&key) {
            return Ok(Vec::new());
        }
        if let Body::Job(_) = &object.body {
            now = with_generated(object, stored).to_json();
        }
        // In a replay claims are not bound one by one: without a phase, a claim counts as bound.
        if let Some(claim) = before.as_mut().filter(|_| object.gvk.kind == "PersistentVolumeClaim")
            && claim["status"]["phase"].is_null()
        {
            claim["status"] = serde_json::json!({"phase": "Bound"});
        }
        for value in [Some(&mut now), before.as_mut()].into_iter().flatten() {
            let read = schema::decode(&object.gvk, of, std::mem::take(value));
            *value = read.map_err(|why| ApiError::in_kind(&object.gvk, &why))?;
            defaults::apply(&object.gvk, value);
        }
        let wrong = validation::check(&object.gvk, &now, before.as_ref());
        if wrong.is_empty() && object.body.is_typed() {
            if self.admission.judged.len() >= MEMORY {
                self.admission.judged.clear();
            }
            self.admission.judged.insert(key);
            // Pods of this template need no look of their own.
            if let Some(template) = object.body.template() {
                self.admission.written.get_or_insert_with(&template.spec, |_| Vec::new());
            }
        }
        Ok(wrong)
    }
}

/// A Job as it is once a server has it: with its selector.
fn with_generated(object: &Object, stored: Option<&Object>) -> Object {
    let mut object = object.clone();
    let (name, uid) = (object.key.name.clone(), object.uid);
    match (&mut object.body, stored) {
        (body, Some(stored)) => body.keep_generated(&stored.body),
        (Body::Job(job), None) => job.generate_selector(&name, uid, &mut object.meta.labels),
        _ => {}
    }
    object
}

/// Is it a Deployment as it was when it was judged, with another number of pods? Most of what a trace holds is.
fn only_resizes(stored: &Object, object: &Object) -> bool {
    let (Body::Deployment(before), Body::Deployment(now)) = (&stored.body, &object.body) else { return false };
    now.spec.replicas >= 0
        && *before.spec == DeploymentSpec { replicas: before.spec.replicas, ..DeploymentSpec::clone(&now.spec) }
}

fn is_size(value: &serde_json::Value) -> bool {
    value.as_i64().is_some_and(|size| (0..=i64::from(i32::MAX)).contains(&size))
}

/// Is a field one that a recording holds as it was written? All but some of a pod's spec are.
fn is_kept(field: &str) -> bool {
    let inside = match field.rsplit_once("template.spec.") {
        Some((_, inside)) => inside,
        None if field.contains("containers[") || field.contains("volumes[") => field.trim_start_matches("spec."),
        None => return true,
    };
    let first = inside.split(['.', '[']).next().unwrap_or_default();
    match inside.split_once("].") {
        Some((_, of_container)) if ["containers", "initContainers"].contains(&first) => {
            KEPT_OF_CONTAINER.contains(&of_container.split(['.', '[']).next().unwrap_or_default())
        }
        _ => KEPT.contains(&first),
    }
}

impl admission::Admission {
    /// Validates a pod spec as it was written, each spec once.
    fn judge_pod_spec(&mut self, spec: &Arc<PodSpec>) -> validation::Errors {
        self.written.get_or_insert_with(spec, |spec| validation::pod_spec(&serde_json::json!(defaults::of_pod(spec))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_that_was_seen_before_is_not_looked_at_again() {
        let object = |json: serde_json::Value| Object::from_json(json).unwrap();
        let template = serde_json::json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
        let mut pod = object(serde_json::json!({"apiVersion": "v1", "kind": "Pod", "spec": template["spec"],
            "metadata": {"name": "p", "namespace": "shop"}}));
        let deployment = |replicas: usize| {
            object(serde_json::json!({"apiVersion": "apps/v1", "kind": "Deployment",
                "metadata": {"name": format!("d{replicas}"), "namespace": "shop"},
                "spec": {"replicas": replicas, "selector": {"matchLabels": {"a": "b"}}, "template": template}}))
        };
        let space = object(serde_json::json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}));
        for is_strict in [false, true] {
            let mut server = ApiServer::new(1);
            server.set_rules(Rules::Written);
            if is_strict {
                server = server.strict();
            }
            let now = sk_core::SimTime::from_secs(1);
            server.handle(now, Request::create(space.clone())).unwrap();
            validation::LOOKED.set(0);
            for number in 0..1_000 {
                pod.identity_mut().key.name = format!("p{number}").into();
                server.judge(&Request::create(pod.clone())).unwrap();
                server.handle(now, Request::create(pod.clone())).unwrap();
                if !is_strict {
                    server.judge(&Request::create(deployment(number))).unwrap();
                }
            }
            // Once the template as it was written, once the Deployment or the spec as it was admitted.
            assert_eq!(validation::LOOKED.get(), 2);
        }
    }

    #[test]
    fn of_a_recorded_spec_only_what_the_recorder_keeps_is_judged() {
        for kept in [
            "spec.replicas",
            "spec.template.metadata.labels",
            "spec.template.spec.containers",
            "spec.template.spec.containers[0].resources.requests",
            "spec.template.spec.restartPolicy",
            "spec.jobTemplate.spec.template.spec.tolerations[0].operator",
            "metadata.name",
        ] {
            assert!(is_kept(kept), "{kept}");
        }
        for left_out in [
            "spec.template.spec.containers[0].image",
            "spec.containers[1].ports[0].containerPort",
            "spec.template.spec.volumes[0].name",
            "spec.volumes[0]",
            "spec.template.spec.dnsPolicy",
        ] {
            assert!(!is_kept(left_out), "{left_out}");
        }
    }
}
