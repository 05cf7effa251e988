//! What people who know SimKube 2 type: it works, or it is answered with what to type today. docs/from-simkube.md names
//! all of it.

mod support;

use assert_cmd::assert::Assert;
use predicates::prelude::*;
use predicates::str::contains;
use support::{folder, skctl, write};
use tempfile::TempDir;

const NGINX: &[u8] = include_bytes!("../../../examples/nginx.sktrace");

/// Commands and flags of SimKube 2's skctl.
const KNOWN: [(&str, &[&str]); 14] = [
    ("completions", &["--stdout"]),
    ("crd", &[]),
    ("delete", &[]),
    ("rm", &[]),
    (
        "export",
        &["--start-time", "--end-time", "--excluded-namespaces", "--tracer-address", "--output-path", "--transform"],
    ),
    ("list", &[]),
    ("info", &[]),
    ("pause", &[]),
    ("resume", &[]),
    (
        "run",
        &[
            "--duration",
            "--speed",
            "--repetitions",
            "--start-paused",
            "--hooks",
            "--driver-image",
            "--driver-port",
            "--trace-path",
            "--driver-namespace",
            "--driver-secrets",
            "--skip-local-volume-mount",
            "--driver-verbosity",
            "--virtual-ns-prefix",
            "--disable-metrics",
            "--metrics-namespace",
            "--metrics-service-account",
            "--metrics-pod-monitor-namespaces",
            "--metrics-pod-monitor-names",
            "--metrics-service-monitor-namespaces",
            "--metrics-service-monitor-names",
            "--prometheus-shards",
            "--remote-write-endpoint",
            "--image-pull-delay",
            "--image-pull-jitter",
            "--pod-startup-delay",
            "--pod-startup-jitter",
            "--reschedule-interrupted-bare-pods",
        ],
    ),
    ("snapshot", &["--config-file", "--excluded-namespaces", "--output"]),
    ("transform", &["--output"]),
    ("validate", &["check", "explain", "print", "--fix", "--output", "--format", "--generate-skel"]),
    ("xray", &[]),
];

/// `skctl` with a trace beside it, on a machine where nobody has configured a cluster.
fn run(dir: &TempDir, words: &[&str]) -> Assert {
    write(dir, "week.sktrace", NGINX);
    let mut command = skctl(dir);
    command.env("HOME", dir.path()).env_remove("KUBECONFIG").env_remove("KUBERNETES_SERVICE_HOST");
    command.args(words).assert()
}

fn stdout(words: &[&str]) -> String {
    String::from_utf8(run(&folder(), words).success().get_output().stdout.clone()).expect("answers are text")
}

#[test]
fn the_page_for_people_from_simkube_2_names_every_command_and_flag() {
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/from-simkube.md");
    let page = std::fs::read_to_string(page).expect("docs/ is there");
    for (command, flags) in KNOWN {
        for word in flags.iter().chain([&command]) {
            assert!(page.contains(&format!("`{word}")) || page.contains(&format!(" {word}")), "{command} {word}");
        }
    }
}

#[test]
fn xray_shows_what_trace_show_shows() {
    assert_eq!(stdout(&["xray", "week.sktrace"]), stdout(&["trace", "show", "week.sktrace"]));
}

#[test]
fn validate_check_is_validate_and_writes_the_mended_trace_where_o_says() {
    assert_eq!(stdout(&["validate", "check", "week.sktrace"]), stdout(&["validate", "week.sktrace"]));
    let dir = folder();
    run(&dir, &["validate", "check", "week.sktrace", "--fix", "-o", "mended.sktrace"]).success();
    assert!(dir.path().join("mended.sktrace").exists());
    let refused = run(&dir, &["validate", "check", "week.sktrace", "--generate-skel"]).code(2);
    refused.stderr(contains("skctl validate week.sktrace --fix -O OUT"));
}

#[test]
fn the_list_of_codes_comes_in_the_known_formats() {
    let table = stdout(&["validate", "print"]);
    assert_eq!(stdout(&["validate", "print", "--format", "list"]), table);
    assert_eq!(stdout(&["validate", "print", "-f", "table"]), table);
    assert!(stdout(&["validate", "print", "--format", "json"]).contains("\"E0001\""));
    assert!(stdout(&["validate", "print", "-f", "yaml"]).contains("code: E0001"));
}

