//! What leaves the cluster. A marked text is planted in every place of a sample of each kind; the snapshots list the
//! places where it survived, so that a change of what is kept shows up in review, place by place.

use serde_json::{Value, json};
use sk_core::Gvk;

use crate::recording::{body, kind, served};

/// Every text in `value` is replaced by a marked one that says where it stood.
fn plant(value: &mut Value, at: &str) {
    match value {
        Value::String(text) => *text = format!("planted:{at}"),
        Value::Array(elements) => elements.iter_mut().for_each(|element| plant(element, &format!("{at}/*"))),
        Value::Object(fields) => {
            fields.iter_mut().for_each(|(key, value)| plant(value, &format!("{at}/{}", key.replace('/', "~1"))));
        }
        _ => {}
    }
}

/// The places whose mark is still there.
fn survivors(value: &Value) -> Vec<String> {
    let mut found = match value {
        Value::String(text) => text.strip_prefix("planted:").map(str::to_owned).into_iter().collect(),
        Value::Array(elements) => elements.iter().flat_map(survivors).collect(),
        Value::Object(fields) => fields.values().flat_map(survivors).collect(),
        _ => Vec::new(),
    };
    found.sort();
    found.dedup();
    found
}

/// What survives of a planted sample, its metadata aside, which all kinds have in common.
fn kept(privacy: &str, kind: &Gvk, mut sample: Value) -> Vec<String> {
    plant(&mut sample, "");
    sample["metadata"]["name"] = json!("sample");
    sample["metadata"]["uid"] = json!("uid");
    let yaml = format!("{{trackedObjects: {{{kind}: {{}}}}, {privacy}}}");
    survivors(&body(&yaml, kind, &sample))
}

fn kept_minimally(kind_text: &str, sample: Value) -> String {
    kept("privacy: minimal", &kind(kind_text), sample).join("\n")
}

fn action() -> Value {
    json!({
        "exec": {"command": ["x"]},
        "httpGet": {"path": "x", "host": "x", "port": "x", "scheme": "x", "httpHeaders": [{"name": "x", "value": "x"}]},
        "tcpSocket": {"host": "x", "port": "x"},
        "grpc": {"port": 1, "service": "x"},
        "periodSeconds": 5,
    })
}

fn security_context() -> Value {
    json!({
        "appArmorProfile": {"type": "x", "localhostProfile": "x"},
        "capabilities": {"add": ["x"], "drop": ["x"]},
        "fsGroupChangePolicy": "x", "procMount": "x", "runAsUser": 1,
        "seLinuxOptions": {"user": "x", "role": "x", "type": "x", "level": "x"},
        "seccompProfile": {"type": "x", "localhostProfile": "x"},
        "sysctls": [{"name": "x", "value": "x"}],
        "windowsOptions": {"gmsaCredentialSpec": "x", "gmsaCredentialSpecName": "x", "runAsUserName": "x"},
    })
}

fn container() -> Value {
    json!({
        "name": "x", "image": "x", "command": ["x"], "args": ["x"], "workingDir": "x", "imagePullPolicy": "x",
        "env": [{"name": "x", "value": "x", "valueFrom": {
            "configMapKeyRef": {"name": "x", "key": "x"}, "secretKeyRef": {"name": "x", "key": "x"},
            "fieldRef": {"apiVersion": "x", "fieldPath": "x"}, "resourceFieldRef": {"containerName": "x", "resource": "x"},
            "fileKeyRef": {"volumeName": "x", "key": "x", "path": "x"}}}],
        "envFrom": [{"prefix": "x", "configMapRef": {"name": "x"}, "secretRef": {"name": "x"}}],
        "ports": [{"name": "x", "protocol": "x", "hostIP": "x", "containerPort": 80}],
        "resources": {"requests": {"cpu": "x"}, "limits": {"cpu": "x"}, "claims": [{"name": "x", "request": "x"}]},
        "livenessProbe": action(), "readinessProbe": action(), "startupProbe": action(),
        "lifecycle": {"postStart": action(), "preStop": action(), "stopSignal": "x"},
        "securityContext": security_context(), "terminationMessagePath": "x", "terminationMessagePolicy": "x",
        "restartPolicy": "x", "volumeDevices": [{"name": "x", "devicePath": "x"}],
        "volumeMounts": [{"name": "x", "mountPath": "x", "subPath": "x", "subPathExpr": "x", "mountPropagation": "x"}],
        "aFieldOfTomorrow": "x",
    })
}

