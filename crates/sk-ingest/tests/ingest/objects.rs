//! Objects in the ledger: what is news, who belongs to whom, what a list leaves behind.

use serde_json::{Value, json};
use sk_core::{Gvk, SimTime};
use sk_ingest::{LookupResult, OwnerLookup, Role};
use sk_store::log::{Fact, State};
use sk_testkit::objects::{Object, deployment, object, pod, replica_set};

use crate::recording::{CONFIG_MAP, DEPLOYMENT, NODE, POD, REPLICA_SET, Recording, at, body, served, sieve, words};

const TRACKED: &str = "{trackedObjects: {apps/v1.Deployment: {}, v1.ConfigMap: {}}}";
const THING: Gvk = Gvk::new_static("x.io", "v1", "Thing");

fn config_map(name: &str, value: &str) -> Object {
    object(json!({"metadata": {"name": name, "namespace": "default"}, "data": {"key": value}}))
}

fn owned_by(child: &Value, owner: &Value, api_version: &str, kind: &str) -> Value {
    let mut child = child.clone();
    child["metadata"]["ownerReferences"] = json!([{"apiVersion": api_version, "kind": kind,
        "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"], "controller": true}]);
    child
}

fn found(sighting: Option<sk_ingest::Sighting>) -> LookupResult {
    LookupResult::Found(Box::new(sighting.unwrap()))
}

fn thing(name: &str, uid: &str) -> Value {
    served(object(json!({"metadata": {"name": name, "namespace": "default"}})), uid)
}

#[test]
fn anything_but_status_and_bookkeeping_is_a_change() {
    let mut recording = Recording::new(TRACKED);
    let first = served(deployment().name("web"), "u1");
    assert_eq!(words(&recording.applied(0, &DEPLOYMENT, &first)), ["applied Deployment default/web u1"]);
    let mut status = first.clone();
    status["status"] = json!({"replicas": 1});
    status["metadata"]["resourceVersion"] = json!("99");
    status["metadata"]["generation"] = json!(7);
    assert!(recording.applied(1, &DEPLOYMENT, &status).is_empty());
    assert_eq!(recording.ledger.stats().unchanged, 1);
    for (change, pointer) in [("label", "/metadata/labels"), ("annotation", "/metadata/annotations")] {
        let mut changed = first.clone();
        *changed.pointer_mut("/metadata").unwrap() = {
            let mut meta = first["metadata"].clone();
            meta[pointer.rsplit('/').next().unwrap()] = json!({"team": change});
            meta
        };
        assert_eq!(recording.applied(2, &DEPLOYMENT, &changed).len(), 1, "{change}");
    }
    let data = served(config_map("c", "one"), "u2");
    assert_eq!(recording.applied(3, &CONFIG_MAP, &data).len(), 1);
    assert_eq!(
        recording.applied(4, &CONFIG_MAP, &served(config_map("c", "two"), "u2")).len(),
        1,
        "though it is hidden"
    );
    assert!(recording.applied(5, &CONFIG_MAP, &served(config_map("c", "two"), "u2")).is_empty());
}

#[test]
fn a_new_deployment_is_recorded_once_though_its_controller_writes_the_revision_a_moment_later() {
    let mut recording = Recording::new(TRACKED);
    let new = served(deployment().name("web"), "u1");
    assert!(new["metadata"].get("annotations").is_none(), "it comes without annotations");
    assert_eq!(recording.applied(0, &DEPLOYMENT, &new).len(), 1);
    let mut numbered = new.clone();
    numbered["metadata"]["annotations"] = json!({"deployment.kubernetes.io/revision": "1"});
    assert!(recording.applied(1, &DEPLOYMENT, &numbered).is_empty(), "what is kept of it is the same");
    let kept = body(TRACKED, &DEPLOYMENT, &numbered);
    assert!(kept["metadata"].get("annotations").is_none(), "{kept}");
    numbered["metadata"]["annotations"]["team"] = json!("a");
    assert_eq!(recording.applied(2, &DEPLOYMENT, &numbered).len(), 1, "an annotation of somebody's own is a change");
}

