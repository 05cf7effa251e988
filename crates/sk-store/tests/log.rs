//! The event log: what is appended is there after a sync, after a restart, from other threads, and only as long as it is
//! to be kept.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

#[path = "support/facts.rs"]
mod facts;

use facts::{applied, apply, at, delete, entries, link, object, open, pod, watched};
use sk_core::SimDuration;
use sk_store::log::{Fact, Item, Log, LogError, Options, Watched};
use sk_store::trace::Gap;

const WEB: &str = "apps/v1.Deployment default/web";

/// One of everything.
fn one_of_each() -> Vec<Fact> {
    let mut waiting = pod("web-1", Some("apps/v1.ReplicaSet default/web-x"), at(1), None);
    waiting.waits.push(sk_store::trace::Wait { at: at(1), reason: "Unschedulable".into(), message: "0/1".into() });
    waiting.attributions.push(facts::attribution(WEB));
    vec![
        apply(WEB, 1),
        Fact::Applied({
            let mut owned = applied("example.com/v1.Thing cluster", 3);
            owned.owners.push(facts::owned_by("example.com/v1.Owner above"));
            owned
        }),
        link("apps/v1.ReplicaSet default/web-x", WEB),
        Fact::Pod(Box::new(waiting)),
        Fact::Node("n1".into(), Some(r#"{"kind":"Node"}"#.into())),
        Fact::Gap(Gap { from: at(-5), to: at(0), kind: Some("v1.Pod".parse().unwrap()), reason: "410".into() }),
        watched("apps/v1.Deployment", "17"),
        Fact::Lost("v1.Pod".parse().unwrap()),
        delete("example.com/v1.Thing cluster"),
        Fact::Unlinked(facts::uid_of("apps/v1.ReplicaSet default/web-x")),
        Fact::Node("n1".into(), None),
    ]
}

#[test]
fn every_kind_of_fact_comes_back_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let mut log = open(folder.path());
    for (secs, fact) in (0..).zip(one_of_each()) {
        assert_eq!(log.append(at(secs), fact).unwrap(), u64::try_from(secs).unwrap() + 1);
    }
    assert!(entries(&log.reader()).is_empty(), "readers see what was synced");
    log.sync().unwrap();
    let read = entries(&log.reader());
    assert_eq!(read.iter().map(|entry| entry.fact.clone()).collect::<Vec<_>>(), one_of_each());
    assert!((0..).zip(&read).all(|(secs, entry)| entry.at == at(secs) && entry.seq == secs as u64 + 1));
}

#[test]
fn a_log_that_is_opened_again_knows_what_there_is_and_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let mut log = open(folder.path());
    for (secs, fact) in (0..).zip(one_of_each()) {
        log.append(at(secs), fact).unwrap();
    }
    let before = log.state().clone();
    drop(log);
    let (mut log, recovered) = Log::open(folder.path(), Options::default()).unwrap();
    assert_eq!((recovered.newest, recovered.cut_bytes), (Some((11, at(10))), 0));
    assert_eq!(*log.state(), before);
    assert_eq!(log.state().object(&object(WEB)).unwrap().uid, facts::uid_of(WEB));
    assert_eq!(log.state().pods().map(|pod| pod.pod.to_string()).collect::<Vec<_>>(), ["default/web-1"]);
    let positions: Vec<_> = log.state().positions().map(|(_, version, at)| (version.as_str(), at)).collect();
    assert_eq!(positions, [("17", at(6))]);
    assert_eq!(log.state().lost().map(|(gvk, since)| (gvk.kind.as_str(), since)).collect::<Vec<_>>(), [("Pod", at(7))]);
    assert_eq!((log.state().nodes().len(), log.state().links().len(), log.state().gaps().len()), (0, 0, 1));
    assert_eq!(log.append(at(20), apply(WEB, 2)).unwrap(), 12);
    log.sync().unwrap();
    assert_eq!(entries(&log.reader()).len(), 12, "the new segment's state is not told again");
    assert_eq!(log.stats().segments, 2);
}

