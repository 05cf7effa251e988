//! One column of a comparison: the runs of one trace and scenario.

use serde_json::Value;
use sk_record::{Engine, RunMeta};

use crate::analysis::Curves;
use crate::fidelity::Lives;
use crate::figures::Summary;
use crate::step::Window;

/// One run.
#[derive(Debug)]
pub struct Member {
    /// What the caller called it.
    pub label: String,
    /// The inputs.
    pub meta: RunMeta,
    /// The resolved scenario, if the record has it.
    pub scenario: Option<Value>,
    /// How it was judged when it was made: `PASS`, `INCOMPLETE` …
    pub verdict: Option<String>,
    /// The figures.
    pub summary: Summary,
    /// Paths of figures that this run cannot tell: a recording has no prices.
    pub unknown: &'static [&'static str],
    /// The lives of its pods, where a recording is to be compared with.
    pub lives: Option<Lives>,
    /// For the page: running pods, waiting pods and nodes over time.
    pub curves: Option<(Window, Curves)>,
}

impl Member {
    /// Is it a recording, read as a run? Only a recording has unknown figures.
    pub fn is_recording(&self) -> bool {
        !self.unknown.is_empty()
    }
}

/// Runs with the same inputs, which differ in their seed at most.
#[derive(Debug)]
pub struct Column {
    /// Its heading.
    pub label: String,
    /// At least one run.
    pub members: Vec<Member>,
}

impl Column {
    /// The seeds, in the order of the runs.
    pub fn seeds(&self) -> Vec<u64> {
        self.members.iter().map(|member| member.meta.seed).collect()
    }

    /// Why its figures may not represent the whole.
    pub(super) fn caution(&self) -> Option<String> {
        let is_one_of = |words: [&str; 2]| {
            let verdicts = self.members.iter().filter_map(|member| member.verdict.as_deref());
            verdicts.into_iter().find(|verdict| words.contains(verdict))
        };
        let partial = self.members.iter().any(|member| member.meta.partial).then_some("PARTIAL");
        let verdict = partial.or_else(|| is_one_of(["INCOMPLETE", "PARTIAL"]))?;
        let missing: i64 = self.members.iter().map(|member| member.summary.missing.pods).max().unwrap_or(0);
        let how_much = if missing > 0 { format!(", {missing} pods not simulated") } else { String::new() };
        Some(format!("{} is {verdict}{how_much}", self.label))
    }
}

/// Gathers repetitions into columns, in the order in which the first of each was named.
pub(super) fn grouped(members: Vec<Member>) -> Vec<Column> {
    let mut columns: Vec<Column> = Vec::new();
    for member in members {
        match columns.iter_mut().find(|column| member.repeats(&column.members)) {
            Some(column) => column.members.push(member),
            None => columns.push(Column { label: member.label.clone(), members: vec![member] }),
        }
    }
    // Repetitions of one question and nothing else: then they are what is to be compared.
    if let [_] = columns.as_slice() {
        let members = columns.pop().map(|column| column.members).unwrap_or_default();
        columns.extend(members.into_iter().map(|member| Column { label: member.label.clone(), members: vec![member] }));
    }
    for column in columns.iter_mut().filter(|column| column.members.len() > 1) {
        column.label = column.members[0].meta.name.clone();
    }
    tell_apart(&mut columns);
    columns
}

/// Two columns of one name take their first run's label instead, and a number where even that is the same.
fn tell_apart(columns: &mut [Column]) {
    let labels: Vec<String> = columns.iter().map(|column| column.label.clone()).collect();
    for (place, column) in columns.iter_mut().enumerate() {
        let twins = labels.iter().filter(|label| **label == labels[place]).count();
        let earlier = labels[..place].iter().filter(|label| **label == labels[place]).count();
        if twins > 1 && column.members[0].label != column.label {
            column.label = column.members[0].label.clone();
        } else if earlier > 0 {
            column.label = format!("{}#{}", column.label, earlier + 1);
        }
    }
}

impl Member {
    /// Is it one more run of the question that `known` answer? Embedded runs of one seed are one and the same run, so
    /// only another seed makes a repetition of them; on a real cluster every run is one.
    pub fn repeats(&self, known: &[Self]) -> bool {
        let is_new =
            self.meta.engine == Engine::Cluster || known.iter().all(|member| member.meta.seed != self.meta.seed);
        let is_asked_again = |first: &Self| first.may_ask(&self.meta) && question(first) == question(self);
        is_new && known.first().is_some_and(is_asked_again)
    }

    /// Can a run have the same inputs, by all that is known of it without its scenario?
    pub fn may_ask(&self, other: &RunMeta) -> bool {
        self.meta.name == other.name
            && self.meta.engine == other.engine
            && self.meta.version == other.version
            && self.meta.trace.digest == other.trace.digest
            && (self.meta.start, self.meta.end) == (other.start, other.end)
    }
}

/// The scenario without what tells repetitions apart.
pub(super) fn question(member: &Member) -> Option<Value> {
    let mut scenario = member.scenario.clone()?;
    if let Value::Object(fields) = &mut scenario {
        fields.remove("seed");
        fields.remove("repetitions");
    }
    Some(scenario)
}
