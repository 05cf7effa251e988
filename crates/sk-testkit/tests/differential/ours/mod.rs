//! Our scheduler, told what the real one was told: the same objects, the same events in the same order.
//!
//! This stands where the engine stands: it plays the API server (admission), the informers (when an event is seen) and
//! the kubelets (start times). After each attempt it does what the *real* scheduler did, so that one difference does not
//! make all later answers differ too.

mod informers;
mod objects;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::Value;
use sk_core::{SimDuration, SimTime};
use sk_scheduler::framework::SearchStart;
use sk_scheduler::framework::plugin::PluginSet;
use sk_scheduler::{Cluster, Configuration, Decision, NodeId, PodId, Queue, Scheduler};
use sk_testkit::scheduling::attempt::{Outcome, Scores, name_of, pod_name};
use sk_testkit::scheduling::{SchedulingScenario, Step};

/// How much later each step is. Longer than anything that the queue tells apart but its back-offs.
const STEP: SimDuration = SimDuration::from_millis(100);

/// When scenarios begin, for us: the start times that the recorder makes up begin there too.
const START_SECONDS: i64 = 1_767_225_600;

/// Our scheduler and what it has been told.
#[derive(Clone)]
pub(crate) struct Ours {
    scheduler: Scheduler,
    queue: Queue,
    now: SimTime,
    objects: Vec<Value>,
    nodes: BTreeMap<String, Value>,
    pods: BTreeMap<String, Known>,
    /// Pods that came onto nodes, left them or were changed, but not yet as far as the scheduler knows.
    news: Vec<News>,
    /// Pods that came onto nodes in this step; the kubelets start them when it is over.
    bound: Vec<String>,
    /// For whom others are being deleted, and who of them is still there.
    preempting: BTreeMap<String, BTreeSet<String>>,
    started: i64,
    /// A node whose going the queue knows of, and the cluster not yet.
    going: Option<NodeId>,
}

#[derive(Clone)]
struct Known {
    id: PodId,
    object: Value,
    /// What its condition `PodScheduled` says, as the scheduler has seen it.
    words: String,
    /// `status.nominatedNodeName` as the API server has it.
    nominated: Option<NodeId>,
}

/// What an informer has yet to show, in the words of an attempt's `events`.
#[derive(Clone, Debug, PartialEq)]
enum News {
    Came(String, String),
    Left(String),
    /// Its deletion has begun, to make room for another.
    Going(String),
    /// Its status is written: what the condition says, and for which node it is nominated.
    Status(String, String, Option<NodeId>),
}

impl fmt::Display for News {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Came(pod, _) => write!(f, "+{pod}"),
            Self::Left(pod) => write!(f, "-{pod}"),
            Self::Going(pod) | Self::Status(pod, ..) => write!(f, "~{pod}"),
        }
    }
}

/// What we decided.
pub(crate) struct Answer {
    /// The pod.
    pub(crate) pod: String,
    /// As the real scheduler would have put it; `evaluated` and `feasible` included.
    pub(crate) outcome: Outcome,
    /// The scores, if there was something to choose.
    pub(crate) scores: Option<Scores>,
    rejectors: PluginSet,
}

/// What our queue would have done.
#[derive(Debug)]
pub(crate) enum Instead {
    /// Not tried the pod: nothing has happened that could help it.
    Nothing,
    /// Tried this one first.
    Before(String),
}

impl fmt::Display for Instead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => write!(f, "we would not try it"),
            Self::Before(first) => write!(f, "we would try {first} before it"),
        }
    }
}

