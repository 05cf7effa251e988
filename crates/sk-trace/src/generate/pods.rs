//! Pod templates like those of production clusters: probes, environment, resources, placement.

use serde_json::{Value, json};
use sk_core::Quantity;
use sk_store::trace::{Filling, Ink};

use super::random::Draw;

pub(super) const TEAMS: [&str; 16] = [
    "accounts", "ads", "billing", "catalog", "checkout", "delivery", "fraud", "identity", "ledger", "media", "ml",
    "notify", "payments", "pricing", "search", "support",
];

/// Requests that people write, each about twice the one before.
const CPU: [&str; 11] = ["10m", "25m", "50m", "100m", "200m", "250m", "500m", "1", "2", "4", "8"];
const MEMORY: [&str; 12] =
    ["32Mi", "64Mi", "128Mi", "192Mi", "256Mi", "512Mi", "768Mi", "1Gi", "2Gi", "4Gi", "8Gi", "16Gi"];

const SETTINGS: [&str; 18] = [
    "LOG_LEVEL",
    "HTTP_PORT",
    "DATABASE_HOST",
    "DATABASE_POOL_SIZE",
    "CACHE_URL",
    "QUEUE_NAME",
    "FEATURE_FLAGS",
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_SERVICE_NAME",
    "REQUEST_TIMEOUT_MS",
    "MAX_CONNECTIONS",
    "RETRY_LIMIT",
    "REGION",
    "SHARD_COUNT",
    "JAVA_TOOL_OPTIONS",
    "GOMAXPROCS",
    "METRICS_PREFIX",
    "RELEASE_CHANNEL",
];

/// What a container asks for.
#[derive(Clone, Debug)]
pub(super) struct Size {
    cpu: &'static str,
    memory: &'static str,
    memory_limit: &'static str,
}

impl Size {
    /// A common size. Memory follows CPU, with a step or two of freedom.
    pub(super) fn draw(random: &mut Draw) -> Self {
        let cpu = random.middle(CPU.len());
        let memory = (cpu + random.below(4) as usize).saturating_sub(1).min(MEMORY.len() - 1);
        let limit = (memory + random.below(2) as usize).min(MEMORY.len() - 1);
        Self { cpu: CPU[cpu], memory: MEMORY[memory], memory_limit: MEMORY[limit] }
    }

    /// What it asks for, in numbers.
    pub(super) fn requests(&self) -> Requests {
        Requests::parse(self.cpu, self.memory)
    }

    /// Fills the three holes of [`resources`].
    pub(super) fn fill(&self, filling: &mut Filling) {
        [self.cpu, self.memory, self.memory_limit].into_iter().for_each(|text| filling.text(text));
    }
}

/// What a pod asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Requests {
    pub(super) cpu_milli: i64,
    pub(super) memory: i64,
}

impl Requests {
    /// Of quantities that this crate has written.
    pub(super) fn parse(cpu: &str, memory: &str) -> Self {
        let quantity = |text: &str| text.parse::<Quantity>().unwrap_or_default();
        Self { cpu_milli: quantity(cpu).milli_value(), memory: quantity(memory).value() }
    }

    /// Of the first container of a pod template.
    pub(super) fn of_template(template: &Value) -> Self {
        let text = |resource: &str| {
            let place = format!("/spec/containers/0/resources/requests/{resource}");
            template.pointer(&place).and_then(Value::as_str).unwrap_or_default()
        };
        Self::parse(text("cpu"), text("memory"))
    }

    pub(super) fn plus(self, other: Self) -> Self {
        Self { cpu_milli: self.cpu_milli + other.cpu_milli, memory: self.memory + other.memory }
    }

    pub(super) fn minus(self, other: Self) -> Self {
        Self { cpu_milli: self.cpu_milli - other.cpu_milli, memory: self.memory - other.memory }
    }
}

