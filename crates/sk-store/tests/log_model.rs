//! Random histories, against the plainest model of a log: a list of what was appended. Segments end anywhere, the log is
//! opened again at any time, and what is read and exported must be what the list says.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

#[path = "support/facts.rs"]
mod facts;

use std::collections::BTreeSet;

use facts::{apply, at, delete, entries, pod, watched};
use proptest::prelude::*;
use sk_core::{ObjectRef, SimTime};
use sk_store::log::{Entry, Fact, Item, Log, Options, Query, State};
use sk_store::trace::{self, Format, Gap};

/// What is done to the log.
#[derive(Clone, Debug)]
enum Step {
    Append(u8, Box<Fact>),
    Sync,
    Reopen,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let name = (0..6_u8).prop_map(|n| match n {
        0 => "v1.Namespace default".to_owned(),
        n => format!("v1.ConfigMap default/c{n}"),
    });
    let fact = prop_oneof![
        6 => (name.clone(), any::<u64>()).prop_map(|(name, version)| apply(&name, version)),
        2 => name.prop_map(|name| delete(&name)),
        1 => (0..3_u8, any::<bool>()).prop_map(|(node, there)| {
            Fact::Node(format!("n{node}").into(), there.then(|| "{}".into()))
        }),
        1 => (0..4_u8, any::<bool>()).prop_map(|(name, gone)| {
            let mut pod = pod(&format!("p{name}"), None, at(0), Some("n1"));
            pod.deleted = gone.then_some(at(9));
            Fact::Pod(Box::new(pod))
        }),
    ];
    let kind = (0..2_u8).prop_map(|n| if n == 0 { "v1.Pod" } else { "v1.ConfigMap" });
    let fact = prop_oneof![
        8 => fact,
        1 => (kind.clone(), 0..9_u8).prop_map(|(kind, version)| watched(kind, &version.to_string())),
        1 => kind.clone().prop_map(|kind| Fact::Lost(kind.parse().unwrap())),
        1 => kind.prop_map(|kind| {
            Fact::Gap(Gap { from: at(50), to: at(60), kind: Some(kind.parse().unwrap()), reason: String::new() })
        }),
    ];
    let step = prop_oneof![
        20 => (0..3_u8, fact).prop_map(|(later, fact)| Step::Append(later, Box::new(fact))),
        2 => Just(Step::Sync),
        1 => Just(Step::Reopen),
    ];
    prop::collection::vec(step, 1..120)
}

/// The records of an export, as the list says: the state before `start` by name, and what came in the window.
fn expected(history: &[Entry], start: SimTime, end: SimTime) -> Vec<String> {
    let mut state: BTreeSet<(bool, ObjectRef)> = BTreeSet::new();
    let mut lines = Vec::new();
    for entry in history {
        let before = entry.at < start;
        match &entry.fact {
            Fact::Applied(applied) if before => {
                state.insert((applied.object.key.namespace.is_some(), applied.object.clone()));
            }
            Fact::Deleted(deleted) if before => {
                state.remove(&(deleted.object.key.namespace.is_some(), deleted.object.clone()));
            }
            Fact::Applied(applied) if entry.at < end => lines.push(format!("{} apply {}", entry.at, applied.object)),
            Fact::Deleted(deleted) if entry.at < end => lines.push(format!("{} delete {}", entry.at, deleted.object)),
            _ => {}
        }
    }
    let state = state.into_iter().map(|(_, object)| format!("{start} apply {object}"));
    state.chain(lines).collect()
}

/// Does it delete what is not there?
fn is_idle(fact: &Fact, there: &State) -> bool {
    matches!(fact, Fact::Deleted(deleted) if there.object(&deleted.object).is_none())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn a_log_is_the_list_of_what_was_appended(steps in steps(), window in (0..200_i64, 1..200_i64)) {
        let folder = tempfile::tempdir().unwrap();
        let options = Options { segment_bytes: 800, ..Options::default() };
        let (mut log, _) = Log::open(folder.path(), options).unwrap();
        let (mut history, mut now) = (Vec::new(), 0);
        // A deletion of what is not there is no event, as the tracer makes them.
        let mut there = State::default();
        for step in steps {
            match step {
                Step::Append(_, fact) if is_idle(&fact, &there) => {}
                Step::Append(later, fact) => {
                    let fact = *fact;
                    now += i64::from(later);
                    there.apply(at(now), fact.clone());
                    let seq = log.append(at(now), fact.clone()).unwrap();
                    history.push(Entry { at: at(now), seq, fact });
                }
                Step::Sync => log.sync().unwrap(),
                Step::Reopen => {
                    drop(log);
                    log = Log::open(folder.path(), options).unwrap().0;
                }
            }
        }
        log.sync().unwrap();
        prop_assert_eq!(log.state(), &there);
        prop_assert_eq!(&entries(&log.reader()), &history);
        let mut followed = State::default();
        for item in log.reader().items() {
            match item {
                Item::Entry(entry) => followed.apply(entry.at, entry.fact),
                other => prop_assert!(false, "nothing was lost: {:?}", other),
            }
        }
        prop_assert_eq!(&followed, &there);

        let Some(first) = history.first() else { return Ok(()) };
        let start = at(window.0).max(first.at);
        let query = Query::window(start, start + sk_core::SimDuration::from_secs(window.1));
        let mut bytes = Vec::new();
        log.reader().export(&query, Format::Native, &mut bytes).unwrap();
        let told = facts::story(&trace::from_bytes("export", bytes).unwrap());
        let told: Vec<_> = told.into_iter().filter(|line| !line.ends_with("(nothing)")).collect();
        prop_assert_eq!(told, expected(&history, query.start, query.end));
    }
}
