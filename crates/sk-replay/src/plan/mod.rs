//! Turns a trace into timed operations: pure, and the same for both engines.
//!
//! Records become operations one by one, so a plan never holds the trace. The plan removes what a server allocates
//! ([`clean`]), counts what the engine does not model ([`unmodelled`]), names what the engine does not simulate at all
//! with its size ([`missing`]), leaves dependents to their replayed owners ([`children`]), overlays manifests on what
//! was recorded ([`overlay`]), separates what exists at the start from what happens later ([`Start`]), and creates
//! every namespace before the first object in it.

mod children;
mod clean;
pub(crate) mod demand;
mod missing;
pub mod overlay;
mod pods;
mod prerequisites;
mod start;
mod unmodelled;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use serde_json::{Value, json};
use sk_core::template::{TEMPLATE_ANNOTATION, TemplateId};
use sk_core::{Gvk, ObjectKey, ObjectRef, SimDuration, SimTime, SmolStr};
use sk_engine::api::{ApiError, Object as ApiObject, Rules};
use sk_engine::kinds::NAMESPACE;
use sk_store::trace::{Change, Object, Record, TraceError, TracerConfig};

pub use missing::Gaps;
pub use overlay::Overlay;
pub use start::Start;
pub use unmodelled::{Finding, Unmodelled};

use children::Children;
use pods::{Alike, Pods};
use prerequisites::Prerequisites;
use start::Initial;

/// Annotation on a pod template: which recorded object its pods belong to.
pub const OWNER_ANNOTATION: &str = "static.simkube.io/owner";

/// Namespaces every cluster has.
pub(crate) const BUILT_IN_NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

/// Something to do at a time.
#[derive(Clone, Debug, PartialEq)]
pub struct Operation {
    /// When, on the trace's own clock.
    pub at: SimTime,
    /// What.
    pub action: Action,
    /// Is it a record of the trace? Otherwise the plan has added it because others need it: a namespace.
    pub is_recorded: bool,
}

/// What to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Create the object, or make it this.
    Apply {
        /// Which object.
        object: ObjectRef,
        /// What it is to be.
        content: Content,
    },
    /// Delete the object.
    Delete(ObjectRef),
}

/// What an object is to be.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// As JSON.
    Json(Value),
    /// As the embedded API server holds it: only in a plan for the engine.
    Read(Box<ApiObject>),
}

impl Content {
    /// As JSON, for a server that is asked over a wire.
    pub fn into_json(self) -> Value {
        match self {
            Self::Json(value) => value,
            Self::Read(object) => object.to_json(),
        }
    }

    /// As the embedded API server takes it, or why it does not.
    pub fn into_object(self) -> Result<ApiObject, ApiError> {
        match self {
            Self::Json(value) => ApiObject::from_json(value),
            Self::Read(object) => Ok(*object),
        }
    }
}

/// The operations of a trace, in order.
pub struct Plan<'t, R> {
    records: R,
    /// How many records were taken from there.
    read: usize,
    config: &'t TracerConfig,
    window: Window,
    known_namespaces: BTreeSet<SmolStr>,
    /// Operations made from records already read.
    ready: VecDeque<Operation>,
    unmodelled: Unmodelled,
    gaps: Gaps,
    children: Children,
    keep_volumes: bool,
    start: Option<Start>,
    initial: Initial,
    /// The first record that tells of something that happens, read while the state at the start was gathered.
    held: Option<Record>,
    for_engine: bool,
    /// In a plan for the engine: pods that are ready to be applied.
    pods: Pods,
}

/// Which part of a trace is replayed. Changes before the start make up the state at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The first moment.
    pub start: SimTime,
    /// The moment after the last, or the last one.
    pub end: SimTime,
    /// Is what happens at the very end part of it? It is when the window is the whole trace.
    pub includes_end: bool,
}

impl Window {
    /// Is this moment beyond it?
    pub fn is_after(&self, at: SimTime) -> bool {
        at > self.end || (at == self.end && !self.includes_end)
    }
}

impl<'t, R: Iterator<Item = Result<Record, TraceError>>> Plan<'t, R> {
    /// Plans the replay of `records` within `window`.
    pub fn new(records: R, config: &'t TracerConfig, window: Window) -> Self {
        Self {
            records,
            read: 0,
            config,
            window,
            known_namespaces: BUILT_IN_NAMESPACES.map(SmolStr::new_static).into(),
            ready: VecDeque::new(),
            unmodelled: Unmodelled::default(),
            gaps: Gaps::default(),
            children: Children::default(),
            keep_volumes: false,
            start: None,
            initial: Initial::default(),
            held: None,
            for_engine: false,
            pods: Pods::default(),
        }
    }

