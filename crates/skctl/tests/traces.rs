//! The commands that look into traces, make them and change them: their good paths, and what old habits are told.

mod support;

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::Path;

use predicates::prelude::*;
use predicates::str::contains;
use serde_json::Value;
use support::{folder, names, skctl, write};
use tempfile::TempDir;

const NGINX: &[u8] = include_bytes!("../../../examples/nginx.sktrace");

/// Runs a command that must go well; its answer.
fn answer(dir: &TempDir, args: &[&str]) -> String {
    let output = skctl(dir).args(args).assert().success().get_output().stdout.clone();
    String::from_utf8(output).expect("the answer is text")
}

fn answer_json(dir: &TempDir, args: &[&str]) -> Value {
    serde_json::from_str(&answer(dir, args)).expect("the answer is JSON")
}

fn bytes(dir: &TempDir, name: &str) -> Vec<u8> {
    std::fs::read(dir.path().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// What a trace holds, as JSON, one value per line.
fn lines(dir: &TempDir, trace: &str) -> Vec<Value> {
    let text = answer(dir, &["-q", "trace", "convert", trace, "-"]);
    text.lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect()
}

/// v2 traces: the bundled one, our own, and those that SimKube 2 recorded. The last are not part of the repository; where
/// they are absent, this says so.
fn v2_traces() -> Vec<(String, Vec<u8>)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &Path| std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let ours = ["cron-job.sktrace", "bare-pods.sktrace"];
    let ours = ours.map(|name| (name.to_owned(), read(&root.join("../sk-store/tests/traces").join(name))));
    let mut traces = vec![("nginx.sktrace".to_owned(), NGINX.to_vec())];
    traces.extend(ours);
    let folder = root.join("../../../shared/traces");
    if !folder.is_dir() {
        // Not `eprintln!`, which the harness keeps to itself when a test passes.
        let _ = writeln!(std::io::stderr(), "note: no recorded traces beside the repository: only our own were used");
        return traces;
    }
    let recorded = names(&folder).into_iter().filter(|name| name.ends_with(".sktrace"));
    traces.extend(recorded.map(|name| (format!("recorded-{name}"), read(&folder.join(name)))));
    traces
}

#[test]
fn v2_to_native_and_back_gives_the_same_bytes() {
    for (name, original) in v2_traces() {
        let dir = folder();
        write(&dir, "old.sktrace", &original);
        skctl(&dir).args(["trace", "convert", "old.sktrace", "native.sktrace"]).assert().success().stdout("");
        skctl(&dir).args(["trace", "convert", "native.sktrace", "lines.jsonl"]).assert().success();
        for from in ["native.sktrace", "lines.jsonl"] {
            let out = skctl(&dir).args(["trace", "convert", from, "back.sktrace", "--to", "v2"]).assert().success();
            out.stderr(contains("lost").not());
            assert!(bytes(&dir, "back.sktrace") == original, "{name} through {from}");
        }
    }
}

#[test]
fn v2_traces_are_shown_and_judged_by_the_same_events() {
    for (name, original) in v2_traces() {
        let dir = folder();
        write(&dir, &name, &original);
        let summary = answer_json(&dir, &["trace", "show", &name, "-o", "json"]);
        assert!(summary["events"].as_u64() > Some(0), "{name}");
        let judged = skctl(&dir).args(["validate", &name, "-o", "json"]).assert();
        let judged: Value = serde_json::from_slice(&judged.get_output().stdout).expect("the answer is JSON");
        assert!(judged["valid"].is_boolean(), "{name}");
        assert_eq!(judged["events"], summary["events"], "{name}");
    }
}

#[test]
fn what_a_form_cannot_hold_is_said_on_standard_error() {
    let dir = folder();
    skctl(&dir).args(["-q", "trace", "generate", "--preset", "small", "-O", "small.sktrace"]).assert().success();
    let to_v2 = ["trace", "convert", "small.sktrace", "v2.sktrace", "--to", "v2"];
    let out = skctl(&dir).args(to_v2).assert().success();
    out.stdout("").stderr(contains("wrote v2.sktrace: v2").and(contains("times cut to whole seconds")));
    skctl(&dir).args(to_v2).arg("-q").assert().success().stdout("").stderr("");
}

#[test]
fn show_tells_kinds_namespaces_span_and_busy_moments() {
    let dir = folder();
    let text = answer(&dir, &["trace", "show", "example:nginx"]);
    for expected in ["apps/v1.Deployment", "monitoring", "2026-01-05T09:00:00Z", "40m", "gaps: none", "█"] {
        assert!(text.contains(expected), "{expected} is not in:\n{text}");
    }
    let json = answer_json(&dir, &["trace", "show", "example:nginx", "-o", "json"]);
    assert_eq!(json["format"], "v2");
    assert_eq!(json["kinds"]["apps/v1.Deployment"]["deleted"], 1);
}

#[test]
fn show_lists_every_text_of_a_trace() {
    let dir = folder();
    let secret = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {password: \"hunter2\\e[2J\"}\n";
    write(&dir, "secret.yaml", secret);
    let text = answer(&dir, &["trace", "show", "secret.yaml", "--values"]);
    assert!(text.contains("v1.ConfigMap /data/password\n") && text.contains("\"hunter2\\u{1b}[2J\""), "{text}");
    let json = answer_json(&dir, &["trace", "show", "secret.yaml", "--values", "-o", "json"]);
    let rows = json.as_array().expect("a list");
    assert!(rows.iter().any(|row| row["value"] == "hunter2\u{1b}[2J" && row["count"] == 1), "{json}");
}

#[test]
fn no_terminal_obeys_the_names_in_a_trace() {
    let dir = folder();
    write(&dir, "evil.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: \"x\\e]0;owned\\a\"}\n");
    for args in [vec!["trace", "show", "evil.yaml"], vec!["validate", "evil.yaml"]] {
        let out = skctl(&dir).args(args).assert();
        let output = out.get_output();
        let all = [output.stdout.as_slice(), &output.stderr].concat();
        assert!(!all.contains(&0x1b) && !all.contains(&7), "{}", String::from_utf8_lossy(&all));
    }
}

#[test]
fn a_slice_begins_with_the_state_at_its_start() {
    let dir = folder();
    let args = ["trace", "slice", "example:nginx", "-s", "+10m", "-D", "10m", "--include-namespaces", "default"];
    skctl(&dir).args(args).args(["-O", "part.sktrace"]).assert().success().stdout("").stderr(contains("objects"));
    let json = answer_json(&dir, &["trace", "show", "part.sktrace", "-o", "json"]);
    assert_eq!(json["span"]["start"], "2026-01-05T09:10:00Z");
    assert_eq!(json["span"]["end"], "2026-01-05T09:20:00Z");
    assert_eq!(
        json["namespaces"].as_object().map(|names| names.keys().collect::<Vec<_>>()),
        Some(vec![&"default".to_owned()])
    );
    assert_eq!(json["kinds"]["apps/v1.Deployment"]["initial"], 1);
    // The namespace of a tracer is another thing, and passing it over in silence would keep everything.
    let args = ["trace", "slice", "example:nginx", "--namespace", "default", "-O", "no.sktrace"];
    skctl(&dir).args(args).assert().code(2).stderr(contains("--include-namespaces default"));
}

#[test]
fn a_slice_is_cut_by_kind_and_label_and_by_the_clocks_of_a_zone() {
    let dir = folder();
    let args = ["trace", "slice", "example:nginx", "-l", "app=nginx", "--kind", "Deployment"];
    skctl(&dir).args(args).args(["-O", "part.jsonl"]).assert().success();
    let text = String::from_utf8(bytes(&dir, "part.jsonl")).expect("JSON Lines are text");
    assert!(text.contains("nginx") && !text.contains("\"name\":\"node-watch\""), "{text}");
    let args = ["trace", "slice", "example:nginx", "--tz", "Europe/Berlin", "-t", "2026-01-05T10:20"];
    skctl(&dir).args(args).args(["-O", "berlin.sktrace"]).assert().success();
    let json = answer_json(&dir, &["trace", "show", "berlin.sktrace", "-o", "json"]);
    assert_eq!(json["span"]["end"], "2026-01-05T09:20:00Z");
    let out = skctl(&dir).args(["trace", "slice", "example:nginx", "-O", "x.sktrace", "--tz", "Mars/Base"]).assert();
    out.code(2).stderr(contains("Europe/Berlin"));
}

#[test]
fn a_shifted_trace_says_the_same_at_another_time() {
    let dir = folder();
    skctl(&dir).args(["trace", "shift", "example:nginx", "--by", "-1d", "-O", "a.sktrace"]).assert().success();
    let json = answer_json(&dir, &["trace", "show", "a.sktrace", "-o", "json"]);
    assert_eq!(json["span"]["start"], "2026-01-04T09:00:00Z");
    skctl(&dir)
        .args(["trace", "shift", "a.sktrace", "-s", "2026-01-05T09:00:00Z", "-O", "b.sktrace"])
        .assert()
        .success();
    assert_eq!(lines(&dir, "b.sktrace").len(), lines(&dir, "a.sktrace").len());
    let json = answer_json(&dir, &["trace", "show", "b.sktrace", "-o", "json"]);
    assert_eq!(json["span"]["start"], "2026-01-05T09:00:00Z");
}

#[test]
fn traces_are_merged_and_the_same_object_twice_is_refused() {
    let dir = folder();
    for (namespaces, name) in [("default", "a.sktrace"), ("monitoring,web-tools", "b.sktrace")] {
        let args = ["trace", "slice", "example:nginx", "--include-namespaces", namespaces, "-O", name];
        skctl(&dir).args(args).assert().success();
    }
    skctl(&dir).args(["trace", "merge", "a.sktrace", "b.sktrace", "-O", "both.sktrace"]).assert().success();
    let json = answer_json(&dir, &["trace", "show", "both.sktrace", "-o", "json"]);
    assert_eq!(json["events"], answer_json(&dir, &["trace", "show", "example:nginx", "-o", "json"])["events"]);
    let twice = ["trace", "merge", "a.sktrace", "a.sktrace", "-O", "twice.sktrace"];
    skctl(&dir).args(twice).assert().code(2).stderr(contains("nginx"));
    assert!(!dir.path().join("twice.sktrace").exists());
    skctl(&dir).args(twice).arg("--join").assert().success();
    skctl(&dir).args(["trace", "merge", "a.sktrace", "-O", "one.sktrace"]).assert().code(2);
}

#[test]
fn a_trace_is_scaled_in_replicas_and_in_arrivals() {
    let dir = folder();
    let replicas = |trace: &str| -> Vec<u64> {
        lines(&dir, trace).iter().filter_map(|line| line["apply"]["spec"]["replicas"].as_u64()).collect()
    };
    skctl(&dir).args(["trace", "scale", "example:nginx", "--replicas", "3", "-O", "more.sktrace"]).assert().success();
    let expected: Vec<u64> = replicas("example:nginx").iter().map(|replicas| replicas * 3).collect();
    assert_eq!(replicas("more.sktrace"), expected);
    let args = ["trace", "scale", "example:nginx", "--arrivals", "2", "--seed", "7", "-O", "twice.sktrace"];
    skctl(&dir).args(args).assert().success().stderr(contains("events added"));
    assert_eq!(replicas("twice.sktrace").len(), 2 * replicas("example:nginx").len());
    let out = skctl(&dir).args(["trace", "scale", "example:nginx", "--arrivals", "-1", "-O", "x.sktrace"]).assert();
    out.code(2);
    skctl(&dir).args(["trace", "scale", "example:nginx", "--replicas", "NaN", "-O", "x.sktrace"]).assert().code(2);
}

#[test]
fn a_jq_program_changes_a_trace_and_a_dry_run_shows_how() {
    let dir = folder();
    write(&dir, "halve.jq", "select($name != \"node-watch\") | .spec.replicas = (.spec.replicas / 2 | floor)");
    let show = answer(&dir, &["trace", "transform", "example:nginx", "-f", "halve.jq", "--dry-run"]);
    for expected in ["node-watch is dropped", "- /spec/replicas: 10", "+ /spec/replicas: 5", "1 dropped"] {
        assert!(show.contains(expected), "{expected} is not in:\n{show}");
    }
    assert_eq!(names(dir.path()), ["halve.jq"], "a dry run writes nothing");
    // `transform` alone, and its old `-o`, are known from SimKube 2.
    let args = ["transform", "example:nginx", "-f", "halve.jq", "-o", "half.sktrace"];
    skctl(&dir).args(args).assert().success().stdout("").stderr(contains("1 dropped"));
    assert_eq!(
        answer_json(&dir, &["trace", "show", "half.sktrace", "-o", "json"])["kinds"]["apps/v1.Deployment"]["initial"],
        2
    );
    write(&dir, "wrong.jq", ".spec.replicas = (");
    let args = ["trace", "transform", "example:nginx", "-f", "wrong.jq", "-O", "x.sktrace"];
    skctl(&dir).args(args).assert().code(2).stderr(contains("wrong.jq").and(contains("line 1")));
}

#[test]
fn the_old_forms_of_transform_are_answered_with_the_new_ones() {
    let dir = folder();
    for args in [
        ["transform", "example:nginx", "x.skel"].as_slice(),
        &["transform", "example:nginx", "-f", "x.skel", "-O", "y"],
    ] {
        skctl(&dir).args(args).assert().code(2).stderr(contains("SKEL is not supported; docs/from-simkube.md"));
    }
    let out = skctl(&dir).args(["transform", "example:nginx", "x.jq", "-o", "y.sktrace"]).assert().code(2);
    out.stderr(contains("skctl trace transform example:nginx -f x.jq"));
    let args = ["trace", "slice", "example:nginx", "--start-time", "+5m", "--end-time", "+9m", "-O", "a.sktrace"];
    skctl(&dir).args(args).assert().success();
}

#[test]
fn the_same_seed_generates_the_same_bytes() {
    let dir = folder();
    for (seed, name) in [("7", "a.sktrace"), ("7", "b.sktrace"), ("8", "c.sktrace")] {
        let args = ["trace", "generate", "--preset", "small", "--seed", seed, "-O", name];
        skctl(&dir).args(args).assert().success().stdout("").stderr(contains(format!("seed {seed}")));
    }
    assert!(bytes(&dir, "a.sktrace") == bytes(&dir, "b.sktrace"));
    assert!(bytes(&dir, "a.sktrace") != bytes(&dir, "c.sktrace"));
    skctl(&dir).args(["validate", "a.sktrace"]).assert().success().stdout(contains("VALID"));
    write(&dir, "spec.yaml", "duration: 1m\nservices: {count: 2}\n");
    skctl(&dir).args(["trace", "generate", "-f", "spec.yaml", "-O", "d.sktrace"]).assert().success();
    write(&dir, "wrong.yaml", "servises: {}\n");
    let out = skctl(&dir).args(["trace", "generate", "-f", "wrong.yaml", "-O", "e.sktrace"]).assert().code(2);
    out.stderr(contains("wrong.yaml").and(contains("servises")));
    let out = skctl(&dir).args(["trace", "generate", "--preset", "huge", "-O", "e.sktrace"]).assert().code(2);
    out.stderr(contains("bench-100k"));
}

/// A Deployment that asks for a ServiceAccount nobody has, and has a status.
const UNFIT: &str = "apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {serviceAccountName: robot, containers: [{name: web, image: web}]}
status: {replicas: 1}
";

#[test]
fn an_invalid_trace_exits_with_1_and_is_mended() {
    let dir = folder();
    write(&dir, "web.yaml", UNFIT);
    let out = skctl(&dir).args(["validate", "web.yaml"]).assert().code(1);
    out.stdout(contains("E0001").and(contains("W0000")).and(contains("INVALID")));
    let json = skctl(&dir).args(["validate", "web.yaml", "-o", "json"]).assert().code(1);
    let json: Value = serde_json::from_slice(&json.get_output().stdout).expect("the answer is JSON");
    assert_eq!((&json["valid"], &json["counts"]["E0001"]), (&false.into(), &1.into()));
    let out = skctl(&dir).args(["validate", "web.yaml", "--fix", "-O", "mended.sktrace"]).assert().success();
    out.stdout(contains("fixed  E0001").and(contains("VALID  mended.sktrace: 0 errors, 0 warnings")));
    skctl(&dir).args(["validate", "mended.sktrace", "--strict"]).assert().success();
    skctl(&dir).args(["validate", "web.yaml", "--fix"]).assert().code(2).stderr(contains("--out"));
    skctl(&dir).args(["validate", "web.yaml", "--fix", "-O", "-"]).assert().code(2);
}

#[test]
fn strict_does_not_pass_warnings() {
    let dir = folder();
    write(&dir, "web.yaml", UNFIT.replace("serviceAccountName: robot, ", ""));
    skctl(&dir).args(["validate", "web.yaml"]).assert().success().stdout(contains("0 errors, 1 warning in 1 event"));
    skctl(&dir).args(["validate", "web.yaml", "--strict"]).assert().code(1).stdout(contains("INVALID"));
}

#[test]
fn codes_are_explained_and_listed() {
    let dir = folder();
    assert!(answer(&dir, &["validate", "explain", "E0001"]).contains("ServiceAccount"));
    let list = answer(&dir, &["validate", "print"]);
    for code in ["W0000", "E0001", "E0002", "E0003", "E0004", "E0005"] {
        assert!(list.contains(code), "{code} is not in:\n{list}");
    }
    assert!(answer_json(&dir, &["validate", "print", "-o", "json"]).as_array().is_some_and(|codes| codes.len() > 6));
    skctl(&dir).args(["validate", "explain", "E9999"]).assert().code(2).stderr(contains("skctl validate print"));
    skctl(&dir).arg("validate").assert().code(2).stderr(contains("TRACE"));
}

#[test]
fn traces_go_through_pipes() {
    let dir = folder();
    let lines = skctl(&dir).args(["trace", "convert", "example:nginx", "-"]).assert().success();
    let lines = lines.get_output().stdout.clone();
    let native =
        skctl(&dir).args(["trace", "convert", "-", "-", "--to", "native"]).write_stdin(lines).assert().success();
    let native = native.get_output().stdout.clone();
    let v2 =
        skctl(&dir).args(["-q", "trace", "convert", "-", "-", "--to", "v2"]).write_stdin(native).assert().success();
    assert!(v2.get_output().stdout == NGINX);
}

#[test]
fn a_trace_may_be_a_file_url_or_a_folder_of_manifests_and_unknown_places_are_refused() {
    let dir = folder();
    write(&dir, "nginx.sktrace", NGINX);
    let url = format!("file://{}/nginx.sktrace", dir.path().display());
    assert!(answer(&dir, &["trace", "show", &url]).contains("Deployment"));
    std::fs::create_dir(dir.path().join("chart")).expect("a temporary folder can be written to");
    write(&dir, "chart/web.yaml", UNFIT);
    assert!(answer(&dir, &["trace", "show", "chart"]).contains("Deployment"));
    skctl(&dir).args(["trace", "show", "ftp://host/a.sktrace"]).assert().code(2).stderr(contains("s3://"));
    // Nothing listens on port 1.
    skctl(&dir).args(["trace", "show", "http://127.0.0.1:1/a.sktrace"]).assert().code(2).stderr(contains("127.0.0.1"));
}

/// Answers requests with a bundled trace, for as long as the test runs; where it listens.
fn web_server() -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    let address = listener.local_addr().expect("it listens");
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("somebody calls");
            let mut lines = BufReader::new(stream.try_clone().expect("a stream can be shared")).lines();
            while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", NGINX.len());
            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(NGINX));
        }
    });
    address
}

