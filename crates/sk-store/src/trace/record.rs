//! Records: at this time, in this order, this object was applied or deleted.

use std::fmt;
use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value};
use sk_core::{Gvk, ObjectKey, ObjectRef, SimTime};

use super::shape::Shape;

/// One thing that happened.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// When, on the trace's own clock.
    pub at: SimTime,
    /// Strictly increasing within a trace: the order of what happened at the same time.
    pub seq: u64,
    /// What happened.
    pub change: Change,
}

/// What happened to an object.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// The object was created, or changed to this.
    Apply(Object),
    /// The object went away.
    Delete(Deletion),
    /// Nothing happened: the recording says that it was watching at this moment. The first and the last one of a
    /// trace are the edges of its window; replay passes over them.
    Mark(Mark),
}

/// Why a moment is in the trace although nothing happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mark {
    /// A moment as such: the edge of a window.
    Moment,
    /// An event of a v2 trace begins: the records up to the next mark were stored together in it. Kept so that a v2
    /// trace comes back unchanged, empty and same-second events included.
    V2Event {
        /// Where each delete that follows stood in the event's `deleted_objs`; empty if they stand in that order.
        delete_order: Vec<u32>,
    },
}

/// A deletion, with the object as it was if the trace holds it.
#[derive(Clone, Debug, PartialEq)]
pub struct Deletion {
    /// What was deleted.
    pub object: ObjectRef,
    /// The object at its end. Older v2 traces hold it, newer ones only say which object it was.
    pub last: Option<Value>,
}

/// A Kubernetes object as JSON that says what it is called.
#[derive(Clone, Debug)]
pub struct Object {
    reference: ObjectRef,
    content: Content,
}

#[derive(Clone, Debug)]
enum Content {
    Tree(Value),
    /// Like others except for its name; decoded only on request.
    Alike(Arc<Shape>, OnceLock<Value>),
}

impl PartialEq for Object {
    fn eq(&self, other: &Self) -> bool {
        self.reference == other.reference && self.value() == other.value()
    }
}

/// Why a JSON value is not a Kubernetes object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAnObject {
    /// Not a map at all.
    #[error("it is {0}, and a Kubernetes object is a map")]
    NotAMap(&'static str),
    /// A field that every object has is missing or no text.
    #[error("its `{0}` is missing or not a text")]
    Missing(&'static str),
    /// `apiVersion` and `kind` do not name a kind.
    #[error("its apiVersion `{0}` is invalid: it should look like `v1` or `apps/v1`")]
    ApiVersion(String),
    /// The object is not the announced one.
    #[error("it is not {0}, which it should be")]
    Other(String),
}

impl Object {
    /// Checks that `value` has `apiVersion`, `kind` and `metadata.name`, and takes it.
    pub fn new(value: Value) -> Result<Self, NotAnObject> {
        let reference = reference_of(&value)?;
        Ok(Self { reference, content: Content::Tree(value) })
    }

    /// The object of that name, of which everything else is known.
    pub(super) fn alike(reference: ObjectRef, shape: Arc<Shape>) -> Self {
        Self { reference, content: Content::Alike(shape, OnceLock::new()) }
    }

    /// Takes `value`, which must be the object of that name.
    pub(crate) fn known(reference: &ObjectRef, value: Value) -> Result<Self, NotAnObject> {
        match Self::new(value)? {
            object if object.reference == *reference => Ok(object),
            _ => Err(NotAnObject::Other(reference.to_string())),
        }
    }

    /// Kind, namespace and name.
    pub fn reference(&self) -> &ObjectRef {
        &self.reference
    }

    /// The whole object.
    pub fn value(&self) -> &Value {
        match &self.content {
            Content::Tree(value) => value,
            Content::Alike(shape, tree) => tree.get_or_init(|| shape.named(&self.reference.key.name)),
        }
    }

    /// The whole object, given away.
    pub fn into_value(self) -> Value {
        match self.content {
            Content::Tree(value) => value,
            Content::Alike(shape, tree) => tree.into_inner().unwrap_or_else(|| shape.named(&self.reference.key.name)),
        }
    }

    /// What it has in common with others of the trace that differ in nothing but their names, if the trace's form tells.
    pub fn shape(&self) -> Option<&Arc<Shape>> {
        match &self.content {
            Content::Tree(_) => None,
            Content::Alike(shape, _) => Some(shape),
        }
    }

    /// Its labels, in the order they are written; those that are not text are passed over.
    pub fn labels(&self) -> impl Iterator<Item = (&str, &str)> {
        labels_of(self.value())
    }
}

/// Gives an object as JSON another name.
pub(super) fn set_name(value: &mut Value, name: &str) {
    if let Some(known) = value.pointer_mut("/metadata/name") {
        *known = name.into();
    }
}

/// The labels of an object as JSON.
pub(crate) fn labels_of(value: &Value) -> impl Iterator<Item = (&str, &str)> {
    let labels = value.pointer("/metadata/labels").and_then(Value::as_object);
    labels.into_iter().flatten().filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
}

/// What an object as JSON is called.
pub(crate) fn reference_of(value: &Value) -> Result<ObjectRef, NotAnObject> {
    let map = value.as_object().ok_or_else(|| NotAnObject::NotAMap(type_name(value)))?;
    let text = |map: &Map<String, Value>, field: &str, name| match map.get(field).and_then(Value::as_str) {
        Some(text) if !text.is_empty() => Ok(text.to_owned()),
        _ => Err(NotAnObject::Missing(name)),
    };
    let api_version = text(map, "apiVersion", "apiVersion")?;
    let kind = text(map, "kind", "kind")?;
    let metadata = map.get("metadata").and_then(Value::as_object).ok_or(NotAnObject::Missing("metadata"))?;
    let name = text(metadata, "name", "metadata.name")?;
    let namespace = metadata.get("namespace").and_then(Value::as_str).unwrap_or("");
    name_object(&api_version, &kind, namespace, &name)
}

/// Puts an object's four names together; an empty namespace is none.
pub(crate) fn name_object(
    api_version: &str,
    kind: &str,
    namespace: &str,
    name: &str,
) -> Result<ObjectRef, NotAnObject> {
    let gvk = Gvk::from_api_version(api_version, kind)
        .map_err(|_| NotAnObject::ApiVersion(api_version.chars().take(100).collect()))?;
    let key = match namespace {
        "" => ObjectKey::cluster(name),
        _ => ObjectKey::namespaced(namespace, name),
    };
    Ok(ObjectRef::new(gvk, key))
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "an array",
        Value::Object(_) => "a map",
    }
}

