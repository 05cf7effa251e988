//! One service: its Deployment and the objects that belong to it. A service depends only on the seed and its number; the
//! versions of its Deployment are made by filling a stencil, because there are very many.

use serde_json::{Value, json};
use sk_core::{Gvk, ObjectKey, ObjectRef, SimTime, SmolStr, TemplateId};
use sk_store::trace::{Filling, Ink, Labels};

use super::platform;
use super::pods::{self, Requests, Settings, Size, TEAMS};
use super::random::{Draw, busy};
use super::spec::GenerateSpec;

const PARTS: [&str; 14] = [
    "api", "backend", "bff", "cache", "consumer", "feed", "frontend", "gateway", "graphql", "indexer", "proxy",
    "router", "sync", "worker",
];

/// A load that moves less than this share (in tenths) leaves an autoscaler alone (the HPA's tolerance).
const TOLERANCE_TENTHS: i64 = 1;

const DEPLOYMENT: Gvk = Gvk::new_static("apps", "v1", "Deployment");

/// The holes of a Deployment: its texts, and behind them those of its resources and settings.
mod hole {
    pub(super) const NAME: usize = 0;
    pub(super) const NAMESPACE: usize = 1;
    pub(super) const TEAM: usize = 2;
    pub(super) const PART: usize = 3;
    pub(super) const VERSION: usize = 4;
    pub(super) const CHART: usize = 5;
    pub(super) const CHECKSUM: usize = 6;
    pub(super) const PORT: usize = 7;
    pub(super) const RESOURCES: usize = 8;
    pub(super) const SETTINGS: usize = 11;
    /// Of its numbers.
    pub(super) const REPLICAS: usize = 0;
    pub(super) const PORT_NUMBER: usize = 1;
}

/// What two Deployments share that differ in texts and numbers alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Shape {
    settings: usize,
    companions: bool,
    spread_over_zones: bool,
    is_critical: bool,
}

/// What does not change about a service: about 400 bytes.
#[derive(Clone, Debug)]
pub(super) struct Service {
    id: u64,
    name: String,
    namespace: String,
    team: &'static str,
    part: &'static str,
    size: Size,
    settings: Settings,
    port: u64,
    companions: bool,
    spread_over_zones: bool,
    is_critical: bool,
    has_budget: bool,
    /// Replicas at its busiest time.
    peak_replicas: u64,
    /// How much of the load does not follow the day, in hundredths.
    steady: i64,
    peak_hour: u8,
    /// Whether an autoscaler looks after it.
    pub(super) autoscaled: bool,
    draw: Draw,
}

/// What a Deployment is drawn with. Scaling, which is most of what happens, changes none of it but a number.
#[derive(Debug)]
pub(super) struct Drawn {
    revision: u64,
    config: u64,
    filling: Filling,
    pub(super) labels: Labels,
    /// What its ReplicaSet's name ends with.
    pub(super) replica_set: SmolStr,
}

impl Drawn {
    /// Is it of this version, but for the replicas?
    pub(super) fn is_of(&self, version: Version) -> bool {
        (self.revision, self.config) == (version.revision, version.config)
    }