#[test]
fn a_trace_is_fetched_from_a_web_server() {
    let dir = folder();
    let url = format!("http://{}/traces/nginx.sktrace", web_server());
    skctl(&dir).args(["trace", "convert", &url, "here.sktrace", "--to", "v2"]).assert().success();
    assert!(bytes(&dir, "here.sktrace") == NGINX);
}

#[test]
fn the_schema_of_scenarios_is_an_answer() {
    let dir = folder();
    let schema = answer_json(&dir, &["scenario", "schema"]);
    assert!(schema["properties"]["cluster"].is_object() || schema["$defs"].is_object(), "{schema}");
}

#[cfg(unix)]
#[test]
fn a_pipe_with_a_name_is_read_once() {
    for (form, args) in [("v2", ["trace", "show", "pipe"]), ("native", ["trace", "show", "pipe"])] {
        let dir = folder();
        write(&dir, "v2", NGINX);
        skctl(&dir).args(["-q", "trace", "convert", "v2", "native", "--to", "native"]).assert().success();
        let content = bytes(&dir, form);
        let pipe = dir.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.expect("there is a `mkfifo`").success());
        // Opening waits for the reader, so this is another thread; it writes once and goes.
        let writer = std::thread::spawn(move || std::fs::write(pipe, content).expect("the reader takes all of it"));
        let shown = skctl(&dir).args(args).timeout(std::time::Duration::from_secs(120)).assert().success();
        shown.stdout(contains(form).and(contains("apps/v1.Deployment")));
        writer.join().expect("it was written");
    }
}

