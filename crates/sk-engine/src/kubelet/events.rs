//! The Events of a kubelet about a pod, with its messages (`pkg/kubelet`, 1.36).
//!
//! Only exceptions: stopped containers, repeated failures, refused pods. The Events of every normal start (`Pulled`,
//! `Created`, `Started`, three per container) add nothing to the pod's timestamps and would fill the bounded table of
//! Events.

use sk_apiserver::Object;
use sk_apiserver::kinds::{Pod, Why};

use crate::events::Event;

/// How it signs.
const FROM: &str = "kubelet";

/// Its containers are told to stop (`kuberuntime_container.go`, `killContainer`). Those that do not run are not.
pub(super) fn killing(object: &Object) -> impl Iterator<Item = Event> {
    let running = object.pod().filter(|pod| pod.status.started.is_some() && pod.status.finished.is_none());
    containers(running).map(|name| Event::normal(FROM, object, "Killing", format!("Stopping container {name}")))
}

/// Its containers wait before they start again (`kuberuntime_manager.go`, `doBackOff`). A kubelet says so at each look, which
/// only counts one more in the same Event.
pub(super) fn backing_off(object: &Object) -> impl Iterator<Item = Event> {
    let (key, uid) = (&object.key, object.uid);
    containers(object.pod()).map(move |name| {
        let pod = format!("{}_{}({uid})", key.name, key.namespace_or_empty());
        let message = format!("Back-off restarting failed container {name} in pod {pod}");
        Event::warning(FROM, object, "BackOff", message)
    })
}

/// Its node has no room for it (`kubelet.go`, `rejectPod`). The status says before it that the pod was rejected.
pub(super) fn rejected(object: &Object, why: &Why) -> Event {
    let message = why.message.trim_start_matches("Pod was rejected: ");
    Event::warning(FROM, object, &why.reason, message.to_owned())
}

fn containers(pod: Option<&Pod>) -> impl Iterator<Item = &str> {
    let spec = pod.map(|pod| &pod.spec);
    let sidecars = spec.into_iter().flat_map(|spec| &spec.init_containers);
    let sidecars = sidecars.filter(|container| container.restart_policy.as_deref() == Some("Always"));
    let main = spec.into_iter().flat_map(|spec| &spec.containers);
    sidecars.chain(main).map(|container| container.name.as_str())
}
