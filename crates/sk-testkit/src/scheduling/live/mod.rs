//! The real kube-scheduler on an API server of its own, without controllers and kubelets.
//!
//! One [`Arena`] plays many scenarios, each on an emptied cluster. It restarts the scheduler unless the next scenario
//! has the same configuration and objects and the next search starts at the first node again: that position outlives
//! everything else. With `parallelism: 1`, without opportunistic batching, with nodes that are created after the
//! scheduler has started, and with events that reach it one at a time (`gate`), the scheduler is deterministic. A step
//! ends when the log shows that the scheduler has handled the change and has nothing left to do (`rest`).

mod api;
mod gate;
mod log;
mod play;
mod rest;
mod tracker;

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};

use self::api::Api;
use self::gate::Gate;
use self::log::Follower;
use super::recorded::Answers;
use super::scenario::{Change, Family, SchedulingScenario, Step};
use super::{Recorded, recorded};
use crate::control_plane::{ControlError, ControlPlane, StartError};
use crate::options::{Component, Options};

/// Why a scenario could not be played.
#[derive(Debug, thiserror::Error)]
pub enum PlayError {
    /// A request, or a component, failed.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// The control plane did not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The scheduler's log cannot be read.
    #[error("read the scheduler's log: {0}")]
    Log(#[from] std::io::Error),
    /// Something reached the scheduler while it was deciding, every time.
    #[error("something came between in each of {plays} plays, the last time {during}")]
    Disturbed {
        /// How often it was played.
        plays: usize,
        /// What happened in the middle.
        during: String,
    },
    /// The scheduler did not come to rest.
    #[error("waited {} s in vain until {what}", waited.as_secs())]
    Restless {
        /// What was waited for.
        what: String,
        /// How long.
        waited: Duration,
    },
    /// What a pod's status says is not what the log said.
    #[error("the condition of {pod} says `{condition}`, the log `{log}`")]
    Disagree {
        /// The pod.
        pod: String,
        /// The condition's message.
        condition: String,
        /// The log's words.
        log: String,
    },
    /// A step of a scenario failed.
    #[error("step {number} of {scenario}: {source}")]
    Step {
        /// The scenario.
        scenario: String,
        /// Which step, counted from 1; 0 is what comes before the first.
        number: usize,
        /// Why.
        source: Box<PlayError>,
    },
}

/// How often a scenario is played before it is given up because something reached the scheduler in the middle of a
/// decision. The gate lets nothing through then; what is left is a scheduler that says it is done microseconds before
/// it is.
const PLAYS: usize = 5;

/// How the scheduler runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flags {
    /// One node at a time and one pod at a time, so that it decides alike twice.
    Deterministic,
    /// As it comes: 16 nodes at a time, and pods alike may be decided together. Nodes of equal score are drawn by lot.
    Default,
}

/// A real API server, and a scheduler that comes and goes.
pub struct Arena {
    flags: Flags,
    gate: Gate,
    plane: ControlPlane,
    api: Api,
    /// Objects to delete before the next scenario, in the order of their making.
    created: Vec<String>,
    /// Namespaces in which there may be pods.
    namespaces: BTreeSet<String>,
    /// A scheduler that can serve another scenario.
    running: Option<Running>,
    /// How often the fence was moved, and the fence itself.
    fences: u64,
    fence: Value,
}

/// A scheduler as it was started.
struct Running {
    configuration: Value,
    objects: Vec<Value>,
    log: Follower,
}

impl Arena {
    /// Starts the API server; the scheduler comes with the first scenario.
    pub async fn start(flags: Flags) -> Result<Self, PlayError> {
        let gate = Gate::open().await?;
        let plane = ControlPlane::start(options(flags, &gate.url())).await?;
        gate.lead_to(plane.client());
        let api = Api::new(plane.client());
        for object in fence() {
            api.create(&object).await?;
        }
        let fence = api.get(&play::pod_path(tracker::FENCE)).await?;
        let (created, namespaces) = (Vec::new(), BTreeSet::new());
        Ok(Self { flags, gate, plane, api, created, namespaces, running: None, fences: 0, fence })
    }

