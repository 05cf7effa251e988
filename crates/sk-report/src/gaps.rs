//! What of the trace was not simulated, grouped by kind with numbers, worst first.
//!
//! Worst is the most CPU, then the most pods. Every kind is listed; of one kind's objects as many as fit.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use sk_record::{Basis, Engine, Missing, MissingWhy, RunMeta};

use crate::figures::NotSimulated;
use crate::words::{self, plural};

/// Everything of one kind that was not simulated for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Why.
    pub why: MissingWhy,
    /// As a scenario's `accept` names it: `apps/StatefulSet`.
    pub kind: String,
    /// How much.
    pub size: Size,
    /// Each object, worst first.
    pub objects: Vec<Missing>,
}

/// How much was not simulated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// Objects.
    pub objects: i64,
    /// Pods of those whose number is known or estimated.
    pub pods: i64,
    /// CPU of these pods in thousandths, each object's at its largest moment.
    pub cpu_m: i64,
    /// Objects with an unknown number of pods.
    pub unknown: i64,
    /// Is some of this estimated from the objects, and not recorded?
    pub estimated: bool,
}

impl Size {
    fn add(&mut self, missing: &Missing) {
        let objects = i64::try_from(missing.objects).unwrap_or(i64::MAX);
        self.objects = self.objects.saturating_add(objects);
        self.pods = self.pods.saturating_add(missing.pods.unwrap_or(0));
        self.cpu_m = self.cpu_m.saturating_add(missing.cpu_m.unwrap_or(0));
        self.unknown += if missing.basis == Basis::Unknown { objects } else { 0 };
        self.estimated |= missing.basis == Basis::Estimated && missing.pods != Some(0);
    }

    /// Of all of these.
    pub fn of<'a>(missing: impl IntoIterator<Item = &'a Missing>) -> Self {
        let mut size = Self::default();
        missing.into_iter().for_each(|missing| size.add(missing));
        size
    }

    /// `about 35 pods, 31 CPU, and 2 objects of unknown size`.
    pub fn in_words(&self) -> String {
        let known = (self.pods > 0).then(|| {
            let about = if self.estimated { "about " } else { "" };
            let cpu = if self.cpu_m > 0 { format!(", {}", words::cpu(self.cpu_m)) } else { String::new() };
            format!("{about}{}{cpu}", plural(self.pods, "pod"))
        });
        let unknown = (self.unknown > 0).then(|| format!("{} of unknown size", plural(self.unknown, "object")));
        match (known, unknown) {
            (Some(known), Some(unknown)) => format!("{known}, and {unknown}"),
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => plural(self.objects, "object"),
        }
    }
}

impl Gap {
    /// `StatefulSet`, `Deployment, refused`: what it is, and why where that is not plain.
    pub fn label(&self) -> String {
        let kind = short_kind(&self.kind);
        match self.why {
            MissingWhy::NoController => kind.to_owned(),
            MissingWhy::Refused => format!("{kind}, refused"),
            MissingWhy::OtherScheduler => format!("{kind} of another scheduler"),
        }
    }

    /// Each object in short, worst first: `data/kafka 3 pods 12 CPU`.
    pub fn examples(&self) -> impl Iterator<Item = String> {
        let alone = self.objects.len() == 1;
        self.objects.iter().map(move |missing| example(missing, alone))
    }
}

/// An object without its kind, which comes before it; with its size, unless the whole line is about it alone.
fn example(missing: &Missing, alone: bool) -> String {
    let mut text = words::without_kind(&missing.object);
    if !alone && missing.basis != Basis::Unknown {
        text.push_str(&format!(" {}", size_of(missing)));
    }
    if let Some(message) = &missing.message {
        text.push_str(&format!(" ({message})"));
    }
    text
}

fn size_of(missing: &Missing) -> String {
    let pods = plural(missing.pods.unwrap_or(0), "pod");
    match missing.cpu_m {
        Some(cpu_m) if cpu_m > 0 => format!("{pods} {}", words::cpu(cpu_m)),
        _ => pods,
    }
}

/// `StatefulSet` of `apps/StatefulSet`.
pub(crate) fn short_kind(kind: &str) -> &str {
    kind.rsplit('/').next().unwrap_or(kind)
}

/// What the run left out. A cluster's record says in its warnings what its API server refused, and not how much it was.
pub(crate) fn of(meta: &RunMeta) -> Vec<Missing> {
    let refused = meta.warnings.iter().filter(|warning| meta.engine == Engine::Cluster && warning.code == "refused");
    let refused = refused.map(|warning| Missing {
        why: MissingWhy::Refused,
        kind: "object".to_owned(),
        object: warning.message.trim_start_matches("refused: ").to_owned(),
        objects: warning.count,
        pods: None,
        cpu_m: None,
        basis: Basis::Unknown,
        message: None,
    });
    let mut missing: Vec<Missing> = meta.missing.iter().cloned().chain(refused).collect();
    missing.sort_by_key(badness);
    missing
}

fn badness(missing: &Missing) -> (Reverse<i64>, Reverse<i64>, Reverse<bool>) {
    let number = |number: Option<i64>| Reverse(number.unwrap_or(0));
    (number(missing.cpu_m), number(missing.pods), Reverse(missing.basis == Basis::Unknown))
}

/// The figures about what was left out.
pub(crate) fn figures(missing: &[Missing]) -> NotSimulated {
    let size = Size::of(missing);
    NotSimulated { objects: size.objects, pods: size.pods, cpu: size.cpu_m as f64 / 1_000.0, unknown: size.unknown }
}

/// By kind and reason, worst first.
pub(crate) fn by_kind<'a>(missing: impl IntoIterator<Item = &'a Missing>) -> Vec<Gap> {
    let mut gaps: BTreeMap<(MissingWhy, &str), Vec<Missing>> = BTreeMap::new();
    for one in missing {
        gaps.entry((one.why, one.kind.as_str())).or_default().push(one.clone());
    }
    let gap = |((why, kind), objects): ((MissingWhy, &str), Vec<Missing>)| Gap {
        why,
        kind: kind.to_owned(),
        size: Size::of(&objects),
        objects,
    };
    let mut gaps: Vec<Gap> = gaps.into_iter().map(gap).collect();
    gaps.sort_by_key(|gap| (Reverse(gap.size.cpu_m), Reverse(gap.size.pods), Reverse(gap.size.unknown)));
    gaps
}

/// Does the scenario's `accept` name it: by why, by kind with or without its group, or by itself?
pub(crate) fn is_accepted(missing: &Missing, accept: &[String]) -> bool {
    let is_name = |name: &String| {
        name == missing.why.code()
            || *name == missing.kind
            || name == short_kind(&missing.kind)
            || *name == missing.object
    };
    accept.iter().any(is_name)
}
