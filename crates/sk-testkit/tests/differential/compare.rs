//! Our scheduler's answers beside the real one's, attempt by attempt.

use std::fmt;

use sk_testkit::scheduling::attempt::{Attempt, Outcome, Scores};
use sk_testkit::scheduling::recorded::Answers;
use sk_testkit::scheduling::{SchedulingScenario, Step};

use crate::ours::{Answer, Instead, Ours};

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
    /// Attempts that a node's going caused. The real scheduler moves the pods that wait for it first, and forgets the node
    /// then (`eventhandlers.go`, `deleteNodeFromCache`), so whether an attempt still sees the node is a race. Of these only
    /// is compared that they are made.
    pub(crate) raced: usize,
    /// What differs.
    pub(crate) differences: Vec<Difference>,
}

/// How much the real scheduler leaves to chance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Chance {
    /// Nothing: every answer must be ours.
    Nothing,
    /// Under its default flags, in which order it looks at nodes: of nodes with equal scores it may take any, and of several
    /// ways to make room any. The nodes that fit, their scores and the words must be ours. All nodes must be looked at, so
    /// there may be at most a hundred.
    Order,
}

/// Asks our scheduler what the real one was asked.
pub(crate) fn compare(scenario: &SchedulingScenario, answers: &Answers, chance: Chance) -> Verdict {
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
        let difference = |pod: &str, level: Level, real: String, ours: String| {
            let (scenario, pod) = (scenario.name.clone(), pod.to_owned());
            Difference { scenario, step: index + 1, pod, level, real, ours }
        };
        let node_goes = matches!(step, Step::Delete(target) if target.0.gvk.kind.as_str() == "Node");
        // A recording, which has no clock, is judged as it stands.
        let is_race = node_goes && attempts.iter().any(|attempt| attempt.at.is_some());
        if is_race {
            verdict.raced += attempts.len();
        } else {
            verdict.attempts += attempts.len();
        }
        for attempt in attempts {
            verdict.placements += usize::from(!is_race && matches!(attempt.outcome, Outcome::Bound { .. }));
            ours.set_clock(attempt.at);
            ours.learn(&attempt.events);
            let found = &mut verdict.differences;
            match ours.take(&attempt.pod) {
                Err(instead) if is_judged(&instead, attempt) => {
                    found.push(difference(&attempt.pod, Level::Retries, "tries it".into(), instead.to_string()));
                }
                Err(_) | Ok(()) => {}
            }
            let answer = ours.decide(&attempt.pod);
            let mut report = |level, real, ours| found.push(difference(&attempt.pod, level, real, ours));
            if !is_race {
                judge(&by_chance(attempt, &answer, chance), &answer, &mut report);
            }
            ours.carry_out(&answer, &attempt.outcome);
        }
        ours.learn_all();
        for pod in ours.ready() {
            let found = difference(&pod, Level::Retries, "does not try it".into(), "we would try it now".into());
            verdict.differences.push(found);
        }
        ours.start_bound();
    }
    verdict
}

/// Whether our queue's answer is judged. Of pods that are ready at a time the real queue takes those first whose back-off
/// has ended by the second in which the event came, and takes one while its goroutines still put others in: live, the
/// order hangs on microseconds. Recordings have no clock, and there it is judged.
fn is_judged(instead: &Instead, attempt: &Attempt) -> bool {
    match instead {
        Instead::Nothing => true,
        Instead::Before(_) => attempt.at.is_none(),
    }
}

/// The real answer as it would be if chance had fallen our way, where chance has a say.
fn by_chance(real: &Attempt, ours: &Answer, chance: Chance) -> Attempt {
    let mut real = real.clone();
    if chance == Chance::Nothing {
        return real;
    }
    match (&mut real.outcome, &ours.outcome) {
        (Outcome::Bound { node, .. }, Outcome::Bound { node: our_node, .. }) => {
            let total = |node: &str| {
                let scores = ours.scores.as_ref()?;
                Some(scores.totals[scores.nodes.iter().position(|known| known == node)?])
            };
            if total(node).is_some_and(|total_of_its| Some(total_of_its) == total(our_node)) {
                node.clone_from(our_node);
            }
        }
        (
            Outcome::Unschedulable { nominated: nominated @ Some(_), victims, .. },
            Outcome::Unschedulable { nominated: our_node @ Some(_), victims: our_victims, .. },
        ) => (*nominated, *victims) = (our_node.clone(), our_victims.clone()),
        _ => {}
    }
    if let (Some(real), Some(ours)) = (&mut real.scores, &ours.scores) {
        *real = in_order_of(&ours.nodes, real);
    }
    real
}

/// A table of scores with its nodes in this order; those that are not in it stay at the end.
fn in_order_of(nodes: &[String], scores: &Scores) -> Scores {
    let place = |name: &String| nodes.iter().position(|known| known == name).unwrap_or(usize::MAX);
    let mut order: Vec<usize> = (0..scores.nodes.len()).collect();
    order.sort_by_key(|index| place(&scores.nodes[*index]));
    let sorted = |column: &Vec<i64>| order.iter().filter_map(|index| column.get(*index).copied()).collect();
    Scores {
        nodes: order.iter().map(|index| scores.nodes[*index].clone()).collect(),
        plugins: scores.plugins.iter().map(|(plugin, column)| (plugin.clone(), sorted(column))).collect(),
        totals: sorted(&scores.totals),
    }
}

fn judge(real: &Attempt, ours: &Answer, report: &mut impl FnMut(Level, String, String)) {
    let mut say = |level, real_says: String, we_say: String| {
        if real_says != we_say {
            report(level, real_says, we_say);
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