#[test]
fn nobody_else_writes_the_same_folder() {
    let folder = tempfile::tempdir().unwrap();
    let log = open(folder.path());
    let error = Log::open(folder.path(), Options::default()).err().unwrap();
    assert!(matches!(error, LogError::Locked { .. }) && error.to_string().contains("another tracer"), "{error}");
    drop(log);
    open(folder.path());
}

#[test]
fn time_does_not_run_backwards_in_a_log() {
    let folder = tempfile::tempdir().unwrap();
    let mut log = open(folder.path());
    for secs in [5, 3, 7] {
        log.append(at(secs), apply(WEB, 1)).unwrap();
    }
    log.sync().unwrap();
    assert_eq!(entries(&log.reader()).iter().map(|entry| entry.at).collect::<Vec<_>>(), [at(5), at(5), at(7)]);
}

/// Segments of few entries each.
fn small_segments() -> Options {
    Options { segment_bytes: 2_000, ..Options::default() }
}

#[test]
fn old_history_goes_by_whole_segments_and_what_is_kept_begins_with_the_state() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options { age: SimDuration::from_secs(100), ..small_segments() };
    let (mut log, _) = Log::open(folder.path(), options).unwrap();
    log.append(at(0), apply("v1.ConfigMap default/old", 1)).unwrap();
    for (from, to) in [(1, 2), (250, 260)] {
        let gap = Gap { from: at(from), to: at(to), kind: None, reason: "test".into() };
        log.append(at(0), Fact::Gap(gap)).unwrap();
    }
    for secs in 0..300 {
        log.append(at(secs), apply(WEB, secs as u64)).unwrap();
    }
    log.sync().unwrap();
    let all = log.stats();
    assert!(all.segments > 20 && all.kept_from == Some(at(0)), "{all:?}");
    assert!(log.retain(at(299)) > 10);
    let kept = log.stats();
    let from = kept.kept_from.unwrap();
    assert!(from <= at(199) && from > at(180) && kept.bytes < all.bytes, "{kept:?}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), kept.segments + 1, "and the lock");
    let state: Vec<_> = log.reader().items().take_while(|item| matches!(item, Item::State(_))).collect();
    assert!(state.contains(&Item::State(apply("v1.ConfigMap default/old", 1))), "{state:?}");
    let last = entries(&log.reader()).pop().unwrap();
    assert_eq!((last.fact, last.seq), (apply(WEB, 299), 303));
    assert_eq!(log.state().gaps().iter().map(|gap| gap.from).collect::<Vec<_>>(), [at(250)]);
}

#[test]
fn too_many_bytes_go_too_but_never_the_segment_that_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options { bytes: 4_000, ..small_segments() };
    let (mut log, _) = Log::open(folder.path(), options).unwrap();
    for secs in 0..300 {
        log.append(at(secs), apply(WEB, secs as u64)).unwrap();
        log.sync().unwrap();
        log.retain(at(secs));
        assert!(log.stats().bytes <= 4_000 + 2_500, "one segment more at most: {:?}", log.stats());
    }
    assert_eq!(entries(&log.reader()).pop().unwrap().fact, apply(WEB, 299));
    let tiny = Options { bytes: 1, ..small_segments() };
    drop(log);
    let (mut log, _) = Log::open(folder.path(), tiny).unwrap();
    log.append(at(300), apply(WEB, 300)).unwrap();
    log.sync().unwrap();
    log.retain(at(300));
    assert_eq!(log.stats().segments, 1);
}

#[test]
fn a_reader_that_has_begun_reads_on_while_retention_takes_its_segments() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options { age: SimDuration::from_secs(1), ..small_segments() };
    let (mut log, _) = Log::open(folder.path(), options).unwrap();
    for secs in 0..200 {
        log.append(at(secs), apply(WEB, secs as u64)).unwrap();
    }
    log.sync().unwrap();
    let mut items = log.reader().items();
    assert!(log.retain(at(1_000)) > 5);
    let count = std::thread::spawn(move || (items.by_ref().count(), items.damages().len())).join().unwrap();
    assert_eq!(count, (200, 0));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2, "then they are gone");
}

