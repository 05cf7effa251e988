//! From one form to another and back: nothing changes, and what a form cannot hold is counted.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod support;

use std::path::Path;

use serde_json::json;
use sk_store::trace::{Format, Section, Trace, convert, from_bytes, open};
use support::{OURS, deployment, event, names, v2, v2_traces};

fn converted(trace: &Trace, format: Format) -> Vec<u8> {
    let (bytes, losses) = convert(trace, format, Vec::new()).unwrap();
    assert!(losses.is_none(), "lost: {losses}");
    bytes
}

const FORMS: &[Format] = &[Format::JsonLines, Format::Native];

/// There and back again, through every form.
fn there_and_back(original: &[u8]) {
    let trace = support::open(original.to_vec());
    assert!(converted(&trace, Format::V2) == original, "v2 to v2 changes bytes");
    for form in FORMS.iter().copied() {
        let there = converted(&trace, form);
        let middle = support::open(there.clone());
        assert_eq!(middle.format(), form);
        assert_eq!((middle.span(), middle.header()), (trace.span(), trace.header()));
        assert!(converted(&middle, Format::V2) == original, "v2 to {form:?} to v2 changes bytes");
        assert!(converted(&middle, form) == there, "{form:?} to {form:?} changes bytes");
    }
}

#[test]
fn v2_traces_come_back_byte_for_byte() {
    for path in v2_traces() {
        let trace = open(&path).unwrap();
        assert!(trace.lives().unwrap().count() > 0);
        there_and_back(&std::fs::read(&path).unwrap());
    }
}

#[test]
fn a_native_trace_of_an_earlier_version_says_what_its_text_says() {
    let open = |name: &str| open(&Path::new(OURS).join(name)).unwrap();
    let (text, native) = (open("every-part.jsonl"), open("every-part.sktrace"));
    assert_eq!((text.format(), native.format()), (Format::JsonLines, Format::Native));
    assert_eq!((native.header(), native.span()), (text.header(), text.span()));
    let records = |trace: &Trace| trace.records().unwrap().map(Result::unwrap).collect::<Vec<_>>();
    assert_eq!(records(&native), records(&text));
    let mut rows = 0;
    for section in Section::ALL {
        let of = |trace: &Trace| trace.rows(section).unwrap().map(Result::unwrap).collect::<Vec<_>>();
        assert_eq!(of(&native), of(&text), "{section:?}");
        rows += of(&text).len();
    }
    assert_eq!((native.record_count(), rows), (Some(9), 7));
    assert!(converted(&native, Format::JsonLines) == std::fs::read(Path::new(OURS).join("every-part.jsonl")).unwrap());
    there_and_back_from_text(&text);
    let (_, losses) = convert(&native, Format::V2, std::io::sink()).unwrap();
    assert!(losses.subsecond_times > 0 && losses.rows > 0, "{losses}");
}

#[test]
fn empty_and_same_second_events_and_whole_deletes_come_back() {
    there_and_back(&v2(&[
        event(100, &[], &[]),
        event(100, &[deployment("a", 1)], &[]),
        event(100, &[deployment("a", 2), deployment("b", 1)], &[deployment("b", 1), names("a")]),
        event(100, &[], &[]),
        event(50, &[], &[names("gone")]),
        event(200, &[], &[]),
    ]));
}

#[test]
fn what_happens_within_a_second_is_split_for_v2_and_keeps_its_order() {
    let line = |at: &str, change: serde_json::Value| {
        let mut line = change;
        line["at"] = json!(format!("2026-01-05T09:00:{at}Z"));
        line.to_string() + "\n"
    };
    let text = [
        json!({"simkube": "trace", "version": 1, "config": {"trackedObjects": {}}}).to_string() + "\n",
        line("00.1", json!({"apply": deployment("a", 1)})),
        line("00.2", json!({"delete": names("a")})),
        line("00.3", json!({"apply": deployment("a", 2)})),
        line("00.4", json!({"apply": deployment("b", 2)})),
        line("01", json!({"mark": "moment"})),
    ]
    .concat();
    let trace = support::open(text);
    let (bytes, losses) = convert(&trace, Format::V2, Vec::new()).unwrap();
    assert_eq!(losses.subsecond_times, 4);
    let back = support::open(bytes);
    let verbs: Vec<_> = support::story(&back).iter().map(|line| line[21..].to_owned()).collect();
    assert_eq!(
        verbs,
        [
            "apply Deployment default/a",
            "delete Deployment default/a",
            "apply Deployment default/a",
            "apply Deployment default/b"
        ]
    );
    assert_eq!(back.records().unwrap().count(), 4 + 4, "three events of the first second and an empty one");
}

