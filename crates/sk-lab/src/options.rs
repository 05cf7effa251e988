//! The options of a control plane: plain data, so that a scenario file can contain them.
//!
//! The default is a complete cluster: etcd, the three Kubernetes components with their own defaults, and KWOK with the
//! testkit's stages. Karpenter starts only if it is asked for.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Stages under which nodes are ready and pods run at once; see the file for the whole of it.
pub const DEFAULT_STAGES: &str = include_str!("../stages/default.yaml");

/// One process of the control plane, in the order in which they need each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Component {
    /// The store.
    #[serde(rename = "etcd")]
    Etcd,
    /// The API server.
    #[serde(rename = "kube-apiserver")]
    ApiServer,
    /// Deployment, ReplicaSet, Job, garbage collection and the other controllers.
    #[serde(rename = "kube-controller-manager")]
    ControllerManager,
    /// The scheduler.
    #[serde(rename = "kube-scheduler")]
    Scheduler,
    /// Plays nodes and the pods on them.
    #[serde(rename = "kwok")]
    Kwok,
    /// Makes nodes for pods that find none, and removes nodes that are empty: Karpenter with its KWOK provider.
    #[serde(rename = "karpenter")]
    Karpenter,
}

impl Component {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Etcd, Self::ApiServer, Self::ControllerManager, Self::Scheduler, Self::Kwok, Self::Karpenter];

    /// The name of its binary, log file and user.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::ApiServer => "kube-apiserver",
            Self::ControllerManager => "kube-controller-manager",
            Self::Scheduler => "kube-scheduler",
            Self::Kwok => "kwok",
            Self::Karpenter => "karpenter",
        }
    }
}

impl fmt::Display for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What to start and how. Chain the methods, or read it from YAML (camelCase keys, unknown ones refused).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Options {
    /// What the cluster and its context are called in kubeconfigs.
    pub name: String,
    /// Components to leave out; etcd and the API server always run.
    pub without: BTreeSet<Component>,
    /// Start Karpenter too, once its kinds are served. It does nothing until somebody makes a NodePool.
    pub karpenter: bool,
    /// Custom resource definitions that are served before the controllers start. The garbage collector looks for new kinds
    /// every 30 s; of one that comes later, an owner may take that long to go.
    pub kinds: Vec<Value>,
    /// A KubeSchedulerConfiguration. Where to find the API server and leader election are filled in.
    pub scheduler: Option<Value>,
    /// What the controller-manager runs, as its `--controllers` flag says it; empty means its default, `*`.
    pub controllers: Vec<String>,
    /// Feature gates for all four of Kubernetes' own components.
    pub feature_gates: BTreeMap<String, bool>,
    /// More flags, appended after the testkit's own, so that they win.
    pub flags: BTreeMap<Component, Vec<String>>,
    /// KWOK's stages, as a YAML stream of Stage objects.
    pub stages: String,
    /// Reach webhooks that name a Service through its EndpointSlice, as `ControlPlane::route_service` makes them.
    pub webhook_routing: bool,
    /// Let pods have a ServiceAccount and a token volume, as clusters do. Off by default: nothing here makes the
    /// `default` ServiceAccount of a namespace before the controller-manager does, and pods would be refused until then.
    pub service_account_admission: bool,
    /// How many seconds each component may take to be ready. A cold start on two cores that several control planes share
    /// takes up to 30; an honest failure shows much earlier, because the component ends.
    pub ready_within_secs: u64,
    /// Ports to try before any free one. One that is taken costs a second start, not the test.
    pub first_ports: Vec<u16>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            name: "testkit".to_owned(),
            without: BTreeSet::new(),
            karpenter: false,
            kinds: Vec::new(),
            scheduler: None,
            controllers: Vec::new(),
            feature_gates: BTreeMap::new(),
            flags: BTreeMap::new(),
            stages: DEFAULT_STAGES.to_owned(),
            webhook_routing: false,
            service_account_admission: false,
            ready_within_secs: 90,
            first_ports: Vec::new(),
        }
    }
}

