//! Our scheduler, told what the real one was told: the same objects, the same events in the same order.
//!
//! This stands where the engine stands: it plays the API server (admission), the informers (when an event is seen) and
//! the kubelets (start times). After each attempt it does what the *real* scheduler did, so that one difference does not
//! make all later answers differ too.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use sk_core::{LabelSelector, SimDuration, SimTime, SmolStr};
use sk_scheduler::next::class::OwnerKind;
use sk_scheduler::next::cluster::objects::{Budget, StorageClass, Volume, VolumeClaim};
use sk_scheduler::next::framework::plugin::PluginSet;
use sk_scheduler::next::queue::{Event, PodAction, QueueSettings};
use sk_scheduler::next::{Cluster, Decision, NodeSpec, PodClass, PodId, Profile, Queue, Scheduler};
use sk_testkit::merge;
use sk_testkit::scenario::Target;
use sk_testkit::scheduling::answer::{Outcome, Scores, name_of, pod_name};
use sk_testkit::scheduling::{SchedulingScenario, Step};

use crate::admission::admit;

/// How much later each step is. Longer than anything that the queue tells apart but its back-offs.
const STEP: SimDuration = SimDuration::from_millis(100);

/// Our scheduler and what it has been told.
pub struct Ours {
    scheduler: Scheduler,
    queue: Queue,
    now: SimTime,
    objects: Vec<Value>,
    nodes: BTreeMap<String, Value>,
    pods: BTreeMap<String, Known>,
    /// Pods that came onto nodes or left them, but not yet as far as the scheduler knows.
    news: Vec<News>,
    /// For whom others are being deleted, and who of them is still there.
    preempting: BTreeMap<String, BTreeSet<String>>,
    started: i64,
}

struct Known {
    id: PodId,
    object: Value,
}

/// What an informer has yet to show, in the words of an attempt's `events`.
#[derive(Clone, Debug, PartialEq)]
enum News {
    Came(String, String),
    Left(String),
}

impl News {
    fn is(&self, word: &str) -> bool {
        match self {
            Self::Came(pod, _) => word.strip_prefix('+') == Some(pod),
            Self::Left(pod) => word.strip_prefix('-') == Some(pod),
        }
    }
}

/// What we decided.
pub struct Answer {
    /// The pod.
    pub pod: String,
    /// As the real scheduler would have put it; `evaluated` and `feasible` included.
    pub outcome: Outcome,
    /// The scores, if there was something to choose.
    pub scores: Option<Scores>,
    rejectors: PluginSet,
}

impl Ours {
    /// A scheduler that knows the scenario's objects and nodes.
    pub fn new(scenario: &SchedulingScenario, profiles: Vec<Profile>) -> Result<Self, String> {
        let now = SimTime::from_secs(1_767_225_600);
        let mut ours = Self {
            scheduler: Scheduler::new(Cluster::default(), profiles),
            queue: Queue::new(QueueSettings::default(), now),
            now,
            objects: Vec::new(),
            nodes: BTreeMap::new(),
            pods: BTreeMap::new(),
            news: Vec::new(),
            preempting: BTreeMap::new(),
            started: 0,
        };
        ours.scheduler.cluster.objects.set_namespace("default", Some(BTreeMap::new()));
        for object in &scenario.objects {
            ours.create(object)?;
        }
        for node in &scenario.nodes {
            ours.set_node(node.clone())?;
        }
        Ok(ours)
    }

    /// Does a step, up to where the scheduler would be told.
    pub fn act(&mut self, step: &Step) -> Result<(), String> {
        self.now = self.now + STEP;
        match step {
            Step::Pod(pod) => self.add_pod(pod),
            Step::Bind(pod) => {
                self.know(pod)?;
                let node = pod["spec"]["nodeName"].as_str().unwrap_or_default().to_owned();
                self.news.push(News::Came(name_of(pod), node));
                Ok(())
            }
            Step::Node(node) => self.set_node(node.clone()),
            Step::Create(object) => self.create(object),
            Step::Change(change) => self.change(&change.of, &change.merge),
            Step::Delete(target) => self.delete(target),
            Step::Finish => {
                let ending = |known: &Known| self.scheduler.cluster.pod(known.id).deleting;
                let names = self.pods.iter().filter(|(_, known)| ending(known)).map(|(name, _)| name.clone());
                let news: Vec<News> = names.map(News::Left).collect();
                self.news.extend(news);
                Ok(())
            }
            Step::Wait(span) => {
                self.now = self.now + *span;
                Ok(())
            }
        }
    }

