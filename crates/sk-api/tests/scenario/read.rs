//! What is read, what is refused, and with which words.

use sk_api::Scenario;
use sk_api::scenario::{Assertion, Expander, Expanders, Holds, Profile, Ready};
use sk_core::{Quantity, SimDuration, Taint, TaintEffect, TimeSpec};

use crate::cases::{EVERYTHING, SMALLEST, refused};

fn error(text: &str) -> String {
    Scenario::parse("pack.yaml", text).err().map(|error| error.to_string()).unwrap_or_default()
}

#[test]
fn what_is_wrong_is_refused_where_it_stands() {
    for case in refused() {
        assert_eq!(error(&case.text), format!("pack.yaml:{}: {}", case.place, case.message), "{}", case.text);
    }
}

#[test]
fn the_smallest_scenario_is_read_and_the_rest_is_default() {
    let scenario = Scenario::parse("nginx.yaml", SMALLEST).unwrap();
    let group = &scenario.cluster.groups["small"];
    assert_eq!((group.min, group.max, group.price), (1, 10, Some(0.05)));
    assert_eq!(group.ready, Ready::After(SimDuration::from_secs(60)));
    let memory: Quantity = "4Gi".parse().unwrap();
    let all = [("cpu", Quantity::from_value(1)), ("memory", memory), ("pods", Quantity::from_value(110))];
    assert!(group.allocatable.iter().map(|(name, amount)| (name.as_str(), *amount)).eq(all), "{:?}", group.allocatable);
    assert_eq!(group.capacity(), group.allocatable);
    assert_eq!((scenario.seed, scenario.repetitions, scenario.name.as_deref()), (1, 1, None));
    assert_eq!(scenario.cluster.currency, "USD");
    assert_eq!(scenario.autoscaler.scale_down_unneeded_time, SimDuration::from_mins(10));
    assert_eq!(scenario.autoscaler.expander, Expanders(vec![Expander::LeastWaste]));
    assert_eq!(scenario.timing.profile, Profile::RealLike);
    assert_eq!(scenario.timing.pod_startup_delay, SimDuration::from_secs(2));
    assert_eq!(scenario.assertions[1].that, "nodes.max <= 10");
}

#[test]
fn every_section_is_read() {
    let scenario = Scenario::parse("pack.yaml", EVERYTHING).unwrap();
    assert_eq!(scenario.name.as_deref(), Some("pack"));
    assert_eq!(scenario.trace.start, Some(TimeSpec::parse("2026-11-09T00:00:00Z").unwrap()));
    assert_eq!(scenario.trace.duration, Some(SimDuration::from_mins(7 * 24 * 60)));
    let spot = &scenario.cluster.groups["spot"];
    assert_eq!(spot.allocatable["cpu"], Quantity::from_milli(7910));
    assert_eq!(spot.capacity()["cpu"], Quantity::from_value(8));
    assert_eq!(spot.capacity()["pods"], Quantity::from_value(58));
    assert_eq!(spot.taints, [Taint { value: "true".into(), ..Taint::new("spot", TaintEffect::NoSchedule) }]);
    assert_eq!(scenario.timeline.len(), 6);
    let variants: Vec<_> = scenario.variants.iter().map(|variant| variant.name.as_str()).collect();
    assert_eq!(variants, ["as-is", "packed", "packed-36"]);
    assert_eq!(
        scenario.assertions[9],
        Assertion {
            name: Some("the model is good enough to judge by".to_owned()),
            that: "fidelity.start_latency.error < 0.15".to_owned(),
            holds: Holds::Variants(vec!["as-is".into()]),
        }
    );
}

#[test]
fn a_profile_of_ones_own_is_written_out_with_its_defaults() {
    let text = format!("{SMALLEST}timing: {{profile: {{watchLatency: 5ms, controllerLimit: {{qps: 50, burst: 75}}}}}}");
    let scenario = Scenario::parse("x", &text).unwrap();
    let Profile::Custom(latencies) = &scenario.timing.profile else { panic!("it is one's own") };
    assert_eq!(latencies.watch_latency, SimDuration::from_millis(5));
    assert_eq!((latencies.controller_limit.qps, latencies.garbage_limit.qps), (50, 40));
    assert!(scenario.to_yaml().contains("requestLatency: 3ms"), "{}", scenario.to_yaml());
    assert_eq!(Scenario::parse("y", &scenario.to_yaml()).unwrap(), scenario);
}

