//! Admission: what the API server changes in a new object after decoding and before storing it, defaults included.
//!
//! Only the fields that placement and lifecycles depend on. Template defaults go into the pods that a template makes,
//! not into the template itself.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sk_core::lookup::Keyed;
use sk_core::memo::Memo;
use sk_core::registry;
use sk_core::{Gvk, ObjectKey, SimTime, SmolStr, Taint, TaintEffect, Toleration};

use crate::custom::{self, DEFINITION, Definitions};
use crate::directives;
use crate::error::{ApiError, Invalid};
use crate::generation;
use crate::kinds::{self, Body, Condition, Container, PodSpec, qos};
use crate::limit_range::LimitRanges;
use crate::rules::Rules;
use crate::store::Store;
use crate::topology::Topology;
use crate::validation::Errors;
use crate::{Meta, Object};
use crate::{defaults, schema, service, validation};

/// Seconds a pod stays on a node that is not ready or not reachable (DefaultTolerationSeconds).
const DEFAULT_TOLERATION_SECS: i64 = 300;
/// Seconds between asking a pod to stop and killing it, unless it says otherwise.
pub(crate) const DEFAULT_GRACE_SECS: i64 = 30;
/// Priority classes every cluster has.
const SYSTEM_PRIORITIES: [(&str, i32); 2] =
    [("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000)];
/// How many admitted specs are remembered; one per pod template in use. A spec is 1 to 2 KB, so at most 8 MB.
const SPEC_MEMORY: usize = 4096;

/// How many different assumptions are listed; the rest is counted.
const MAX_NOTICES: usize = 1_000;

/// `v1.ServiceAccount`
static SERVICE_ACCOUNT: Gvk = Gvk::new_static("", "v1", "ServiceAccount");

/// What pods do that say nothing else.
const PREEMPT: &str = "PreemptLowerPriority";
/// The taint of a node that is not ready yet.
const NOT_READY: &str = "node.kubernetes.io/not-ready";

/// The driver's say in every new pod: what the mutating webhook is on a real cluster.
pub trait AdmitPod: Send {
    /// May change labels, annotations and directives of a pod about to be created.
    fn admit(&mut self, pod: &mut Object, now: SimTime);

    /// A copy that decides from here on as this one would, for a forked engine.
    fn fork(&self) -> Box<dyn AdmitPod>;
}

/// Something that the server had to assume; the run reports it at the end.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Notice {
    /// A pod names a priority class that does not exist; a real server refuses such a pod, here it gets priority 0.
    UnknownPriorityClass(SmolStr),
    /// Pods of a recording name a service account that does not exist, as `namespace/name`; it is taken for granted.
    /// Counted by pod template, where a real server would refuse each pod.
    UnknownServiceAccount(SmolStr),
    /// The definition with this name has CEL rules, which are not evaluated.
    UnaskedRules(SmolStr),
    /// The lifetime of a Job's pod is unknown; it runs for as long as the settings assume.
    AssumedJobDuration,
    /// A pod was refused with this message: by a quota, a limit range, or because its ServiceAccount or PriorityClass
    /// is missing.
    RefusedPod(String),
}

/// The state admission keeps between requests.
pub(crate) struct Admission {
    pub(crate) hook: Option<Box<dyn AdmitPod>>,
    /// Must an object have everything that a server wants, or may it be of a recording?
    pub(crate) is_strict: bool,
    pub(crate) notices: BTreeMap<Notice, u64>,
    /// By which rules objects from outside are judged.
    pub(crate) rules: Rules,
    /// What was found wrong with specs of pods as they were written.
    pub(crate) written: Memo<PodSpec, Errors>,
    /// Metadata with which nothing was wrong, by the addresses of its labels and annotations: pods of one template share both.
    judged_metadata: Keyed<(usize, usize), (Meta, Option<SmolStr>)>,
    /// Objects with which nothing was wrong: what they are, and what they were before.
    pub(crate) judged: BTreeSet<(u64, Option<u64>)>,
    /// The limit ranges there are.
    pub(crate) limits: LimitRanges,
    /// The custom kinds that are defined.
    pub(crate) definitions: Definitions,
    /// Labels of pods by where they run.
    pub(crate) topology: Topology,
    specs: Memo<PodSpec, Arc<PodSpec>>,
    /// What was found wrong with admitted specs.
    checked: Memo<PodSpec, Errors>,
    /// The default PriorityClass, once a pod has needed it.
    default_class: Option<Priority>,
}

/// Value and preemption policy of a priority class, and its name.
type Priority = (i32, Option<SmolStr>, SmolStr);

impl Clone for Admission {
    fn clone(&self) -> Self {
        Self {
            hook: self.hook.as_ref().map(|hook| hook.fork()),
            is_strict: self.is_strict,
            notices: self.notices.clone(),
            rules: self.rules,
            written: self.written.clone(),
            judged_metadata: self.judged_metadata.clone(),
            judged: self.judged.clone(),
            limits: self.limits.clone(),
            definitions: self.definitions.clone(),
            topology: self.topology.clone(),
            specs: self.specs.clone(),
            checked: self.checked.clone(),
            default_class: self.default_class.clone(),
        }
    }
}

impl Admission {
    pub(crate) fn new() -> Self {
        Self {
            hook: None,
            is_strict: false,
            notices: BTreeMap::new(),
            rules: Rules::default(),
            written: Memo::new(SPEC_MEMORY),
            judged_metadata: Keyed::default(),
            judged: BTreeSet::new(),
            limits: LimitRanges::default(),
            definitions: Definitions::default(),
            topology: Topology::default(),
            specs: Memo::new(SPEC_MEMORY),
            checked: Memo::new(SPEC_MEMORY),
            default_class: None,
        }
    }

    /// Refuses an object for its name, labels, annotations, finalizers or owners. Those that it shares with an object
    /// that passed validation before are not validated again.
    pub(crate) fn judge_metadata(&mut self, object: &Object) -> Result<(), ApiError> {
        let addresses = (object.meta.labels.address(), object.meta.annotations.address());
        if let Some((known, prefix)) = self.judged_metadata.get(&addresses)
            && is_shared(known, &object.meta)
        {
            let is_known = object.key.name.is_empty() && object.generate_name == *prefix;
            return if is_known { Ok(()) } else { judge(object, &validation::names(object)) };
        }
        validate_metadata(object, None)?;
        if self.judged_metadata.len() >= SPEC_MEMORY {
            self.judged_metadata.clear();
        }
        self.judged_metadata.insert(addresses, (object.meta.clone(), object.generate_name.clone()));
        Ok(())
    }

    /// Readies a new object for storing, or refuses it.
    pub(crate) fn admit(&mut self, object: &mut Object, store: &Store, now: SimTime) -> Result<(), ApiError> {
        check_namespace(object, store)?;
        let (name, namespace, uid) = (object.key.name.clone(), object.key.namespace.clone(), object.uid);
        if let Body::Job(job) = &mut object.body {
            job.generate_selector(&name, uid, &mut object.meta.labels);
        }
        object.body.prepare_for_create();
        self.without_status(object);
        hold_back_gated(object, now);
        generation::default_labels(object);
        if self.is_strict || self.rules == Rules::Written {
            check_default_class(object, store)?;
            self.check_priority(object, store)?;
        }
        if self.is_strict {
            check_overhead(object)?;
        }
        if self.is_strict {
            protect(object);
        }
        if self.rules == Rules::Written {
            check_service_account(object, store)?;
        }
        if let Body::Pod(pod) = &mut object.body {
            let namespace = namespace.as_deref().unwrap_or_default();
            pod.spec = self.admitted_spec(&pod.spec, namespace, store);
            if let Some(node) = pod.node_name.clone() {
                self.topology.label(object, &node, store);
            }
            self.limits.admit_pod(object)?;
        } else if object.gvk.kind == "PersistentVolumeClaim" {
            self.limits.check_claim(object)?;
        }
        self.complete(object, None)?;
        if let Body::Pod(pod) = &mut object.body {
            if self.is_strict {
                pod.status.rest = Some(qos::status_of(&pod.spec));
            }
            if let Some(hook) = &mut self.hook {
                hook.admit(object, now);
            }
            self.notice_assumed_lifetime(object);
        }
        Ok(())
    }

    /// Writes defaults into an object and says what a server would find wrong with it. Specs of pods were given theirs
    /// when they were admitted, and one that passed before is not validated again.
    ///
    /// Objects of a recording are checked for what a controller or the scheduler could not bear, and get the defaults
    /// that placement and lifecycles depend on: they come from a server that has written the others.
    pub(crate) fn complete(&mut self, object: &mut Object, stored: Option<&Object>) -> Result<(), ApiError> {
        let is_custom = matches!(object.body, Body::Other(_))
            && (object.gvk == DEFINITION || self.definitions.find(&object.gvk).is_some());
        if is_custom {
            return self.complete_custom(object, stored);
        }
        if !self.is_strict {
            defaults::texts_of_secret(object);
            return validate(object);
        }
        if let (Body::Pod(pod), Some(Body::Pod(known))) = (&mut object.body, stored.map(|stored| &stored.body)) {
            pod.spec = Arc::new(updated_spec(&pod.spec, &known.spec));
        }
        let mut wrong = validation::metadata(object, stored);
        if let Body::Pod(pod) = &object.body {
            let mut in_spec = self.check_pod_spec(&pod.spec);
            if let Some(known) = stored.and_then(Object::pod) {
                // A server judges a changed spec twice, and asks what has changed of one that is right.
                let changed = if in_spec.is_empty() { validation::fixed(pod, known) } else { None };
                in_spec.extend(in_spec.clone());
                in_spec.extend(changed);
            }
            wrong.extend(in_spec);
            wrong.extend(validation::node_name(pod));
            return judge(object, &wrong);
        }
        if let Body::Node(node) = &mut object.body {
            node.default_allocatable();
            wrong.extend(validation::node(node));
            return judge(object, &wrong);
        }
        let Some(of) = schema::find(&object.gvk) else { return judge(object, &wrong) };
        let in_kind = |why: String| ApiError::in_kind(&object.gvk, &why);
        let mut json = schema::decode(&object.gvk, of, object.to_json()).map_err(in_kind)?;
        defaults::apply(&object.gvk, &mut json);
        let before = stored.map(Object::to_json);
        if object.gvk.kind == "Service" {
            service::allot(&mut json, before.as_ref());
        }
        let in_body = validation::check(&object.gvk, &json, before.as_ref());
        let read = Object::from_json(json);
        if let Some(read) = read.as_ref().ok().filter(|read| read.meta.labels != object.meta.labels) {
            object.meta.labels = read.meta.labels.clone();
            wrong = validation::metadata(object, stored);
        }
        wrong.extend(in_body);
        judge(object, &wrong)?;
        let mut read = read?;
        read.body.share_template(&object.body);
        object.body = read.body;
        Ok(())
    }

    /// Creating an object resets its status if the kind has a status subresource.
    fn without_status(&self, object: &mut Object) {
        let Body::Other(other) = &mut object.body else { return };
        if other.status.is_none() {
            return;
        }
        let has_path = match registry::find(&object.identity().gvk) {
            Some(info) => info.has_subresource("status"),
            None => self.definitions.find(&object.identity().gvk).is_some_and(|(_, version)| version.has_status),
        };
        if has_path && let Body::Other(other) = &mut object.body {
            other.status = None;
        }
    }

    /// The status of a custom object is pruned and judged by its schema, too.
    pub(crate) fn complete_status(&mut self, object: &mut Object, stored: &Object) -> Result<(), ApiError> {
        let is_defined = !object.body.is_typed() && self.definitions.find(&object.gvk).is_some();
        if is_defined { self.complete_custom(object, Some(stored)) } else { Ok(()) }
    }

    /// Makes an object of a custom kind what its definition says, and says what is wrong with it. What was recorded was
    /// pruned and found right by the server that it comes from.
    fn complete_custom(&mut self, object: &mut Object, stored: Option<&Object>) -> Result<(), ApiError> {
        let is_judged = self.is_strict || self.rules == Rules::Written;
        let mut wrong = Errors::new();
        if self.is_strict {
            wrong.extend(validation::custom_name(object));
            wrong.extend(validation::metadata(object, stored));
        } else {
            validate(object)?;
        }
        let mut json = object.to_json();
        if object.gvk == DEFINITION {
            custom::complete(&mut json);
            if stored.is_none() && self.is_strict {
                json["status"] = custom::first_status(&json);
            }
            wrong.extend(custom::check(&json).filter(|_| is_judged));
            let notice = Notice::UnaskedRules(object.key.name.clone());
            if custom::has_rules(&json) && self.notices.len() < MAX_NOTICES {
                self.notices.insert(notice, 1);
            }
        } else if let Some((_, version)) = self.definitions.find(&object.gvk) {
            if is_judged {
                version.prune(&mut json);
            }
            version.default(&mut json);
            if !self.is_strict {
                version.drop_nulls(&mut json);
            }
            if is_judged {
                wrong.extend(version.check(&json));
            }
        }
        judge(object, &wrong)?;
        object.body = Object::from_json(json)?.body;
        Ok(())
    }

    /// Records a refused pod: its controller retries again and again, and nothing else would show it.
    pub(crate) fn note_refusal(&mut self, object: &Object, error: &ApiError) {
        if object.pod().is_none() || error.is_namespace_terminating() {
            return;
        }
        let whose =
            object.controller().map_or_else(String::new, |owner| format!("of {} {} ", owner.gvk.kind, owner.name));
        let why = error.message.split_once("is forbidden: ").map_or(&*error.message, |(_, why)| why);
        // What is used already differs from time to time; who may use how much does not.
        let why = why.split_once(", requested: ").map_or(why, |(why, _)| why);
        let words = format!("pods {whose}were refused: {why}");
        let is_known =
            self.notices.len() < MAX_NOTICES || self.notices.contains_key(&Notice::RefusedPod(words.clone()));
        let words = if is_known { words } else { "pods of others were refused".to_owned() };
        *self.notices.entry(Notice::RefusedPod(words)).or_default() += 1;
    }

    /// Priority: the class must be there, and decides what else the spec may say of it.
    fn check_priority(&mut self, object: &Object, store: &Store) -> Result<(), ApiError> {
        let Some(pod) = object.pod() else { return Ok(()) };
        let class = &pod.spec.priority_class_name;
        let found = match class.is_empty() {
            true => Some(self.default_class.get_or_insert_with(|| find_default_class(store)).clone()),
            false => find_class(class, store),
        };
        let refuse = |why: String| ApiError::forbidden(&object.gvk, &object.key.name, &why);
        let Some((value, policy, _)) = found else {
            return Err(refuse(format!("no PriorityClass with name {class} was found")));
        };
        let computed = policy.unwrap_or(SmolStr::new_static(PREEMPT));
        if let Some(said) = pod.spec.preemption_policy.as_ref().filter(|said| **said != computed) {
            return Err(refuse(format!(
                "the string value of PreemptionPolicy ({said}) must not be provided in pod spec; priority admission \
                 controller computed {computed} from the given PriorityClass name"
            )));
        }
        match pod.spec.priority.filter(|said| *said != value) {
            None => Ok(()),
            Some(said) => Err(refuse(format!(
                "the integer value of priority ({said}) must not be provided in pod spec; priority admission controller \
                 computed {value} from the given PriorityClass name"
            ))),
        }
    }

    /// Is a pod spec valid? Validates each spec once.
    fn check_pod_spec(&mut self, spec: &Arc<PodSpec>) -> Errors {
        self.checked.get_or_insert_with(spec, |spec| validation::pod_spec(&serde_json::json!(*spec)))
    }

    /// A Job's pod without a recorded life gets an assumed lifetime.
    fn notice_assumed_lifetime(&mut self, pod: &Object) {
        let decided = pod.pod().and_then(|pod| pod.directives);
        let unknown = decided.is_none_or(|decided| directives::is_assumed(pod, &decided));
        if unknown && directives::is_assumed(pod, &directives::read(&pod.meta.annotations)) {
            *self.notices.entry(Notice::AssumedJobDuration).or_default() += 1;
        }
    }

    /// Pods of one template share one admitted spec.
    fn admitted_spec(&mut self, source: &Arc<PodSpec>, namespace: &str, store: &Store) -> Arc<PodSpec> {
        let class = &source.priority_class_name;
        let priority = match class.is_empty() {
            true => Some(self.default_class.get_or_insert_with(|| find_default_class(store)).clone()),
            false => find_class(class, store),
        };
        if priority.is_none() {
            *self.notices.entry(Notice::UnknownPriorityClass(class.clone())).or_default() += 1;
        }
        let (is_strict, notices) = (self.is_strict, &mut self.notices);
        self.specs.get_or_insert_with(source, |source| {
            if !is_strict && let Some(account) = missing_account(source, namespace, store) {
                note_account(notices, namespace, account);
            }
            let mut spec = if is_strict { defaults::of_pod(source) } else { source.clone() };
            default_requests(&mut spec);
            default_tolerations(&mut spec);
            default_priority(&mut spec, priority);
            let grace = spec.termination_grace_period_seconds.get_or_insert(DEFAULT_GRACE_SECS);
            // A negative grace period means one second.
            *grace = if *grace < 0 { 1 } else { *grace };
            Arc::new(spec)
        })
    }

    /// Priority classes decide what a spec is admitted as; when they change, nothing remembered holds.
    pub(crate) fn forget_specs(&mut self) {
        self.specs.clear();
        self.default_class = None;
    }
}

/// A new object with the defaults of its kind, and nothing of what admission adds.
pub(crate) fn defaulted(object: &Object) -> Result<serde_json::Value, ApiError> {
    let mut json = object.to_json();
    if let Body::Pod(pod) = &object.body {
        json["spec"] = serde_json::json!(defaults::of_pod(&pod.spec));
    } else if let Some(of) = schema::find(&object.gvk) {
        json = schema::decode(&object.gvk, of, json).map_err(|why| ApiError::in_kind(&object.gvk, &why))?;
        defaults::apply(&object.gvk, &mut json);
    }
    if object.gvk == DEFINITION {
        custom::complete(&mut json);
    }
    Ok(json)
}

/// ServiceAccount: a pod's account must be there.
fn check_service_account(object: &Object, store: &Store) -> Result<(), ApiError> {
    let Some(pod) = object.pod() else { return Ok(()) };
    let namespace = object.key.namespace_or_empty();
    let Some(name) = missing_account(&pod.spec, namespace, store) else { return Ok(()) };
    let why = format!("error looking up service account {namespace}/{name}: serviceaccount \"{name}\" not found");
    Err(ApiError::forbidden(&object.gvk, &object.key.name, &why))
}

/// The account that a pod names and that is not there. Every namespace has one called `default`.
fn missing_account<'s>(spec: &'s PodSpec, namespace: &str, store: &Store) -> Option<&'s str> {
    let name = spec.rest.get("serviceAccountName").and_then(serde_json::Value::as_str)?;
    let is_there = || store.get(&SERVICE_ACCOUNT, &ObjectKey::namespaced(namespace, name)).is_some();
    (!["", "default"].contains(&name) && !is_there()).then_some(name)
}

