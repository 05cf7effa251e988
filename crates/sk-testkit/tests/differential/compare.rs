//! Our scheduler's answers beside the real one's, attempt by attempt.

use std::fmt;

use sk_testkit::scheduling::SchedulingScenario;
use sk_testkit::scheduling::answer::{Attempt, Outcome, Scores};
use sk_testkit::scheduling::recorded::Answers;

use crate::ours::{Answer, Ours};

/// What is compared, from the coarsest question to the finest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// Which pods an event makes be tried again, and in which order.
    Retries,
    /// The words of a pod that fits nowhere.
    Words,
    /// Each plugin's score for each feasible node.
    Scores,
    /// The node, the nominated node, the victims.
    Node,
    /// How many nodes were looked at, and how many fit.
    Counts,
    /// A scenario that cannot be read.
    Input,
}

/// One difference.
#[derive(Clone, Debug)]
pub(crate) struct Difference {
    /// The scenario.
    pub(crate) scenario: String,
    /// Which step, counted from 1.
    pub(crate) step: usize,
    /// The pod.
    pub(crate) pod: String,
    /// What differs.
    pub(crate) level: Level,
    /// The real scheduler's answer.
    pub(crate) real: String,
    /// Ours.
    pub(crate) ours: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { scenario, step, pod, level, real, ours } = self;
        write!(f, "{scenario}, step {step}, {pod} ({level:?})\n  real: {real}\n  ours: {ours}")
    }
}

/// How much was compared, and what differed.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    /// Attempts that were compared.
    pub(crate) attempts: usize,
    /// Of these, those in which a node was chosen.
    pub(crate) placements: usize,
    /// What differs.
    pub(crate) differences: Vec<Difference>,
}

/// Asks our scheduler what the real one was asked.
pub(crate) fn compare(scenario: &SchedulingScenario, answers: &Answers) -> Verdict {
    let mut verdict = Verdict::default();
    let input = |step: usize, reason: String| Difference {
        scenario: scenario.name.clone(),
        step,
        pod: "-".into(),
        level: Level::Input,
        real: "took it".into(),
        ours: reason,
    };
    let mut ours = match Ours::new(scenario) {
        Ok(ours) => ours,
        Err(reason) => {
            verdict.differences.push(input(0, reason));
            return verdict;
        }
    };
    for (index, (step, attempts)) in scenario.steps.iter().zip(answers).enumerate() {
        ours.set_clock(attempts.first().and_then(|attempt| attempt.at));
        if let Err(reason) = ours.act(step) {
            verdict.differences.push(input(index + 1, reason));
            return verdict;
        }
        let mut report = |pod: &str, level: Level, real: String, ours: String| {
            let (scenario, pod) = (scenario.name.clone(), pod.to_owned());
            verdict.differences.push(Difference { scenario, step: index + 1, pod, level, real, ours });
        };
        verdict.attempts += attempts.len();
        for attempt in attempts {
            verdict.placements += usize::from(matches!(attempt.outcome, Outcome::Bound { .. }));
            ours.set_clock(attempt.at);
            ours.learn(&attempt.events);
            if let Err(instead) = ours.take(&attempt.pod) {
                report(&attempt.pod, Level::Retries, "tries it".into(), instead);
            }
            let answer = ours.decide(&attempt.pod);
            judge(attempt, &answer, &mut report);
            ours.carry_out(&answer, &attempt.outcome);
        }
        ours.learn_all();
        for pod in ours.ready() {
            report(&pod, Level::Retries, "does not try it".into(), "we would try it now".into());
        }
    }
    verdict
}

fn judge(real: &Attempt, ours: &Answer, report: &mut impl FnMut(&str, Level, String, String)) {
    let mut say = |level, real_says: String, we_say: String| {
        if real_says != we_say {
            report(&real.pod, level, real_says, we_say);
        }
    };
    say(Level::Node, place(&real.outcome), place(&ours.outcome));
    match (&real.outcome, &ours.outcome) {
        (Outcome::Unschedulable { unschedulable: real, .. }, Outcome::Unschedulable { unschedulable: ours, .. }) => {
            say(Level::Words, real.clone(), ours.clone());
        }
        (
            Outcome::Bound { evaluated, feasible, .. },
            Outcome::Bound { evaluated: our_evaluated, feasible: our_feasible, .. },
        ) => {
            let words = |evaluated: &u64, feasible: &u64| format!("{feasible} of {evaluated} nodes fit");
            say(Level::Counts, words(evaluated, feasible), words(our_evaluated, our_feasible));
            if let (Some(real), Some(ours)) = (&real.scores, &ours.scores) {
                let (real, ours) = told_apart(real, ours);
                say(Level::Scores, real, ours);
            }
        }
        _ => {}
    }
}

/// Where a pod goes, or who makes room for it.
fn place(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Bound { node, .. } => format!("goes to {node}"),
        Outcome::Unschedulable { nominated: Some(node), victims, .. } => {
            format!("is nominated for {node}, whose {} go", victims.join(", "))
        }
        Outcome::Unschedulable { nominated: None, .. } => "fits nowhere".into(),
        Outcome::Failed { error } => format!("fails: {error}"),
    }
}

/// Two tables of scores as texts that hold only what differs.
fn told_apart(real: &Scores, ours: &Scores) -> (String, String) {
    if real.nodes != ours.nodes {
        return (format!("scores {:?}", real.nodes), format!("scores {:?}", ours.nodes));
    }
    // A plugin that gives every node nothing may as well have been skipped: DynamicResources always is there, and has
    // nothing to say of pods without claims.
    let speaks = |column: &&Vec<i64>| column.iter().any(|score| *score != 0);
    let column = |scores: &Scores, plugin: &str| {
        let found = scores.plugins.iter().find(|(known, _)| known == plugin);
        found.map(|(_, column)| column).filter(speaks).cloned()
    };
    let mut names: Vec<&String> = real.plugins.iter().chain(&ours.plugins).map(|(name, _)| name).collect();
    names.sort();
    names.dedup();
    let (mut left, mut right) = (String::new(), String::new());
    for name in names {
        let (real, ours) = (column(real, name), column(ours, name));
        if real != ours {
            left.push_str(&format!("{name} {real:?} "));
            right.push_str(&format!("{name} {ours:?} "));
        }
    }
    if !left.is_empty() {
        let nodes = format!("for {:?}", real.nodes);
        left.push_str(&nodes);
        right.push_str(&nodes);
    }
    (left, right)
}
