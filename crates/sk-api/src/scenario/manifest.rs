//! Detects a Kubernetes object where a scenario is expected, and says how to use it instead.
//!
//! Otherwise the error would blame its `apiVersion`, as if another one made a Node a scenario.

use super::error::{Fault, ScenarioError, shown};
use super::path::Path;
use super::yaml::{Document, Value};

/// Groups of SimKube's own, whose kinds are told apart when the scenario is decoded.
const OWN_GROUP: &str = "simkube.io/";

/// Refuses a Kubernetes object.
pub(crate) fn refuse(document: &Document) -> Result<(), ScenarioError> {
    let node = |key: &str| document.root.get(key);
    let text = |key: &str| match node(key).map(|node| &node.value) {
        Some(Value::Text(text)) => Some(text.as_str()),
        _ => None,
    };
    let (Some(version), Some(kind), Some(at)) = (text("apiVersion"), text("kind"), node("kind")) else {
        return Ok(());
    };
    if version.starts_with(OWN_GROUP) || kind == "Scenario" {
        return Ok(());
    }
    let advice = match kind {
        "Node" => {
            "say what nodes there are under `cluster.groups`, such as {small: {min: 1, max: 10, cpu: 4, memory: 16Gi}}"
        }
        "KubeSchedulerConfiguration" => "name this file under `scheduler` in a scenario",
        _ => "a manifest is replayed as a trace: `skctl run FILE`, without -f",
    };
    let kind = shown(kind);
    let article = if kind.starts_with(['A', 'E', 'I', 'O', 'U']) { "an" } else { "a" };
    let problem = format!("this is {article} {kind}, not a scenario; {advice}");
    Err(ScenarioError::Shape(Fault { place: document.place(at.mark), path: Path::of(["kind"]), problem }))
}
