//! Removes the fields that an API server allocates: sent back, they would be refused or would point to objects that do
//! not exist in the replay.

use serde_json::{Map, Value};
use sk_core::{Gvk, PointerPattern};

/// Metadata that belongs to the recorded cluster.
const SERVER_METADATA: [&str; 10] = [
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generation",
    "managedFields",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// Labels by which a Job finds its pods; the server makes new ones.
const JOB_LABELS: [&str; 4] =
    ["controller-uid", "job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name"];

/// Annotations that tie a claim to the volume it had.
const CLAIM_ANNOTATIONS: [&str; 4] = [
    "pv.kubernetes.io/bind-completed",
    "pv.kubernetes.io/bound-by-controller",
    "volume.beta.kubernetes.io/storage-provisioner",
    "volume.kubernetes.io/selected-node",
];

/// Volumes that admission adds to every pod for its API token.
const TOKEN_VOLUME_PREFIX: &str = "kube-api-access";

/// `templates` are the places of the kind's pod templates.
pub(super) fn remove_what_a_server_allots(
    gvk: &Gvk,
    object: &mut Value,
    templates: &[PointerPattern],
    keep_volumes: bool,
) {
    let Some(fields) = object.as_object_mut() else { return };
    fields.remove("status");
    if let Some(metadata) = section(fields, "metadata") {
        SERVER_METADATA.iter().for_each(|name| drop(metadata.remove(*name)));
    }
    match (gvk.group.as_str(), gvk.kind.as_str()) {
        ("", "Pod") => {
            if let Some(spec) = section(fields, "spec") {
                spec.remove("nodeName");
                clean_pod_spec(spec);
            }
        }
        ("", "Service") => clean_service(fields),
        ("", "PersistentVolumeClaim") => {
            if let Some(spec) = section(fields, "spec").filter(|_| !keep_volumes) {
                spec.remove("volumeName");
            }
            remove_from(fields, "/metadata/annotations", &CLAIM_ANNOTATIONS);
        }
        ("batch", "Job") => clean_job(fields),
        _ => {}
    }
    for pattern in templates {
        pattern.change_each(object, |_, template| {
            if let Some(spec) = template.get_mut("spec").and_then(Value::as_object_mut) {
                clean_pod_spec(spec);
            }
        });
    }
}

fn section<'a>(fields: &'a mut Map<String, Value>, name: &str) -> Option<&'a mut Map<String, Value>> {
    fields.get_mut(name)?.as_object_mut()
}

fn at<'a>(fields: &'a mut Map<String, Value>, pointer: &str) -> Option<&'a mut Map<String, Value>> {
    let mut keys = pointer.split('/').skip(1);
    let first = section(fields, keys.next()?)?;
    keys.try_fold(first, |fields, key| fields.get_mut(key)?.as_object_mut())
}

fn remove_from(fields: &mut Map<String, Value>, pointer: &str, names: &[&str]) {
    if let Some(place) = at(fields, pointer) {
        names.iter().for_each(|name| drop(place.remove(*name)));
    }
}

fn clean_job(fields: &mut Map<String, Value>) {
    let Some(spec) = section(fields, "spec") else { return };
    if spec.get("manualSelector").and_then(Value::as_bool) == Some(true) {
        return;
    }
    spec.remove("selector");
    remove_from(fields, "/metadata/labels", &JOB_LABELS);
    remove_from(fields, "/spec/template/metadata/labels", &JOB_LABELS);
}

/// A headless service keeps `clusterIP: None`; addresses and ports of the recorded cluster go.
fn clean_service(fields: &mut Map<String, Value>) {
    let Some(spec) = section(fields, "spec") else { return };
    if spec.get("clusterIP").and_then(Value::as_str) != Some("None") {
        spec.remove("clusterIP");
        spec.remove("clusterIPs");
    }
    spec.remove("healthCheckNodePort");
    for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(port) = port.as_object_mut() {
            port.remove("nodePort");
        }
    }
}

