//! A scenario: what is done to a cluster, when, and what to wait for. Read from `scenarios/*.yaml`.
//!
//! The recorder plays a scenario against the real control plane and keeps what happened; a test of the embedded engine
//! plays the same file and compares. So a scenario holds data only, and nothing that one of the two could not do.
//!
//! ```yaml
//! name: growth
//! about: A Deployment grows from one to three.
//! nodes: [{name: a, cpu: 4, memory: 16Gi}]
//! watch: [apps/v1.Deployment, v1.Pod]
//! steps:
//!   - create: {apiVersion: apps/v1, kind: Deployment, ...}
//!     until: [{field: {of: apps/v1.Deployment default/web, at: /status/readyReplicas, is: 1}}]
//!   - at: 5s
//!     patch: {of: apps/v1.Deployment default/web, merge: {spec: {replicas: 3}}}
//!     until: [{quiet: 2s}]
//! ```
//!
//! A uid is written `<uid of v1.ConfigMap default/owner>`: see [`with_uids`].
//!
//! Small scenarios about one thing share a file and are written shorter there: see [`family`].

mod family;
mod uids;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use sk_core::{Gvk, ObjectKey, ObjectRef, SimDuration};

pub use uids::with_uids;

use crate::objects::{self, Object};
use crate::options::Options;

/// One scenario.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Scenario {
    /// Its name, which is also the name of its files.
    pub name: String,
    /// What it shows, for people.
    pub about: String,
    /// How the control plane is started.
    #[serde(default)]
    pub control_plane: Options,
    /// Pods end as their annotations say, on both sides (`stages/endings.yaml`).
    #[serde(default)]
    pub endings: bool,
    /// KWOK nodes that are there and ready before the first step.
    #[serde(default)]
    pub nodes: Vec<NodeLine>,
    /// The kinds whose objects are observed.
    pub watch: Vec<Gvk>,
    /// What two recordings of it may differ in.
    #[serde(default)]
    pub incomparable: Vec<Incomparable>,
    /// What is done, in order.
    pub steps: Vec<Step>,
    /// The file as plain JSON; a fixture keeps it to know whether the scenario has changed since.
    #[serde(skip)]
    pub source: Value,
}

/// A node in one line.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeLine {
    /// Its name.
    pub name: String,
    /// CPUs, as a quantity.
    pub cpu: Text,
    /// Memory, as a quantity.
    pub memory: Text,
    /// How many pods it takes; 110 by default.
    #[serde(default = "pods_per_node")]
    pub pods: Text,
    /// Its labels.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// Its taints.
    #[serde(default)]
    pub taints: Vec<TaintLine>,
}

/// A taint of a node.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaintLine {
    /// Its key.
    pub key: String,
    /// Its value.
    #[serde(default)]
    pub value: String,
    /// `NoSchedule`, `PreferNoSchedule` or `NoExecute`.
    pub effect: String,
}

/// A text that YAML may have taken for a number, such as the quantity `4`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text(pub String);

/// A field that differs from run to run although nothing is wrong.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Incomparable {
    /// Of objects of this kind.
    pub of: Gvk,
    /// A JSON pointer; `*` stands for every element of a list.
    pub field: String,
    /// Why it differs.
    pub why: String,
}

/// One thing that is done, and what is waited for before the next.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "RawStep")]
pub struct Step {
    /// Not before this time since the first step; a step also waits for the one before it.
    pub at: SimDuration,
    /// What is done.
    pub action: Action,
    /// The API server refuses it; its message is recorded.
    pub refused: bool,
    /// What must be true before the next step.
    pub until: Vec<Condition>,
}

/// What a step does.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Creates objects, one after the other.
    Create(Vec<Value>),
    /// Server-side apply with field manager `scenario`.
    Apply(Value),
    /// Changes one object with a JSON merge patch.
    Patch(Patch),
    /// Deletes one object.
    Delete(Delete),
    /// Evicts one pod through the eviction API.
    Evict(Evict),
    /// Does nothing but wait.
    Wait,
}