impl Options {
    /// Only etcd and the API server: enough for what talks to the API and waits for nobody.
    pub fn api_only() -> Self {
        Self::default().without(Component::ControllerManager).without(Component::Scheduler).without(Component::Kwok)
    }

    /// Leaves a component out.
    pub fn without(mut self, component: Component) -> Self {
        self.without.insert(component);
        self
    }

    /// Starts Karpenter too.
    pub fn karpenter(mut self) -> Self {
        self.karpenter = true;
        self
    }

    /// Brings custom resource definitions before the controllers start.
    pub fn kinds(mut self, definitions: impl IntoIterator<Item = Value>) -> Self {
        self.kinds.extend(definitions);
        self
    }

    /// Configures the scheduler with a KubeSchedulerConfiguration.
    pub fn scheduler(mut self, configuration: Value) -> Self {
        self.scheduler = Some(configuration);
        self
    }

    /// Which controllers run: `*` for the default ones, `name` for one, `-name` for all but one.
    pub fn controllers(mut self, controllers: &[&str]) -> Self {
        self.controllers = controllers.iter().map(|name| (*name).to_owned()).collect();
        self
    }

    /// Switches a feature gate.
    pub fn feature_gate(mut self, gate: &str, on: bool) -> Self {
        self.feature_gates.insert(gate.to_owned(), on);
        self
    }

    /// Adds a flag to a component, such as `--v=10`.
    pub fn flag(mut self, component: Component, flag: &str) -> Self {
        self.flags.entry(component).or_default().push(flag.to_owned());
        self
    }

    /// Replaces KWOK's stages.
    pub fn stages(mut self, stages: &str) -> Self {
        stages.clone_into(&mut self.stages);
        self
    }

    /// Lets webhooks be reached through a Service.
    pub fn webhook_routing(mut self) -> Self {
        self.webhook_routing = true;
        self
    }

    /// Gives pods a ServiceAccount and its token, as clusters do.
    pub fn service_account_admission(mut self) -> Self {
        self.service_account_admission = true;
        self
    }

    /// Gives components so many seconds to become ready.
    pub fn ready_within_secs(mut self, seconds: u64) -> Self {
        self.ready_within_secs = seconds;
        self
    }

    /// Calls the cluster so in kubeconfigs.
    pub fn name(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        self
    }

    /// Tries these ports first.
    pub fn first_ports(mut self, ports: &[u16]) -> Self {
        self.first_ports = ports.to_vec();
        self
    }

    /// Is this component to be started?
    pub fn runs(&self, component: Component) -> bool {
        let wanted = component != Component::Karpenter || self.karpenter;
        component <= Component::ApiServer || (wanted && !self.without.contains(&component))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_says_the_same_as_a_chain() {
        let text = "without: [kwok]\ncontrollers: [\"*\", -cronjob]\nfeatureGates: {WatchListClient: false}\n\
                    flags: {kube-scheduler: [--v=4]}\n";
        let read: Options = serde_saphyr::from_str(text).unwrap();
        let chained = Options::default()
            .without(Component::Kwok)
            .controllers(&["*", "-cronjob"])
            .feature_gate("WatchListClient", false)
            .flag(Component::Scheduler, "--v=4");
        assert_eq!(read, chained);
    }

    #[test]
    fn a_misspelt_option_is_refused_by_name() {
        let error = serde_saphyr::from_str::<Options>("featuregates: {}\n").unwrap_err();
        assert!(error.to_string().contains("featuregates"), "{error}");
    }

    #[test]
    fn the_store_and_the_api_server_cannot_be_left_out() {
        let options = Options::api_only().without(Component::Etcd).without(Component::ApiServer);
        let running: Vec<_> = Component::ALL.into_iter().filter(|component| options.runs(*component)).collect();
        assert_eq!(running, [Component::Etcd, Component::ApiServer]);
    }

    #[test]
    fn karpenter_is_there_only_if_it_is_asked_for() {
        assert!(!Options::default().runs(Component::Karpenter));
        assert!(Options::default().karpenter().runs(Component::Karpenter));
        assert!(!Options::default().karpenter().without(Component::Karpenter).runs(Component::Karpenter));
    }
}