    /// Moves the fence before the scheduler's eyes; its log tells that after all events of pods that were let through.
    fn move_fence(&mut self) {
        self.fences += 1;
        self.gate.fence(&self.fence, self.fences);
    }

    /// Changes the fence at the API server, whose watch tells that after all that was done to pods before.
    async fn mark(&mut self) -> Result<(), PlayError> {
        self.fences += 1;
        let mark = json!({"metadata": {"annotations": {"moved": self.fences.to_string()}}});
        Ok(self.api.merge(&play::pod_path(tracker::FENCE), &mark).await?)
    }

    /// What the API server says its version is.
    pub async fn version(&self) -> Result<String, PlayError> {
        Ok(self.plane.version().await?)
    }

    /// Plays every scenario of a family.
    pub async fn record(&mut self, family: &Family) -> Result<Recorded, PlayError> {
        let mut answers = std::collections::BTreeMap::new();
        for scenario in &family.scenarios {
            let mut played = self.play(scenario).await?;
            played.iter_mut().flatten().for_each(|attempt| attempt.at = None);
            answers.insert(scenario.name.clone(), played);
        }
        let recorded = jiff::Timestamp::now().strftime("%F").to_string();
        Ok(Recorded { kubernetes: self.version().await?, recorded, family: family.source.clone(), answers })
    }

    /// Plays one scenario on an empty cluster and returns the attempts of each step. Nothing has come between any of
    /// them.
    pub async fn play(&mut self, scenario: &SchedulingScenario) -> Result<Answers, PlayError> {
        let mut answers = Vec::new();
        self.play_into(scenario, &mut answers).await?;
        Ok(answers)
    }

    /// The same; if a step fails, what was answered until then is there to be looked at.
    pub async fn play_into(&mut self, scenario: &SchedulingScenario, answers: &mut Answers) -> Result<(), PlayError> {
        let mut disturbance = String::new();
        for _ in 0..PLAYS {
            answers.clear();
            match self.play_once(scenario, answers).await {
                Err(PlayError::Step { number, source, .. }) if matches!(*source, PlayError::Disturbed { .. }) => {
                    disturbance = format!("in step {number}: {source}");
                }
                played => return played,
            }
        }
        Err(PlayError::Disturbed { plays: PLAYS, during: disturbance })
    }

    async fn play_once(&mut self, scenario: &SchedulingScenario, answers: &mut Answers) -> Result<(), PlayError> {
        let before = |source| PlayError::Step { scenario: scenario.name.clone(), number: 0, source: Box::new(source) };
        let serves =
            |running: &Running| running.configuration == scenario.scheduler && running.objects == scenario.objects;
        let mut player = match self.running.take().filter(serves) {
            Some(running) => {
                let mut player = play::Player::new(self, running.log);
                player.clear().await.map_err(before)?;
                player
            }
            None => {
                self.clear().await.map_err(before)?;
                let log = self.begin(scenario).await.map_err(before)?;
                play::Player::new(self, log)
            }
        };
        player.nodes(&scenario.nodes).await.map_err(before)?;
        for (index, step) in scenario.steps.iter().enumerate() {
            let failed = |source| PlayError::Step {
                scenario: scenario.name.clone(),
                number: index + 1,
                source: Box::new(source),
            };
            answers.push(player.step(step).await.map_err(failed)?);
        }
        // Objects that a step made are not among those that the next scenario expects.
        let creates = scenario.steps.iter().any(touches_objects);
        if let Some(log) = player.end().filter(|_| !creates) {
            let (configuration, objects) = (scenario.scheduler.clone(), scenario.objects.clone());
            self.running = Some(Running { configuration, objects, log });
        }
        Ok(())
    }

    /// Ends the scheduler and removes everything that the scenario before has left.
    async fn clear(&mut self) -> Result<(), PlayError> {
        match self.plane.kill(Component::Scheduler).await {
            Ok(()) | Err(ControlError::NotRunning(_)) => {}
            Err(error) => return Err(error.into()),
        }
        self.remove_pods().await?;
        self.api.delete(play::NODES).await?;
        for path in std::mem::take(&mut self.created).iter().rev() {
            self.api.delete(path).await?;
        }
        Ok(())
    }