#[test]
fn completions_go_to_standard_output_with_and_without_the_flag() {
    assert_eq!(stdout(&["completions", "bash", "--stdout"]), stdout(&["completions", "bash"]));
    assert_eq!(stdout(&["completions", "bash", "-o"]), stdout(&["completions", "bash"]));
}

#[test]
fn delays_in_milliseconds_are_the_scenarios_timing() {
    let old = stdout(&["run", "example:nginx", "--pod-startup-delay", "7000", "--image-pull-delay", "2500"]);
    let set = ["--set", "timing.imagePullDelay=2500ms", "--set", "timing.podStartupDelay=7000ms"];
    let now = stdout(&[&["run", "example:nginx"][..], &set].concat());
    let figures = |text: &str| text.split_once('\n').expect("a summary has lines").1.to_owned();
    assert_eq!(figures(&old), figures(&now));
    assert_ne!(figures(&old), figures(&stdout(&["run", "example:nginx"])));
}

/// Flags that are understood bring the command as far as the cluster, which is not there.
#[test]
fn the_flags_of_a_cluster_run_are_understood() {
    let dir = folder();
    write(&dir, "hooks.yaml", "preStartHooks: [{cmd: echo, args: [hello], sendSim: true}]\n");
    let flags = "--driver-namespace sims -I example/sk-driver:7 --driver-secrets s3,ca --driver-verbosity debug \
                 --virtual-ns-prefix v --hooks hooks.yaml --skip-local-volume-mount --disable-metrics --start-paused \
                 --image-pull-jitter 10 --pod-startup-jitter 10 --driver-port 8443 -N 2 -D 5m --speed 2";
    let words: Vec<&str> = ["run", "week.sktrace", "--cluster"].into_iter().chain(flags.split_whitespace()).collect();
    run(&dir, &words).code(2).stderr(contains("there is no kubeconfig"));
    let metrics = "--metrics-namespace m --metrics-service-account a --metrics-pod-monitor-namespaces b,c \
                   --metrics-pod-monitor-names d --metrics-service-monitor-namespaces e \
                   --metrics-service-monitor-names f --prometheus-shards 2 --remote-write-endpoint http://g/receive";
    let words: Vec<&str> = ["run", "week.sktrace", "--cluster"].into_iter().chain(metrics.split_whitespace()).collect();
    run(&dir, &words).code(2).stderr(contains("there is no kubeconfig"));
    for flag in [["--hooks", "hooks.yaml"], ["--prometheus-shards", "2"]] {
        let refused = run(&dir, &[&["run", "week.sktrace"][..], &flag].concat()).code(2);
        refused.stderr(contains("is for --cluster"));
    }
    let no_hooks = run(&dir, &["run", "week.sktrace", "--cluster", "--hooks", "nowhere.yaml"]).code(2);
    no_hooks.stderr(contains("nowhere.yaml"));
}

#[test]
fn the_flags_of_exports_and_snapshots_are_understood() {
    let dir = folder();
    let export = ["export", "--start-time", "-30m", "--end-time", "now", "--output-path", "a.sktrace"];
    run(&dir, &export).code(2).stderr(contains("there is no kubeconfig"));
    run(&dir, &["snapshot", "--output", "a.sktrace", "--excluded-namespaces", "hr,kube-system"])
        .code(2)
        .stderr(contains("there is no kubeconfig"));
    run(&dir, &["info", "week"]).code(2).stderr(contains("there is no kubeconfig"));
}

#[test]
fn what_changed_its_meaning_is_answered_with_what_to_type_today() {
    let dir = folder();
    let today = "skctl run week.sktrace --name my-sim --cluster";
    run(&dir, &["run", "my-sim", "-f", "week.sktrace"]).code(2).stderr(contains(today));
    run(&dir, &["run", "my-sim", "--trace-path", "week.sktrace"]).code(2).stderr(contains(today));
    run(&dir, &["run", "week.sktrace", "-s", "2"]).code(2).stderr(contains("did you mean --speed 2"));
    let export = ["export", "-s", "-30m", "-o", "a.sktrace", "--transform", "lean.skel"];
    run(&dir, &export).code(2).stderr(contains("skctl trace transform").and(contains("docs/from-simkube.md")));
    run(&dir, &["transform", "week.sktrace", "lean.skel", "-o", "b"]).code(2).stderr(contains("docs/from-simkube.md"));
}
