//! VolumeZone: a volume's zone and region labels must be the node's (`volumezone/volume_zone.go`).

use sk_core::SmolStr;

use crate::class::PodClass;
use crate::cluster::objects::Volume;
use crate::framework::cycle_state::{Caches, Cx, CycleState};
use crate::framework::plugin::{Plugin, PluginId, PreFilter, Rejection};
use crate::ids::NodeId;
use crate::queue::{Event, Hint, HintCx, NodeAction};

pub(crate) struct VolumeZone;

/// Labels that name a zone or a region, with the one that replaced each deprecated one.
const LABELS: [(&str, &str); 4] = [
    ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"),
    ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"),
    ("topology.kubernetes.io/zone", "topology.kubernetes.io/zone"),
    ("topology.kubernetes.io/region", "topology.kubernetes.io/region"),
];

/// For each label of each volume: the label, its successor, the values that will do.
#[derive(Clone, Debug, Default)]
pub(crate) struct State {
    wanted: Vec<Wanted>,
}

/// A label, the label that replaced it, and the values that will do.
type Wanted = (&'static str, &'static str, Vec<SmolStr>);

/// `getPVTopologies`; several zones in one label are joined by `__`.
fn wanted(volume: &Volume) -> Vec<Wanted> {
    let values = |value: &SmolStr| value.split("__").map(|one| SmolStr::from(one.trim())).collect::<Vec<_>>();
    let labels =
        LABELS.iter().filter_map(|(key, successor)| Some((*key, *successor, values(volume.labels.get(*key)?))));
    labels.filter(|(_, _, values)| values.iter().all(|value| !value.is_empty())).collect()
}

/// `getPVbyPod` for one claim.
fn of_claim(cx: &Cx<'_>, name: &str) -> Result<Vec<Wanted>, String> {
    let objects = &cx.cluster.objects;
    if name.is_empty() {
        return Err("PersistentVolumeClaim had no name".to_owned());
    }
    let claim = objects.claims.get(&(cx.class.namespace.clone(), name.into()));
    let claim = claim.ok_or_else(|| format!("persistentvolumeclaim \"{name}\" not found"))?;
    if let Some(volume) = &claim.volume {
        let found = objects.volumes.get(volume);
        return found.map(wanted).ok_or_else(|| format!("persistentvolume \"{volume}\" not found"));
    }
    let Some(class) = claim.storage_class.as_ref().filter(|name| !name.is_empty()) else {
        return Err("PersistentVolumeClaim had no pv name and storageClass name".to_owned());
    };
    match objects.storage_classes.get(class) {
        None => Err(format!("storageclass.storage.k8s.io \"{class}\" not found")),
        Some(class) if class.waits_for_consumer => Ok(Vec::new()),
        Some(_) => Err("PersistentVolume had no name".to_owned()),
    }
}

impl Plugin for VolumeZone {
    fn pre_filter(&self, cx: &Cx<'_>, _: &mut Caches, state: &mut CycleState) -> PreFilter {
        let claims = cx.class.claims.iter().filter(|claim| !claim.ephemeral);
        for claim in claims {
            match of_claim(cx, &claim.name) {
                Ok(wanted) => state.zones.wanted.extend(wanted),
                Err(reason) => return PreFilter::Reject(reason),
            }
        }
        if state.zones.wanted.is_empty() { PreFilter::Skip } else { PreFilter::Run }
    }

    fn filter(&self, cx: &Cx<'_>, _: &Caches, state: &CycleState, node: NodeId) -> Rejection {
        let labels = &cx.cluster.node(node).labels;
        if !LABELS.iter().any(|(key, _)| labels.contains_key(*key)) {
            return Rejection::NONE;
        }
        let will_do = |(key, successor, values): &Wanted| {
            let value = labels.get(*key).or_else(|| labels.get(*successor));
            value.is_some_and(|value| values.contains(value))
        };
        match state.zones.wanted.iter().all(will_do) {
            true => Rejection::NONE,
            false => Rejection::unresolvable(PluginId::VolumeZone, 1),
        }
    }

    fn hint(&self, cx: &HintCx<'_>, event: &Event) -> Hint {
        match event {
            Event::Node { action: NodeAction::Add | NodeAction::Label, .. } => Hint::Queue,
            Event::Claim { namespace, name } => Hint::queue_if(cx.names_claim(namespace, name)),
            Event::Volume { before, after } => {
                Hint::queue_if(before.as_ref().is_none_or(|before| wanted(before) != wanted(after)))
            }
            Event::StorageClass { before: None, after } => Hint::queue_if(after.waits_for_consumer),
            _ => Hint::Skip,
        }
    }

    fn describe(&self, _: &PodClass, _: u32, say: &mut dyn FnMut(&str)) {
        say("node(s) had no available volume zone");
    }
}
