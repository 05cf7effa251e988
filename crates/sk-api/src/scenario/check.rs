//! Cross-field validation: names, sizes and bounds that must fit together.
//!
//! All errors are reported at once, so that a file is corrected in one pass.

mod autoscaler;
mod cluster;
mod timeline;

use std::collections::BTreeSet;

use sk_core::label::is_dns_subdomain;
use sk_core::{SimDuration, TimeSpec};

use super::error::{Fault, MAX_FAULTS, ScenarioError, listed, shown};
use super::family::is_of_the_family;
use super::path::Path;
use super::suggest::did_you_mean;
use super::yaml::Document;
use super::{Assertion, Holds, Profile, Scenario};
use crate::simulation::names::MAX_REPETITIONS;

/// A name that becomes part of node names and folders is at most this long (RFC 1123).
const MAX_NAME_BYTES: usize = 63;

/// The longest name of a gap: a namespace, a kind and a name of 63, 63 and 253 bytes, and two slashes.
const MAX_GAP_BYTES: usize = 381;

/// The longest latency of a part of the control plane.
const MAX_LATENCY: SimDuration = SimDuration::from_mins(10);

pub(crate) fn check(scenario: &Scenario, document: &Document) -> Result<(), ScenarioError> {
    let mut faults = Faults { document, found: Vec::new() };
    if let Some(name) = &scenario.name {
        faults.unless(is_dns_label(name), Path::of(["name"]), || not_a_name(name));
    }
    check_trace(scenario, &mut faults);
    cluster::check_cluster(scenario, &mut faults);
    autoscaler::check_autoscaler(scenario, &mut faults);
    check_timing(scenario, &mut faults);
    timeline::check_timeline(scenario, &mut faults);
    let repetitions = scenario.repetitions;
    faults.unless((1..=MAX_REPETITIONS).contains(&repetitions), Path::of(["repetitions"]), || {
        format!("{repetitions} runs are not possible: write a number from 1 to {MAX_REPETITIONS}")
    });
    check_variants(scenario, &mut faults);
    check_accepted(scenario, &mut faults);
    check_assertions(scenario, &mut faults);
    if faults.found.is_empty() { Ok(()) } else { Err(ScenarioError::Meaning(faults.found)) }
}

struct Faults<'a> {
    document: &'a Document,
    found: Vec<Fault>,
}

impl Faults<'_> {
    fn add(&mut self, path: Path, problem: impl Into<String>) {
        if self.found.len() < MAX_FAULTS {
            self.found.push(Fault { place: self.document.place_of(&path), path, problem: problem.into() });
        }
    }

    fn unless(&mut self, good: bool, path: Path, problem: impl FnOnce() -> String) {
        if !good {
            self.add(path, problem());
        }
    }
}

fn is_dns_label(name: &str) -> bool {
    name.len() <= MAX_NAME_BYTES && !name.contains('.') && is_dns_subdomain(name)
}

fn not_a_name(name: &str) -> String {
    format!(
        "`{}` is not a name: use at most {MAX_NAME_BYTES} lower-case letters, digits and `-`, as in `small-1`",
        shown(name)
    )
}

/// The message about an unknown name.
fn no_such<'a>(what: &str, name: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    if known.clone().next().is_none() {
        return format!("there is no {what} `{}`, because there are none", shown(name));
    }
    let advice = did_you_mean(name, known.clone());
    format!("there is no {what} `{}`, only {}{advice}", shown(name), listed(known))
}

fn check_trace(scenario: &Scenario, faults: &mut Faults<'_>) {
    let at = Path::of(["trace"]);
    let trace = &scenario.trace;
    if trace.duration.is_some() && trace.end.is_some() {
        faults.add(at.field("end"), "`end` and `duration` both say where the replay ends: keep one of them");
    }
    faults.unless(trace.duration != Some(SimDuration::ZERO), at.field("duration"), || {
        "0s is nothing to replay".to_owned()
    });
    let ordered = match (trace.start, trace.end) {
        (Some(TimeSpec::At(start)), Some(TimeSpec::At(end))) => start < end,
        (Some(TimeSpec::AfterStart(start)), Some(TimeSpec::AfterStart(end))) => start < end,
        (Some(TimeSpec::OnClocks(start)), Some(TimeSpec::OnClocks(end))) => start < end,
        (Some(TimeSpec::BeforeNow(start)), Some(TimeSpec::BeforeNow(end))) => start > end,
        // Which of two different forms is earlier depends on the trace and on when it is asked.
        _ => true,
    };
    faults.unless(ordered, at.field("end"), || "the end must come after the start".to_owned());
}

