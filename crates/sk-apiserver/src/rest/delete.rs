//! Delete and deletecollection, with DeleteOptions from the body or, without a body, from the query.

use serde_json::{Value, json};

use sk_core::registry::Scope;
use sk_core::{ObjectRef, SimTime};

use super::options::{is_trial, list_options, number, refuse};
use super::path::{Place, Query};
use super::verbs::{Answered, not_allowed, target};
use super::{Call, Reply, body_of};
use crate::error::Invalid;
use crate::server::ApiServer;
use crate::{ApiError, DeleteOptions, Propagation, Reason, kinds, schema};

/// What options of a deletion say that the server itself does not know.
pub(super) struct Deletion {
    options: DeleteOptions,
    /// The propagation policy, if given.
    policy: Option<Propagation>,
    /// A uid or a version that no object has.
    impossible: Option<Precondition>,
    is_trial: bool,
}

enum Precondition {
    Uid(String),
    Version(String),
}

/// Namespaces that cannot be deleted (NamespaceLifecycle).
const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];

impl ApiServer {
    pub(super) fn delete_one(&mut self, now: SimTime, call: &Call, place: &Place, query: &Query) -> Answered {
        let (target, deletion) = (target(place)?, Deletion::read(call, query)?);
        if deletion.is_trial {
            let mut trial = self.clone();
            return trial.delete_really(now, place, &target, &deletion);
        }
        self.delete_really(now, place, &target, &deletion)
    }

    fn delete_really(&mut self, now: SimTime, place: &Place, target: &ObjectRef, deletion: &Deletion) -> Answered {
        let is_immortal = target.gvk == kinds::NAMESPACE && IMMORTAL.contains(&target.key.name.as_str());
        if is_immortal && self.admission.is_strict {
            return Err(ApiError::forbidden(&target.gvk, &target.key.name, "this namespace may not be deleted"));
        }
        let options = self.settled(target, deletion)?;
        let object = self.delete(now, target, options)?;
        let is_gone = self.store().get(&target.gvk, &target.key).is_none();
        if !is_gone || returns_deleted(&place.gvk.kind) {
            return Ok(Reply::object(200, &object));
        }
        let mut details =
            json!({"name": object.key.name.as_str(), "kind": place.plural.as_str(), "uid": object.uid.to_string()});
        if !place.gvk.group.is_empty() {
            details["group"] = place.gvk.group.as_str().into();
        }
        Ok(Reply::success(200, Some(details)))
    }

    /// The options for one object. Without a propagation policy, its finalizers and its kind decide
    /// (`deletionFinalizersForGarbageCollection`).
    fn settled(&self, target: &ObjectRef, deletion: &Deletion) -> Result<DeleteOptions, ApiError> {
        let stored = self.get(target)?;
        match &deletion.impossible {
            Some(Precondition::Uid(uid)) => return Err(crate::server::meant_for_another(&stored, uid)),
            Some(Precondition::Version(version)) => return Err(crate::server::wrong_version(&stored, version)),
            None => {}
        }
        let has = |name: &str| stored.meta.finalizers.iter().any(|known| known == name);
        let usual = if has("orphan") {
            Propagation::Orphan
        } else if has("foregroundDeletion") {
            Propagation::Foreground
        } else if stored.gvk == kinds::JOB || stored.gvk == kinds::REPLICATION_CONTROLLER {
            // These two keep their pods, as they did before there was a garbage collector.
            Propagation::Orphan
        } else {
            Propagation::Background
        };
        Ok(DeleteOptions { propagation: deletion.policy.unwrap_or(usual), is_settled: true, ..deletion.options })
    }

    pub(super) fn delete_many(&mut self, now: SimTime, call: &Call, place: &Place, query: &Query) -> Answered {
        let is_everywhere = place.scope == Scope::Namespaced && place.namespace.is_none();
        if is_everywhere || place.gvk == kinds::NAMESPACE {
            return Err(not_allowed());
        }
        let deletion = Deletion::read(call, query)?;
        let page = self.list(&place.gvk, &list_options(place, query, false)?)?;
        let reply = self.page(place, &page);
        if !deletion.is_trial {
            for object in &page.items {
                let target = object.reference();
                let options = self.settled(&target, &deletion)?;
                self.delete(now, &target, options)?;
            }
        }
        Ok(reply)
    }

