//! The `pods/binding` subresource: binds a pod to a node (`registry/core/pod/storage/storage.go`, `BindingREST`,
//! 1.36).

use sk_core::{ObjectKey, SimTime, SmolStr};

use crate::kinds::{self, Condition};
use crate::request::Answer;
use crate::server::{ApiServer, add, wrong_uid};
use crate::{ApiError, Labels, Uid};

/// The pod, its node, and the labels and annotations that the binding adds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Binding {
    /// The pod that is meant; not a later one of the same name.
    pub(crate) uid: Option<Uid>,
    pub(crate) node: SmolStr,
    pub(crate) labels: Labels,
    pub(crate) annotations: Labels,
}

impl ApiServer {
    /// Puts a pod onto a node, once. It gets the zone and the region of the node.
    pub(crate) fn bind(&mut self, now: SimTime, key: &ObjectKey, binding: &Binding) -> Answer {
        let (id, stored) = self.find(&kinds::POD, key)?;
        if let Some(uid) = binding.uid.filter(|uid| *uid != stored.uid) {
            return Err(wrong_uid(stored, uid));
        }
        let refuse = |why: String| Err(ApiError::conflict_on("", "pods/binding", &key.name, &why));
        if stored.is_deleting() {
            return refuse(format!("pod {} is being deleted, cannot be assigned to a host", key.name));
        }
        let mut bound = crate::Object::clone(stored);
        let Some(pod) = bound.pod_mut() else { return Err(ApiError::not_found(&kinds::POD, &key.name)) };
        if let Some(taken) = &pod.node_name {
            return refuse(format!("pod {} is already assigned to node \"{taken}\"", key.name));
        }
        if !pod.spec.scheduling_gates.is_empty() {
            return refuse(format!("pod {} has non-empty .spec.schedulingGates", key.name));
        }
        pod.node_name = Some(binding.node.clone());
        pod.status.nominated_node_name = None;
        pod.status.set_condition(Condition::new("PodScheduled", true, now));
        add(&mut bound.meta.labels, &binding.labels);
        add(&mut bound.meta.annotations, &binding.annotations);
        self.label_by_node(&mut bound, &binding.node);
        Ok(self.commit(now, Some(id), bound))
    }
}
