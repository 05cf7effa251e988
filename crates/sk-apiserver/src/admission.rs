//! What the API server does to an object between reading and storing it: defaults and admission.
//!
//! Only what placement and lifecycles depend on. Defaults of a pod template are written into the pods made from it, not
//! into the template.

use std::collections::BTreeMap;
use std::sync::Arc;

use sk_core::label::is_dns_subdomain;
use sk_core::memo::Memo;
use sk_core::selector::LabelSelector;
use sk_core::{ObjectKey, SimTime, SmolStr, TaintEffect, Toleration};

use crate::error::ApiError;
use crate::kinds::{self, Container, DeploymentStatus, NamespacePhase, PodSpec, PodStatus, ReplicaSetStatus, Resource};
use crate::store::Store;
use crate::{Body, Object};

/// Seconds a pod stays on a node that is not ready or not reachable (DefaultTolerationSeconds).
const DEFAULT_TOLERATION_SECS: i64 = 300;
/// Seconds between asking a pod to stop and killing it, unless it says otherwise.
pub(crate) const DEFAULT_GRACE_SECS: i64 = 30;
/// Priority classes every cluster has.
const SYSTEM_PRIORITIES: [(&str, i32); 2] =
    [("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000)];
/// The longest name there is.
const MAX_NAME_BYTES: usize = 253;
/// How many admitted specs are remembered; one per pod template in use. A spec is 1 to 2 KB, so at most 8 MB.
const SPEC_MEMORY: usize = 4096;

/// The driver's say in every new pod: what the mutating webhook is on a real cluster.
pub trait AdmitPod {
    /// May change labels and annotations of a pod about to be created.
    fn admit(&mut self, pod: &mut Object, now: SimTime);
}

/// Something the server had to decide without knowing; told to the user at the end.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Notice {
    /// A pod names a priority class that does not exist; a real server refuses such a pod, here it gets priority 0.
    UnknownPriorityClass(SmolStr),
}

/// The state admission keeps between requests.
pub(crate) struct Admission {
    pub(crate) hook: Option<Box<dyn AdmitPod>>,
    pub(crate) notices: BTreeMap<Notice, u64>,
    specs: Memo<PodSpec, Arc<PodSpec>>,
}

impl Admission {
    pub(crate) fn new() -> Self {
        Self { hook: None, notices: BTreeMap::new(), specs: Memo::new(SPEC_MEMORY) }
    }

    /// Readies a new object for storing, or refuses it.
    pub(crate) fn admit(&mut self, object: &mut Object, store: &Store, now: SimTime) -> Result<(), ApiError> {
        check_namespace(object, store)?;
        validate(object)?;
        match &mut object.body {
            Body::Pod(pod) => {
                pod.spec = self.admitted_spec(&pod.spec, store);
                pod.status = PodStatus::default();
                if let Some(hook) = &mut self.hook {
                    hook.admit(object, now);
                }
            }
            Body::Namespace(namespace) => {
                namespace.finalizers = vec![kinds::KUBERNETES_FINALIZER];
                namespace.phase = NamespacePhase::Active;
            }
            Body::Deployment(deployment) => deployment.status = DeploymentStatus::default(),
            Body::ReplicaSet(set) => set.status = ReplicaSetStatus::default(),
            // A node registers itself with its status, and of other kinds we do not know.
            Body::Node(_) | Body::Other(_) => {}
        }
        Ok(())
    }

    /// Pods of one template share one admitted spec.
    fn admitted_spec(&mut self, source: &Arc<PodSpec>, store: &Store) -> Arc<PodSpec> {
        let class = &source.priority_class_name;
        let priority = find_priority(class, store);
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
    }
}

/// Value and preemption policy of a class; of the default class for an empty name; `None` when there is no such class.
fn find_priority(class: &str, store: &Store) -> Option<(i32, Option<SmolStr>)> {
    if let Some((_, value)) = SYSTEM_PRIORITIES.iter().find(|(name, _)| *name == class) {
        return Some((*value, None));
    }
    let read = |object: &Object| {
        let Body::Other(other) = &object.body else { return None };
        let value = other.fields.get("value")?.as_i64()?;
        let policy = other.fields.get("preemptionPolicy").and_then(|policy| policy.as_str()).map(SmolStr::from);
        Some((i32::try_from(value).ok()?, policy))
    };
    if !class.is_empty() {
        return read(store.get(&kinds::PRIORITY_CLASS, &ObjectKey::cluster(class))?);
    }
    let is_default = |object: &&Arc<Object>| {
        let Body::Other(other) = &object.body else { return false };
        other.fields.get("globalDefault").and_then(serde_json::Value::as_bool).unwrap_or(false)
    };
    let default = store.list(&kinds::PRIORITY_CLASS).find(is_default).and_then(|class| read(class));
    Some(default.unwrap_or((0, None)))
}

/// A pod of an unknown class keeps the priority it came with, or gets none.
fn default_priority(spec: &mut PodSpec, found: Option<(i32, Option<SmolStr>)>) {
    let (value, policy) = found.unwrap_or((spec.priority.unwrap_or(0), None));
    spec.priority = Some(value);
    spec.preemption_policy.get_or_insert(policy.unwrap_or(SmolStr::new_static("PreemptLowerPriority")));
}

/// NamespaceLifecycle: new objects need a namespace, and one that is not going.
fn check_namespace(object: &Object, store: &Store) -> Result<(), ApiError> {
    let Some(namespace) = &object.key.namespace else { return Ok(()) };
    let resource = Resource::of(&object.gvk);
    let stored = store.get(&kinds::NAMESPACE, &ObjectKey::cluster(namespace.clone()));
    let Some(stored) = stored else {
        return Err(ApiError::not_found(&Resource::of(&kinds::NAMESPACE), namespace));
    };
    if stored.is_deleting() {
        let why = format!("unable to create new content in namespace {namespace} because it is being terminated");
        return Err(ApiError::forbidden(&resource, &object.key.name, &why));
    }
    Ok(())
}

/// The rules without which a controller or the scheduler would run wild: names that are names, counts and requests that are
/// not negative, selectors that select the template.
pub(crate) fn validate(object: &Object) -> Result<(), ApiError> {
    check_name(object)?;
    let (replicas, selector, template) = match &object.body {
        Body::Deployment(deployment) => {
            (deployment.spec.replicas, &deployment.spec.selector, &deployment.spec.template)
        }
        Body::ReplicaSet(set) => (set.spec.replicas, &set.spec.selector, &set.spec.template),
        Body::Pod(pod) => return check_requests(object, "spec", &pod.spec),
        _ => return Ok(()),
    };
    check_requests(object, "spec.template.spec", &template.spec)?;
    let invalid = |field: &str, why: &str| Err(ApiError::invalid(&Resource::of(&object.gvk), &object.key, field, why));
    if replicas < 0 {
        return invalid("spec.replicas", &format!("Invalid value: {replicas}: must be greater than or equal to 0"));
    }
    let selector = match LabelSelector::from_json(selector) {
        Ok(selector) if selector.requirements().is_empty() => return invalid("spec.selector", "Required value"),
        Ok(selector) => selector,
        Err(error) => return invalid("spec.selector", &format!("Invalid value: {error}")),
    };
    if !selector.matches(&*template.metadata.labels) {
        return invalid("spec.template.metadata.labels", "Invalid value: `selector` does not match template `labels`");
    }
    Ok(())
}

/// Kinds that we act on have names of DNS; of others we only know that a name is one segment of a path.
fn check_name(object: &Object) -> Result<(), ApiError> {
    let name = object.key.name.as_str();
    let is_good = match &object.body {
        Body::Other(_) => {
            name.len() <= MAX_NAME_BYTES && !name.contains(['/', '%']) && !["", ".", ".."].contains(&name)
        }
        _ => is_dns_subdomain(name),
    };
    if is_good {
        return Ok(());
    }
    let shown: String = name.chars().take(80).collect();
    let why = format!("Invalid value: {shown:?}: a name has up to 253 lower case letters, digits, '-' and '.'");
    Err(ApiError::invalid(&Resource::of(&object.gvk), &object.key, "metadata.name", &why))
}

fn check_requests(object: &Object, field: &str, spec: &PodSpec) -> Result<(), ApiError> {
    let containers = spec.containers.iter().chain(&spec.init_containers).map(|container| &container.resources);
    for resources in containers.chain(&spec.resources) {
        let negative = resources.requests.iter().chain(&resources.limits).find(|(_, amount)| amount.is_negative());
        if let Some((name, amount)) = negative {
            let field = format!("{field}.containers.resources.{name}");
            let why = format!("Invalid value: \"{amount}\": must be greater than or equal to 0");
            return Err(ApiError::invalid(&Resource::of(&object.gvk), &object.key, &field, &why));
        }
    }
    Ok(())
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
