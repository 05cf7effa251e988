//! ValidatingAdmissionPolicies for the permissions that RBAC cannot narrow.
//!
//! RBAC matches neither name prefixes nor labels, so the permission to create or patch a cluster-scoped kind covers every
//! object of that kind. Two accounts have such permissions, and a policy restricts each of them to its own objects:
//!
//! | account | RBAC allows | the policy allows only |
//! |---|---|---|
//! | `sk-driver` | namespaces, PriorityClasses, PersistentVolumes | objects with the labels of a run, before and after the change |
//! | `sk-driver` | creating RoleBindings | to `sk-driver-replay`, in namespaces with the labels of a run |
//! | `sk-ctrl` | MutatingWebhookConfigurations | named `sk-…-mutatepods`, for new pods and claims in namespaces of a run |
//!
//! Kubernetes serves ValidatingAdmissionPolicies since 1.30. On an older cluster the permissions are as wide as RBAC says;
//! docs/cluster.md says for which clusters that is acceptable.

use serde_json::{Value, json};
use sk_api::simulation::names;

use super::Options;

/// The API group and version of policies.
const ADMISSION: &str = "admissionregistration.k8s.io/v1";
/// The policy about the driver's account.
const DRIVER: &str = "simkube-driver";
/// The policy about the controller's.
const CONTROLLER: &str = "simkube-controller";

/// The policies and what puts them into force.
pub(super) fn manifests(options: &Options) -> Vec<Value> {
    let driver = policy(DRIVER, &is_a_driver(options), &driver_rules(), &driver_validations());
    let account = account(&options.namespace, names::CONTROLLER_NAME);
    let is_the_controller = format!("request.userInfo.username == '{account}'");
    let webhooks = [rule("admissionregistration.k8s.io", &["mutatingwebhookconfigurations"])];
    let controller = policy(CONTROLLER, &is_the_controller, &webhooks, &controller_validations());
    vec![driver, binding(DRIVER), controller, binding(CONTROLLER)]
}

/// Is it an object that an older API server does not know, and that an installation can do without?
pub fn is_policy(object: &Value) -> bool {
    object["apiVersion"] == ADMISSION
        && object["kind"].as_str().is_some_and(|kind| kind.starts_with("ValidatingAdmissionPolicy"))
}

fn account(namespace: &str, name: &str) -> String {
    format!("system:serviceaccount:{namespace}:{name}")
}

/// Where drivers may run in any namespace, each of these has an account of that name.
fn is_a_driver(options: &Options) -> String {
    if options.any_namespace {
        let name = names::DRIVER_ACCOUNT;
        return format!(
            "request.userInfo.username.startsWith('system:serviceaccount:') && \
             request.userInfo.username.endsWith(':{name}')"
        );
    }
    format!("request.userInfo.username == '{}'", account(&options.namespace, names::DRIVER_ACCOUNT))
}

fn driver_rules() -> [Value; 3] {
    [
        rule("", &["namespaces", "persistentvolumes"]),
        rule("rbac.authorization.k8s.io", &["rolebindings"]),
        rule("scheduling.k8s.io", &["priorityclasses"]),
    ]
}

fn driver_validations() -> [Value; 3] {
    let is_binding = "(request.resource.resource == 'rolebindings')";
    let role = names::DRIVER_REPLAY_ROLE;
    let before = format!("(oldObject == null || {})", is_of_a_run("oldObject"));
    let after = format!("(object == null || {})", is_of_a_run("object"));
    [
        validation(
            &format!("{is_binding} || ({before} && {after})"),
            "a driver changes and deletes only what a run has made",
        ),
        validation(
            &format!("!{is_binding} || {}", is_of_a_run("namespaceObject")),
            "a driver binds roles only in namespaces of a run",
        ),
        validation(
            &format!("!{is_binding} || object == null || object.roleRef.name == '{role}'"),
            &format!("a driver binds no other role than {role}"),
        ),
    ]
}