    /// Tells the queue what the real scheduler had learnt before an attempt.
    pub fn learn(&mut self, events: &[String]) {
        for event in events {
            if let Some(index) = self.news.iter().position(|news| news.is(event)) {
                let news = self.news.remove(index);
                self.deliver(news);
            }
        }
    }

    /// Tells the queue everything that it does not know yet.
    pub fn learn_all(&mut self) {
        for news in std::mem::take(&mut self.news) {
            self.deliver(news);
        }
    }

    /// Takes the pod that the real scheduler tried. `Err` says what our queue would have done instead.
    pub fn take(&mut self, pod: &str) -> Result<(), String> {
        let Some(wanted) = self.pods.get(pod).map(|known| known.id) else { return Err("we know no such pod".into()) };
        let mut skipped = Vec::new();
        let found = loop {
            match self.queue.pop(self.now) {
                Some(next) if next == wanted => break true,
                Some(next) => skipped.push(next),
                None => break false,
            }
        };
        let first = skipped.first().map(|first| self.name(*first));
        for skipped in skipped {
            self.queue.remove(skipped);
            self.queue.add(self.now, skipped, &self.scheduler);
        }
        match (found, first) {
            (true, None) => Ok(()),
            (true, Some(first)) => Err(format!("we would try {first} before it")),
            (false, _) => Err("we would not try it".into()),
        }
    }

    /// Pods that we would try now, in our order; they are put back.
    pub fn ready(&self) -> Vec<String> {
        let mut queue = self.queue.clone();
        std::iter::from_fn(|| queue.pop(self.now)).map(|pod| self.name(pod)).collect()
    }

    /// Decides for a pod.
    pub fn decide(&mut self, pod: &str) -> Answer {
        let id = self.pods[pod].id;
        let scores = self.scores(id);
        let mut rejectors = PluginSet::EMPTY;
        let outcome = match self.scheduler.schedule(id) {
            Decision::Placed { node, feasible, evaluated } => Outcome::Bound {
                node: self.scheduler.cluster.node(node).name.to_string(),
                evaluated: evaluated as u64,
                feasible: feasible as u64,
            },
            Decision::Nominated { node, victims, diagnosis } => {
                rejectors = diagnosis.plugins();
                let mut victims: Vec<String> = victims.iter().map(|victim| self.name(*victim)).collect();
                victims.sort();
                let nominated = Some(self.scheduler.cluster.node(node).name.to_string());
                Outcome::Unschedulable { unschedulable: diagnosis.to_string(), nominated, victims }
            }
            Decision::Unschedulable(diagnosis) => {
                rejectors = diagnosis.plugins();
                Outcome::Unschedulable { unschedulable: diagnosis.to_string(), nominated: None, victims: vec![] }
            }
            Decision::NoProfile => Outcome::Failed { error: "no profile has the pod's schedulerName".into() },
        };
        Answer {
            pod: pod.to_owned(),
            scores: scores.filter(|_| matches!(outcome, Outcome::Bound { .. })),
            outcome,
            rejectors,
        }
    }

    fn scores(&mut self, pod: PodId) -> Option<Scores> {
        let explanation = self.scheduler.explain(pod)?;
        if explanation.nodes.len() < 2 {
            return None;
        }
        let mut scores = Scores::default();
        for node in &explanation.nodes {
            scores.nodes.push(self.scheduler.cluster.node(node.node).name.to_string());
            scores.totals.push(node.total);
            for (plugin, score) in &node.plugins {
                match scores.plugins.iter_mut().find(|(known, _)| known == plugin.name()) {
                    Some((_, column)) => column.push(*score),
                    None => scores.plugins.push((plugin.name().to_owned(), vec![*score])),
                }
            }
        }
        (!scores.plugins.is_empty()).then_some(scores)
    }

