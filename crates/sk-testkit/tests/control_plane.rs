//! Good and bad days of a control plane: side by side, stopped, killed, restarted, compacted, with taken ports, with
//! binaries that are missing or end at once, and with the test itself killed.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use futures::TryStreamExt;
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{Api, ListParams, WatchEvent, WatchParams};
use serde_json::json;
use sk_testkit::control_plane::{Binaries, ControlPlane, eventually};
use sk_testkit::objects::{self, Object};
use sk_testkit::{Component, Options};

const LIMIT: Duration = Duration::from_secs(120);

fn config_map(name: &str) -> Object {
    objects::object(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}))
}

async fn pod_runs(cluster: &ControlPlane, name: &str) -> Pod {
    let pods: Api<Pod> = Api::default_namespaced(cluster.client());
    let what = format!("pod {name} to run");
    let running = eventually(&what, LIMIT, || async {
        let pod = pods.get(name).await?;
        let runs = pod.status.as_ref().is_some_and(|status| status.phase.as_deref() == Some("Running"));
        Ok(runs.then_some(pod))
    });
    running.await.expect("the pod runs")
}

#[tokio::test(flavor = "multi_thread")]
async fn two_run_side_by_side_and_do_not_see_each_other() {
    let (one, two) = tokio::join!(ControlPlane::start(Options::api_only()), ControlPlane::start(Options::api_only()));
    let (one, two) = (one.unwrap(), two.unwrap());
    one.create(&config_map("mine")).await.unwrap();
    let of_two: Api<ConfigMap> = Api::default_namespaced(two.client());
    assert!(of_two.get_opt("mine").await.unwrap().is_none());
    assert_ne!(one.kubeconfig(), two.kubeconfig());
}