#[test]
fn an_object_recreated_under_its_name_is_another_one_even_if_it_looks_the_same() {
    let mut recording = Recording::new(TRACKED);
    recording.applied(0, &CONFIG_MAP, &served(config_map("c", "x"), "u1"));
    let facts = recording.applied(1, &CONFIG_MAP, &served(config_map("c", "x"), "u2"));
    assert_eq!(words(&facts), ["deleted ConfigMap default/c u1", "applied ConfigMap default/c u2"]);
    assert!(recording.deleted(2, &CONFIG_MAP, &served(config_map("c", "x"), "u1")).is_empty(), "it is gone already");
    let facts = recording.deleted(2, &CONFIG_MAP, &served(config_map("c", "x"), "u2"));
    assert_eq!(words(&facts), ["deleted ConfigMap default/c u2"]);
}

#[test]
fn a_list_ends_what_it_does_not_bring_of_its_own_kind_only() {
    let mut recording = Recording::new(TRACKED);
    let (a, b) = (served(config_map("a", "x"), "u1"), served(config_map("b", "x"), "u2"));
    recording.relisted(0, &CONFIG_MAP, &[&a, &b], None);
    recording.relisted(0, &DEPLOYMENT, &[&served(deployment().name("a"), "u3")], None);
    recording.relisted(0, &NODE, &[&served(object(json!({"metadata": {"name": "n"}})), "u4")], None);
    let facts = recording.relisted(60, &CONFIG_MAP, &[&b], Some(30));
    assert_eq!(words(&facts), ["gap ConfigMap", "deleted ConfigMap default/a u1"]);
    let Fact::Gap(gap) = &facts[0] else { panic!("{facts:?}") };
    assert_eq!((gap.from, gap.to), (at(30), at(60)));
    assert_eq!(words(&recording.relisted(61, &NODE, &[], None)), ["no node n"]);
    let stats = recording.ledger.stats();
    assert_eq!((stats.objects, stats.nodes), (2, 0));
}

#[test]
fn a_link_is_told_once_and_when_it_is_gone() {
    let mut recording = Recording::new(TRACKED);
    let owner = served(deployment().name("web"), "u1");
    let link = owned_by(&served(replica_set().name("web-1"), "u2"), &owner, "apps/v1", "Deployment");
    recording.applied(0, &DEPLOYMENT, &owner);
    let facts = recording.applied(1, &REPLICA_SET, &link);
    assert_eq!(words(&facts), ["link ReplicaSet default/web-1 u2"]);
    let Fact::Link(told) = &facts[0] else { panic!("{facts:?}") };
    assert_eq!(told.owners[0].uid, "u1");
    assert!(recording.applied(2, &REPLICA_SET, &link).is_empty());
    assert_eq!(words(&recording.deleted(3, &REPLICA_SET, &link)), ["unlinked u2"]);
}

#[test]
fn an_object_that_is_skipped_because_it_is_owned_still_links() {
    let mut recording = Recording::new("{trackedObjects: {apps/v1.ReplicaSet: {skipOwned: true}}}");
    let bare = served(replica_set().name("bare"), "u1");
    assert_eq!(words(&recording.applied(0, &REPLICA_SET, &bare)), ["applied ReplicaSet default/bare u1"]);
    let owner = served(deployment().name("web"), "u2");
    let adopted = owned_by(&bare, &owner, "apps/v1", "Deployment");
    let facts = recording.applied(1, &REPLICA_SET, &adopted);
    assert_eq!(words(&facts), ["deleted ReplicaSet default/bare u1", "link ReplicaSet default/bare u1"]);
}

