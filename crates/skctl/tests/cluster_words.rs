//! What is said about clusters before there is one: refusals, manifests, and a tracer that is only pretended.

#[path = "support/http.rs"]
mod http;
mod support;

use std::io::{BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command as Process, Stdio};
use std::time::{Duration, Instant};

use assert_cmd::Command;
use predicates::prelude::*;
use predicates::str::contains;
use serde_json::Value;
use support::{folder, names, skctl, write};
use tempfile::TempDir;

const NGINX: &[u8] = include_bytes!("../../../examples/nginx.sktrace");

/// `skctl` on a machine where nobody has configured a cluster.
fn without_cluster(dir: &TempDir) -> Command {
    let mut command = skctl(dir);
    command.env("HOME", dir.path()).env_remove("KUBECONFIG").env_remove("KUBERNETES_SERVICE_HOST");
    command
}

/// A kubeconfig whose server nobody listens at.
fn kubeconfig(dir: &TempDir) {
    let text = r#"{"apiVersion": "v1", "kind": "Config", "current-context": "lab",
        "clusters": [{"name": "lab", "cluster": {"server": "https://127.0.0.1:1"}}],
        "users": [{"name": "me", "user": {"token": "s3cr3t-t0ken"}}],
        "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": "me"}},
                     {"name": "prod", "context": {"cluster": "lab", "user": "me"}}]}"#;
    write(dir, "kubeconfig", text);
}

fn documents(yaml: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(yaml).expect("YAML is text");
    serde_saphyr::from_multiple(text).expect("what is printed is YAML")
}

#[test]
fn without_a_kubeconfig_it_says_how_to_name_one() {
    let dir = folder();
    for words in [&["doctor"][..], &["list", "--cluster"], &["describe", "x"], &["snapshot", "-O", "a.sktrace"]] {
        let out = without_cluster(&dir).args(words).assert().code(2);
        out.stderr(contains("there is no kubeconfig").and(contains("--kubeconfig FILE"))).stdout("");
    }
    assert_eq!(names(dir.path()), Vec::<String>::new());
}

#[test]
fn a_recording_does_not_overwrite_an_earlier_one_unless_it_is_told_to() {
    let dir = folder();
    write(&dir, "week.sktrace", "a week of somebody's work");
    let record = ["--kubeconfig", "nowhere", "record", "-O", "week.sktrace"];
    let out = without_cluster(&dir).args(record).assert().code(2);
    out.stderr(contains("week.sktrace exists already").and(contains("--force"))).stdout("");
    // Told to, it goes on to the cluster: that is what it fails at, and the file is as it was.
    let out = without_cluster(&dir).args(record).arg("--force").assert().code(2);
    out.stderr(contains("nowhere").and(contains("exists already").not()));
    let left = std::fs::read_to_string(dir.path().join("week.sktrace")).expect("it is still there");
    assert_eq!(left, "a week of somebody's work");
}

#[test]
fn a_context_that_is_not_there_is_answered_with_those_that_are() {
    let dir = folder();
    kubeconfig(&dir);
    let out = without_cluster(&dir).args(["--kubeconfig", "kubeconfig", "--context", "prd", "doctor"]).assert().code(2);
    out.stderr(contains("no context `prd`").and(contains("lab, prod")));
    let out = without_cluster(&dir).args(["--kubeconfig", "nowhere", "doctor"]).assert().code(2);
    out.stderr(contains("nowhere"));
    write(&dir, "broken", "{");
    without_cluster(&dir).args(["--kubeconfig", "broken", "doctor"]).assert().code(2).stderr(contains("broken"));
}

#[test]
fn a_server_that_does_not_answer_is_a_finding_and_no_secret_is_said() {
    let dir = folder();
    kubeconfig(&dir);
    let doctor = ["--kubeconfig", "kubeconfig", "-v", "trace", "doctor", "tracer"];
    let out = without_cluster(&dir).args(doctor).assert().code(1);
    let out = out.stdout(contains("FAIL  server").and(contains("context lab (https://127.0.0.1:1)")));
    let said = [out.get_output().stdout.clone(), out.get_output().stderr.clone()].concat();
    assert!(!String::from_utf8_lossy(&said).contains("s3cr3t"), "a token was written down");
    let out = without_cluster(&dir).args(["--kubeconfig", "kubeconfig", "doctor", "-o", "json"]).assert().code(1);
    let findings: Value = serde_json::from_slice(&out.get_output().stdout).expect("JSON");
    assert_eq!(findings[0]["state"], "fail");
    assert!(findings[0]["advice"].is_string());
}