    /// The same for the embedded engine: pods come as it holds them, and those that are alike are read once. A bare pod
    /// is its own owner there and carries no annotation that says so.
    pub fn for_engine(self) -> Self {
        Self { for_engine: true, ..self }
    }

    /// The same, for a cluster that begins before the clock: what is there at the start is not replayed change by change.
    /// [`Self::gather`] and [`Self::begin_at`] come before the first operation.
    pub fn starting(self, start: Start) -> Self {
        Self { start: Some(start), ..self }
    }

    /// Reads what is there at the start; how long before the clock the cluster has to begin for it.
    pub fn gather(&mut self) -> Result<SimDuration, TraceError> {
        let Some(start) = self.start else { return Ok(SimDuration::ZERO) };
        for record in self.records.by_ref() {
            self.read += 1;
            let record = record?;
            if self.window.is_after(record.at) {
                continue;
            }
            if !start.includes(record.at) {
                self.held = Some(record);
                break;
            }
            self.initial.take(record);
        }
        Ok(self.initial.lead())
    }

    /// The cluster begins now: what is there at the start is put in.
    pub fn begin_at(&mut self, at: SimTime) {
        for object in std::mem::take(&mut self.initial).into_objects() {
            self.apply(at, object);
        }
        if let Some(record) = self.held.take() {
            self.take(record);
        }
    }

    /// Claims keep the name of the volume that they are bound to: the target knows what that means.
    #[must_use]
    pub fn keep_volumes(mut self) -> Self {
        self.keep_volumes = true;
        self
    }

    /// The schedulers that run, by name. Pods for others are not simulated.
    #[must_use]
    pub fn for_schedulers(mut self, names: impl IntoIterator<Item = SmolStr>) -> Self {
        self.gaps.schedulers.0 = names.into_iter().collect();
        self
    }

    /// What was met so far that the engine does not model.
    pub fn unmodelled(&self) -> &Unmodelled {
        &self.unmodelled
    }

    /// By which rules the server judges: where pods need what they name, those that lack it are not simulated.
    #[must_use]
    pub fn judged_by(mut self, rules: Rules) -> Self {
        self.gaps.prerequisites = (rules == Rules::Written).then(Prerequisites::default);
        self
    }

    /// The API server refused an object of the last operation: it is not simulated.
    pub fn refused(&mut self, object: &ObjectRef, words: &str) {
        self.gaps.refused(object, words);
    }

    /// What was met so far that is not simulated, given away when there is nothing more to meet.
    pub fn into_gaps(self) -> Gaps {
        self.gaps
    }

    /// A plan that goes on where this one is. `records` are the same again, from their beginning: what was read of them is
    /// passed over.
    #[must_use]
    pub fn fork(&self, mut records: R) -> Self {
        records.by_ref().take(self.read).for_each(drop);
        Self {
            records,
            read: self.read,
            config: self.config,
            window: self.window,
            known_namespaces: self.known_namespaces.clone(),
            ready: self.ready.clone(),
            unmodelled: self.unmodelled.clone(),
            gaps: self.gaps.clone(),
            children: self.children.clone(),
            keep_volumes: self.keep_volumes,
            start: self.start,
            initial: self.initial.clone(),
            held: self.held.clone(),
            for_engine: self.for_engine,
            pods: self.pods.clone(),
        }
    }

    fn take(&mut self, record: Record) {
        let at = record.at.max(self.window.start);
        match record.change {
            Change::Apply(object) => self.apply(at, object),
            Change::Delete(deletion) if is_replayed(&deletion.object.gvk) => {
                if self.children.forget(&deletion.object) {
                    return;
                }
                if record.at < self.window.start {
                    self.gaps.forget(&deletion.object);
                }
                if deletion.object.gvk.kind == "Namespace" {
                    self.known_namespaces.remove(&deletion.object.key.name);
                }
                self.ready.push_back(Operation { at, action: Action::Delete(deletion.object), is_recorded: true });
            }
            Change::Delete(_) | Change::Mark(_) => {}
        }
    }

    fn apply(&mut self, at: SimTime, object: Object) {
        if let Some(alike) = self.alike(&object) {
            return self.apply_alike(at, object.reference(), &alike);
        }
        let reference = object.reference().clone();
        self.unmodelled.look_at(&reference, object.value(), self.config);
        self.gaps.look_at(&reference, object.value(), self.config, at <= self.window.start);
        if !is_replayed(&reference.gvk) || self.children.is_made(&reference, object.value()) {
            return;
        }
        self.make_namespace(at, &reference);
        let mut value = object.into_value();
        let templates = self.config.template_paths(&reference.gvk);
        clean::remove_what_a_server_allots(&reference.gvk, &mut value, &templates, self.keep_volumes);
        self.stamp(&reference, &mut value);
        let is_pod = is_pod(&reference.gvk);
        let content = if self.for_engine && is_pod { self.pods.read(value) } else { Content::Json(value) };
        let action = Action::Apply { object: reference, content };
        self.ready.push_back(Operation { at, action, is_recorded: true });
    }

