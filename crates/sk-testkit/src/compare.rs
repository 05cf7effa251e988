//! What two recordings of one scenario must agree on, and where they do not.
//!
//! It compares the last states of all objects, without the fields that the scenario calls incomparable. A controller
//! creates and deletes the pods of one batch in any order, so `Pod#3` of one run may be `Pod#5` of another: the pods
//! of one owner are compared as a bag, with their ordinals written `Pod#*`. Intermediate states are not compared:
//! which of them a watch sees is a race.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::canonical::History;
use crate::merge;
use crate::scenario::Incomparable;

/// What is left of a recording when everything that may differ is taken out: bags of last states, by name.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparable(BTreeMap<String, Vec<Value>>);

impl Comparable {
    /// Takes out what may differ.
    pub fn of(histories: &[History], incomparable: &[Incomparable]) -> Self {
        let mut bags: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for history in histories {
            let own = || incomparable.iter().filter(|exception| exception.of == history.kind);
            // However many of them there were and are gone is chance.
            if history.deleted && own().any(|exception| exception.field == "/deleted") {
                continue;
            }
            let mut state = history.last_state().clone();
            for exception in own() {
                let path: Vec<_> = exception.field.split('/').skip(1).collect();
                remove(&mut state, &path);
            }
            let outcome = json!({"deleted": history.deleted, "lastState": without_pod_ordinals(&state)});
            bags.entry(star_pod_ordinals(&history.name)).or_default().push(outcome);
        }
        for bag in bags.values_mut() {
            bag.sort_by_key(Value::to_string);
        }
        Self(bags)
    }

    /// Every difference, one sentence each; empty when the two agree.
    pub fn differences(&self, other: &Self) -> Vec<String> {
        let names = self.0.keys().chain(other.0.keys().filter(|name| !self.0.contains_key(*name)));
        names.flat_map(|name| differences_of(name, self.bag(name), other.bag(name))).collect()
    }

    fn bag(&self, name: &str) -> &[Value] {
        self.0.get(name).map_or(&[], Vec::as_slice)
    }
}

fn differences_of(name: &str, ours: &[Value], theirs: &[Value]) -> Vec<String> {
    let mut unmatched: Vec<_> = theirs.to_vec();
    let mut alone: Vec<&Value> = Vec::new();
    for state in ours {
        match unmatched.iter().position(|other| other == state) {
            Some(index) => drop(unmatched.swap_remove(index)),
            None => alone.push(state),
        }
    }
    let pairs = alone.len().min(unmatched.len());
    let changed = (0..pairs).map(|i| format!("{name} differs by {}", merge::diff(alone[i], &unmatched[i])));
    let only_ours = alone[pairs..].iter().map(|state| format!("{name} is only in the first: {state}"));
    let only_theirs = unmatched[pairs..].iter().map(|state| format!("{name} is only in the second: {state}"));
    changed.chain(only_ours).chain(only_theirs).collect()
}

/// Removes the field at a path in which `*` matches every element of a list.
pub(crate) fn remove(value: &mut Value, path: &[&str]) {
    let (Some((first, rest)), value) = (path.split_first(), value) else { return };
    let key = first.replace("~1", "/").replace("~0", "~");
    match value {
        Value::Object(fields) if rest.is_empty() => drop(fields.remove(&key)),
        Value::Object(fields) => {
            if let Some(inner) = fields.get_mut(&key) {
                remove(inner, rest);
            }
        }
        Value::Array(list) if key == "*" => list.iter_mut().for_each(|element| remove(element, rest)),
        _ => {}
    }
}

pub(crate) fn without_pod_ordinals(value: &Value) -> Value {
    match value {
        Value::String(text) => star_pod_ordinals(text).into(),
        Value::Array(list) => list.iter().map(without_pod_ordinals).collect(),
        Value::Object(fields) => fields.iter().map(|(key, value)| (key.clone(), without_pod_ordinals(value))).collect(),
        plain => plain.clone(),
    }
}

/// `…/Pod#12` becomes `…/Pod#*`, wherever it stands in the text.
pub(crate) fn star_pod_ordinals(text: &str) -> String {
    let mut parts = text.split("Pod#");
    let mut starred = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.trim_start_matches(|digit: char| digit.is_ascii_digit());
        starred.push_str(if rest.len() < part.len() { "Pod#*" } else { "Pod#" });
        starred.push_str(rest);
    }
    starred
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(name: &str, state: Value) -> History {
        let kind = "v1.Pod".parse().unwrap();
        History {
            name: name.into(),
            kind,
            states: vec![state],
            moments: Vec::new(),
            deleted: false,
            end: None,
            events: Vec::new(),
        }
    }

    #[test]
    fn pods_of_one_owner_may_come_in_any_order() {
        let one =
            [history("d/RS#1/Pod#1", json!({"n": 1, "me": "d/RS#1/Pod#1"})), history("d/RS#1/Pod#2", json!({"n": 2}))];
        let two =
            [history("d/RS#1/Pod#1", json!({"n": 2})), history("d/RS#1/Pod#2", json!({"n": 1, "me": "d/RS#1/Pod#2"}))];
        assert_eq!(Comparable::of(&one, &[]), Comparable::of(&two, &[]));
    }

    #[test]
    fn a_difference_is_told_with_name_and_field() {
        let one = Comparable::of(&[history("d/Pod/a", json!({"phase": "Running"}))], &[]);
        let two = Comparable::of(&[history("d/Pod/a", json!({"phase": "Failed"})), history("d/Pod/b", json!({}))], &[]);
        let differences = one.differences(&two);
        assert_eq!(differences[0], r#"d/Pod/a differs by {"lastState":{"phase":"Failed"}}"#);
        assert!(differences[1].starts_with("d/Pod/b is only in the second"), "{differences:?}");
        assert_eq!(two.differences(&two), Vec::<String>::new());
    }

    #[test]
    fn incomparable_fields_do_not_count_even_inside_lists() {
        let exception =
            |field: &str| Incomparable { of: "v1.Pod".parse().unwrap(), field: field.into(), why: String::new() };
        let exceptions = [exception("/spec/nodeName"), exception("/status/list/*/at")];
        let one = [history("d/Pod/a", json!({"spec": {"nodeName": "x"}, "status": {"list": [{"at": 1, "b": 2}]}}))];
        let two = [history("d/Pod/a", json!({"spec": {}, "status": {"list": [{"at": 3, "b": 2}]}}))];
        assert_eq!(Comparable::of(&one, &exceptions), Comparable::of(&two, &exceptions));
        assert_ne!(Comparable::of(&one, &[]), Comparable::of(&two, &[]));
    }

    #[test]
    fn only_ordinals_are_starred() {
        assert_eq!(star_pod_ordinals("a/Pod#12/x and Pod#3, Pod#, MyPod"), "a/Pod#*/x and Pod#*, Pod#, MyPod");
    }
}
