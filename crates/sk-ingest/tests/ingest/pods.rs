//! Pods in the ledger: whose they are, which template they were made from, how long they lived.

use serde_json::{Value, json};
use sk_core::{SimTime, TemplateId};
use sk_ingest::Trouble;
use sk_store::log::{Fact, PodFacts, State};
use sk_testkit::objects::{Object, deployment, object, pod, replica_set};

use crate::recording::{DEPLOYMENT, POD, REPLICA_SET, Recording, at, body, pod_facts, served, words};

const TRACKED: &str = "{trackedObjects: {apps/v1.Deployment: {trackLifecycle: true}}}";

fn owned(child: Object, child_uid: &str, owner: &Value) -> Value {
    let mut child = served(child, child_uid);
    child["metadata"]["ownerReferences"] = json!([{"apiVersion": owner["apiVersion"], "kind": owner["kind"],
        "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"], "controller": true}]);
    child
}

/// A Deployment of one revision, its ReplicaSet and a pod of it, as the server has them.
fn revision(number: u32) -> (Value, Value, Value) {
    let image = format!("example/web:{number}");
    let deployment = deployment().name("web").image(&image).command(&["serve", "--token=secret"]);
    let deployment = served(deployment, "d");
    let set = owned(replica_set().name(&format!("web-{number}")).image(&image), &format!("rs{number}"), &deployment);
    let pod = pod().name(&format!("web-{number}-x")).label("app", "web").image(&image);
    let pod = owned(pod.command(&["serve", "--token=secret"]), &format!("p{number}"), &set);
    (deployment, set, pod)
}

/// The identity of the template as a replay computes it from the exported object.
fn identity(yaml: &str, deployment: &Value) -> TemplateId {
    TemplateId::all_in(&body(yaml, &DEPLOYMENT, deployment), &["/spec/template".parse().unwrap()]).remove(0)
}

fn container(state: &str, fields: &Value) -> Value {
    json!([{"name": "main", "state": {state: fields}}])
}

fn stamp(second: i64) -> String {
    at(second).to_rfc3339_secs()
}

fn running(pod: &Value, start: i64) -> Value {
    let mut pod = pod.clone();
    pod["spec"]["nodeName"] = json!("node-1");
    pod["status"] = json!({"phase": "Running", "containerStatuses": container("running", &json!({"startedAt": stamp(start)})),
        "conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": stamp(start - 1)}]});
    pod
}

#[test]
fn a_pod_is_attributed_to_its_recorded_ancestor_and_the_template_it_was_made_from() {
    for yaml in [
        TRACKED,
        "{trackedObjects: {apps/v1.Deployment: {trackLifecycle: true}}, privacy: full}",
        "{trackedObjects: {apps/v1.Deployment: {trackLifecycle: true}}, keep: [/spec/template/spec/containers/*/command]}",
    ] {
        let mut recording = Recording::new(yaml);
        let (deployment, set, pod) = revision(1);
        recording.applied(0, &DEPLOYMENT, &deployment);
        recording.applied(1, &REPLICA_SET, &set);
        let facts = recording.applied(2, &POD, &pod);
        let known = pod_facts(&facts);
        let [attribution] = known.attributions.as_slice() else { panic!("{known:?}") };
        assert_eq!((attribution.owner.to_string().as_str(), attribution.uid.as_str()), ("Deployment default/web", "d"));
        assert_eq!(attribution.template, Some(identity(yaml, &deployment)), "{yaml}");
        assert!(attribution.track_lifecycle);
        assert_eq!(recording.ledger.stats().waiting_pods, 0);
    }
}

#[test]
fn pods_of_a_rolling_update_belong_to_the_revision_they_were_made_from() {
    let mut recording = Recording::new(TRACKED);
    let (old, new) = (revision(1), revision(2));
    for (second, (deployment, set, _)) in [(0, &old), (100, &new)] {
        recording.applied(second, &DEPLOYMENT, deployment);
        recording.applied(second + 1, &REPLICA_SET, set);
    }
    for (deployment, _, mut pod) in [new, old] {
        // Also one of the old revision that is created while the new one is rolled out.
        pod["metadata"]["creationTimestamp"] = json!(stamp(102));
        let facts = recording.applied(102, &POD, &pod);
        assert_eq!(pod_facts(&facts).attributions[0].template, Some(identity(TRACKED, &deployment)));
    }
}