    /// Does what the real scheduler did with the pod that was taken.
    pub fn carry_out(&mut self, answer: &Answer, real: &Outcome) {
        let id = self.pods[&answer.pod].id;
        match real {
            Outcome::Bound { node, .. } => {
                let place = self.scheduler.cluster.slot(node);
                self.scheduler.cluster.withdraw(id);
                self.scheduler.cluster.add_pod(id, place);
                self.queue.remove(id);
                self.news.push(News::Came(answer.pod.clone(), node.clone()));
            }
            Outcome::Unschedulable { unschedulable, nominated, victims } => {
                if let Some(node) = nominated {
                    self.nominate(&answer.pod, node, victims);
                } else if !unschedulable.contains("not eligible") {
                    self.scheduler.cluster.withdraw(id);
                    self.scheduler.cluster.update_pod(id, |pod| pod.nominated = None);
                }
                self.queue.failed(self.now, id, answer.rejectors, &self.scheduler);
                self.evict(&answer.pod, victims);
            }
            Outcome::Failed { .. } => self.queue.failed(self.now, id, PluginSet::EMPTY, &self.scheduler),
        }
    }

    fn nominate(&mut self, pod: &str, node: &str, victims: &[String]) {
        let id = self.pods[pod].id;
        let node = self.scheduler.cluster.slot(node);
        self.scheduler.cluster.nominate(id, node);
        self.scheduler.cluster.update_pod(id, |pod| pod.nominated = Some(node));
        if !victims.is_empty() {
            self.queue.set_preempting(id, true);
        }
    }

    /// The victims' deletion begins; those without grace are gone as soon as the scheduler learns it.
    fn evict(&mut self, preemptor: &str, victims: &[String]) {
        let mut still_there = BTreeSet::new();
        for victim in victims {
            let Some(known) = self.pods.get(victim) else { continue };
            if known.object["spec"]["terminationGracePeriodSeconds"] == 0 {
                self.news.push(News::Left(victim.clone()));
                still_there.insert(victim.clone());
            } else {
                self.scheduler.cluster.update_pod(known.id, |pod| (pod.deleting, pod.preempted) = (true, true));
            }
        }
        if still_there.is_empty() {
            self.queue.set_preempting(self.pods[preemptor].id, false);
        } else {
            self.preempting.insert(preemptor.to_owned(), still_there);
        }
    }

    fn deliver(&mut self, news: News) {
        match news {
            News::Came(name, node) => self.came(&name, &node),
            News::Left(name) => self.left(&name),
        }
    }

    /// A pod is seen on its node, and its kubelet starts it.
    fn came(&mut self, name: &str, node: &str) {
        let Some(id) = self.pods.get(name).map(|known| known.id) else { return };
        let place = self.scheduler.cluster.slot(node);
        if self.scheduler.cluster.pod(id).node().is_none() {
            self.scheduler.cluster.add_pod(id, place);
        }
        self.started += 1;
        let started = Some(SimTime::from_secs(1_767_225_600 + self.started));
        self.scheduler.cluster.update_pod(id, |pod| pod.started = started);
        let after = Some(self.scheduler.cluster.pod(id).class);
        self.happened(Event::PlacedPod { action: PodAction::Add, before: None, after });
    }

    /// A pod is seen to be gone from its node.
    fn left(&mut self, name: &str) {
        let Some(known) = self.pods.remove(name) else { return };
        let before = Some(self.scheduler.cluster.pod(known.id).class);
        for (preemptor, there) in &mut self.preempting {
            there.remove(name);
            if there.is_empty()
                && let Some(known) = self.pods.get(preemptor)
            {
                self.queue.set_preempting(known.id, false);
            }
        }
        self.preempting.retain(|_, there| !there.is_empty());
        self.scheduler.cluster.remove_pod(known.id);
        self.happened(Event::PlacedPod { action: PodAction::Delete, before, after: None });
        self.scheduler.cluster.drop_pod(known.id);
    }

    fn happened(&mut self, event: Event) {
        self.queue.happened(self.now, &event, &self.scheduler);
    }

    fn add_pod(&mut self, pod: &Value) -> Result<(), String> {
        let id = self.know(pod)?;
        let scheduler = pod["spec"]["schedulerName"].as_str().unwrap_or("default-scheduler");
        if self.scheduler.has_profile(scheduler) {
            self.queue.add(self.now, id, &self.scheduler);
        }
        Ok(())
    }