#[test]
fn the_manifests_are_yaml_and_need_no_cluster() {
    let dir = folder();
    let kinds = |words: &[&str]| -> Vec<String> {
        let out = without_cluster(&dir).args(words).assert().success();
        let kind = |object: &Value| object["kind"].as_str().expect("an object has a kind").to_owned();
        documents(&out.get_output().stdout).iter().map(kind).collect()
    };
    assert_eq!(kinds(&["crd"]), ["CustomResourceDefinition", "CustomResourceDefinition"]);
    assert_eq!(kinds(&["manifests", "crd"]), kinds(&["crd"]));
    let tracer = kinds(&["manifests", "tracer"]);
    for kind in ["Namespace", "ServiceAccount", "ClusterRole", "PersistentVolumeClaim", "Deployment", "NetworkPolicy"] {
        assert!(tracer.iter().any(|found| found == kind), "{kind} is missing in {tracer:?}");
    }
    let sim = kinds(&["manifests", "sim"]);
    for kind in ["CustomResourceDefinition", "Namespace", "ClusterRole", "Deployment", "Stage"] {
        assert!(sim.iter().any(|found| found == kind), "{kind} is missing in {sim:?}");
    }
}

#[test]
fn manifests_follow_the_configuration_the_namespace_and_the_image() {
    let dir = folder();
    write(&dir, "tracer.yaml", "trackedObjects: {apps/v1.StatefulSet: {}}\nretention: {bytes: 1Gi}\n");
    let words = ["-n", "watching", "manifests", "tracer", "-c", "tracer.yaml", "--tracer-image", "example/sk-tracer:7"];
    let out = without_cluster(&dir).args(words).assert().success();
    let objects = documents(&out.get_output().stdout);
    let text = serde_json::to_string(&objects).expect("JSON");
    assert!(text.contains("statefulsets") && text.contains("example/sk-tracer:7"), "{text}");
    assert!(!text.contains("cronjobs"), "rights for what is not recorded");
    assert!(
        objects.iter().all(|object| object["metadata"]["namespace"].as_str().is_none_or(|name| name == "watching"))
    );
    write(&dir, "wrong.yaml", "trackedObjects: {apps/v1.StatefulSet: {trackLifecycel: true}}\n");
    let out = without_cluster(&dir).args(["manifests", "tracer", "-c", "wrong.yaml"]).assert().code(2);
    out.stderr(contains("wrong.yaml:1:").and(contains("trackLifecycle")));
    let out = without_cluster(&dir).args(["-v", "info", "manifests", "tracer"]).assert().success();
    out.stderr(contains("apps/v1.Deployment: {}"));
}

#[test]
fn what_makes_no_sense_on_the_other_engine_is_refused_by_name() {
    let dir = folder();
    write(&dir, "week.sktrace", NGINX);
    let flags = [("--ttl", "1h"), ("--record-path", "s3://a/b"), ("--driver-image", "a"), ("--driver-port", "8443")];
    for (flag, value) in
        flags.into_iter().chain([("--driver-secret", "a"), ("--record-path", "s3://b/a"), ("--ttl", "1d")])
    {
        let out = without_cluster(&dir).args(["run", "week.sktrace", flag, value]).assert().code(2);
        out.stderr(contains(format!("{flag} is for --cluster")));
    }
    let on_cluster = |words: &[&str]| {
        let mut command = without_cluster(&dir);
        command.args(["run", "week.sktrace", "--cluster"]).args(words).assert().code(2)
    };
    on_cluster(&["--seed", "7"]).stderr(contains("--seed is not for --cluster"));
    on_cluster(&["-s", "+1m"]).stderr(contains("--start is not for --cluster").and(contains("skctl trace slice")));
    on_cluster(&["-s", "2"]).stderr(contains("did you mean --speed 2"));
    on_cluster(&["--end", "+1m"]).stderr(contains("--end is not for --cluster"));
    on_cluster(&["--speed", "0"]).stderr(contains("--speed must be more than 0"));
    on_cluster(&["--name", "Big Name"]).stderr(contains("lower-case letters"));
    on_cluster(&["--name", &"a".repeat(50)]).stderr(contains("at most 49"));
    on_cluster(&["--set", "seed=7"]).stderr(contains("--set seed: not for --cluster"));
    on_cluster(&["--ttl", "1s"]).stderr(contains("--ttl 1s"));
    on_cluster(&["--record-path", "runs"]).stderr(contains("is deleted with its pod"));
    on_cluster(&[]).stderr(contains("there is no kubeconfig"));
    let out = without_cluster(&dir).args(["run", "example:nginx", "--cluster"]).assert().code(2);
    out.stderr(contains("there is no kubeconfig"));
    let out = without_cluster(&dir).args(["run", "my-sim", "-f", "week.sktrace"]).assert().code(2);
    out.stderr(contains("skctl run week.sktrace --name my-sim --cluster"));
}

