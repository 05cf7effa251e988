//! Scenarios for the scheduler alone: a cluster, then one step after the other, each until the scheduler is idle.
//!
//! ```yaml
//! about: NodeAffinity, every operator.
//! nodes: [{name: a, labels: {disk: ssd}}, {name: b}]        # for all scenarios that have no nodes of their own
//! scenarios:
//!   - name: operator-${op}
//!     each: [{op: Exists}, {op: DoesNotExist}]              # written once, played for each row
//!     steps:
//!       - pod: {name: p, affinity: {...}}                   # a pod to schedule
//!       - bind: {name: q, on: a}                            # a pod that is on its node already
//!       - change: {of: v1.Node b, merge: {metadata: {labels: {disk: ssd}}}}
//!       - delete: v1.Pod default/q
//! ```
//!
//! A scenario holds data only, and nothing that cannot be given to both the real scheduler and the library.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Value, json};
use sk_core::SimDuration;

use super::{shorthand, table};
use crate::scenario::{ScenarioError, Target};

/// Scenarios about one thing, from one file.
#[derive(Clone, Debug, PartialEq)]
pub struct Family {
    /// Its name, which is also the name of its files.
    pub name: String,
    /// What it shows, for people.
    pub about: String,
    /// The scenarios, in order.
    pub scenarios: Vec<SchedulingScenario>,
    /// The file as plain JSON; a fixture keeps it as the question that was answered.
    pub source: Value,
}

/// One scenario, with all its objects written out.
#[derive(Clone, Debug, PartialEq)]
pub struct SchedulingScenario {
    /// Its name, unique within the family.
    pub name: String,
    /// A KubeSchedulerConfiguration, as a user would write it; an empty object is Kubernetes' default.
    pub scheduler: Value,
    /// What is there before the scheduler starts: namespaces, priority classes, services, volumes, ….
    pub objects: Vec<Value>,
    /// Nodes, in the order in which the scheduler sees them.
    pub nodes: Vec<Value>,
    /// What is done, in order.
    pub steps: Vec<Step>,
}

/// One thing that is done. The next is done when the scheduler has nothing left to do about it.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Creates a pod for a scheduler to place.
    Pod(Value),
    /// Creates a pod that is on its node already.
    Bind(Value),
    /// Adds a node.
    Node(Value),
    /// Creates any other object.
    Create(Value),
    /// Changes an object with a JSON merge patch.
    Change(Change),
    /// Deletes an object at once.
    Delete(Target),
    /// The kubelets end all pods that are being deleted.
    Finish,
    /// So much time passes.
    Wait(SimDuration),
}

