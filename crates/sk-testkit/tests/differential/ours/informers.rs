//! What the informers show our scheduler: nodes and pods that come, change and go.

use std::sync::Arc;

use serde_json::Value;
use sk_scheduler::cluster::NodeChange;
use sk_scheduler::queue::{Event, PodAction};
use sk_scheduler::{ClassId, NodeId, NodeSpec, PodClass, PodId};
use sk_testkit::merge;
use sk_testkit::scenario::Target;
use sk_testkit::scheduling::attempt::{name_of, pod_name};

use super::{Known, News, Ours, STEP};
use crate::admission::admit;

impl Ours {
    pub(super) fn deliver(&mut self, news: News) {
        match news {
            News::Came(name, node) => self.came(&name, &node),
            News::Left(name) => self.left(&name),
            News::Going(name) => {
                if let Some(known) = self.pods.get(&name) {
                    self.scheduler.cluster.update_pod(known.id, |pod| (pod.deleting, pod.preempted) = (true, true));
                }
            }
            News::Status(name, words, nominated) => self.status_seen(&name, words, nominated),
        }
    }

    /// A waiting pod's status is seen (`eventhandlers.go`, `updatePodInSchedulingQueue`; `backend/queue/nominator.go`,
    /// `UpdateNominatedPod`). Of a pod that has been given a node nobody takes notice.
    fn status_seen(&mut self, name: &str, words: String, nominated: Option<NodeId>) {
        let Some(known) = self.pods.get_mut(name) else { return };
        known.words = words;
        let (id, cluster) = (known.id, &mut self.scheduler.cluster);
        let pod = cluster.pod(id);
        let (before, class) = (pod.nominated, pod.class);
        if pod.node().is_some() {
            return;
        }
        match nominated {
            Some(node) => cluster.nominate(id, node),
            None if before.is_some() => drop(cluster.withdraw(id)),
            None => {}
        }
        cluster.update_pod(id, |pod| pod.nominated = nominated);
        if before.is_some() && before != nominated {
            self.nomination_gone(class);
        }
    }

    /// A pod is seen on its node.
    pub(super) fn came(&mut self, name: &str, node: &str) {
        let Some(id) = self.pods.get(name).map(|known| known.id) else { return };
        let place = self.scheduler.cluster.slot(node);
        self.scheduler.cluster.add_pod(id, place);
        let after = Some(self.scheduler.cluster.pod(id).class);
        self.happened(&Event::PlacedPod { action: PodAction::Add, before: None, after });
    }

    /// A pod is seen to be gone from its node.
    pub(super) fn left(&mut self, name: &str) {
        let Some(known) = self.pods.remove(name) else { return };
        let before = Some(self.scheduler.cluster.pod(known.id).class);
        for (preemptor, there) in &mut self.preempting {
            there.remove(name);
            if there.is_empty()
                && let Some(known) = self.pods.get(preemptor)
            {
                self.queue.set_preempting(known.id, false);
            }
        }
        self.preempting.retain(|_, there| !there.is_empty());
        self.scheduler.cluster.remove_pod(known.id);
        self.happened(&Event::PlacedPod { action: PodAction::Delete, before, after: None });
        self.scheduler.cluster.drop_pod(known.id);
    }

    /// A pod's nomination is no more: those of at most its priority are told as if it had been there and had gone
    /// (`eventhandlers.go`, `hasNominatedNodeNameChanged`).
    pub(super) fn nomination_gone(&mut self, class: ClassId) {
        let event = Event::PlacedPod { action: PodAction::Delete, before: Some(class), after: None };
        let priority = self.scheduler.cluster.class(class).priority;
        self.queue.happened_to(priority, self.now, &event, &self.scheduler);
    }

    pub(super) fn happened(&mut self, event: &Event) {
        self.queue.happened(self.now, event, &self.scheduler);
    }

    pub(super) fn add_pod(&mut self, pod: &Value) -> Result<(), String> {
        let id = self.know(pod)?;
        let scheduler = pod["spec"]["schedulerName"].as_str().unwrap_or("default-scheduler");
        if self.scheduler.has_profile(scheduler) {
            self.queue.add(self.now, id, &self.scheduler);
        }
        Ok(())
    }

    pub(super) fn know(&mut self, pod: &Value) -> Result<PodId, String> {
        let object = admit(pod, &self.objects);
        let class = PodClass::from_pod(&object).map_err(|error| error.to_string())?;
        let class = self.scheduler.cluster.intern(class);
        let id = self.scheduler.cluster.new_pod(class, object["metadata"]["name"].as_str().unwrap_or_default());
        self.pods.insert(name_of(pod), Known { id, object, words: String::new(), nominated: None });
        Ok(id)
    }