/// What a container asks for, from three holes: CPU, memory, limit of memory.
pub(super) fn resources(ink: Ink<'_>, hole: usize) -> Value {
    json!({"limits": {"memory": ink.text(hole + 2)}, "requests": {"cpu": ink.text(hole), "memory": ink.text(hole + 1)}})
}

/// Some settings of a container.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    first: usize,
    /// How many.
    pub(super) count: usize,
    /// Their values, [`SETTING_DIGITS`] each.
    values: String,
}

const SETTING_DIGITS: usize = 8;

impl Settings {
    pub(super) fn draw(random: &mut Draw, most: u64) -> Self {
        let count = (random.between(most / 2, most) as usize).min(SETTINGS.len());
        let first = random.below(SETTINGS.len() as u64) as usize;
        Self { first, count, values: random.hex(count * SETTING_DIGITS) }
    }

    /// Fills the holes of [`env`]: name and value of each.
    pub(super) fn fill(&self, filling: &mut Filling) {
        for number in 0..self.count {
            filling.text(SETTINGS[(self.first + number) % SETTINGS.len()]);
            filling.text(&self.values[number * SETTING_DIGITS..][..SETTING_DIGITS]);
        }
    }
}

/// So many settings of a container, from two holes each, and where it runs.
pub(super) fn env(ink: Ink<'_>, hole: usize, count: usize) -> Vec<Value> {
    let from_field = |name: &str, path: &str| json!({"name": name, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}});
    let setting = |number| json!({"name": ink.text(hole + 2 * number), "value": ink.text(hole + 2 * number + 1)});
    let mut env: Vec<Value> = (0..count).map(setting).collect();
    env.push(from_field("POD_NAME", "metadata.name"));
    env.push(from_field("POD_IP", "status.podIP"));
    env
}

/// A health check over HTTP.
pub(super) fn probe(path: &str, period_s: u64) -> Value {
    json!({"failureThreshold": 3, "httpGet": {"path": path, "port": "http", "scheme": "HTTP"},
        "periodSeconds": period_s, "successThreshold": 1, "timeoutSeconds": 1})
}

/// A template with what the API server fills into each.
pub(super) fn template(metadata: Value, container: Value, restart_policy: &str) -> Value {
    let spec = json!({"containers": [], "dnsPolicy": "ClusterFirst", "restartPolicy": restart_policy,
        "schedulerName": "default-scheduler", "securityContext": {"runAsNonRoot": true},
        "terminationGracePeriodSeconds": 30});
    let mut template = json!({"metadata": null, "spec": null});
    put(&mut template, "/metadata", metadata);
    put(&mut template, "/spec", spec);
    put(&mut template, "/spec/containers", Value::Array(vec![container]));
    template
}

/// Puts `part` where the empty place for it is. `json!` would copy it instead, at every level that it is handed through.
pub(super) fn put(object: &mut Value, place: &str, part: Value) {
    *object.pointer_mut(place).expect("the place was written just before") = part;
}

/// The spec of the pods of a template as admission leaves it: what v2 traces hash.
pub(super) fn admitted(template: &Value) -> Value {
    let mut spec = template["spec"].clone();
    let default_toleration =
        |key: &str| json!({"effect": "NoExecute", "key": key, "operator": "Exists", "tolerationSeconds": 300});
    if let Some(fields) = spec.as_object_mut() {
        fields.insert("enableServiceLinks".into(), true.into());
        fields.insert("preemptionPolicy".into(), "PreemptLowerPriority".into());
        fields.insert("priority".into(), 0.into());
        let tolerations = fields.entry("tolerations").or_insert_with(|| json!([]));
        if let Some(tolerations) = tolerations.as_array_mut() {
            tolerations.push(default_toleration("node.kubernetes.io/not-ready"));
            tolerations.push(default_toleration("node.kubernetes.io/unreachable"));
        }
    }
    spec
}

/// The version that a service has after so many rollouts.
pub(super) fn version(revision: u64) -> String {
    format!("{}.{}.{}", 1 + revision / 100, revision / 10 % 10, revision % 10)
}