    fn know(&mut self, pod: &Value) -> Result<PodId, String> {
        let object = admit(pod, &self.objects);
        let class = PodClass::from_pod(&object).map_err(|error| error.to_string())?;
        let class = self.scheduler.cluster.intern(class);
        let id = self.scheduler.cluster.new_pod(class, object["metadata"]["name"].as_str().unwrap_or_default());
        self.pods.insert(name_of(pod), Known { id, object });
        Ok(id)
    }

    fn name(&self, pod: PodId) -> String {
        let known = self.scheduler.cluster.pod(pod);
        pod_name(&self.scheduler.cluster.class(known.class).namespace, &known.name)
    }

    fn set_node(&mut self, node: Value) -> Result<(), String> {
        let change = self.scheduler.cluster.set_node(NodeSpec::from_json(&node).map_err(|error| error.to_string())?);
        self.nodes.insert(name_of(&node), node);
        for event in Event::of_node(&change) {
            self.happened(event);
        }
        Ok(())
    }

    fn change(&mut self, target: &Target, patch: &Value) -> Result<(), String> {
        let name = pod_name(target.0.key.namespace.as_deref().unwrap_or("default"), &target.0.key.name);
        match target.0.gvk.kind.as_str() {
            "Node" => {
                let mut node = self.nodes.get(&name).cloned().ok_or("we know no such node")?;
                merge::apply(&mut node, patch);
                self.set_node(node)
            }
            "Pod" => self.change_pod(&name, patch),
            kind => {
                let index = self.objects.iter().position(|object| object["kind"] == kind && name_of(object) == name);
                let mut object = self.objects.remove(index.ok_or("we know no such object")?);
                merge::apply(&mut object, patch);
                self.create(&object)
            }
        }
    }

    fn change_pod(&mut self, name: &str, patch: &Value) -> Result<(), String> {
        // A waiting pod may have been taken as a victim by then, as far as the generator of scenarios knows.
        let Some(known) = self.pods.get_mut(name) else { return Ok(()) };
        merge::apply(&mut known.object, patch);
        let (id, object) = (known.id, known.object.clone());
        if object["status"]["phase"] == "Succeeded" {
            self.news.push(News::Left(name.to_owned()));
            return Ok(());
        }
        let class = PodClass::from_pod(&object).map_err(|error| error.to_string())?;
        let (before, after) = (self.scheduler.cluster.pod(id).class, self.scheduler.cluster.intern(class));
        self.scheduler.cluster.update_pod(id, |pod| pod.class = after);
        if self.scheduler.cluster.pod(id).node().is_none() {
            self.queue.updated(self.now, id, before, &self.scheduler);
            return Ok(());
        }
        let classes = (self.scheduler.cluster.class(before), self.scheduler.cluster.class(after));
        for action in Event::pod_actions(classes.0, classes.1) {
            self.happened(Event::PlacedPod { action, before: Some(before), after: Some(after) });
        }
        Ok(())
    }

    fn delete(&mut self, target: &Target) -> Result<(), String> {
        let name = pod_name(target.0.key.namespace.as_deref().unwrap_or("default"), &target.0.key.name);
        match target.0.gvk.kind.as_str() {
            "Node" => {
                let node = self.scheduler.cluster.node_id(&name).ok_or("we know no such node")?;
                let change = self.scheduler.cluster.remove_node(node);
                self.nodes.remove(&name);
                Event::of_node(&change).into_iter().for_each(|event| self.happened(event));
                Ok(())
            }
            "Pod" => {
                self.delete_pod(&name);
                Ok(())
            }
            kind => Err(format!("scenarios delete pods and nodes, not {kind}")),
        }
    }

    fn delete_pod(&mut self, name: &str) {
        let Some(id) = self.pods.get(name).map(|known| known.id) else { return };
        if self.scheduler.cluster.pod(id).node().is_some() {
            return self.news.push(News::Left(name.to_owned()));
        }
        self.queue.remove(id);
        let before = Some(self.scheduler.cluster.pod(id).class);
        let nominated = self.scheduler.cluster.withdraw(id);
        self.pods.remove(name);
        if nominated.is_some() {
            self.happened(Event::PlacedPod { action: PodAction::Delete, before, after: None });
        }
        self.scheduler.cluster.drop_pod(id);
    }