#[test]
fn what_is_set_during_a_run_adds_up_to_a_scenario() {
    let scenario = Scenario::parse("pack.yaml", EVERYTHING).unwrap();
    let set = scenario.timeline.iter().find(|happening| !happening.set.is_empty()).unwrap();
    let changed = scenario.changed(&set.set).unwrap();
    assert_eq!((scenario.cluster.groups["general"].max, changed.cluster.groups["general"].max), (40, 60));
    assert!(changed.timeline.is_empty() && changed.cluster.groups["spot"] == scenario.cluster.groups["spot"]);
    let wrong = [("cluster.groups.general.min".to_owned(), 70.into())].into();
    assert!(scenario.changed(&wrong).unwrap_err().to_string().contains("min 70 is more than max 40"));
}

#[test]
fn all_faults_are_told_at_once() {
    let text = SMALLEST.replace("min: 1, max: 10, cpu: 1", "min: 5, max: 3, cpu: 0");
    let error = Scenario::parse("pack.yaml", &text).unwrap_err();
    let paths: Vec<_> = error.faults().iter().map(|fault| fault.path.to_string()).collect();
    assert_eq!(paths, ["cluster.groups.small.min", "cluster.groups.small.cpu"]);
    assert_eq!(error.to_string().lines().count(), 2, "{error}");
}

#[test]
fn flags_of_cluster_autoscaler_are_taken_as_pasted_or_refused_by_name() {
    let pasted = "autoscaler:\n  expander: random\n  scale-down-enabled: \"false\"\n  max-drain-parallelism: '3'\n  \
                  scale-down-utilization-threshold: \"0.65\"\n  skip-nodes-with-system-pods: false\n";
    let scenario = Scenario::parse("pack.yaml", &format!("{SMALLEST}{pasted}")).unwrap();
    let autoscaler = &scenario.autoscaler;
    assert_eq!(autoscaler.expander, Expanders(vec![Expander::Random]));
    assert_eq!((autoscaler.scale_down_enabled, autoscaler.max_drain_parallelism), (false, 3));
    assert_eq!((autoscaler.scale_down_utilization_threshold, autoscaler.skip_nodes_with_system_pods), (0.65, false));

    let known = "autoscaler: {scan-interval: 5s, nodes: 1:3:a, parallel-scale-up: true, expander: \"grpc,random\"}";
    let said = error(&format!("{SMALLEST}{known}"));
    let lines: Vec<_> = said.lines().collect();
    assert_eq!(lines.len(), 3, "{said}");
    assert!(lines[0].starts_with("pack.yaml:10:33: autoscaler.nodes: this flag"), "{said}");
    assert!(lines[0].contains("is not modelled"), "{said}");
    assert!(lines[2].contains("`grpc,random` is not modelled"), "{said}");

    let unknown = error(&format!("{SMALLEST}autoscaler: {{scan-intervall: 5s}}"));
    assert!(unknown.starts_with("pack.yaml:10:14: autoscaler.scan-intervall: there is no such field"), "{unknown}");
    assert!(unknown.ends_with("did you mean `scan-interval`?"), "{unknown}");
    assert!(error(&format!("{SMALLEST}wibble:")).starts_with("pack.yaml:10:1: wibble: there is no such field"));
}

#[test]
fn flags_that_cannot_matter_are_taken_and_named() {
    let pasted = "autoscaler: {v: 4, leader-elect: false, cloud-provider: aws, pending-pods-batching-timeout: 9s, scan-interval: 5s}";
    let autoscaler = Scenario::parse("pack.yaml", &format!("{SMALLEST}{pasted}")).unwrap().autoscaler;
    assert_eq!(autoscaler.ignored, ["v", "leader-elect", "cloud-provider", "pending-pods-batching-timeout"]);
    assert_eq!(autoscaler.scan_interval, SimDuration::from_secs(5));
}