#[test]
fn a_fact_that_is_too_large_is_refused_by_name_and_the_log_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let mut log = open(folder.path());
    let mut huge = applied(WEB, 1);
    huge.body = vec![b' '; 6 << 20].into();
    let error = log.append(at(0), Fact::Applied(huge)).unwrap_err();
    assert!(error.to_string().contains("Deployment default/web") && !error.stops_recording(), "{error}");
    assert_eq!(log.append(at(1), apply(WEB, 2)).unwrap(), 1);
    log.sync().unwrap();
    assert_eq!(entries(&log.reader()).len(), 1);
}

#[test]
fn gaps_are_bounded_and_never_say_less_than_was_missed() {
    let folder = tempfile::tempdir().unwrap();
    let mut log = open(folder.path());
    for secs in 0..5_000 {
        let gap = Gap { from: at(secs), to: at(secs + 1), kind: None, reason: "test".into() };
        log.append(at(secs), Fact::Gap(gap)).unwrap();
    }
    let gaps = log.state().gaps();
    assert_eq!(gaps.len(), 4_096);
    assert_eq!((gaps[0].from, gaps.last().unwrap().to), (at(0), at(5_000)));
    assert!(gaps.windows(2).all(|pair| pair[0].to >= pair[1].from));
}

#[test]
fn each_position_keeps_the_time_at_which_it_was_reached_over_segments_and_restarts() {
    let folder = tempfile::tempdir().unwrap();
    let (mut log, _) = Log::open(folder.path(), small_segments()).unwrap();
    log.append(at(5), watched("v1.Pod", "1")).unwrap();
    for secs in 6..100 {
        log.append(at(secs), apply(WEB, secs as u64)).unwrap();
    }
    log.append(at(100), watched("apps/v1.Deployment", "2")).unwrap();
    log.sync().unwrap();
    assert!(log.stats().segments > 3);
    let expected = [("Pod", at(5)), ("Deployment", at(100))];
    let positions =
        |log: &Log| log.state().positions().map(|(gvk, _, at)| (gvk.kind.to_string(), at)).collect::<Vec<_>>();
    for _ in 0..2 {
        assert_eq!(positions(&log), expected.map(|(kind, at)| (kind.to_owned(), at)));
        drop(log);
        log = open(folder.path());
        log.append(at(100), apply(WEB, 0)).unwrap();
    }
}

#[test]
fn a_position_that_is_recorded_late_is_as_old_as_what_was_seen_and_never_newer_than_its_entry() {
    let folder = tempfile::tempdir().unwrap();
    let (mut log, _) = Log::open(folder.path(), small_segments()).unwrap();
    let seen_until = |kind: &str, seen| {
        let kind = kind.parse().unwrap();
        Fact::Watched(Watched { kind, version: "7".into(), seen: Some(seen) })
    };
    log.append(at(50), apply(WEB, 1)).unwrap();
    log.append(at(50), seen_until("v1.Pod", at(20))).unwrap();
    log.append(at(50), seen_until("v1.Node", at(60))).unwrap();
    log.sync().unwrap();
    let read: Vec<_> = entries(&log.reader()).into_iter().map(|entry| (entry.at, entry.fact)).collect();
    assert_eq!(read[1], (at(50), seen_until("v1.Pod", at(20))), "the order of the log is that of its entries");
    let positions = |log: &Log| log.state().positions().map(|(_, _, seen)| seen).collect::<Vec<_>>();
    for _ in 0..2 {
        assert_eq!(positions(&log), [at(50), at(20)], "Node, Pod");
        // As if killed: the next one reads the entries, and then the state of another segment.
        drop(log);
        log = Log::open(folder.path(), small_segments()).unwrap().0;
        for secs in 51..100 {
            log.append(at(secs), apply(WEB, secs as u64)).unwrap();
        }
        log.sync().unwrap();
    }
    log.append(at(100), Fact::Lost("v1.Pod".parse().unwrap())).unwrap();
    assert_eq!(log.state().lost().map(|(_, since)| since).collect::<Vec<_>>(), [at(20)], "what is missed begins there");
}