fn clean_pod_spec(spec: &mut Map<String, Value>) {
    let is_token = |volume: &Value| {
        let name = volume.get("name").and_then(Value::as_str);
        name.is_some_and(|name| name.starts_with(TOKEN_VOLUME_PREFIX))
    };
    let drop_tokens = |fields: &mut Map<String, Value>, list: &str| {
        if let Some(items) = fields.get_mut(list).and_then(Value::as_array_mut) {
            items.retain(|item| !is_token(item));
        }
    };
    drop_tokens(spec, "volumes");
    for list in ["containers", "initContainers"] {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(container) = container.as_object_mut() {
                drop_tokens(container, "volumeMounts");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use sk_core::registry::template_path;

    use super::*;

    fn cleaned(mut object: Value) -> Value {
        let (version, kind) = (object["apiVersion"].as_str().unwrap(), object["kind"].as_str().unwrap());
        let gvk = Gvk::from_api_version(version, kind).unwrap();
        let templates: Vec<_> = template_path(&gvk).into_iter().collect();
        remove_what_a_server_allots(&gvk, &mut object, &templates, false);
        object
    }

    #[test]
    fn token_volumes_leave_the_templates_of_custom_kinds_too() {
        let volumes = json!([{"name": "kube-api-access-x1"}, {"name": "data"}]);
        let group = json!({"template": {"spec": {"volumes": volumes}}});
        let mut object = json!({"apiVersion": "example.com/v1", "kind": "Fleet", "spec": {"groups": [group]}});
        let gvk = Gvk::new_static("example.com", "v1", "Fleet");
        remove_what_a_server_allots(&gvk, &mut object, &["/spec/groups/*/template".parse().unwrap()], false);
        assert_eq!(object["spec"]["groups"][0]["template"]["spec"]["volumes"], json!([{"name": "data"}]));
    }

    #[test]
    fn a_job_loses_its_selector_unless_it_is_its_own() {
        let job = |manual: bool| {
            json!({
                "apiVersion": "batch/v1", "kind": "Job",
                "metadata": {"name": "j", "labels": {"job-name": "j", "team": "a"}},
                "spec": {
                    "manualSelector": manual, "selector": {"matchLabels": {"controller-uid": "x"}},
                    "template": {"metadata": {"labels": {"controller-uid": "x", "app": "j"}}, "spec": {}},
                },
            })
        };
        let clean = cleaned(job(false));
        assert_eq!(clean["metadata"]["labels"], json!({"team": "a"}));
        assert_eq!(clean["spec"]["template"]["metadata"]["labels"], json!({"app": "j"}));
        assert!(clean["spec"].get("selector").is_none());
        assert_eq!(cleaned(job(true)), job(true));
    }

    #[test]
    fn a_service_loses_its_addresses_but_stays_headless() {
        let service = |ip: &str| {
            json!({
                "apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"},
                "spec": {"clusterIP": ip, "clusterIPs": [ip], "ports": [{"port": 80, "nodePort": 30_000}]},
            })
        };
        assert_eq!(cleaned(service("10.0.0.7"))["spec"], json!({"ports": [{"port": 80}]}));
        assert_eq!(cleaned(service("None"))["spec"]["clusterIP"], "None");
    }

    #[test]
    fn a_pod_loses_its_node_its_token_and_its_past() {
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "p", "uid": "u", "ownerReferences": [{"kind": "Node"}], "finalizers": ["x"]},
            "spec": {
                "nodeName": "n1", "volumes": [{"name": "kube-api-access-abcde"}, {"name": "data"}],
                "containers": [{"name": "c", "volumeMounts": [{"name": "kube-api-access-abcde"}, {"name": "data"}]}],
            },
            "status": {"phase": "Running"},
        });
        let expected = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
            "spec": {
                "volumes": [{"name": "data"}], "containers": [{"name": "c", "volumeMounts": [{"name": "data"}]}],
            },
        });
        assert_eq!(cleaned(pod), expected);
    }

    #[test]
    fn a_claim_forgets_its_volume() {
        let claim = json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": "c", "annotations": {"pv.kubernetes.io/bind-completed": "yes", "team": "a"}},
            "spec": {"volumeName": "pv-1", "resources": {}},
        });
        let clean = cleaned(claim);
        assert_eq!(clean["metadata"]["annotations"], json!({"team": "a"}));
        assert_eq!(clean["spec"], json!({"resources": {}}));
        let mut kept = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "spec": {"volumeName": "pv-1"}});
        remove_what_a_server_allots(&Gvk::new_static("", "v1", "PersistentVolumeClaim"), &mut kept, &[], true);
        assert_eq!(kept["spec"], json!({"volumeName": "pv-1"}), "the embedded engine knows what to do with it");
    }

    #[test]
    fn objects_of_any_shape_are_left_standing() {
        for object in [json!({"apiVersion": "v1", "kind": "Service", "metadata": [], "spec": 3}), json!(null)] {
            let mut copy = object.clone();
            remove_what_a_server_allots(&Gvk::new_static("", "v1", "Service"), &mut copy, &[], false);
            assert_eq!(copy, object);
        }
    }
}
