//! What is said when a cluster is not as it should be: an API server that is only pretended answers as a real one would
//! on a bad day, and every answer becomes a sentence with what to do next.

#[path = "support/http.rs"]
mod http;
mod support;

use std::io::{BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};

use assert_cmd::Command;
use http::request;
use predicates::prelude::*;
use predicates::str::contains;
use serde_json::{Value, json};
use support::{folder, names, skctl, write};
use tempfile::TempDir;

/// Answers by the beginning of `METHOD /path`; the first that fits is given.
type Answers = Vec<(&'static str, u16, Value)>;

const SIMULATIONS: &str = "GET /apis/simkube.io/v1/simulations";
const NAMESPACES: &str = "GET /api/v1/namespaces?";
const PODS: &str = "GET /api/v1/namespaces/simkube/pods";
const TOKEN: &str = "POST /api/v1/namespaces/simkube/serviceaccounts";
const AUTHORITY: &str = "GET /api/v1/namespaces/simkube/configmaps/sk-ctrl-ca";

/// A folder whose kubeconfig leads to a server with these answers; everything else it does not know.
struct Pretended {
    dir: TempDir,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Pretended {
    fn with(answers: Answers) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
        let address = listener.local_addr().expect("it listens");
        let (dir, asked) = (folder(), Arc::new(Mutex::new(Vec::new())));
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "lab",
            "clusters": [{"name": "lab", "cluster": {"server": format!("http://{address}")}}],
            "users": [{"name": "me", "user": {"token": "s3cr3t-t0ken"}}],
            "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": "me"}}],
        });
        write(&dir, "kubeconfig", config.to_string());
        let (answers, heard) = (Arc::new(answers), asked.clone());
        let (server, files) = (format!("http://{address}"), dir.path().to_owned());
        // It ends with the process of the test.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (answers, heard, server, files) = (answers.clone(), heard.clone(), server.clone(), files.clone());
                std::thread::spawn(move || converse(&stream, &heard, |line| answer(&answers, line, &server, &files)));
            }
        });
        Self { dir, asked }
    }

    fn skctl(&self, words: &[&str]) -> Command {
        let mut command = skctl(&self.dir);
        command.env("HOME", self.dir.path()).env_remove("KUBECONFIG").env_remove("KUBERNETES_SERVICE_HOST");
        command.args(["--kubeconfig", "kubeconfig"]).args(words);
        command
    }

    /// Was anything asked that begins like this?
    fn was_asked(&self, beginning: &str) -> bool {
        self.asked.lock().expect("no test panics with it").iter().any(|asked| asked.starts_with(beginning))
    }
}

/// Answers requests until the other side has had enough.
fn converse(stream: &TcpStream, heard: &Mutex<Vec<String>>, answer: impl Fn(&str) -> (u16, Vec<u8>)) {
    let mut reader = BufReader::new(stream);
    while let Some((head, _)) = request(&mut reader) {
        let line = head.split(" HTTP/").next().unwrap_or_default().to_owned();
        let (code, body) = answer(&line);
        heard.lock().expect("no test panics with it").push(line);
        let length = body.len();
        let head = format!("HTTP/1.1 {code} \r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n");
        let mut out = stream;
        if out.write_all(head.as_bytes()).and_then(|()| out.write_all(&body)).is_err() {
            return;
        }
    }
}

/// What the server says to a request: one of its answers, or a file of the folder. In answers, `{server}` is itself, and
/// `{address}` the same without its scheme.
fn answer(answers: &Answers, line: &str, server: &str, files: &Path) -> (u16, Vec<u8>) {
    if let Some(file) = line.strip_prefix("GET /files/") {
        return std::fs::read(files.join(file)).map_or((404, Vec::new()), |bytes| (200, bytes));
    }
    let (code, body) = match answers.iter().find(|(beginning, ..)| line.starts_with(beginning)) {
        Some((_, code @ 200..=299, body)) => (*code, body.clone()),
        Some((_, code, message)) => (*code, status(*code, message.as_str().unwrap_or_default())),
        None => (404, status(404, "not found")),
    };
    let address = server.trim_start_matches("http://");
    (code, body.to_string().replace("{server}", server).replace("{address}", address).into_bytes())
}

fn status(code: u16, message: &str) -> Value {
    let reason = if code == 404 { "NotFound" } else { "Because" };
    json!({"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message})
}

fn list(items: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "List", "metadata": {}, "items": items})
}

