//! Field sets, as field managers own them: a tree of path elements, and its `fieldsV1` JSON.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value};
use sk_core::SmolStr;

/// One step from a value into it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Step {
    /// The field or the key of a map.
    Field(SmolStr),
    /// The item of a list that has these keys, as JSON sorted by name.
    Key(SmolStr),
    /// The item of a set that is this value, as JSON.
    Item(SmolStr),
}

/// A set of fields: those that are members, and those inside others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Fields {
    pub(super) is_member: bool,
    pub(super) inside: BTreeMap<Step, Fields>,
}

impl Fields {
    /// The fields below `step`, to change.
    pub(super) fn child(&mut self, step: Step) -> &mut Self {
        self.inside.entry(step).or_default()
    }

    pub(super) fn insert(&mut self, path: &[Step]) {
        match path.split_first() {
            None => self.is_member = true,
            Some((step, rest)) => self.child(step.clone()).insert(rest),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.is_member && self.inside.values().all(Self::is_empty)
    }

    pub(super) fn union(&self, other: &Self) -> Self {
        Self::combine(Some(self), Some(other), |one, two| one || two)
    }

    pub(super) fn without(&self, other: &Self) -> Self {
        Self::combine(Some(self), Some(other), |one, two| one && !two)
    }

    pub(super) fn common(&self, other: &Self) -> Self {
        Self::combine(Some(self), Some(other), |one, two| one && two)
    }

    /// The fields that `keep` says of both: is it in the one, is it in the other? Branches without members are left
    /// out.
    fn combine(one: Option<&Self>, two: Option<&Self>, keep: fn(bool, bool) -> bool) -> Self {
        let is_member = keep(one.is_some_and(|one| one.is_member), two.is_some_and(|two| two.is_member));
        let steps = [one, two].into_iter().flatten().flat_map(|fields| fields.inside.keys());
        let mut inside = BTreeMap::new();
        for step in steps {
            let [below_one, below_two] = [one, two].map(|fields| fields.and_then(|fields| fields.inside.get(step)));
            let combined = Self::combine(below_one, below_two, keep);
            if !combined.is_empty() {
                inside.insert(step.clone(), combined);
            }
        }
        Self { is_member, inside }
    }

    /// Every member, those of a level before those inside them (`fieldpath.Set.Iterate`).
    pub(super) fn paths(&self) -> Vec<String> {
        let mut all = Vec::new();
        self.collect("", &mut all);
        all
    }

    fn collect(&self, path: &str, all: &mut Vec<String>) {
        all.extend(self.inside.iter().filter(|(_, fields)| fields.is_member).map(|(step, _)| format!("{path}{step}")));
        for (step, fields) in &self.inside {
            fields.collect(&format!("{path}{step}"), all);
        }
    }

    /// Reads `fieldsV1`.
    pub(super) fn from_json(json: &Value) -> Self {
        let Some(entries) = json.as_object() else { return Self::default() };
        let mut fields = Self::default();
        for (name, below) in entries {
            let step = match name.split_once(':') {
                Some(("f", name)) => Step::Field(name.into()),
                Some(("k", keys)) => Step::Key(keys.into()),
                Some(("v", value)) => Step::Item(value.into()),
                _ => continue,
            };
            let mut read = Self::from_json(below);
            read.is_member = below.as_object().is_some_and(|below| below.is_empty() || below.contains_key("."));
            fields.inside.insert(step, read);
        }
        fields
    }

    /// Writes `fieldsV1`.
    pub(super) fn to_json(&self) -> Value {
        let mut entries = Map::new();
        for (step, fields) in self.inside.iter().filter(|(_, fields)| !fields.is_empty()) {
            let name = match step {
                Step::Field(name) => format!("f:{name}"),
                Step::Key(keys) => format!("k:{keys}"),
                Step::Item(value) => format!("v:{value}"),
            };
            let mut below = fields.to_json();
            if let Value::Object(entries) = &mut below
                && fields.is_member
                && !entries.is_empty()
            {
                entries.shift_insert(0, ".".to_owned(), Value::Object(Map::new()));
            }
            entries.insert(name, below);
        }
        Value::Object(entries)
    }
}

impl fmt::Display for Step {
    /// As in a message about a conflict: `.spec`, `[name="web"]`, `[="finalizer"]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Item(value) => write!(f, "[={value}]"),
            Self::Key(keys) => {
                let keys: Map<String, Value> = serde_json::from_str(keys).unwrap_or_default();
                let shown: Vec<String> = keys.iter().map(|(name, value)| format!("{name}={value}")).collect();
                write!(f, "[{}]", shown.join(","))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_come_back_from_their_json_and_say_where_they_are() {
        let json = json!({
            "f:metadata": {"f:labels": {".": {}, "f:app": {}}, "f:finalizers": {"v:\"a\"": {}}},
            "f:spec": {"f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}}}, "f:type": {}},
        });
        let fields = Fields::from_json(&json);
        assert_eq!(fields.to_json(), json);
        let paths = [
            ".metadata.labels",
            ".metadata.finalizers[=\"a\"]",
            ".metadata.labels.app",
            ".spec.type",
            ".spec.ports[port=80,protocol=\"TCP\"]",
            ".spec.ports[port=80,protocol=\"TCP\"].port",
        ];
        assert_eq!(fields.paths(), paths);
        assert!(fields.without(&fields).is_empty());
        assert_eq!(fields.common(&fields), fields);
    }
}