    /// Removes all pods.
    async fn remove_pods(&mut self) -> Result<(), PlayError> {
        for namespace in std::mem::take(&mut self.namespaces) {
            self.api.delete(&format!("/api/v1/namespaces/{namespace}/pods")).await?;
        }
        Ok(())
    }

    /// Makes the objects and starts the scheduler, whose log is followed from there on.
    async fn begin(&mut self, scenario: &SchedulingScenario) -> Result<Follower, PlayError> {
        for object in &scenario.objects {
            self.make(object).await?;
        }
        self.plane.configure_scheduler(&configured(self.flags, &scenario.scheduler))?;
        let log = Follower::from_end(self.plane.log(Component::Scheduler));
        self.plane.restart(Component::Scheduler).await?;
        Ok(log)
    }

    /// Creates an object, and remembers to delete it. Pods and nodes go all at once.
    async fn make(&mut self, object: &Value) -> Result<String, PlayError> {
        let path = self.api.create(object).await?;
        match object["kind"].as_str() {
            Some("Pod") => {
                let namespace = object["metadata"]["namespace"].as_str().unwrap_or("default");
                self.namespaces.insert(namespace.to_owned());
            }
            Some("Node" | "Namespace") => {}
            _ => self.created.push(path.clone()),
        }
        Ok(path)
    }
}

/// A pod that the scheduler watches and nothing depends on: its node does not exist.
fn fence() -> [Value; 2] {
    let (namespace, name) = tracker::FENCE.split_once('/').unwrap_or_default();
    let containers = json!([{"name": "main", "image": "example/fence:1"}]);
    [
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}),
        json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace},
            "spec": {"nodeName": "fence", "containers": containers},
        }),
    ]
}

/// Does a step leave anything behind that is neither a pod nor a node?
fn touches_objects(step: &Step) -> bool {
    match step {
        Step::Create(_) => true,
        Step::Change(Change { of, .. }) | Step::Delete(of) => !["Pod", "Node"].contains(&of.0.gvk.kind.as_str()),
        Step::Pod(_) | Step::Bind(_) | Step::Node(_) | Step::Finish | Step::Wait(_) => false,
    }
}

/// Writes a recording: a line per scenario of the family, and per step of the answers.
pub fn write(name: &str, recording: &Recorded) -> Result<std::path::PathBuf, crate::recorder::RecordError> {
    crate::recorder::write_lines(recording, 3, recorded::path_of(name))
}

/// An API server that leaves nodes untainted and volumes deletable, since no controller is there to do the rest; and a
/// scheduler that tells what it does. `--vmodule` shows the scores without the client's own chatter of level 10. The
/// gate reads lists and watches, not lists that come as watches. Pods that wait are tried again because something has
/// happened, never because five minutes have passed: on a busy machine a long scenario takes longer than that.
fn options(flags: Flags, server: &str) -> Options {
    let options = match flags {
        Flags::Deterministic => Options::api_only().feature_gate("OpportunisticBatching", false),
        Flags::Default => Options::api_only(),
    };
    options
        .feature_gate("WatchListClient", false)
        .flag(Component::ApiServer, "--disable-admission-plugins=TaintNodesByCondition,StorageObjectInUseProtection")
        .flag(Component::Scheduler, &format!("--master={server}"))
        .flag(Component::Scheduler, "--pod-max-in-unschedulable-pods-duration=24h")
        .flag(Component::Scheduler, "--v=5")
        .flag(Component::Scheduler, "--vmodule=schedule_one=10")
}

/// A user's configuration, but as quick as the client can, and in a language that the gate reads.
fn configured(flags: Flags, configuration: &Value) -> Value {
    let mut configuration = configuration.clone();
    match flags {
        Flags::Deterministic => configuration["parallelism"] = json!(1),
        Flags::Default => {}
    }
    configuration["clientConnection"] = json!({"qps": 5000, "burst": 5000, "contentType": "application/json"});
    configuration
}