/// A JSON merge patch to one object.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Patch {
    /// The object.
    pub of: Target,
    /// The patch.
    pub merge: Value,
    /// It goes to the status, which nodes report in.
    #[serde(default)]
    pub status: bool,
}

/// The deletion of one object.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Delete {
    /// The object.
    pub of: Target,
    /// The propagation policy; the server decides by default.
    #[serde(default)]
    pub propagation: Option<Propagation>,
    /// The grace period in seconds; by default that of its spec.
    #[serde(default)]
    pub grace: Option<u32>,
}

/// The eviction of one pod.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Evict {
    /// The pod.
    pub of: Target,
}

/// What becomes of the objects that a deleted one owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Propagation {
    /// They are deleted after it.
    Background,
    /// They are deleted before it.
    Foreground,
    /// They stay.
    Orphan,
}

/// Something that becomes true.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Condition {
    /// A field of one object has a value.
    Field(FieldCondition),
    /// A field is there in each object that the step created; each is waited for before the next is created.
    Each(String),
    /// The object does not exist.
    Gone(Target),
    /// So many objects of a watched kind exist.
    Count(CountCondition),
    /// No observed object has changed for so long.
    #[serde(deserialize_with = "duration")]
    Quiet(SimDuration),
}

impl Condition {
    /// The kind that it looks at, if it looks at one.
    fn kind(&self) -> Option<&Gvk> {
        match self {
            Self::Field(field) => Some(&field.of.0.gvk),
            Self::Gone(target) => Some(&target.0.gvk),
            Self::Count(count) => Some(&count.of),
            Self::Each(_) | Self::Quiet(_) => None,
        }
    }
}

/// A field of one object has a value.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FieldCondition {
    /// The object.
    pub of: Target,
    /// A JSON pointer to the field.
    pub at: String,
    /// Its value; without one the field only has to be there.
    #[serde(default)]
    pub is: Option<Value>,
}

/// So many objects of a kind exist.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CountCondition {
    /// The kind.
    pub of: Gvk,
    /// How many.
    pub is: usize,
}

/// One object, written `apps/v1.Deployment default/nginx` or `v1.Node node-1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target(pub ObjectRef);

/// Why a scenario cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// The file cannot be read.
    #[error("read the scenario {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// The text is no scenario.
    #[error("{name} is no scenario: {reason}")]
    Parse {
        /// The file, or what else the text is called.
        name: String,
        /// Where and why.
        reason: String,
    },
}

impl Scenario {
    /// Reads one from YAML text; `name` is what error messages call it.
    pub fn from_yaml(name: &str, text: &str) -> Result<Self, ScenarioError> {
        let refuse = |reason: String| ScenarioError::Parse { name: name.to_owned(), reason };
        let mut scenario: Self = serde_saphyr::from_str(text).map_err(|error| refuse(error.to_string()))?;
        scenario.source = serde_saphyr::from_str(text).map_err(|error| refuse(error.to_string()))?;
        scenario.check_conditions().map_err(refuse)?;
        Ok(scenario)
    }

    /// Reads one that is plain JSON already.
    fn from_value(name: &str, source: Value) -> Result<Self, ScenarioError> {
        let refuse = |reason: String| ScenarioError::Parse { name: name.to_owned(), reason };
        let mut scenario: Self = serde_json::from_value(source.clone()).map_err(|error| refuse(error.to_string()))?;
        scenario.source = source;
        scenario.check_conditions().map_err(refuse)?;
        Ok(scenario)
    }

    /// A condition on an object that is not watched would hold at once, or never.
    fn check_conditions(&self) -> Result<(), String> {
        let kinds = self.steps.iter().flat_map(|step| &step.until).filter_map(Condition::kind);
        match kinds.into_iter().find(|kind| !self.watch.contains(kind)) {
            Some(kind) => Err(format!("a step waits for {kind}, which is not under `watch`: add it there")),
            None => Ok(()),
        }
    }

    /// Reads one from a file.
    pub fn read(path: &Path) -> Result<Self, ScenarioError> {
        let text =
            std::fs::read_to_string(path).map_err(|source| ScenarioError::Read { path: path.to_owned(), source })?;
        Self::from_yaml(&path.display().to_string(), &text)
    }

