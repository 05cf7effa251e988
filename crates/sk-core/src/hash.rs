//! SimKube 2's stable hash: of any JSON value, and of a pod spec without the fields that differ from pod to pod of one
//! template.
//!
//! Traces carry these numbers, so every bit of the algorithm is frozen, defects included: there are no lengths and no
//! delimiters, and so `["a", ["b"]]` and `[["a"], "b"]` collide. Do not use it where that matters.

mod pod_fields;

use std::fmt;
use std::hash::Hasher;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value};
use siphasher::sip::SipHasher13;

/// Volumes with this prefix are added to each pod by admission, under a random name.
const SERVICE_ACCOUNT_VOLUME_PREFIX: &str = "kube-api-access";

/// A hash as SimKube 2 computes and writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StableHash(u64);

impl StableHash {
    /// One read from a trace or an annotation.
    pub const fn new(hash: u64) -> Self {
        Self(hash)
    }

    /// The number itself.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Of any JSON value; the order of an object's keys does not matter.
    pub fn of(value: &Value) -> Self {
        let mut hasher = StableHasher::default();
        write_value(&mut hasher, value);
        hasher.finish()
    }

    /// Of a pod's spec: what all pods of one template have in common.
    pub fn of_pod_spec(spec: &Value) -> Self {
        Self::of(&stable_pod_spec(spec))
    }
}

impl fmt::Display for StableHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A pod's spec without what admission, the scheduler or a newer Kubernetes adds to it, and without the ports of its
/// main containers, which SimKube 2 takes away when it replays.
pub fn stable_pod_spec(spec: &Value) -> Value {
    let mut stable = spec.clone();
    pod_fields::drop_unknown(&mut stable);
    drop_additions(&mut stable);
    if let Value::Object(fields) = &mut stable {
        objects_in(fields, "containers").for_each(|container| container.retain(|name, _| name != "ports"));
    }
    stable
}

/// Takes away what admission and the scheduler add to a pod's spec, so that all pods of one template look alike.
pub(crate) fn drop_additions(spec: &mut Value) {
    let Value::Object(fields) = spec else { return };
    fields.retain(|name, _| !matches!(name.as_str(), "nodeName" | "serviceAccount" | "serviceAccountName"));
    keep_own_volumes(fields, "volumes");
    for containers in ["initContainers", "containers"] {
        objects_in(fields, containers).for_each(|container| keep_own_volumes(container, "volumeMounts"));
    }
}

fn objects_in<'a>(fields: &'a mut Map<String, Value>, list: &str) -> impl Iterator<Item = &'a mut Map<String, Value>> {
    fields.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten().filter_map(Value::as_object_mut)
}

/// Leaves the volumes or mounts that the author wrote; an absent list becomes an empty one.
fn keep_own_volumes(fields: &mut Map<String, Value>, list: &str) {
    let volumes = fields.entry(list).or_insert_with(|| Value::Array(Vec::new()));
    if let Value::Array(volumes) = volumes {
        let from_admission = |name: &str| name.starts_with(SERVICE_ACCOUNT_VOLUME_PREFIX);
        volumes.retain(|volume| !volume.get("name").and_then(Value::as_str).is_some_and(from_admission));
    }
}

fn write_value(hasher: &mut StableHasher, value: &Value) {
    match value {
        Value::Null => hasher.null(),
        Value::Bool(flag) => hasher.bool(*flag),
        Value::Number(number) => write_number(hasher, number),
        Value::String(text) => hasher.text(text),
        Value::Array(elements) => elements.iter().for_each(|element| write_value(hasher, element)),
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_unstable_by_key(|(name, _)| *name);
            for (name, value) in fields {
                hasher.text(name);
                write_value(hasher, value);
            }
        }
    }
}

fn write_number(hasher: &mut StableHasher, number: &Number) {
    match (number.as_u64(), number.as_i64()) {
        (Some(unsigned), _) => hasher.unsigned(unsigned),
        (None, Some(signed)) => hasher.signed(signed),
        // Not an integer, so serde_json holds a float.
        (None, None) => hasher.float(number.as_f64().unwrap_or_default()),
    }
}

/// Makes a [`StableHash`] of a value's parts, for those who hold no tree of it. Lists are their elements; an object is
/// each key in sorted order, as text, and then its value.
#[derive(Clone, Debug, Default)]
pub struct StableHasher(SipHasher13);

