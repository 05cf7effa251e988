//! ControllerRevisions: the template history of a StatefulSet or DaemonSet (`pkg/controller/history`, 1.36).
//!
//! The hash of its template identifies a revision. Kubernetes' hash has 32 bits and a collision counter; ours has 47,
//! and the dozen revisions of one set do not collide, so the counter stays 0.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Map, Value, json};
use sk_apiserver::kinds::{Other, PodTemplate};
use sk_apiserver::{Body, Change, DeleteOptions, Meta, Object, ObjectId, Request, Uid, View, WatchEvent};
use sk_core::{Gvk, ObjectKey, SmolStr, StableHash};

/// `apps/v1.ControllerRevision`
static CONTROLLER_REVISION: Gvk = Gvk::new_static("apps", "v1", "ControllerRevision");
/// On a pod: the revision it was made from.
pub(crate) const REVISION_LABEL: SmolStr = SmolStr::new_static("controller-revision-hash");
/// How many template hashes a controller remembers; one per object in use, below 100 bytes each.
pub(crate) const HASH_MEMORY: usize = 1 << 16;

/// The revisions of one set, oldest first.
pub(crate) struct Revisions<'a> {
    set: &'a Arc<Object>,
    all: Vec<(i64, &'a Arc<Object>)>,
}

/// Which revisions there are, by their owners: a controller that watches them does not have to look for them among the pods
/// of a set.
#[derive(Clone, Debug, Default)]
pub(crate) struct KnownRevisions {
    by_owner: BTreeMap<Uid, BTreeSet<ObjectId>>,
}

impl KnownRevisions {
    /// An object came, changed or went.
    pub(crate) fn seen(&mut self, event: &WatchEvent) {
        if event.object.gvk != CONTROLLER_REVISION {
            return;
        }
        for owner in event.before.iter().flat_map(|before| before.meta.owners.iter()) {
            let is_last = self.by_owner.get_mut(&owner.uid).is_some_and(|ids| ids.remove(&event.id) && ids.is_empty());
            if is_last {
                self.by_owner.remove(&owner.uid);
            }
        }
        for owner in event.object.meta.owners.iter().filter(|_| event.change != Change::Deleted) {
            self.by_owner.entry(owner.uid).or_default().insert(event.id);
        }
    }

    /// The revisions of a set.
    pub(crate) fn of<'a>(&self, set: Uid, view: View<'a>) -> impl Iterator<Item = &'a Arc<Object>> {
        self.by_owner.get(&set).into_iter().flatten().filter_map(move |id| view.get(*id))
    }
}

impl<'a> Revisions<'a> {
    /// Those among the objects that a set owns.
    pub(crate) fn of(set: &'a Arc<Object>, view: View<'a>) -> Self {
        let is_revision = |object: &Object| object.gvk == CONTROLLER_REVISION;
        Self::among(set, view.owned_by(set.uid).map(|(_, object)| object).filter(|object| is_revision(object)))
    }

    /// All of these.
    pub(crate) fn among(set: &'a Arc<Object>, revisions: impl Iterator<Item = &'a Arc<Object>>) -> Self {
        let mut all: Vec<_> = revisions.map(|object| (number(object), object)).collect();
        all.sort_by(|(one, a), (other, b)| (one, a.created, &a.key.name).cmp(&(other, b.created, &b.key.name)));
        Self { set, all }
    }

    /// The name of the revision with this template hash.
    pub(crate) fn name(&self, hash: &str) -> SmolStr {
        format!("{}-{hash}", self.set.key.name).into()
    }

    pub(crate) fn find(&self, name: &str) -> Option<&'a Arc<Object>> {
        self.all.iter().find(|(_, revision)| revision.key.name == name).map(|(_, revision)| *revision)
    }

    /// What is to be done so that the newest revision is the one of this template: nothing, making it, or, after a
    /// rollback, giving an old one the next number.
    pub(crate) fn bring_up(&self, hash: &str, template: &PodTemplate) -> Option<Request> {
        let name = self.name(hash);
        let next = self.all.last().map_or(1, |(number, _)| number.saturating_add(1));
        match self.find(&name) {
            Some(known) if number(known) + 1 == next => None,
            Some(known) => {
                let mut raised = Object::clone(known);
                if let Body::Other(other) = &mut raised.body {
                    Arc::make_mut(&mut other.fields).insert("revision".into(), next.into());
                }
                Some(Request::update(raised))
            }
            None => Some(self.create(name, hash, template, next)),
        }
    }

    fn create(&self, name: SmolStr, hash: &str, template: &PodTemplate, number: i64) -> Request {
        let mut data = json!({"spec": {"template": template}});
        data["spec"]["template"]["$patch"] = "replace".into();
        let mut labels = template.metadata.labels.clone();
        labels.make_mut().insert(REVISION_LABEL, hash.into());
        let meta = Meta {
            labels,
            annotations: self.set.meta.annotations.clone(),
            owners: [self.set.as_controller()].into(),
            ..Meta::default()
        };
        let fields = Map::from_iter([("data".to_owned(), data), ("revision".to_owned(), number.into())]);
        let key = ObjectKey { namespace: self.set.key.namespace.clone(), name };
        let body = Body::Other(Other { fields: Arc::new(fields), status: None });
        Request::create(Object::new(&CONTROLLER_REVISION, key, meta, body))
    }

    /// Deletes the oldest revisions that `is_live` does not name, as many as those that `counts` names exceed `limit` by.
    pub(crate) fn truncate(
        &self,
        limit: i32,
        counts: impl Fn(&str) -> bool,
        is_live: impl Fn(&str) -> bool,
    ) -> Vec<Request> {
        let Ok(limit) = usize::try_from(limit) else { return Vec::new() };
        let names = || self.all.iter().map(|(_, revision)| *revision);
        let surplus = names().filter(|revision| counts(&revision.key.name)).count().saturating_sub(limit);
        let delete = |revision: &Arc<Object>| {
            let options = DeleteOptions { uid: Some(revision.uid), ..DeleteOptions::default() };
            Request::Delete { target: revision.reference(), options }
        };
        names().filter(|revision| !is_live(&revision.key.name)).take(surplus).map(delete).collect()
    }
}

fn number(revision: &Object) -> i64 {
    let Body::Other(other) = &revision.body else { return 0 };
    other.fields.get("revision").and_then(Value::as_i64).unwrap_or(0)
}

/// The template that a revision keeps; `None` for one that another client wrote.
pub(crate) fn template(revision: &Object) -> Option<PodTemplate> {
    let Body::Other(other) = &revision.body else { return None };
    let template = other.fields.get("data")?.pointer("/spec/template")?;
    serde_json::from_value(template.clone()).ok()
}

/// A name-safe hash of a template. Kubernetes' own hash is of its memory layout and differs between versions; nothing may
/// depend on its value.
pub(crate) fn template_hash(template: &PodTemplate) -> SmolStr {
    name_safe(StableHash::of(&json!(template)).get())
}

/// A number as ten letters and digits that are valid in names and labels.
pub(crate) fn name_safe(mut number: u64) -> SmolStr {
    const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
    let digit = |_| {
        let char = char::from(ALPHABET[(number % 27) as usize]);
        number /= 27;
        char
    };
    (0..10).map(digit).collect::<String>().into()
}