#[test]
fn an_owner_that_nobody_watches_is_asked_for_once_and_its_owners_too() {
    let mut recording = Recording::new(TRACKED);
    let thing = served(object(json!({"metadata": {"name": "thing", "namespace": "default"}})), "t1");
    let above = served(object(json!({"metadata": {"name": "above", "namespace": "default"}})), "t0");
    let child = owned_by(&served(deployment().name("web"), "u1"), &thing, "x.io/v1", "Thing");
    recording.applied(0, &DEPLOYMENT, &child);
    recording.applied(1, &CONFIG_MAP, &owned_by(&served(config_map("c", "x"), "u2"), &thing, "x.io/v1", "Thing"));
    let lookups = recording.ledger.missing_owners(at(1));
    let asked = OwnerLookup { kind: THING, namespace: Some("default".into()), name: "thing".into(), uid: "t1".into() };
    assert_eq!(lookups, std::slice::from_ref(&asked));
    let answer = sieve(&recording.rules, &THING, Role::Link, &owned_by(&thing, &above, "x.io/v1", "Thing"));
    let mut facts = Vec::new();
    recording.ledger.lookup_ended(at(2), &asked, found(answer), &mut facts);
    assert_eq!(words(&facts), ["link Thing default/thing t1"]);
    let lookups = recording.ledger.missing_owners(at(2));
    assert_eq!(lookups[0].uid, "t0");
    facts.clear();
    recording.ledger.lookup_ended(at(3), &lookups[0], LookupResult::Absent, &mut facts);
    assert!(facts.is_empty(), "nobody knows; the chain ends there");
    recording.applied(4, &DEPLOYMENT, &owned_by(&served(deployment().name("more"), "u3"), &thing, "x.io/v1", "Thing"));
    assert!(recording.ledger.missing_owners(at(9_999)).is_empty(), "the answer is remembered");
}

#[test]
fn an_answer_about_somebody_else_of_that_name_is_no_answer() {
    let mut recording = Recording::new(TRACKED);
    let thing = served(object(json!({"metadata": {"name": "thing", "namespace": "default"}})), "t1");
    recording.applied(0, &DEPLOYMENT, &owned_by(&served(deployment(), "u1"), &thing, "x.io/v1", "Thing"));
    let lookups = recording.ledger.missing_owners(at(0));
    let other = served(object(json!({"metadata": {"name": "thing", "namespace": "default"}})), "t2");
    let mut facts = Vec::new();
    let answer = sieve(&recording.rules, &THING, Role::Link, &other);
    recording.ledger.lookup_ended(at(1), &lookups[0], found(answer), &mut facts);
    assert!(facts.is_empty());
}

#[test]
fn a_lookup_that_failed_is_asked_again_and_its_answer_still_links() {
    let mut recording = Recording::new(TRACKED);
    let owner = thing("thing", "t1");
    recording.applied(0, &DEPLOYMENT, &owned_by(&served(deployment(), "u1"), &owner, "x.io/v1", "Thing"));
    let lookups = recording.ledger.missing_owners(at(0));
    let mut facts = Vec::new();
    recording.ledger.lookup_ended(at(1), &lookups[0], LookupResult::Failed, &mut facts);
    assert!(facts.is_empty() && recording.ledger.missing_owners(at(2)).is_empty(), "not at once");
    assert_eq!(recording.ledger.stats().failed_lookups, 1);
    let again = recording.ledger.missing_owners(at(60));
    assert_eq!(again, lookups, "the API server may be back");
    let answer = found(sieve(&recording.rules, &THING, Role::Link, &owner));
    recording.ledger.lookup_ended(at(61), &again[0], answer, &mut facts);
    assert_eq!(words(&facts), ["link Thing default/thing t1"]);
    let stats = recording.ledger.stats();
    assert_eq!((stats.failed_lookups, stats.open_lookups, stats.known_owners), (0, 0, 1));
}

#[test]
fn a_lookup_that_failed_is_not_asked_again_when_the_child_is_gone() {
    let mut recording = Recording::new(TRACKED);
    let child = owned_by(&served(deployment(), "u1"), &thing("thing", "t1"), "x.io/v1", "Thing");
    recording.applied(0, &DEPLOYMENT, &child);
    let lookups = recording.ledger.missing_owners(at(0));
    recording.ledger.lookup_ended(at(1), &lookups[0], LookupResult::Failed, &mut Vec::new());
    recording.deleted(2, &DEPLOYMENT, &child);
    assert!(recording.ledger.missing_owners(at(9_999)).is_empty());
}