    /// The scenario of this name from the testkit's own folder.
    pub fn named(name: &str) -> Result<Self, ScenarioError> {
        let path = folder().join(name).with_extension("yaml");
        if path.exists() {
            return Self::read(&path);
        }
        let missing =
            || ScenarioError::Parse { name: name.to_owned(), reason: "there is none of this name".to_owned() };
        Self::all()?.into_iter().find(|scenario| scenario.name == name).ok_or_else(missing)
    }

    /// All scenarios of the testkit, those of families too, by name.
    pub fn all() -> Result<Vec<Self>, ScenarioError> {
        let alone: Result<Vec<_>, _> = files(&folder())?.iter().map(|path| Self::read(path)).collect();
        let mut all = alone?;
        for path in files(&folder().join("families"))? {
            all.extend(family::read(&path)?);
        }
        all.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(all)
    }

    /// Its nodes as objects.
    pub fn node_objects(&self) -> Vec<Object> {
        self.nodes.iter().map(NodeLine::object).collect()
    }
}

/// The scenario files of a folder, by name.
fn files(folder: &Path) -> Result<Vec<PathBuf>, ScenarioError> {
    let unreadable = |source| ScenarioError::Read { path: folder.to_owned(), source };
    let entries: Result<Vec<_>, _> = std::fs::read_dir(folder).map_err(unreadable)?.collect();
    let mut paths: Vec<_> = entries.map_err(unreadable)?.iter().map(std::fs::DirEntry::path).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    paths.sort();
    Ok(paths)
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios")
}

impl NodeLine {
    fn object(&self) -> Object {
        let bare = objects::node().name(&self.name).capacity(&self.cpu.0, &self.memory.0, &self.pods.0);
        let labelled = self.labels.iter().fold(bare, |node, (key, value)| node.label(key, value));
        self.taints.iter().fold(labelled, |node, taint| node.taint(&taint.key, &taint.value, &taint.effect))
    }
}

fn pods_per_node() -> Text {
    Text("110".to_owned())
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::String(text) => Ok(Self(text)),
            Value::Number(number) => Ok(Self(number.to_string())),
            other => Err(serde::de::Error::custom(format!("{other} is neither a text nor a number"))),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.0.gvk, self.0.key)
    }
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refuse = || format!("`{text}` is no object: write it like `apps/v1.Deployment default/nginx`");
        let (gvk, key) = text.split_once(' ').ok_or_else(refuse)?;
        let gvk: Gvk = gvk.parse().map_err(|_| refuse())?;
        let key: ObjectKey = key.trim().parse().map_err(|_| refuse())?;
        Ok(Self(ObjectRef::new(gvk, key)))
    }
}

impl<'de> Deserialize<'de> for Target {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// A step as it is written: at most one action beside `at` and `until`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawStep {
    #[serde(default, deserialize_with = "duration")]
    at: SimDuration,
    create: Option<Value>,
    pods: Option<Vec<String>>,
    apply: Option<Value>,
    patch: Option<Patch>,
    delete: Option<Delete>,
    evict: Option<Evict>,
    #[serde(default)]
    refused: bool,
    #[serde(default)]
    until: Vec<Condition>,
}

impl TryFrom<RawStep> for Step {
    type Error = String;

    fn try_from(raw: RawStep) -> Result<Self, Self::Error> {
        let pods = raw.pods.map(|lines| lines.iter().map(|line| pod_of_line(line)).collect()).transpose()?;
        let mut actions = [
            raw.create.map(|value| Action::Create(one_or_many(value))),
            pods.map(Action::Create),
            raw.apply.map(Action::Apply),
            raw.patch.map(Action::Patch),
            raw.delete.map(Action::Delete),
            raw.evict.map(Action::Evict),
        ]
        .into_iter()
        .flatten();
        let action = actions.next().unwrap_or(Action::Wait);
        if actions.next().is_some() {
            return Err("a step does one thing: one of create, pods, apply, patch, delete, evict, or none".to_owned());
        }
        Ok(Self { at: raw.at, action, refused: raw.refused, until: raw.until })
    }
}