fn note_account(notices: &mut BTreeMap<Notice, u64>, namespace: &str, name: &str) {
    let notice = Notice::UnknownServiceAccount(format!("{namespace}/{name}").into());
    if notices.len() < MAX_NOTICES || notices.contains_key(&notice) {
        *notices.entry(notice).or_default() += 1;
    }
}

/// A pod with scheduling gates gets its condition at once (`applySchedulingGatedCondition`).
fn hold_back_gated(object: &mut Object, now: SimTime) {
    let Some(pod) = object.pod_mut().filter(|pod| !pod.spec.scheduling_gates.is_empty()) else { return };
    let why = "Scheduling is blocked due to non-empty scheduling gates";
    pod.status.set_condition(Condition::new("PodScheduled", false, now).because("SchedulingGated", why));
}

fn read_class(object: &Object) -> Option<Priority> {
    let Body::Other(other) = &object.body else { return None };
    let value = other.fields.get("value")?.as_i64()?;
    let policy = other.fields.get("preemptionPolicy").and_then(|policy| policy.as_str()).map(SmolStr::from);
    Some((i32::try_from(value).ok()?, policy, object.key.name.clone()))
}

/// The class of this name; `None` when there is none.
fn find_class(class: &SmolStr, store: &Store) -> Option<Priority> {
    if let Some((_, value)) = SYSTEM_PRIORITIES.iter().find(|(name, _)| name == class) {
        return Some((*value, None, class.clone()));
    }
    read_class(store.get(&kinds::PRIORITY_CLASS, &ObjectKey::cluster(class.clone()))?)
}