impl Ours {
    /// A scheduler that knows the scenario's objects and nodes.
    pub(crate) fn new(scenario: &SchedulingScenario) -> Result<Self, String> {
        let mut configuration = scenario.scheduler.clone();
        configuration["apiVersion"] = "kubescheduler.config.k8s.io/v1".into();
        configuration["kind"] = "KubeSchedulerConfiguration".into();
        let configuration = Configuration::from_value(&configuration).map_err(|error| error.to_string())?;
        let now = SimTime::from_secs(START_SECONDS);
        let mut ours = Self {
            scheduler: Scheduler::new(Cluster::default(), configuration.profiles),
            queue: Queue::new(configuration.queue, now),
            now,
            objects: Vec::new(),
            nodes: BTreeMap::new(),
            pods: BTreeMap::new(),
            news: Vec::new(),
            bound: Vec::new(),
            preempting: BTreeMap::new(),
            started: 0,
            going: None,
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

    /// The real scheduler's clock, where it is known: whether a back-off is over decides who is tried first.
    pub(crate) fn set_clock(&mut self, at: Option<i64>) {
        if let Some(at) = at {
            self.now = SimTime::from_secs(START_SECONDS) + SimDuration::from_micros(at);
        }
    }

    /// Does a step, up to where the scheduler would be told.
    pub(crate) fn act(&mut self, step: &Step) -> Result<(), String> {
        self.now += STEP;
        match step {
            Step::Pod(pod) => self.add_pod(pod),
            Step::Bind(pod) => {
                self.know(pod)?;
                let node = pod["spec"]["nodeName"].as_str().unwrap_or_default().to_owned();
                self.bound.push(name_of(pod));
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
                self.now += *span;
                Ok(())
            }
        }
    }

    /// Tells the queue what the real scheduler had learnt before an attempt.
    pub(crate) fn learn(&mut self, events: &[String]) {
        for event in events {
            // Each event tells of one status; several may have been written since the last one was seen.
            let mut is_first = true;
            let mut is_told = |news: &News| {
                let tells = news.to_string() == *event;
                tells && (!matches!(news, News::Status(..)) || std::mem::take(&mut is_first))
            };
            let (told, untold): (Vec<News>, Vec<News>) =
                std::mem::take(&mut self.news).into_iter().partition(|news| is_told(news));
            self.news = untold;
            told.into_iter().for_each(|news| self.deliver(news));
        }
    }

    /// The step is over: the kubelets start what was bound, one second after the other.
    pub(crate) fn start_bound(&mut self) {
        for name in std::mem::take(&mut self.bound) {
            self.started += 1;
            let started = Some(SimTime::from_secs(START_SECONDS + self.started));
            if let Some(known) = self.pods.get(&name) {
                self.scheduler.cluster.update_pod(known.id, |pod| pod.started = started);
            }
        }
    }

    /// Tells the queue everything that it does not know yet, and says what that was.
    pub(crate) fn learn_all(&mut self) -> Vec<String> {
        let mut told = Vec::new();
        for news in std::mem::take(&mut self.news) {
            told.push(news.to_string());
            self.deliver(news);
        }
        told
    }

    /// Takes the pod that the real scheduler tried. `Err` says what our queue would have done instead.
    pub(crate) fn take(&mut self, pod: &str) -> Result<(), Instead> {
        let Some(id) = self.pods.get(pod).map(|known| known.id) else { return Err(Instead::Nothing) };
        let first = self.queue.clone().pop(self.now);
        match (self.queue.pop_this(self.now, id), first) {
            (true, Some(first)) if first != id => Err(Instead::Before(self.name(first))),
            (true, _) => Ok(()),
            (false, _) => {
                if !self.queue.contains(id) {
                    self.queue.add(self.now, id, &self.scheduler);
                    self.queue.pop_this(self.now, id);
                }
                Err(Instead::Nothing)
            }
        }
    }

    /// Pods that we would try now, in our order; they are put back.
    pub(crate) fn ready(&self) -> Vec<String> {
        let mut queue = self.queue.clone();
        std::iter::from_fn(|| queue.pop(self.now)).map(|pod| self.name(pod)).collect()
    }

    /// Decides for a pod.
    pub(crate) fn decide(&mut self, pod: &str) -> Answer {
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
                // Those who are going already are not deleted once more.
                let stay = victims.iter().filter(|victim| !self.scheduler.cluster.pod(**victim).deleting);
                let mut victims: Vec<String> = stay.map(|victim| self.name(*victim)).collect();
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
    pub(crate) fn carry_out(&mut self, answer: &Answer, real: &Outcome) {
        let id = self.pods[&answer.pod].id;
        match real {
            Outcome::Bound { node, .. } => {
                let place = self.scheduler.cluster.slot(node);
                self.scheduler.cluster.withdraw(id);
                self.scheduler.cluster.add_pod(id, place);
                self.queue.remove(id);
                self.bound.push(answer.pod.clone());
                self.news.push(News::Came(answer.pod.clone(), node.clone()));
            }
            Outcome::Unschedulable { unschedulable, nominated, victims } => {
                // Where DefaultPreemption has no say, nothing is said of the nomination either.
                let has_say = !unschedulable.contains("not eligible") && !unschedulable.ends_with(" not found");
                let nomination = has_say.then_some(nominated.as_deref());
                self.renominate(id, nomination, victims);
                self.queue.failed(self.now, id, answer.rejectors, &self.scheduler);
                self.write_status(&answer.pod, unschedulable, nomination);
                self.evict(&answer.pod, victims);
            }
            Outcome::Failed { .. } => self.queue.failed(self.now, id, PluginSet::EMPTY, &self.scheduler),
        }
    }

    /// What the nominator does at once (`backend/queue/nominator.go`, `AddNominatedPod`), and what a preemption does to those
    /// who are nominated for its node: their status is cleared where it names a node as far as the scheduler has seen.
    fn renominate(&mut self, id: PodId, nomination: Option<Option<&str>>, victims: &[String]) {
        let cluster = &mut self.scheduler.cluster;
        let node = match nomination {
            Some(node) => node.map(|node| cluster.slot(node)),
            None => cluster.pod(id).nominated,
        };
        match node {
            Some(node) => cluster.nominate(id, node),
            None => drop(cluster.withdraw(id)),
        }
        let Some(node) = node.filter(|_| !victims.is_empty()) else { return };
        self.queue.set_preempting(id, true);
        for lower in self.scheduler.cluster.nominations_below(id, node) {
            if self.scheduler.cluster.pod(lower).nominated.is_some() {
                let name = self.name(lower);
                let words = self.pods.get(&name).map(|known| known.words.clone()).unwrap_or_default();
                self.write(name, words, None);
            }
        }
    }

    /// The scheduler writes into the status what differs from the one that it knows (`schedule_one.go`, `updatePod`).
    fn write_status(&mut self, name: &str, words: &str, nomination: Option<Option<&str>>) {
        let Some(known) = self.pods.get(name) else { return };
        let seen = self.scheduler.cluster.pod(known.id).nominated;
        let is_other = known.words != words;
        let after = nomination.map(|node| node.map(|node| self.scheduler.cluster.slot(node)));
        match after.filter(|after| *after != seen) {
            Some(after) => self.write(name.to_owned(), words.to_owned(), after),
            None if is_other => {
                let nominated = self.pods[name].nominated;
                self.write(name.to_owned(), words.to_owned(), nominated);
            }
            None => {}
        }
    }

    fn write(&mut self, name: String, words: String, nominated: Option<NodeId>) {
        self.pods.get_mut(&name).into_iter().for_each(|known| known.nominated = nominated);
        self.news.push(News::Status(name, words, nominated));
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
                self.news.push(News::Going(victim.clone()));
            }
        }
        if still_there.is_empty() {
            self.queue.set_preempting(self.pods[preemptor].id, false);
        } else {
            self.preempting.insert(preemptor.to_owned(), still_there);
        }
    }

    /// At which node the next search starts.
    pub(crate) fn search_start(&self) -> SearchStart {
        self.scheduler.search_start()
    }

    fn name(&self, pod: PodId) -> String {
        let known = self.scheduler.cluster.pod(pod);
        pod_name(&self.scheduler.cluster.class(known.class).namespace, &known.name)
    }
}