    fn create(&mut self, object: &Value) -> Result<(), String> {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
        let (namespace, name) =
            (text("/metadata/namespace").unwrap_or("default"), text("/metadata/name").unwrap_or_default());
        let key = (SmolStr::from(namespace), SmolStr::from(name));
        let objects = &mut self.scheduler.cluster.objects;
        let selector = |of: &Value| LabelSelector::from_json(of).map_err(|error| error.to_string());
        let labels_of_map = |of: &Value| LabelSelector::from_match_labels(of).map_err(|error| error.to_string());
        let mut event = None;
        match text("/kind").unwrap_or_default() {
            "Namespace" => objects.set_namespace(name, Some(texts(&object["metadata"]["labels"]))),
            "Service" => objects.set_service(namespace, name, Some(labels_of_map(&object["spec"]["selector"])?)),
            "ReplicationController" => {
                let selected = labels_of_map(&object["spec"]["selector"])?;
                objects.set_owner(OwnerKind::ReplicationController, namespace, name, Some(selected));
            }
            "ReplicaSet" => {
                objects.set_owner(OwnerKind::ReplicaSet, namespace, name, Some(selector(&object["spec"]["selector"])?))
            }
            "StatefulSet" => {
                objects.set_owner(OwnerKind::StatefulSet, namespace, name, Some(selector(&object["spec"]["selector"])?))
            }
            "PodDisruptionBudget" => objects.set_budget(key, Some(budget(object)?)),
            "PersistentVolumeClaim" => {
                objects.set_claim(key, Some(claim(object)));
                event = Some(Event::Claim { namespace: namespace.into(), name: name.into() });
            }
            "PersistentVolume" => {
                let volume = volume(object)?;
                objects.set_volume(name, Some(volume.clone()));
                event = Some(Event::Volume { before: None, after: Box::new(volume) });
            }
            "StorageClass" => {
                let class = storage_class(object);
                objects.set_storage_class(name, Some(class.clone()));
                event = Some(Event::StorageClass { before: None, after: Box::new(class) });
            }
            // Admission looks at these; the scheduler does not.
            "PriorityClass" | "RuntimeClass" => {}
            kind => return Err(format!("nobody has said what {kind} means to a scheduler")),
        }
        self.objects.push(object.clone());
        event.into_iter().for_each(|event| self.happened(event));
        Ok(())
    }
}

fn texts(map: &Value) -> BTreeMap<SmolStr, SmolStr> {
    let entries = map.as_object().into_iter().flatten();
    entries.filter_map(|(key, value)| Some((key.into(), value.as_str()?.into()))).collect()
}

fn budget(object: &Value) -> Result<Budget, String> {
    let disrupted = object["status"]["disruptedPods"].as_object().into_iter().flatten();
    Ok(Budget {
        selector: LabelSelector::from_json(&object["spec"]["selector"]).map_err(|error| error.to_string())?,
        allowed: object["status"]["disruptionsAllowed"].as_i64().unwrap_or(0) as i32,
        disrupted: disrupted.map(|(name, _)| name.into()).collect(),
    })
}

fn claim(object: &Value) -> VolumeClaim {
    let annotation = |key: &str| object["metadata"]["annotations"][key].as_str().map(SmolStr::from);
    VolumeClaim {
        volume: object["spec"]["volumeName"].as_str().map(SmolStr::from),
        bound: annotation("pv.kubernetes.io/bind-completed").is_some(),
        storage_class: object["spec"]["storageClassName"].as_str().map(SmolStr::from),
        selected_node: annotation("volume.kubernetes.io/selected-node"),
        lost: false,
        deleting: false,
    }
}

/// A volume's node affinity has the form of a pod's, so a pod that has it is asked what it means.
fn volume(object: &Value) -> Result<Volume, String> {
    let required = &object["spec"]["nodeAffinity"]["required"];
    let affinity = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}});
    let pod = json!({"metadata": {}, "spec": {"containers": [], "affinity": affinity}});
    let class = PodClass::from_pod(&pod).map_err(|error| error.to_string())?;
    let node_affinity = required.is_object().then(|| class.shape.required_affinity.clone()).flatten();
    Ok(Volume { labels: texts(&object["metadata"]["labels"]), node_affinity })
}

fn storage_class(object: &Value) -> StorageClass {
    StorageClass {
        waits_for_consumer: object["volumeBindingMode"] == "WaitForFirstConsumer",
        no_provisioner: object["provisioner"] == "kubernetes.io/no-provisioner",
        allowed: Vec::new(),
    }
}
