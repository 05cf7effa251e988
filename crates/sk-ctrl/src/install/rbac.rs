//! RBAC of an installation: ServiceAccounts, roles and bindings.
//!
//! | account | permissions |
//! |---|---|
//! | `sk-ctrl` | create and watch the objects of a run, in its own namespace unless the installation says otherwise; TokenReviews and SubjectAccessReviews |
//! | `sk-driver` | create namespaces for a run and replay workloads in them; update its Simulation's progress; download its trace; upload its record |
//! | `sk-record-reader` | read records and logs, upload traces: skctl requests a token of this account |
//!
//! A driver can write workloads only in namespaces of its run: the installation binds the ClusterRole `sk-driver-replay`
//! nowhere, and the driver binds it in each namespace that it creates. RBAC cannot restrict cluster-scoped kinds to some of
//! their objects; [`super::policy`] does that. Secrets are not replayed, because virtual pods need none. Neither are roles,
//! webhooks, nodes and CustomResourceDefinitions.

use serde_json::{Value, json};
use sk_api::simulation::names;

use super::Options;

const RBAC: &str = "rbac.authorization.k8s.io";
/// What replaying takes: server-side apply is `create` and `patch`.
const REPLAY: [&str; 6] = ["get", "list", "watch", "create", "patch", "delete"];

/// Kinds of one API group, by their plurals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kinds {
    /// The group; empty for the core.
    pub group: String,
    /// The plurals.
    pub resources: Vec<String>,
}

impl Kinds {
    fn replayed(&self) -> Value {
        let resources: Vec<_> = self.resources.iter().map(String::as_str).collect();
        rule(&self.group, &resources, &REPLAY)
    }
}