#[test]
fn a_pod_that_admission_changed_is_known_by_its_containers() {
    let mut recording = Recording::new(TRACKED);
    let (deployment, set, mut pod) = revision(1);
    recording.applied(0, &DEPLOYMENT, &deployment);
    recording.applied(0, &REPLICA_SET, &set);
    pod["spec"]["containers"][0]["command"] = json!(["wrapped"]);
    let facts = recording.applied(1, &POD, &pod);
    assert_eq!(pod_facts(&facts).attributions[0].template, Some(identity(TRACKED, &deployment)));
    pod["spec"]["containers"][0]["image"] = json!("example/other:1");
    pod["metadata"]["uid"] = json!("p9");
    let facts = recording.applied(2, &POD, &pod);
    assert_eq!(pod_facts(&facts).attributions[0].template, None, "nothing to know it by");
}

#[test]
fn a_pod_that_comes_before_its_owners_is_attributed_when_they_come() {
    let (deployment, set, pod) = revision(1);
    for owners_first in
        [[(&REPLICA_SET, &set), (&DEPLOYMENT, &deployment)], [(&DEPLOYMENT, &deployment), (&REPLICA_SET, &set)]]
    {
        let mut recording = Recording::new(TRACKED);
        let facts = recording.applied(0, &POD, &pod);
        assert!(pod_facts(&facts).attributions.is_empty(), "recorded at once all the same");
        assert_eq!(recording.ledger.stats().waiting_pods, 1);
        let facts: Vec<Fact> =
            owners_first.iter().flat_map(|(kind, owner)| recording.applied(1, kind, owner)).collect();
        assert_eq!(pod_facts(&facts).attributions[0].template, Some(identity(TRACKED, &deployment)));
        assert_eq!(recording.ledger.stats().waiting_pods, 0);
    }
}

#[test]
fn a_pod_that_comes_before_its_owners_new_revision_is_attributed_to_that() {
    let mut recording = Recording::new(TRACKED);
    let (old, new) = (revision(1), revision(2));
    recording.applied(0, &DEPLOYMENT, &old.0);
    recording.applied(1, &REPLICA_SET, &new.1);
    let facts = recording.applied(1, &POD, &new.2);
    assert_eq!(pod_facts(&facts).attributions[0].template, None);
    let facts = recording.applied(2, &DEPLOYMENT, &new.0);
    assert_eq!(pod_facts(&facts).attributions[0].template, Some(identity(TRACKED, &new.0)));
}

#[test]
fn a_pod_waits_for_its_owners_only_so_long() {
    let mut recording = Recording::new(TRACKED);
    let (_, _, pod) = revision(1);
    recording.applied(0, &POD, &pod);
    recording.applied(121, &POD, &pod);
    let stats = recording.ledger.stats();
    assert_eq!((stats.waiting_pods, stats.unattributed_pods, stats.given_up_pods, stats.pods), (0, 1, 1, 1));
    let warnings = recording.ledger.take_warnings();
    assert_eq!(warnings[0].trouble, Trouble::OwnerUnseen);
    assert!(warnings[0].to_string().starts_with("Pod default/web-1-x: "), "{}", warnings[0]);
    assert!(recording.ledger.missing_owners(at(9_999)).is_empty(), "ReplicaSets are watched, never asked for");
}

#[test]
fn a_pod_whose_owners_come_too_late_is_theirs_all_the_same_and_its_next_look_tells_the_template() {
    let mut recording = Recording::new(TRACKED);
    let (deployment, set, pod) = revision(1);
    recording.applied(0, &POD, &pod);
    recording.applied(500, &REPLICA_SET, &set);
    let facts = recording.applied(501, &DEPLOYMENT, &deployment);
    let attribution = &pod_facts(&facts).attributions[0];
    assert_eq!((attribution.uid.as_str(), &attribution.template), ("d", &None));
    assert_eq!(recording.ledger.stats().pods_to_look_at, 1);
    let facts = recording.applied(502, &POD, &pod);
    assert_eq!(pod_facts(&facts).attributions[0].template, Some(identity(TRACKED, &deployment)));
    assert!(recording.applied(503, &POD, &pod).is_empty());
    let stats = recording.ledger.stats();
    assert_eq!((stats.pods_to_look_at, stats.unattributed_pods, stats.waiting_pods), (0, 0, 0));
}