#[test]
fn a_lost_position_is_missed_from_its_own_time_until_a_gap_of_its_kind_says_that_it_was_listed() {
    let folder = tempfile::tempdir().unwrap();
    let (mut log, _) = Log::open(folder.path(), small_segments()).unwrap();
    let pod: sk_core::Gvk = "v1.Pod".parse().unwrap();
    log.append(at(5), watched("v1.Pod", "1")).unwrap();
    log.append(at(5), watched("v1.Node", "1")).unwrap();
    for secs in 6..100 {
        log.append(at(secs), apply(WEB, secs as u64)).unwrap();
    }
    log.append(at(100), Fact::Lost(pod.clone())).unwrap();
    log.append(at(101), Fact::Lost(pod.clone())).unwrap();
    log.sync().unwrap();
    let gaps = |log: &Log| {
        let mut bytes = Vec::new();
        let query = sk_store::log::Query::window(at(50), at(200));
        log.reader().export(&query, sk_store::trace::Format::Native, &mut bytes).unwrap();
        let trace = sk_store::trace::from_bytes("export", bytes).unwrap();
        trace.gaps().unwrap().map(|gap| gap.unwrap()).map(|gap| (gap.kind, gap.from, gap.to)).collect::<Vec<_>>()
    };
    for _ in 0..2 {
        assert_eq!(gaps(&log), [(Some(pod.clone()), at(5), at(200))], "whoever exports now is told");
        assert_eq!(log.state().positions().map(|(gvk, ..)| gvk.kind.as_str()).collect::<Vec<_>>(), ["Node"]);
        drop(log);
        log = Log::open(folder.path(), small_segments()).unwrap().0;
    }
    let other = Gap { from: at(90), to: at(101), kind: Some("v1.Node".parse().unwrap()), reason: "410".into() };
    log.append(at(101), Fact::Gap(other)).unwrap();
    assert_eq!(log.state().lost().len(), 1, "a gap of another kind says nothing of this one");
    let gap = Gap { from: at(100), to: at(110), kind: Some(pod.clone()), reason: "410".into() };
    log.append(at(110), Fact::Gap(gap)).unwrap();
    log.sync().unwrap();
    assert_eq!(log.state().lost().len(), 0);
    let told = gaps(&log);
    assert_eq!(told[0], (Some(pod), at(5), at(110)), "it never says less than was missed");
}

#[test]
fn a_short_history_is_cut_into_short_segments() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options { age: SimDuration::from_secs(3_600), ..Options::default() };
    let (mut log, _) = Log::open(folder.path(), options).unwrap();
    for minutes in 0..180 {
        log.append(at(minutes * 60), apply(WEB, minutes as u64)).unwrap();
        log.sync().unwrap();
        log.retain(at(minutes * 60));
    }
    let kept = at(179 * 60).since(log.stats().kept_from.unwrap());
    let segment = SimDuration::from_secs(3_600 / 16 + 60);
    assert!(kept >= options.age && kept <= options.age + segment, "{} s are kept", kept.as_micros() / 1_000_000);
}

#[cfg(unix)]
#[test]
fn what_the_log_writes_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let outer = tempfile::tempdir().unwrap();
    let folder = outer.path().join("data/log");
    let mut log = open(&folder);
    log.append(at(0), apply(WEB, 1)).unwrap();
    log.sync().unwrap();
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    let files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| mode(&entry.unwrap().path())).collect();
    assert_eq!(files, [0o600, 0o600], "the lock and a segment");
}