fn one_or_many(value: Value) -> Vec<Value> {
    match value {
        Value::Array(objects) => objects,
        object => vec![object],
    }
}

/// A pod in one line: `name cpu memory`, or `name` alone for a pod without requests.
fn pod_of_line(line: &str) -> Result<Value, String> {
    match *line.split_whitespace().collect::<Vec<_>>() {
        [name, cpu, memory] => Ok(objects::pod().name(name).requests(cpu, memory).into()),
        [name] => Ok(objects::pod().name(name).into()),
        _ => Err(format!("`{line}` is no pod: write `name cpu memory`, or `name` for a pod without requests")),
    }
}

pub(crate) fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SimDuration, D::Error> {
    let text = String::deserialize(deserializer)?;
    let span: jiff::SignedDuration = text.parse().map_err(|_| {
        serde::de::Error::custom(format!("`{text}` is no length of time: write it like `500ms`, `2s` or `1m`"))
    })?;
    Ok(SimDuration::from_micros(i64::try_from(span.as_micros()).unwrap_or(i64::MAX)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const GROWTH: &str = r#"
name: growth
about: A Deployment grows.
nodes: [{name: a, cpu: 4, memory: 16Gi, labels: {zone: x}}]
watch: [apps/v1.Deployment, v1.Pod]
steps:
  - create: {apiVersion: v1, kind: ConfigMap}
    until: [{field: {of: v1.Pod default/c, at: /data/x, is: 1}}, {quiet: 500ms}]
  - pods: [one 250m 64Mi, two]
    until: [{each: /spec/nodeName}]
  - at: 1m
    delete: {of: apps/v1.Deployment default/web, propagation: Foreground}
    until: [{gone: apps/v1.Deployment default/web}, {count: {of: v1.Pod, is: 0}}]
"#;

    #[test]
    fn a_scenario_reads_as_it_is_written() {
        let scenario = Scenario::from_yaml("growth", GROWTH).unwrap();
        assert_eq!(scenario.node_objects()[0].as_value()["status"]["allocatable"]["cpu"], "4");
        let [first, second, third] = &scenario.steps[..] else { panic!("three steps") };
        assert_eq!(first.until[1], Condition::Quiet(SimDuration::from_millis(500)));
        let Action::Create(pods) = &second.action else { panic!("pods are created") };
        assert_eq!(pods[0]["spec"]["containers"][0]["resources"]["requests"]["cpu"], "250m");
        assert!(pods[1]["spec"]["containers"][0].get("resources").is_none());
        assert_eq!(third.at, SimDuration::from_mins(1));
        assert!(
            matches!(&third.until[0], Condition::Gone(target) if target.to_string() == "apps/v1.Deployment default/web")
        );
    }

    #[test]
    fn mistakes_are_refused_with_what_to_write() {
        let cases = [
            ("at: 1m", "at: soon", "write it like"),
            ("delete: {of: apps/v1.Deployment default/web,", "delete: {of: web,", "apps/v1.Deployment default/nginx"),
            ("pods: [one 250m 64Mi, two]", "pods: [one 250m]", "name cpu memory"),
            ("    until: [{each: /spec/nodeName}]", "    apply: {}", "one thing"),
            ("about:", "abuot:", "abuot"),
            (
                "watch: [apps/v1.Deployment, v1.Pod]",
                "watch: [v1.Pod]",
                "apps/v1.Deployment, which is not under `watch`",
            ),
        ];
        for (right, wrong, advice) in cases {
            assert!(GROWTH.contains(right), "{right}");
            let error = Scenario::from_yaml("growth", &GROWTH.replacen(right, wrong, 1)).unwrap_err().to_string();
            assert!(error.contains(advice) && error.contains("growth"), "{wrong}: {error}");
        }
    }

    #[test]
    fn one_object_or_a_list_of_them_can_be_created() {
        assert_eq!(one_or_many(json!({"a": 1})), [json!({"a": 1})]);
        assert_eq!(one_or_many(json!([1, 2])), [json!(1), json!(2)]);
    }
}
