//! The cluster autoscaler's decisions as rows of the run record: one per decision and object, and the Kubernetes
//! Events that it writes.

use std::collections::BTreeMap;

use sk_core::{ObjectKey, SmolStr};
use sk_engine::{Because, Choice, Decision, Resize, Trigger, Verdict};
use sk_record::{AutoscalerRow, Decided, EventRow, Trigger as TriggerWord};

/// Who owns a pod, and which group a node is of, as far as that is known.
pub(crate) trait Names {
    /// The top-most owner of a pod.
    fn owner(&self, pod: &ObjectKey) -> Option<SmolStr>;
    /// The group of a node.
    fn group(&self, node: &str) -> Option<String>;
}

/// The rows of one decision.
pub(crate) fn rows(decision: &Decision, names: &impl Names) -> Vec<AutoscalerRow> {
    let events = Events::of(decision);
    let row = |decided: Decided| AutoscalerRow {
        time: decision.at,
        loop_number: i64::try_from(decision.loop_number).unwrap_or(i64::MAX),
        trigger: trigger(decision.trigger),
        decision: decided,
        namespace: None,
        pod: None,
        owner: None,
        node: None,
        group: None,
        nodes_before: None,
        nodes_after: None,
        pods: None,
        options: None,
        event: None,
        message: None,
    };
    let of_pod = |decided: Decided, pod: &ObjectKey| AutoscalerRow {
        namespace: pod.namespace.as_ref().map(SmolStr::to_string),
        pod: Some(pod.name.to_string()),
        owner: names.owner(pod).map(|owner| owner.to_string()),
        ..events.tell(&format!("Pod/{pod}"), row(decided))
    };
    let of_node = |decided: Decided, node: &SmolStr| AutoscalerRow {
        node: Some(node.to_string()),
        group: names.group(node),
        ..events.tell(&format!("Node/{node}"), row(decided))
    };
    match &decision.verdict {
        Verdict::ScaleUp { options, because, refused, plan, pods, more_pods, .. } => {
            let count = Some(number(pods.len() + more_pods));
            let considered = listed(options, plan.first(), because, refused);
            let grown = |resize: &Resize| growth(row(Decided::ScaleUp), resize);
            let helped = |pod: &ObjectKey| {
                let row = of_pod(Decided::ScaleUp, pod);
                plan.first().map_or(row.clone(), |resize| growth(row, resize))
            };
            let rows = plan.iter().map(grown).chain(pods.iter().map(helped));
            rows.map(|row| AutoscalerRow { pods: count, options: considered.clone(), ..row }).collect()
        }
        Verdict::NoScaleUp { pods, reason, groups } => {
            let count = Some(number(pods.len()));
            let said: Vec<String> = groups.iter().map(|(group, why)| format!("{group}: {why}")).collect();
            let options = (!said.is_empty()).then(|| said.join("; "));
            let row = |pod: &ObjectKey| {
                let row = of_pod(Decided::NoScaleUp, pod);
                let message = row.message.clone().or_else(|| Some(reason.clone()));
                AutoscalerRow { pods: count, message, options: options.clone(), ..row }
            };
            pods.iter().map(row).collect()
        }
        Verdict::ScaleUpFailed { group, event: (reason, message) } => {
            let (event, message) = (Some((*reason).to_owned()), Some(message.clone()));
            vec![AutoscalerRow { group: Some(group.to_string()), event, message, ..row(Decided::ScaleUpFailed) }]
        }
        Verdict::WaitsForMorePods => vec![row(Decided::WaitsForMorePods)],
        Verdict::Unhealthy { unready } => {
            let message = Some(format!("{unready} nodes are not ready"));
            vec![AutoscalerRow { event: events.any(), message, ..row(Decided::Unhealthy) }]
        }
        Verdict::MaxNodesTotal { most } => {
            let message = Some(format!("Max total nodes in cluster reached: {most}"));
            vec![AutoscalerRow { event: events.any(), message, ..row(Decided::MaxNodesTotal) }]
        }
        Verdict::Unremovable { node, reason } => {
            vec![AutoscalerRow { message: Some(reason.clone()), ..of_node(Decided::Unremovable, node) }]
        }
        Verdict::Unneeded { node } => vec![of_node(Decided::Unneeded, node)],
        Verdict::Cooldown => vec![row(Decided::Cooldown)],
        Verdict::ScaleDown { node, pods, .. } => {
            let count = Some(number(pods.len()));
            let moved = |pod: &ObjectKey| AutoscalerRow {
                node: Some(node.to_string()),
                group: names.group(node),
                message: Some(format!("{pod} has to move")),
                ..of_pod(Decided::ScaleDown, pod)
            };
            let rows = std::iter::once(of_node(Decided::ScaleDown, node)).chain(pods.iter().map(moved));
            rows.map(|row| AutoscalerRow { pods: count, ..row }).collect()
        }
        Verdict::ScaleDownFailed { node, .. } => vec![of_node(Decided::ScaleDownFailed, node)],
        // Steps of a removal, which only events tell.
        Verdict::Evicts { .. } | Verdict::Removed { .. } => Vec::new(),
    }
}

