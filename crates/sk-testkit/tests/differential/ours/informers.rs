//! What the informers show our scheduler: nodes and pods that come, change and go.

use serde_json::Value;
use sk_scheduler::queue::{Event, PodAction};
use sk_scheduler::{ClassId, NodeSpec, PodClass, PodId};
use sk_testkit::merge;
use sk_testkit::scenario::Target;
use sk_testkit::scheduling::attempt::{name_of, pod_name};

use super::{Known, News, Ours};
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
            News::Displaced(name) => {
                let lost = self.pods.get(&name).map(|known| known.id).and_then(|id| self.withdraw(id));
                lost.into_iter().for_each(|class| self.nomination_gone(class));
            }
            News::Withdrawn(_, class) => self.nomination_gone(class),
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
        self.pods.insert(name_of(pod), Known { id, object });
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
        merge::apply(&mut known.object, patch);
        let (id, object) = (known.id, known.object.clone());
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
        let class = self.scheduler.cluster.pod(id).class;
        let nominated = self.scheduler.cluster.withdraw(id);
        self.pods.remove(name);
        if nominated.is_some() {
            self.nomination_gone(class);
        }
        self.scheduler.cluster.drop_pod(id);
    }
}