#[test]
fn the_hash_of_a_pod_tells_nothing_that_is_hidden_unless_everything_is_kept() {
    let (deployment, set, pod) = revision(1);
    let bare = sk_core::StableHash::of_pod_spec(&pod["spec"]);
    let hash = |yaml: &str, key: u8| {
        let mut recording = Recording::with_key(yaml, [key; 16]);
        recording.applied(0, &DEPLOYMENT, &deployment);
        recording.applied(1, &REPLICA_SET, &set);
        pod_facts(&recording.applied(2, &POD, &pod)).pod_hash.expect("its life is wanted")
    };
    let kept = "{trackedObjects: {apps/v1.Deployment: {trackLifecycle: true}}, privacy: full}";
    assert_eq!(hash(kept, 1), bare, "as SimKube 2 has it");
    assert_ne!(hash(TRACKED, 1), bare, "whoever guesses the token cannot find out that the guess is right");
    assert_ne!(hash(TRACKED, 1), hash(TRACKED, 2), "the cluster's key is in it");
    assert_eq!(hash(TRACKED, 1), hash(TRACKED, 1), "pods of one template stay one group");
}

#[test]
fn the_hash_of_what_a_pod_says_is_only_kept_where_lives_are_wanted() {
    let (deployment, set, pod) = revision(1);
    for (yaml, is_kept) in [(TRACKED, true), ("{trackedObjects: {apps/v1.Deployment: {}}}", false)] {
        let mut recording = Recording::new(yaml);
        let facts = recording.applied(0, &POD, &pod);
        assert_eq!(pod_facts(&facts).pod_hash, None, "nobody is known to want it");
        recording.applied(0, &REPLICA_SET, &set);
        let facts = recording.applied(0, &DEPLOYMENT, &deployment);
        assert_eq!(pod_facts(&facts).pod_hash.is_some(), is_kept);
    }
}

#[test]
fn why_a_pod_waits_is_kept_in_the_default_schedulers_words_and_hidden_in_anybody_elses() {
    let full = "{trackedObjects: {v1.Pod: {}}, privacy: full}";
    let said = "0/1 nodes are available: 1 Insufficient cpu.";
    let secret = "tenant acme-corp has not paid";
    for (yaml, message, is_kept) in [(TRACKED, said, true), (TRACKED, secret, false), (full, secret, true)] {
        let mut pod = served(pod(), "p");
        pod["status"] = json!({"conditions": [{"type": "PodScheduled", "status": "False",
            "reason": "Unschedulable", "message": message, "lastTransitionTime": stamp(0)}]});
        let facts = Recording::new(yaml).applied(1, &POD, &pod);
        let wait = &pod_facts(&facts).waits[0];
        assert_eq!((wait.reason.as_str(), wait.message == message), ("Unschedulable", is_kept), "{wait:?}");
        assert_eq!(wait.message.starts_with("sk:"), !is_kept);
    }
}

const MANY_PODS: usize = 10_000;
const PODS_OF_EACH: usize = 100;

/// [`MANY_PODS`] running pods, each on a node and with a token volume and an address of its own, with their owners.
struct Crowd {
    deployments: Vec<Value>,
    sets: Vec<Value>,
    pods: Vec<Value>,
}

impl Crowd {
    fn new() -> Self {
        let mut crowd = Self { deployments: Vec::new(), sets: Vec::new(), pods: Vec::new() };
        for number in 0..MANY_PODS / PODS_OF_EACH {
            let image = format!("example/web:{number}");
            let owner = served(deployment().name(&format!("web-{number}")).image(&image), &format!("d{number}"));
            let set = replica_set().name(&format!("web-{number}-a")).image(&image);
            crowd.sets.push(owned(set, &format!("rs{number}"), &owner));
            crowd.deployments.push(owner);
            for index in 0..PODS_OF_EACH {
                let pod = pod().name(&format!("web-{number}-a-{index}")).label("app", &format!("web-{number}"));
                let mut pod = owned(pod.image(&image), &format!("p{number}-{index}"), &crowd.sets[number]);
                pod["metadata"]["annotations"] =
                    json!({"cni.projectcalico.org/podIP": format!("10.0.{number}.{index}")});
                pod["metadata"]["labels"] = crowd.deployments[number]["spec"]["template"]["metadata"]["labels"].clone();
                let token = format!("kube-api-access-{index:05}");
                pod["spec"]["volumes"] = json!([{"name": token, "projected": {"sources": []}}]);
                pod["spec"]["containers"][0]["volumeMounts"] = json!([{"name": token, "mountPath": "/token"}]);
                pod["spec"]["nodeName"] = json!(format!("node-{index}"));
                crowd.pods.push(pod);
            }
        }
        crowd
    }

