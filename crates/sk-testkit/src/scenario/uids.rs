//! Uids in a scenario: nobody knows them before the object is made, so a scenario names the object instead.
//!
//! `uid: <uid of v1.ConfigMap default/owner>` stands for that object's uid at the moment of the step. Both arms put it in.

use serde_json::Value;
use sk_core::ObjectRef;

use super::Target;

const BEGIN: &str = "<uid of ";

/// An object or a patch with every uid put in. What nobody knows stays as it is written.
pub fn with_uids(value: &Value, uid_of: &impl Fn(&ObjectRef) -> Option<String>) -> Value {
    match value {
        Value::String(text) => named(text).and_then(|target| uid_of(&target.0)).unwrap_or_else(|| text.clone()).into(),
        Value::Array(list) => list.iter().map(|element| with_uids(element, uid_of)).collect(),
        Value::Object(fields) => fields.iter().map(|(name, field)| (name.clone(), with_uids(field, uid_of))).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

fn named(text: &str) -> Option<Target> {
    text.strip_prefix(BEGIN)?.strip_suffix('>')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_uid_is_put_in_wherever_it_is_named_and_what_is_unknown_stays() {
        let uid_of = |object: &ObjectRef| (object.key.name == "a").then(|| "u-1".to_owned());
        let written = json!({"owners": [{"uid": "<uid of v1.ConfigMap default/a>"}, {"uid": "<uid of v1.Pod default/b>"}], "n": 1});
        let put_in = json!({"owners": [{"uid": "u-1"}, {"uid": "<uid of v1.Pod default/b>"}], "n": 1});
        assert_eq!(with_uids(&written, &uid_of), put_in);
    }
}
