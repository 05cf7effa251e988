//! Lives of pods on the real control plane: each belongs to the template it was made from, and what happens while nobody
//! watches and the history is forgotten is recorded as a gap, not as something that never was.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams};
use serde_json::json;
use sk_core::{PointerPattern, SmolStr, TemplateId};
use sk_store::log::{Fact, PodFacts, Reader};
use sk_store::trace::Change;
use sk_testkit::control_plane::{ControlPlane, eventually};
use sk_testkit::{Component, Options, objects};

use crate::support::{self, LIMIT, api, config, entries, export, gaps, now, record};

const CONFIG: &str = "
trackedObjects:
  apps/v1.Deployment: {trackLifecycle: true}
  apps/v1.StatefulSet: {trackLifecycle: true}
  batch/v1.Job: {trackLifecycle: true}
  batch/v1.CronJob: {trackLifecycle: true}
";

/// What is known of each pod in the end, by uid.
fn pods(reader: &Reader) -> BTreeMap<SmolStr, PodFacts> {
    let pod = |entry: sk_store::log::Entry| match entry.fact {
        Fact::Pod(pod) => Some((pod.uid.clone(), *pod)),
        _ => None,
    };
    entries(reader).into_iter().filter_map(pod).collect()
}

/// Those of them that belong to an object of this name, however far above them it stands.
fn pods_of(reader: &Reader, owner: &str) -> Vec<PodFacts> {
    let belongs = |pod: &PodFacts| pod.attributions.iter().any(|attribution| attribution.owner.key.name == owner);
    let mut pods: Vec<_> = pods(reader).into_values().filter(belongs).collect();
    pods.sort_by_key(|pod| pod.created);
    pods
}