fn controller_validations() -> [Value; 3] {
    let (virtual_label, simulation) = (names::VIRTUAL_LABEL, names::SIMULATION_LABEL);
    let asks_about_runs = format!(
        "object == null || !has(object.webhooks) || object.webhooks.all(webhook, has(webhook.namespaceSelector) && \
         has(webhook.namespaceSelector.matchLabels) && '{virtual_label}' in webhook.namespaceSelector.matchLabels && \
         '{simulation}' in webhook.namespaceSelector.matchLabels)"
    );
    // A namespaceSelector does not keep a webhook from cluster-scoped kinds: Kubernetes asks it about each of those.
    let asks_about_new_pods = "object == null || !has(object.webhooks) || object.webhooks.all(webhook, \
         !has(webhook.rules) || webhook.rules.all(rule, has(rule.scope) && rule.scope == 'Namespaced' && \
         rule.apiGroups.all(group, group == '') && rule.operations.all(operation, operation == 'CREATE') && \
         rule.resources.all(resource, resource in ['pods', 'persistentvolumeclaims'])))";
    let name = "(object == null ? oldObject : object).metadata.name";
    [
        validation(
            &format!("{name}.startsWith('sk-') && {name}.endsWith('-mutatepods')"),
            "the controller makes and changes only the webhook configurations of runs: sk-NAME-mutatepods",
        ),
        validation(&asks_about_runs, "the controller's webhooks are asked about namespaces of a run only"),
        validation(asks_about_new_pods, "the controller's webhooks are asked about new pods and claims only"),
    ]
}

/// In CEL: the object carries both labels of a run.
fn is_of_a_run(object: &str) -> String {
    let (virtual_label, simulation) = (names::VIRTUAL_LABEL, names::SIMULATION_LABEL);
    format!(
        "(has({object}.metadata.labels) && '{simulation}' in {object}.metadata.labels && \
         '{virtual_label}' in {object}.metadata.labels && {object}.metadata.labels['{virtual_label}'] == 'true')"
    )
}

fn policy(name: &str, who: &str, rules: &[Value], validations: &[Value]) -> Value {
    json!({
        "apiVersion": ADMISSION, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": name},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": rules},
            "matchConditions": [{"name": "who", "expression": who}],
            "validations": validations,
        },
    })
}

fn binding(policy: &str) -> Value {
    json!({
        "apiVersion": ADMISSION, "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": policy},
        "spec": {"policyName": policy, "validationActions": ["Deny"]},
    })
}

fn rule(group: &str, resources: &[&str]) -> Value {
    json!({
        "apiGroups": [group], "apiVersions": ["*"], "resources": resources,
        "operations": ["CREATE", "UPDATE", "DELETE"],
    })
}

fn validation(expression: &str, message: &str) -> Value {
    json!({"expression": expression, "message": message, "reason": "Forbidden"})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_policy_is_in_force_and_fails_closed() {
        let all = manifests(&Options::default());
        assert!(all.iter().all(is_policy));
        for policy in all.iter().filter(|object| object["kind"] == "ValidatingAdmissionPolicy") {
            assert_eq!(policy["spec"]["failurePolicy"], "Fail");
            let bound = |object: &&Value| object["spec"]["policyName"] == policy["metadata"]["name"];
            assert_eq!(all.iter().filter(bound).count(), 1, "{}", policy["metadata"]["name"]);
        }
    }

    #[test]
    fn drivers_of_other_namespaces_are_held_to_it_too_where_there_may_be_such() {
        let here = is_a_driver(&Options { namespace: "lab".to_owned(), ..Options::default() });
        assert_eq!(here, "request.userInfo.username == 'system:serviceaccount:lab:sk-driver'");
        let anywhere = is_a_driver(&Options { any_namespace: true, ..Options::default() });
        assert!(anywhere.contains("endsWith(':sk-driver')"), "{anywhere}");
    }
}