#[test]
fn an_owner_that_was_not_answered_for_before_a_restart_is_asked_for_after_it() {
    let mut before = Recording::new(TRACKED);
    let child = owned_by(&served(deployment(), "u1"), &thing("thing", "t1"), "x.io/v1", "Thing");
    let mut state = State::default();
    before.applied(0, &DEPLOYMENT, &child).into_iter().for_each(|fact| state.apply(SimTime::EPOCH, fact));
    let mut after = Recording::new(TRACKED);
    after.ledger.restore(&state);
    assert_eq!(after.ledger.missing_owners(at(1)), before.ledger.missing_owners(at(1)));
}

/// More than may be remembered of owners without living children.
const MANY: usize = 16_384 + 10;

#[test]
fn an_owner_is_linked_for_as_long_as_its_children_live_however_many_there_are() {
    let mut recording = Recording::new(TRACKED);
    let mut state = State::default();
    let mut facts = Vec::new();
    for number in 0..MANY {
        let owner = thing(&format!("thing-{number}"), &format!("t{number}"));
        let child = served(config_map(&format!("c-{number}"), "x"), &format!("u{number}"));
        facts.extend(recording.applied(0, &CONFIG_MAP, &owned_by(&child, &owner, "x.io/v1", "Thing")));
        let lookups = recording.ledger.missing_owners(at(0));
        let answer = found(sieve(&recording.rules, &THING, Role::Link, &owner));
        recording.ledger.lookup_ended(at(0), &lookups[0], answer, &mut facts);
    }
    assert!(!facts.iter().any(|fact| matches!(fact, Fact::Unlinked(_))), "all their children live");
    facts.drain(..).for_each(|fact| state.apply(SimTime::EPOCH, fact));
    assert_eq!(state.links().len(), MANY);
    let mut after = Recording::new(TRACKED);
    after.ledger.restore(&state);
    for mut recording in [recording, after] {
        recording.ledger.relist_begins(&CONFIG_MAP);
        recording.ledger.relist_ended(at(1), &CONFIG_MAP, None, &mut facts);
        let unlinked = facts.drain(..).filter(|fact| matches!(fact, Fact::Unlinked(_))).count();
        assert_eq!(
            (unlinked, recording.ledger.stats().known_owners),
            (10, MANY - 10),
            "the rest is remembered for others"
        );
    }
}

#[test]
fn after_a_restart_a_list_is_compared_with_what_the_log_knew() {
    let mut before = Recording::new(TRACKED);
    let (a, b) = (served(config_map("a", "x"), "u1"), served(config_map("b", "x"), "u2"));
    let web = served(deployment().name("web"), "u3");
    let link = owned_by(&served(replica_set().name("web-1"), "u4"), &web, "apps/v1", "Deployment");
    let one = owned_by(&served(pod().name("one"), "p1"), &link, "apps/v1", "ReplicaSet");
    let node = served(object(json!({"metadata": {"name": "n"}})), "u5");
    let mut state = State::default();
    for (kind, object) in
        [(&CONFIG_MAP, &a), (&CONFIG_MAP, &b), (&DEPLOYMENT, &web), (&REPLICA_SET, &link), (&POD, &one), (&NODE, &node)]
    {
        before.applied(0, kind, object).into_iter().for_each(|fact| state.apply(sk_core::SimTime::EPOCH, fact));
    }
    let mut after = Recording::new(TRACKED);
    after.ledger.restore(&state);
    let (known, anew) = (before.ledger.stats(), after.ledger.stats());
    assert_eq!(
        (anew.objects, anew.links, anew.pods, anew.nodes),
        (known.objects, known.links, known.pods, known.nodes)
    );
    for (kind, object) in [(&DEPLOYMENT, &web), (&REPLICA_SET, &link), (&POD, &one), (&NODE, &node)] {
        assert!(after.applied(60, kind, object).is_empty(), "{kind}: as the log knew it");
    }
    assert_eq!(words(&after.relisted(61, &CONFIG_MAP, &[&b], None)), ["deleted ConfigMap default/a u1"]);
    assert_eq!(words(&after.relisted(62, &POD, &[], None)), ["gone default/one p1"]);
}
