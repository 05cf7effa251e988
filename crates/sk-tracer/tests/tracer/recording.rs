//! What is recorded of a real cluster: kinds of every sort, in whatever order their events come, and nothing of one kind
//! because of another.

use std::path::Path;

use kube::Client;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};
use sk_api::tracer::Config;
use sk_core::Gvk;
use sk_store::log::Fact;
use sk_store::trace::Format;
use sk_testkit::Options;
use sk_testkit::control_plane::{ControlPlane, eventually};
use sk_tracer::Tracer;

use crate::support::{
    self, LIMIT, api, applied, apply, config, define, entries, export, gaps, live, now, record, recorded, story,
};

const MANY: &str = "
trackedObjects:
  v1.ConfigMap: {}
  v1.Namespace: {}
  v1.Service: {}
  apps/v1.Deployment: {}
  scheduling.k8s.io/v1.PriorityClass: {}
  example.com/v1.Widget: {}
  example.com/v1.Planet: {}
  example.com/v1.Parent: {}
namespaces: {exclude: [kube-*]}
";

fn deployment(name: &str, owner: Option<&Value>) -> Value {
    let mut object = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "main", "image": "nginx"}]},
            },
        },
    });
    if let Some(owner) = owner {
        object["metadata"]["ownerReferences"] = json!([owner]);
    }
    object
}

fn object(kind: &str, name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": kind, "metadata": {"name": name, "namespace": "default"}, "spec": spec})
}

fn config_map(name: &str, data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, "data": data})
}