fn volume() -> Value {
    let items = json!([{"key": "x", "path": "x", "fieldRef": {"fieldPath": "x"}}]);
    json!({
        "name": "x", "configMap": {"name": "x", "items": items}, "secret": {"secretName": "x", "items": items},
        "emptyDir": {"medium": "x", "sizeLimit": "x"}, "persistentVolumeClaim": {"claimName": "x"},
        "hostPath": {"path": "x", "type": "x"}, "nfs": {"server": "x", "path": "x"},
        "csi": {"driver": "x", "fsType": "x", "volumeAttributes": {"a": "x"}, "nodePublishSecretRef": {"name": "x"}},
        "downwardAPI": {"items": items}, "image": {"reference": "x", "pullPolicy": "x"},
        "projected": {"sources": [{"configMap": {"name": "x", "items": items}, "secret": {"name": "x", "items": items},
            "serviceAccountToken": {"audience": "x", "path": "x"}}]},
        "ephemeral": {"volumeClaimTemplate": {"metadata": {"labels": {"a": "x"}}, "spec": {"storageClassName": "x"}}},
        "iscsi": {"targetPortal": "x", "iqn": "x"}, "awsElasticBlockStore": {"volumeID": "x"},
    })
}

fn pod_spec() -> Value {
    json!({
        "containers": [container()], "initContainers": [container()], "ephemeralContainers": [container()],
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "x", "operator": "x", "values": ["x"]}]}]}}},
        "dnsConfig": {"nameservers": ["x"], "searches": ["x"], "options": [{"name": "x", "value": "x"}]},
        "dnsPolicy": "x", "hostAliases": [{"ip": "x", "hostnames": ["x"]}], "hostname": "x", "subdomain": "x",
        "imagePullSecrets": [{"name": "x"}], "nodeSelector": {"disk": "x"}, "os": {"name": "x"},
        "overhead": {"cpu": "x"}, "preemptionPolicy": "x", "priorityClassName": "x",
        "readinessGates": [{"conditionType": "x"}], "resourceClaims": [{"name": "x", "resourceClaimName": "x"}],
        "restartPolicy": "x", "runtimeClassName": "x", "schedulerName": "x", "schedulingGates": [{"name": "x"}],
        "securityContext": security_context(), "serviceAccount": "x", "serviceAccountName": "x",
        "tolerations": [{"key": "x", "operator": "x", "value": "x", "effect": "x"}],
        "topologySpreadConstraints": [{"topologyKey": "x", "whenUnsatisfiable": "x"}],
        "volumes": [volume()],
        "nodeName": "x", "aFieldOfTomorrow": "x",
    })
}

fn template() -> Value {
    json!({
        "metadata": {"labels": {"app": "x"}, "annotations": {"free": "x", "cluster-autoscaler.kubernetes.io/safe-to-evict": "x"}},
        "spec": pod_spec(),
    })
}

#[test]
fn of_a_pod_stays_what_placement_and_lifecycles_need() {
    insta::assert_snapshot!(kept_minimally(
        "v1.Pod",
        json!({"metadata": {}, "spec": pod_spec(), "status": {"a": "x"}})
    ));
}

#[test]
fn of_workloads_stays_the_same_of_their_templates_and_how_they_are_run() {
    let workload = json!({"metadata": {}, "spec": {
        "template": template(), "selector": {"matchLabels": {"a": "x"}}, "strategy": {"type": "x"},
        "updateStrategy": {"type": "x"}, "podManagementPolicy": "x", "serviceName": "x", "completionMode": "x",
        "podFailurePolicy": {"rules": [{"action": "x"}]}, "volumeClaimTemplates": [{
            "metadata": {"name": "x", "annotations": {"free": "x"}}, "spec": {"storageClassName": "x", "accessModes": ["x"]}}],
        "aFieldOfTomorrow": "x",
    }});
    let kept = kept_minimally("apps/v1.Deployment", workload.clone());
    for kind in ["apps/v1.ReplicaSet", "apps/v1.StatefulSet", "apps/v1.DaemonSet", "batch/v1.Job"] {
        assert_eq!(kept_minimally(kind, workload.clone()), kept, "{kind}");
    }
    insta::assert_snapshot!(kept);
    let cron_job = json!({"metadata": {}, "spec": {"schedule": "x", "timeZone": "x", "concurrencyPolicy": "x",
        "jobTemplate": {"metadata": {"annotations": {"free": "x"}}, "spec": workload["spec"].clone()}}});
    let of_cron_job = kept_minimally("batch/v1.CronJob", cron_job);
    let inside: Vec<_> = of_cron_job.lines().filter_map(|line| line.strip_prefix("/spec/jobTemplate")).collect();
    assert_eq!(inside, kept.lines().collect::<Vec<_>>());
    assert_eq!(of_cron_job.lines().count() - inside.len(), 3, "schedule, time zone and concurrency");
}