/// The class that pods have which name none; priority 0 where no class is the default.
fn find_default_class(store: &Store) -> Priority {
    let default =
        store.list(&kinds::PRIORITY_CLASS).find(|class| is_default(class)).and_then(|class| read_class(class));
    default.unwrap_or((0, None, SmolStr::default()))
}

fn is_default(class: &Object) -> bool {
    let Body::Other(other) = &class.body else { return false };
    other.fields.get("globalDefault").and_then(serde_json::Value::as_bool).unwrap_or(false)
}

/// Only one class is the default.
fn check_default_class(object: &Object, store: &Store) -> Result<(), ApiError> {
    if object.gvk != kinds::PRIORITY_CLASS || !is_default(object) {
        return Ok(());
    }
    let mut others = store.list(&kinds::PRIORITY_CLASS).filter(|class| class.key != object.key);
    let Some(known) = others.find(|class| is_default(class)) else { return Ok(()) };
    let why = format!("PriorityClass {} is already marked as default. Only one default can exist", known.key.name);
    Err(ApiError::forbidden(&object.gvk, &object.key.name, &why))
}

/// The RuntimeClass plugin: sets a pod's overhead from its RuntimeClass.
fn check_overhead(object: &Object) -> Result<(), ApiError> {
    let Some(pod) = object.pod() else { return Ok(()) };
    let json = serde_json::json!(*pod.spec);
    let has_overhead = json["overhead"].as_object().is_some_and(|overhead| !overhead.is_empty());
    if !has_overhead || !json["runtimeClassName"].is_null() {
        return Ok(());
    }
    let why = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead";
    Err(ApiError::forbidden(&object.gvk, &object.key.name, why))
}

