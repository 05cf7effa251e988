//! The scenario file: which cluster a trace is replayed on, how, and what must hold afterwards.
//!
//! Start with [`Scenario::parse`]: YAML is parsed into a tree with positions (`yaml`), the tree is decoded into typed
//! data (`decode`), and rules over several fields are checked (`check`). Every error has file, line and column, or the
//! `--set` that it came from, and says what to do.
//!
//! | module | what it owns |
//! |---|---|
//! | [`trace`], [`cluster`], [`group`], [`autoscaler`], [`scheduler`] | the sections: the trace and the cluster |
//! | [`timing`], [`timeline`], [`assertion`] | the sections: latencies, faults and changes, assertions |
//! | [`assign`] | `--set`: changes from the command line |
//! | [`family`] | variants and `--vary`: several scenarios of one file |
//! | `changes` | applies the timeline's `set` to a scenario |
//! | [`path`] | how a field is named in messages and by `--set` |
//! | [`error`] | errors with positions |

pub mod assertion;
pub mod assign;
pub mod autoscaler;
mod changes;
mod check;
pub mod cluster;
mod decode;
pub mod error;
pub mod family;
pub mod group;
mod manifest;
pub mod path;
pub mod scheduler;
mod schema;
pub(crate) mod spelling;
mod suggest;
mod text_or;
pub mod timeline;
pub mod timing;
pub mod trace;
pub(crate) mod yaml;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sk_core::SmolStr;

pub use assertion::{Assertion, Holds};
pub use assign::Assignment;
pub use autoscaler::{Autoscaler, Expander, Expanders};
pub use cluster::{Cluster, Nodes, Reserved};
pub use error::{Fault, Place, ScenarioError};
pub use family::{Family, Member, Variation};
pub use group::{Group, Ready};
pub use path::Path;
pub use scheduler::Scheduler;
pub use schema::scenario_schema;
pub use timeline::{Happening, Variant};
pub use timing::{Latencies, Limit, Profile, Timing};
pub use trace::{Begin, Placement, Trace};

use yaml::{Document, MAX_FILE_BYTES};

/// The default seed.
const DEFAULT_SEED: u64 = 1;

/// Which cluster a trace is replayed on, how, and what must hold afterwards.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", expecting = "a scenario: a mapping that begins with apiVersion")]
pub struct Scenario {
    /// The version of this format.
    pub api_version: ApiVersion,
    /// What this file is.
    pub kind: Kind,
    /// What the run is called. Default: the trace's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::name")]
    pub name: Option<SmolStr>,
    /// Which trace, and which part of it. Default: all of the trace that the command line names.
    #[serde(default, skip_serializing_if = "Trace::is_whole")]
    pub trace: Trace,
    /// The state in which the run begins.
    #[serde(default)]
    pub begin: Begin,
    /// The cluster to replay on.
    #[serde(default)]
    pub cluster: Cluster,
    /// How the cluster grows and shrinks: cluster-autoscaler's own flags.
    #[serde(default)]
    pub autoscaler: Autoscaler,
    /// How pods are placed: a `KubeSchedulerConfiguration`, in a file or in place. Default: kube-scheduler's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "scheduler::schema")]
    pub scheduler: Option<Scheduler>,
    /// How fast the control plane and the nodes are.
    #[serde(default)]
    #[schemars(with = "timing::Written")]
    pub timing: Timing,
    /// Faults and changes during the run, on the trace's clock.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub timeline: Vec<Happening>,
    /// This scenario with some fields changed, by name; the first is what the others are compared with.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "timeline::variants")]
    #[schemars(with = "BTreeMap<String, timeline::Changes>")]
    pub variants: Vec<Variant>,
    /// The seed of all randomness. Default: 1.
    #[serde(default = "default_seed")]
    pub seed: u64,
    /// How often the run is repeated, each time with another seed. Default: 1.
    #[serde(default = "default_repetitions")]
    pub repetitions: u32,
    /// Gaps that may be judged all the same: what of the trace is not simulated (`apps/StatefulSet`, `Rollout`,
    /// `data/StatefulSet/kafka`, `refused`, `other-scheduler`, `no-controller`), and warnings that `--strict` lets pass
    /// (`volumes`). The verdict names them. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accept: Vec<String>,
    /// What must hold afterwards: CEL expressions over the run's figures. Default: nothing.
    #[serde(rename = "assert", default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "assertion::schema")]
    pub assertions: Vec<Assertion>,
    #[serde(skip)]
    source: Source,
}

fn default_seed() -> u64 {
    DEFAULT_SEED
}

fn default_repetitions() -> u32 {
    1
}

/// The version of the scenario file's format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ApiVersion {
    /// `simkube.io/v1`.
    #[serde(rename = "simkube.io/v1")]
    V1,
}

/// The kind of a scenario file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Kind {
    /// A scenario.
    Scenario,
}

/// The text a scenario was read from, if any.
#[derive(Clone, Default)]
struct Source(Option<Arc<Document>>);

impl fmt::Debug for Source {
    /// Without the text, which repeats the other fields.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source").finish_non_exhaustive()
    }
}

impl PartialEq for Source {
    /// Scenarios with the same content are equal; positions do not count.
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

impl Scenario {
    /// Reads a scenario. Errors show `file` as its name.
    pub fn parse(file: &str, text: &str) -> Result<Self, ScenarioError> {
        Self::from_document(Document::parse(file, text)?)
    }

    /// Reads a scenario and changes some of its fields, in order, before anything is checked.
    pub fn parse_with(file: &str, text: &str, sets: &[Assignment]) -> Result<Self, ScenarioError> {
        let mut document = Document::parse(file, text)?;
        assign::apply(&mut document, sets)?;
        Self::from_document(document)
    }

    fn from_document(mut document: Document) -> Result<Self, ScenarioError> {
        manifest::refuse(&document)?;
        autoscaler::refuse_unmodelled(&document)?;
        let ignored = autoscaler::take_ignored(&mut document);
        let mut scenario = Self::deserialize(&document.root).map_err(|error| {
            let place = document.place(error.mark.unwrap_or(document.root.mark));
            ScenarioError::Shape(Fault { place, path: error.path(), problem: error.problem })
        })?;
        scenario.autoscaler.ignored = ignored;
        check::check(&scenario, &document)?;
        scenario.cluster.groups.values_mut().for_each(Group::resolve);
        changes::try_each(&document)?;
        let bytes = scenario.to_yaml().len();
        if bytes > MAX_FILE_BYTES {
            return Err(ScenarioError::TooLargeWritten { file: document.file.to_string(), bytes });
        }
        scenario.source = Source(Some(Arc::new(document)));
        Ok(scenario)
    }

    /// As YAML with all defaults written out: it reads back as the same scenario, in this version and in later ones whose
    /// defaults differ. The same scenario gives the same bytes.
    pub fn to_yaml(&self) -> String {
        let options = serde_saphyr::ser_options! { prefer_block_scalars: false };
        serde_saphyr::to_string_with_options(self, options)
            .expect("a scenario is maps, lists and scalars, all of which YAML can say, and a String takes any length")
    }

    /// The position of a field, or of the nearest enclosing one, in the text that this was read from. `None` for a
    /// scenario that was not read from text.
    pub fn place(&self, path: &Path) -> Option<Place> {
        self.source.0.as_ref().map(|document| document.place_of(path))
    }
}
