//! The rest of a generated cluster: StatefulSets with claims, DaemonSets, priority classes, disruption budgets and nodes.
//!
//! The shares follow published figures about production clusters where there are any, and are our own choice otherwise;
//! docs/trace-format.md has the table. Everything depends only on the seed and a number.

use serde_json::{Value, json};
use sk_core::{SimTime, SmolStr};

use super::pods::{Requests, TEAMS};
use super::random::Draw;
use super::service::namespace;
use super::spec::GenerateSpec;

/// The class of what must not wait for others.
pub(super) const CRITICAL: &str = "business-critical";
/// The share of services and StatefulSets that are critical, in hundredths.
const CRITICAL_PERCENT: u64 = 20;
/// The label of a machine that says what it is for.
const POOL: &str = "example.com/pool";
/// One machine in so many is for StatefulSets alone, and tainted so.
const STATEFUL_EVERY: u32 = 6;

const STORES: [&str; 8] =
    ["postgres", "redis", "kafka", "elasticsearch", "cassandra", "rabbitmq", "minio", "prometheus"];
const DAEMONS: [&str; 8] =
    ["node-exporter", "log-shipper", "network", "dns-cache", "storage-driver", "security-agent", "proxy", "profiler"];
const CLAIM_SIZES: [&str; 6] = ["8Gi", "20Gi", "50Gi", "100Gi", "200Gi", "500Gi"];

/// Is the service of this number critical? Drawn apart from all else, so that a specification without a platform makes what
/// it always made.
pub(super) fn is_critical(spec: &GenerateSpec, id: u64) -> bool {
    spec.platform.is_some() && Draw::new(spec.seed, &format!("class of service {id}")).below(100) < CRITICAL_PERCENT
}

/// Has the service of this number a disruption budget?
pub(super) fn has_budget(spec: &GenerateSpec, id: u64) -> bool {
    spec.platform
        .as_ref()
        .is_some_and(|platform| Draw::new(spec.seed, &format!("budget of service {id}")).chance(platform.budgets))
}

/// A budget that half of the pods with this label must be left of.
pub(super) fn budget(name: &str, namespace: &str, bound: &Value) -> Value {
    let mut object = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"selector": {"matchLabels": {"app.kubernetes.io/name": name}}}});
    let bounds = bound.as_object().cloned().unwrap_or_default();
    for (field, value) in bounds {
        object["spec"][field] = value;
    }
    object
}

/// Everything that is there from the beginning, owners after what they need.
pub(super) fn objects(spec: &GenerateSpec) -> Vec<Value> {
    let Some(platform) = &spec.platform else { return Vec::new() };
    let mut objects = vec![json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 100_000,
        "metadata": {"name": CRITICAL}, "description": "goes before everything else", "globalDefault": false,
        "preemptionPolicy": "PreemptLowerPriority"})];
    objects.extend((0..platform.daemons).map(|id| daemon_set(spec, id)));
    objects.extend((0..platform.stateful).flat_map(|id| stateful_set(spec, id)));
    objects
}

fn daemon_set(spec: &GenerateSpec, id: u32) -> Value {
    let mut draw = Draw::new(spec.seed, &format!("daemon set {id}"));
    let kind = DAEMONS[id as usize % DAEMONS.len()];
    let name = if (id as usize) < DAEMONS.len() { kind.to_owned() } else { format!("{kind}-{id}") };
    let resources = json!({"limits": {"memory": "256Mi"},
        "requests": {"cpu": *draw.pick(&["10m", "50m", "100m", "200m"]), "memory": *draw.pick(&["32Mi", "64Mi", "128Mi"])}});
    let labels = json!({"app.kubernetes.io/name": name});
    json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": name, "namespace": "kube-system", "labels": labels},
        "spec": {"revisionHistoryLimit": 10, "selector": {"matchLabels": labels},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
            "template": {"metadata": {"labels": labels}, "spec": {
                "containers": [{"name": "main", "image": format!("registry.example.com/platform/{kind}:1.{}.0", draw.below(20)),
                    "imagePullPolicy": "IfNotPresent", "resources": resources}],
                "priorityClassName": "system-node-critical", "restartPolicy": "Always",
                "terminationGracePeriodSeconds": 30, "tolerations": [{"operator": "Exists"}]}}}})
}