/// A pod of an unknown class keeps the priority it came with, or gets none.
fn default_priority(spec: &mut PodSpec, found: Option<Priority>) {
    let (value, policy, name) = found.unwrap_or_else(|| (spec.priority.unwrap_or(0), None, SmolStr::default()));
    spec.priority = Some(value);
    if spec.priority_class_name.is_empty() {
        spec.priority_class_name = name;
    }
    spec.preemption_policy.get_or_insert(policy.unwrap_or(SmolStr::new_static(PREEMPT)));
}

/// What an update makes of a pod's spec: defaults, and the priority that the pod has.
fn updated_spec(wanted: &PodSpec, known: &PodSpec) -> PodSpec {
    let mut spec = defaults::of_pod(wanted);
    spec.priority = known.priority;
    spec.preemption_policy.clone_from(&known.preemption_policy);
    default_tolerations(&mut spec);
    spec
}

/// Finalizers and taints that a controller removes again: of a claim in use (StorageObjectInUseProtection), of a node
/// that is not ready (TaintNodesByCondition). A simulation has no such controller; its nodes and claims work without
/// them.
fn protect(object: &mut Object) {
    let mark = |object: &mut Object, name: &'static str| {
        let known = object.meta.finalizers.iter().cloned();
        object.meta.finalizers = known.chain([SmolStr::new_static(name)]).collect();
    };
    match object.gvk.kind.as_str() {
        "PersistentVolumeClaim" => mark(object, "kubernetes.io/pvc-protection"),
        "PersistentVolume" => mark(object, "kubernetes.io/pv-protection"),
        _ => {}
    }
    if let Body::Node(node) = &mut object.body
        && !node.spec.taints.iter().any(|taint| taint.key == NOT_READY && taint.effect == TaintEffect::NoSchedule)
    {
        let key = SmolStr::new_static(NOT_READY);
        let taint = Taint { key, value: SmolStr::default(), effect: TaintEffect::NoSchedule, time_added: None };
        Arc::make_mut(&mut node.spec).taints.push(taint);
    }
}