impl Deletion {
    /// A deletion from JSON: the object as it was, or only its names, as v2 has both.
    pub fn from_value(value: Value) -> Result<Self, NotAnObject> {
        let object = reference_of(&value)?;
        let last = (!is_only_names(&value, &object)).then_some(value);
        Ok(Self { object, last })
    }

    /// The deletion as v2 holds it: the object as it was, or only its names.
    pub fn to_value(&self) -> Value {
        self.last.clone().unwrap_or_else(|| names_value(&self.object))
    }
}

/// An object that has nothing but its names, in the order in which v2 writes them.
fn names_value(object: &ObjectRef) -> Value {
    let mut metadata = Map::new();
    metadata.insert("name".into(), object.key.name.as_str().into());
    if let Some(namespace) = &object.key.namespace {
        metadata.insert("namespace".into(), namespace.as_str().into());
    }
    let mut map = Map::new();
    map.insert("apiVersion".into(), object.gvk.api_version().into());
    map.insert("kind".into(), object.gvk.kind.as_str().into());
    map.insert("metadata".into(), metadata.into());
    Value::Object(map)
}

/// Would [`names_value`] give exactly this back, order of keys included?
fn is_only_names(value: &Value, object: &ObjectRef) -> bool {
    let keys = |value: &Value| value.as_object().map(|map| map.keys().cloned().collect::<Vec<_>>());
    let names = names_value(object);
    *value == names && keys(value) == keys(&names) && keys(&value["metadata"]) == keys(&names["metadata"])
}

impl Change {
    /// The object it happened to; a mark has none.
    pub fn object(&self) -> Option<&ObjectRef> {
        match self {
            Self::Apply(object) => Some(&object.reference),
            Self::Delete(deletion) => Some(&deletion.object),
            Self::Mark(_) => None,
        }
    }
}

impl fmt::Display for Record {
    /// `2026-01-05T09:00:00Z apply Deployment default/nginx`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.change {
            Change::Apply(object) => write!(f, "{} apply {}", self.at, object.reference),
            Change::Delete(deletion) => write!(f, "{} delete {}", self.at, deletion.object),
            Change::Mark(_) => write!(f, "{} (nothing)", self.at),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_says_what_it_is_called() {
        let object = Object::new(json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "nginx", "namespace": "default", "labels": {"app": "nginx", "odd": 1}}}))
        .unwrap();
        assert_eq!(object.reference().to_string(), "Deployment default/nginx");
        assert_eq!(object.labels().collect::<Vec<_>>(), [("app", "nginx")]);
    }

    #[test]
    fn what_is_no_object_is_refused_by_the_missing_field() {
        let refuse = |value| Object::new(value).unwrap_err().to_string();
        assert!(refuse(json!([])).contains("an array"));
        assert!(refuse(json!({"kind": "Pod"})).contains("`apiVersion`"));
        assert!(refuse(json!({"apiVersion": "v1", "kind": "Pod"})).contains("`metadata`"));
        assert!(refuse(json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": ""}})).contains("metadata.name"));
        assert!(refuse(json!({"apiVersion": "a/b/c", "kind": "Pod", "metadata": {"name": "x"}})).contains("a/b/c"));
    }

    #[test]
    fn a_deletion_keeps_the_object_only_if_it_says_more_than_names() {
        let names = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "b"}});
        let deletion = Deletion::from_value(names.clone()).unwrap();
        assert_eq!((deletion.last.as_ref(), deletion.to_value()), (None, names));
        for more in [
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"annotations": {}, "name": "a", "namespace": "b"}}),
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "b", "name": "a"}}),
        ] {
            let back = Deletion::from_value(more.clone()).unwrap().to_value();
            assert_eq!(back.to_string(), more.to_string(), "not even the order of keys changes");
        }
    }
}