/// A JSON merge patch to one object.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// The object.
    pub of: Target,
    /// The patch.
    pub merge: Value,
    /// The patch goes to the object's `status`, which the API server keeps apart.
    #[serde(default)]
    pub status: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFamily {
    about: String,
    #[serde(default)]
    scheduler: Option<Value>,
    #[serde(default)]
    objects: Vec<Value>,
    #[serde(default)]
    nodes: Vec<Value>,
    scenarios: Vec<Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawScenario {
    name: String,
    scheduler: Option<Value>,
    /// Besides those of the family.
    #[serde(default)]
    objects: Vec<Value>,
    /// Instead of those of the family.
    nodes: Option<Vec<Value>>,
    steps: Vec<RawStep>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
enum RawStep {
    Pod(Value),
    Pods(Vec<Value>),
    Bind(Value),
    Node(Value),
    Create(Value),
    Change(Change),
    Delete(Target),
    Finish,
    #[serde(deserialize_with = "crate::scenario::duration")]
    Wait(SimDuration),
}

impl Family {
    /// Reads one from YAML text.
    pub fn from_yaml(name: &str, text: &str) -> Result<Self, ScenarioError> {
        // A node may be called `n` and a zone `y`: only `true` and `false` are truth values.
        let options = serde_saphyr::options! { strict_booleans: true };
        let source =
            serde_saphyr::from_str_with_options(text, options).map_err(|error| refuse(name, error.to_string()))?;
        Self::from_value(name, source)
    }

    /// Reads one from the JSON that its file is.
    pub fn from_value(name: &str, source: Value) -> Result<Self, ScenarioError> {
        let raw: RawFamily = serde_json::from_value(source.clone()).map_err(|error| refuse(name, error.to_string()))?;
        let mut scenarios = Vec::new();
        for scenario in &raw.scenarios {
            for row in table::expand(scenario.clone()).map_err(|reason| refuse(name, reason))? {
                scenarios.push(raw.scenario(row).map_err(|reason| refuse(name, reason))?);
            }
        }
        let mut names: Vec<_> = scenarios.iter().map(|scenario| &scenario.name).collect();
        names.sort();
        if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(refuse(
                name,
                format!("two scenarios are called {}: put a ${{column}} into the name", twice[0]),
            ));
        }
        Ok(Self { name: name.to_owned(), about: raw.about, scenarios, source })
    }

    /// All families of the testkit, by name.
    pub fn all() -> Result<Vec<Self>, ScenarioError> {
        let folder = folder();
        let unreadable = |source| ScenarioError::Read { path: folder.clone(), source };
        let entries: Result<Vec<_>, _> = std::fs::read_dir(&folder).map_err(unreadable)?.collect();
        let mut paths: Vec<_> = entries.map_err(unreadable)?.iter().map(std::fs::DirEntry::path).collect();
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
        paths.sort();
        paths.iter().map(|path| Self::read(path)).collect()
    }

    fn read(path: &Path) -> Result<Self, ScenarioError> {
        let text =
            std::fs::read_to_string(path).map_err(|source| ScenarioError::Read { path: path.to_owned(), source })?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        Self::from_yaml(&name, &text)
    }
}

impl RawFamily {
    fn scenario(&self, row: Value) -> Result<SchedulingScenario, String> {
        let name = row["name"].as_str().unwrap_or("a scenario without a name").to_owned();
        let within = |reason: String| format!("{name}: {reason}");
        let raw: RawScenario = serde_json::from_value(row).map_err(|error| within(error.to_string()))?;
        let nodes = raw.nodes.as_ref().unwrap_or(&self.nodes).iter().map(shorthand::nodes);
        let nodes: Vec<Vec<Value>> = nodes.collect::<Result<_, _>>().map_err(within)?;
        let steps: Vec<Vec<Step>> =
            raw.steps.into_iter().map(RawStep::steps).collect::<Result<_, _>>().map_err(within)?;
        Ok(SchedulingScenario {
            name: raw.name,
            scheduler: raw.scheduler.or_else(|| self.scheduler.clone()).unwrap_or_else(|| json!({})),
            objects: self.objects.iter().chain(&raw.objects).cloned().collect(),
            nodes: nodes.concat(),
            steps: steps.concat(),
        })
    }
}

impl RawStep {
    fn steps(self) -> Result<Vec<Step>, String> {
        let one = |step: Step| Ok(vec![step]);
        match self {
            Self::Pod(entry) => Ok(shorthand::pods(&entry)?.into_iter().map(Step::Pod).collect()),
            Self::Pods(entries) => {
                let pods: Vec<Vec<Value>> = entries.iter().map(shorthand::pods).collect::<Result<_, _>>()?;
                Ok(pods.concat().into_iter().map(Step::Pod).collect())
            }
            Self::Bind(entry) => Ok(shorthand::pods(&entry)?.into_iter().map(Step::Bind).collect()),
            Self::Node(entry) => Ok(shorthand::nodes(&entry)?.into_iter().map(Step::Node).collect()),
            Self::Create(object) => one(Step::Create(object)),
            Self::Change(change) => one(Step::Change(change)),
            Self::Delete(target) => one(Step::Delete(target)),
            Self::Finish => one(Step::Finish),
            Self::Wait(span) => one(Step::Wait(span)),
        }
    }
}

fn refuse(name: &str, reason: String) -> ScenarioError {
    ScenarioError::Parse { name: name.to_owned(), reason }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios/scheduler")
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAMILY: &str = r#"
about: An example.
nodes: [{name: n, count: 2, zone: y}]
objects: [{apiVersion: v1, kind: Namespace, metadata: {name: x}}]
scenarios:
  - name: cpu-${cpu}
    each: [{cpu: 1}, {cpu: 2}]
    steps:
      - pod: {name: p, count: 2, cpu: "${cpu}"}
      - change: {of: v1.Node n-1, merge: {spec: {unschedulable: true}}}
      - delete: v1.Pod default/p-1
      - finish
      - wait: 2s
  - name: alone
    nodes: [{name: only}]
    objects: [{apiVersion: v1, kind: Service, metadata: {name: s}}]
    steps: [{bind: {name: q, on: only}}, {node: {name: late}}]
"#;

    #[test]
    fn a_family_reads_as_it_is_written() {
        let family = Family::from_yaml("example", FAMILY).unwrap();
        let names: Vec<_> = family.scenarios.iter().map(|scenario| scenario.name.as_str()).collect();
        assert_eq!(names, ["cpu-1", "cpu-2", "alone"]);
        assert_eq!(family.scenarios[1].steps.len(), 6);
        let Step::Pod(pod) = &family.scenarios[1].steps[1] else { panic!("the second pod") };
        assert_eq!(pod["spec"]["containers"][0]["resources"]["requests"]["cpu"], "2");
        assert_eq!(pod["metadata"]["name"], "p-2");
        assert_eq!(family.scenarios[0].nodes[0]["metadata"]["labels"][shorthand::ZONE], "y", "no truth value");
        assert_eq!((family.scenarios[2].nodes.len(), family.scenarios[2].objects.len()), (1, 2));
        assert_eq!(Family::from_value("example", family.source.clone()).unwrap(), family);
    }

    #[test]
    fn mistakes_are_refused_with_the_scenario_they_are_in() {
        for (right, wrong, advice) in [
            ("delete: v1.Pod default/p-1", "delete: p-1", "apps/v1.Deployment default/nginx"),
            ("name: cpu-${cpu}", "name: cpu", "two scenarios are called cpu"),
            ("nodes: [{name: only}]", "nodse: [{name: only}]", "nodse"),
            ("- finish", "- finsh", "finsh"),
        ] {
            assert!(FAMILY.contains(right), "{right}");
            let error = Family::from_yaml("example", &FAMILY.replacen(right, wrong, 1)).unwrap_err().to_string();
            assert!(error.contains(advice) && error.contains("example"), "{wrong}: {error}");
        }
    }
}