/// NamespaceLifecycle: new objects need a namespace, and one that is not going.
fn check_namespace(object: &Object, store: &Store) -> Result<(), ApiError> {
    let Some(namespace) = &object.key.namespace else { return Ok(()) };
    let stored = store.get(&kinds::NAMESPACE, &ObjectKey::cluster(namespace.clone()));
    let Some(stored) = stored else { return Err(ApiError::not_found(&kinds::NAMESPACE, namespace)) };
    if stored.is_deleting() {
        return Err(ApiError::namespace_terminating(&object.gvk, &object.key.name, namespace));
    }
    Ok(())
}

/// The rules without which a controller or the scheduler would run wild: names that are names, and what each kind says
/// of its own fields.
pub(crate) fn validate(object: &Object) -> Result<(), ApiError> {
    let name = object.key.name.as_str();
    let checked = if object.body.is_name(name) {
        object.body.validate()
    } else {
        let shown: String = name.chars().take(80).collect();
        let why = format!("Invalid value: {shown:?}: a name has up to 253 lower case letters, digits, '-' and '.'");
        Err(Invalid::new("metadata.name", why))
    };
    checked.map_err(|invalid| ApiError::invalid(&object.gvk, &object.key.name, &[invalid]))
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

/// Names, labels and annotations as a server takes them.
pub(crate) fn validate_metadata(object: &Object, stored: Option<&Object>) -> Result<(), ApiError> {
    judge(object, &validation::metadata(object, stored))
}

/// Are both the very same maps and lists?
fn is_shared(one: &Meta, other: &Meta) -> bool {
    one.labels.is_same(&other.labels)
        && one.annotations.is_same(&other.annotations)
        && (Arc::ptr_eq(&one.owners, &other.owners) || (one.owners.is_empty() && other.owners.is_empty()))
        && one.finalizers == other.finalizers
}

/// Refuses an object for what is wrong with it.
fn judge(object: &Object, invalid: &Errors) -> Result<(), ApiError> {
    if invalid.is_empty() { Ok(()) } else { Err(ApiError::invalid(&object.gvk, &object.key.name, invalid)) }
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