    pub(super) fn set_node(&mut self, node: Value) -> Result<(), String> {
        let change = self.scheduler.cluster.set_node(NodeSpec::from_json(&node).map_err(|error| error.to_string())?);
        self.nodes.insert(name_of(&node), node);
        for event in Event::of_node(&change) {
            self.happened(&event);
        }
        Ok(())
    }

    pub(super) fn change(&mut self, target: &Target, patch: &Value) -> Result<(), String> {
        let name = pod_name(target.0.key.namespace.as_deref().unwrap_or("default"), &target.0.key.name);
        match target.0.gvk.kind.as_str() {
            "Node" => {
                let mut node = self.nodes.get(&name).cloned().ok_or("we know no such node")?;
                merge::apply(&mut node, patch);
                self.set_node(node)
            }
            "Pod" => self.change_pod(&name, patch),
            kind => {
                let index = self.objects.iter().position(|object| object["kind"] == kind && name_of(object) == name);
                let mut object = self.objects.remove(index.ok_or("we know no such object")?);
                merge::apply(&mut object, patch);
                self.create(&object)
            }
        }
    }

    pub(super) fn change_pod(&mut self, name: &str, patch: &Value) -> Result<(), String> {
        // A waiting pod may have been taken as a victim by then, as far as the generator of scenarios knows.
        let Some(known) = self.pods.get_mut(name) else { return Ok(()) };
        let mut object = known.object.clone();
        merge::apply(&mut object, patch);
        if object == known.object {
            // The API server tells nobody of a change that changes nothing.
            return Ok(());
        }
        known.object = object.clone();
        let id = known.id;
        if object["status"]["phase"] == "Succeeded" {
            self.news.push(News::Left(name.to_owned()));
            return Ok(());
        }
        let class = PodClass::from_pod(&object).map_err(|error| error.to_string())?;
        let (before, after) = (self.scheduler.cluster.pod(id).class, self.scheduler.cluster.intern(class));
        self.scheduler.cluster.update_pod(id, |pod| pod.class = after);
        if self.scheduler.cluster.pod(id).node().is_none() {
            self.queue.updated(self.now, id, before, &self.scheduler);
            return Ok(());
        }
        let classes = (self.scheduler.cluster.class(before), self.scheduler.cluster.class(after));
        for action in Event::pod_actions(classes.0, classes.1) {
            self.happened(&Event::PlacedPod { action, before: Some(before), after: Some(after) });
        }
        Ok(())
    }

    /// A node goes, as the real scheduler learns it: its queue first. The cluster has the node until [`Self::forget_going`].
    pub(crate) fn announce_going(&mut self, name: &str) -> Result<(), String> {
        self.now += STEP;
        let node = self.scheduler.cluster.node_id(name).ok_or("we know no such node")?;
        let before = Some(Arc::clone(self.scheduler.cluster.node(node)));
        let change = NodeChange { node, before, after: None };
        Event::of_node(&change).into_iter().for_each(|event| self.happened(&event));
        self.nodes.remove(name);
        self.going = Some(node);
        Ok(())
    }

    /// Is a node going that the cluster still has?
    pub(crate) fn is_node_going(&self) -> bool {
        self.going.is_some()
    }

    /// The cluster forgets the node that is going.
    pub(crate) fn forget_going(&mut self) {
        if let Some(node) = self.going.take() {
            self.scheduler.cluster.remove_node(node);
        }
    }

    pub(super) fn delete(&mut self, target: &Target) -> Result<(), String> {
        let name = pod_name(target.0.key.namespace.as_deref().unwrap_or("default"), &target.0.key.name);
        match target.0.gvk.kind.as_str() {
            "Node" => {
                let node = self.scheduler.cluster.node_id(&name).ok_or("we know no such node")?;
                let change = self.scheduler.cluster.remove_node(node);
                self.nodes.remove(&name);
                Event::of_node(&change).into_iter().for_each(|event| self.happened(&event));
                Ok(())
            }
            "Pod" => {
                self.delete_pod(&name);
                Ok(())
            }
            kind => Err(format!("scenarios delete pods and nodes, not {kind}")),
        }
    }

    pub(super) fn delete_pod(&mut self, name: &str) {
        let Some(id) = self.pods.get(name).map(|known| known.id) else { return };
        if self.scheduler.cluster.pod(id).node().is_some() {
            return self.news.push(News::Left(name.to_owned()));
        }
        self.queue.remove(id);
        let pod = self.scheduler.cluster.pod(id);
        let (class, nominated) = (pod.class, pod.nominated);
        self.scheduler.cluster.withdraw(id);
        self.pods.remove(name);
        if nominated.is_some() {
            self.nomination_gone(class);
        }
        self.scheduler.cluster.drop_pod(id);
    }
}