#[cfg(unix)]
#[test]
fn the_copy_of_standard_input_goes_with_a_killed_process() {
    let dir = folder();
    let copies = dir.path().join("tmp");
    std::fs::create_dir(&copies).expect("a temporary folder can be written to");
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_skctl"));
    command.args(["trace", "show", "-"]).env("TMPDIR", &copies).stdin(std::process::Stdio::piped());
    let mut child = command.stdout(std::process::Stdio::null()).spawn().expect("skctl starts");
    let mut input = child.stdin.take().expect("it is a pipe");
    // A pipe holds 64 KiB or so: when all of this is taken, most of it is copied.
    input.write_all(NGINX).and_then(|()| input.write_all(&vec![0; 4 << 20])).expect("it is taken");
    child.kill().and_then(|()| child.wait()).expect("it is our child");
    assert_eq!(names(&copies), Vec::<String>::new());
}

#[cfg(target_os = "linux")]
#[test]
fn what_sends_without_end_is_refused() {
    let dir = folder();
    for place in ["/dev/zero", "-"] {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_skctl"));
        let zeros = std::fs::File::open("/dev/zero").expect("Linux has /dev/zero");
        let output = command.args(["trace", "show", place]).current_dir(dir.path()).stdin(zeros).output();
        let output = output.expect("skctl starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("is not a trace") && said.contains("00, 00"), "{said}");
    }
}