#[tokio::test(flavor = "multi_thread")]
async fn every_component_can_be_killed_stopped_and_restarted() {
    let mut cluster = ControlPlane::start(Options::default().karpenter()).await.unwrap();
    cluster.create_nodes([objects::node().name("a")]).await.unwrap();
    for component in Component::ALL {
        cluster.kill(component).await.unwrap();
        let error = cluster.stop(component).await.unwrap_err().to_string();
        assert!(error.contains("is not running"), "{error}");
        cluster.restart(component).await.unwrap();
    }
    cluster.create(&objects::deployment().name("after").replicas(1)).await.unwrap();
    let pods: Api<Pod> = Api::default_namespaced(cluster.client());
    eventually("a pod to run after all that", LIMIT, || async {
        let listed = pods.list(&ListParams::default()).await?.items;
        let phase = |pod: &Pod| pod.status.as_ref().and_then(|status| status.phase.clone());
        Ok(listed.iter().any(|pod| phase(pod).as_deref() == Some("Running")).then_some(()))
    })
    .await
    .unwrap();

    cluster.stop(Component::Scheduler).await.unwrap();
    cluster.create(&objects::pod().name("unscheduled")).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(pods.get("unscheduled").await.unwrap().spec.unwrap().node_name, None);
    cluster.restart(Component::Scheduler).await.unwrap();
    pod_runs(&cluster, "unscheduled").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_from_before_a_compaction_is_gone() {
    let mut cluster = ControlPlane::start(Options::api_only()).await.unwrap();
    let config_maps: Api<ConfigMap> = Api::default_namespaced(cluster.client());
    let before = config_maps.list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap();
    for n in 0..5 {
        cluster.create(&config_map(&format!("c{n}"))).await.unwrap();
    }
    cluster.compact_etcd().await.unwrap();
    cluster.restart(Component::ApiServer).await.unwrap();

    let mut events = std::pin::pin!(config_maps.watch(&WatchParams::default(), &before).await.unwrap());
    let first = tokio::time::timeout(LIMIT, events.try_next()).await.unwrap().unwrap();
    assert!(matches!(&first, Some(WatchEvent::Error(status)) if status.code == 410), "{first:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_taken_port_costs_a_second_start_and_not_the_test() {
    // In the order in which ports are given out: the API server's, etcd's, etcd's for its peers; then those of the
    // controller-manager, the scheduler and KWOK.
    for index in 0..6 {
        let sockets: Vec<_> = (0..=index).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        let ports: Vec<_> = sockets.iter().map(|socket| socket.local_addr().unwrap().port()).collect();
        // Only the last one stays taken.
        let taken = sockets.into_iter().next_back().unwrap();
        let options = if index < 3 { Options::api_only() } else { Options::default() };
        let cluster = ControlPlane::start(options.first_ports(&ports)).await.unwrap();
        cluster.create(&config_map("works")).await.unwrap();
        drop(taken);
    }
}

/// A folder with a script in the place of a component, and the real binaries for the rest.
fn binaries_with(script: &str, component: Component) -> (tempfile::TempDir, Binaries) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let fake = folder.path().join(component.name());
    fs::write(&fake, script).expect("a script");
    fs::set_permissions(&fake, fs::Permissions::from_mode(0o755)).expect("a script that can be run");
    let real = Binaries::from_env().and_then(|binaries| binaries.guard()).expect("run `make control-plane`");
    let real = real.parent().expect("guard lies in a folder").to_owned();
    let binaries = Binaries::in_folders(&[folder.path(), &real]);
    (folder, binaries)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_binary_that_ends_at_once_is_named_with_its_last_words() {
    for component in [Component::Etcd, Component::Scheduler] {
        let (_folder, binaries) = binaries_with("#!/bin/sh\necho the moon is on the wrong side\nexit 3\n", component);
        let began = Instant::now();
        let Err(error) = ControlPlane::start_with(binaries, Options::default()).await else {
            panic!("a control plane without {component} started");
        };
        let error = error.to_string();
        assert!(error.contains(&format!("{component} ended at once with exit status: 3")), "{error}");
        assert!(error.contains("the moon is on the wrong side"), "{error}");
        // Well before the 90 s after which a component that hangs is given up.
        assert!(began.elapsed() < Duration::from_secs(75), "the message took {:?}", began.elapsed());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_component_that_never_gets_ready_is_named_with_its_last_words() {
    let (_folder, binaries) = binaries_with("#!/bin/sh\necho still thinking\nsleep 1000\n", Component::Etcd);
    let options = Options::api_only().ready_within_secs(3);
    let Err(error) = ControlPlane::start_with(binaries, options).await else {
        panic!("a control plane without etcd started");
    };
    let error = error.to_string();
    assert!(error.contains("was not ready after 3 s") && error.contains("the end of its log"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_binaries_are_a_failure_that_says_what_to_do() {
    let empty = tempfile::tempdir().unwrap();
    let binaries = Binaries::in_folders(&[empty.path()]);
    let Err(error) = ControlPlane::start_with(binaries, Options::default()).await else {
        panic!("a control plane started out of nothing");
    };
    assert!(error.to_string().contains("run `make control-plane`"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_ends_all_processes_and_keeps_the_logs() {
    let cluster = ControlPlane::start(Options::api_only()).await.unwrap();
    assert!(cluster.last_words().contains("--- the last words of kube-apiserver"), "{}", cluster.last_words());
    let (logs, kubeconfig) = (cluster.logs_dir(), cluster.kubeconfig());
    let folder = kubeconfig.parent().unwrap();
    assert!(!processes_of(folder).is_empty());
    let panicked = std::thread::spawn(move || {
        let _cluster = cluster;
        panic!("on purpose, to see what is left");
    });
    assert!(panicked.join().is_err());
    assert_eq!(processes_of(folder), Vec::<String>::new());
    assert!(logs.join("kube-apiserver.log").is_file());
    fs::remove_dir_all(folder).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_left_when_the_process_that_started_it_is_killed() {
    let mut parent = Command::new(env!("CARGO_BIN_EXE_cluster"))
        .arg("1")
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(parent.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let kubeconfig = PathBuf::from(line.trim().strip_prefix("export KUBECONFIG=").unwrap());
    let folder = kubeconfig.parent().unwrap();
    // Five components and a guard for each.
    assert_eq!(processes_of(folder).len(), 10, "{:?}", processes_of(folder));

    parent.kill().unwrap();
    parent.wait().unwrap();
    let killed = Instant::now();
    while !processes_of(folder).is_empty() {
        assert!(killed.elapsed() < Duration::from_secs(60), "still there: {:?}", processes_of(folder));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // SIGKILL leaves no chance to clean up files.
    fs::remove_dir_all(folder).unwrap();
}

/// The command lines of running processes that mention a folder.
fn processes_of(folder: &Path) -> Vec<String> {
    let folder = folder.to_str().expect("a temporary folder has a plain name");
    let processes = fs::read_dir("/proc").expect("Linux lists processes").flatten();
    let command_lines = processes.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    command_lines
        .map(|bytes| String::from_utf8_lossy(&bytes).replace('\0', " "))
        .filter(|line| line.contains(folder))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn options_reach_the_components_they_are_for() {
    let stages = sk_testkit::options::DEFAULT_STAGES.replace("restartCount: 0", "restartCount: 7");
    let options = Options::default()
        .scheduler(json!({"profiles": [{"schedulerName": "ours"}]}))
        .controllers(&["*", "-deployment-controller"])
        .feature_gate("WatchListClient", false)
        .flag(Component::ApiServer, "--v=3")
        .stages(&stages);
    let cluster = ControlPlane::start(options).await.unwrap();
    cluster.create_nodes([objects::node().name("a")]).await.unwrap();

    cluster.create(&objects::pod().name("by-ours").pod_field("schedulerName", "ours")).await.unwrap();
    let pod = pod_runs(&cluster, "by-ours").await;
    let restarts = pod.status.unwrap().container_statuses.unwrap()[0].restart_count;
    assert_eq!(restarts, 7, "the stages are not KWOK's");

    cluster.create(&objects::pod().name("by-nobody")).await.unwrap();
    cluster.create(&objects::deployment().name("idle")).await.unwrap();
    cluster.create(&objects::replica_set().name("busy")).await.unwrap();
    let pods: Api<Pod> = Api::default_namespaced(cluster.client());
    eventually("the ReplicaSet's pod", LIMIT, || async {
        Ok((pods.list(&ListParams::default().labels("app=busy")).await?.items.len() == 1).then_some(()))
    })
    .await
    .unwrap();
    let sets: Api<ReplicaSet> = Api::default_namespaced(cluster.client());
    assert_eq!(sets.list(&ListParams::default()).await.unwrap().items.len(), 1, "the Deployment has a ReplicaSet");
    assert_eq!(pods.get("by-nobody").await.unwrap().spec.unwrap().node_name, None);

    let log = |component| fs::read_to_string(cluster.log(component)).unwrap();
    assert!(log(Component::ApiServer).contains(r#"FLAG: --v="3""#), "the flag is not the API server's");
    assert!(log(Component::ApiServer).contains("WatchListClient=false"), "the gate is not the API server's");
}