#[test]
fn every_flag_has_the_default_that_the_real_one_prints() {
    let printed = sk_testkit::autoscaling::flag_defaults();
    let ours = serde_json::to_value(sk_api::scenario::Autoscaler::default()).unwrap();
    let mut compared = 0;
    for (flag, ours) in ours.as_object().unwrap().iter().filter(|(flag, _)| printed.contains_key(*flag)) {
        let (ours, real) = (ours.as_str().map_or(ours.to_string(), str::to_owned), &printed[flag]);
        let span = |text: &str| text.parse::<SimDuration>().ok();
        let is_none = |text: &str| ["", "0"].contains(&text);
        let same =
            ours == *real || (span(&ours).is_some() && span(&ours) == span(real)) || (is_none(&ours) && is_none(real));
        assert!(same, "{flag}: {ours} here, {real} there");
        compared += 1;
    }
    assert!(compared >= 35, "{compared}");
}

#[test]
fn every_flag_of_the_real_one_is_a_field_or_has_its_own_words() {
    let fields = serde_json::to_value(sk_api::scenario::Autoscaler::default()).unwrap();
    let mut counts = [0; 3];
    for flag in sk_testkit::autoscaling::flag_defaults().keys() {
        if fields.get(flag).is_some() {
            counts[0] += 1;
            continue;
        }
        match Scenario::parse("pack.yaml", &format!("{SMALLEST}autoscaler: {{{flag}: x}}")) {
            Ok(scenario) => {
                assert_eq!(scenario.autoscaler.ignored, [flag.as_str()]);
                counts[1] += 1;
            }
            Err(error) => {
                let said = error.to_string();
                assert!(
                    said.contains(&format!("autoscaler.{flag}: this flag of cluster-autoscaler is not modelled")),
                    "{said}"
                );
                counts[2] += 1;
            }
        }
    }
    assert!(counts[0] >= 40, "fields, ignored, not modelled: {counts:?}");
}

#[test]
fn a_flag_that_is_not_modelled_may_say_what_is_so_anyway() {
    let printed = sk_testkit::autoscaling::flag_defaults();
    let fields = serde_json::to_value(sk_api::scenario::Autoscaler::default()).unwrap();
    let mut taken = 0;
    for (flag, default) in printed.iter().filter(|(flag, _)| fields.get(flag.as_str()).is_none()) {
        let scenario = Scenario::parse("pack.yaml", &format!("{SMALLEST}autoscaler: {{{flag}: {default}}}"));
        let scenario = scenario.unwrap_or_else(|error| panic!("{flag} has its default and is refused: {error}"));
        assert_eq!(scenario.autoscaler.ignored, [flag.as_str()]);
        taken += 1;
    }
    assert!(taken > 20, "{taken}");
    // Switches that are off there, which the recordings' list of defaults does not have.
    for flag in
        ["async-node-groups", "enable-provisioning-requests", "force-delete-failed-nodes", "capacity-quotas-enabled"]
    {
        let scenario = Scenario::parse("pack.yaml", &format!("{SMALLEST}autoscaler: {{{flag}: false}}"));
        assert_eq!(scenario.unwrap().autoscaler.ignored, [flag]);
    }
}

#[test]
fn flags_that_are_not_modelled_are_refused_in_their_own_words() {
    for (flag, words) in [
        ("nodes: 1:3:a", "groups and their sizes stand under `cluster.groups`"),
        ("max-empty-bulk-delete: 5", "write `max-scale-down-parallelism` instead"),
        ("startup-taint: [x]", "and no others while they start"),
        ("scale-up-from-zero: false", "leave out a group that must not grow"),
        ("max-pod-eviction-time: 5m", "for two minutes"),
        ("scale-from-unschedulable: true", "a cordoned node is no template"),
        ("parallel-scale-up: true", "use `salvo-scale-up`"),
        ("force-ds: true", "too small for all of its DaemonSets' pods"),
        ("bypassed-scheduler-names: [mine]", "pods of every scheduler call for nodes"),
        ("feature-gates: \"A=true\"", "has the gates of Kubernetes 1.36 at their defaults"),
    ] {
        let said = error(&format!("{SMALLEST}autoscaler: {{{flag}}}"));
        assert!(said.starts_with("pack.yaml:10:14: autoscaler."), "{said}");
        assert!(said.contains("this flag of cluster-autoscaler is not modelled") && said.contains(words), "{said}");
    }
}

