//! Counts and names the pods that need a plugin which is not modelled and therefore passed through.

use std::collections::BTreeMap;

use serde_json::Value;
use sk_core::{ObjectKey, SmolStr};
use sk_scheduler::ClassId;
use sk_scheduler::class::{PassedThrough, PodClass};

use super::KubeScheduler;

/// So many are named; the others are counted.
const MAX_NAMED: usize = 5;

/// The pods that need one such thing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodsPassed {
    /// How many there were.
    pub count: u64,
    /// The first of them.
    pub named: Vec<ObjectKey>,
}

/// By what they need.
#[derive(Clone, Debug, Default)]
pub(super) struct Passed(pub(super) BTreeMap<PassedThrough, PodsPassed>);

impl Passed {
    pub(super) fn count(&mut self, needs: &[PassedThrough], pod: &ObjectKey) {
        for need in needs {
            let pods = self.0.entry(*need).or_default();
            pods.count += 1;
            if pods.named.len() < MAX_NAMED {
                pods.named.push(pod.clone());
            }
        }
    }
}

/// The extended resources that stand for devices (DRAExtendedResource, on by default in 1.36): a DeviceClass may name one, and
/// has another by its own name (`api/resource/v1/types.go`, `ResourceDeviceClassPrefix`). Which node has such devices is said by
/// ResourceSlices, which nothing here reads.
#[derive(Clone, Debug, Default)]
pub(super) struct Devices {
    /// What each DeviceClass calls its devices.
    named: BTreeMap<SmolStr, Option<SmolStr>>,
}

/// What every DeviceClass's own extended resource begins with.
const BY_CLASS: &str = "deviceclass.resource.kubernetes.io/";

impl Devices {
    /// A DeviceClass came, changed or went.
    pub(super) fn see(&mut self, class: &SmolStr, spec: &Value, is_there: bool) {
        if is_there {
            let resource = spec.get("extendedResourceName").and_then(Value::as_str);
            self.named.insert(class.clone(), resource.map(SmolStr::from));
        } else {
            self.named.remove(class);
        }
    }

    /// Does a pod ask for devices by the name of an extended resource?
    fn are_asked_for(&self, class: &PodClass) -> bool {
        let is_device = |resource: &SmolStr| {
            resource.starts_with(BY_CLASS) || self.named.values().any(|named| named.as_ref() == Some(resource))
        };
        class.shape.requests.scalars.iter().any(|(resource, _)| is_device(resource))
    }
}

impl KubeScheduler {
    /// Counts a pod that the scheduler sees for the first time under everything that it needs and placement leaves out.
    pub(super) fn count_passed(&mut self, class: ClassId, pod: &ObjectKey) {
        let class = self.library.cluster.class(class);
        self.passed.count(&class.passed_through, pod);
        let by_claim = class.passed_through.contains(&PassedThrough::ResourceClaims);
        if !by_claim && self.devices.are_asked_for(class) {
            self.passed.count(&[PassedThrough::ResourceClaims], pod);
        }
    }
}
