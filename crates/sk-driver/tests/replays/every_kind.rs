//! One recorded object of each built-in kind, as a real server gave it back, replayed on the cluster it came from, with
//! the rights that an installation gives to its driver and no others.

use std::path::Path;
use std::process::Command;

use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use kube::config::{AuthInfo, KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{Value, json};
use sk_api::simulation::names;
use sk_core::Gvk;
use sk_testkit::control_plane::{ControlPlane, eventually};

use crate::support::*;
use crate::volumes::claims_reach_no_provisioner_and_what_is_going_is_waited_for;

/// What people have in a namespace. Names say the kind.
fn written() -> Vec<Value> {
    let pod = json!({"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "10m"}}}]});
    let template = |app: &str| json!({"metadata": {"labels": {"app": app}}, "spec": pod});
    let selector = |app: &str| json!({"matchLabels": {"app": app}});
    let job_pod =
        json!({"spec": {"restartPolicy": "Never", "serviceAccountName": "builder", "containers": pod["containers"]}});
    let port = json!([{"port": 80}]);
    let of = |api: &str, kind: &str, name: &str, rest: Value| {
        let mut object = json!({"apiVersion": api, "kind": kind, "metadata": {"name": name, "namespace": "shop"}});
        object.as_object_mut().unwrap().extend(rest.as_object().cloned().unwrap());
        object
    };
    vec![
        of("v1", "ServiceAccount", "builder", json!({})),
        of("v1", "ConfigMap", "config", json!({"data": {"a": "b"}})),
        of("v1", "Secret", "secret", json!({"stringData": {"a": "b"}})),
        of(
            "v1",
            "LimitRange",
            "limits",
            json!({"spec": {"limits": [{"type": "Container", "defaultRequest": {"cpu": "5m"}}]}}),
        ),
        of("v1", "ResourceQuota", "quota", json!({"spec": {"hard": {"pods": "100"}}})),
        of(
            "v1",
            "PersistentVolumeClaim",
            "claim",
            json!({"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}),
        ),
        of("v1", "Service", "cluster-ip", json!({"spec": {"selector": {"app": "web"}, "ports": port}})),
        of(
            "v1",
            "Service",
            "headless",
            json!({"spec": {"clusterIP": "None", "selector": {"app": "web"}, "ports": port}}),
        ),
        of("v1", "Service", "node-port", json!({"spec": {"type": "NodePort", "ports": port}})),
        of("v1", "Service", "load-balancer", json!({"spec": {"type": "LoadBalancer", "ports": port}})),
        of("v1", "Pod", "pod", json!({"spec": pod})),
        of(
            "v1",
            "ReplicationController",
            "rc",
            json!({"spec": {"replicas": 1, "selector": {"app": "rc"}, "template": template("rc")}}),
        ),
        of(
            "apps/v1",
            "Deployment",
            "deployment",
            json!({"spec": {"replicas": 2, "selector": selector("web"), "template": template("web")}}),
        ),
        of(
            "apps/v1",
            "ReplicaSet",
            "replica-set",
            json!({"spec": {"replicas": 1, "selector": selector("rs"), "template": template("rs")}}),
        ),
        of(
            "apps/v1",
            "StatefulSet",
            "stateful-set",
            json!({"spec": {"replicas": 2, "serviceName": "headless", "selector": selector("ss"), "template": template("ss")}}),
        ),
        of(
            "apps/v1",
            "DaemonSet",
            "daemon-set",
            json!({"spec": {"selector": selector("ds"), "template": template("ds")}}),
        ),
        of("batch/v1", "Job", "job", json!({"spec": {"template": job_pod}})),
        of(
            "batch/v1",
            "CronJob",
            "cron-job",
            json!({"spec": {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": {"template": job_pod}}}}),
        ),
        of(
            "autoscaling/v2",
            "HorizontalPodAutoscaler",
            "hpa",
            json!({"spec": {"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "deployment"}}}),
        ),
        of(
            "policy/v1",
            "PodDisruptionBudget",
            "pdb",
            json!({"spec": {"minAvailable": 1, "selector": selector("web")}}),
        ),
        of(
            "networking.k8s.io/v1",
            "Ingress",
            "ingress",
            json!({"spec": {"defaultBackend": {"service": {"name": "cluster-ip", "port": {"number": 80}}}}}),
        ),
        of(
            "networking.k8s.io/v1",
            "NetworkPolicy",
            "policy",
            json!({"spec": {"podSelector": {}, "ingress": [{"from": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "shop"}}}]}]}}),
        ),
    ]
}

async fn api(cluster: &ControlPlane, object: &Value, namespace: Option<&str>) -> Api<DynamicObject> {
    let gvk = Gvk::from_api_version(object["apiVersion"].as_str().unwrap(), object["kind"].as_str().unwrap()).unwrap();
    cluster.api(&gvk, namespace).await.unwrap()
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap()
}

/// What a tracer keeps of an object that it has seen; everything that a server allots stays in.
fn sanitised(object: &DynamicObject) -> Value {
    let mut value = serde_json::to_value(object).unwrap();
    let metadata = value["metadata"].as_object_mut().unwrap();
    for field in ["creationTimestamp", "deletionTimestamp", "generation", "managedFields", "resourceVersion", "uid"] {
        metadata.remove(field);
    }
    metadata.entry("annotations").or_insert_with(|| json!({}));
    if value["kind"] == "Pod" {
        value["spec"].as_object_mut().unwrap().remove("nodeName");
    }
    value
}

/// Creates the objects, and gives them back as they were recorded once controllers had seen them.
async fn record(cluster: &ControlPlane, objects: &[Value]) -> Vec<Value> {
    for object in objects {
        let typed: DynamicObject = serde_json::from_value(object.clone()).unwrap();
        let namespace = object["metadata"]["namespace"].as_str();
        let api = api(cluster, object, namespace).await;
        eventually(&format!("{} to be created", name(object)), LIMIT, || async {
            // A new namespace's default account comes a moment later.
            api.create(&PostParams::default(), &typed).await.map(Some)
        })
        .await
        .unwrap();
    }
    let mut recorded = Vec::new();
    for object in objects {
        let api = api(cluster, object, object["metadata"]["namespace"].as_str()).await;
        recorded.push(sanitised(&api.get(name(object)).await.unwrap()));
    }
    recorded
}

/// A client with the rights of the driver's account in an installation, as `skctl manifests sim` prints them.
async fn drivers_client(cluster: &ControlPlane) -> Client {
    let skctl = sk_testkit::programs::built("skctl", Path::new(env!("CARGO_BIN_EXE_sk-driver")));
    let printed = Command::new(skctl).args(["manifests", "sim"]).output().unwrap();
    assert!(printed.status.success(), "{}", String::from_utf8_lossy(&printed.stderr));
    let manifests: Vec<Value> = serde_saphyr::from_multiple(&String::from_utf8(printed.stdout).unwrap()).unwrap();
    let about_rights = |manifest: &&Value| {
        let is_of = |field: &str, word: &str| manifest[field].as_str().is_some_and(|text| text.contains(word));
        is_of("apiVersion", "rbac.authorization.k8s.io")
            || is_of("kind", "ServiceAccount")
            || is_of("kind", "Namespace")
    };
    for manifest in manifests.iter().filter(about_rights) {
        let api = api(cluster, manifest, manifest["metadata"]["namespace"].as_str()).await;
        api.patch(name(manifest), &PatchParams::apply("test"), &Patch::Apply(manifest)).await.unwrap();
    }
    let kubeconfig = Kubeconfig::read_from(cluster.kubeconfig()).unwrap();
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    let accounts: Api<ServiceAccount> = Api::namespaced(cluster.client(), names::NAMESPACE);
    let asked = serde_json::from_value(json!({"spec": {"audiences": []}})).unwrap();
    let token = accounts.create_token_request(names::DRIVER_ACCOUNT, &PostParams::default(), &asked).await.unwrap();
    let token = token.status.unwrap().token.unwrap();
    config.auth_info = AuthInfo { token: Some(token.into()), ..AuthInfo::default() };
    Client::try_from(config).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn one_object_of_each_kind_is_accepted_and_what_was_there_is_untouched() {
    let cluster = cluster().await;
    install_kinds(&cluster).await;
    let class = |name: &str, value: i32| {
        json!({
            "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value,
        })
    };
    let around = [
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "labels": {"team": "a"}}}),
        // Stands where the run's own namespace for `taken` would be.
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "virtual-taken"}}),
        class("theirs", 1000),
        class("trace-only", 500),
    ];
    let around = record(&cluster, &around).await;
    let taken = |namespace: &str| {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": namespace}, "data": {},
        })
    };
    record(&cluster, &[taken("virtual-taken")]).await;
    let recorded = record(&cluster, &written()).await;
    let classes = api(&cluster, &class("x", 0), None).await;
    classes.delete("trace-only", &Default::default()).await.unwrap();
    let mut changed_class = around[2].clone();
    changed_class["description"] = json!("what a run would write over it");
    let mut changed_account = recorded[0].clone();
    changed_account["metadata"]["labels"] = json!({"changed": "yes"});

    let client = drivers_client(&cluster).await;
    let webhook = Installed::new(&cluster, "kinds").await;
    let untouched = |api: Api<DynamicObject>, name: &'static str| async move {
        serde_json::to_value(api.get(name).await.unwrap()).unwrap()["metadata"]["resourceVersion"].clone()
    };
    let accounts = api(&cluster, &recorded[0], Some("shop")).await;
    let (class_before, account_before) =
        (untouched(classes.clone(), "theirs").await, untouched(accounts.clone(), "builder").await);

    let in_taken = taken("taken");
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "real"}});
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "r"}, "rules": []});
    let mut story = Story::of_secs(3600).apply(0, &around[0]).apply(0, &changed_class).apply(0, &around[3]);
    story = recorded.iter().fold(story, |story, object| story.apply(0, object));
    story = story.apply(1, &changed_account).apply(1, &in_taken).apply(1, &node).apply(1, &role);
    // Neither the class nor the ConfigMap of that name is the run's to delete.
    story = story.delete(2, &in_taken).delete(2, &around[2]);
    let mut last = taken("shop");
    last["metadata"]["name"] = json!("last");
    story = story.apply(3, &last);
    let mut play = Play::new("kinds", 1.0, &story);
    play.announce(&cluster.client()).await;
    play.options.webhook = webhook.told(LIMIT);
    let before = everything(&cluster).await;
    // Nobody serves Ingresses here.
    play.options.listed.insert(Gvk::new_static("networking.k8s.io", "v1", "Ingress"));

    let look = async {
        // Whoever may write Secrets may read them all, so an installation gives no right to it unless it is asked to.
        let is_allowed = |object: &&Value| object["kind"] != "Secret";
        for object in recorded.iter().filter(is_allowed).chain([&around[3]]) {
            let namespace = object["metadata"].get("namespace").map(|_| "virtual-shop");
            let api = api(&cluster, object, namespace).await;
            let what = format!("{} {} to be replayed", object["kind"], name(object));
            let there = eventually(&what, LIMIT, || api.get_opt(name(object))).await.unwrap();
            assert_eq!(there.metadata.labels.unwrap()["simkube.io/simulation"], "kinds");
        }
        let kind = json!({"apiVersion": "v1", "kind": "ReplicationController"});
        let controller = api(&cluster, &kind, Some("virtual-shop")).await.get("rc").await.unwrap();
        let selector = &controller.data["spec"]["template"]["spec"]["nodeSelector"];
        assert_eq!(*selector, json!({"type": "virtual"}));
        let pods = api(&cluster, &json!({"apiVersion": "v1", "kind": "Pod"}), Some("virtual-shop")).await;
        eventually("the replayed bare pod to run on a virtual node", LIMIT, || async {
            let pod = pods.get("pod").await?.data;
            Ok((pod["status"]["phase"] == "Running").then_some(()))
        })
        .await
        .unwrap();
        let maps = api(&cluster, &last, Some("virtual-shop")).await;
        eventually("the last object to be replayed", LIMIT, || maps.get_opt("last")).await.unwrap();
        // Stopped by whoever is interested, not by the clock: the trace is an hour long.
        play.stop.ask("seen enough");
    };
    let (outcome, ()) = tokio::join!(play.run(client), look);
    let outcome = outcome.unwrap();
    assert_eq!(outcome.stopped.as_deref(), Some("seen enough"));
    let run = play.record();
    assert_eq!(outcome.totals.refused, 1, "{:?}", run.meta().warnings);
    let missing: Vec<_> = run.meta().warnings.iter().filter(|warning| warning.code == "missing-right").collect();
    assert!(missing.len() == 1 && missing[0].message.contains("`skctl install sim --also secrets`"), "{missing:?}");
    assert_eq!(outcome.totals.left_alone, 4, "{:?}", run.meta().warnings);
    // The Role; Nodes are not even planned.
    assert_eq!(outcome.totals.left_out, 1, "{:?}", run.meta().warnings);
    assert!(codes(&run).contains(&("cronjob-clock".to_owned(), 1)), "{:?}", codes(&run));
    assert!(run.meta().partial, "it was stopped before its end");
    assert!(run.pods().unwrap().any(|pod| pod.unwrap().owner == "shop/DaemonSet/daemon-set"));
    assert_eq!(run.nodes().unwrap().count(), 3);

    assert_eq!(untouched(classes.clone(), "theirs").await, class_before);
    assert_eq!(untouched(accounts.clone(), "builder").await, account_before);
    assert_eq!(difference_outside_shop(&cluster, &before).await, Vec::<String>::new());

    claims_reach_no_provisioner_and_what_is_going_is_waited_for(&cluster).await;
}