#[test]
fn of_other_kinds_stays_what_refers_to_something_or_is_one_of_a_few_words() {
    let samples = [
        ("v1.ConfigMap", json!({"metadata": {}, "data": {"a": "x"}, "binaryData": {"b": "x"}, "immutable": true})),
        ("v1.Secret", json!({"metadata": {}, "data": {"a": "x"}, "stringData": {"b": "x"}, "type": "x"})),
        (
            "v1.Service",
            json!({"metadata": {}, "spec": {"selector": {"a": "x"}, "ports": [{"name": "x", "targetPort": "x"}],
            "type": "x", "clusterIP": "x", "externalIPs": ["x"], "externalName": "x", "loadBalancerIP": "x",
            "loadBalancerSourceRanges": ["x"]}}),
        ),
        ("v1.ServiceAccount", json!({"metadata": {}, "secrets": [{"name": "x"}], "imagePullSecrets": [{"name": "x"}]})),
        (
            "v1.PersistentVolumeClaim",
            json!({"metadata": {}, "spec": {"storageClassName": "x", "volumeName": "x",
            "resources": {"requests": {"storage": "x"}}, "accessModes": ["x"], "aFieldOfTomorrow": "x"}}),
        ),
        (
            "v1.PersistentVolume",
            json!({"metadata": {}, "spec": {"capacity": {"storage": "x"}, "csi": {"driver": "x",
            "volumeHandle": "x", "volumeAttributes": {"a": "x"}}, "nfs": {"server": "x"}, "claimRef": {"name": "x"}}}),
        ),
        ("v1.Node", json!({"metadata": {}, "spec": {"taints": [{"key": "x"}], "providerID": "x", "podCIDR": "x"}})),
        (
            "scheduling.k8s.io/v1.PriorityClass",
            json!({"metadata": {}, "value": 3, "description": "x", "preemptionPolicy": "x"}),
        ),
        (
            "storage.k8s.io/v1.StorageClass",
            json!({"metadata": {}, "provisioner": "x", "parameters": {"a": "x"},
            "volumeBindingMode": "x"}),
        ),
        ("autoscaling/v2.HorizontalPodAutoscaler", json!({"metadata": {}, "spec": {"scaleTargetRef": {"name": "x"}}})),
        (
            "example.com/v1.Unknown",
            json!({"metadata": {}, "spec": {"anything": "x", "template": template()}, "more": "x"}),
        ),
    ];
    let listed = samples.map(|(kind, sample)| format!("{kind}\n{}", kept_minimally(kind, sample)));
    insta::assert_snapshot!(listed.join("\n\n"));
}

#[test]
fn of_metadata_stay_names_labels_owners_and_annotations_that_schedulers_read() {
    let mut sample = json!({"metadata": {
    "namespace": "x", "generateName": "x", "labels": {"app": "x"}, "finalizers": ["x"],
    "ownerReferences": [{"apiVersion": "x", "kind": "x", "name": "x", "uid": "x"}], "aFieldOfTomorrow": "x",
    "annotations": {
        "team": "x", "kubectl.kubernetes.io/restartedAt": "x", "kubectl.kubernetes.io/last-applied-configuration": "x",
        "cluster-autoscaler.kubernetes.io/safe-to-evict": "x", "karpenter.sh/do-not-disrupt": "x",
        "controller.kubernetes.io/pod-deletion-cost": "x", "scheduler.alpha.kubernetes.io/tolerations": "x",
        "simkube.io/kwok-stage-create-delay": "x", "static.simkube.io/template": "x", "notsimkube.io/x": "x",
    }}});
    plant(&mut sample, "");
    sample["metadata"]["name"] = json!("sample");
    sample["metadata"]["uid"] = json!("uid");
    let body = body("{trackedObjects: {x.io/v1.Thing: {}}}", &kind("x.io/v1.Thing"), &sample);
    insta::assert_snapshot!(survivors(&body).join("\n"));
    assert!(body["metadata"]["annotations"]["team"].as_str().unwrap().starts_with("sk:"));
}