/// A limit of 0 would mean never, and a latency of hours is a mistake.
fn check_timing(scenario: &Scenario, faults: &mut Faults<'_>) {
    let Profile::Custom(latencies) = &scenario.timing.profile else { return };
    let at = Path::of(["timing", "profile"]);
    let limits = [
        ("controllerLimit", latencies.controller_limit),
        ("garbageLimit", latencies.garbage_limit),
        ("namespaceLimit", latencies.namespace_limit),
        ("schedulerLimit", latencies.scheduler_limit),
    ];
    for (field, limit) in limits {
        faults.unless(limit.qps > 0 && limit.burst > 0, at.field(field), || {
            "a client that may send 0 requests sends none: write at least 1".to_owned()
        });
    }
    let spans = [
        ("watchLatency", latencies.watch_latency),
        ("requestLatency", latencies.request_latency),
        ("schedulingCycle", latencies.scheduling_cycle),
        ("podTermination", latencies.pod_termination),
        ("autoscalerLoop", latencies.autoscaler_loop),
    ];
    for (field, span) in spans {
        faults.unless(span <= MAX_LATENCY, at.field(field), || {
            format!("{span} is not a latency: write at most {MAX_LATENCY}")
        });
    }
}

fn check_changes<'a>(paths: impl Iterator<Item = &'a String>, at: &Path, faults: &mut Faults<'_>) {
    for path in paths {
        if let Err(error) = path.parse::<Path>() {
            faults.add(at.field(path), error.to_string());
        }
    }
}

fn check_variants(scenario: &Scenario, faults: &mut Faults<'_>) {
    for variant in &scenario.variants {
        let at = Path::of(["variants", &variant.name]);
        faults.unless(is_dns_label(&variant.name), at.clone(), || not_a_name(&variant.name));
        check_changes(variant.changes.keys(), &at, faults);
        for path in variant.changes.keys() {
            let of_the_family = path.parse::<Path>().is_ok_and(|path| is_of_the_family(&path));
            faults.unless(!of_the_family, at.field(path), || {
                "all variants have this in common: write it at the top of the file".to_owned()
            });
        }
    }
}

/// A kind, an object or a code; whether the run has such a gap, only the run can say.
fn check_accepted(scenario: &Scenario, faults: &mut Faults<'_>) {
    let mut names = BTreeSet::new();
    for (index, name) in scenario.accept.iter().enumerate() {
        let at = Path::of(["accept"]).index(index);
        let is_name =
            !name.is_empty() && name.len() <= MAX_GAP_BYTES && name.bytes().all(|byte| byte.is_ascii_graphic());
        faults.unless(is_name, at.clone(), || {
            format!(
                "`{}` names no gap: write a kind such as apps/StatefulSet, an object such as data/StatefulSet/kafka, or a \
                 code such as refused or volumes",
                shown(name)
            )
        });
        faults.unless(names.insert(name), at, || format!("`{}` stands here twice: keep one of them", shown(name)));
    }
}

fn check_assertions(scenario: &Scenario, faults: &mut Faults<'_>) {
    let mut names = BTreeSet::new();
    for (index, Assertion { name, that, holds }) in scenario.assertions.iter().enumerate() {
        let at = Path::of(["assert"]).index(index);
        faults.unless(!that.trim().is_empty(), at.clone(), || {
            "an assertion says something, such as nodes.max <= 10".to_owned()
        });
        let name = name.as_deref().unwrap_or(that);
        faults.unless(names.insert(name), at.clone(), || {
            format!("`{}` stands here twice: keep one of them", shown(name))
        });
        let Holds::Variants(variants) = holds else { continue };
        for variant in variants {
            let known = || scenario.variants.iter().map(|variant| variant.name.as_str());
            faults
                .unless(known().any(|name| name == variant), at.field("for"), || no_such("variant", variant, known()));
        }
    }
}