    pub(super) fn evict_one(&mut self, now: SimTime, call: &Call, place: &Place) -> Answered {
        let (pod, body) = (target(place)?, self.part(call, "Eviction", schema::EVICTION)?);
        super::verbs::refuse_misnamed(&body, &pod, "Eviction")?;
        let options = body.get("deleteOptions").cloned().unwrap_or_else(|| json!({}));
        let deletion = Deletion::of(&options)?;
        let server = &mut if deletion.is_trial { Some(self.clone()) } else { None };
        let server = server.as_mut().unwrap_or(self);
        let options = DeleteOptions { propagation: deletion.policy.unwrap_or_default(), ..deletion.options };
        server.evict(now, pod.key, options)?;
        Ok(Reply::success(201, None))
    }
}

impl Deletion {
    /// A body says all; without one, the query does.
    fn read(call: &Call, query: &Query) -> Result<Self, ApiError> {
        if call.body.is_empty() {
            let text = |name: &str| query.get(name).map_or(Value::Null, Value::from);
            let grace = number(query, "gracePeriodSeconds")?.map_or(Value::Null, Value::from);
            let orphan =
                query.get("orphanDependents").map_or(Value::Null, |_| query.is_true("orphanDependents").into());
            return Self::of(&json!({
                "gracePeriodSeconds": grace, "propagationPolicy": text("propagationPolicy"), "orphanDependents": orphan,
                "dryRun": query.all("dryRun"),
            }));
        }
        let unread = |error: ApiError| match error.reason {
            Reason::BadRequest => {
                ApiError::bad_request(format!("couldn't get version/kind; json parse error: {}", error.message))
            }
            _ => error,
        };
        let body = body_of(call).map_err(unread)?;
        let Some(fields) = body.as_object() else {
            return Err(ApiError::bad_request(super::verbs::no_object(&body)));
        };
        let text = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default();
        if !["", "DeleteOptions"].contains(&text("kind")) {
            return Err(ApiError::bad_request(super::verbs::unknown_kind(text("kind"), text("apiVersion"))));
        }
        Self::of(&schema::decode_part(schema::DELETE_OPTIONS, body, "").map_err(ApiError::bad_request)?)
    }

    fn of(read: &Value) -> Result<Self, ApiError> {
        let words: Vec<&str> = read["dryRun"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let is_trial = is_trial("DeleteOptions", &words)?;
        let said = |pointer: &str| read.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        let (uid, version) = (said("/preconditions/uid"), said("/preconditions/resourceVersion"));
        let read_uid = uid.as_ref().and_then(|uid| uid.parse().ok());
        let read_version = version.as_ref().and_then(|version| version.parse().ok());
        let impossible = match (uid, version) {
            (Some(uid), _) if read_uid.is_none() => Some(Precondition::Uid(uid)),
            (_, Some(version)) if read_version.is_none() => Some(Precondition::Version(version)),
            _ => None,
        };
        let options = DeleteOptions {
            uid: read_uid,
            resource_version: read_version,
            grace_secs: read["gracePeriodSeconds"].as_i64(),
            ..DeleteOptions::default()
        };
        Ok(Self { options, policy: policy(read)?, impossible, is_trial })
    }
}

/// The propagation policy, if given.
fn policy(read: &Value) -> Result<Option<Propagation>, ApiError> {
    let (policy, orphan) = (read["propagationPolicy"].as_str(), read["orphanDependents"].as_bool());
    if let (Some(policy), Some(_)) = (policy, orphan) {
        let why = format!("Invalid value: {policy:?}: orphanDependents and deletionPropagation cannot be both set");
        refuse("DeleteOptions", &[Invalid::new("propagationPolicy", why)])?;
    }
    Ok(match policy {
        None => orphan.map(|orphan| if orphan { Propagation::Orphan } else { Propagation::Background }),
        Some("Background") => Some(Propagation::Background),
        Some("Foreground") => Some(Propagation::Foreground),
        Some("Orphan") => Some(Propagation::Orphan),
        Some(other) => {
            let words = "supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\"";
            let why = format!("Unsupported value: \"{other}\": {words}");
            refuse("DeleteOptions", &[Invalid::new("propagationPolicy", why)])?;
            None
        }
    })
}

/// Kinds whose deletion answers with what was deleted (`ReturnDeletedObject`, 1.36); the others answer `Success`.
fn returns_deleted(kind: &str) -> bool {
    ["Pod", "PersistentVolume", "PersistentVolumeClaim", "PodTemplate", "ResourceQuota", "Service", "ServiceAccount"]
        .contains(&kind)
}
