//! The command line of each component: the flags that make a control plane out of a few processes on one machine.

use std::ffi::OsString;
use std::path::Path;

use crate::folder::Folder;
use crate::options::{Component, Options};
use crate::ports::Ports;

/// The annotation by which KWOK knows its nodes.
const KWOK_NODE_ANNOTATION: (&str, &str) = ("kwok.x-k8s.io/node", "fake");

/// The arguments with which a component is started.
pub(crate) fn arguments(component: Component, options: &Options, folder: &Folder, ports: &Ports) -> Vec<String> {
    let mut arguments = match component {
        Component::Etcd => etcd(folder, ports),
        Component::ApiServer => api_server(options, folder, ports),
        Component::ControllerManager => controller_manager(options, folder, ports),
        Component::Scheduler => scheduler(folder, ports),
        Component::Kwok => kwok(folder, ports),
        Component::Karpenter => karpenter(ports),
    };
    let takes_gates = !matches!(component, Component::Etcd | Component::Kwok | Component::Karpenter);
    if takes_gates && !options.feature_gates.is_empty() {
        let gates: Vec<_> = options.feature_gates.iter().map(|(gate, on)| format!("{gate}={on}")).collect();
        arguments.push(format!("--feature-gates={}", gates.join(",")));
    }
    arguments.extend(options.flags.get(&component).into_iter().flatten().cloned());
    arguments
}

/// The environment variables of a component, for settings without a flag.
pub(crate) fn environment(component: Component, folder: &Folder) -> Vec<(OsString, OsString)> {
    match component {
        // It would otherwise look for configuration in the user's home.
        Component::Kwok => vec![("KWOK_WORKDIR".into(), folder.path("kwok").into())],
        Component::Karpenter => vec![("KUBECONFIG".into(), folder.kubeconfig(component.name()).into())],
        _ => Vec::new(),
    }
}

fn etcd(folder: &Folder, ports: &Ports) -> Vec<String> {
    let client = format!("http://127.0.0.1:{}", ports.etcd);
    let peer = format!("http://127.0.0.1:{}", ports.etcd_peer);
    vec![
        "--name=simkube".into(),
        flag("data-dir", &folder.path("etcd")),
        format!("--listen-client-urls={client}"),
        format!("--advertise-client-urls={client}"),
        format!("--listen-peer-urls={peer}"),
        format!("--initial-advertise-peer-urls={peer}"),
        format!("--initial-cluster=simkube={peer}"),
        // The data lives as long as the test, and a disk's fsync is most of a write's cost.
        "--unsafe-no-fsync=true".into(),
        // A single member waits for nobody; the default election timeout is a second of every start.
        "--heartbeat-interval=10".into(),
        "--election-timeout=100".into(),
        "--log-level=warn".into(),
    ]
}

fn api_server(options: &Options, folder: &Folder, ports: &Ports) -> Vec<String> {
    let mut arguments = vec![
        format!("--etcd-servers=http://127.0.0.1:{}", ports.etcd),
        "--bind-address=127.0.0.1".into(),
        "--advertise-address=127.0.0.1".into(),
        format!("--secure-port={}", ports.api_server),
        flag("tls-cert-file", &folder.path("serving.crt")),
        flag("tls-private-key-file", &folder.path("serving.key")),
        flag("token-auth-file", &folder.path("tokens.csv")),
        // Nobody here has a client certificate or a front proxy; but the controller-manager and the scheduler look for
        // the ConfigMap that tells them whom to trust, and the API server only fills it when it trusts somebody.
        flag("client-ca-file", &folder.path("ca.crt")),
        flag("requestheader-client-ca-file", &folder.path("ca.crt")),
        "--requestheader-allowed-names=front-proxy".into(),
        "--requestheader-username-headers=X-Remote-User".into(),
        "--requestheader-group-headers=X-Remote-Group".into(),
        "--requestheader-extra-headers-prefix=X-Remote-Extra-".into(),
        "--authorization-mode=RBAC".into(),
        "--service-account-issuer=https://kubernetes.default.svc".into(),
        flag("service-account-key-file", &folder.path("tokens.pub")),
        flag("service-account-signing-key-file", &folder.path("tokens.key")),
        "--service-cluster-ip-range=10.96.0.0/16".into(),
        // A loopback address is refused as an endpoint; without the reconciler there is no such endpoint.
        "--endpoint-reconciler-type=none".into(),
        format!("--enable-aggregator-routing={}", options.webhook_routing),
        "--profiling=false".into(),
    ];
    if !options.service_account_admission {
        arguments.push("--disable-admission-plugins=ServiceAccount".into());
    }
    arguments
}

fn controller_manager(options: &Options, folder: &Folder, ports: &Ports) -> Vec<String> {
    let mut arguments = delegating(Component::ControllerManager, folder, ports.controller_manager);
    arguments.extend([
        flag("kubeconfig", &folder.kubeconfig(Component::ControllerManager.name())),
        "--leader-elect=false".into(),
        // As clusters have it: each controller acts under an account, and within the rights, of its own.
        "--use-service-account-credentials=true".into(),
        flag("root-ca-file", &folder.path("ca.crt")),
        flag("service-account-private-key-file", &folder.path("tokens.key")),
    ]);
    if !options.controllers.is_empty() {
        arguments.push(format!("--controllers={}", options.controllers.join(",")));
    }
    arguments
}

fn scheduler(folder: &Folder, ports: &Ports) -> Vec<String> {
    let mut arguments = delegating(Component::Scheduler, folder, ports.scheduler);
    arguments.push(flag("config", &folder.path("scheduler.yaml")));
    arguments
}

/// How the controller-manager and the scheduler serve their health, and whom they ask about who may see it.
fn delegating(component: Component, folder: &Folder, port: u16) -> Vec<String> {
    let kubeconfig = folder.kubeconfig(component.name());
    vec![
        "--bind-address=127.0.0.1".into(),
        format!("--secure-port={port}"),
        flag("tls-cert-file", &folder.path("serving.crt")),
        flag("tls-private-key-file", &folder.path("serving.key")),
        flag("authentication-kubeconfig", &kubeconfig),
        flag("authorization-kubeconfig", &kubeconfig),
        "--authentication-tolerate-lookup-failure=true".into(),
        "--profiling=false".into(),
    ]
}

fn kwok(folder: &Folder, ports: &Ports) -> Vec<String> {
    let (annotation, value) = KWOK_NODE_ANNOTATION;
    vec![
        flag("config", &folder.path("stages.yaml")),
        flag("kubeconfig", &folder.kubeconfig(Component::Kwok.name())),
        // Not all nodes: a process runner's node is its own.
        format!("--manage-nodes-with-annotation-selector={annotation}={value}"),
        "--node-lease-duration-seconds=40".into(),
        "--node-ip=10.0.0.1".into(),
        "--cidr=10.244.0.1/16".into(),
        format!("--server-address=127.0.0.1:{}", ports.kwok),
    ]
}

/// It serves its health and its metrics on all addresses, and has no flag against it.
fn karpenter(ports: &Ports) -> Vec<String> {
    vec![
        "--disable-leader-election=true".into(),
        format!("--health-probe-port={}", ports.karpenter),
        format!("--metrics-port={}", ports.karpenter_metrics),
    ]
}

fn flag(name: &str, path: &Path) -> String {
    format!("--{name}={}", path.display())
}
