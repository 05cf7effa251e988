//! The compiled configuration, and the sieve: what is kept of one object.
//!
//! An object is read once, onto a [`Tape`](crate::tape::Tape). Whether its namespace is recorded is decided first.

use std::collections::BTreeMap;

use bytes::Bytes;
use sk_api::tracer::{Config, Namespaces, Privacy};
use sk_core::{Gvk, ObjectKey, ObjectRef, OwnerReference, Pointer, PointerPattern, SmolStr};
use xxhash_rust::xxh3::xxh3_128;

use crate::overlay::Overlay;
use crate::pod::{self, Admitted};
use crate::privacy::PrivacyKey;
use crate::sanitise::Sanitiser;
use crate::shape::pods::POD_TEMPLATE;
use crate::shape::{Rule, Shape, kinds};
use crate::sighting::{Sighting, Tracked};
use crate::tape::{Node, Tape};

/// What nodes are.
const NODE: Gvk = Gvk::new_static("", "v1", "Node");

/// As what a watcher sees its objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Of a kind that is recorded.
    Tracked,
    /// Pods; if that kind is also recorded, this watcher gives both.
    Pod,
    /// Nodes; if that kind is also recorded, this watcher gives both.
    Node,
    /// Stands between pods and recorded owners; only its metadata is read.
    Link,
}

/// Why an object was not taken.
#[derive(Debug, thiserror::Error)]
pub enum SieveError {
    /// The object is invalid JSON, or too large.
    #[error("cannot read a {kind}; it is left out. Inspect it with kubectl")]
    Malformed {
        /// What it was said to be.
        kind: Gvk,
        /// What is wrong with it.
        #[source]
        source: serde_json::Error,
    },
    /// The object has no kind or name.
    #[error("received a {kind} without {field}; is this endpoint a Kubernetes API server?")]
    Nameless {
        /// What it was said to be.
        kind: Gvk,
        /// What is missing.
        field: &'static str,
    },
}

/// What is kept of which objects.
#[derive(Debug)]
pub struct Rules {
    kinds: BTreeMap<Gvk, KindRules>,
    namespaces: Namespaces,
    open: bool,
    /// What the configuration says about places in nodes.
    of_nodes: Overlay,
    key: PrivacyKey,
}

/// What is kept of one recorded kind.
#[derive(Debug)]
pub(crate) struct KindRules {
    overlay: Overlay,
    shape: &'static Shape,
    /// Where its pod templates stand.
    pub(crate) templates: Vec<PointerPattern>,
    /// Are lives of its pods wanted?
    pub(crate) track_lifecycle: bool,
    skip_owned: bool,
}

impl Rules {
    /// From a configuration and the key under which private texts are hidden.
    pub fn new(config: &Config, key: PrivacyKey) -> Self {
        let compile = |(kind, tracked): (&Gvk, &sk_api::tracer::TrackedObject)| {
            let templates = tracked.template_paths(kind);
            let rules = KindRules {
                overlay: Overlay::new(&templates, config.keep.iter().filter(|keep| keep.is_about(kind))),
                shape: kinds::of(kind),
                templates,
                track_lifecycle: tracked.track_lifecycle,
                skip_owned: tracked.skip_owned,
            };
            (kind.clone(), rules)
        };
        Self {
            kinds: config.tracked_objects.iter().map(compile).collect(),
            namespaces: config.namespaces.clone(),
            open: config.privacy == Privacy::Full,
            of_nodes: Overlay::new(&[], config.keep.iter().filter(|keep| keep.is_about(&NODE))),
            key,
        }
    }

    /// What is kept of one object of this kind: JSON as a watch or a list brings it. `None` if its namespace is not
    /// recorded. An object that is left out because it has an owner (`skipOwned`) still links its pods to that owner.
    pub fn sieve(&self, kind: &Gvk, role: Role, json: &[u8]) -> Result<Option<Sighting>, SieveError> {
        let tape = Tape::parse(json).map_err(|source| SieveError::Malformed { kind: kind.clone(), source })?;
        let root = tape.root();
        let nameless = |field| SieveError::Nameless { kind: kind.clone(), field };
        let meta = root.get("metadata").ok_or_else(|| nameless("metadata"))?;
        let name = meta.text_at("name").ok_or_else(|| nameless("a name"))?;
        let namespace = meta.text_at("namespace");
        if !self.admits(kind, namespace, name) {
            return Ok(None);
        }
        let uid = meta.text_at("uid").ok_or_else(|| nameless("a uid"))?;
        let owners = owners(meta);
        let is_recorded = |rules: &&KindRules| role != Role::Link && (owners.is_empty() || !rules.skip_owned);
        let tracked = self.kinds.get(kind).filter(is_recorded);
        let key = ObjectKey { namespace: namespace.map(SmolStr::from), name: name.into() };
        Ok(Some(Sighting {
            tracked: tracked.map(|rules| self.track(kind, rules, root, json.len())),
            pod: (role == Role::Pod).then(|| Box::new(pod::look(root, meta, json, self.hiding()))),
            node: (role == Role::Node).then(|| self.node(kind, root)),
            object: ObjectRef::new(kind.clone(), key),
            uid: uid.into(),
            resource_version: meta.text_at("resourceVersion").unwrap_or_default().into(),
            owners,
        }))
    }

