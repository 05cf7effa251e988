//! One service: its Deployment and what comes with it. What a service is depends on seed and number alone, so it is
//! drawn anew for each event instead of being kept.

use serde_json::{Value, json};
use sk_core::SimTime;

use super::pods::{self, Size, TEAMS};
use super::random::{Draw, busy};
use super::spec::GenerateSpec;

const PARTS: [&str; 14] = [
    "api", "backend", "bff", "cache", "consumer", "feed", "frontend", "gateway", "graphql", "indexer", "proxy",
    "router", "sync", "worker",
];

/// A load that moves less than this share (in tenths) leaves an autoscaler alone (the HPA's tolerance).
const TOLERANCE_TENTHS: i64 = 1;

/// What does not change about a service.
pub(super) struct Service {
    id: u64,
    name: String,
    namespace: String,
    team: &'static str,
    part: &'static str,
    size: Size,
    port: u64,
    companions: bool,
    spread_over_zones: bool,
    /// Replicas at its busiest time.
    peak_replicas: u64,
    /// How much of the load does not follow the day, in hundredths.
    steady: i64,
    peak_hour: u8,
    /// Whether an autoscaler looks after it.
    pub(super) autoscaled: bool,
    draw: Draw,
}

/// What changes about a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Version {
    pub(super) replicas: u64,
    pub(super) revision: u64,
    pub(super) config: u64,
}

impl Service {
    pub(super) fn new(spec: &GenerateSpec, id: u64) -> Self {
        let mut draw = Draw::new(spec.seed, &format!("service {id}"));
        let (team, part) = (*draw.pick(&TEAMS), *draw.pick(&PARTS));
        // Few services are large: the product of two draws is mostly small.
        let peak_replicas = 1 + draw.below(9) * draw.below(9) * (1 + u64::from(draw.chance(0.05)) * 3) / 3;
        Self {
            id,
            name: format!("{team}-{part}-{id}"),
            namespace: namespace(spec, team, draw.below(u64::from(spec.namespaces))),
            team,
            part,
            size: Size::draw(&mut draw),
            port: 8_000 + draw.below(1_000),
            companions: spec.services.companions,
            spread_over_zones: draw.chance(0.5),
            peak_replicas,
            steady: draw.between(5, 45) as i64,
            peak_hour: (u64::from(spec.peak_hour) + 22 + draw.below(5)).rem_euclid(24) as u8,
            autoscaled: draw.chance(spec.services.autoscaled),
            draw,
        }
    }

    /// How many replicas the load wants at that moment, for one who has `now` of them.
    pub(super) fn wanted(&self, at: SimTime, now: u64, random: &mut Draw) -> u64 {
        let share = self.steady * 100 + (100 - self.steady) * busy(at, self.peak_hour) / 100;
        // A tenth either way, for the noise of the day.
        let noisy = share * (90 + random.below(21) as i64) / 100;
        let milli = self.peak_replicas as i64 * noisy / 10;
        let now_milli = now as i64 * 1_000;
        if (milli - now_milli).abs() * 10 <= now_milli * TOLERANCE_TENTHS {
            return now;
        }
        (milli as u64).div_ceil(1_000).max(1)
    }

    /// What it is when it is first seen.
    pub(super) fn first(&self, at: SimTime) -> Version {
        let mut random = self.draw.clone();
        let revision = random.below(300);
        Version { replicas: self.wanted(at, 0, &mut random), revision, config: random.below(20) }
    }

    /// Everything it consists of, in the order in which a chart creates it; the Deployment is last.
    pub(super) fn objects(&self, version: Version) -> Vec<Value> {
        let mut objects = Vec::new();
        if self.companions {
            objects.push(self.service_account());
            objects.push(self.config_map(version.config));
            objects.push(self.service());
        }
        objects.push(self.deployment(version));
        objects
    }