/// A StatefulSet with its headless Service and, mostly, its budget.
fn stateful_set(spec: &GenerateSpec, id: u32) -> Vec<Value> {
    let mut draw = Draw::new(spec.seed, &format!("stateful set {id}"));
    let (team, store) = (*draw.pick(&TEAMS), *draw.pick(&STORES));
    let (name, namespace) =
        (format!("{team}-{store}-{id}"), namespace(spec, team, draw.below(u64::from(spec.namespaces))));
    let replicas = *draw.pick(&[1, 1, 2, 3, 3, 3, 5]);
    let labels = json!({"app.kubernetes.io/name": name, "team": team});
    let metadata = json!({"labels": labels, "name": name, "namespace": namespace});
    let term = json!({"labelSelector": {"matchLabels": {"app.kubernetes.io/name": name}}, "topologyKey": "kubernetes.io/hostname"});
    let apart = match draw.chance(0.3) {
        true => json!({"requiredDuringSchedulingIgnoredDuringExecution": [term]}),
        false => json!({"preferredDuringSchedulingIgnoredDuringExecution": [{"podAffinityTerm": term, "weight": 100}]}),
    };
    let mut pod = json!({"affinity": {"podAntiAffinity": apart},
        "containers": [{"name": store, "image": format!("registry.example.com/platform/{store}:{}", draw.between(1, 16)),
            "imagePullPolicy": "IfNotPresent", "volumeMounts": [{"mountPath": "/data", "name": "data"}],
            "resources": {"limits": {"memory": "8Gi"}, "requests": {
                "cpu": *draw.pick(&["250m", "500m", "1", "2"]), "memory": *draw.pick(&["1Gi", "2Gi", "4Gi", "8Gi"])}}}],
        "restartPolicy": "Always", "terminationGracePeriodSeconds": 60});
    if draw.chance(0.5) {
        pod["nodeSelector"] = json!({POOL: "stateful"});
        pod["tolerations"] =
            json!([{"effect": "NoSchedule", "key": "dedicated", "operator": "Equal", "value": "stateful"}]);
    }
    if draw.below(100) < CRITICAL_PERCENT {
        pod["priorityClassName"] = CRITICAL.into();
    }
    let claim = json!({"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"], "volumeMode": "Filesystem",
        "resources": {"requests": {"storage": *draw.pick(&CLAIM_SIZES)}}, "storageClassName": "standard"}});
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"clusterIP": "None",
        "ports": [{"name": "tcp", "port": 5432, "protocol": "TCP"}], "selector": {"app.kubernetes.io/name": name},
        "type": "ClusterIP"}});
    let set = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata,
        "spec": {"persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
            "podManagementPolicy": if draw.chance(0.3) { "Parallel" } else { "OrderedReady" }, "replicas": replicas,
            "revisionHistoryLimit": 10, "selector": {"matchLabels": {"app.kubernetes.io/name": name}}, "serviceName": name,
            "template": {"metadata": {"labels": labels}, "spec": pod},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
            "volumeClaimTemplates": [claim]}});
    let mut made = vec![service];
    if replicas > 1 {
        made.push(budget(&name, &namespace, &json!({"maxUnavailable": 1})));
    }
    made.push(set);
    made
}

/// Which pods a machine takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pool {
    /// All that tolerate nothing.
    General,
    /// Those that tolerate and select it.
    Stateful,
}

impl Pool {
    /// Of a machine that is there from the beginning.
    pub(super) fn of_machine(number: u32) -> Self {
        if number % STATEFUL_EVERY == STATEFUL_EVERY - 1 { Self::Stateful } else { Self::General }
    }
}

/// Zones of the region; machines are in them in turn.
pub(super) const ZONES: usize = 3;
/// What pods can have of each machine, as [`node`] says it.
pub(super) const ALLOCATABLE: Requests = Requests { cpu_milli: 15_800, memory: 60 << 30 };
pub(super) const ALLOCATABLE_PODS: u32 = 110;

/// The zone of a machine.
pub(super) fn zone(number: u32) -> usize {
    number as usize % ZONES
}

/// What a machine and its successors are called.
pub(super) fn machine_name(number: u32, generation: u32) -> SmolStr {
    let suffix = if generation == 0 { String::new() } else { format!("-{generation}") };
    format!("node-{number}{suffix}").into()
}

/// A machine's Node.
pub(super) fn node(name: &str, (number, pool): (u32, Pool), created: SimTime, is_cordoned: bool) -> Value {
    let zone = ["a", "b", "c"][zone(number)];
    let label = match pool {
        Pool::General => "general",
        Pool::Stateful => "stateful",
    };
    let mut object = json!({"apiVersion": "v1", "kind": "Node",
        "metadata": {"creationTimestamp": created.to_rfc3339_secs(), "name": name, "labels": {"kubernetes.io/arch": "amd64", "kubernetes.io/hostname": name,
            "kubernetes.io/os": "linux", "node.kubernetes.io/instance-type": "general-16",
            "topology.kubernetes.io/region": "region-1", "topology.kubernetes.io/zone": format!("region-1{zone}"), POOL: label}},
        "spec": {},
        "status": {"allocatable": {"cpu": "15800m", "memory": "60Gi", "pods": "110"},
            "capacity": {"cpu": "16", "memory": "64Gi", "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True"}]}});
    let dedicated =
        (pool == Pool::Stateful).then(|| json!({"effect": "NoSchedule", "key": "dedicated", "value": "stateful"}));
    let cordon = is_cordoned.then(|| json!({"effect": "NoSchedule", "key": "node.kubernetes.io/unschedulable"}));
    let taints: Vec<Value> = dedicated.into_iter().chain(cordon).collect();
    if !taints.is_empty() {
        object["spec"]["taints"] = taints.into();
    }
    if is_cordoned {
        object["spec"]["unschedulable"] = true.into();
    }
    object
}