    /// Is the object recorded, as far as namespaces go? A namespace that is left out is itself left out.
    fn admits(&self, kind: &Gvk, namespace: Option<&str>, name: &str) -> bool {
        let is_namespace = kind.group.is_empty() && kind.kind == "Namespace";
        self.namespaces.admit(if is_namespace { Some(name) } else { namespace })
    }

    fn track(&self, kind: &Gvk, rules: &KindRules, root: Node<'_, '_>, size: usize) -> Tracked {
        let shape = Rule::Of(rules.shape);
        let sanitiser = Sanitiser::new(&self.key, size);
        let (body, templates) = sanitiser.object(kind, root, shape, self.open, &rules.overlay);
        Tracked { body_hash: body_hash(&body), body: exact(&body), templates }
    }

    fn node(&self, kind: &Gvk, root: Node<'_, '_>) -> Bytes {
        let shape = Rule::Of(&kinds::NODE_RECORD);
        let (body, _) = Sanitiser::new(&self.key, 2_048).object(kind, root, shape, self.open, &self.of_nodes);
        exact(&body)
    }

    /// What is wanted of a pod that is new, from its bytes.
    pub(crate) fn admit_pod(&self, raw: &[u8]) -> Option<Admitted> {
        let tape = Tape::parse(raw).ok()?;
        let form = Sanitiser::new(&self.key, raw.len()).value(tape.root(), Rule::Of(&POD_TEMPLATE));
        Some(Admitted::new(tape.root(), &form, self.open))
    }

    /// A template as pods are compared with it: everything private hidden, whatever the configuration keeps. What was
    /// hidden before stays as it is, so templates and pods meet on the same side of privacy.
    pub(crate) fn comparable(&self, template: &[u8]) -> Option<serde_json::Value> {
        let tape = Tape::parse(template).ok()?;
        let form = Sanitiser::new(&self.key, template.len()).value(tape.root(), Rule::Of(&POD_TEMPLATE));
        serde_json::from_slice(&form).ok()
    }

    /// The key, if free text is to be hidden.
    fn hiding(&self) -> Option<&PrivacyKey> {
        (!self.open).then_some(&self.key)
    }

    /// The rules for a recorded kind.
    pub(crate) fn of(&self, kind: &Gvk) -> Option<&KindRules> {
        self.kinds.get(kind)
    }

    /// The kinds that are recorded.
    pub fn tracked_kinds(&self) -> impl Iterator<Item = &Gvk> {
        self.kinds.keys()
    }
}

/// Every owner in an object's metadata; an entry that lacks something is not an owner.
fn owners(meta: Node<'_, '_>) -> Vec<OwnerReference> {
    let Some(list) = meta.get("ownerReferences") else { return Vec::new() };
    let read = |entry: Node<'_, '_>| {
        Some(OwnerReference {
            gvk: Gvk::from_api_version(entry.text_at("apiVersion")?, entry.text_at("kind")?).ok()?,
            name: entry.text_at("name")?.into(),
            uid: entry.text_at("uid")?.into(),
            controller: entry.flag_at("controller"),
            block_owner_deletion: entry.flag_at("blockOwnerDeletion"),
        })
    };
    list.elements().filter_map(read).collect()
}

/// Is it the kind of pods?
pub(crate) fn is_pod(kind: &Gvk) -> bool {
    kind.group.is_empty() && kind.kind == "Pod"
}

/// Tells one body from another.
pub(crate) fn body_hash(body: &[u8]) -> u128 {
    xxh3_128(body)
}

/// Bytes without room to grow, because they are kept.
fn exact(bytes: &[u8]) -> Bytes {
    Bytes::copy_from_slice(bytes)
}

/// Where a pod's own template stands in it: everywhere.
pub(crate) fn own_template() -> Pointer {
    Pointer::default()
}