#[test]
fn every_flag_of_the_recordings_is_taken() {
    for seen in sk_testkit::autoscaling::all() {
        let mut text = format!("{SMALLEST}autoscaler:\n");
        for (flag, value) in &seen.flags {
            text.push_str(&format!("  {flag}: \"{value}\"\n"));
        }
        text.push_str("  priorities: {10: [.*]}\n");
        let scenario = Scenario::parse("pack.yaml", &text);
        assert!(scenario.is_ok(), "{}: {}", seen.scenario, scenario.unwrap_err());
    }
}

#[test]
fn the_priority_expander_reads_what_its_config_map_says() {
    let pasted = "autoscaler: {expander: \"priority,least-waste\", priorities: {10: [.*], 50: [\"^sm\", big]}}";
    let scenario = Scenario::parse("pack.yaml", &format!("{SMALLEST}{pasted}")).unwrap();
    assert_eq!(scenario.autoscaler.expander, Expanders(vec![Expander::Priority, Expander::LeastWaste]));
    let names = ["small".into(), "other".into()];
    let priorities = scenario.autoscaler.priorities_of(names.iter());
    assert_eq!(priorities.into_iter().collect::<Vec<_>>(), [("other".into(), 10), ("small".into(), 50)]);
}

#[test]
fn files_of_other_systems_are_read_as_well() {
    let scenario = Scenario::parse("x", SMALLEST).unwrap();
    assert_eq!(Scenario::parse("x", &SMALLEST.replace('\n', "\r\n")).unwrap(), scenario);
    assert_eq!(Scenario::parse("x", &format!("\u{feff}{SMALLEST}")).unwrap(), scenario);
}

#[test]
fn fields_without_a_value_are_as_if_they_were_not_there() {
    let scenario = Scenario::parse("x", &format!("{SMALLEST}name:\ntiming:\ntrace: ~\nautoscaler: {{expander: }}\n"));
    assert_eq!(scenario.unwrap(), Scenario::parse("x", SMALLEST).unwrap());
    assert!(error(&SMALLEST.replace("max: 10", "max: ")).ends_with("small: `max` is missing: add it"));
}

#[test]
fn anchors_and_merges_repeat_what_groups_have_in_common() {
    let text = SMALLEST.replace(
        "small: {",
        "base: &base {max: 3, cpu: 1, memory: 1Gi}\n    more: {<<: *base, max: 5}\n    same: *base\n    small: {",
    );
    let groups = Scenario::parse("x", &text).unwrap().cluster.groups;
    assert_eq!((groups["base"].max, groups["more"].max, groups["same"].max), (3, 5, 3));
    assert_eq!(groups["more"].memory, groups["base"].memory);
    // What is wrong is shown where it was written, not where it is repeated.
    assert!(error(&text.replace("cpu: 1,", "cpu: x,")).starts_with("pack.yaml:6:31: cluster.groups.base.cpu: "));
}

#[test]
fn places_can_be_asked_for() {
    let scenario = Scenario::parse("pack.yaml", SMALLEST).unwrap();
    let place = |path: &str| scenario.place(&path.parse().unwrap()).unwrap().to_string();
    assert_eq!(place("assert[1]"), "pack.yaml:9:5");
    assert_eq!(place("assert[1].that"), "pack.yaml:9:5");
    assert_eq!(place("cluster.groups.small.max"), "pack.yaml:6:26");
    assert_eq!(place("seed"), "pack.yaml:2:1");
}

#[test]
fn what_is_written_out_reads_back_as_the_same_scenario() {
    for text in [SMALLEST, EVERYTHING] {
        let scenario = Scenario::parse("pack.yaml", text).unwrap();
        let written = scenario.to_yaml();
        let again = Scenario::parse("scenario.yaml", &written).unwrap();
        assert_eq!(again, scenario);
        assert_eq!(again.to_yaml(), written);
    }
    let written = Scenario::parse("pack.yaml", SMALLEST).unwrap().to_yaml();
    for default in ["scan-interval: 10s", "podStartupDelay: 2s", "pods: \"110\"", "seed: 1", "currency: USD"] {
        assert!(written.contains(default), "{default} in {written}");
    }
}
