//! The history of a cluster in a form in which two clusters can be compared.
//!
//! A cluster generates names, uids, versions, hashes, addresses and times; they differ from run to run and mean
//! nothing. [`canonicalise`] names every object by its owner and by its ordinal among the owner's objects of that kind
//! (`default/Deployment/nginx/ReplicaSet#1/Pod#3`), scrubs the rest, and gives each object's distinct states in order.
//! Each state and each end has a [`Moment`]: when it was seen, and which change of the whole cluster it was. Pure: observations
//! in, histories out.

mod name;
mod scrub;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sk_core::Gvk;

use name::Names;
use scrub::Scrubber;

/// A watch event about an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It was there at the start, or it came.
    Added,
    /// It changed.
    Modified,
    /// It went; the object is its last state.
    Deleted,
}

/// One event of a watch.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    /// What happened.
    pub change: Change,
    /// The object, whole.
    pub object: Value,
    /// When, in milliseconds since the watch began.
    pub at_ms: u64,
}

/// When a change was seen, and which one it was. On disk `[milliseconds, number]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "(u64, usize)", into = "(u64, usize)")]
pub struct Moment {
    /// Milliseconds since the watch began.
    pub at_ms: u64,
    /// The how-manieth change of all watched objects. Versions come from one counter, so this orders the changes of all
    /// kinds, although every kind has a watch of its own.
    pub number: usize,
}

impl From<(u64, usize)> for Moment {
    fn from((at_ms, number): (u64, usize)) -> Self {
        Self { at_ms, number }
    }
}

impl From<Moment> for (u64, usize) {
    fn from(moment: Moment) -> Self {
        (moment.at_ms, moment.number)
    }
}

/// Everything that was seen of one object.
#[derive(Clone, Debug, PartialEq)]
pub struct History {
    /// Its canonical name.
    pub name: String,
    /// What it is.
    pub kind: Gvk,
    /// Its distinct states in order, scrubbed. Never empty.
    pub states: Vec<Value>,
    /// When it came to be in each of these states; empty where nobody noted it.
    pub moments: Vec<Moment>,
    /// Did it go in the end?
    pub deleted: bool,
    /// When it went.
    pub end: Option<Moment>,
    /// The Events about it, distinct and sorted.
    pub events: Vec<EventLine>,
}

impl History {
    /// The last thing seen of it.
    pub fn last_state(&self) -> &Value {
        self.states.last().expect("a history begins with the first sight of its object")
    }
}

/// An Event without what differs from run to run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct EventLine {
    /// `Normal` or `Warning`.
    pub r#type: String,
    /// The machine's word, such as `FailedScheduling`.
    pub reason: String,
    /// The sentence, with canonical names.
    pub message: String,
    /// Its source.
    pub from: String,
}

/// Turns the events of several watches into one history per object, sorted by name. Each object's own events must be
/// in order; events of different objects may be interleaved in any way.
pub fn canonicalise(observations: &[Observation]) -> Vec<History> {
    let (events, changes): (Vec<_>, Vec<_>) = observations.iter().partition(|seen| is_event(&seen.object));
    let names = Names::of(changes.iter().map(|seen| &seen.object));
    let scrubber = Scrubber::new(&names, changes.iter().map(|seen| &seen.object));
    let mut histories = BTreeMap::new();
    let numbers = numbers(&changes);
    for (seen, number) in changes.into_iter().zip(numbers) {
        let Some((name, kind)) = uid(&seen.object).and_then(|uid| names.get(uid)) else { continue };
        let history = histories.entry(name.clone()).or_insert_with(|| History {
            name: name.to_string(),
            kind: kind.clone(),
            states: Vec::new(),
            moments: Vec::new(),
            deleted: false,
            end: None,
            events: Vec::new(),
        });
        let moment = Moment { at_ms: seen.at_ms, number };
        let state = scrubber.state(&seen.object, &name.to_string());
        if history.states.last() != Some(&state) {
            history.states.push(state);
            history.moments.push(moment);
        }
        if seen.change == Change::Deleted {
            history.deleted = true;
            history.end = Some(moment);
        }
    }
    let mut lines = event_lines(&events, &scrubber);
    for (name, history) in &mut histories {
        let of_this = names.uid(name).and_then(|uid| lines.remove(uid)).unwrap_or_default();
        history.events = of_this.into_iter().collect();
    }
    histories.into_values().collect()
}

/// The number of each change in the order of versions; those without one come in the order in which they were seen.
fn numbers(changes: &[&Observation]) -> Vec<usize> {
    let version = |seen: &Observation| {
        let text = seen.object.pointer("/metadata/resourceVersion").and_then(Value::as_str);
        text.and_then(|text| text.parse::<u64>().ok()).unwrap_or(u64::MAX)
    };
    let mut order: Vec<usize> = (0..changes.len()).collect();
    order.sort_by_key(|index| (version(changes[*index]), *index));
    let mut numbers = vec![0; changes.len()];
    for (number, index) in order.into_iter().enumerate() {
        numbers[index] = number;
    }
    numbers
}

/// Events by the uid of the object that they are about.
fn event_lines(events: &[&Observation], scrubber: &Scrubber) -> BTreeMap<String, BTreeSet<EventLine>> {
    let mut lines: BTreeMap<String, BTreeSet<EventLine>> = BTreeMap::new();
    for event in events {
        let text = |pointer: &str| event.object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        // Older reporters fill `source`, newer ones `reportingComponent`, some both.
        let from = Some(text("/reportingComponent")).filter(|from| !from.is_empty());
        let line = EventLine {
            r#type: text("/type").to_owned(),
            reason: text("/reason").to_owned(),
            message: scrubber.text(text("/message")),
            from: from.unwrap_or_else(|| text("/source/component")).to_owned(),
        };
        lines.entry(text("/involvedObject/uid").to_owned()).or_default().insert(line);
    }
    lines
}