#[test]
fn an_index_is_made_if_there_is_none_to_carry() {
    let text = format!(
        "{}\n{}\n",
        r#"{"simkube":"trace","version":1,"config":{"trackedObjects":{}}}"#,
        json!({"at": 0, "apply": deployment("a", 1)})
    );
    let bytes = converted(&support::open(text), Format::V2);
    let value: serde_json::Value = rmp_serde::from_slice(&bytes).unwrap();
    let hash = sk_core::StableHash::of(&json!({"replicas": 1})).get();
    assert_eq!(value["index"], json!({"apps/v1.Deployment": {"default/a": hash}}));
}

#[test]
fn a_text_trace_cut_anywhere_is_noticed() {
    let whole = converted(
        &support::open(v2(&[event(1, &[deployment("a", 1)], &[]), event(2, &[], &[names("a")])])),
        Format::JsonLines,
    );
    let end_line = whole[..whole.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap();
    for end in 20..whole.len() - 1 {
        match from_bytes("cut.jsonl", whole[..end].to_vec()) {
            Ok(_) => assert!(end > end_line, "cut at {end} is not noticed"),
            Err(error) => assert!(error.to_string().contains("cut.jsonl, line"), "{error}"),
        }
    }
}

#[test]
fn a_wrong_line_is_named_by_its_number_and_what_is_wrong() {
    let header = r#"{"simkube":"trace","version":1,"config":{"trackedObjects":{}}}"#;
    let refuse = |line: &str| from_bytes("x.jsonl", format!("{header}\n\n{line}\n")).unwrap_err().to_string();
    for (line, expected) in [
        (r#"{"at":"soon","mark":"moment"}"#, "not a time"),
        (r#"{"mark":"moment"}"#, "no `at`"),
        (r#"{"at":0}"#, "exactly one"),
        (r#"{"at":0,"mark":"moment","apply":{}}"#, "not a Kubernetes object"),
        (r#"{"at":0,"aply":{}}"#, "aply"),
        (r#"{"end":{"records":7,"rows":0}}"#, "7 records"),
        ("[[[", "cut short"),
    ] {
        let error = refuse(line);
        assert!(error.contains("line 3") && error.contains(expected), "{line}: {error}");
    }
    let twice =
        format!("{header}\n{{\"at\":0,\"seq\":5,\"mark\":\"moment\"}}\n{{\"at\":0,\"seq\":5,\"mark\":\"moment\"}}");
    assert!(from_bytes("x", twice).unwrap_err().to_string().contains("does not rise"));
    let newer = r#"{"simkube":"trace","version":9,"config":{}}"#;
    assert!(from_bytes("x", newer).unwrap_err().to_string().contains("newer skctl"));
}

#[test]
fn the_lines_that_the_documentation_shows_are_a_trace() {
    let page = include_str!("../../../docs/trace-format.md");
    let shown: Vec<_> = page.lines().filter(|line| line.starts_with("{\"")).collect();
    let text = shown.join("\n").replace('…', "2026-01-05T09:00:00Z");
    let trace = support::open(text);
    assert_eq!(trace.records().unwrap().map(Result::unwrap).count(), 4);
    assert_eq!((trace.lives().unwrap().count(), trace.gaps().unwrap().count()), (1, 1));
    there_and_back_from_text(&trace);
}

/// Text to native to text gives the same lines.
fn there_and_back_from_text(trace: &Trace) {
    let text = converted(trace, Format::JsonLines);
    let native = converted(trace, Format::Native);
    assert!(converted(&support::open(native), Format::JsonLines) == text);
}
