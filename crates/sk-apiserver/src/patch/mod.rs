//! The three patch types besides apply: JSON patch, merge patch and strategic merge patch.
//!
//! The server applies a patch to the object's JSON and stores the result as an update. A patch that cannot be applied
//! is refused with the API server's message.

mod json;
mod merge;
mod strategic;

use serde_json::Value;
use sk_core::Gvk;

use crate::error::{ApiError, Reason};
use crate::schema;

/// A change of an object, by the type of content that says how to read it.
#[derive(Clone, Debug, PartialEq)]
pub enum Patch {
    /// `application/json-patch+json` (RFC 6902): a list of operations.
    Json(Value),
    /// `application/merge-patch+json` (RFC 7386): what is there replaces, `null` removes.
    Merge(Value),
    /// `application/strategic-merge-patch+json`: as a merge patch, but lists merge by their keys.
    Strategic(Value),
}

impl Patch {
    /// The object that the patch makes of `original`.
    pub(crate) fn apply(&self, gvk: &Gvk, original: Value) -> Result<Value, ApiError> {
        match self {
            Self::Json(operations) => json::apply(original, operations),
            Self::Merge(patch) => {
                if !patch.is_object() {
                    let what = crate::error::json_type(patch);
                    let why = format!("json: cannot unmarshal {what} into Go value of type map[string]interface {{}}");
                    return Err(ApiError::bad_request(format!("error decoding patch: {why}")));
                }
                let mut patched = original;
                merge::apply(&mut patched, patch);
                Ok(patched)
            }
            Self::Strategic(patch) => {
                let Some(of) = schema::find(gvk) else {
                    let message = "the body of the request was in an unknown format - accepted media types include: \
                                   application/json-patch+json, application/merge-patch+json, \
                                   application/apply-patch+yaml";
                    return Err(ApiError::new(Reason::UnsupportedMediaType, message));
                };
                strategic::apply(original, patch, of).map_err(|message| ApiError::new(Reason::Unknown, message))
            }
        }
    }
}

impl Patch {
    /// Refuses what a patch has made of an object if its type cannot hold it: with the whole text, as a server does.
    pub(crate) fn refuse_unreadable(&self, patched: &Value) -> Result<(), ApiError> {
        let text = |name: &str| patched.get(name).and_then(Value::as_str).unwrap_or_default();
        let Ok(gvk) = Gvk::from_api_version(text("apiVersion"), text("kind")) else { return Ok(()) };
        let Some(of) = schema::find(&gvk) else { return Ok(()) };
        let Err(why) = schema::decode(&gvk, of, patched.clone()) else { return Ok(()) };
        Err(ApiError::unreadable_patch(&self.shown(of, patched), &why))
    }

    /// What a patch has made of an object, as a server writes it into a message.
    pub(crate) fn shown(&self, of: &'static schema::Struct, patched: &Value) -> String {
        let shown = match self {
            Self::Merge(patch) => {
                let mut ordered = schema::in_order(of, patched);
                if let (Value::Object(ordered), Value::Object(all)) = (&mut ordered, patched) {
                    let missing: Vec<&String> = all.keys().filter(|name| !ordered.contains_key(*name)).collect();
                    ordered.extend(missing.into_iter().map(|name| (name.clone(), all[name].clone())));
                }
                in_order_of_merge(ordered, patch)
            }
            Self::Json(_) | Self::Strategic(_) => {
                let mut sorted = patched.clone();
                sorted.sort_all_objects();
                sorted
            }
        };
        shown.to_string()
    }
}

/// The library that merges writes the maps that it looked into by name, and leaves the others as they were.
fn in_order_of_merge(merged: Value, patch: &Value) -> Value {
    let (Value::Object(fields), Value::Object(patch)) = (&merged, patch) else { return merged };
    let mut fields: Vec<(String, Value)> = fields.clone().into_iter().collect();
    fields.sort_by(|one, other| one.0.cmp(&other.0));
    let inner = |(name, value): (String, Value)| {
        let value = match patch.get(&name) {
            Some(change) => in_order_of_merge(value, change),
            None => value,
        };
        (name, value)
    };
    Value::Object(fields.into_iter().map(inner).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The cases that Kubernetes' own library has answered (`sk-testkit/fixtures/oracle-smp.json`).
    const RECORDED: &str = include_str!("../../../sk-testkit/fixtures/oracle-smp.json");

    #[test]
    fn strategic_merge_answers_every_recorded_case_as_kubernetes_does() {
        let recorded: Value = serde_json::from_str(RECORDED).unwrap();
        let cases = recorded["cases"].as_array().unwrap();
        assert_eq!(cases.len(), 67);
        for case in cases {
            let gvk = Gvk::from_api_version(case["apiVersion"].as_str().unwrap(), case["kind"].as_str().unwrap());
            let patch = Patch::Strategic(case["patch"].clone());
            match patch.apply(&gvk.unwrap(), case["original"].clone()) {
                Ok(merged) => assert_eq!(merged, case["merged"], "{case}"),
                Err(error) => assert_eq!(error.message, case["error"].as_str().unwrap_or_default(), "{case}"),
            }
        }
    }
}