/// The events of one decision.
pub(crate) fn events(decision: &Decision, names: &impl Names) -> Vec<EventRow> {
    let row = |(reason, object, message): (&'static str, String, String)| {
        let (kind, name) = object.split_once('/').unwrap_or(("", &object));
        let (namespace, name) = name.split_once('/').map_or((None, name), |(namespace, name)| (Some(namespace), name));
        let pod = namespace.filter(|_| kind == "Pod").map(|namespace| ObjectKey::namespaced(namespace, name));
        EventRow {
            time: decision.at,
            is_warning: WARNINGS.contains(&reason),
            reason: reason.to_owned(),
            kind: kind.to_owned(),
            namespace: namespace.map(ToOwned::to_owned),
            name: name.to_owned(),
            owner: pod.and_then(|pod| names.owner(&pod)).map(|owner| owner.to_string()),
            source: SOURCE.to_owned(),
            message,
        }
    };
    decision.events().into_iter().map(row).collect()
}

/// How it signs its events.
const SOURCE: &str = "cluster-autoscaler";
/// The reasons that cluster-autoscaler gives as warnings.
const WARNINGS: [&str; 6] = [
    "ScaleDownFailed",
    "ScaleUpFailed",
    "FailedToScaleUpGroup",
    "ScaleUpTimedOut",
    "MaxNodesTotalReached",
    "ClusterUnhealthy",
];

fn growth(row: AutoscalerRow, resize: &Resize) -> AutoscalerRow {
    AutoscalerRow {
        group: Some(resize.group.to_string()),
        nodes_before: Some(number(resize.from)),
        nodes_after: Some(number(resize.to)),
        ..row
    }
}

/// The Kubernetes events of a decision, by object.
struct Events(BTreeMap<String, (&'static str, String)>);

impl Events {
    fn of(decision: &Decision) -> Self {
        Self(decision.events().into_iter().map(|(reason, object, message)| (object, (reason, message))).collect())
    }

    /// The row with the event that tells this object.
    fn tell(&self, object: &str, row: AutoscalerRow) -> AutoscalerRow {
        match self.0.get(object) {
            Some((reason, message)) => {
                AutoscalerRow { event: Some((*reason).to_owned()), message: Some(message.clone()), ..row }
            }
            None => row,
        }
    }

    /// The reason of the only event there is.
    fn any(&self) -> Option<String> {
        self.0.values().next().map(|(reason, _)| (*reason).to_owned())
    }
}

fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn trigger(trigger: Trigger) -> TriggerWord {
    match trigger {
        Trigger::Timer => TriggerWord::Timer,
        Trigger::Pod => TriggerWord::Pod,
        Trigger::AfterScaleUp => TriggerWord::AfterScaleUp,
        Trigger::AfterScaleDown => TriggerWord::AfterScaleDown,
    }
}

/// Each option with its scores, which of them was chosen and why, and the groups that were none: `small: 3 nodes for 7 pods,
/// waste 24.00%, chosen by least-waste; big: 1 node for 9 pods, waste 61.30%; gpu: node(s) had untolerated taint(s)`.
fn listed(
    options: &[Choice],
    plan: Option<&Resize>,
    because: &Because,
    refused: &[(SmolStr, String)],
) -> Option<String> {
    let one = |choice: &Choice| {
        let plural = |count: usize| if count == 1 { "" } else { "s" };
        // As in cluster-autoscaler's log: the mean of CPU and memory.
        let waste = choice.waste as f64 / 2e4;
        let (nodes, pods) = (choice.nodes, choice.pods);
        let price = choice.price.map_or_else(String::new, |price| format!(", price score {price:.3}"));
        let chosen = plan.filter(|resize| resize.group == choice.group).map(|_| chosen(because)).unwrap_or_default();
        format!(
            "{}: {nodes} node{} for {pods} pod{}, waste {waste:.2}%{price}{chosen}",
            choice.group,
            plural(nodes),
            plural(pods)
        )
    };
    let refused = refused.iter().map(|(group, why)| format!("{group}: {why}"));
    let said: Vec<String> = options.iter().map(one).chain(refused).collect();
    (!said.is_empty()).then(|| said.join("; "))
}

/// Why a group was chosen, as the end of its message.
fn chosen(because: &Because) -> String {
    match because {
        Because::OnlyOption => ", chosen as the only option".to_owned(),
        Because::Expander(expander) => format!(", chosen by {}", expander.as_str()),
        Because::Drawn(groups) => format!(", drawn among {}", groups.join(", ")),
        Because::Minimum => ", filled up to its minimum".to_owned(),
    }
}
