//! Removes from an object what a cluster generates: uids, versions, times, addresses, hashes, generated names.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde_json::{Map, Value};
use sk_core::SimTime;

use super::name::Names;

/// Fields that are left out wherever they stand, because they never mean the same twice.
const LEFT_OUT: [&str; 6] =
    ["uid", "resourceVersion", "creationTimestamp", "managedFields", "selfLink", "generateName"];

/// Labels whose value is a hash of a template. It differs between clusters only where uids go into it, but it says
/// nothing that the template does not.
const HASH_LABELS: [&str; 2] = ["pod-template-hash", "controller-revision-hash"];

/// The volume that ServiceAccount admission adds to a pod, with a suffix of its own.
const TOKEN_VOLUME: &str = "kube-api-access-";

/// Rewrites text and values so that two clusters agree on them.
pub(super) struct Scrubber {
    /// What is replaced by what, longest first, so that a pod's name goes before its ReplicaSet's inside it.
    replacements: Vec<(String, String)>,
}

impl Scrubber {
    /// Learns from all observed objects what has to be replaced.
    pub(super) fn new<'a>(names: &Names, objects: impl Iterator<Item = &'a Value>) -> Self {
        let mut replacements = BTreeMap::new();
        for object in objects {
            let metadata = &object["metadata"];
            for hash in HASH_LABELS.iter().filter_map(|label| metadata["labels"][*label].as_str()) {
                // The name of a revision is such a hash, too, and says more.
                replacements.entry(hash.to_owned()).or_insert_with(|| "<hash>".to_owned());
            }
            let Some(uid) = metadata["uid"].as_str() else { continue };
            let Some((name, _)) = names.get(uid) else { continue };
            replacements.insert(uid.to_owned(), format!("<uid of {name}>"));
            if let (true, Some(made_up)) = (name.is_numbered(), metadata["name"].as_str()) {
                replacements.insert(made_up.to_owned(), name.to_string());
            }
        }
        let mut replacements: Vec<_> = replacements.into_iter().filter(|(from, _)| !from.is_empty()).collect();
        replacements.sort_by_key(|(from, _)| std::cmp::Reverse(from.len()));
        Self { replacements }
    }

    /// An object's canonical state: scrubbed, without nulls, keys sorted, called by its canonical name.
    pub(super) fn state(&self, object: &Value, name: &str) -> Value {
        let mut state = self.value(object);
        state["metadata"]["name"] = name.into();
        state
    }

    /// A text in which made-up words are replaced.
    pub(super) fn text(&self, text: &str) -> String {
        if text.parse::<IpAddr>().is_ok() {
            return "<ip>".to_owned();
        }
        if is_time(text) {
            return "<time>".to_owned();
        }
        if text.starts_with(TOKEN_VOLUME) {
            return format!("{TOKEN_VOLUME}<suffix>");
        }
        self.replacements.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
    }

    fn value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => self.text(text).into(),
            Value::Array(list) => list.iter().map(|element| self.value(element)).collect(),
            Value::Object(fields) => {
                let sorted: BTreeMap<_, _> = fields
                    .iter()
                    .filter(|(key, value)| !value.is_null() && !LEFT_OUT.contains(&key.as_str()))
                    .map(|(key, value)| (key.clone(), self.value(value)))
                    .collect();
                Value::Object(Map::from_iter(sorted))
            }
            plain => plain.clone(),
        }
    }
}

fn is_time(text: &str) -> bool {
    // The cheap look first: nearly every text is none.
    text.len() >= "2026-01-01T00:00:00Z".len()
        && text.as_bytes()[4] == b'-'
        && text.as_bytes()[10] == b'T'
        && SimTime::parse_rfc3339(text).is_ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_cluster_makes_up_is_scrubbed_and_the_rest_stays() {
        let scrubber =
            Scrubber { replacements: vec![("web-77f-x".into(), "POD".into()), ("77f".into(), "<hash>".into())] };
        let scrubbed = scrubber.value(&json!({
            "metadata": {"uid": "u", "resourceVersion": "7", "labels": {"pod-template-hash": "77f"}},
            "spec": {"volumes": [{"name": "kube-api-access-x7k2p"}], "replicas": 3, "paused": null},
            "status": {"podIP": "10.0.0.1", "at": "2026-11-15T10:00:00.123456Z", "message": "web-77f-x of web-77f"},
        }));
        assert_eq!(
            scrubbed,
            json!({
                "metadata": {"labels": {"pod-template-hash": "<hash>"}},
                "spec": {"replicas": 3, "volumes": [{"name": "kube-api-access-<suffix>"}]},
                "status": {"at": "<time>", "message": "POD of web-<hash>", "podIP": "<ip>"},
            })
        );
    }

    #[test]
    fn odd_texts_are_left_alone() {
        let scrubber = Scrubber { replacements: Vec::new() };
        for text in ["", "1.5", "2026-11-15", "äöüß-äöüßTäöüßäöüß", "v1.36.4"] {
            assert_eq!(scrubber.text(text), text);
        }
    }
}