/// A namespace with the mark of an installation.
fn marked() -> (&'static str, u16, Value) {
    (NAMESPACES, 200, list(&json!([{"metadata": {"name": "simkube", "labels": {"simkube.io/installed": "true"}}}])))
}

fn simulation(state: &str) -> Value {
    json!({
        "apiVersion": "simkube.io/v1", "kind": "Simulation", "metadata": {"name": "week", "uid": "1"},
        "spec": {"driver": {"tracePath": "s3://b/week.sktrace"}, "repetitions": 1, "speed": 1.0},
        "status": {"state": state, "progress": {"percent": 40, "eventsDone": 4, "eventsTotal": 10}},
    })
}

const RUN: [&str; 5] = ["run", "example:nginx", "--cluster", "--name", "week"];

#[test]
fn credentials_that_have_expired_are_called_that_and_never_said() {
    let cluster = Pretended::with(vec![("", 401, json!("Unauthorized"))]);
    let list = ["list", "--cluster"];
    for words in [&RUN[..], &list, &["describe", "week"], &["logs", "week"], &["delete", "week"], &["pause", "week"]] {
        let out = cluster.skctl(words).args(["-v", "trace"]).assert().code(2).stdout("");
        let said = String::from_utf8_lossy(&out.get_output().stderr).into_owned();
        assert!(said.contains("does not know who you are") && said.contains("log in again"), "{words:?}: {said}");
        assert!(!said.contains("s3cr3t"), "a token was written down");
    }
    let out = cluster.skctl(&["doctor", "sim"]).assert().code(1);
    out.stdout(contains("FAIL  server").and(contains("log in again")));
}

#[test]
fn a_cluster_without_the_installation_is_named_with_the_command_that_makes_one() {
    let cluster = Pretended::with(vec![(NAMESPACES, 200, list(&json!([])))]);
    let out = cluster.skctl(&RUN).assert().code(2);
    out.stderr(contains("is not marked as one for simulations").and(contains("skctl --context lab install sim")));
    let out = cluster.skctl(&["list", "--cluster"]).assert().code(2);
    out.stderr(contains("does not know Simulations; `skctl install sim`"));
    assert!(!cluster.was_asked("POST"), "nothing was made");
}

#[test]
fn a_namespace_that_was_there_before_is_marked_by_a_config_map() {
    let map = json!({"metadata": {"name": "simkube-installed", "labels": {"simkube.io/installed": "true"}}});
    let cluster = Pretended::with(vec![
        (NAMESPACES, 200, list(&json!([]))),
        ("GET /api/v1/namespaces/simkube/configmaps/simkube-installed", 200, map),
        (PODS, 200, list(&json!([]))),
    ]);
    cluster
        .skctl(&RUN)
        .assert()
        .code(2)
        .stderr(contains("is not marked").not().and(contains("there is no controller")));
}

#[test]
fn a_controller_that_is_away_is_said_before_anything_is_made() {
    let away = Pretended::with(vec![marked(), (PODS, 200, list(&json!([])))]);
    let out = away.skctl(&RUN).assert().code(2);
    out.stderr(contains("there is no controller in namespace simkube").and(contains("skctl install sim")));
    let waiting = json!([{"type": "PodScheduled", "status": "False", "message": "0/3 nodes are available"}]);
    let pod = json!([{"metadata": {"name": "sk-ctrl-1"}, "status": {"phase": "Pending", "conditions": waiting}}]);
    let pending = Pretended::with(vec![marked(), (PODS, 200, list(&pod))]);
    let out = pending.skctl(&RUN).assert().code(2);
    out.stderr(contains("0/3 nodes are available").and(contains("skctl doctor sim")));
    for cluster in [away, pending] {
        assert!(!cluster.was_asked("POST /apis/simkube.io"), "a Simulation without a trace was made");
    }
}

#[test]
fn who_may_not_have_a_token_is_told_which_role_to_ask_for() {
    let ready = json!([{"type": "Ready", "status": "True"}]);
    let pod = json!([{"metadata": {"name": "sk-ctrl-1"}, "status": {"phase": "Running", "conditions": ready}}]);
    let cluster = Pretended::with(vec![
        marked(),
        (PODS, 200, list(&pod)),
        (AUTHORITY, 200, json!({"metadata": {"name": "sk-ctrl-ca"}, "data": {"ca.crt": "-"}})),
        (TOKEN, 403, json!("serviceaccounts is forbidden")),
    ]);
    let out = cluster.skctl(&RUN).assert().code(2);
    out.stderr(contains("you may not get a token of ServiceAccount simkube/sk-record-reader").and(contains("role")));
}

