//! `why`: why a pod waited, was placed or was deleted, why a node existed and was idle, why a group did not grow, from
//! a run's rows, with the messages of Kubernetes and the autoscaler.
//!
//! It reads a run once to find the object and once more for what the scheduler and the autoscaler reported about it.
//! The output is bounded ([`PODS_MAX`], [`ANSWERS_MAX`]); what is left out is counted and shown.

mod fitting;
mod messages;
mod options;
mod stories;
mod subject;
mod text;
mod waits;

use serde::Serialize;
use sk_core::{SimDuration, SimTime};
use sk_record::{Engine, Error, PodRow};

use crate::fleet::Fleet;
use crate::source::Source;
use crate::step::Window;
use messages::Messages;

pub use subject::Subject;
pub use text::render;

/// Pods that are read; of a Deployment with more, the first ones.
pub const PODS_MAX: usize = 10_000;
/// Answers of the scheduler that are kept: 50,000 × 300 bytes are 15 MB.
pub const ANSWERS_MAX: usize = 50_000;
/// Pods whose whole history is shown if the question is about several.
const STORIES_MAX: usize = 5;
/// Periods shown for one node or group.
const STRETCHES_MAX: usize = 20;

/// Why nothing can be answered.
#[derive(Debug, thiserror::Error)]
pub enum WhyError {
    /// The run cannot be read.
    #[error(transparent)]
    Record(#[from] Error),
    /// No such thing in the run.
    #[error("{asked} is not a pod, owner, node or node group of this run{near}")]
    Unknown {
        /// What was asked for.
        asked: String,
        /// What there is instead, as the end of the sentence.
        near: String,
    },
}

/// The whole answer.
#[derive(Debug, Serialize)]
pub struct Why {
    /// What was asked for, spelt out.
    pub subject: String,
    /// Is it about what was recorded, and not about a simulation?
    pub is_recorded: bool,
    /// The time it is about.
    #[serde(skip)]
    pub window: Window,
    /// Which pods waited, when, and the scheduler's messages; longest first.
    pub waits: Vec<Waited>,
    /// What happened to single pods.
    pub pods: Vec<PodStory>,
    /// What happened to a node.
    pub nodes: Vec<NodeStory>,
    /// What happened to a node group.
    pub groups: Vec<GroupStory>,
    /// Pods that were read.
    pub pods_total: usize,
    /// Some pods or answers were left out: the bounds were reached.
    pub is_cut: bool,
}

/// Pods of one owner that waited at the same time.
#[derive(Clone, Debug, Serialize)]
pub struct Waited {
    /// `ns/Kind/name`.
    pub owner: String,
    /// How many pods.
    pub pods: usize,
    /// From when.
    #[serde(serialize_with = "rfc3339")]
    pub from: SimTime,
    /// To when.
    #[serde(serialize_with = "rfc3339")]
    pub to: SimTime,
    /// The longest wait of one of them, in seconds.
    #[serde(serialize_with = "seconds")]
    pub longest: SimDuration,
    /// The scheduler's messages with their counts; most frequent first.
    pub said: Vec<Said>,
    /// The autoscaler's messages about them in the meantime with their counts; most frequent first.
    pub autoscaler: Vec<Said>,
    /// Which groups it considered for them, each with its scores or its reason, which it chose and why; most often
    /// first.
    pub considered: Vec<Said>,
    /// Node groups that were at their maximum in the meantime, and since when: the autoscaler could not add to them.
    pub at_max: Vec<AtMax>,
    /// How many more nodes of which group would have taken them, by CPU and memory.
    pub would_have_fitted: Vec<String>,
    /// What ended it.
    pub ended: String,
}

/// A node group that could not grow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AtMax {
    /// Its name.
    pub group: String,
    /// How many nodes that is.
    pub max: i64,
    /// Since when.
    #[serde(serialize_with = "rfc3339")]
    pub since: SimTime,
}

/// One message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Said {
    /// The scheduler's message.
    pub message: String,
    /// How often.
    pub times: usize,
    /// First.
    #[serde(serialize_with = "rfc3339")]
    pub first: SimTime,
    /// Last.
    #[serde(serialize_with = "rfc3339")]
    pub last: SimTime,
}

/// One pod's life, event by event.
#[derive(Clone, Debug, Serialize)]
pub struct PodStory {
    /// `ns/name`.
    pub pod: String,
    /// `ns/Kind/name`.
    pub owner: String,
    /// What happened when.
    pub events: Vec<Event>,
}

/// Something that happened.
#[derive(Clone, Debug, Serialize)]
pub struct Event {
    /// When.
    #[serde(serialize_with = "rfc3339")]
    pub at: SimTime,
    /// What, as a sentence.
    pub what: String,
}

/// One node's life.
#[derive(Clone, Debug, Serialize)]
pub struct NodeStory {
    /// Its name.
    pub node: String,
    /// What happened when.
    pub events: Vec<Event>,
}

/// One group over time.
#[derive(Clone, Debug, Serialize)]
pub struct GroupStory {
    /// Its name.
    pub group: String,
    /// What happened when.
    pub events: Vec<Event>,
}

impl Why {
    /// Answers about `subject` inside `window`, which lies in the run's. A pod that only a recording or another run has
    /// is answered by what happened to its owner here.
    pub fn of(source: &impl Source, subject: &Subject, window: Window) -> Result<Self, WhyError> {
        let run = Window::new(source.meta().start, source.meta().end);
        let mut fleet = Fleet::new(source.nodes()?.collect::<Result<_, _>>()?, run);
        let mut pods: Vec<PodRow> = Vec::new();
        let mut is_cut = false;
        let mut known = subject::Known::default();
        for pod in source.pods()? {
            let pod = pod?;
            fleet.add(&pod);
            known.see(subject, &pod);
            if !subject.takes(&pod) || !touches(&pod, window) {
                continue;
            }
            if pods.len() < PODS_MAX {
                pods.push(pod);
            } else {
                is_cut = true;
            }
        }
        fleet.settle();
        if let Some(instead) = known.instead_of_nothing() {
            let why = Self::of(source, &instead, window)?;
            return Ok(Self {
                subject: format!("{subject}, which is not in this run; its owner {}", why.subject),
                ..why
            });
        }
        subject::check(subject, &known, &fleet, source.meta())?;
        let messages = Messages::about(source, subject, &pods, window)?;
        let of_pods = !matches!(subject, Subject::Node(_) | Subject::Group(_));
        let tells_pods = matches!(subject, Subject::Object(_)) && pods.len() <= STORIES_MAX;
        let stories =
            if tells_pods { pods.iter().map(|pod| stories::pod(pod, &messages, &fleet)).collect() } else { Vec::new() };
        Ok(Self {
            subject: subject.to_string(),
            is_recorded: source.meta().engine == Engine::Cluster && source.meta().kubernetes == "recorded",
            window,
            waits: if of_pods { waits::of(&pods, &messages, &fleet, source.meta(), window) } else { Vec::new() },
            pods: stories,
            nodes: stories::nodes(subject, &fleet, &pods, &messages, window),
            groups: stories::groups(subject, &fleet, source.meta(), &messages, window),
            pods_total: pods.len(),
            is_cut: is_cut || messages.is_cut,
        })
    }
}

/// Was the pod there at any time of the window?
fn touches(pod: &PodRow, window: Window) -> bool {
    window.clip(pod.created, crate::tally::end_of(pod)).is_some()
}

fn rfc3339<S: serde::Serializer>(time: &SimTime, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&time.to_rfc3339_micros())
}

fn seconds<S: serde::Serializer>(time: &SimDuration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(time.as_secs_f64())
}
