//! Which pod template a pod was made from: where an object has templates, how one is identified, and whether a pod can
//! have come from it.
//!
//! Lives are recorded and replayed by [`TemplateId`], so that a pod of the third revision lives as long as pods of the
//! third revision did. An annotation on the pod carries the identity; without one, attribution looks for a template
//! that [`is_subset`] of the pod.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::hash::drop_additions;
use crate::pointer::ParsePointerError;
use crate::{Pointer, PointerPattern, Quantity, StableHash};

/// Holds a template's [`TemplateId`] on the template and so on each pod made from it.
pub const TEMPLATE_ANNOTATION: &str = "static.simkube.io/template";

/// One version of one pod template of an object. Written `/spec/template@0123456789abcdef`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TemplateId {
    /// Its path in the object, with list indexes.
    pub path: Pointer,
    /// What it says.
    pub hash: StableHash,
}

/// Why a text is not a template identity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseTemplateIdError {
    /// It has not the form of one.
    #[error("`{0}` is not a template identity: it looks like `/spec/template@0123456789abcdef`")]
    Form(String),
    /// The part before the `@` is not a pointer.
    #[error("a template identity starts with a pointer")]
    Path(#[from] ParsePointerError),
}

impl TemplateId {
    /// Of a template as it is recorded, before a replay adds anything to it. Labels, annotations and the spec count;
    /// names and timestamps, which differ though the template is the same, do not. Neither does what admission adds to
    /// a pod, so that a bare pod keeps its identity once it is scheduled.
    pub fn of(path: Pointer, template: &Value) -> Self {
        let mut spec = template["spec"].clone();
        drop_additions(&mut spec);
        let part = |field: &str| template["metadata"][field].clone();
        let counted = [("annotations", part("annotations")), ("labels", part("labels")), ("spec", spec)];
        let counted: Map<String, Value> = counted
            .into_iter()
            .filter(|(_, value)| !is_empty(value))
            .map(|(field, value)| (field.to_owned(), value))
            .collect();
        Self { path, hash: StableHash::of(&Value::Object(counted)) }
    }

    /// Every template in an object, at the given places.
    pub fn all_in(object: &Value, paths: &[PointerPattern]) -> Vec<Self> {
        paths.iter().flat_map(|path| path.find(object)).map(|(at, template)| Self::of(at, template)).collect()
    }
}

impl fmt::Display for TemplateId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{:016x}", self.path, self.hash.get())
    }
}

impl FromStr for TemplateId {
    type Err = ParseTemplateIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refuse = || ParseTemplateIdError::Form(text.chars().take(200).collect());
        let (path, hash) = text.rsplit_once('@').ok_or_else(refuse)?;
        let is_hex = hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
        let hash = u64::from_str_radix(hash, 16).ok().filter(|_| is_hex).ok_or_else(refuse)?;
        Ok(Self { path: path.parse()?, hash: StableHash::new(hash) })
    }
}

impl Serialize for TemplateId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TemplateId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// Can the pod have come from this template? Its labels, annotations and spec must hold everything that the template
/// says; controllers, defaulting and admission may have added to it.
pub fn is_subset(template: &Value, pod: &Value) -> bool {
    let metadata = |field: &str| holds(&pod["metadata"][field], &template["metadata"][field], false);
    metadata("labels") && metadata("annotations") && holds(&pod["spec"], &template["spec"], false)
}

/// Does the pod run the template's containers, by name and image? Tells the templates of one object apart when
/// admission has changed the pod too much for [`is_subset`].
pub fn has_containers_of(template: &Value, pod: &Value) -> bool {
    let containers = |object: &Value| object["spec"]["containers"].as_array().cloned().unwrap_or_default();
    let (wanted, present) = (containers(template), containers(pod));
    let same = |a: &Value, b: &Value| a["name"] == b["name"] && a["image"] == b["image"];
    !wanted.is_empty() && wanted.iter().all(|container| present.iter().any(|other| same(container, other)))
}

/// Does `actual` hold everything that `wanted` says? `quantity` tells that both are amounts, or maps of them.
fn holds(actual: &Value, wanted: &Value, quantity: bool) -> bool {
    match (actual, wanted) {
        // Kubernetes' types leave out what is empty.
        (Value::Null, wanted) => is_empty(wanted),
        (_, Value::Null) => true,
        (Value::Object(actual), Value::Object(wanted)) => wanted.iter().all(|(field, wanted)| {
            let quantity = quantity || matches!(field.as_str(), "limits" | "requests" | "overhead" | "sizeLimit");
            holds(actual.get(field).unwrap_or(&Value::Null), wanted, quantity)
        }),
        (Value::Array(actual), Value::Array(wanted)) if wanted.iter().all(Value::is_object) => {
            holds_in_order(actual, wanted)
        }
        (actual, wanted) => actual == wanted || quantity && same_quantity(actual, wanted),
    }
}

/// Containers, volumes and the like: admission may put its own before, between and after the template's.
fn holds_in_order(actual: &[Value], wanted: &[Value]) -> bool {
    let mut actual = actual.iter();
    wanted.iter().all(|wanted| actual.any(|actual| holds(actual, wanted, false)))
}

fn same_quantity(a: &Value, b: &Value) -> bool {
    matches!((Quantity::deserialize(a), Quantity::deserialize(b)), (Ok(a), Ok(b)) if a == b)
}

