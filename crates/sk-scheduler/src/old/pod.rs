//! What the scheduler looks at in a pod.
//!
//! Pods of one template are alike to it, so this is a *class* that many pods share, never a copy per pod.

use std::collections::BTreeMap;

use sk_core::{Resources, SmolStr, Toleration};

/// Everything in a pod that decides where it may run. Shared by all pods of a template.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodClass {
    /// What it asks for: the filters' view.
    pub requests: Resources,
    /// What it asks for where a container that names no CPU or memory counts as 100m and 200Mi: the spreading score's view.
    pub scoring_requests: Resources,
    /// Labels a node must have.
    pub node_selector: BTreeMap<SmolStr, SmolStr>,
    /// Required node affinity: a node must match one of these terms. `None`: no such rule; an empty list matches no node.
    pub required_affinity: Option<Vec<NodeSelectorTerm>>,
    /// Taints it puts up with.
    pub tolerations: Vec<Toleration>,
    /// Higher goes first.
    pub priority: i32,
    /// A pod that never preempts others (`preemptionPolicy: Never`).
    pub never_preempts: bool,
}

/// One term of required node affinity: all its requirements must hold. A term without any matches no node.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeSelectorTerm {
    /// On the node's labels.
    pub labels: Vec<Requirement>,
    /// On the node's fields; Kubernetes knows `metadata.name` only.
    pub fields: Vec<Requirement>,
}

/// `key operator values`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Requirement {
    /// Label or field.
    pub key: SmolStr,
    /// How it compares.
    pub operator: Operator,
    /// What it compares with.
    pub values: Vec<SmolStr>,
}

/// The operators of a node selector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operator {
    /// The value is one of these.
    In,
    /// The value is none of these, or there is no value.
    NotIn,
    /// There is a value.
    Exists,
    /// There is no value.
    DoesNotExist,
    /// The value is an integer greater than the only one given.
    Gt,
    /// The value is an integer less than the only one given.
    Lt,
}

impl NodeSelectorTerm {
    /// Does a node of this name and these labels match?
    pub fn matches(&self, name: &str, labels: &BTreeMap<SmolStr, SmolStr>) -> bool {
        if self.labels.is_empty() && self.fields.is_empty() {
            return false;
        }
        let field = |key: &str| (key == "metadata.name").then_some(name);
        self.labels.iter().all(|rule| rule.holds(labels.get(&rule.key).map(SmolStr::as_str)))
            && self.fields.iter().all(|rule| rule.holds(field(&rule.key)))
    }
}

impl Requirement {
    fn holds(&self, value: Option<&str>) -> bool {
        let listed = |value: &str| self.values.iter().any(|known| known == value);
        match self.operator {
            Operator::In => value.is_some_and(listed),
            Operator::NotIn => !value.is_some_and(listed),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
            Operator::Gt => self.compare(value, |node, bound| node > bound),
            Operator::Lt => self.compare(value, |node, bound| node < bound),
        }
    }

    fn compare(&self, value: Option<&str>, holds: impl Fn(i64, i64) -> bool) -> bool {
        let [bound] = self.values.as_slice() else { return false };
        match (value.and_then(|value| value.parse().ok()), bound.parse().ok()) {
            (Some(value), Some(bound)) => holds(value, bound),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(key: &str, operator: Operator, values: &[&str]) -> Requirement {
        Requirement { key: key.into(), operator, values: values.iter().map(SmolStr::new).collect() }
    }

    #[test]
    fn a_term_holds_when_all_its_rules_do() {
        let labels = BTreeMap::from([("zone".into(), "a".into()), ("cores".into(), "8".into())]);
        let cases = [
            (rule("zone", Operator::In, &["a", "b"]), true),
            (rule("zone", Operator::NotIn, &["a"]), false),
            (rule("disk", Operator::NotIn, &["ssd"]), true),
            (rule("zone", Operator::Exists, &[]), true),
            (rule("disk", Operator::DoesNotExist, &[]), true),
            (rule("cores", Operator::Gt, &["4"]), true),
            (rule("cores", Operator::Lt, &["8"]), false),
            (rule("zone", Operator::Gt, &["4"]), false),
        ];
        for (rule, expected) in cases {
            let term = NodeSelectorTerm { labels: vec![rule.clone()], fields: vec![] };
            assert_eq!(term.matches("node-1", &labels), expected, "{rule:?}");
        }
        let by_name =
            NodeSelectorTerm { labels: vec![], fields: vec![rule("metadata.name", Operator::In, &["node-1"])] };
        assert!(by_name.matches("node-1", &labels));
        assert!(!by_name.matches("node-2", &labels));
        assert!(!NodeSelectorTerm::default().matches("node-1", &labels), "an empty term matches nothing");
    }
}