#[test]
fn what_is_no_trace_is_refused_before_anything_is_sent_in_the_words_of_an_embedded_run() {
    let dir = folder();
    kubeconfig(&dir);
    write(&dir, "cut.sktrace", &NGINX[..NGINX.len() / 2]);
    write(&dir, "empty.sktrace", "");
    write(&dir, "picture.png", b"\x89PNG\r\n\x1a\n");
    std::fs::create_dir(dir.path().join("nothing")).expect("a temporary folder can be written to");
    for trace in ["cut.sktrace", "empty.sktrace", "picture.png", "nothing", "nowhere.sktrace", "example:nobody"] {
        let said = |words: &[&str]| {
            let out = without_cluster(&dir).args(["--kubeconfig", "kubeconfig", "run", trace]).args(words).assert();
            String::from_utf8_lossy(&out.code(2).stdout("").get_output().stderr).into_owned()
        };
        let embedded = said(&[]);
        assert_eq!(said(&["--cluster"]), embedded);
        assert!(embedded.starts_with("error: "), "{embedded}");
    }
    let out = without_cluster(&dir).args(["run", "/traces/week.sktrace", "--cluster"]).assert().code(2);
    out.stderr(contains("if it is on the node of the cluster, write file:///traces/week.sktrace"));
}

#[test]
fn a_report_from_the_cluster_is_of_a_simulation_that_is_named() {
    let dir = folder();
    kubeconfig(&dir);
    let report = |words: &[&str]| {
        without_cluster(&dir).args(["--kubeconfig", "kubeconfig", "report"]).args(words).assert().code(2)
    };
    report(&["--cluster"]).stderr(contains("no Simulation given").and(contains("list --cluster")));
    report(&["week", "--repetition", "1"]).stderr(contains("--cluster"));
    report(&["week", "--cluster"]).stderr(contains("context lab (https://127.0.0.1:1)").and(contains("--context")));
}

#[test]
fn a_lab_names_all_programs_that_it_lacks_and_makes_nothing() {
    let dir = folder();
    let lab = |words: &[&str]| {
        let mut command = without_cluster(&dir);
        command.env("PATH", "").env_remove("KUBEBUILDER_ASSETS").arg("lab").args(words).args(["--dir", "lab"]);
        command.assert()
    };
    let all = "etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kwok";
    lab(&["up"]).code(2).stderr(contains(all).and(contains("KUBEBUILDER_ASSETS")));
    assert!(!dir.path().join("lab").exists());
    lab(&["status"]).code(1).stdout(contains("there is no lab").and(contains("skctl lab up")));
    lab(&["status", "-o", "json"]).code(1).stdout(contains("\"up\": false"));
    lab(&["down"]).success().stderr(contains("there is no lab"));
}

#[test]
fn more_kinds_to_replay_are_named_as_kubectl_writes_them() {
    let dir = folder();
    let words =
        ["manifests", "sim", "--also", "secrets", "--also", "widgets.example.com", "--also", "gears.example.com"];
    let out = without_cluster(&dir).args(words).assert().success();
    let objects = documents(&out.get_output().stdout);
    let driver = objects
        .iter()
        .find(|object| object["kind"] == "ClusterRole" && object["metadata"]["name"] == "sk-driver-replay");
    let rules = driver.expect("the driver has a role")["rules"].as_array().expect("rules").clone();
    let granted = |group: &str| {
        let rules = rules.iter().filter(|rule| rule["apiGroups"][0] == group);
        rules.flat_map(|rule| rule["resources"].as_array().expect("resources").clone()).collect::<Vec<_>>()
    };
    assert_eq!(granted("example.com"), ["gears", "widgets"]);
    assert!(granted("").iter().any(|resource| resource == "secrets"));
    let out = without_cluster(&dir).args(["manifests", "sim", "--also", "Widget"]).assert().code(2);
    out.stderr(contains("widgets.example.com"));
}