/// Would Kubernetes' types leave it out?
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_i64() == Some(0),
        Value::String(text) => text.is_empty(),
        Value::Array(elements) => elements.is_empty(),
        Value::Object(fields) => fields.values().all(is_empty),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::registry;

    fn template() -> Value {
        json!({
            "metadata": {"creationTimestamp": null, "name": "ignored", "labels": {"app": "web"}},
            "spec": {
                "containers": [{
                    "name": "web",
                    "image": "web:1",
                    "command": ["serve"],
                    "env": [{"name": "MODE", "value": ""}],
                    "resources": {"requests": {"cpu": 1, "memory": "1024Mi"}},
                }],
                "terminationGracePeriodSeconds": 30,
            },
        })
    }

    /// What a controller, defaulting and admission make of the template.
    fn pod() -> Value {
        json!({
            "metadata": {"name": "web-1-x", "labels": {"app": "web", "pod-template-hash": "1"}},
            "spec": {
                "containers": [
                    {"name": "injected", "image": "proxy:9"},
                    {
                        "name": "web",
                        "image": "web:1",
                        "command": ["serve"],
                        "env": [{"name": "ADDED", "value": "1"}, {"name": "MODE"}],
                        "resources": {"requests": {"cpu": "1", "memory": "1Gi"}},
                        "volumeMounts": [{"name": "kube-api-access-x", "mountPath": "/var/run"}],
                    },
                ],
                "nodeName": "node-1",
                "priority": 0,
                "terminationGracePeriodSeconds": 30,
                "volumes": [{"name": "kube-api-access-x", "projected": {}}],
            },
        })
    }

    #[test]
    fn a_pod_comes_from_a_template_whatever_was_added_to_it() {
        assert!(is_subset(&template(), &pod()));
        assert!(has_containers_of(&template(), &pod()));
    }

    #[test]
    fn a_pod_does_not_come_from_a_template_that_says_something_else() {
        let changes = [
            ("/spec/containers/0/image", json!("web:2")),
            ("/spec/containers/0/command", json!(["serve", "fast"])),
            ("/spec/containers/0/resources/requests/cpu", json!("1001m")),
            ("/spec/terminationGracePeriodSeconds", json!(31)),
            ("/metadata/labels/app", json!("db")),
        ];
        for (at, value) in changes {
            let mut other = template();
            *other.pointer_mut(at).unwrap() = value;
            assert!(!is_subset(&other, &pod()), "{at}");
        }
        let mut more = template();
        more["spec"]["hostNetwork"] = json!(true);
        assert!(!is_subset(&more, &pod()));
    }

    #[test]
    fn containers_are_told_apart_by_name_and_image() {
        let mut other = template();
        other["spec"]["containers"][0]["image"] = json!("web:2");
        assert!(!has_containers_of(&other, &pod()));
        assert!(!has_containers_of(&json!({}), &pod()), "nothing to go by");
    }

    #[test]
    fn an_identity_ignores_names_and_what_admission_adds_and_sees_the_rest() {
        let id = |template: &Value| TemplateId::of("/spec/template".parse().unwrap(), template);
        let mut same = template();
        same["metadata"]["name"] = json!("other");
        same["metadata"]["annotations"] = json!({});
        same["spec"]["nodeName"] = json!("node-1");
        same["spec"]["volumes"] = json!([{"name": "kube-api-access-x"}]);
        assert_eq!(id(&same), id(&template()));
        for at in ["/spec/terminationGracePeriodSeconds", "/metadata/labels/app", "/spec/containers/0/image"] {
            let mut other = template();
            *other.pointer_mut(at).unwrap() = json!("changed");
            assert_ne!(id(&other), id(&template()), "{at}");
        }
    }

    #[test]
    fn every_template_of_an_object_has_its_own_identity() {
        let object = json!({"spec": {"groups": [{"template": template()}, {"template": template()}]}});
        let ids = TemplateId::all_in(&object, &["/spec/groups/*/template".parse().unwrap()]);
        assert_eq!(
            ids.iter().map(|id| id.path.as_str()).collect::<Vec<_>>(),
            ["/spec/groups/0/template", "/spec/groups/1/template"]
        );
        assert_eq!(ids[0].hash, ids[1].hash);
    }

    #[test]
    fn identities_print_as_they_are_read() {
        for text in ["/spec/template@0123456789abcdef", "@ffffffffffffffff", "/a@b@0000000000000000"] {
            assert_eq!(text.parse::<TemplateId>().unwrap().to_string(), text);
        }
        for text in ["", "/spec/template", "spec@0123456789abcdef", "/spec@1", "/spec@+123456789abcdef"] {
            assert!(text.parse::<TemplateId>().is_err(), "{text}");
        }
    }

    #[test]
    fn kubernetes_own_workloads_have_a_known_template() {
        let path = |text: &str| registry::template_path(&text.parse().unwrap()).map(|path| path.to_string());
        assert_eq!(path("batch/v1.CronJob").as_deref(), Some("/spec/jobTemplate/spec/template"));
        for kind in [
            "apps/v1.DaemonSet",
            "apps/v1.Deployment",
            "apps/v1.ReplicaSet",
            "apps/v1.StatefulSet",
            "batch/v1.Job",
            "v1.ReplicationController",
        ] {
            assert_eq!(path(kind).as_deref(), Some("/spec/template"), "{kind}");
        }
        assert_eq!(path("v1.Pod").as_deref(), Some(""));
        assert_eq!(path("example.com/v1.Deployment"), None);
    }
}
