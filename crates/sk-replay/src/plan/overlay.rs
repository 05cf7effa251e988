//! Overlays manifests on a trace: what would have happened with these objects instead.
//!
//! A manifest with the group, kind, namespace and name of a recorded object replaces it each time it is applied: the
//! new spec, with the recorded replicas and at the recorded times. An object that the trace does not have is added at
//! the start, and the run says so, because that is also what a forgotten namespace looks like.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use sk_core::{ObjectKey, ObjectRef, SimTime, SmolStr};
use sk_record::{Warning, WarningKind};
use sk_store::trace::{Change, Object, Record, Trace, TraceError, What};

use crate::fingerprint::Fingerprint;

/// How many added objects a warning names.
const MAX_NAMED: usize = 5;

/// Objects that take others' places.
#[derive(Clone, Debug, Default)]
pub struct Overlay {
    objects: BTreeMap<Place, Object>,
    /// Those that the trace does not have.
    added: BTreeSet<Place>,
}

impl Overlay {
    /// The one without objects.
    pub const EMPTY: &Self = &Self { objects: BTreeMap::new(), added: BTreeSet::new() };
}

/// The name of an object in any API version.
type Place = (SmolStr, SmolStr, ObjectKey);

fn place(object: &ObjectRef) -> Place {
    (object.gvk.group.clone(), object.gvk.kind.clone(), object.key.clone())
}

/// The same object is in the overlay twice.
#[derive(Debug, thiserror::Error)]
#[error("{0} is twice in the overlay manifests; keep one of them")]
pub struct Twice(ObjectRef);

impl Overlay {
    /// Of these objects.
    pub fn new(objects: impl IntoIterator<Item = Object>) -> Result<Self, Twice> {
        let mut overlay = Self::default();
        for object in objects {
            if let Some(twice) = overlay.objects.insert(place(object.reference()), object) {
                return Err(Twice(twice.reference().clone()));
            }
        }
        Ok(overlay)
    }

    /// Finds out which of the objects the trace does not have.
    pub fn look_at(&mut self, trace: &Trace) -> Result<(), TraceError> {
        if self.objects.is_empty() {
            return Ok(());
        }
        self.added = self.objects.keys().cloned().collect();
        for head in trace.heads()? {
            if let What::Apply(object, _) = head?.what {
                self.added.remove(&place(&object));
            }
        }
        Ok(())
    }

    /// Is there nothing to lay over anything?
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// The objects, in an order that depends on nothing but their names.
    pub fn objects(&self) -> impl Iterator<Item = &Value> {
        self.objects.values().map(Object::value)
    }

    /// The same objects have the same one.
    pub fn digest(&self) -> Fingerprint {
        let texts: Vec<String> = self.objects().map(Value::to_string).collect();
        Fingerprint::of(&texts.iter().map(String::as_bytes).collect::<Vec<_>>())
    }

    /// The records with the objects in place; those that the trace does not have come first, at `start`.
    pub fn over<'a, R>(&'a self, records: R, start: SimTime) -> impl Iterator<Item = Result<Record, TraceError>> + 'a
    where
        R: Iterator<Item = Result<Record, TraceError>> + 'a,
    {
        let added = self.added.iter().filter_map(|place| self.objects.get(place));
        let added = added.map(move |object| Ok(Record { at: start, seq: 0, change: Change::Apply(object.clone()) }));
        added.chain(records.map(|record| record.map(|record| self.replaced(record))))
    }

    fn replaced(&self, record: Record) -> Record {
        let change = match record.change {
            Change::Apply(recorded) => match self.objects.get(&place(recorded.reference())) {
                Some(object) => Change::Apply(with_recorded_replicas(object, &recorded)),
                None => Change::Apply(recorded),
            },
            other => other,
        };
        Record { change, ..record }
    }

    /// What a run with it has to say of it.
    pub(crate) fn warning(&self) -> Option<Warning> {
        if self.added.is_empty() {
            return None;
        }
        let named = self.added.iter().take(MAX_NAMED).map(|(_, kind, key)| format!("{kind} {key}"));
        let more = match self.added.len() {
            count if count > MAX_NAMED => format!(" and {} more", count - MAX_NAMED),
            _ => String::new(),
        };
        let message = format!(
            "laid over the trace, which does not have them, so they were added at the start: {}{more}",
            named.collect::<Vec<_>>().join(", ")
        );
        let count = self.added.len() as u64;
        Some(Warning { code: "overlay-added".to_owned(), kind: WarningKind::Assumed, message, count })
    }
}

