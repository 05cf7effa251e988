//! The defaults that the API server writes into an object before it stores it (`pkg/apis/*/v1/defaults.go`, 1.36).
//!
//! Each kind has a function that writes defaults into JSON. A pod from a template that already has its defaults needs
//! almost none, so it skips the way through JSON.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use sk_core::{Gvk, SmolStr};

use crate::base64;
use crate::kinds::{Body, KindTag, PodSpec};
use crate::object::Object;

/// Files of volumes can be read by all and written by their owner: 0644.
const FILE_MODE: i64 = 0o644;

/// Writes defaults into an object of a kind.
pub(crate) fn apply(gvk: &Gvk, object: &mut Value) {
    match KindTag::of(gvk) {
        KindTag::Deployment => deployment(&mut object["spec"]),
        KindTag::ReplicaSet | KindTag::ReplicationController => {
            fill(&mut object["spec"], "replicas", json!(1));
            template(&mut object["spec"]["template"]);
        }
        KindTag::StatefulSet => stateful_set(&mut object["spec"]),
        KindTag::DaemonSet => daemon_set(&mut object["spec"]),
        KindTag::Job => job(object),
        KindTag::CronJob => cron_job(&mut object["spec"]),
        KindTag::Pod => pod_spec(&mut object["spec"]),
        KindTag::Namespace => namespace(object),
        // The kubelet that registers a node leaves nothing out that has a default.
        KindTag::Node => {}
        KindTag::Other => other(gvk, object),
    }
}

/// Writes defaults into an object without a typed body.
fn other(gvk: &Gvk, object: &mut Value) {
    match (gvk.group.as_str(), gvk.kind.as_str()) {
        ("autoscaling", "HorizontalPodAutoscaler") => autoscaler(&mut object["spec"]),
        ("scheduling.k8s.io", "PriorityClass") => fill(object, "preemptionPolicy", json!("PreemptLowerPriority")),
        ("", "Service") => service(object),
        ("", "PersistentVolumeClaim") => {
            data_source(&mut object["spec"]);
            fill(&mut object["spec"], "volumeMode", json!("Filesystem"));
            fill(&mut object["status"], "phase", json!("Pending"));
        }
        ("", "PersistentVolume") => {
            fill(&mut object["spec"], "persistentVolumeReclaimPolicy", json!("Retain"));
            fill(&mut object["spec"], "volumeMode", json!("Filesystem"));
            fill(&mut object["status"], "phase", json!("Pending"));
        }
        ("", "LimitRange") => each(&mut object["spec"]["limits"], limit),
        ("", "Secret") => secret(object),
        _ => {}
    }
}

/// The defaults that depend on what was left out, which a typed body no longer tells.
pub(crate) fn before_reading(gvk: &Gvk, object: &mut Value) {
    match KindTag::of(gvk) {
        KindTag::StatefulSet => set_strategy(&mut object["spec"]["updateStrategy"]),
        KindTag::Job => failure_policy(&mut object["spec"]),
        KindTag::CronJob => failure_policy(&mut object["spec"]["jobTemplate"]["spec"]),
        KindTag::Pod
        | KindTag::Node
        | KindTag::Namespace
        | KindTag::Deployment
        | KindTag::ReplicaSet
        | KindTag::DaemonSet
        | KindTag::ReplicationController
        | KindTag::Other => {}
    }
}

/// A pod's spec with its defaults: those of every template, and those of pods alone.
pub(crate) fn of_pod(source: &PodSpec) -> PodSpec {
    let mut spec = if has_template_defaults(source) {
        source.clone()
    } else {
        let mut json = json!(source);
        pod_spec(&mut json);
        // What was read once is read again: defaults change no types.
        serde_json::from_value(json).unwrap_or_else(|_| source.clone())
    };
    let is_on_host = spec.rest.get("hostNetwork") == Some(&Value::Bool(true));
    for container in spec.containers.iter_mut().chain(&mut spec.init_containers) {
        if is_on_host && let Some(ports) = container.rest.get_mut("ports") {
            each(ports, |port| {
                if port.get("hostPort").and_then(Value::as_i64).unwrap_or(0) == 0 {
                    port["hostPort"] = port["containerPort"].clone();
                }
            });
        }
    }
    if !spec.rest.contains_key("enableServiceLinks") {
        spec.rest.insert("enableServiceLinks".to_owned(), json!(true));
    }
    spec
}