#[test]
fn a_name_that_is_taken_is_said_before_the_trace_travels() {
    let cluster = Pretended::with(vec![marked(), (SIMULATIONS, 200, simulation("Running"))]);
    let out = cluster.skctl(&RUN).assert().code(2);
    let next = contains("another --name").and(contains("report week --cluster")).and(contains("delete week"));
    out.stderr(contains("there is a Simulation week already").and(next));
    assert_eq!(names(cluster.dir.path()), ["kubeconfig"], "nothing is left here either");
    assert!(!cluster.was_asked(PODS), "the controller was looked for");
}

#[test]
fn what_the_server_refuses_is_said_in_its_words_with_what_to_do() {
    let run = ["run", "s3://b/week.sktrace", "--cluster", "--name", "week"];
    let forbidden = Pretended::with(vec![marked(), ("POST /apis/simkube.io", 403, json!("simulations is forbidden"))]);
    let out = forbidden.skctl(&run).assert().code(2);
    out.stderr(contains("you may not create Simulation week").and(contains("simkube-user")));
    let invalid = Pretended::with(vec![marked(), ("POST /apis/simkube.io", 422, json!("tracePath should match"))]);
    let out = invalid.skctl(&run).assert().code(2);
    out.stderr(contains("tracePath should match").and(contains("older than this skctl")));
}

#[test]
fn a_simulation_is_described_without_the_right_to_its_events() {
    let events = ("GET /api/v1/events", 403, json!("events is forbidden"));
    let cluster = Pretended::with(vec![(SIMULATIONS, 200, simulation("Running")), events]);
    let out = cluster.skctl(&["describe", "week"]).assert().success();
    let out = out.stdout(contains("state        Running").and(contains("events       you may not list its Events")));
    assert_eq!(String::from_utf8_lossy(&out.get_output().stdout).matches("events is forbidden").count(), 1);
    cluster.skctl(&["describe", "week", "-o", "json"]).assert().success();
}

#[test]
fn a_report_of_a_simulation_that_goes_on_says_how_far_it_is() {
    let cluster = Pretended::with(vec![(SIMULATIONS, 200, simulation("Running"))]);
    let out = cluster.skctl(&["report", "week", "--cluster"]).assert().code(2);
    out.stderr(contains("Simulation week has not finished: Running  4 of 10 events")).stdout("");
}

#[test]
fn a_record_that_lies_in_an_object_store_is_fetched_from_there() {
    let mut finished = simulation("Finished");
    finished["spec"]["record"] = json!({"path": "{server}/files/store"});
    let cluster = Pretended::with(vec![(SIMULATIONS, 200, finished)]);
    cluster.skctl(&["run", "example:nginx", "-O", "store"]).assert().success();
    let out = cluster.skctl(&["report", "week", "--cluster"]).assert().success();
    out.stdout(contains("nginx").and(contains("runs/week/report.html")));
    let (there, here) = (cluster.dir.path().join("store"), cluster.dir.path().join("runs/week"));
    for file in ["run.json", "pods.parquet"] {
        let read = |dir: &Path| std::fs::read(dir.join(file)).expect("it is there");
        assert!(read(&there) == read(&here), "{file} is another");
    }
    std::fs::remove_file(there.join("pods.parquet")).expect("it was there");
    let out = cluster.skctl(&["report", "week", "--cluster"]).assert().code(2);
    out.stderr(contains("/files/store and cannot be fetched from here"));
}

#[test]
fn where_a_record_lies_is_said_without_what_lets_people_in() {
    let place = "http://me:s3cr3t@{address}/files/store";
    let mut failed = simulation("Failed");
    failed["spec"]["record"] = json!({"path": place});
    failed["status"]["recordPath"] = json!(place);
    let cluster = Pretended::with(vec![(SIMULATIONS, 200, failed)]);
    let shown = || contains("/files/store").and(contains("s3cr3t").not());
    cluster.skctl(&["describe", "week"]).assert().success().stdout(shown());
    cluster.skctl(&["report", "week", "--cluster"]).assert().code(2).stderr(shown());
}