    /// What fills the holes with so many replicas.
    pub(super) fn scaled_to(&mut self, replicas: u64) -> &Filling {
        self.filling.set_number(hole::REPLICAS, replicas);
        &self.filling
    }
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
        let namespace = namespace(spec, team, draw.below(u64::from(spec.namespaces)));
        let size = Size::draw(&mut draw);
        let port = 8_000 + draw.below(1_000);
        let spread_over_zones = draw.chance(0.5);
        let steady = draw.between(5, 45) as i64;
        let peak_hour = (u64::from(spec.peak_hour) + 22 + draw.below(5)).rem_euclid(24) as u8;
        let autoscaled = draw.chance(spec.services.autoscaled);
        Self {
            id,
            name: format!("{team}-{part}-{id}"),
            namespace,
            team,
            part,
            size,
            // From here on two things are drawn beside each other: this, and what it is at first.
            settings: Settings::draw(&mut draw.clone(), 8),
            port,
            companions: spec.services.companions,
            spread_over_zones,
            is_critical: platform::is_critical(spec, id),
            has_budget: platform::has_budget(spec, id),
            peak_replicas,
            steady,
            peak_hour,
            autoscaled,
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

    /// The first version of its Deployment.
    pub(super) fn first(&self, at: SimTime) -> Version {
        let mut random = self.draw.clone();
        let revision = random.below(300);
        Version { replicas: self.wanted(at, 0, &mut random), revision, config: random.below(20) }
    }

    /// What comes with its Deployment, in the order in which a chart creates it; the Deployment is last.
    pub(super) fn others(&self, version: Version) -> Vec<Value> {
        let mut others = Vec::new();
        if self.companions {
            others.extend([self.service_account(), self.config_map(version.config), self.service()]);
        }
        if self.has_budget {
            others.push(platform::budget(&self.name, &self.namespace, &json!({"minAvailable": "50%"})));
        }
        others
    }

    /// What its Deployment is called.
    pub(super) fn reference(&self) -> ObjectRef {
        ObjectRef::new(DEPLOYMENT, ObjectKey::namespaced(self.namespace.as_str(), self.name.as_str()))
    }

    /// What its Deployment shares with others.
    pub(super) fn shape(&self) -> Shape {
        let Self { companions, spread_over_zones, is_critical, .. } = *self;
        Shape { settings: self.settings.count, companions, spread_over_zones, is_critical }
    }

    /// What its Deployment is drawn with, except for the replicas.
    pub(super) fn drawn(&self, version: Version) -> Drawn {
        let mut filling = Filling::default();
        self.fill(version, &mut filling);
        let Version { revision, config, .. } = version;
        let replica_set = Draw::new(self.id, &format!("replica set {revision} {config}")).letters(10).into();
        Drawn { revision, config, filling, labels: self.labels(version).into(), replica_set }
    }

    /// What one of its pods asks for.
    pub(super) fn requests(&self) -> Requests {
        self.size.requests()
    }

    /// The template of its pods.
    pub(super) fn template(&self, drawn: &Drawn) -> TemplateId {
        let path = "/spec/template".parse().expect("it is a pointer");
        TemplateId::of(path, &template(self.shape(), Ink::Real(&drawn.filling)))
    }

    fn fill(&self, version: Version, filling: &mut Filling) {
        [&self.name, &self.namespace, self.team, self.part].into_iter().for_each(|text| filling.text(text));
        filling.text(&pods::version(version.revision));
        filling.text(&self.chart());
        filling.text(&Draw::new(version.config, &self.name).hex(64));
        filling.text(&self.port.to_string());
        self.size.fill(filling);
        self.settings.fill(filling);
        filling.number(version.replicas);
        filling.number(self.port);
    }

    /// The labels of its Deployment, as charts give them.
    fn labels(&self, version: Version) -> [(SmolStr, SmolStr); 7] {
        LABELS.map(|key| {
            let value = match key {
                COMPONENT => self.part.into(),
                INSTANCE => format!("{}-prod", self.name).into(),
                MANAGED_BY => "Helm".into(),
                NAME => self.name.as_str().into(),
                VERSION => pods::version(version.revision).into(),
                CHART => self.chart().into(),
                _ => self.team.into(),
            };
            (key.into(), value)
        })
    }

    fn chart(&self) -> String {
        format!("{}-4.{}.0", self.part, self.name.len() % 7)
    }

    pub(super) fn config_map(&self, config: u64) -> Value {
        let mut random = Draw::new(config, &format!("config of {}", self.id));
        let data = format!("log: info\nshards: {}\nrelease: {}\n", 1 + random.below(16), random.hex(16));
        json!({"apiVersion": "v1", "data": {"service.yaml": data}, "kind": "ConfigMap",
            "metadata": self.metadata(&config_name(&self.name))})
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

const COMPONENT: &str = "app.kubernetes.io/component";
const INSTANCE: &str = "app.kubernetes.io/instance";
const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
const NAME: &str = "app.kubernetes.io/name";
const VERSION: &str = "app.kubernetes.io/version";
const CHART: &str = "helm.sh/chart";
const LABELS: [&str; 7] = [COMPONENT, INSTANCE, MANAGED_BY, NAME, VERSION, CHART, "team"];

/// A Deployment of this shape.
pub(super) fn deployment(shape: Shape, ink: Ink<'_>) -> Value {
    let (name, namespace, team) = (ink.text(hole::NAME), ink.text(hole::NAMESPACE), ink.text(hole::TEAM));
    let labels = json!({COMPONENT: ink.text(hole::PART), INSTANCE: format!("{name}-prod"), MANAGED_BY: "Helm",
        NAME: name, VERSION: ink.text(hole::VERSION), CHART: ink.text(hole::CHART), "team": team});
    let mut object = json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {
            "annotations": {"example.com/owner": format!("{team}@example.com"),
                "meta.helm.sh/release-name": name, "meta.helm.sh/release-namespace": namespace},
            "labels": labels, "name": name, "namespace": namespace},
        "spec": {"progressDeadlineSeconds": 600, "replicas": ink.number(hole::REPLICAS), "revisionHistoryLimit": 10,
            "selector": {"matchLabels": {"app.kubernetes.io/name": name}},
            "strategy": {"rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}, "type": "RollingUpdate"},
            "template": null}});
    pods::put(&mut object, "/spec/template", template(shape, ink));
    object
}

fn template(shape: Shape, ink: Ink<'_>) -> Value {
    let name = ink.text(hole::NAME);
    let labels = json!({"app.kubernetes.io/component": ink.text(hole::PART), "app.kubernetes.io/name": name,
        "app.kubernetes.io/version": ink.text(hole::VERSION), "team": ink.text(hole::TEAM)});
    let annotations = json!({"checksum/config": ink.text(hole::CHECKSUM), "prometheus.io/port": ink.text(hole::PORT),
        "prometheus.io/scrape": "true"});
    let metadata = json!({"annotations": annotations, "labels": labels});
    let mut template = pods::template(metadata, container(shape, ink), "Always");
    let spec = &mut template["spec"];
    if shape.companions {
        spec["serviceAccount"] = name.as_str().into();
        spec["serviceAccountName"] = name.as_str().into();
        spec["volumes"] = json!([{"configMap": {"defaultMode": 420, "name": config_name(&name)}, "name": "config"}]);
    }
    if shape.is_critical {
        spec["priorityClassName"] = platform::CRITICAL.into();
    }
    if shape.spread_over_zones {
        let selector = json!({"matchLabels": {"app.kubernetes.io/name": name}});
        spec["topologySpreadConstraints"] = json!([{"labelSelector": selector, "maxSkew": 1,
            "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "ScheduleAnyway"}]);
    }
    template
}

fn container(shape: Shape, ink: Ink<'_>) -> Value {
    let (team, part, version) = (ink.text(hole::TEAM), ink.text(hole::PART), ink.text(hole::VERSION));
    let mut container = json!({"env": pods::env(ink, hole::SETTINGS, shape.settings),
        "image": format!("registry.example.com/{team}/{part}:{version}"), "imagePullPolicy": "IfNotPresent",
        "livenessProbe": pods::probe("/healthz", 10), "name": part,
        "ports": [{"containerPort": ink.number(hole::PORT_NUMBER), "name": "http", "protocol": "TCP"}],
        "readinessProbe": pods::probe("/ready", 5), "resources": pods::resources(ink, hole::RESOURCES),
        "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"});
    if shape.companions {
        container["volumeMounts"] = json!([{"mountPath": "/etc/config", "name": "config", "readOnly": true}]);
    }
    container
}

fn config_name(service: &str) -> String {
    format!("{service}-config")
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