    fn listed(recording: &mut Recording, second: i64, kind: &sk_core::Gvk, objects: &[Value]) -> Vec<Fact> {
        recording.relisted(second, kind, &objects.iter().collect::<Vec<_>>(), None)
    }
}

/// How many pods have a template, and how many only an owner.
fn attributed(state: &State) -> (usize, usize) {
    let pods: Vec<_> = state.pods().filter(|pod| !pod.attributions.is_empty()).collect();
    let with_template = pods.iter().filter(|pod| pod.attributions.iter().all(|one| one.template.is_some())).count();
    (with_template, pods.len() - with_template)
}

fn take(state: &mut State, facts: Vec<Fact>) {
    facts.into_iter().for_each(|fact| state.apply(SimTime::EPOCH, fact));
}

#[test]
fn ten_thousand_pods_listed_before_their_owners_are_all_attributed() {
    let crowd = Crowd::new();
    let (mut recording, mut state) = (Recording::new(TRACKED), State::default());
    take(&mut state, Crowd::listed(&mut recording, 0, &POD, &crowd.pods));
    assert_eq!((attributed(&state), recording.ledger.stats().waiting_pods), ((0, 0), MANY_PODS));
    take(&mut state, Crowd::listed(&mut recording, 1, &REPLICA_SET, &crowd.sets));
    take(&mut state, Crowd::listed(&mut recording, 2, &DEPLOYMENT, &crowd.deployments));
    assert_eq!(attributed(&state), (MANY_PODS, 0));
    let stats = recording.ledger.stats();
    assert_eq!((stats.waiting_pods, stats.unattributed_pods, stats.given_up_pods), (0, 0, 0));
}

#[test]
fn ten_thousand_pods_listed_before_a_restart_are_attributed_when_their_owners_come_after_it() {
    let crowd = Crowd::new();
    let (mut before, mut state) = (Recording::new(TRACKED), State::default());
    take(&mut state, Crowd::listed(&mut before, 0, &POD, &crowd.pods));
    let mut after = Recording::new(TRACKED);
    after.ledger.restore(&state);
    assert_eq!(after.ledger.stats().unattributed_pods, MANY_PODS);
    take(&mut state, Crowd::listed(&mut after, 60, &REPLICA_SET, &crowd.sets));
    take(&mut state, Crowd::listed(&mut after, 61, &DEPLOYMENT, &crowd.deployments));
    assert_eq!(attributed(&state), (0, MANY_PODS), "whose they are is known without another look");
    assert_eq!(after.ledger.stats().pods_to_look_at, MANY_PODS);
    let asked: Vec<_> = std::iter::repeat_with(|| after.ledger.pods_to_look_at(1_000)).take(10).flatten().collect();
    assert_eq!(asked.into_iter().collect::<std::collections::BTreeSet<_>>().len(), MANY_PODS, "each has its turn");
    for pod in &crowd.pods {
        let mut facts = Vec::new();
        let sighting = crate::recording::sieve(&after.rules, &POD, sk_ingest::Role::Pod, pod).unwrap();
        after.ledger.looked_at(at(62), &sighting, &mut facts);
        take(&mut state, facts);
    }
    assert_eq!(attributed(&state), (MANY_PODS, 0));
    assert!(state.pods().all(|pod| pod.pod_hash.is_some()), "their lives are wanted");
    assert_eq!(after.ledger.stats().unattributed_pods, 0);
}

#[test]
fn a_look_out_of_order_brings_nobody_back_and_moves_no_life() {
    let mut recording = Recording::new(TRACKED);
    let (_, _, pod) = revision(1);
    let look = |recording: &mut Recording, pod: &Value| {
        let mut facts = Vec::new();
        let sighting = crate::recording::sieve(&recording.rules, &POD, sk_ingest::Role::Pod, pod).unwrap();
        recording.ledger.looked_at(at(9), &sighting, &mut facts);
        facts
    };
    assert!(look(&mut recording, &pod).is_empty() && recording.ledger.stats().pods == 0);
    recording.applied(0, &POD, &pod);
    assert!(look(&mut recording, &running(&pod, 5)).is_empty());
}

