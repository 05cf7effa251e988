//! The table of what follows from what. What was observed is built by naming how it differs from one whose simulation runs.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use sk_api::simulation::Simulation;

use super::*;
use crate::observed::{LeaseHolder, Left, Offers, SecretRefusal};

fn settings() -> Settings {
    Settings { allow_hooks: true, local_traces: true, ..Settings::in_namespace("simkube", "sk-driver:1") }
}

/// An observation whose driver runs, changed as a JSON merge patch of the Simulation says.
fn observed(change: &Value) -> Observed {
    let mut simulation = json!({
        "apiVersion": "simkube.io/v1", "kind": "Simulation",
        "metadata": {"name": "a", "generation": 1, "finalizers": ["simkube.io/clean-up"]},
        "spec": {"driver": {"tracePath": "/a"}},
        "status": {
            "state": "Running", "startTime": "2026-11-10T14:00:00Z", "reason": "Replaying", "observedGeneration": 1,
            "message": "0 of 1 repetitions are done", "completedRuns": 0,
        },
    });
    merge(&mut simulation, change);
    Observed {
        now: "2026-11-10T15:00:00Z".parse().unwrap(),
        simulation: serde_json::from_value::<Simulation>(simulation).unwrap(),
        turn: Turn::Mine,
        other_driver: None,
        parts: Part::ALL.into_iter().map(|part| (part, Seen::Ours)).collect(),
        driver: Driver::Running { completed: 0 },
        offers: Offers::default(),
        refused_secrets: BTreeMap::new(),
        left: Vec::new(),
        kept: false,
        recorded: false,
    }
}