    pub(super) fn deployment(&self, version: Version) -> Value {
        let labels = pods::labels(&self.name, self.team, self.part, version.revision);
        let mut object = json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {
                "annotations": {"example.com/owner": format!("{}@example.com", self.team),
                    "meta.helm.sh/release-name": self.name, "meta.helm.sh/release-namespace": self.namespace},
                "labels": labels, "name": self.name, "namespace": self.namespace},
            "spec": {"progressDeadlineSeconds": 600, "replicas": version.replicas, "revisionHistoryLimit": 10,
                "selector": {"matchLabels": {"app.kubernetes.io/name": self.name}},
                "strategy": {"rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}, "type": "RollingUpdate"},
                "template": null}});
        pods::put(&mut object, "/spec/template", self.template(version));
        object
    }

    fn template(&self, version: Version) -> Value {
        let labels = json!({"app.kubernetes.io/component": self.part, "app.kubernetes.io/name": self.name,
            "app.kubernetes.io/version": pods::version(version.revision), "team": self.team});
        let checksum = Draw::new(version.config, &self.name).hex(64);
        let annotations = json!({"checksum/config": checksum, "prometheus.io/port": self.port.to_string(),
            "prometheus.io/scrape": "true"});
        let metadata = json!({"annotations": annotations, "labels": labels});
        let mut template = pods::template(metadata, self.container(version), "Always");
        let spec = &mut template["spec"];
        if self.companions {
            spec["serviceAccount"] = self.name.as_str().into();
            spec["serviceAccountName"] = self.name.as_str().into();
            spec["volumes"] =
                json!([{"configMap": {"defaultMode": 420, "name": self.config_name()}, "name": "config"}]);
        }
        if self.spread_over_zones {
            let selector = json!({"matchLabels": {"app.kubernetes.io/name": self.name}});
            spec["topologySpreadConstraints"] = json!([{"labelSelector": selector, "maxSkew": 1,
                "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "ScheduleAnyway"}]);
        }
        template
    }

    fn container(&self, version: Version) -> Value {
        let image = format!("registry.example.com/{}/{}:{}", self.team, self.part, pods::version(version.revision));
        let mut container = json!({"env": pods::settings(&mut self.draw.clone(), 8), "image": image,
            "imagePullPolicy": "IfNotPresent", "livenessProbe": pods::probe("/healthz", 10), "name": self.part,
            "ports": [{"containerPort": self.port, "name": "http", "protocol": "TCP"}],
            "readinessProbe": pods::probe("/ready", 5), "resources": self.size.to_json(),
            "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"});
        if self.companions {
            container["volumeMounts"] = json!([{"mountPath": "/etc/config", "name": "config", "readOnly": true}]);
        }
        container
    }

    fn config_name(&self) -> String {
        format!("{}-config", self.name)
    }

    pub(super) fn config_map(&self, config: u64) -> Value {
        let mut random = Draw::new(config, &format!("config of {}", self.id));
        let data = format!("log: info\nshards: {}\nrelease: {}\n", 1 + random.below(16), random.hex(16));
        json!({"apiVersion": "v1", "data": {"service.yaml": data}, "kind": "ConfigMap",
            "metadata": self.metadata(&self.config_name())})
    }

    fn service(&self) -> Value {
        json!({"apiVersion": "v1", "kind": "Service", "metadata": self.metadata(&self.name),
            "spec": {"internalTrafficPolicy": "Cluster",
                "ports": [{"name": "http", "port": 80, "protocol": "TCP", "targetPort": "http"}],
                "selector": {"app.kubernetes.io/name": self.name}, "sessionAffinity": "None", "type": "ClusterIP"}})
    }

    fn service_account(&self) -> Value {
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": self.metadata(&self.name)})
    }

    fn metadata(&self, name: &str) -> Value {
        json!({"annotations": {}, "labels": {"app.kubernetes.io/name": self.name, "team": self.team}, "name": name,
            "namespace": self.namespace})
    }
}

/// One of the namespaces: a team's name while there are enough teams, then numbered.
pub(super) fn namespace(spec: &GenerateSpec, team: &str, draw: u64) -> String {
    let teams = TEAMS.len() as u64;
    let round = draw / teams;
    match (u64::from(spec.namespaces) >= teams, round) {
        (false, _) => TEAMS[(draw % teams) as usize].to_owned(),
        (true, 0) => team.to_owned(),
        (true, round) => format!("{team}-{}", round + 1),
    }
}