fn is_event(object: &Value) -> bool {
    object["kind"] == "Event"
}

fn uid(object: &Value) -> Option<&str> {
    object["metadata"]["uid"].as_str()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::objects::{Object, deployment, pod, replica_set};

    fn seen(change: Change, object: Object, version: u32) -> Observation {
        let object = object.set("/metadata/resourceVersion", version.to_string()).into_value();
        Observation { change, object, at_ms: u64::from(version) * 10 }
    }

    /// A Deployment with a ReplicaSet and two pods; `salt` is what a cluster makes up.
    fn story(salt: &str) -> Vec<Observation> {
        let deployment = deployment().name("web").uid(&format!("{salt}-d"));
        let hash = format!("{salt}77f");
        let set = replica_set()
            .name(&format!("web-{hash}"))
            .uid(&format!("{salt}-r"))
            .label("pod-template-hash", &hash)
            .owned_by(&deployment);
        let pods = ["x", "y"].map(|suffix| {
            pod()
                .name(&format!("web-{hash}-{suffix}{salt}"))
                .uid(&format!("{salt}-{suffix}"))
                .label("pod-template-hash", &hash)
                .set("/metadata/creationTimestamp", "2026-11-15T10:00:00Z")
                .owned_by(&set)
        });
        let [first, second] = pods;
        vec![
            seen(Change::Added, second.clone(), 12),
            seen(Change::Added, first.clone(), 11),
            seen(Change::Added, set.clone(), 10),
            seen(Change::Added, deployment.clone(), 9),
            seen(Change::Modified, first.clone().set("/status/podIP", "10.0.0.7"), 13),
            seen(Change::Modified, first.set("/status/podIP", "10.0.0.9"), 14),
            seen(Change::Modified, deployment.set("/status/message", format!("made web-{hash}")), 15),
            seen(Change::Deleted, second, 16),
        ]
    }

    #[test]
    fn two_clusters_that_did_the_same_look_the_same() {
        assert_eq!(canonicalise(&story("aaaaa")), canonicalise(&story("bbbbb")));
    }

    #[test]
    fn objects_are_named_by_owner_and_order_of_creation() {
        let histories = canonicalise(&story("aaaaa"));
        let names: Vec<_> = histories.iter().map(|history| history.name.as_str()).collect();
        let set = "default/Deployment/web/ReplicaSet#1";
        assert_eq!(
            names,
            ["default/Deployment/web".to_owned(), set.to_owned(), format!("{set}/Pod#1"), format!("{set}/Pod#2")]
        );
        assert_eq!(histories.iter().map(|history| history.deleted).collect::<Vec<_>>(), [false, false, false, true]);
        assert_eq!(histories[0].last_state()["status"]["message"], format!("made {set}"));
    }

    #[test]
    fn only_distinct_states_are_kept() {
        let histories = canonicalise(&story("aaaaa"));
        // The pod's second address is no news: addresses are scrubbed.
        assert_eq!(histories[2].states.len(), 2);
        assert_eq!(histories[2].last_state()["status"]["podIP"], "<ip>");
    }

    #[test]
    fn changes_are_numbered_by_version_whichever_watch_tells_first() {
        let histories = canonicalise(&story("aaaaa"));
        let moments =
            |index: usize| histories[index].moments.iter().map(|at| (at.at_ms, at.number)).collect::<Vec<_>>();
        // The Deployment was made first although its watch told last.
        assert_eq!((moments(0), moments(1)), (vec![(90, 0), (150, 6)], vec![(100, 1)]));
        assert_eq!(histories[3].end, Some(Moment { at_ms: 160, number: 7 }));
    }

    #[test]
    fn an_object_made_again_under_its_name_is_another_one() {
        let first = seen(Change::Added, pod().name("a").uid("u1"), 1);
        let gone = seen(Change::Deleted, pod().name("a").uid("u1"), 2);
        let again = seen(Change::Added, pod().name("a").uid("u2"), 3);
        let names: Vec<_> = canonicalise(&[first, gone, again]).into_iter().map(|history| history.name).collect();
        assert_eq!(names, ["default/Pod/a", "default/Pod/a@2"]);
    }

    #[test]
    fn events_stand_with_the_object_they_are_about() {
        let mut observations = story("aaaaa");
        let event = json!({
            "apiVersion": "v1", "kind": "Event", "metadata": {"name": "e", "uid": "e"}, "type": "Normal",
            "reason": "SuccessfulCreate", "message": "Created pod: web-aaaaa77f-xaaaaa",
            "involvedObject": {"uid": "aaaaa-r"}, "source": {"component": "replicaset-controller"},
        });
        observations.push(Observation { change: Change::Added, object: event.clone(), at_ms: 0 });
        observations.push(Observation { change: Change::Modified, object: event, at_ms: 0 });
        let histories = canonicalise(&observations);
        let [line] = &histories[1].events[..] else { panic!("one distinct event: {:?}", histories[1].events) };
        assert_eq!(line.message, "Created pod: default/Deployment/web/ReplicaSet#1/Pod#1");
        assert_eq!(line.from, "replicaset-controller");
    }
}
