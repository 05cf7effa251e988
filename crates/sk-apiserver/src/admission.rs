//! What the API server does to a new object between reading and storing it: defaults and admission.
//!
//! Only what placement and lifecycles depend on. Defaults of a pod template are written into the pods made from it, not
//! into the template.

use std::collections::BTreeMap;
use std::sync::Arc;

use sk_core::memo::Memo;
use sk_core::{ObjectKey, SimTime, SmolStr, TaintEffect, Toleration};

use crate::Object;
use crate::directives;
use crate::error::{ApiError, Invalid};
use crate::kinds::{self, Body, Container, PodSpec};
use crate::store::Store;

/// Seconds a pod stays on a node that is not ready or not reachable (DefaultTolerationSeconds).
const DEFAULT_TOLERATION_SECS: i64 = 300;
/// Seconds between asking a pod to stop and killing it, unless it says otherwise.
pub(crate) const DEFAULT_GRACE_SECS: i64 = 30;
/// Priority classes every cluster has.
const SYSTEM_PRIORITIES: [(&str, i32); 2] =
    [("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000)];
/// How many admitted specs are remembered; one per pod template in use. A spec is 1 to 2 KB, so at most 8 MB.
const SPEC_MEMORY: usize = 4096;

/// The driver's say in every new pod: what the mutating webhook is on a real cluster.
pub trait AdmitPod: Send {
    /// May change labels, annotations and directives of a pod about to be created.
    fn admit(&mut self, pod: &mut Object, now: SimTime);

    /// A copy that decides from here on as this one would, for a forked engine.
    fn fork(&self) -> Box<dyn AdmitPod>;
}

/// Something the server had to decide without knowing; told to the user at the end.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Notice {
    /// A pod names a priority class that does not exist; a real server refuses such a pod, here it gets priority 0.
    UnknownPriorityClass(SmolStr),
    /// Nobody says how long a pod of a Job runs; it runs for as long as the settings assume.
    AssumedJobDuration,
}

/// The state admission keeps between requests.
pub(crate) struct Admission {
    pub(crate) hook: Option<Box<dyn AdmitPod>>,
    pub(crate) notices: BTreeMap<Notice, u64>,
    specs: Memo<PodSpec, Arc<PodSpec>>,
    /// The class of pods that name none, once somebody has asked.
    default_class: Option<Priority>,
}

/// Value and preemption policy of a priority class.
type Priority = (i32, Option<SmolStr>);

impl Clone for Admission {
    fn clone(&self) -> Self {
        Self {
            hook: self.hook.as_ref().map(|hook| hook.fork()),
            notices: self.notices.clone(),
            specs: self.specs.clone(),
            default_class: self.default_class.clone(),
        }
    }
}

impl Admission {
    pub(crate) fn new() -> Self {
        Self { hook: None, notices: BTreeMap::new(), specs: Memo::new(SPEC_MEMORY), default_class: None }
    }

    /// Readies a new object for storing, or refuses it.
    pub(crate) fn admit(&mut self, object: &mut Object, store: &Store, now: SimTime) -> Result<(), ApiError> {
        check_namespace(object, store)?;
        let (name, uid) = (object.key.name.clone(), object.uid);
        if let Body::Job(job) = &mut object.body {
            job.generate_selector(&name, uid, &mut object.meta.labels);
        }
        validate(object)?;
        object.body.prepare_for_create();
        if let Body::Pod(pod) = &mut object.body {
            pod.spec = self.admitted_spec(&pod.spec, store);
            if let Some(hook) = &mut self.hook {
                hook.admit(object, now);
            }
            self.notice_assumed_lifetime(object);
        }
        Ok(())
    }

    /// A pod of a Job ends after a time that nobody recorded, unless somebody did.
    fn notice_assumed_lifetime(&mut self, pod: &Object) {
        let decided = pod.pod().and_then(|pod| pod.directives);
        let unknown = decided.is_none_or(|decided| directives::is_assumed(pod, &decided));
        if unknown && directives::is_assumed(pod, &directives::read(&pod.meta.annotations)) {
            *self.notices.entry(Notice::AssumedJobDuration).or_default() += 1;
        }
    }

    /// Pods of one template share one admitted spec.
    fn admitted_spec(&mut self, source: &Arc<PodSpec>, store: &Store) -> Arc<PodSpec> {
        let class = &source.priority_class_name;
        let priority = match class.is_empty() {
            true => Some(self.default_class.get_or_insert_with(|| find_default_class(store)).clone()),
            false => find_class(class, store),
        };
        if priority.is_none() {
            *self.notices.entry(Notice::UnknownPriorityClass(class.clone())).or_default() += 1;
        }
        self.specs.get_or_insert_with(source, |source| {
            let mut spec = source.clone();
            default_requests(&mut spec);
            default_tolerations(&mut spec);
            default_priority(&mut spec, priority);
            spec.termination_grace_period_seconds.get_or_insert(DEFAULT_GRACE_SECS);
            Arc::new(spec)
        })
    }

    /// Priority classes decide what a spec is admitted as; when they change, nothing remembered holds.
    pub(crate) fn forget_specs(&mut self) {
        self.specs.clear();
        self.default_class = None;
    }
}

fn read_class(object: &Object) -> Option<Priority> {
    let Body::Other(other) = &object.body else { return None };
    let value = other.fields.get("value")?.as_i64()?;
    let policy = other.fields.get("preemptionPolicy").and_then(|policy| policy.as_str()).map(SmolStr::from);
    Some((i32::try_from(value).ok()?, policy))
}

/// The class of this name; `None` when there is none.
fn find_class(class: &SmolStr, store: &Store) -> Option<Priority> {
    if let Some((_, value)) = SYSTEM_PRIORITIES.iter().find(|(name, _)| name == class) {
        return Some((*value, None));
    }
    read_class(store.get(&kinds::PRIORITY_CLASS, &ObjectKey::cluster(class.clone()))?)
}

/// The class that pods have which name none; priority 0 where no class is the default.
fn find_default_class(store: &Store) -> Priority {
    let is_default = |object: &&Arc<Object>| {
        let Body::Other(other) = &object.body else { return false };
        other.fields.get("globalDefault").and_then(serde_json::Value::as_bool).unwrap_or(false)
    };
    let default = store.list(&kinds::PRIORITY_CLASS).find(is_default).and_then(|class| read_class(class));
    default.unwrap_or((0, None))
}

/// A pod of an unknown class keeps the priority it came with, or gets none.
fn default_priority(spec: &mut PodSpec, found: Option<Priority>) {
    let (value, policy) = found.unwrap_or((spec.priority.unwrap_or(0), None));
    spec.priority = Some(value);
    spec.preemption_policy.get_or_insert(policy.unwrap_or(SmolStr::new_static("PreemptLowerPriority")));
}

/// NamespaceLifecycle: new objects need a namespace, and one that is not going.
fn check_namespace(object: &Object, store: &Store) -> Result<(), ApiError> {
    let Some(namespace) = &object.key.namespace else { return Ok(()) };
    let stored = store.get(&kinds::NAMESPACE, &ObjectKey::cluster(namespace.clone()));
    let Some(stored) = stored else { return Err(ApiError::not_found(&kinds::NAMESPACE, namespace)) };
    if stored.is_deleting() {
        let why = format!("unable to create new content in namespace {namespace} because it is being terminated");
        return Err(ApiError::forbidden(&object.gvk, &object.key.name, &why));
    }
    Ok(())
}

/// The rules without which a controller or the scheduler would run wild: names that are names, and what each kind says of
/// its own fields.
pub(crate) fn validate(object: &Object) -> Result<(), ApiError> {
    let name = object.key.name.as_str();
    let checked = if object.body.is_name(name) {
        object.body.validate()
    } else {
        let shown: String = name.chars().take(80).collect();
        let why = format!("Invalid value: {shown:?}: a name has up to 253 lower case letters, digits, '-' and '.'");
        Err(Invalid::new("metadata.name", why))
    };
    checked.map_err(|invalid| ApiError::invalid(&object.gvk, &object.key, &invalid))
}

/// A limit without a request is also the request (`SetDefaults_Pod`).
fn default_requests(spec: &mut PodSpec) {
    let fill = |container: &mut Container| {
        for (name, limit) in &container.resources.limits {
            container.resources.requests.entry(name.clone()).or_insert(*limit);
        }
    };
    spec.containers.iter_mut().for_each(fill);
    spec.init_containers.iter_mut().for_each(fill);
}

/// A pod that says nothing of a lost node leaves it after five minutes.
fn default_tolerations(spec: &mut PodSpec) {
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let covers = |toleration: &Toleration| {
            (toleration.key.is_empty() || toleration.key == key)
                && toleration.effect.is_none_or(|effect| effect == TaintEffect::NoExecute)
        };
        if !spec.tolerations.iter().any(covers) {
            let toleration = Toleration::exists(key, TaintEffect::NoExecute, Some(DEFAULT_TOLERATION_SECS));
            spec.tolerations.push(toleration);
        }
    }
}