#[test]
fn a_namespace_whose_standard_refuses_local_traces_is_named_with_the_label_that_lets_them() {
    let said = |standard: &str| {
        let labels = json!({"pod-security.kubernetes.io/enforce": standard});
        let namespace = json!({"metadata": {"name": "simkube", "labels": labels}});
        let cluster = Pretended::with(vec![("GET /api/v1/namespaces/simkube", 200, namespace)]);
        let out = cluster.skctl(&["install", "sim", "--local-traces"]).assert().code(2);
        String::from_utf8_lossy(&out.get_output().stderr).into_owned()
    };
    let label =
        "kubectl --context lab label --overwrite namespace simkube pod-security.kubernetes.io/enforce=privileged";
    let restricted = said("restricted");
    assert!(restricted.contains("its Pod Security Standard, restricted, refuses"), "{restricted}");
    assert!(restricted.contains(label), "{restricted}");
    assert!(!said("privileged").contains("Pod Security Standard"));
}

#[test]
fn of_a_failed_simulation_that_wrote_nothing_at_last_the_repetition_before_is_shown() {
    let mut failed = simulation("Failed");
    failed["spec"]["record"] = json!({"path": "{server}/files/store"});
    failed["spec"]["repetitions"] = json!(3);
    failed["status"]["completedRuns"] = json!(1);
    let cluster = Pretended::with(vec![(SIMULATIONS, 200, failed)]);
    cluster.skctl(&["run", "example:nginx", "-O", "store/0"]).assert().success();
    let report = ["report", "week", "--cluster"];
    let out = cluster.skctl(&report).assert().success();
    let out = out.stderr(contains("repetition 1 has no record: ").and(contains("; showing repetition 0")));
    out.stdout(contains("runs/week.0/report.html"));
    // Who asks for that one gets no other.
    let out = cluster.skctl(&report).args(["--repetition", "1"]).assert().code(2);
    out.stdout("").stderr(contains("/files/store/1 and cannot be fetched from here"));
}

#[test]
fn a_scenario_that_is_too_large_to_travel_is_said_to_stay() {
    let cluster = Pretended::with(vec![marked(), ("POST /apis/simkube.io", 422, json!("enough"))]);
    let said = |assertions: usize| {
        let assertions: String = (0..assertions).map(|number| format!("  - pods.created >= {number}\n")).collect();
        let groups = "cluster: {groups: {small: {min: 1, max: 1, cpu: 4, memory: 16Gi}}}";
        let scenario = format!("apiVersion: simkube.io/v1\nkind: Scenario\n{groups}\nassert:\n{assertions}");
        write(&cluster.dir, "large.yaml", scenario);
        let run = ["run", "s3://b/week.sktrace", "--cluster", "--name", "week", "-f", "large.yaml"];
        String::from_utf8_lossy(&cluster.skctl(&run).assert().code(2).get_output().stderr).into_owned()
    };
    let large = said(6_000);
    let stays = "the scenario has more than 128 KiB, so it does not travel with the Simulation";
    assert!(large.contains(stays) && large.contains("enough"), "{large}");
    let small = said(1);
    assert!(!small.contains(stays) && small.contains("enough"), "{small}");
}

#[test]
fn a_scenario_of_a_cluster_says_what_its_nodes_are_like_and_serves_for_any_trace() {
    let node = |name: &str| {
        let size = json!({"cpu": "4", "memory": "16Gi", "pods": "110"});
        json!({"metadata": {"name": name, "labels": {"agentpool": "spot"}}, "status": {"capacity": size, "allocatable": size}})
    };
    let bare = json!({"metadata": {"name": "c"}, "status": {"capacity": {"cpu": "2", "memory": "8Gi"}}});
    let nodes = list(&json!([node("a"), node("b"), bare]));
    let cluster = Pretended::with(vec![("GET /api/v1/nodes", 200, nodes)]);
    let out =
        cluster.skctl(&["scenario", "init"]).assert().success().stdout(contains("1 pools of 3 nodes of the cluster"));
    write(&cluster.dir, "own.yaml", &out.get_output().stdout);
    cluster.skctl(&["validate", "example:nginx", "-f", "own.yaml"]).assert().success();
    let empty = Pretended::with(vec![("GET /api/v1/nodes", 200, list(&json!([])))]);
    empty.skctl(&["scenario", "init"]).assert().code(2).stderr(contains("has no nodes to make groups of"));
}