fn with_recorded_replicas(object: &Object, recorded: &Object) -> Object {
    const REPLICAS: &str = "/spec/replicas";
    let Some(replicas) = recorded.value().pointer(REPLICAS) else { return object.clone() };
    let mut value = object.value().clone();
    if let Some(spec) = value.get_mut("spec").and_then(Value::as_object_mut) {
        spec.insert("replicas".to_owned(), replicas.clone());
    }
    Object::new(value).unwrap_or_else(|_| object.clone())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(api_version: &str, namespace: &str, replicas: Option<u32>, image: &str) -> Object {
        let mut value = json!({
            "apiVersion": api_version, "kind": "Deployment", "metadata": {"name": "web", "namespace": namespace},
            "spec": {"template": {"spec": {"containers": [{"name": "main", "image": image}]}}},
        });
        if let Some(replicas) = replicas {
            value["spec"]["replicas"] = json!(replicas);
        }
        Object::new(value).unwrap()
    }

    fn record(at: i64, change: Change) -> Result<Record, TraceError> {
        Ok(Record { at: SimTime::from_secs(at), seq: 0, change })
    }

    fn applied(record: &Record) -> &Value {
        let Change::Apply(object) = &record.change else { panic!("{record:?}") };
        object.value()
    }

    #[test]
    fn the_new_spec_comes_at_the_recorded_times_with_the_recorded_replicas() {
        let overlay = Overlay::new([object("apps/v1", "shop", Some(1), "new")]).unwrap();
        let recorded = [(0, 3), (60, 7)]
            .map(|(at, replicas)| record(at, Change::Apply(object("apps/v1beta1", "shop", Some(replicas), "old"))));
        let after: Vec<Record> = overlay.over(recorded.into_iter(), SimTime::EPOCH).map(Result::unwrap).collect();
        let told: Vec<_> =
            after.iter().map(|record| (record.at.as_secs(), applied(record)["spec"]["replicas"].as_i64())).collect();
        assert_eq!(told, [(0, Some(3)), (60, Some(7))]);
        assert!(after.iter().all(|record| applied(record).to_string().contains("\"new\"")));
    }

    #[test]
    fn other_objects_stay_and_what_the_trace_does_not_have_is_added_and_told() {
        let text = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: shop}\nspec: {}\n";
        let trace = sk_store::trace::from_bytes("shop.yaml", text).unwrap();
        let mut overlay = Overlay::new([object("apps/v1", "default", None, "new")]).unwrap();
        overlay.look_at(&trace).unwrap();
        let after: Vec<Record> =
            overlay.over(trace.records().unwrap(), SimTime::from_secs(5)).map(Result::unwrap).collect();
        assert_eq!(after[0].at, SimTime::from_secs(5));
        let spaces: Vec<&Value> = after
            .iter()
            .filter(|record| matches!(record.change, Change::Apply(_)))
            .map(|record| &applied(record)["metadata"]["namespace"])
            .collect();
        assert_eq!(spaces, ["default", "shop"]);
        let warning = overlay.warning().unwrap();
        assert!(warning.message.ends_with("added at the start: Deployment default/web"), "{}", warning.message);
    }

    #[test]
    fn an_object_that_stands_twice_is_refused() {
        let twice = Overlay::new([object("apps/v1", "a", None, "x"), object("apps/v1", "a", None, "y")]);
        assert!(twice.unwrap_err().to_string().contains("is twice in the overlay"));
    }
}
