//! Pods that are run as local processes: a Job's life, a ServiceAccount's token, volumes, deletion, refusals.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Pod, PodStatus};
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use serde_json::json;
use sk_testkit::Options;
use sk_testkit::control_plane::{ControlPlane, eventually};
use sk_testkit::objects::{self, Object};
use sk_testkit::process_runner::{ProcessRunner, RunnerOptions};

const LIMIT: Duration = Duration::from_secs(120);

async fn cluster_with_runner() -> (ControlPlane, ProcessRunner) {
    let cluster = ControlPlane::start(Options::default().service_account_admission()).await.expect("a control plane");
    let options = RunnerOptions::for_pods("run=here").program("example/true:1", &PathBuf::from("true"));
    let runner = ProcessRunner::start(&cluster, options).await.expect("a process runner");
    let accounts: Api<k8s_openapi::api::core::v1::ServiceAccount> = Api::default_namespaced(cluster.client());
    eventually("the default ServiceAccount", LIMIT, || accounts.get_opt("default")).await.expect("an account");
    (cluster, runner)
}

fn script(name: &str, text: &str) -> Object {
    objects::pod()
        .name(name)
        .label("run", "here")
        .command(&["sh", "-c", text])
        .pod_field("restartPolicy", "Never")
        .pod_field("terminationGracePeriodSeconds", 5)
}

async fn status_when(cluster: &ControlPlane, name: &str, wanted: impl Fn(&PodStatus) -> bool) -> PodStatus {
    let pods: Api<Pod> = Api::default_namespaced(cluster.client());
    let what = format!("pod {name}");
    let found = eventually(&what, LIMIT, || async {
        let status = pods.get(name).await?.status.unwrap_or_default();
        Ok(wanted(&status).then_some(status))
    });
    found.await.expect("the pod gets there")
}

async fn status_in_phase(cluster: &ControlPlane, name: &str, phase: &str) -> PodStatus {
    status_when(cluster, name, |status| status.phase.as_deref() == Some(phase)).await
}