impl StableHasher {
    /// Null.
    pub fn null(&mut self) {
        self.0.write(&0_u64.to_le_bytes());
    }

    /// True or false.
    pub fn bool(&mut self, flag: bool) {
        self.0.write(&[u8::from(flag)]);
    }

    /// An integer that is not negative.
    pub fn unsigned(&mut self, number: u64) {
        self.0.write(&number.to_le_bytes());
    }

    /// A negative integer.
    pub fn signed(&mut self, number: i64) {
        self.0.write(&number.to_le_bytes());
    }

    /// A number that is not an integer.
    pub fn float(&mut self, number: f64) {
        self.0.write(&number.to_bits().to_le_bytes());
    }

    /// A string, or a key.
    pub fn text(&mut self, text: &str) {
        self.0.write(text.as_bytes());
        self.0.write(&[0xff]);
    }

    /// The hash of a walk that somebody has written down: the bytes that the other functions would have taken.
    pub fn of_walk(bytes: &[u8]) -> StableHash {
        let mut hasher = SipHasher13::default();
        hasher.write(bytes);
        StableHash(hasher.finish())
    }

    /// The hash of everything so far.
    pub fn finish(&self) -> StableHash {
        StableHash(self.0.finish())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A hash of the bytes that the format's description lists, independent of the walk.
    fn of_bytes(bytes: &[u8]) -> StableHash {
        let mut hasher = SipHasher13::new_with_keys(0, 0);
        hasher.write(bytes);
        StableHash::new(hasher.finish())
    }

    #[test]
    fn each_kind_of_value_is_hashed_as_the_bytes_the_format_lists() {
        assert_eq!(StableHash::of(&json!(null)), of_bytes(&[0; 8]));
        assert_eq!(StableHash::of(&json!(true)), of_bytes(&[1]));
        assert_eq!(StableHash::of(&json!(-2)), of_bytes(&(-2_i64).to_le_bytes()));
        assert_eq!(StableHash::of(&json!(u64::MAX)), of_bytes(&[0xff; 8]));
        assert_eq!(StableHash::of(&json!(1.5)), of_bytes(&1.5_f64.to_bits().to_le_bytes()));
        assert_eq!(StableHash::of(&json!("ab")), of_bytes(b"ab\xff"));
        assert_eq!(StableHash::of(&json!(["a", ["b"]])), of_bytes(b"a\xffb\xff"));
    }

    #[test]
    fn keys_are_hashed_in_sorted_order_whatever_order_they_were_read_in() {
        assert_eq!(StableHash::of(&json!({"b": false, "a": "x"})), of_bytes(b"a\xffx\xffb\xff\x00"));
        assert_eq!(StableHash::of(&json!({"a": 1, "b": 2})), StableHash::of(&json!({"b": 2, "a": 1})));
    }

    #[test]
    fn pods_of_one_template_have_one_stable_spec() {
        let pod = json!({
            "nodeName": "node-1",
            "serviceAccount": "default",
            "serviceAccountName": "default",
            "initContainers": [{"name": "init", "ports": [{"containerPort": 1}],
                "volumeMounts": [{"name": "kube-api-access-x", "mountPath": "/a"}]}],
            "containers": [{"name": "main", "ports": [{"containerPort": 80}],
                "volumeMounts": [{"name": "data", "mountPath": "/d"}, {"name": "kube-api-access-x", "mountPath": "/a"}]}],
            "volumes": [{"name": "data", "emptyDir": {}}, {"name": "kube-api-access-x", "projected": {}}],
        });
        let stable = json!({
            "initContainers": [{"name": "init", "ports": [{"containerPort": 1}], "volumeMounts": []}],
            "containers": [{"name": "main", "volumeMounts": [{"name": "data", "mountPath": "/d"}]}],
            "volumes": [{"name": "data", "emptyDir": {}}],
        });
        assert_eq!(stable_pod_spec(&pod), stable);
        assert_eq!(StableHash::of_pod_spec(&pod), StableHash::of(&stable));
    }

    #[test]
    fn a_spec_that_is_no_spec_hashes_without_complaint() {
        for odd in
            [json!(null), json!(3), json!({"containers": "none", "volumes": 7}), json!({"containers": [1, null]})]
        {
            StableHash::of_pod_spec(&odd);
        }
    }
}