#[test]
fn hidden_values_keep_the_form_that_a_server_wants() {
    let secret = served(
        sk_testkit::objects::object(
            json!({"metadata": {"name": "s", "namespace": "n"}, "data": {"a": "aHVudGVyMg=="}}),
        ),
        "u",
    );
    let body = body("{trackedObjects: {v1.Secret: {}}}", &kind("v1.Secret"), &secret);
    let hidden = body["data"]["a"].as_str().unwrap();
    assert!(
        hidden.len().is_multiple_of(4) && hidden.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'/'),
        "{hidden}"
    );
}

#[test]
fn full_privacy_off_keeps_everything_but_secrets() {
    let workload = json!({"metadata": {"annotations": {"team": "x"}}, "spec": {"template": template(), "other": "x"}});
    let mut planted = workload.clone();
    plant(&mut planted, "");
    assert_eq!(kept("privacy: full", &kind("apps/v1.Deployment"), workload), survivors(&planted));
    let secret = json!({"metadata": {}, "data": {"a": "x", "b": "x"}, "stringData": {"c": "x"}, "type": "x"});
    assert_eq!(kept("privacy: full", &kind("v1.Secret"), secret.clone()), ["/type"]);
    assert_eq!(kept("privacy: full, keep: [/data]", &kind("v1.Secret"), secret.clone()), ["/type"], "not by the dozen");
    let by_name = "keep: ['v1.Secret:/data/a', 'v1.Secret:/stringData']";
    assert_eq!(kept(by_name, &kind("v1.Secret"), secret), ["/data/a", "/type"], "only by its name, with its kind");
}

#[test]
fn a_place_kept_for_all_kinds_or_for_another_opens_no_secret() {
    let sample = json!({"metadata": {"annotations": {"team": "x"}}, "data": {"a": "x"}, "stringData": {"a": "x"}});
    for privacy in ["minimal", "full"] {
        for keep in ["/data/a, /stringData/a", "'v1.ConfigMap:/data/a'", "/data/a, 'x.io/v1.Secret:/data/a'"] {
            let settings = format!("privacy: {privacy}, keep: [{keep}, /metadata/annotations/team]");
            let kept_of = |name: &str| kept(&settings, &kind(name), sample.clone());
            assert_eq!(kept_of("v1.Secret"), ["/metadata/annotations/team"], "{settings}");
            assert!(kept_of("v1.ConfigMap").contains(&"/data/a".to_owned()), "{settings}");
        }
    }
}

#[test]
fn what_the_configuration_names_is_kept() {
    let sample = json!({"metadata": {"annotations": {"team": "x", "other": "x"}},
        "spec": {"template": {"spec": {"containers": [{"args": ["x"], "command": ["x"]}, {"args": ["x"]}]}}}});
    let keep = "keep: [/metadata/annotations/team, /spec/template/spec/containers/*/args]";
    let kept = kept(keep, &kind("apps/v1.Deployment"), sample);
    assert_eq!(kept, ["/metadata/annotations/team", "/spec/template/spec/containers/*/args/*"]);
}

#[test]
fn a_custom_resource_keeps_its_templates_as_built_in_kinds_do() {
    let sample = json!({"metadata": {}, "spec": {"groups": [{"name": "x", "template": template()}]}});
    let yaml = "podSpecTemplatePaths: ['/spec/groups/*/template']";
    let thing = kind("x.io/v1.Thing");
    let mut planted = sample;
    plant(&mut planted, "");
    planted["metadata"] = json!({"name": "n", "uid": "u"});
    let body = body(&format!("{{trackedObjects: {{x.io/v1.Thing: {{{yaml}}}}}}}"), &thing, &planted);
    let deployment = kept_minimally("apps/v1.Deployment", json!({"metadata": {}, "spec": {"template": template()}}));
    let expected: Vec<_> =
        deployment.lines().map(|line| line.replacen("/spec/template", "/spec/groups/*/template", 1)).collect();
    assert_eq!(survivors(&body), expected);
}