/// A tracer that answers every export the same way; what it was asked comes back when it has been.
fn pretended_tracer(answer: Vec<u8>) -> (SocketAddr, std::thread::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    let address = listener.local_addr().expect("it listens");
    let asked = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("somebody calls");
        let asked = request(&stream);
        let _ = stream.write_all(&answer);
        asked
    });
    (address, asked)
}

/// The head and the body of a request.
fn request(stream: &TcpStream) -> String {
    let (head, body) = http::request(&mut BufReader::new(stream)).expect("a request comes whole");
    head + &String::from_utf8_lossy(&body)
}

fn answer(status: &str, length: usize, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
    [head.as_bytes(), body].concat()
}

fn export(dir: &TempDir, address: SocketAddr, out: &str) -> Command {
    let mut command = without_cluster(dir);
    command.args(["export", "-s", "-1h", "-O", out, "--tracer-address", &format!("http://{address}")]);
    command
}

#[test]
fn an_export_is_asked_for_as_simkube_2_does_and_lies_there_whole() {
    let dir = folder();
    let (address, asked) = pretended_tracer(answer("200 OK", NGINX.len(), NGINX));
    let words = ["--excluded-namespaces", "kube-system", "--format", "v2"];
    export(&dir, address, "week.sktrace")
        .args(words)
        .assert()
        .success()
        .stderr(contains("wrote week.sktrace"))
        .stdout("");
    assert!(std::fs::read(dir.path().join("week.sktrace")).expect("it is there") == NGINX);
    assert_eq!(names(dir.path()), ["week.sktrace"]);
    let asked = asked.join().expect("it was asked");
    assert!(asked.starts_with("POST /export HTTP/1.1"), "{asked}");
    assert!(!asked.to_lowercase().contains("authorization"), "a token over plain HTTP");
    let body: Value = serde_json::from_str(asked.split("\r\n\r\n").nth(1).expect("a body")).expect("JSON");
    assert_eq!(body["filters"]["excluded_namespaces"][0], "kube-system");
    assert_eq!(body["format"], "v2");
    let (start, end) = (body["start_ts"].as_f64().expect("a time"), body["end_ts"].as_f64().expect("a time"));
    assert!((end - start - 3_600.0).abs() < 1e-3, "an hour: {start} to {end}");
}

#[test]
fn an_export_that_is_refused_or_cut_short_leaves_nothing() {
    let dir = folder();
    let refused = br#"{"error": "kept is only what is younger than 2d"}"#;
    let (address, _) = pretended_tracer(answer("416 Range Not Satisfiable", refused.len(), refused));
    let out = export(&dir, address, "a.sktrace").assert().code(2);
    out.stderr(contains("kept is only what is younger than 2d").and(contains("416")));
    let (address, _) = pretended_tracer(answer("200 OK", NGINX.len() + 1, NGINX));
    export(&dir, address, "a.sktrace").assert().code(2).stderr(contains("closed the connection"));
    let nobody: SocketAddr = "127.0.0.1:1".parse().expect("an address");
    export(&dir, nobody, "a.sktrace").assert().code(2).stderr(contains("nothing answers at http://127.0.0.1:1"));
    assert_eq!(names(dir.path()), Vec::<String>::new());
}

#[test]
fn ctrl_c_during_an_export_leaves_nothing() {
    let dir = folder();
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    let address = listener.local_addr().expect("it listens");
    let mut child = Process::new(assert_cmd::cargo::cargo_bin("skctl"))
        .current_dir(dir.path())
        .args(["export", "-s", "-1h", "-O", "a.sktrace", "--tracer-address", &format!("http://{address}")])
        .stderr(Stdio::piped())
        .spawn()
        .expect("skctl starts");
    let (mut stream, _) = listener.accept().expect("skctl calls");
    request(&stream);
    // Half of the trace, and then silence.
    stream.write_all(&answer("200 OK", NGINX.len(), &NGINX[..NGINX.len() / 2])).expect("skctl listens");
    let began = Instant::now();
    while !names(dir.path()).iter().any(|name| name.ends_with(".part")) {
        assert!(began.elapsed() < Duration::from_secs(60), "nothing is being written");
        std::thread::sleep(Duration::from_millis(10));
    }
    let killed = Process::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill runs");
    assert!(killed.success());
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    let mut said = String::new();
    child.stderr.take().expect("it was piped").read_to_string(&mut said).expect("text");
    assert!(said.contains("interrupted; nothing was left behind"), "{said}");
    assert_eq!(names(dir.path()), Vec::<String>::new());
}
