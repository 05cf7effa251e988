//! The kinds to watch, and the purpose of each watch.

use std::collections::BTreeMap;

use sk_api::tracer::Config;
use sk_core::Gvk;
use sk_ingest::Role;

use super::resource::Depth;

const POD: Gvk = Gvk::new_static("", "v1", "Pod");
const NODE: Gvk = Gvk::new_static("", "v1", "Node");
/// Kinds that stand between pods and the objects people write. They are always watched, by metadata alone if nobody
/// tracks them: otherwise each new ReplicaSet, and each run of a Job and so nearly each of its pods, would cost a request.
const LINKS: [Gvk; 2] = [Gvk::new_static("apps", "v1", "ReplicaSet"), Gvk::new_static("batch", "v1", "Job")];

/// One kind to watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Task {
    pub(crate) kind: Gvk,
    pub(crate) role: Role,
}

impl Task {
    /// How much of each object is needed.
    pub(crate) fn depth(&self) -> Depth {
        if self.role == Role::Link { Depth::Metadata } else { Depth::Whole }
    }
}

/// All kinds to watch, each once: pods and nodes, links, and what is tracked.
pub(crate) fn tasks(config: &Config) -> Vec<Task> {
    let mut roles: BTreeMap<Gvk, Role> = LINKS.into_iter().map(|kind| (kind, Role::Link)).collect();
    roles.extend(config.tracked_objects.keys().map(|kind| (kind.clone(), Role::Tracked)));
    // If pods or nodes are tracked, one watch serves both purposes.
    roles.extend([(POD, Role::Pod), (NODE, Role::Node)]);
    roles.into_iter().map(|(kind, role)| Task { kind, role }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roles(tracked: &str) -> Vec<String> {
        let config = Config::parse("test", &format!("trackedObjects: {{{tracked}}}\n")).unwrap();
        tasks(&config).iter().map(|task| format!("{} {:?}", task.kind, task.role)).collect()
    }

    #[test]
    fn pods_nodes_and_links_are_watched_besides_what_is_tracked() {
        assert_eq!(
            roles("apps/v1.Deployment: {}"),
            [
                "v1.Node Node",
                "v1.Pod Pod",
                "apps/v1.Deployment Tracked",
                "apps/v1.ReplicaSet Link",
                "batch/v1.Job Link"
            ]
        );
    }

    #[test]
    fn a_kind_is_watched_once_however_many_reasons_there_are() {
        assert_eq!(
            roles("v1.Pod: {}, v1.Node: {}, batch/v1.Job: {}"),
            ["v1.Node Node", "v1.Pod Pod", "apps/v1.ReplicaSet Link", "batch/v1.Job Tracked"]
        );
    }
}
