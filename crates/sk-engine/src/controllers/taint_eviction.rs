//! The taint eviction controller: deletes pods from a node with a `NoExecute` taint that they do not tolerate, at once
//! or after their `tolerationSeconds` (`pkg/controller/tainteviction`, 1.36).

use std::collections::BTreeMap;

use sk_apiserver::kinds::{Condition, NODE, Node, PodSpec};
use sk_apiserver::{Answer, Change, KindTag, Object, ObjectId, Request, Verb, View, WatchEvent};
use sk_core::{ObjectKey, SimDuration, SimTime, SmolStr, Taint, TaintEffect, Toleration};

use super::pods::delete;
use crate::controller::{Plan, Reconciler};
use crate::events::Event;
use crate::workqueue::WorkQueue;

/// The controller.
#[derive(Clone, Default)]
pub(crate) struct TaintEviction {
    /// Pods that are to leave unless the taint goes: when.
    leaving: BTreeMap<ObjectId, SimTime>,
    /// How many nodes have a taint that pods may have to leave for. While none has, no pod needs a check.
    tainted_nodes: usize,
}

impl Reconciler for TaintEviction {
    type Key = ObjectId;

    const WATCHES: &'static [KindTag] = &[KindTag::Node, KindTag::Pod];

    fn wants_pods(&self) -> bool {
        self.tainted_nodes > 0 || !self.leaving.is_empty()
    }

    fn concerns(&mut self, event: &WatchEvent, view: View<'_>, queue: &mut WorkQueue<ObjectId>) {
        if let Some(node) = event.object.node() {
            let before = event.before.as_ref().and_then(|before| before.node()).map(taints_of).unwrap_or_default();
            let after = if event.change == Change::Deleted { Vec::new() } else { taints_of(node) };
            self.tainted_nodes += usize::from(!after.is_empty());
            self.tainted_nodes -= usize::from(!before.is_empty());
            if event.change != Change::Deleted && before != after {
                let mut pods: Vec<_> = view.pods_on(&event.object.key.name).collect();
                pods.sort_by(|(_, one), (_, other)| one.key.cmp(&other.key));
                pods.into_iter().for_each(|(id, _)| queue.add(id));
            }
            return;
        }
        if event.change == Change::Deleted {
            self.leaving.remove(&event.id);
            return;
        }
        if self.tainted_nodes == 0 && self.leaving.is_empty() {
            return;
        }
        let after = place(&event.object).filter(|(node, _)| node.is_some());
        if after.is_some() && event.before.as_deref().and_then(place) != after {
            queue.add(event.id);
        }
    }

    fn events(&self, _id: &ObjectId, verb: Verb, answer: &Answer, _view: View<'_>) -> Vec<Event> {
        let Some(pod) = answer.as_ref().ok().filter(|_| verb == Verb::Delete) else { return Vec::new() };
        let message = format!("Marking for deletion Pod {}", pod.key);
        vec![Event::normal("taint-eviction-controller", pod, "TaintManagerEviction", message)]
    }

    fn reconcile(&mut self, id: &ObjectId, view: View<'_>, now: SimTime) -> Plan {
        let pod = view.get(*id).filter(|object| !object.is_deleting());
        let Some((object, pod)) = pod.and_then(|object| Some((object, object.pod()?))) else { return Plan::nothing() };
        let node = pod.node_name.clone().and_then(|name| view.find(&NODE, &ObjectKey::cluster(name)));
        let taints = node.and_then(|(_, node)| node.node()).map(taints_of).unwrap_or_default();
        match stay(&pod.spec, &taints) {
            Stay::ForEver => {
                self.leaving.remove(id);
                Plan::nothing()
            }
            Stay::NotAtAll => {
                self.leaving.insert(*id, now);
                evict(object, now)
            }
            // A pod that is to leave already leaves when it was to, whichever taint came since (`processPodOnNode`).
            Stay::For(span) => {
                let at = *self.leaving.entry(*id).or_insert(now + span);
                if at <= now {
                    return evict(object, now);
                }
                Plan { again_after: Some(at.since(now)), ..Plan::nothing() }
            }
        }
    }
}

/// How long a pod may stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stay {
    NotAtAll,
    For(SimDuration),
    ForEver,
}

/// Not at all if a taint is not tolerated; else as long as the shortest of the tolerations that are used.
fn stay(spec: &PodSpec, taints: &[&Taint]) -> Stay {
    let mut shortest: Option<i64> = None;
    for taint in taints {
        let tolerating: Vec<_> = spec.tolerations.iter().filter(|toleration| toleration.tolerates(taint)).collect();
        // Of several, the first is the one that counts (`GetMatchingTolerations`).
        let Some(used) = tolerating.first() else { return Stay::NotAtAll };
        shortest = shortest.into_iter().chain(used.toleration_seconds).min();
    }
    shortest.map_or(Stay::ForEver, |secs| Stay::For(SimDuration::from_secs(secs.max(0))))
}

/// The fields whose change makes a pod's tolerations be checked again.
fn place(object: &Object) -> Option<(Option<&SmolStr>, &[Toleration])> {
    object.pod().map(|pod| (pod.node_name.as_ref(), pod.spec.tolerations.as_slice()))
}

fn taints_of(node: &Node) -> Vec<&Taint> {
    node.spec.taints.iter().filter(|taint| taint.effect == TaintEffect::NoExecute).collect()
}

/// The pod learns why it goes, then it is deleted.
fn evict(pod: &Object, now: SimTime) -> Plan {
    let why = ("DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint");
    let told = Request::PatchPodStatus {
        pod: pod.key.clone(),
        uid: pod.uid,
        conditions: vec![Condition::new("DisruptionTarget", true, now).because(why.0, why.1)],
        nominated_node_name: None,
    };
    Plan::of([told, delete(pod)])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(tolerations: &[(&'static str, Option<i64>)]) -> PodSpec {
        let toleration =
            |(key, secs): &(&'static str, Option<i64>)| Toleration::exists(*key, TaintEffect::NoExecute, *secs);
        PodSpec { tolerations: tolerations.iter().map(toleration).collect(), ..PodSpec::default() }
    }

    #[test]
    fn the_least_patient_toleration_decides_and_a_taint_without_one_at_once() {
        let (a, b) = (Taint::new("a", TaintEffect::NoExecute), Taint::new("b", TaintEffect::NoExecute));
        let secs = |secs| Stay::For(SimDuration::from_secs(secs));
        assert_eq!(stay(&spec(&[]), &[]), Stay::ForEver);
        assert_eq!(stay(&spec(&[]), &[&a]), Stay::NotAtAll);
        assert_eq!(stay(&spec(&[("a", None)]), &[&a]), Stay::ForEver);
        assert_eq!(stay(&spec(&[("a", Some(300))]), &[&a]), secs(300));
        assert_eq!(stay(&spec(&[("a", Some(300)), ("b", Some(10))]), &[&a, &b]), secs(10));
        assert_eq!(stay(&spec(&[("a", None), ("b", Some(10))]), &[&a, &b]), secs(10));
        assert_eq!(stay(&spec(&[("a", Some(-5))]), &[&a]), secs(0));
        assert_eq!(stay(&spec(&[("a", Some(300))]), &[&a, &b]), Stay::NotAtAll);
    }
}
