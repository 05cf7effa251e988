//! From API objects to what the scheduler library looks at.

use std::sync::Arc;

use serde_json::Value;
use sk_apiserver::kinds::{Pod, PodSpec};
use sk_apiserver::{Body, Object};
use sk_core::SmolStr;
use sk_core::memo::Memo;
use sk_scheduler::pod::{NodeSelectorTerm, Operator, Requirement};
use sk_scheduler::{Node, PodClass};

/// How many classes are remembered; one per pod template in use. A class is below 1 KB, so at most 4 MB.
const CLASS_MEMORY: usize = 4096;

/// The classes of pods, each derived once per spec.
#[derive(Clone, Debug)]
pub(crate) struct Classes {
    memo: Memo<PodSpec, Arc<PodClass>>,
}

impl Classes {
    pub(crate) fn new() -> Self {
        Self { memo: Memo::new(CLASS_MEMORY) }
    }

    pub(crate) fn of(&mut self, pod: &Pod) -> Arc<PodClass> {
        self.memo.get_or_insert_with(&pod.spec, |spec| Arc::new(class(spec)))
    }
}

fn class(spec: &PodSpec) -> PodClass {
    PodClass {
        requests: spec.requests(),
        scoring_requests: spec.scoring_requests(),
        node_selector: spec.node_selector.clone(),
        required_affinity: spec.affinity.as_ref().and_then(required_affinity),
        tolerations: spec.tolerations.clone(),
        priority: spec.priority.unwrap_or(0),
        never_preempts: spec.preemption_policy.as_deref() == Some("Never"),
    }
}

fn required_affinity(affinity: &Value) -> Option<Vec<NodeSelectorTerm>> {
    let terms = affinity
        .pointer("/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms")?
        .as_array()?;
    let rules = |term: &Value, name: &str| {
        let list = term.get(name).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(requirement).collect::<Vec<_>>()
    };
    let term =
        |term: &Value| NodeSelectorTerm { labels: rules(term, "matchExpressions"), fields: rules(term, "matchFields") };
    Some(terms.iter().map(term).collect())
}

fn requirement(rule: &Value) -> Option<Requirement> {
    let operator = match rule.get("operator")?.as_str()? {
        "In" => Operator::In,
        "NotIn" => Operator::NotIn,
        "Exists" => Operator::Exists,
        "DoesNotExist" => Operator::DoesNotExist,
        "Gt" => Operator::Gt,
        "Lt" => Operator::Lt,
        _ => return None,
    };
    let values = rule.get("values").and_then(Value::as_array).into_iter().flatten();
    let values = values.filter_map(|value| value.as_str().map(SmolStr::from)).collect();
    Some(Requirement { key: rule.get("key")?.as_str()?.into(), operator, values })
}

/// A node without its pods; `None` for other objects.
pub(crate) fn node(object: &Object) -> Option<Node> {
    let Body::Node(node) = &object.body else { return None };
    let (allocatable, allowed_pods) = node.allocatable();
    Some(Node {
        name: object.key.name.clone(),
        labels: Arc::new((*object.meta.labels).clone()),
        taints: node.spec.taints.iter().cloned().collect(),
        unschedulable: node.spec.unschedulable,
        allocatable,
        allowed_pods,
        ..Node::default()
    })
}