/// Waits for as many pods of an application as wanted, all with this image and in this phase.
async fn until_pods(client: &Client, app: &str, count: usize, image: &str, phase: &str) -> Vec<Pod> {
    let api: Api<Pod> = Api::default_namespaced(client.clone());
    let what = format!("{count} pods of {app} with {image} to be {phase}");
    let of_app = |pod: &Pod| pod.metadata.name.as_deref().is_some_and(|name| name.starts_with(app));
    let as_wanted = |pod: &Pod| {
        let has_image = pod.spec.as_ref().is_some_and(|spec| spec.containers[0].image.as_deref() == Some(image));
        let in_phase = pod.status.as_ref().is_some_and(|status| status.phase.as_deref() == Some(phase));
        has_image && in_phase && pod.metadata.deletion_timestamp.is_none()
    };
    eventually(&what, LIMIT, || async {
        let mut pods = api.list(&ListParams::default()).await?.items;
        pods.retain(of_app);
        Ok((pods.len() == count && pods.iter().all(as_wanted)).then_some(pods))
    })
    .await
    .unwrap_or_else(|error| panic!("{error}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn lives_belong_to_their_templates_and_what_nobody_saw_is_a_gap() {
    let mut cluster = ControlPlane::start(Options::default()).await.expect("a control plane starts");
    cluster.create_nodes(["a", "b"].map(|name| objects::node().name(name))).await.expect("KWOK makes nodes ready");
    let client = cluster.client();
    let data = tempfile::tempdir().unwrap();
    let tracer = record(&cluster, config(CONFIG), data.path()).await;
    let began = now();

    // A rolling update: the pods of both revisions know which template they were made from.
    cluster.create(&objects::deployment().name("web").replicas(2).image("web:1")).await.unwrap();
    until_pods(&client, "web", 2, "web:1", "Running").await;
    let deployments = api(client.clone(), "apps/v1.Deployment", "deployments", Some("default"));
    let before = deployments.get("web").await.unwrap();
    let container = &before.data["spec"]["template"]["spec"]["containers"][0]["name"];
    let image = json!({"spec": {"template": {"spec": {"containers": [{"name": container, "image": "web:2"}]}}}});
    deployments.patch("web", &PatchParams::default(), &Patch::Strategic(&image)).await.unwrap();
    until_pods(&client, "web", 2, "web:2", "Running").await;

    // A StatefulSet, a Job, and a Job that belongs to a CronJob.
    cluster.create(&objects::stateful_set().name("db").replicas(1).image("db:1")).await.unwrap();
    cluster.create(&objects::job().name("once").image("once:1")).await.unwrap();
    let schedule = objects::cron_job().name("nightly").image("nightly:1").set("/spec/schedule", "0 0 1 1 *");
    let nightly = cluster.create(&schedule).await.unwrap();
    let owner = json!([{
        "apiVersion": "batch/v1", "kind": "CronJob", "name": "nightly", "controller": true, "uid": nightly.metadata.uid,
    }]);
    let run = objects::job().name("nightly-1").image("nightly:1").set("/metadata/ownerReferences", owner);
    cluster.create(&run).await.unwrap();
    // Two more, of which one belongs to a CronJob, whose pods wait for a node that never comes and so are not done.
    let weekly = objects::cron_job().name("weekly").image("stuck:1").set("/spec/schedule", "0 0 1 1 *");
    let weekly = cluster.create(&weekly).await.unwrap();
    let owner = json!([{
        "apiVersion": "batch/v1", "kind": "CronJob", "name": "weekly", "controller": true, "uid": weekly.metadata.uid,
    }]);
    let nowhere = json!({"example.com/nowhere": "true"});
    let stuck = |name: &str| {
        objects::job().name(name).image("stuck:1").set("/spec/template/spec/nodeSelector", nowhere.clone())
    };
    cluster.create(&stuck("stuck")).await.unwrap();
    cluster.create(&stuck("weekly-1").set("/metadata/ownerReferences", owner)).await.unwrap();
    let first = until_pods(&client, "db", 1, "db:1", "Running").await;
    until_pods(&client, "once", 1, "once:1", "Succeeded").await;
    until_pods(&client, "nightly-1", 1, "nightly:1", "Succeeded").await;
    let mut waiting = until_pods(&client, "stuck", 1, "stuck:1", "Pending").await;
    waiting.extend(until_pods(&client, "weekly-1", 1, "stuck:1", "Pending").await);

    let trace = export(&tracer, began).await;
    let reader = tracer.reader();
    let web = pods_of(&reader, "web");
    let template = |pod: &PodFacts| pod.attributions[0].template.clone().expect("its template is known");
    let made_from: Vec<_> = web.iter().map(template).collect();
    assert_eq!(web.len(), 4, "two pods of each revision: {web:#?}");
    assert!(
        made_from[0] == made_from[1] && made_from[2] == made_from[3] && made_from[0] != made_from[2],
        "{made_from:?}"
    );
    assert_eq!(
        made_from.into_iter().collect::<BTreeSet<_>>(),
        templates_in(&trace, "web"),
        "those of the exported objects"
    );
    let nightly = &pods_of(&reader, "nightly")[0];
    let owners: Vec<_> = nightly.attributions.iter().map(|attribution| attribution.owner.to_string()).collect();
    assert_eq!(owners, ["Job default/nightly-1", "CronJob default/nightly"], "nearest first");
    assert!(nightly.finished.is_some());
    assert_eq!(tracer.counts().lookups, 0, "no pod costs a request");
    assert_eq!(gaps(&reader), []);
    tracer.shutdown().await.unwrap();

    // Nobody watches, the StatefulSet's pod is replaced under its name, Jobs' pods are replaced, a Job goes, and the history
    // is forgotten.
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    for pod in &waiting {
        let name = pod.metadata.name.as_deref().expect("pods have names");
        pods.delete(name, &DeleteParams::default().grace_period(0)).await.unwrap();
    }
    pods.delete("db-0", &DeleteParams::default().grace_period(0)).await.unwrap();
    let jobs = api(client.clone(), "batch/v1.Job", "jobs", Some("default"));
    jobs.delete("once", &DeleteParams::background()).await.unwrap();
    let uid = first[0].metadata.uid.clone();
    eventually("another db-0", LIMIT, || async {
        let other = pods.get_opt("db-0").await?.filter(|pod| pod.metadata.uid != uid);
        Ok(other.filter(|pod| pod.status.as_ref().is_some_and(|status| status.phase.as_deref() == Some("Running"))))
    })
    .await
    .unwrap();
    eventually("the Job's pod to go", LIMIT, || async {
        let left = pods.list(&ListParams::default()).await?.items;
        Ok((!left.iter().any(|pod| pod.metadata.name.as_deref().is_some_and(|name| name.starts_with("once"))))
            .then_some(()))
    })
    .await
    .unwrap();
    for (app, before) in ["stuck", "weekly-1"].into_iter().zip(&waiting) {
        eventually(&format!("another pod of {app}"), LIMIT, || async {
            let all = pods.list(&ListParams::default()).await?.items;
            let other = |pod: &Pod| {
                let of_app = pod.metadata.name.as_deref().is_some_and(|name| name.starts_with(app));
                of_app && pod.metadata.uid != before.metadata.uid && pod.metadata.deletion_timestamp.is_none()
            };
            Ok(all.iter().any(other).then_some(()))
        })
        .await
        .unwrap();
    }
    cluster.compact_etcd().await.unwrap();
    cluster.restart(Component::ApiServer).await.unwrap();
    let back = now();
    let tracer = record(&cluster, config(CONFIG), data.path()).await;
    let kinds = ["v1.Pod", "apps/v1.StatefulSet", "batch/v1.Job", "batch/v1.CronJob"].map(|kind| kind.parse().unwrap());
    eventually("the kinds to be listed again", LIMIT, || async {
        Ok(kinds.iter().all(|kind| tracer.lists(kind) > 0).then_some(()))
    })
    .await
    .unwrap();
    let trace = export(&tracer, began).await;
    let reader = tracer.reader();

    let missed: BTreeSet<_> =
        gaps(&reader).into_iter().filter_map(|gap| gap.kind).map(|kind| kind.to_string()).collect();
    for kind in &kinds {
        assert!(missed.contains(&kind.to_string()), "{kind} was not watched: {missed:?}");
    }
    assert!(gaps(&reader).iter().all(|gap| gap.from < back && gap.to >= back), "{:?}", gaps(&reader));
    let in_trace: Vec<_> = trace.gaps().unwrap().map(|gap| gap.unwrap().kind).collect();
    assert_eq!(in_trace.len(), gaps(&reader).len(), "the gaps travel with the trace");
    let db = pods_of(&reader, "db");
    assert_eq!(
        db.iter().map(|pod| pod.pod.to_string()).collect::<Vec<_>>(),
        ["default/db-0", "default/db-0"],
        "two lives"
    );
    assert!(db[0].guessed && db[0].finished.is_some() && db[0].deleted.is_some(), "{:#?}", db[0]);
    assert!(!db[1].guessed && db[1].started.is_some() && db[1].finished.is_none(), "{:#?}", db[1]);
    for owner in ["stuck", "weekly"] {
        let pods = pods_of(&reader, owner);
        let gone: Vec<_> =
            pods.iter().map(|pod| (pod.deleted.is_some(), pod.attributions[0].template.is_some())).collect();
        assert_eq!(gone, [(true, true), (false, true)], "two lives of {owner}: {pods:#?}");
    }
    let once = pods_of(&reader, "once");
    assert!(once[0].deleted.is_some() && once[0].finished.is_some(), "{once:#?}");
    assert!(support::story(&trace).contains(&"- Job default/once".to_owned()), "{:#?}", support::story(&trace));
    let lives = lives_by_owner(&trace);
    assert_eq!(lives.get("StatefulSet default/db"), Some(&2), "{lives:?} {db:#?}");
    assert_eq!(lives.get("CronJob default/nightly"), Some(&1), "{lives:?}");
    assert_eq!(lives.get("Deployment default/web"), Some(&4), "{lives:?}");
    tracer.shutdown().await.unwrap();
}

/// How many lives each owner's pods had.
fn lives_by_owner(trace: &sk_store::Trace) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for owner in trace.lives().expect("the trace reads") {
        let owner = owner.expect("the trace reads");
        let lives: usize = owner.templates.iter().map(|template| template.lives.len()).sum();
        *counts.entry(owner.owner.to_string()).or_default() += lives;
    }
    counts
}

/// The templates that an object has had in a trace.
fn templates_in(trace: &sk_store::Trace, name: &str) -> BTreeSet<TemplateId> {
    let path: PointerPattern = "/spec/template".parse().expect("a pointer");
    let of_object = |record: Result<sk_store::trace::Record, _>| match record.expect("the trace reads").change {
        Change::Apply(object) if object.reference().key.name == name => {
            TemplateId::all_in(object.value(), std::slice::from_ref(&path))
        }
        _ => Vec::new(),
    };
    trace.records().expect("the trace reads").flat_map(of_object).collect()
}
