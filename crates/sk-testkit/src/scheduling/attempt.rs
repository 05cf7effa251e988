//! What the scheduler did in one step: every attempt to schedule a pod, in order, with result, message and scores.
//!
//! A missing attempt counts too: no event concerned the pod, so the scheduler did not retry it.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One attempt to schedule one pod.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// The pod: its name, or `namespace/name` outside of `default`.
    pub pod: String,
    /// What the scheduler had learnt of pods since the attempt before: `+p` came onto a node, `-p` left it, `~p` was
    /// changed. It decides whether a pod is tried once more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<String>,
    /// When it began, in microseconds of the day. Back-offs are lengths of time, so a live comparison needs it; a
    /// recording does not keep it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<i64>,
    /// How it ended.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// What each plugin gave each feasible node; absent if there was nothing to choose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scores: Option<Scores>,
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Outcome {
    /// The pod was bound.
    Bound {
        /// To this node.
        node: String,
        /// So many nodes were looked at.
        evaluated: u64,
        /// So many of them fit.
        feasible: u64,
    },
    /// No node fits. The message is that of the pod's condition.
    Unschedulable {
        /// The message of the condition `PodScheduled`.
        unschedulable: String,
        /// The node on which room is being made.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        nominated: Option<String>,
        /// The pods that are deleted to make room, sorted.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        victims: Vec<String>,
    },
    /// The attempt failed for another reason than room.
    Failed {
        /// The scheduler's error.
        error: String,
    },
}

/// The scores of one attempt, already multiplied by their weights.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scores {
    /// The feasible nodes, in the order in which the scheduler has them.
    pub nodes: Vec<String>,
    /// Each plugin's scores, one per node.
    pub plugins: Vec<(String, Vec<i64>)>,
    /// The sums, one per node.
    pub totals: Vec<i64>,
}

/// The keys of a table of scores that are no plugin.
const NODES: &str = "nodes";
const TOTALS: &str = "totals";

impl Serialize for Scores {
    /// A table by plugin; a plugin that gives every node the same takes one number.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut table = Map::new();
        table.insert(NODES.into(), self.nodes.clone().into());
        for (plugin, scores) in &self.plugins {
            let first = scores.first().copied().unwrap_or_default();
            let same = scores.iter().all(|score| *score == first);
            table.insert(plugin.clone(), if same { first.into() } else { scores.clone().into() });
        }
        table.insert(TOTALS.into(), self.totals.clone().into());
        table.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Scores {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let table = Map::deserialize(deserializer)?;
        let wrong = |what: &str| serde::de::Error::custom(format!("{what} of a table of scores cannot be read"));
        let list = |key: &str| table.get(key).cloned().ok_or_else(|| wrong(key));
        let nodes: Vec<String> = serde_json::from_value(list(NODES)?).map_err(|_| wrong(NODES))?;
        let totals = serde_json::from_value(list(TOTALS)?).map_err(|_| wrong(TOTALS))?;
        let mut plugins = Vec::new();
        for (plugin, scores) in table.iter().filter(|(key, _)| *key != NODES && *key != TOTALS) {
            let scores = match scores.as_i64() {
                Some(same) => vec![same; nodes.len()],
                None => serde_json::from_value(scores.clone()).map_err(|_| wrong(plugin))?,
            };
            plugins.push((plugin.clone(), scores));
        }
        Ok(Self { nodes, plugins, totals })
    }
}

/// The name of a pod in recordings: without the namespace if it is `default`.
pub fn pod_name(namespace: &str, name: &str) -> String {
    if namespace == "default" { name.to_owned() } else { format!("{namespace}/{name}") }
}

/// The name in recordings of the pod that this object is.
pub fn name_of(pod: &Value) -> String {
    let text = |field: &str| pod["metadata"][field].as_str().unwrap_or("default");
    pod_name(text("namespace"), text("name"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn attempts_read_back_as_they_were_written() {
        let scores = Scores {
            nodes: vec!["a".into(), "b".into()],
            plugins: vec![("ImageLocality".into(), vec![0, 0]), ("NodeResourcesFit".into(), vec![75, 50])],
            totals: vec![75, 50],
        };
        let bound = Outcome::Bound { node: "a".into(), evaluated: 3, feasible: 2 };
        let attempts = [
            Attempt { pod: "p".into(), events: vec!["-x/q".into()], at: None, outcome: bound, scores: Some(scores) },
            Attempt {
                pod: "x/q".into(),
                events: vec![],
                at: None,
                outcome: Outcome::Unschedulable {
                    unschedulable: "0/1 nodes are available: 1 Too many pods.".into(),
                    nominated: None,
                    victims: vec![],
                },
                scores: None,
            },
            Attempt {
                pod: "r".into(),
                events: vec![],
                at: None,
                outcome: Outcome::Failed { error: "lost".into() },
                scores: None,
            },
        ];
        let text = serde_json::to_string(&attempts).unwrap();
        assert!(text.contains(r#""ImageLocality":0,"NodeResourcesFit":[75,50]"#), "{text}");
        assert_eq!(serde_json::from_str::<Vec<Attempt>>(&text).unwrap(), attempts);
    }

    #[test]
    fn a_pod_of_another_namespace_is_called_by_it() {
        assert_eq!(name_of(&json!({"metadata": {"name": "p", "namespace": "default"}})), "p");
        assert_eq!(name_of(&json!({"metadata": {"name": "p", "namespace": "x"}})), "x/p");
    }
}
