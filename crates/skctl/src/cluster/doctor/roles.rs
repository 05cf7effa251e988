//! Checks that the roles of an installation grant what this version of skctl needs.
//!
//! If somebody updates skctl and not the installation, the controller or a driver is refused in the middle of a run.
//! Roles may grant more than needed: the installation may have been made with more flags.

use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule, Role};
use kube::api::Api;
use serde_json::Value;

use super::{Finding, the_first};
use crate::cluster::apply::name_of;
use crate::cluster::{Cluster, words};

/// Compares the roles among the manifests with those that are there. Another check reports missing roles.
pub(super) async fn examine(cluster: &Cluster, manifests: &[Value], install: &str) -> Finding {
    let mut lacking = Vec::new();
    let mut looked_at = 0;
    for wanted in manifests {
        let granted = match rules(cluster, wanted).await {
            Ok(Some(granted)) => granted,
            Ok(None) => continue,
            Err(error) => {
                let what = format!("cannot read {}: {}", name_of(wanted), words(&error));
                return Finding::warn("grants", what, "ask somebody with more permissions");
            }
        };
        looked_at += 1;
        let asked: Vec<PolicyRule> = serde_json::from_value(wanted["rules"].clone()).unwrap_or_default();
        let missing = asked.iter().flat_map(single_rights).filter(|right| !is_granted(right, &granted));
        lacking.extend(missing.map(|right| format!("{}: {}", name_of(wanted), name(&right))));
    }
    if lacking.is_empty() {
        return Finding::ok("grants", format!("{looked_at} roles grant what this skctl needs"));
    }
    let lacking = the_first(lacking, "; ");
    let what = format!("the installation is older than this skctl, its roles lack {lacking}");
    Finding::fail("grants", what, format!("{install}, with the flags that it was installed with"))
}

/// What the cluster's role of this name grants; `None` if the object is no role or not there.
async fn rules(cluster: &Cluster, role: &Value) -> Result<Option<Vec<PolicyRule>>, kube::Error> {
    let text = |pointer: &str| role.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let client = cluster.client.clone();
    match text("/kind") {
        "ClusterRole" => {
            let found = Api::<ClusterRole>::all(client).get_opt(text("/metadata/name")).await?;
            Ok(found.map(|role| role.rules.unwrap_or_default()))
        }
        "Role" => {
            let api = Api::<Role>::namespaced(client, text("/metadata/namespace"));
            let found = api.get_opt(text("/metadata/name")).await?;
            Ok(found.map(|role| role.rules.unwrap_or_default()))
        }
        _ => Ok(None),
    }
}

/// One verb on one resource, perhaps of one object only.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SingleRight {
    verb: String,
    group: String,
    resource: String,
    of: Option<String>,
}

/// A rule taken apart.
fn single_rights(rule: &PolicyRule) -> Vec<SingleRight> {
    let names: Vec<Option<String>> = match rule.resource_names.as_deref() {
        None | Some([]) => vec![None],
        Some(names) => names.iter().cloned().map(Some).collect(),
    };
    let mut rights = Vec::new();
    for group in rule.api_groups.iter().flatten() {
        for resource in rule.resources.iter().flatten() {
            for verb in &rule.verbs {
                rights.extend(names.iter().map(|of| SingleRight {
                    verb: verb.clone(),
                    group: group.clone(),
                    resource: resource.clone(),
                    of: of.clone(),
                }));
            }
        }
    }
    rights
}

fn is_granted(right: &SingleRight, rules: &[PolicyRule]) -> bool {
    let has = |list: &[String], wanted: &str| list.iter().any(|one| one == "*" || one == wanted);
    rules.iter().any(|rule| {
        let names = rule.resource_names.as_deref().unwrap_or_default();
        has(rule.api_groups.as_deref().unwrap_or_default(), &right.group)
            && has(rule.resources.as_deref().unwrap_or_default(), &right.resource)
            && has(&rule.verbs, &right.verb)
            && (names.is_empty() || right.of.as_ref().is_some_and(|of| names.contains(of)))
    })
}

/// `create persistentvolumes`, `get configmaps sk-ctrl-ca`
fn name(right: &SingleRight) -> String {
    let dot = if right.group.is_empty() { "" } else { "." };
    let of = right.of.as_ref().map(|of| format!(" {of}")).unwrap_or_default();
    format!("{} {}{dot}{}{of}", right.verb, right.resource, right.group)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rule(value: Value) -> PolicyRule {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_right_is_granted_by_a_rule_that_says_as_much_or_more() {
        let wanted = single_rights(&rule(json!({"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]})));
        let granted = |groups: &[&str], resources: &[&str], verbs: &[&str], names: &[&str]| {
            let rule =
                rule(json!({"apiGroups": groups, "resources": resources, "verbs": verbs, "resourceNames": names}));
            wanted.iter().all(|right| is_granted(right, std::slice::from_ref(&rule)))
        };
        assert!(granted(&[""], &["pods", "nodes"], &["get", "list", "watch"], &[]));
        assert!(granted(&["*"], &["*"], &["*"], &[]));
        assert!(!granted(&[""], &["pods"], &["get"], &[]), "list is missing");
        assert!(!granted(&["apps"], &["pods"], &["*"], &[]), "another group");
        assert!(!granted(&[""], &["pods"], &["*"], &["a"]), "only of one pod");
    }

    #[test]
    fn what_is_missing_is_named_as_people_know_it() {
        let rights = single_rights(&rule(json!({
            "apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"], "resourceNames": ["ca", "mark"],
        })));
        assert_eq!(rights.iter().map(name).collect::<Vec<_>>(), ["get configmaps ca", "get configmaps mark"]);
        let rights =
            single_rights(&rule(json!({"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["create"]})));
        assert_eq!(name(&rights[0]), "create deployments.apps");
    }
}