/// Was the spec written by a server before? Then its last default is there, and with it all others.
fn has_template_defaults(spec: &PodSpec) -> bool {
    let has = |rest: &Map<String, Value>, names: &[&str]| names.iter().all(|name| rest.contains_key(*name));
    let mut containers = spec.containers.iter().chain(&spec.init_containers);
    has(&spec.rest, &["dnsPolicy", "schedulerName", "securityContext"])
        && spec.restart_policy != SmolStr::default()
        && spec.termination_grace_period_seconds.is_some()
        && containers.all(|container| {
            has(&container.rest, &["imagePullPolicy", "terminationMessagePath", "terminationMessagePolicy"])
        })
}

fn fill(parent: &mut Value, name: &str, value: Value) {
    if parent.is_null() {
        *parent = json!({});
    }
    let Some(fields) = parent.as_object_mut() else { return };
    let known = fields.entry(name).or_insert(Value::Null);
    if known.is_null() || known == "" {
        *known = value;
    }
}

fn each(list: &mut Value, default: impl Fn(&mut Value)) {
    // What is no object has no fields to fill in; validation refuses it.
    list.as_array_mut().into_iter().flatten().filter(|item| item.is_object()).for_each(default);
}

/// A pod template.
fn template(template: &mut Value) {
    if template.is_null() {
        *template = json!({});
    }
    if !template.is_object() {
        return;
    }
    if template["spec"].is_null() {
        template["spec"] = json!({"containers": null});
    }
    pod_spec(&mut template["spec"]);
}

fn pod_spec(spec: &mut Value) {
    fill(spec, "restartPolicy", json!("Always"));
    fill(spec, "terminationGracePeriodSeconds", json!(30));
    fill(spec, "dnsPolicy", json!("ClusterFirst"));
    fill(spec, "securityContext", json!({}));
    fill(spec, "schedulerName", json!("default-scheduler"));
    // The old name of the field is served beside the new one.
    for (one, other) in [("serviceAccount", "serviceAccountName"), ("serviceAccountName", "serviceAccount")] {
        if let Some(name) = spec.get(other).filter(|name| name.as_str().is_some_and(|name| !name.is_empty())).cloned() {
            fill(spec, one, name);
        }
    }
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        if spec.get(list).is_some() {
            each(&mut spec[list], container);
        }
    }
    if spec.get("volumes").is_some() {
        each(&mut spec["volumes"], volume);
    }
}

fn container(container: &mut Value) {
    fill(container, "terminationMessagePath", json!("/dev/termination-log"));
    fill(container, "terminationMessagePolicy", json!("File"));
    let image = container["image"].as_str().unwrap_or_default();
    let policy = if is_latest(image) { "Always" } else { "IfNotPresent" };
    fill(container, "imagePullPolicy", json!(policy));
    fill(container, "resources", json!({}));
    if container.get("ports").is_some() {
        each(&mut container["ports"], |port| fill(port, "protocol", json!("TCP")));
    }
    if container.get("env").is_some() {
        each(&mut container["env"], |variable| {
            if let Some(field) = variable.pointer_mut("/valueFrom/fieldRef") {
                fill(field, "apiVersion", json!("v1"));
            }
        });
    }
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(found) = container.get_mut(name).filter(|found| found.is_object()) {
            probe(found);
        }
    }
    for hook in ["/lifecycle/postStart/httpGet", "/lifecycle/preStop/httpGet"] {
        if let Some(found) = container.pointer_mut(hook) {
            http_get(found);
        }
    }
}

/// An image without a tag, or with the tag `latest`, is always pulled; one with a digest has no tag.
fn is_latest(image: &str) -> bool {
    if image.contains('@') {
        return false;
    }
    let last = image.rsplit('/').next().unwrap_or_default();
    match last.split_once(':') {
        Some((_, tag)) => tag == "latest",
        None => !image.is_empty(),
    }
}