/// The kinds with namespaces that are replayed, by default.
fn workloads() -> [(&'static str, &'static [&'static str]); 6] {
    [
        (
            "",
            &[
                "configmaps",
                "limitranges",
                "persistentvolumeclaims",
                "pods",
                "replicationcontrollers",
                "resourcequotas",
                "serviceaccounts",
                "services",
            ],
        ),
        ("apps", &["daemonsets", "deployments", "replicasets", "statefulsets"]),
        ("autoscaling", &["horizontalpodautoscalers"]),
        ("batch", &["cronjobs", "jobs"]),
        ("networking.k8s.io", &["ingresses", "networkpolicies"]),
        ("policy", &["poddisruptionbudgets"]),
    ]
}

/// Accounts, roles and bindings.
pub(super) fn manifests(options: &Options) -> Vec<Value> {
    let here = Some(options.namespace.as_str());
    let mut all: Vec<_> = [names::CONTROLLER_NAME, names::DRIVER_ACCOUNT, names::RECORD_READER]
        .map(|name| {
            json!({
                "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": options.namespace},
            })
        })
        .to_vec();
    all.extend(granted(options, names::CONTROLLER_NAME, names::CONTROLLER_NAME, None, &controller(options)));
    all.extend(granted(options, names::CONTROLLER_NAME, names::CONTROLLER_NAME, here, &controller_here()));
    // Where the objects of a run are: here, or anywhere.
    let run_scope = if options.any_namespace { None } else { here };
    all.extend(granted(options, names::CONTROLLER_NAME, "sk-ctrl-runs", run_scope, &runs(options)));
    all.extend(granted(options, names::CONTROLLER_NAME, "sk-ctrl-default", Some("default"), &controller_in_default()));
    all.extend(granted(options, names::DRIVER_ACCOUNT, names::DRIVER_ACCOUNT, None, &driver(options)));
    all.push(role(names::DRIVER_REPLAY_ROLE, None, &replay(options)));
    let read = [
        rule(names::GROUP, &["simulations/record"], &["get"]),
        rule(names::GROUP, &["simulations/trace"], &["create"]),
    ];
    all.extend(granted(options, names::RECORD_READER, names::RECORD_READER, None, &read));
    all.extend(user(options));
    all
}

/// What has no namespace, and questions.
fn controller(options: &Options) -> Vec<Value> {
    let mut rules = vec![
        rule(names::GROUP, &["simulations"], &["get", "list", "watch", "patch", "delete"]),
        rule(names::GROUP, &["simulations/status"], &["patch"]),
        rule(names::GROUP, &["simulationroots"], &["get", "list", "watch", "create", "delete"]),
        // Only asked for where the API server guards owner references.
        rule(names::GROUP, &["simulations/finalizers", "simulationroots/finalizers"], &["update"]),
        rule("admissionregistration.k8s.io", &["mutatingwebhookconfigurations"], &["get", "create", "patch"]),
        rule("", &["namespaces"], if options.any_namespace { &["get", "list", "create"] } else { &["get", "list"] }),
        rule("authentication.k8s.io", &["tokenreviews"], &["create"]),
        rule("authorization.k8s.io", &["subjectaccessreviews"], &["create"]),
    ];
    if options.any_namespace {
        rules.push(rule(RBAC, &["clusterrolebindings"], &["get", "create"]));
        // The driver's rights may be passed on, and no others.
        let mut bind = rule(RBAC, &["clusterroles"], &["bind"]);
        bind["resourceNames"] = json!([names::DRIVER_ACCOUNT]);
        rules.push(bind);
    }
    if options.metrics {
        rules.push(rule("monitoring.coreos.com", &["prometheuses"], &["get", "create"]));
    }
    rules
}

/// The Leases, of the turn and of the controller that acts, and what it proves itself with.
fn controller_here() -> [Value; 3] {
    [
        rule("coordination.k8s.io", &["leases"], &["get", "list", "watch", "create", "update", "delete"]),
        rule("", &["secrets"], &["get", "create", "update"]),
        rule("", &["configmaps"], &["get", "create", "update"]),
    ]
}

/// In the namespace `default`, Events about what has no namespace; and there a driver without a controller holds its
/// Lease.
fn controller_in_default() -> [Value; 2] {
    let mut lease = rule("coordination.k8s.io", &["leases"], &["get"]);
    lease["resourceNames"] = json!([names::LEASE]);
    [rule("events.k8s.io", &["events"], &["create", "patch"]), lease]
}

/// The objects of a run.
fn runs(options: &Options) -> Vec<Value> {
    let mut rules = vec![
        rule("", &["secrets"], &["get", "create", "patch"]),
        rule("", &["configmaps", "services"], &["get", "create"]),
        rule("", &["events"], &["list"]),
        rule("", &["pods"], &["get", "list", "watch"]),
        rule("batch", &["jobs"], &["get", "list", "watch", "create"]),
    ];
    if options.any_namespace {
        rules.push(rule("", &["serviceaccounts"], &["get", "create"]));
    }
    if options.cert_manager {
        rules.push(rule("cert-manager.io", &["certificates"], &["get", "create"]));
        rules.push(rule("", &["secrets"], &["delete"]));
    }
    rules
}

/// The driver's cluster-wide permissions: watch the objects of its run, and create cluster-scoped objects.
fn driver(options: &Options) -> Vec<Value> {
    let look = ["get", "list", "watch"];
    let mut bind = rule(RBAC, &["clusterroles"], &["bind"]);
    bind["resourceNames"] = json!([names::DRIVER_REPLAY_ROLE]);
    let mut rules = vec![
        rule(names::GROUP, &["simulations"], &look),
        rule(names::GROUP, &["simulations/status"], &["patch"]),
        rule(names::GROUP, &["simulations/record"], &["update"]),
        rule(names::GROUP, &["simulations/trace"], &["get"]),
        rule(names::GROUP, &["simulationroots"], &["get", "list", "watch", "create", "patch", "delete"]),
        rule(names::GROUP, &["simulationroots/finalizers"], &["update"]),
        rule("", &["nodes", "persistentvolumeclaims", "pods"], &look),
        rule("", &["namespaces"], &REPLAY),
        rule("scheduling.k8s.io", &["priorityclasses"], &REPLAY),
        // Claims of a run are bound to volumes that the driver makes, and never reach a provisioner.
        rule("", &["persistentvolumes"], &["create", "delete"]),
        rule(RBAC, &["rolebindings"], &["create"]),
        bind,
    ];
    rules.extend(options.more_cluster_kinds.iter().map(Kinds::replayed));
    rules
}

/// What a driver may in the namespaces of its runs.
fn replay(options: &Options) -> Vec<Value> {
    let workloads = workloads().map(|(group, resources)| rule(group, resources, &REPLAY));
    workloads.into_iter().chain(options.more_kinds.iter().map(Kinds::replayed)).collect()
}

/// For people who run simulations: a role that somebody else binds.
fn user(options: &Options) -> [Value; 2] {
    let everywhere = [
        rule(names::GROUP, &["simulations"], &["get", "list", "watch", "create", "patch", "update", "delete"]),
        rule(names::GROUP, &["simulations/record"], &["get"]),
        rule(names::GROUP, &["simulations/trace"], &["create"]),
        // The mark of an installation is looked for, and what was told about a Simulation.
        rule("", &["namespaces", "events"], &["list"]),
    ];
    let mut token = rule("", &["serviceaccounts/token"], &["create"]);
    token["resourceNames"] = json!([names::RECORD_READER]);
    // Whom to trust, and the mark of an installation in somebody else's namespace.
    let mut authority = rule("", &["configmaps"], &["get"]);
    authority["resourceNames"] = json!([names::CONTROLLER_CA, names::INSTALLED]);
    let here = [
        token,
        authority,
        rule("", &["pods"], &["get", "list"]),
        rule("", &["pods/log"], &["get"]),
        rule("", &["pods/portforward"], &["create", "get"]),
    ];
    [role(names::USER_ROLE, None, &everywhere), role(names::USER_ROLE, Some(&options.namespace), &here)]
}

/// A role and its binding to an account: in one namespace, or everywhere.
fn granted(options: &Options, account: &str, name: &str, namespace: Option<&str>, rules: &[Value]) -> [Value; 2] {
    let (role_kind, binding_kind) = match namespace {
        Some(_) => ("Role", "RoleBinding"),
        None => ("ClusterRole", "ClusterRoleBinding"),
    };
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": binding_kind, "metadata": metadata(name, namespace),
        "roleRef": {"apiGroup": RBAC, "kind": role_kind, "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": options.namespace}],
    });
    [role(name, namespace, rules), binding]
}

fn role(name: &str, namespace: Option<&str>, rules: &[Value]) -> Value {
    let kind = if namespace.is_some() { "Role" } else { "ClusterRole" };
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": metadata(name, namespace), "rules": rules,
    })
}

fn metadata(name: &str, namespace: Option<&str>) -> Value {
    match namespace {
        Some(namespace) => json!({"name": name, "namespace": namespace}),
        None => json!({"name": name}),
    }
}

fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> Value {
    json!({"apiGroups": [group], "resources": resources, "verbs": verbs})
}