#[test]
fn every_reference_of_a_pod_is_followed_nearest_first() {
    let mut recording = Recording::new("{trackedObjects: {apps/v1.Deployment: {}, x.io/v1.Thing: {}, v1.Pod: {}}}");
    let thing = served(
        object(json!({"apiVersion": "x.io/v1", "kind": "Thing", "metadata": {"name": "t", "namespace": "default"}})),
        "t",
    );
    let (deployment, set, mut pod) = revision(1);
    let owned_deployment = {
        let mut owned = deployment.clone();
        owned["metadata"]["ownerReferences"] =
            json!([{"apiVersion": "x.io/v1", "kind": "Thing", "name": "t", "uid": "t"}]);
        owned
    };
    pod["metadata"]["ownerReferences"]
        .as_array_mut()
        .unwrap()
        .push(json!({"apiVersion": "x.io/v1", "kind": "Thing", "name": "t", "uid": "t"}));
    recording.applied(0, &"x.io/v1.Thing".parse().unwrap(), &thing);
    recording.applied(0, &DEPLOYMENT, &owned_deployment);
    recording.applied(0, &REPLICA_SET, &set);
    let facts = recording.applied(1, &POD, &pod);
    let owners: Vec<_> = pod_facts(&facts).attributions.iter().map(|one| one.owner.gvk.kind.as_str()).collect();
    assert_eq!(owners, ["Pod", "Thing", "Deployment"]);
    assert_eq!(words(&facts), ["applied Pod default/web-1-x p1", "pod default/web-1-x p1"]);
    let own = &pod_facts(&facts).attributions[0];
    assert_eq!(own.template.as_ref().map(|id| id.path.as_str()), Some(""));
}

#[test]
fn owners_in_a_circle_are_followed_once() {
    let mut recording = Recording::new(TRACKED);
    let a = owned(
        replica_set().name("a"),
        "a",
        &json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "b", "uid": "b"}}),
    );
    let b = owned(replica_set().name("b"), "b", &a);
    recording.applied(0, &REPLICA_SET, &a);
    recording.applied(0, &REPLICA_SET, &b);
    let facts = recording.applied(1, &POD, &owned(pod(), "p", &a));
    assert!(pod_facts(&facts).attributions.is_empty());
}

/// The one fact that a step of a pod's life makes.
fn step(recording: &mut Recording, second: i64, pod: &Value) -> PodFacts {
    let facts = recording.applied(second, &POD, pod);
    assert_eq!(facts.len(), 1, "{facts:?}");
    pod_facts(&facts).clone()
}

#[test]
fn what_a_pod_failed_with_is_kept_unless_somebody_deleted_it() {
    let mut recording = Recording::new(TRACKED);
    let new = served(pod(), "p");
    step(&mut recording, 50, &new);
    let mut ended = running(&new, 80);
    ended["status"]["phase"] = json!("Failed");
    let terminated = json!({"startedAt": stamp(80), "finishedAt": stamp(95), "exitCode": 3});
    ended["status"]["containerStatuses"] = container("terminated", &terminated);
    assert_eq!(step(&mut recording, 100, &ended).exit_code, Some(3));
    let gone = recording.deleted(110, &POD, &ended);
    assert_eq!(pod_facts(&gone).exit_code, Some(3));

    let killed = served(pod(), "q");
    step(&mut recording, 120, &killed);
    let mut ended = running(&killed, 130);
    ended["metadata"]["deletionTimestamp"] = json!(stamp(140));
    ended["status"]["phase"] = json!("Failed");
    ended["status"]["containerStatuses"] = container("terminated", &terminated);
    assert_eq!(step(&mut recording, 150, &ended).exit_code, None, "a pod that is told to stop has not failed");
}

