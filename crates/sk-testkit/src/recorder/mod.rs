//! Plays a scenario on the real control plane and keeps the result as a fixture.
//!
//! A recording is made from outside, by watches, so the embedded engine can be recorded in the same way. Anything that
//! would leave a gap (a watch that ends, too many events, a condition that never holds) is an error: a fixture is
//! either complete or not written.

mod api;
mod discovery;
mod layout;
mod live;
mod openapi;
mod oracle;
mod play;
mod sweep;

use std::fs;
use std::io;
use std::path::PathBuf;

use serde::Serialize;
use serde_json::Value;
use sk_core::Gvk;

pub use api::{ApiArena, write_api};
pub use discovery::{record_discovery, write_discovery};
pub use openapi::{record_openapi, write_openapi};
pub use oracle::{ORACLES, record_oracle};

use crate::canonical::canonicalise;
use crate::control_plane::{BinariesError, ControlError, ControlPlane, StartError};
use crate::fixture::{Fixture, OracleFixture, path_of};
use crate::scenario::{Scenario, ScenarioError};

/// KWOK's stages by which pods end as their annotations say.
const ENDINGS: &str = include_str!("../../stages/endings.yaml");

/// Why a recording failed.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The scenario cannot be read.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// The control plane did not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// Something before the first step failed.
    #[error("prepare the cluster: {0}")]
    Prepare(#[from] ControlError),
    /// A step failed, or what it waits for did not come.
    #[error("step {number} of {scenario}: {source}")]
    Step {
        /// The scenario.
        scenario: String,
        /// Which step, counted from 1.
        number: usize,
        /// Why.
        source: Box<RecordError>,
    },
    /// A request of a step failed.
    #[error(transparent)]
    Request(Box<ControlError>),
    /// A condition did not come to hold.
    #[error("waited {limit_secs} s in vain until {condition}")]
    InVain {
        /// The condition.
        condition: String,
        /// How long it was waited for.
        limit_secs: u64,
    },
    /// A step took too long although no condition was in the way.
    #[error("no answer from the API server for {0} s: is a component gone?")]
    NoAnswer(u64),
    /// A request of a family was not answered.
    #[error("the request `{call}` of api/{family}: {source}")]
    Call {
        /// The family.
        family: String,
        /// The request.
        call: String,
        /// Why.
        source: Box<RecordError>,
    },
    /// The API server took what it was to refuse.
    #[error("the API server took what the scenario says it refuses")]
    NotRefused,
    /// A watch ended, so the recording would have a gap.
    #[error("the watch of {kind} ended: {reason}")]
    Watch {
        /// What was watched.
        kind: Gvk,
        /// The server's error.
        reason: String,
    },
    /// More happened than a scenario should make happen.
    #[error("more than {0} events: make the scenario smaller")]
    TooMuch(usize),
    /// The oracle cannot be asked.
    #[error("ask the oracle for {oracle}: {reason}")]
    Oracle {
        /// Which one.
        oracle: String,
        /// What went wrong.
        reason: String,
    },
    /// The API server cannot be asked what it serves.
    #[error("ask what is served: {0}")]
    Discovery(String),
    /// There is no oracle.
    #[error(transparent)]
    Binaries(#[from] BinariesError),
    /// The fixture cannot be written.
    #[error("write {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

/// Plays scenarios one after the other. Those that start the control plane in the same way share one, which is emptied
/// in between: starting it takes longer than most scenarios.
#[derive(Default)]
pub struct Recorder {
    cluster: Option<ControlPlane>,
}

/// Namespaces whose ConfigMaps the control plane writes for itself.
const SERVERS_OWN: [&str; 3] = ["kube-node-lease/ConfigMap/", "kube-public/ConfigMap/", "kube-system/ConfigMap/"];

/// Is it a ConfigMap of the control plane's own? They hold its certificates and the day on which it began.
fn is_servers_own(name: &str) -> bool {
    name.ends_with("/ConfigMap/kube-root-ca.crt") || SERVERS_OWN.iter().any(|own| name.starts_with(own))
}

impl Recorder {
    /// Plays a scenario and keeps what happened.
    pub async fn record(&mut self, scenario: &Scenario) -> Result<Fixture, RecordError> {
        let mut options = scenario.control_plane.clone();
        if scenario.endings {
            options.stages = ENDINGS.to_owned();
        }
        let cluster = match self.cluster.take() {
            Some(cluster) if *cluster.options() == options => {
                sweep::sweep(&cluster).await?;
                cluster
            }
            _ => ControlPlane::start(options).await?,
        };
        cluster.create_nodes(scenario.node_objects()).await?;
        let played = play::play(&cluster, scenario).await?;
        let fixture = Fixture {
            scenario: scenario.source.clone(),
            kubernetes: cluster.version().await?,
            recorded: today(),
            refusals: played.refusals,
            steps: played.steps,
            objects: canonicalise(&played.observations)
                .into_iter()
                .filter(|history| !is_servers_own(&history.name))
                .collect(),
        };
        // One that failed is not used again: nobody knows what it is left in.
        self.cluster = Some(cluster);
        Ok(fixture)
    }
}

/// Writes a recording: a line per field of each state.
pub fn write(fixture: &Fixture) -> Result<PathBuf, RecordError> {
    // Fixture, objects, object, changes, change: the five levels down to a state's own fields.
    write_lines(fixture, 5, path_of(fixture.scenario["name"].as_str().unwrap_or("unnamed")))
}

/// Writes an oracle's answers: a line each.
pub fn write_oracle(fixture: &OracleFixture<Value>) -> Result<PathBuf, RecordError> {
    write_lines(fixture, 2, path_of(&format!("oracle-{}", fixture.oracle)))
}

/// Writes aside and renames, so that there is never half of a fixture.
pub(crate) fn write_lines(fixture: &impl Serialize, depth: usize, path: PathBuf) -> Result<PathBuf, RecordError> {
    let aside = path.with_extension("json.new");
    let written = serde_json::to_value(fixture)
        .map_err(io::Error::from)
        .and_then(|value| fs::write(&aside, layout::lines(&value, depth)))
        .and_then(|()| fs::rename(&aside, &path));
    match written {
        Ok(()) => Ok(path),
        Err(source) => Err(RecordError::Write { path, source }),
    }
}

/// The day, in UTC.
fn today() -> String {
    jiff::Timestamp::now().strftime("%F").to_string()
}
