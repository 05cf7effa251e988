//! Tests of the flags.

use serde_json::json;

use super::*;

fn parse(words: &[&str]) -> RunArgs {
    let Command::Run(args) = Cli::try_parse_from(["sk-driver", "run"].iter().chain(words)).unwrap().command;
    *args
}

fn simulation(spec: &serde_json::Value) -> Simulation {
    let mut json = json!({
        "apiVersion": "simkube.io/v1", "kind": "Simulation", "metadata": {"name": "s"},
        "spec": {"driver": {"tracePath": "/t"}},
    });
    json["spec"].as_object_mut().unwrap().extend(spec.as_object().cloned().unwrap());
    serde_json::from_value(json).unwrap()
}

/// An hour from 09:00.
fn trace() -> Trace {
    let text = "{\"simkube\":\"trace\",\"version\":1,\"config\":{\"trackedObjects\":{}}}\n\
                {\"at\":\"2026-01-05T09:00:00Z\",\"mark\":\"moment\"}\n{\"at\":\"2026-01-05T10:00:00Z\",\"mark\":\"moment\"}\n";
    sk_store::trace::from_bytes("test", text.as_bytes().to_vec()).unwrap()
}

#[test]
fn the_part_to_replay_is_the_whole_trace_unless_told() {
    let of = |words: &[&str], spec| {
        let words: Vec<_> = ["-f", "x"].iter().chain(words).copied().collect();
        window(&parse(&words), &simulation(&spec), &trace()).map(|window| {
            let Window { start, end, includes_end } = window;
            format!("{} {} {includes_end}", &start.to_rfc3339_secs()[11..16], &end.to_rfc3339_secs()[11..16])
        })
    };
    assert_eq!(of(&[], json!({})).unwrap(), "09:00 10:00 true");
    assert_eq!(of(&["-s", "+30m"], json!({"duration": "10m"})).unwrap(), "09:30 09:40 false");
    assert_eq!(of(&["--end", "+30m"], json!({"duration": "10m"})).unwrap(), "09:00 09:30 false");
    for (words, duration) in [(["-s", "2026-01-05T08:00:00Z"], "1h"), (["-t", "2026-01-05T08:00:00Z"], "1h")] {
        let error = of(&words, json!({"duration": duration})).unwrap_err().to_string();
        assert!(error.contains("empty or outside"), "{error}");
    }
}

#[test]
fn the_record_goes_where_it_was_asked_to_and_each_repetition_has_its_own_place() {
    let to = |words: &[&str], spec| {
        let words: Vec<_> = ["-f", "x"].iter().chain(words).copied().collect();
        match destination(&parse(&words), &simulation(&spec), 1).unwrap() {
            Destination::Folder(folder) => folder.display().to_string(),
            Destination::Store(place) => place,
            Destination::Controller(controller) => controller.url,
        }
    };
    assert_eq!(to(&["--out", "o"], json!({"record": {"path": "/p"}})), "o");
    assert_eq!(to(&[], json!({"record": {"path": "s3://b/p"}, "repetitions": 2})), "s3://b/p/1");
    assert_eq!(to(&[], json!({"repetitions": 2})), "runs/s/1");
}

#[test]
fn a_simulation_comes_from_the_cluster_or_from_a_file_and_not_from_both() {
    for words in [&["run", "-f", "x", "--simulation", "y"][..], &["run"], &["run", "-f", "x", "--also", "Role"]] {
        assert!(Cli::try_parse_from(["sk-driver"].iter().chain(words)).is_err(), "{words:?}");
    }
    let missing = read_simulation(Path::new("no-such.yaml")).unwrap_err();
    assert!(format!("{missing:#}").contains("no-such.yaml"));
}

#[test]
fn hooks_of_a_file_are_the_users_own_and_those_of_a_cluster_need_leave() {
    let allowed = |words: &[&str]| {
        let words: Vec<_> = words.iter().chain(&["--webhook-url", "https://h"]).copied().collect();
        let (start, end) = trace().span().unwrap();
        let window = Window { start, end, includes_end: true };
        options(&parse(&words), &simulation(&json!({})), window, None, 0).unwrap().allow_hooks
    };
    assert!(allowed(&["-f", "x"]));
    assert!(!allowed(&["--simulation", "s"]));
    assert!(allowed(&["--simulation", "s", "--allow-hooks"]));
}

#[tokio::test]
async fn the_last_words_begin_with_a_reason() {
    let opened = |place: &str| {
        let location: Location = place.parse().unwrap();
        anyhow::Error::from(location.open().unwrap_err()).context("cannot read the trace")
    };
    assert_eq!(reason(&opened("no-such.sktrace")), "TraceMissing");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.sktrace");
    std::fs::write(&file, "").unwrap();
    assert_eq!(reason(&opened(&file.display().to_string())), "TraceUnreadable");
    assert_eq!(reason(&cluster::RunError::HooksNotAllowed.into()), "HooksNotAllowed");
    assert_eq!(reason(&anyhow::anyhow!("something else")), "DriverFailed");
}

#[test]
fn assertions_that_do_not_hold_are_a_judgement_and_not_a_failure() {
    let ended = |stopped: Option<&str>, broken: &[&str]| {
        let broken = broken.iter().map(|text| (*text).to_owned()).collect();
        verdict(Ok(Ended { stopped: stopped.map(str::to_owned), broken }), stopped)
    };
    assert_eq!(ended(None, &[]), (0, None));
    let words = "AssertionFailed: pods.created >= 9   (pods.created = 5); nodes.max <= 1   (nodes.max = 3)".to_owned();
    let broken = ["pods.created >= 9   (pods.created = 5)", "nodes.max <= 1   (nodes.max = 3)"];
    assert_eq!(ended(None, &broken), (BAD, Some(words)));
    assert_eq!(ended(Some(SIGNALLED), &broken).0, INTERRUPTED, "half a run is not judged by its end");
}

#[test]
fn a_simulation_that_stands_still_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("s.yaml");
    for (speed, fits) in [("2.5", true), ("0", false), ("-1", false), (".inf", false)] {
        let text = format!(
            "apiVersion: simkube.io/v1\nkind: Simulation\nmetadata: {{name: s}}\nspec: {{driver: {{tracePath: /t}}, speed: {speed}}}\n"
        );
        std::fs::write(&file, text).unwrap();
        assert_eq!(read_simulation(&file).is_ok(), fits, "{speed}");
    }
}