#[test]
fn a_fact_follows_each_step_of_a_pods_life_and_nothing_else() {
    let mut recording = Recording::new(TRACKED);
    let new = served(pod().requests("500m", "1Gi"), "p");
    let seen = step(&mut recording, 50, &new);
    assert_eq!((seen.created, seen.scheduled, seen.node), (at(0), None, None));
    assert_eq!(seen.requests.iter().map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>(), ["cpu=500m", "memory=1Gi"]);

    let mut waiting = new.clone();
    let condition = |message: &str| {
        json!({"conditions": [{"type": "PodScheduled", "status": "False",
        "reason": "Unschedulable", "message": message, "lastTransitionTime": stamp(50)}]})
    };
    waiting["status"] = condition("0/1 nodes are available");
    step(&mut recording, 60, &waiting);
    assert!(recording.applied(61, &POD, &waiting).is_empty());
    waiting["status"] = condition("0/2 nodes are available");
    let seen = step(&mut recording, 70, &waiting);
    assert_eq!(seen.waits.iter().map(|wait| wait.at).collect::<Vec<_>>(), [at(50), at(70)]);

    let seen = step(&mut recording, 90, &running(&new, 80));
    assert_eq!((seen.scheduled, seen.started, seen.node.as_deref()), (Some(at(79)), Some(at(80)), Some("node-1")));
    let mut ended = running(&new, 80);
    ended["status"]["phase"] = json!("Succeeded");
    ended["status"]["containerStatuses"] =
        container("terminated", &json!({"startedAt": stamp(80), "finishedAt": stamp(95)}));
    assert_eq!(step(&mut recording, 100, &ended).finished, Some(at(95)));
    assert!(recording.applied(101, &POD, &running(&new, 80)).is_empty(), "a life does not move backward");
    assert_eq!(recording.ledger.stats().refused_lives, 1);
    assert_eq!(recording.ledger.take_warnings()[0].trouble, Trouble::LifeRefused);
    let facts = recording.deleted(110, &POD, &ended);
    assert_eq!(words(&facts), ["gone default/pod p"]);
    let gone = pod_facts(&facts);
    assert_eq!((gone.finished, gone.deleted, gone.guessed), (Some(at(95)), Some(at(110)), false));
    assert_eq!(recording.ledger.stats().pods, 0);
}

#[test]
fn a_pod_that_vanished_in_a_gap_ended_at_the_list_and_that_is_a_guess() {
    let mut recording = Recording::new(TRACKED);
    let stays = running(&served(pod().name("stays"), "p1"), 5);
    recording.applied(10, &POD, &stays);
    recording.applied(10, &POD, &running(&served(pod().name("goes"), "p2"), 5));
    let facts = recording.relisted(90, &POD, &[&stays], Some(10));
    assert_eq!(words(&facts), ["gap Pod", "gone default/goes p2"]);
    let gone = pod_facts(&facts);
    assert_eq!(
        (gone.started, gone.finished, gone.deleted, gone.guessed),
        (Some(at(5)), Some(at(90)), Some(at(90)), true)
    );
}

#[test]
fn a_pod_recreated_under_its_name_is_two_lives() {
    let mut recording = Recording::new(TRACKED);
    recording.applied(10, &POD, &running(&served(pod().name("db-0"), "p1"), 5));
    let mut again = served(pod().name("db-0"), "p2");
    again["metadata"]["creationTimestamp"] = json!(stamp(60));
    let facts = recording.applied(90, &POD, &again);
    assert_eq!(words(&facts), ["gone default/db-0 p1", "pod default/db-0 p2"]);
    let Fact::Pod(first) = &facts[0] else { panic!("{facts:?}") };
    assert!(first.guessed && first.finished.is_some());
    assert!(recording.deleted(91, &POD, &running(&served(pod().name("db-0"), "p1"), 5)).is_empty(), "told already");
    assert_eq!(recording.ledger.stats().pods, 1);
}

#[test]
fn a_pod_that_is_first_seen_when_it_is_gone_has_lived_all_the_same() {
    let mut recording = Recording::new(TRACKED);
    let mut pod = running(&served(pod(), "p"), 5);
    pod["metadata"]["deletionTimestamp"] = json!(stamp(30));
    let facts = recording.deleted(50, &POD, &pod);
    assert_eq!(words(&facts), ["gone default/pod p"]);
    assert_eq!((pod_facts(&facts).started, pod_facts(&facts).finished), (Some(at(5)), Some(at(30))));
}

#[test]
fn an_event_that_comes_at_once_is_timed_by_its_coming() {
    let mut recording = Recording::new(TRACKED);
    let micros = |millis: i64| SimTime::from_micros(at(0).as_micros() + millis * 1_000);
    let pod = served(pod(), "p");
    let sighting = crate::recording::sieve(&recording.rules, &POD, sk_ingest::Role::Pod, &pod).unwrap();
    let mut facts = Vec::new();
    recording.ledger.applied(micros(250), sighting, &mut facts);
    assert_eq!(pod_facts(&facts).created, micros(250), "Kubernetes only says which second");
}