fn exit_code(status: &PodStatus) -> Option<i32> {
    let container = status.container_statuses.as_ref()?.first()?;
    Some(container.state.as_ref()?.terminated.as_ref()?.exit_code)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_jobs_pods_run_as_processes_and_their_exit_codes_decide() {
    let (cluster, runner) = cluster_with_runner().await;
    let job = |name: &str, text: &str| {
        let job = objects::job().name(name).pod_label("run", "here").set("/spec/backoffLimit", 0);
        job.command(&["sh", "-c", text])
    };
    cluster.create(&job("good", "echo well done, $0 && sleep 0.2")).await.unwrap();
    cluster.create(&job("bad", "exit 3")).await.unwrap();
    cluster.create(&objects::job().name("image").pod_label("run", "here").image("example/true:1")).await.unwrap();
    let jobs: Api<Job> = Api::default_namespaced(cluster.client());
    for (name, wanted) in [("good", "Complete"), ("bad", "Failed"), ("image", "Complete")] {
        eventually(&format!("Job {name} to be {wanted}"), LIMIT, || async {
            let conditions = jobs.get(name).await?.status.and_then(|status| status.conditions).unwrap_or_default();
            Ok(conditions.iter().any(|condition| condition.type_ == wanted && condition.status == "True").then_some(()))
        })
        .await
        .unwrap();
    }

    let pods: Api<Pod> = Api::default_namespaced(cluster.client());
    let of_job = |name: &str| ListParams::default().labels(&format!("batch.kubernetes.io/job-name={name}"));
    let bad = &pods.list(&of_job("bad")).await.unwrap().items[0];
    assert_eq!(exit_code(bad.status.as_ref().unwrap()), Some(3));
    let good = &pods.list(&of_job("good")).await.unwrap().items[0];
    let log = fs::read_to_string(runner.log("default", good.metadata.name.as_deref().unwrap(), 0)).unwrap();
    assert_eq!(log, "well done, sh\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_has_the_pods_account_environment_and_volumes() {
    let (cluster, runner) = cluster_with_runner().await;
    let data = |kind: &str, field: &str| {
        objects::object(json!({
            "apiVersion": "v1", "kind": kind, "metadata": {"name": "settings"}, field: {"colour": "green"},
        }))
    };
    cluster.create(&data("Secret", "stringData")).await.unwrap();
    cluster.create(&data("ConfigMap", "data")).await.unwrap();
    let text = "echo $KUBECONFIG; echo $NAME $FULL $SECRET $FROM_colour; cat $(FILE); sleep 60";
    let pod = script("reader", text)
        .set("/spec/volumes", json!([{"name": "settings", "configMap": {"name": "settings"}}]))
        .set("/spec/containers/0/volumeMounts", json!([{"name": "settings", "mountPath": "/etc/settings"}]))
        .set("/spec/containers/0/envFrom", json!([{"prefix": "FROM_", "configMapRef": {"name": "settings"}}]))
        .set(
            "/spec/containers/0/env",
            json!([
                {"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                {"name": "FULL", "value": "the-$(NAME)"},
                {"name": "SECRET", "valueFrom": {"secretKeyRef": {"name": "settings", "key": "colour"}}},
                {"name": "FILE", "value": "/etc/settings/colour"},
            ]),
        );
    cluster.create(&pod).await.unwrap();
    status_in_phase(&cluster, "reader", "Running").await;
    let log = runner.log("default", "reader", 0);
    let said = eventually("the process to have read all", LIMIT, || async {
        let said = fs::read_to_string(&log).unwrap_or_default();
        Ok(said.ends_with("green").then_some(said))
    });
    let said = said.await.unwrap();
    let lines: Vec<_> = said.lines().collect();
    assert_eq!(lines[1..], ["reader the-reader green green", "green"]);

    let kubeconfig = Kubeconfig::read_from(lines[0]).unwrap();
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    let reviews: Api<SelfSubjectReview> = Api::all(kube::Client::try_from(config).unwrap());
    let review = reviews.create(&PostParams::default(), &SelfSubjectReview::default()).await.unwrap();
    let user = review.status.unwrap().user_info.unwrap().username.unwrap();
    assert_eq!(user, "system:serviceaccount:default:default");
}

#[tokio::test(flavor = "multi_thread")]
async fn deletion_restarts_and_refusals_are_as_a_kubelet_has_them() {
    let (cluster, runner) = cluster_with_runner().await;
    cluster
        .create(&script("polite", "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.1; done"))
        .await
        .unwrap();
    cluster.create(&script("again", "exit 1").pod_field("restartPolicy", "OnFailure")).await.unwrap();
    let two = json!([{"name": "a", "image": "a"}, {"name": "b", "image": "b"}]);
    cluster.create(&script("two", "true").set("/spec/containers", two)).await.unwrap();

    status_in_phase(&cluster, "polite", "Running").await;
    let log = runner.log("default", "polite", 0);
    let said = |wanted: &'static str| {
        let log = log.clone();
        move || {
            let found = fs::read_to_string(&log).unwrap_or_default() == wanted;
            async move { Ok(found.then_some(())) }
        }
    };
    eventually("the process to be up", LIMIT, said("up\n")).await.unwrap();
    let pods: Api<Pod> = Api::default_namespaced(cluster.client());
    pods.delete("polite", &DeleteParams::default()).await.unwrap();
    eventually("the pod to be gone", LIMIT, || async { Ok(pods.get_opt("polite").await?.is_none().then_some(())) })
        .await
        .unwrap();
    assert_eq!(fs::read_to_string(&log).unwrap(), "up\nbye\n");

    let restarts = |status: &PodStatus| status.container_statuses.as_ref().map_or(0, |all| all[0].restart_count);
    status_when(&cluster, "again", |status| restarts(status) >= 2).await;
    let refused = status_in_phase(&cluster, "two", "Failed").await;
    assert!(refused.message.unwrap().contains("pods of one container; this has 2"));
}