#[tokio::test(flavor = "multi_thread")]
async fn kinds_of_every_sort_are_recorded_each_by_itself() {
    let cluster = ControlPlane::start(Options::api_only()).await.expect("a control plane starts");
    let client = cluster.client();
    let data = tempfile::tempdir().unwrap();
    apply(&client, "configmaps", config_map("same", &json!({"a": "1"}))).await;
    let tracer = record(&cluster, config(MANY), data.path()).await;
    let not_served: Vec<_> = tracer.readiness().not_served.iter().map(ToString::to_string).collect();
    let waited_for = ["example.com/v1.Parent", "example.com/v1.Planet", "example.com/v1.Widget"];
    assert_eq!(not_served, waited_for, "they are waited for, and said");
    let began = now();
    a_child_is_seen_before_its_owner(&client, &tracer).await;

    // Kinds that come later, one with namespaces and one without; the same name in every kind.
    define(&client, "Widget", "widgets", "Namespaced").await;
    define(&client, "Planet", "planets", "Cluster").await;
    let widget = apply(&client, "widgets", object("Widget", "same", &json!({"size": 1}))).await;
    let planet = json!({"apiVersion": "example.com/v1", "kind": "Planet", "metadata": {"name": "same"}});
    apply(&client, "planets", planet).await;
    let class = json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "same"}, "value": 7});
    apply(&client, "priorityclasses", class).await;
    apply(&client, "configmaps", config_map("same", &json!({"a": "2"}))).await;
    eventually("the new kinds to be listed", LIMIT, || async {
        Ok(tracer.readiness().not_served.is_empty().then_some(()))
    })
    .await
    .unwrap();

    // A child whose owner comes first, and one whose owner is seen after it.
    let owner =
        |name: &str, uid: &str| json!({"apiVersion": "example.com/v1", "kind": "Widget", "name": name, "uid": uid});
    let uid = widget.metadata.uid.clone().unwrap();
    apply(&client, "deployments", deployment("after-its-owner", Some(&owner("same", &uid)))).await;
    apply(&client, "deployments", deployment("before-its-owner", None)).await;
    let late = apply(&client, "widgets", object("Widget", "late", &json!({}))).await;
    let uid = late.metadata.uid.clone().unwrap();
    apply(&client, "deployments", deployment("before-its-owner", Some(&owner("late", &uid)))).await;
    apply(&client, "deployments", deployment("alone", None)).await;
    // Gone and there again within a second: two events.
    let config_maps = api(client.clone(), "v1.ConfigMap", "configmaps", Some("default"));
    apply(&client, "configmaps", config_map("twice", &json!({"a": "1"}))).await;
    config_maps.delete("twice", &DeleteParams::default()).await.unwrap();
    apply(&client, "configmaps", config_map("twice", &json!({"a": "1"}))).await;

    let trace = export(&tracer, began).await;
    let story = story(&trace);
    for kind in ["+ Widget default/same", "+ Planet same", "+ ConfigMap default/same", "+ Parent default/late"] {
        assert!(story.iter().any(|line| line.contains(kind)), "{kind} is not in {story:#?}");
    }
    assert!(story.iter().any(|line| line.contains("PriorityClass same")), "{story:#?}");
    assert!(story.iter().any(|line| line.contains("Deployment default/alone")), "{story:#?}");
    assert!(
        !story.iter().any(|line| line.contains("its-owner")),
        "what an exported owner makes is left out: {story:#?}"
    );
    let twice: Vec<_> = story.iter().filter(|line| line.contains("ConfigMap default/twice")).collect();
    assert_eq!(twice.iter().map(|line| &line[..1]).collect::<Vec<_>>(), ["+", "-", "+"], "{story:#?}");
    assert!(!story.iter().any(|line| line.contains("kube-system")), "{story:#?}");

    // One kind goes and comes back: its objects are listed again, and nobody else's are touched.
    let definitions = "apiextensions.k8s.io/v1.CustomResourceDefinition";
    let crds = api(client.clone(), definitions, "customresourcedefinitions", None);
    let widgets = "example.com/v1.Widget".parse().unwrap();
    let lists_before = tracer.lists(&widgets);
    crds.delete("widgets.example.com", &DeleteParams::default()).await.unwrap();
    eventually("the kind to be gone", LIMIT, || async {
        Ok(tracer.readiness().not_served.contains(&widgets).then_some(()))
    })
    .await
    .unwrap();
    define(&client, "Widget", "widgets", "Namespaced").await;
    apply(&client, "widgets", object("Widget", "new", &json!({}))).await;
    eventually("the kind to be listed again", LIMIT, || async {
        Ok((tracer.lists(&widgets) > lists_before).then_some(()))
    })
    .await
    .unwrap();
    export(&tracer, began).await;
    for kind in ["v1.ConfigMap", "apps/v1.Deployment", "example.com/v1.Planet", "v1.Pod"] {
        assert_eq!(tracer.lists(&kind.parse().unwrap()), 1, "{kind} was listed once");
    }
    let reader = tracer.reader();
    let wrongly_deleted = entries(&reader).into_iter().filter(|entry| match &entry.fact {
        Fact::Deleted(deleted) => deleted.object.gvk != widgets && deleted.object.key.name != "twice",
        _ => false,
    });
    assert_eq!(wrongly_deleted.count(), 0, "the relist of one kind deletes nothing of the others");
    let came_later = |kind: Option<&Gvk>| kind.is_some_and(|kind| kind.group == "example.com");
    assert!(gaps(&reader).iter().all(|gap| came_later(gap.kind.as_ref())), "{:?}", gaps(&reader));

    tracer.shutdown().await.unwrap();
    let log = support::open(data.path());
    for (kind, plural) in [("example.com/v1.Widget", "widgets"), ("example.com/v1.Planet", "planets")] {
        assert_eq!(recorded(&log, kind), live(&client, kind, plural).await, "{kind}");
    }
    let mut config_maps = live(&client, "v1.ConfigMap", "configmaps").await;
    config_maps.retain(|name, _| !name.starts_with("kube-"));
    assert_eq!(recorded(&log, "v1.ConfigMap"), config_maps);
}

