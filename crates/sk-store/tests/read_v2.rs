//! Reading v2 traces: what they mean, and what is refused.

mod support;

use serde_json::json;
use sk_core::SimTime;
use sk_store::OpenError;
use sk_store::trace::{Change, Format, Mark, from_bytes, open};
use support::{deployment, event, names, story, v2, v2_traces};

#[test]
fn records_come_in_order_with_their_times() {
    let trace = support::open(v2(&[
        event(100, &[deployment("a", 1), deployment("b", 1)], &[]),
        event(160, &[deployment("a", 2)], &[names("b")]),
        event(200, &[], &[]),
    ]));
    assert_eq!(trace.format(), Format::V2);
    assert_eq!(trace.span(), Some((SimTime::from_secs(100), SimTime::from_secs(200))));
    assert_eq!(
        story(&trace),
        [
            "1970-01-01T00:01:40Z apply Deployment default/a",
            "1970-01-01T00:01:40Z apply Deployment default/b",
            "1970-01-01T00:02:40Z apply Deployment default/a",
            "1970-01-01T00:02:40Z delete Deployment default/b",
        ]
    );
    let records: Vec<_> = trace.records().unwrap().map(Result::unwrap).collect();
    assert!(records.iter().enumerate().all(|(position, record)| record.seq == position as u64));
    let last = records.last().unwrap();
    assert_eq!(last.at, SimTime::from_secs(200), "an empty event marks the end of the window");
    assert_eq!(last.change, Change::Mark(Mark::V2Event { delete_order: vec![] }));
}

#[test]
fn a_recreated_object_is_deleted_first_and_a_short_lived_one_last() {
    let trace = support::open(v2(&[
        event(1, &[deployment("old", 1)], &[]),
        event(2, &[deployment("old", 2), deployment("new", 1)], &[names("new"), names("old")]),
    ]));
    let second: Vec<_> = story(&trace).into_iter().skip(1).map(|line| line[21..].to_owned()).collect();
    assert_eq!(
        second,
        [
            "delete Deployment default/old",
            "apply Deployment default/old",
            "apply Deployment default/new",
            "delete Deployment default/new",
        ]
    );
    let orders = trace.records().unwrap().filter_map(|record| match record.unwrap().change {
        Change::Mark(Mark::V2Event { delete_order }) => Some(delete_order),
        _ => None,
    });
    assert_eq!(orders.collect::<Vec<_>>(), [vec![], vec![1, 0]], "so that the event can be written as it was");
}

#[test]
fn v2_traces_open() {
    for path in v2_traces() {
        let trace = open(&path).unwrap();
        let records = trace.records().unwrap().map(Result::unwrap).count();
        let lives: Vec<_> = trace.lives().unwrap().map(Result::unwrap).collect();
        assert!(records > 0 && !lives.is_empty() && !trace.config().tracked().is_empty(), "{}", path.display());
        assert!(lives[0].templates[0].pod_hash.is_some());
        assert!(lives[0].templates[0].lives[0].start > SimTime::EPOCH);
    }
}

#[test]
fn every_cut_of_a_trace_is_noticed_and_named() {
    let whole = v2(&[event(1, &[deployment("a", 1)], &[]), event(2, &[], &[names("a")])]);
    for end in 1..whole.len() {
        let error = from_bytes("week.sktrace", whole[..end].to_vec()).unwrap_err().to_string();
        assert!(error.contains("week.sktrace") && error.contains("cut short"), "cut at {end}: {error}");
    }
}

#[test]
fn a_flipped_bit_never_panics() {
    let whole = v2(&[event(1, &[deployment("a", 1)], &[]), event(2, &[deployment("a", 2)], &[names("a")])]);
    for position in 0..whole.len() * 8 {
        let mut flipped = whole.clone();
        flipped[position / 8] ^= 1 << (position % 8);
        if let Ok(trace) = from_bytes("flipped", flipped) {
            let _ = trace.records().map(|records| records.filter(Result::is_err).count());
            let _ = trace.lives().map(|lives| lives.filter(Result::is_err).count());
        }
    }
}

#[test]
fn what_is_no_trace_is_refused_with_what_it_is_and_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let refuse = |bytes: &[u8]| from_bytes("x", bytes.to_vec()).unwrap_err().to_string();
    assert!(open(folder.path()).unwrap_err().to_string().contains("a folder without .yaml"));
    let missing = open(&folder.path().join("none.sktrace")).unwrap_err();
    assert!(matches!(&missing, OpenError::Io { .. }) && missing.to_string().contains("none.sktrace"), "{missing}");
    assert!(refuse(b"").contains("x is empty"));
    assert!(refuse(&[0x28, 0xb5, 0x2f, 0xfd, 0]).contains("zstd"));
    assert!(refuse(&[0x95, 1, 2, 3, 4, 5]).contains("version 1 or older"));
    assert!(refuse(&rmp_serde::to_vec_named(&json!({"version": 7})).unwrap()).contains("version 7"));
    assert!(refuse(&rmp_serde::to_vec_named(&json!({"a": 1})).unwrap()).contains("without a `version`"));
    assert!(refuse(&rmp_serde::to_vec_named(&json!({"version": 2})).unwrap()).contains("no `index`"));
}

#[test]
fn a_broken_event_is_named_by_its_number() {
    let trace = support::open(v2(&[event(1, &[], &[]), event(2, &[json!({"kind": "Pod"})], &[])]));
    let mut records = trace.records().unwrap();
    assert!(records.next().unwrap().is_ok() && records.next().unwrap().is_ok());
    let error = records.next().unwrap().unwrap_err().to_string();
    assert!(error.contains("event 1") && error.contains("`apiVersion`"), "{error}");
    assert!(records.next().is_none(), "nothing comes after an error");
    let no_time = from_bytes("x", v2(&[json!({"applied_objs": []})])).unwrap_err().to_string();
    assert!(no_time.contains("event 0") && no_time.contains("`ts`"), "{no_time}");
    let absurd = from_bytes("x", v2(&[event(i64::MAX, &[], &[])])).unwrap_err().to_string();
    assert!(absurd.contains("a valid number of seconds"), "{absurd}");
}

#[test]
fn the_digest_is_the_sha256_of_the_bytes() {
    let bytes = v2(&[]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.sktrace");
    std::fs::write(&path, &bytes).unwrap();
    let digest = open(&path).unwrap().digest().unwrap();
    assert_eq!(digest, support::open(bytes).digest().unwrap());
    assert_ne!(digest, support::open(v2(&[event(1, &[], &[])])).digest().unwrap());
    assert_eq!(digest.to_string().len(), 64);
}
