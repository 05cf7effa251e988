//! Generated traces: the same for the same seed, of the size and shape that was asked for, whole in every form.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod support;

use std::collections::{BTreeMap, BTreeSet};

use sk_core::{SimDuration, SimTime};
use sk_store::trace::{Change, Format, Life, Record, Trace, convert};
use sk_trace::generate::{GenerateSpec, Generator, Step};
use support::{generated, open};

fn preset(name: &str) -> GenerateSpec {
    GenerateSpec::preset(name).unwrap()
}

fn records(spec: &GenerateSpec) -> impl Iterator<Item = Record> {
    Generator::new(spec).unwrap().filter_map(|step| match step {
        Step::Record(record) => Some(record),
        Step::Row(_) => None,
    })
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_seed_others() {
    let spec = preset("small");
    for format in [Format::Native, Format::V2, Format::JsonLines] {
        assert!(generated(&spec, format) == generated(&spec, format), "{format:?}");
    }
    let other = GenerateSpec { seed: 2, ..spec.clone() };
    assert!(generated(&spec, Format::JsonLines) != generated(&other, Format::JsonLines));
}

#[test]
fn the_benchmark_is_a_hundred_thousand_events_over_two_thousand_deployments() {
    let spec = preset("bench-100k");
    assert_eq!((spec.events, spec.services.count), (Some(100_000), 2_000));
    // A fifth of them says enough about all of them.
    let spec = GenerateSpec { events: Some(20_000), ..spec };
    let (mut events, mut bytes) = (0, 0);
    let mut versions: BTreeMap<String, u64> = BTreeMap::new();
    for record in records(&spec) {
        let Change::Apply(object) = &record.change else { continue };
        assert_eq!(record.at, SimTime::from_secs(record.at.as_secs()), "v2 holds whole seconds");
        assert_eq!(object.reference().gvk.kind, "Deployment");
        events += 1;
        bytes += object.value().to_string().len();
        *versions.entry(object.reference().key.to_string()).or_default() += 1;
    }
    assert_eq!((events, versions.len()), (20_000, 2_000));
    assert!((1_500..2_500).contains(&(bytes / events)), "objects of {} bytes", bytes / events);
    assert!(versions.values().filter(|versions| **versions > 2).count() > 1_000, "most of them change");
}

#[test]
fn what_is_told_is_in_order_and_every_delete_has_its_object() {
    let spec = GenerateSpec { duration: SimDuration::from_mins(4 * 60), ..preset("day") };
    let (mut last, mut alive) = (None, BTreeSet::new());
    let mut deletes = 0;
    for record in records(&spec) {
        assert!(last < Some((record.at, record.seq)), "{record}");
        last = Some((record.at, record.seq));
        match &record.change {
            Change::Apply(object) => drop(alive.insert(object.reference().clone())),
            Change::Delete(deletion) => {
                assert!(alive.remove(&deletion.object), "{record}");
                deletes += 1;
            }
            Change::Mark(_) => {}
        }
    }
    assert!(deletes > 100, "{deletes}");
    assert_eq!(last.unwrap().0, spec.start + spec.duration);
}

#[test]
fn services_follow_the_day() {
    let mut spec = preset("day");
    spec.batch.jobs_per_hour = 0.0;
    spec.batch.bursts_per_day = 0.0;
    let mut replicas: BTreeMap<String, u64> = BTreeMap::new();
    let mut by_hour = [0_u64; 24];
    for record in records(&spec) {
        if let Change::Apply(object) = &record.change
            && object.reference().gvk.kind == "Deployment"
            && let Some(wanted) = object.value()["spec"]["replicas"].as_u64()
        {
            replicas.insert(object.reference().key.to_string(), wanted);
        }
        let hour = usize::try_from(record.at.since(spec.start).as_micros() / 3_600_000_000).unwrap();
        by_hour[hour.min(23)] = replicas.values().sum();
    }
    assert!(by_hour[14] * 10 > by_hour[3] * 15, "half as many again at the peak: {by_hour:?}");
}

#[test]
fn the_memory_of_the_generator_is_what_exists_not_what_has_been() {
    // Ten times as long a trace of the same cluster keeps as many Jobs waiting for their end.
    let mut spec = preset("small");
    let waiting = |spec: &GenerateSpec| {
        let (mut alive, mut most) = (0_i64, 0);
        for record in records(spec) {
            match record.change {
                Change::Apply(object) if object.reference().gvk.kind == "Job" => alive += 1,
                Change::Delete(_) => alive -= 1,
                _ => {}
            }
            most = most.max(alive);
        }
        most
    };
    spec.duration = SimDuration::from_mins(60);
    let short = waiting(&spec);
    spec.duration = SimDuration::from_mins(600);
    assert!(waiting(&spec) < short * 4, "{short}");
}

#[test]
fn what_cannot_be_generated_is_refused_before_anything_is_written() {
    let mut spec = preset("small");
    spec.services.scale_every = SimDuration::ZERO;
    assert!(Generator::new(&spec).is_err());
    let error = sk_trace::generate::generate(&spec, Format::Native, Vec::new()).unwrap_err();
    assert!(error.to_string().contains("services.scaleEvery"), "{error}");
}

/// What happens to each object in its order, and lives by pod hash: what all three forms can say. (Within a second v2
/// does not keep the order of different objects.)
fn content(trace: &Trace) -> (Vec<Record>, Vec<(String, Vec<Life>)>) {
    let records = trace.records().unwrap().map(Result::unwrap);
    let mut records: Vec<Record> = records.filter(|record| record.change.object().is_some()).collect();
    records.sort_by_cached_key(|record| (record.at, record.change.object().cloned()));
    records.iter_mut().for_each(|record| record.seq = 0);
    let lives = trace.lives().unwrap().map(Result::unwrap);
    let mut lives: Vec<_> = lives
        .flat_map(|row| {
            let owner = row.owner.to_string();
            row.templates.into_iter().map(move |template| (format!("{owner} {:?}", template.pod_hash), template.lives))
        })
        .collect();
    lives.sort();
    (records, lives)
}

#[test]
fn a_generated_trace_goes_through_every_form_unchanged() {
    let spec = GenerateSpec { whole_seconds: true, duration: SimDuration::from_mins(60), ..preset("small") };
    let cut = |lives: Vec<(String, Vec<Life>)>| {
        let whole = |time: SimTime| SimTime::from_secs(time.as_secs());
        let cut =
            |life: Life| Life { start: whole(life.start), end: life.end.map(whole), guessed: false, exit_code: None };
        lives.into_iter().map(|(key, lives)| (key, lives.into_iter().map(cut).collect::<Vec<_>>())).collect::<Vec<_>>()
    };
    let (records, lives) = content(&open(generated(&spec, Format::Native)));
    let lives = cut(lives);
    assert!(records.len() > 500 && lives.len() > 200, "{} {}", records.len(), lives.len());
    let mut bytes = generated(&spec, Format::V2);
    for format in [Format::Native, Format::JsonLines, Format::V2] {
        let (out, losses) = convert(&open(bytes), format, Vec::new()).unwrap();
        assert!(losses.is_none(), "{format:?}: {losses}");
        bytes = out;
        let (read, read_lives) = content(&open(bytes.clone()));
        assert!(read == records, "{format:?}");
        assert_eq!(read_lives, lives, "{format:?}");
    }
}

/// Benchmarks and scenarios refer to generated traces by their specification alone. These digests are those of the first
/// version; whoever changes them says so in CHANGELOG.md.
#[test]
fn a_specification_gives_the_bytes_that_it_has_always_given() {
    let two_hours = "seed: 11\nduration: 2h\nnamespaces: 25\n\
        services: {count: 120, replacedPerDay: 200, rolloutsPerDay: 30}\n\
        batch: {jobsPerHour: 300, burstsPerDay: 100, jobsPerBurst: 20}\ncron: {count: 20}\n";
    for (spec, digest) in [
        (preset("small"), "4d9b47f5bcff12a365a09fb0333c73034da303b3abf45be349e383cf5b43c68b"),
        (
            GenerateSpec::from_text(two_hours).unwrap(),
            "1eb4c670ff84b146d7f818e181af8e7abf78e6bd1a8db0f8997035bcd354529b",
        ),
    ] {
        let text = generated(&spec, Format::JsonLines);
        assert_eq!(open(text.clone()).digest().unwrap().to_string(), digest);
        // The forms keep rows in other places, so what happened is compared.
        let records = |bytes| open(bytes).records().unwrap().map(Result::unwrap).collect::<Vec<Record>>();
        let native = records(generated(&spec, Format::Native));
        assert!(native == records(text), "encoded objects are written as records are");
    }
}

#[test]
fn a_cluster_has_more_than_deployments_and_each_kind_in_its_share() {
    let spec = GenerateSpec { duration: SimDuration::from_mins(60), ..preset("day") };
    let (mut kinds, mut nodes, mut critical): (BTreeMap<String, usize>, Vec<_>, usize) = Default::default();
    for step in Generator::new(&spec).unwrap() {
        match step {
            Step::Row(sk_store::trace::Row::Node(event)) => nodes.push(event),
            Step::Row(_) => {}
            Step::Record(record) => {
                let Change::Apply(object) = &record.change else { continue };
                let value = object.value();
                if object.reference().gvk.kind == "StatefulSet" {
                    assert!(value.pointer("/spec/volumeClaimTemplates/0").is_some(), "{value}");
                    assert!(value.pointer("/spec/template/spec/affinity/podAntiAffinity").is_some());
                }
                if object.reference().gvk.kind == "Deployment" {
                    critical +=
                        usize::from(value["spec"]["template"]["spec"]["priorityClassName"] == "business-critical");
                }
                *kinds.entry(object.reference().gvk.kind.to_string()).or_default() += 1;
            }
        }
    }
    assert_eq!((kinds["StatefulSet"], kinds["DaemonSet"], kinds["PriorityClass"]), (80, 8, 1), "{kinds:?}");
    assert!(kinds["CronJob"] == 60 && kinds["Job"] > 50, "{kinds:?}");
    // Half of 300 services, and the StatefulSets of several pods.
    assert!((150..=260).contains(&kinds["PodDisruptionBudget"]), "{kinds:?}");
    assert!(critical > 30, "{critical} of {} Deployments", kinds["Deployment"]);
    assert_eq!(nodes.iter().filter(|event| event.at == spec.start).count(), 150);
    let tainted =
        nodes.iter().filter(|event| event.object.as_ref().is_some_and(|node| node["spec"]["taints"].is_array()));
    assert!(tainted.count() >= 25);
}