fn probe(probe: &mut Value) {
    for (name, value) in
        [("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)]
    {
        if probe.get(name).and_then(Value::as_i64).unwrap_or(0) == 0 {
            probe[name] = json!(value);
        }
    }
    if let Some(found) = probe.get_mut("httpGet").filter(|found| found.is_object()) {
        http_get(found);
    }
    if let Some(found) = probe.get_mut("grpc").filter(|found| found.is_object()) {
        fill(found, "service", json!(""));
    }
}

fn http_get(action: &mut Value) {
    fill(action, "path", json!("/"));
    fill(action, "scheme", json!("HTTP"));
}

fn volume(volume: &mut Value) {
    let Some(fields) = volume.as_object_mut() else { return };
    if fields.keys().all(|name| name == "name") {
        fields.insert("emptyDir".to_owned(), json!({}));
    }
    for source in ["secret", "configMap", "downwardAPI", "projected"] {
        if let Some(found) = fields.get_mut(source).filter(|found| found.is_object()) {
            fill(found, "defaultMode", json!(FILE_MODE));
        }
    }
    if let Some(found) = fields.get_mut("hostPath").filter(|found| found.is_object()) {
        fill(found, "type", json!(""));
    }
    if let Some(found) = fields.get_mut("iscsi").filter(|found| found.is_object()) {
        fill(found, "iscsiInterface", json!("default"));
    }
    if let Some(found) = volume.pointer_mut("/ephemeral/volumeClaimTemplate/spec") {
        fill(found, "volumeMode", json!("Filesystem"));
    }
    if let Some(sources) = volume.pointer_mut("/projected/sources") {
        each(sources, |source| {
            if let Some(token) = source.get_mut("serviceAccountToken").filter(|token| token.is_object()) {
                fill(token, "expirationSeconds", json!(3600));
            }
            items_of_fields(source);
        });
    }
    items_of_fields(volume);
}

/// Fields of a pod that a volume shows are fields of `v1`.
fn items_of_fields(source: &mut Value) {
    if let Some(items) = source.pointer_mut("/downwardAPI/items") {
        each(items, |item| {
            if let Some(field) = item.get_mut("fieldRef").filter(|field| field.is_object()) {
                fill(field, "apiVersion", json!("v1"));
            }
        });
    }
}

fn deployment(spec: &mut Value) {
    fill(spec, "replicas", json!(1));
    fill(&mut spec["strategy"], "type", json!("RollingUpdate"));
    if spec["strategy"]["type"] == "RollingUpdate" {
        fill(&mut spec["strategy"], "rollingUpdate", json!({}));
        let rolling = &mut spec["strategy"]["rollingUpdate"];
        fill(rolling, "maxUnavailable", json!("25%"));
        fill(rolling, "maxSurge", json!("25%"));
    }
    fill(spec, "revisionHistoryLimit", json!(10));
    fill(spec, "progressDeadlineSeconds", json!(600));
    template(&mut spec["template"]);
}

fn daemon_set(spec: &mut Value) {
    fill(&mut spec["updateStrategy"], "type", json!("RollingUpdate"));
    if spec["updateStrategy"]["type"] == "RollingUpdate" {
        fill(&mut spec["updateStrategy"], "rollingUpdate", json!({}));
        let rolling = &mut spec["updateStrategy"]["rollingUpdate"];
        fill(rolling, "maxUnavailable", json!(1));
        fill(rolling, "maxSurge", json!(0));
    }
    fill(spec, "revisionHistoryLimit", json!(10));
    template(&mut spec["template"]);
}

fn stateful_set(spec: &mut Value) {
    fill(spec, "podManagementPolicy", json!("OrderedReady"));
    set_strategy(&mut spec["updateStrategy"]);
    let retention = &mut spec["persistentVolumeClaimRetentionPolicy"];
    fill(retention, "whenDeleted", json!("Retain"));
    fill(retention, "whenScaled", json!("Retain"));
    fill(spec, "replicas", json!(1));
    fill(spec, "revisionHistoryLimit", json!(10));
    template(&mut spec["template"]);
    if spec.get("volumeClaimTemplates").is_some() {
        each(&mut spec["volumeClaimTemplates"], |claim| {
            fill(claim, "kind", json!("PersistentVolumeClaim"));
            fill(claim, "apiVersion", json!("v1"));
            fill(&mut claim["spec"], "volumeMode", json!("Filesystem"));
            fill(&mut claim["status"], "phase", json!("Pending"));
        });
    }
}

/// A set that says nothing of its updates is rolled; one that only says that it is rolled has no partition.
fn set_strategy(strategy: &mut Value) {
    if strategy["type"].as_str().unwrap_or_default().is_empty() {
        fill(strategy, "type", json!("RollingUpdate"));
        fill(strategy, "rollingUpdate", json!({}));
    }
    if strategy["type"] == "RollingUpdate" && strategy["rollingUpdate"].is_object() {
        fill(&mut strategy["rollingUpdate"], "partition", json!(0));
    }
}

fn job(object: &mut Value) {
    let labels = object.pointer("/spec/template/metadata/labels").cloned();
    let has_labels =
        object.pointer("/metadata/labels").is_some_and(|labels| labels.as_object().is_some_and(|l| !l.is_empty()));
    if let Some(labels) = labels.filter(|_| !has_labels) {
        object["metadata"]["labels"] = labels;
    }
    job_spec(&mut object["spec"]);
}

fn job_spec(spec: &mut Value) {
    if spec["completions"].is_null() && spec["parallelism"].is_null() {
        fill(spec, "completions", json!(1));
    }
    fill(spec, "parallelism", json!(1));
    let limit = if spec["backoffLimitPerIndex"].is_null() { 6 } else { i32::MAX };
    fill(spec, "backoffLimit", json!(limit));
    fill(spec, "completionMode", json!("NonIndexed"));
    fill(spec, "suspend", json!(false));
    let replaced = if spec["podFailurePolicy"].is_object() { "Failed" } else { "TerminatingOrFailed" };
    fill(spec, "podReplacementPolicy", json!(replaced));
    fill(spec, "manualSelector", json!(false));
    failure_policy(spec);
    template(&mut spec["template"]);
    if let Some(fields) = spec.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
}

fn failure_policy(spec: &mut Value) {
    if let Some(rules) = spec.pointer_mut("/podFailurePolicy/rules") {
        each(rules, |rule| {
            if rule.get("onPodConditions").is_some() {
                each(&mut rule["onPodConditions"], |condition| fill(condition, "status", json!("True")));
            }
        });
    }
}

fn cron_job(spec: &mut Value) {
    fill(spec, "concurrencyPolicy", json!("Allow"));
    fill(spec, "suspend", json!(false));
    fill(spec, "successfulJobsHistoryLimit", json!(3));
    fill(spec, "failedJobsHistoryLimit", json!(1));
    // The Job's own defaults are written when there is a Job; its pods' are written here.
    template(&mut spec["jobTemplate"]["spec"]["template"]);
}

fn autoscaler(spec: &mut Value) {
    fill(spec, "minReplicas", json!(1));
    let has_metrics = spec["metrics"].as_array().is_some_and(|metrics| !metrics.is_empty());
    if !has_metrics {
        spec["metrics"] = json!([{"type": "Resource", "resource": {
            "name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80},
        }}]);
    }
    if spec["behavior"].is_object() {
        let up = json!([{"type": "Pods", "value": 4, "periodSeconds": 15}, {"type": "Percent", "value": 100, "periodSeconds": 15}]);
        let down = json!([{"type": "Percent", "value": 100, "periodSeconds": 15}]);
        scaling(&mut spec["behavior"]["scaleUp"], up, Some(0));
        scaling(&mut spec["behavior"]["scaleDown"], down, None);
    }
    if let Some(fields) = spec.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
}

fn scaling(rules: &mut Value, policies: Value, window: Option<i64>) {
    if let Some(window) = window {
        fill(rules, "stabilizationWindowSeconds", json!(window));
    }
    fill(rules, "selectPolicy", json!("Max"));
    fill(rules, "policies", policies);
}

/// The same of a Secret that is stored as it came otherwise.
pub(crate) fn texts_of_secret(object: &mut Object) {
    let is_secret = object.gvk.kind == "Secret" && object.gvk.group.is_empty();
    let Body::Other(other) = &mut object.body else { return };
    if is_secret && other.fields.contains_key("stringData") {
        let mut json = Value::Object((*other.fields).clone());
        secret(&mut json);
        other.fields = Arc::new(json.as_object().cloned().unwrap_or_default());
    }
}

/// Texts of a Secret become bytes, in place of those of the same key (`Convert_v1_Secret_To_core_Secret`).
fn secret(object: &mut Value) {
    fill(object, "type", json!("Opaque"));
    let Some(texts) = object.as_object_mut().and_then(|fields| fields.remove("stringData")) else { return };
    for (key, text) in texts.as_object().into_iter().flatten() {
        let bytes = base64::encode(text.as_str().unwrap_or_default().as_bytes());
        if !object["data"].is_object() {
            object["data"] = json!({});
        }
        object["data"][key.as_str()] = bytes.into();
    }
}

/// A claim's data source is in two fields, of which the older has no namespace (`NormalizeDataSources`).
fn data_source(spec: &mut Value) {
    if spec["dataSource"].is_object() && spec["dataSourceRef"].is_null() {
        spec["dataSourceRef"] = spec["dataSource"].clone();
    } else if spec["dataSourceRef"].is_object()
        && spec["dataSource"].is_null()
        && spec["dataSourceRef"]["namespace"].is_null()
    {
        spec["dataSource"] = spec["dataSourceRef"].clone();
    }
}

fn namespace(object: &mut Value) {
    if let Some(name) = object["metadata"]["name"].as_str().filter(|name| !name.is_empty()).map(str::to_owned) {
        if object["metadata"]["labels"].is_null() {
            object["metadata"]["labels"] = json!({});
        }
        object["metadata"]["labels"]["kubernetes.io/metadata.name"] = json!(name);
    }
}

fn service(object: &mut Value) {
    let spec = &mut object["spec"];
    fill(spec, "sessionAffinity", json!("None"));
    if spec["sessionAffinity"] == "ClientIP" && spec.pointer("/sessionAffinityConfig/clientIP/timeoutSeconds").is_none()
    {
        spec["sessionAffinityConfig"] = json!({"clientIP": {"timeoutSeconds": 10800}});
    }
    fill(spec, "type", json!("ClusterIP"));
    if spec.get("ports").is_some() {
        each(&mut spec["ports"], |port| {
            fill(port, "protocol", json!("TCP"));
            if port["targetPort"].is_null() || port["targetPort"] == 0 || port["targetPort"] == "" {
                port["targetPort"] = port["port"].clone();
            }
        });
    }
    let kind = spec["type"].as_str().unwrap_or_default().to_owned();
    if kind == "NodePort" || kind == "LoadBalancer" {
        fill(spec, "externalTrafficPolicy", json!("Cluster"));
    }
    if kind != "ExternalName" {
        fill(spec, "internalTrafficPolicy", json!("Cluster"));
    }
    if kind == "LoadBalancer" {
        fill(spec, "allocateLoadBalancerNodePorts", json!(true));
    }
}

fn limit(limit: &mut Value) {
    if limit["type"] != "Container" {
        return;
    }
    let copy = |from: &Value, to: &mut Value| {
        let Some(amounts) = from.as_object() else { return };
        for (name, amount) in amounts {
            if to.get(name).is_none() {
                fill(to, name, amount.clone());
            }
        }
    };
    let (max, min) = (limit["max"].clone(), limit["min"].clone());
    let mut default = limit["default"].clone();
    copy(&max, &mut default);
    let mut request = limit["defaultRequest"].clone();
    copy(&default, &mut request);
    copy(&min, &mut request);
    limit["default"] = default;
    limit["defaultRequest"] = request;
    if let Some(fields) = limit.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
}