    /// What is known of a pod from those that are like it, prepared now if it is the first of its shape.
    fn alike(&mut self, object: &Object) -> Option<Arc<Alike>> {
        let shape = object.shape().filter(|_| self.for_engine && is_pod(&object.reference().gvk))?;
        let mut pods = std::mem::take(&mut self.pods);
        let alike = pods.alike(shape, |value| {
            // Whether its maker is replayed can change from pod to pod.
            if children::controller(object.reference(), value).is_some() {
                return None;
            }
            let mut prepared = value.clone();
            let gvk = &object.reference().gvk;
            let templates = self.config.template_paths(gvk);
            clean::remove_what_a_server_allots(gvk, &mut prepared, &templates, self.keep_volumes);
            self.stamp(object.reference(), &mut prepared);
            if Unmodelled::finds_in(object.reference(), value, self.config) {
                return None;
            }
            let demand = self.gaps.demand(&object.reference().gvk, value, self.config)?;
            Some((prepared, demand))
        });
        self.pods = pods;
        alike
    }

    fn apply_alike(&mut self, at: SimTime, reference: &ObjectRef, alike: &Alike) {
        self.gaps.simulated(reference, Some(alike.demand), at <= self.window.start);
        self.children.is_made(reference, &Value::Null);
        self.make_namespace(at, reference);
        let content = Content::Read(Box::new(alike.named(&reference.key.name)));
        let action = Action::Apply { object: reference.clone(), content };
        self.ready.push_back(Operation { at, action, is_recorded: true });
    }

    /// Creates the namespace that an object is in, if nothing did before.
    fn make_namespace(&mut self, at: SimTime, object: &ObjectRef) {
        if object.gvk.kind == "Namespace" {
            self.known_namespaces.insert(object.key.name.clone());
            return;
        }
        let Some(name) = object.key.namespace.as_ref().filter(|name| !self.known_namespaces.contains(*name)) else {
            return;
        };
        self.known_namespaces.insert(name.clone());
        let json = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        let namespace = ObjectRef::new(NAMESPACE.clone(), ObjectKey::cluster(name.clone()));
        let action = Action::Apply { object: namespace, content: Content::Json(json) };
        self.ready.push_back(Operation { at, action, is_recorded: false });
    }

    /// Writes into every pod template which it is, so that a pod made from it can be given a recorded life.
    fn stamp(&self, owner: &ObjectRef, value: &mut Value) {
        for template in TemplateId::all_in(value, &self.config.template_paths(&owner.gvk)) {
            let Some(place) = template.path.get_mut(value).and_then(Value::as_object_mut) else { continue };
            let metadata = place.entry("metadata").or_insert_with(|| json!({}));
            let Some(metadata) = metadata.as_object_mut() else { continue };
            let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
            if annotations.is_null() {
                *annotations = json!({});
            }
            let Some(annotations) = annotations.as_object_mut() else { continue };
            annotations.insert(TEMPLATE_ANNOTATION.into(), template.to_string().into());
            let owns_itself = self.for_engine && is_pod(&owner.gvk);
            if !owns_itself {
                annotations.insert(OWNER_ANNOTATION.into(), owner_text(owner).into());
            }
        }
    }
}

impl<R: Iterator<Item = Result<Record, TraceError>>> Iterator for Plan<'_, R> {
    type Item = Result<Operation, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(operation) = self.ready.pop_front() {
                return Some(Ok(operation));
            }
            let record = self.records.next()?;
            self.read += 1;
            match record {
                Err(error) => return Some(Err(error)),
                // Passed over and not the end of the plan: a trace need not be in order.
                Ok(record) if self.window.is_after(record.at) => {}
                Ok(record) => self.take(record),
            }
        }
    }
}

/// How an owner is written into [`OWNER_ANNOTATION`]: `apps/v1.Deployment:default/nginx`.
pub fn owner_text(owner: &ObjectRef) -> String {
    format!("{}:{}", owner.gvk, owner.key)
}

/// Reads [`OWNER_ANNOTATION`].
pub fn parse_owner(text: &str) -> Option<ObjectRef> {
    let (gvk, key) = text.split_once(':')?;
    Some(ObjectRef::new(gvk.parse().ok()?, key.parse().ok()?))
}

fn is_pod(gvk: &Gvk) -> bool {
    gvk.kind == "Pod" && gvk.group.is_empty()
}

/// Does a plan replay objects of this kind? Nodes come from the scenario, never from the trace's objects, so that a run has
/// one inventory and not two.
pub fn is_replayed(gvk: &Gvk) -> bool {
    !(gvk.group.is_empty() && gvk.kind == "Node")
}