fn merge(into: &mut Value, change: &Value) {
    match (into, change) {
        (Value::Object(into), Value::Object(change)) => {
            for (key, value) in change {
                merge(into.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (into, change) => *into = change.clone(),
    }
}

fn nothing_made(change: &Value) -> Observed {
    Observed { parts: BTreeMap::new(), driver: Driver::Absent, turn: Turn::Free, ..observed(change) }
}

fn done(observed: &Observed) -> Action {
    match decide(observed, &settings()) {
        Step::Do(action) => action,
        other => panic!("something is to be done, not {other:?}"),
    }
}

/// What the driver has made and is still there.
fn left(kind: &str, name: &str) -> Left {
    Left { kind: kind.to_owned(), name: name.to_owned() }
}

fn concluded(success: bool) -> Value {
    let condition = json!({
        "type": "Concluded", "status": if success { "True" } else { "False" }, "reason": "R", "message": "m",
        "lastTransitionTime": "2026-11-10T14:30:00Z",
    });
    json!({"status": {"conditions": [condition]}})
}

#[test]
fn a_new_simulation_is_claimed_before_anything_is_made() {
    let new = nothing_made(&json!({"metadata": {"finalizers": null}, "status": null}));
    assert_eq!(done(&new), Action::Claim);
    let claimed = nothing_made(&json!({"status": null}));
    assert_eq!(done(&claimed), Action::TakeTurn);
    let mut in_turn = claimed;
    in_turn.turn = Turn::Mine;
    assert_eq!(done(&in_turn), Action::Begin);
}

#[test]
fn who_waits_is_blocked_and_says_for_whom() {
    let mut waiting = nothing_made(&json!({"status": null}));
    waiting.turn = Turn::Blocked { by: "b".to_owned() };
    let Action::Report(report) = done(&waiting) else { panic!("a report") };
    assert_eq!((report.state, report.message.contains("simulation b")), (State::Blocked, true));
    // Once it is written down there is nothing more to do.
    let told = json!({"status": {
        "state": "Blocked", "reason": "Blocked", "message": report.message, "startTime": null, "completedRuns": null,
    }});
    let told = Observed { turn: waiting.turn, ..nothing_made(&told) };
    assert!(matches!(decide(&told, &settings()), Step::Wait(_)));
}

#[test]
fn nothing_begins_beside_a_driver_without_a_controller_and_what_has_begun_goes_on() {
    let other_driver = Some(LeaseHolder { holder: "demo-1".to_owned(), namespace: "default".to_owned() });
    for turn in [Turn::Free, Turn::Mine] {
        let observed = Observed { turn, other_driver: other_driver.clone(), ..nothing_made(&json!({"status": null})) };
        let Action::Report(report) = done(&observed) else { panic!("a report") };
        assert_eq!(report.state, State::Blocked);
        let words = "driver demo-1 runs on this cluster without a controller (Lease default/sk-lease); this one begins \
                     when that has ended";
        assert_eq!(report.message, words);
        let told = json!({"status": {
            "state": "Blocked", "reason": "Blocked", "message": words, "startTime": null, "completedRuns": null,
        }});
        let told = Observed { other_driver: other_driver.clone(), ..nothing_made(&told) };
        assert_eq!(decide(&told, &settings()), Step::Wait(REQUEUE_DELETION));
        // Deleted, it goes at once.
        let deleted = json!({"metadata": {"deletionTimestamp": "2026-11-10T15:00:00Z"}, "status": null});
        assert_eq!(done(&Observed { other_driver: other_driver.clone(), ..nothing_made(&deleted) }), Action::LetGo);
    }
    assert!(matches!(decide(&Observed { other_driver, ..observed(&json!({})) }, &settings()), Step::Wait(_)));
}

#[test]
fn parts_are_made_in_order_and_each_only_once() {
    let order = [Part::Root, Part::Namespace, Part::Trust, Part::Certificate, Part::Service, Part::Webhook, Part::Job];
    let mut observed = nothing_made(&json!({"status": {"completedRuns": null}}));
    observed.turn = Turn::Mine;
    for part in order {
        assert_eq!(done(&observed), Action::Make(part));
        observed.parts.insert(part, Seen::Ours);
    }
    assert!(matches!(decide(&observed, &settings()), Step::Wait(_)), "then its driver is waited for");
}

#[test]
fn accounts_and_metrics_are_made_where_they_are_asked_for() {
    let elsewhere = observed(&json!({"spec": {"driver": {"namespace": "lab"}, "metrics": {}}}));
    let settings = Settings { any_namespace: true, ..settings() };
    let wanted_parts = |observed: &Observed| {
        let all = wanted(observed, &settings);
        [Part::Account, Part::Binding, Part::Metrics].map(|part| all.contains(&part))
    };
    assert_eq!(wanted_parts(&elsewhere), [true, true, false]);
    let operator = Offers { prometheus: Offer::Open, ..Offers::default() };
    let mut theirs = Observed { offers: operator, ..elsewhere };
    theirs.parts.insert(Part::Account, Seen::Foreign);
    assert_eq!(wanted_parts(&theirs), [true, false, true]);
    theirs.offers.prometheus = Offer::Forbidden;
    assert_eq!(wanted_parts(&theirs), [true, false, false], "without the right to one, the run goes on without");
    assert_eq!(wanted_parts(&observed(&json!({}))), [false, false, false]);
}

#[test]
fn cert_manager_is_only_asked_where_the_controller_may_ask_it() {
    let ordered = json!({"spec": {"driver": {"certManagerIssuer": "i"}}, "status": null});
    for (offer, reason) in [
        (Offer::Absent, Some("CertManagerMissing")),
        (Offer::Forbidden, Some("CertManagerForbidden")),
        (Offer::Open, None),
    ] {
        let offers = Offers { cert_manager: offer, ..Offers::default() };
        let action = done(&Observed { offers, ..nothing_made(&ordered) });
        match (action, reason) {
            (Action::Conclude(verdict), Some(reason)) => assert_eq!(verdict.reason, reason),
            (action, _) => assert_eq!((action, reason), (Action::TakeTurn, None)),
        }
    }
}

#[test]
fn a_certificate_that_nobody_delivers_is_waited_for_aloud_and_not_for_ever() {
    let ordered = json!({"spec": {"driver": {"certManagerIssuer": "i"}}, "status": {"completedRuns": null}});
    let offers = Offers { cert_manager: Offer::Open, ..Offers::default() };
    let mut observed = Observed { offers, driver: Driver::Absent, ..observed(&ordered) };
    observed.parts.insert(Part::Job, Seen::Absent);
    let limit = i64::try_from(settings().start_limit.as_secs()).unwrap();
    let since = |seconds: i64| Seen::Pending { since: observed.now - jiff::SignedDuration::from_secs(seconds) };
    let (patient, over) = (since(limit - 1), since(limit));

    observed.parts.insert(Part::Certificate, patient);
    let Action::Report(report) = done(&observed) else { panic!("a report") };
    assert_eq!((report.state, report.reason.as_str()), (State::Initializing, "CertificatePending"));
    observed.parts.insert(Part::Certificate, over);
    let Action::Conclude(verdict) = done(&observed) else { panic!("an end") };
    assert_eq!((verdict.success, verdict.reason.as_str()), (false, "CertificateNotDelivered"));
    assert!(verdict.message.contains("within 300 s: look at ClusterIssuer i"), "{}", verdict.message);
    // A driver that is there has its certificate.
    observed.parts.insert(Part::Job, Seen::Ours);
    observed.driver = Driver::Running { completed: 0 };
    let Action::Report(report) = done(&observed) else { panic!("a report") };
    assert_eq!(report.reason, "Replaying");
}

#[test]
fn what_others_have_made_is_left_alone() {
    let mut observed = observed(&json!({}));
    observed.parts.insert(Part::Namespace, Seen::Foreign);
    assert!(matches!(decide(&observed, &settings()), Step::Wait(_)), "a namespace that was there is used as it is");
    observed.parts.insert(Part::Service, Seen::Foreign);
    let Action::Conclude(verdict) = done(&observed) else { panic!("an end") };
    assert_eq!(verdict.reason, "NameTaken");
    // And it is not taken down either.
    let mut ended = Observed { parts: observed.parts, ..self::observed(&concluded(false)) };
    ended.parts.insert(Part::Root, Seen::Foreign);
    assert!(matches!(done(&ended), Action::Finish(_)));
}

#[test]
fn what_a_specification_cannot_have_here_fails_it_before_anything_is_made() {
    let hook = json!({"preStartHooks": [{"cmd": "true"}]});
    for (spec, reason) in [
        (json!({"hooks": hook}), "HooksNotAllowed"),
        (json!({"driver": {"namespace": "lab"}}), "NamespaceNotAllowed"),
        (json!({"duration": "0s"}), "BadSpec"),
        (json!({"duration": "99999999999d"}), "BadSpec"),
        (json!({"driver": {"certManagerIssuer": "i"}}), "CertManagerMissing"),
        (json!({"driver": {"image": "somebody/else"}}), "ImageNotAllowed"),
        (json!({"driver": {"tracePath": "/etc/shadow"}}), "LocalTraceNotAllowed"),
        (json!({"driver": {"tracePath": "file:///etc/shadow"}}), "LocalTraceNotAllowed"),
    ] {
        let mut change = json!({"spec": {"driver": {"tracePath": "s3://traces/a"}}, "status": null});
        merge(&mut change["spec"], &spec);
        let observed = nothing_made(&change);
        let strict = Settings { allow_hooks: false, local_traces: false, ..settings() };
        let Step::Do(Action::Conclude(verdict)) = decide(&observed, &strict) else { panic!("{spec} is an end") };
        assert_eq!((verdict.success, verdict.reason.as_str()), (false, reason));
    }
}

#[test]
fn a_secret_goes_to_no_driver_unless_somebody_has_labelled_it_for_drivers() {
    let mut observed = nothing_made(&json!({"spec": {"driver": {"secrets": ["s3"]}}}));
    observed.turn = Turn::Mine;
    for (refusal, reason, advice) in [
        (SecretRefusal::Missing, "SecretMissing", "create it"),
        (
            SecretRefusal::Unlabelled,
            "SecretNotAllowed",
            "kubectl -n simkube label secret s3 simkube.io/driver-secret=true",
        ),
    ] {
        observed.refused_secrets = BTreeMap::from([("s3".to_owned(), refusal)]);
        let Action::Conclude(verdict) = done(&observed) else { panic!("an end") };
        assert_eq!((verdict.success, verdict.reason.as_str()), (false, reason));
        assert!(verdict.message.contains(advice), "{}", verdict.message);
    }
    // A driver that is there has it already.
    let mut running = self::observed(&json!({}));
    running.refused_secrets = observed.refused_secrets;
    assert!(matches!(decide(&running, &settings()), Step::Wait(_)));
}

#[test]
fn hooks_run_once_and_one_that_nobody_saw_end_counts_as_failed() {
    let hooks = json!({"preStartHooks": [{"cmd": "a", "ignoreFailure": true}, {"cmd": "b"}]});
    let at = |started: u32, ended: u32| {
        let progress = json!({"preStartStarted": started, "preStartEnded": ended});
        let mut observed =
            nothing_made(&json!({"spec": {"hooks": hooks}, "status": {"hooks": progress, "completedRuns": null}}));
        observed.turn = Turn::Mine;
        done(&observed)
    };
    assert_eq!(at(0, 0), Action::RunHook(Stage::PreStart, 0));
    assert_eq!(at(1, 0), Action::EndHook(Stage::PreStart, 0, None), "its failure is ignored");
    assert_eq!(at(1, 1), Action::RunHook(Stage::PreStart, 1));
    let Action::EndHook(Stage::PreStart, 1, Some(verdict)) = at(2, 1) else { panic!("the hook has failed") };
    assert_eq!(verdict.reason, "HookFailed");
    assert_eq!(at(2, 2), Action::Make(Part::Root));
}

#[test]
fn the_driver_is_followed_into_pause_and_to_its_end() {
    assert!(matches!(decide(&observed(&json!({})), &settings()), Step::Wait(_)));
    let paused = observed(&json!({"spec": {"pausedTime": "2026-11-10T14:10:00Z"}}));
    let Action::Report(report) = done(&paused) else { panic!("a report") };
    assert_eq!(report.state, State::Paused);
    let verdict = Verdict::success("1 of 1 repetitions are done");
    let ended = Observed { driver: Driver::Ended { completed: 1, verdict: verdict.clone() }, ..observed(&json!({})) };
    let Action::Report(report) = done(&ended) else { panic!("a report") };
    assert_eq!(report.completed, Some(1));
    let counted = Observed { driver: ended.driver, ..observed(&json!({"status": {"completedRuns": 1}})) };
    assert_eq!(done(&counted), Action::Conclude(verdict));
    let mut gone = Observed { driver: Driver::Absent, ..observed(&json!({})) };
    gone.parts.insert(Part::Job, Seen::Absent);
    let Action::Conclude(verdict) = done(&gone) else { panic!("an end") };
    assert_eq!(verdict.reason, "DriverGone");
}

#[test]
fn a_run_whose_root_somebody_has_deleted_has_failed_and_waits_for_what_is_left_of_it() {
    for seen in [Seen::Going, Seen::Absent] {
        let mut observed = observed(&json!({}));
        observed.parts.insert(Part::Root, seen);
        let Action::Conclude(verdict) = done(&observed) else { panic!("an end") };
        assert_eq!((verdict.success, verdict.reason.as_str()), (false, "RootGone"));
    }
    // Before there was a driver, it is simply made again.
    let mut early = observed(&json!({"status": {"completedRuns": null}}));
    early.parts.insert(Part::Root, Seen::Absent);
    assert_eq!(done(&early), Action::Make(Part::Root));
    // Parts and pods that the garbage collector has not yet reached are the run's.
    let mut ended = Observed { parts: BTreeMap::from([(Part::Job, Seen::Going)]), ..observed(&concluded(false)) };
    let Action::Report(report) = done(&ended) else { panic!("a report") };
    assert_eq!(report.message, "waiting until the simulation's Job is gone");
    ended.parts.clear();
    ended.left = vec![left("Pod", "sk-a-driver-0-x")];
    let Action::Report(report) = done(&ended) else { panic!("a report") };
    assert_eq!(report.message, "waiting until Pod sk-a-driver-0-x is gone");
    ended.left.clear();
    assert!(matches!(done(&ended), Action::Finish(_)));
}

#[test]
fn an_end_is_hooks_then_teardown_then_the_final_state_then_the_turn() {
    let mut hooked = concluded(true);
    merge(&mut hooked, &json!({"spec": {"hooks": {"postStopHooks": [{"cmd": "c"}]}}}));
    assert_eq!(done(&observed(&hooked)), Action::RunHook(Stage::PostStop, 0));
    let mut observed = observed(&concluded(true));
    assert_eq!(done(&observed), Action::TearDown);
    observed.parts.insert(Part::Root, Seen::Going);
    let Action::Report(report) = done(&observed) else { panic!("a report") };
    assert_eq!((report.state, report.reason.as_str()), (State::Running, "CleaningUp"));
    observed.parts = BTreeMap::new();
    observed.left = vec![left("Namespace", "virtual-default")];
    let Action::Report(report) = done(&observed) else { panic!("a report") };
    assert_eq!(report.message, "waiting until Namespace virtual-default is gone");
    observed.left.clear();
    let Action::Finish(verdict) = done(&observed) else { panic!("the end") };
    assert!(verdict.success);
    let finished = json!({"status": {"state": "Finished", "endTime": "2026-11-10T14:59:00Z"}});
    assert_eq!(done(&self::observed(&finished)), Action::ReleaseTurn);
}

#[test]
fn a_record_is_only_promised_where_there_is_one() {
    let path = json!({"spec": {"record": {"path": "s3://records/a"}}});
    for (change, kept, recorded, wanted) in [
        (json!({}), false, false, None),
        (json!({}), true, false, None),
        (json!({}), true, true, Some("/records/a")),
        (path, true, false, Some("s3://records/a")),
    ] {
        let observed = Observed { kept, recorded, ..observed(&change) };
        assert_eq!(observed.record_path().as_deref(), wanted, "kept: {kept}, recorded: {recorded}");
    }
}

#[test]
fn where_hooks_are_not_allowed_none_runs_at_the_end_either() {
    let hooks = json!({"spec": {"hooks": {"postStopHooks": [{"cmd": "c"}]}}});
    let strict = Settings { allow_hooks: false, ..settings() };
    for mut change in [concluded(false), json!({"metadata": {"deletionTimestamp": "2026-11-10T15:00:00Z"}})] {
        merge(&mut change, &hooks);
        assert_eq!(decide(&observed(&change), &strict), Step::Do(Action::TearDown));
        assert_eq!(decide(&observed(&change), &settings()), Step::Do(Action::RunHook(Stage::PostStop, 0)));
    }
}

#[test]
fn after_its_end_a_simulation_stays_until_its_time_is_over() {
    let ended = |ttl: &Value| {
        let change = json!({
            "spec": {"record": {"ttlSecondsAfterFinished": ttl}},
            "status": {"state": "Failed", "endTime": "2026-11-10T14:59:00Z"},
        });
        let observed = Observed { turn: Turn::Free, ..self::observed(&change) };
        decide(&observed, &settings())
    };
    assert_eq!(ended(&Value::Null), Step::Rest);
    assert_eq!(ended(&json!(90)), Step::Wait(Duration::from_secs(30)));
    assert_eq!(ended(&json!(60)), Step::Do(Action::Expire));
}

#[test]
fn deleting_a_simulation_in_any_state_takes_everything_away_before_it_goes() {
    let deleted = json!({"metadata": {"deletionTimestamp": "2026-11-10T15:00:00Z"}});
    let mut observed = observed(&deleted);
    observed.kept = true;
    assert_eq!(done(&observed), Action::TearDown);
    observed.parts = BTreeMap::new();
    assert_eq!(done(&observed), Action::ReleaseTurn);
    observed.turn = Turn::Free;
    assert_eq!(done(&observed), Action::Forget);
    observed.kept = false;
    assert_eq!(done(&observed), Action::LetGo);
    observed.simulation.metadata.finalizers = None;
    assert_eq!(decide(&observed, &settings()), Step::Rest);

    let mut begun = self::observed(&deleted);
    begun.simulation.spec.hooks.post_stop_hooks = serde_json::from_value(json!([{"cmd": "c"}])).unwrap();
    assert_eq!(done(&begun), Action::RunHook(Stage::PostStop, 0));
    let mut waiting = Observed { turn: Turn::Blocked { by: "b".to_owned() }, ..nothing_made(&deleted) };
    waiting.simulation.status = None;
    assert_eq!(done(&waiting), Action::LetGo);
}

#[test]
fn certificates_are_renewed_while_the_driver_runs() {
    let mut observed = observed(&json!({}));
    observed.parts.insert(Part::Certificate, Seen::Stale);
    assert_eq!(done(&observed), Action::Renew(Part::Certificate));
    observed.parts.insert(Part::Certificate, Seen::Ours);
    observed.parts.insert(Part::Webhook, Seen::Stale);
    assert_eq!(done(&observed), Action::Renew(Part::Webhook));
}