/// The owner is there before its child, but its kind is not served in the version that is recorded until the child was seen.
async fn a_child_is_seen_before_its_owner(client: &Client, tracer: &Tracer) {
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let definition = |served: bool| {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "parents.example.com"},
            "spec": {
                "group": "example.com",
                "scope": "Namespaced",
                "names": {"kind": "Parent", "plural": "parents", "singular": "parent"},
                "versions": [
                    {"name": "v1", "served": served, "storage": false, "schema": schema},
                    {"name": "v2", "served": true, "storage": true, "schema": schema},
                ],
            },
        })
    };
    apply(client, "customresourcedefinitions", definition(false)).await;
    let metadata = json!({"name": "late", "namespace": "default"});
    let parent = json!({"apiVersion": "example.com/v2", "kind": "Parent", "metadata": metadata});
    let uid = apply(client, "parents", parent).await.metadata.uid;
    let owner = json!({"apiVersion": "example.com/v1", "kind": "Parent", "name": "late", "uid": uid});
    apply(client, "deployments", deployment("seen-before-its-owner", Some(&owner))).await;
    eventually("the child to be recorded", LIMIT, || async {
        tracer.flush().await.expect("the store works");
        let children = applied(&tracer.reader(), "apps/v1.Deployment");
        Ok(children.iter().any(|(_, child)| child.object.key.name == "seen-before-its-owner").then_some(()))
    })
    .await
    .unwrap();
    assert_eq!(applied(&tracer.reader(), "example.com/v1.Parent"), [], "its owner is not known");
    apply(client, "customresourcedefinitions", definition(true)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_is_anything_but_status_and_a_restart_loses_and_repeats_nothing() {
    let cluster = ControlPlane::start(Options::api_only()).await.expect("a control plane starts");
    let client = cluster.client();
    let data = tempfile::tempdir().unwrap();
    let tracked = || config("trackedObjects: {v1.ConfigMap: {}, apps/v1.Deployment: {}}\nprivacy: full\n");
    let tracer = record(&cluster, tracked(), data.path()).await;
    apply(&client, "deployments", deployment("web", None)).await;
    apply(&client, "configmaps", config_map("settings", &json!({"n": "1"}))).await;
    let deployments = api(client.clone(), "apps/v1.Deployment", "deployments", Some("default"));
    let status = json!({"status": {"observedGeneration": 1, "replicas": 3}});
    deployments.patch_status("web", &PatchParams::default(), &Patch::Merge(&status)).await.unwrap();
    let snapshot = sk_tracer::snapshot::snapshot(client.clone(), tracked(), Format::Native).await.unwrap();
    let snapshot = support::read_trace(snapshot.trace.file);
    assert!(story(&snapshot).contains(&"+ Deployment default/web".to_owned()), "a snapshot has what there is now");
    assert!(story(&snapshot).iter().all(|line| line.starts_with('+')), "and nothing else: {:?}", story(&snapshot));
    let labels = json!({"metadata": {"labels": {"team": "a"}}});
    deployments.patch("web", &PatchParams::default(), &Patch::Merge(&labels)).await.unwrap();
    tracer.shutdown().await.unwrap();

    // While nobody records, things go on; the watch goes on from where it was.
    apply(&client, "configmaps", config_map("settings", &json!({"n": "2"}))).await;
    apply(&client, "configmaps", config_map("settings", &json!({"n": "3"}))).await;
    let tracer = record(&cluster, tracked(), data.path()).await;
    apply(&client, "configmaps", config_map("settings", &json!({"n": "4"}))).await;
    export(&tracer, now()).await;

    let reader = tracer.reader();
    assert_eq!(gaps(&reader), [], "the API server still had the history");
    assert_eq!(tracer.lists(&"v1.ConfigMap".parse().unwrap()), 0, "nothing had to be listed");
    let of = |kind: &str, name: &str| {
        let versions = applied(&reader, kind).into_iter().filter(|(_, applied)| applied.object.key.name == name);
        versions.map(|(_, applied)| serde_json::from_slice(&applied.body).unwrap()).collect::<Vec<Value>>()
    };
    let numbers: Vec<_> = of("v1.ConfigMap", "settings").iter().map(|body| body["data"]["n"].clone()).collect();
    assert_eq!(numbers, ["1", "2", "3", "4"], "every version once, in order");
    let deployments = of("apps/v1.Deployment", "web");
    assert_eq!(deployments.len(), 2, "created, labelled; a status is no change: {deployments:#?}");
    tracer.shutdown().await.unwrap();
    a_folder_of_another_cluster_is_refused(&cluster, tracked(), data.path()).await;
}

async fn a_folder_of_another_cluster_is_refused(cluster: &ControlPlane, config: Config, data: &Path) {
    let namespaces = api(cluster.client(), "v1.Namespace", "namespaces", None);
    let uid = namespaces.get("kube-system").await.unwrap().metadata.uid.unwrap();
    let file = data.join("recorded-of");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), uid, "the folder says whose it is");
    std::fs::write(&file, "somebody-elses").unwrap();
    let options = sk_tracer::Options { data_dir: Some(data.to_owned()), ..sk_tracer::Options::default() };
    let refused = sk_tracer::Tracer::start(cluster.client(), config, options).await.unwrap_err().to_string();
    assert!(refused.contains("another cluster") && refused.contains("somebody-elses"), "{refused}");
}
