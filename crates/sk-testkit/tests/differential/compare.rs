//! Our scheduler's answers beside the real one's, attempt by attempt.

use std::collections::BTreeSet;
use std::fmt;

use sk_testkit::scenario::Target;
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
    /// Of these, those that a node's going caused. The real scheduler moves the pods that wait for it first, and forgets the
    /// node then (`eventhandlers.go`, `deleteNodeFromCache`), so whether an attempt still sees the node is a race. It must
    /// be answered as ours is with the node or without it, and once without it, always.
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
    let mut comparison = Comparison { scenario, chance, step: 0, worlds: Vec::new(), verdict: Verdict::default() };
    let mut played = Ours::new(scenario).map(|ours| comparison.worlds.push(ours));
    for (step, attempts) in scenario.steps.iter().zip(answers) {
        comparison.step += usize::from(played.is_ok());
        played = played.and_then(|()| comparison.step(step, attempts));
    }
    if let Err(reason) = played {
        let found = comparison.difference("-", Level::Input, "took it".into(), reason);
        comparison.verdict.differences.push(found);
    }
    comparison.verdict
}

/// A comparison that is under way.
struct Comparison<'a> {
    scenario: &'a SchedulingScenario,
    chance: Chance,
    /// Which step, counted from 1.
    step: usize,
    /// Our scheduler, once for each way in which the race for a node that goes may have ended. Nearly always one is left
    /// after the next attempt, whose words tell the number of nodes.
    worlds: Vec<Ours>,
    verdict: Verdict,
}

impl Comparison<'_> {
    fn difference(&self, pod: &str, level: Level, real: String, ours: String) -> Difference {
        Difference { scenario: self.scenario.name.clone(), step: self.step, pod: pod.to_owned(), level, real, ours }
    }

    fn step(&mut self, step: &Step, attempts: &[Attempt]) -> Result<(), String> {
        // A recording, which has no clock, is judged as it stands.
        let going = match step {
            Step::Delete(target) if attempts.iter().any(|attempt| attempt.at.is_some()) => node_of(target),
            _ => None,
        };
        for ours in &mut self.worlds {
            ours.set_clock(attempts.first().and_then(|attempt| attempt.at));
            match going {
                Some(node) => ours.announce_going(node)?,
                None => ours.act(step)?,
            }
        }
        self.verdict.attempts += attempts.len();
        self.verdict.raced += if going.is_some() { attempts.len() } else { 0 };
        for attempt in attempts {
            self.verdict.placements += usize::from(matches!(attempt.outcome, Outcome::Bound { .. }));
            self.attempt(attempt);
        }
        self.end_step();
        Ok(())
    }

    /// Has every world answer, and keeps those that answer as the real scheduler did.
    fn attempt(&mut self, attempt: &Attempt) {
        let mut answered = Vec::new();
        for mut ours in std::mem::take(&mut self.worlds) {
            if ours.is_node_going() {
                let mut gone = ours.clone();
                gone.forget_going();
                answered.push((self.answer(&mut gone, attempt), gone));
            }
            answered.push((self.answer(&mut ours, attempt), ours));
        }
        self.keep_best(answered);
    }

    fn answer(&self, ours: &mut Ours, attempt: &Attempt) -> Vec<Difference> {
        let mut found = Vec::new();
        ours.set_clock(attempt.at);
        ours.learn(&attempt.events);
        match ours.take(&attempt.pod) {
            Err(instead) if is_judged(&instead, attempt) => {
                found.push(self.difference(&attempt.pod, Level::Retries, "tries it".into(), instead.to_string()));
            }
            Err(_) | Ok(()) => {}
        }
        let answer = ours.decide(&attempt.pod);
        let mut report = |level, real, ours| found.push(self.difference(&attempt.pod, level, real, ours));
        judge(&by_chance(attempt, &answer, self.chance), &answer, &mut report);
        ours.carry_out(&answer, &attempt.outcome);
        found
    }

    fn end_step(&mut self) {
        let mut answered = Vec::new();
        for mut ours in std::mem::take(&mut self.worlds) {
            ours.forget_going();
            ours.learn_all();
            let say = |pod: String| {
                self.difference(&pod, Level::Retries, "does not try it".into(), "we would try it now".into())
            };
            let found = ours.ready().into_iter().map(say).collect();
            ours.start_bound();
            answered.push((found, ours));
        }
        self.keep_best(answered);
        // What is left of a race that nothing has shown yet is where the next search starts.
        let mut starts = BTreeSet::new();
        self.worlds.retain(|ours| starts.insert(ours.search_start()));
    }

    /// Keeps the worlds in which nothing differs; if there is none, the one in which the least does.
    fn keep_best(&mut self, answered: Vec<(Vec<Difference>, Ours)>) {
        let least = answered.iter().map(|(found, _)| found.len()).min().unwrap_or_default();
        let mut best: Vec<(Vec<Difference>, Ours)> =
            answered.into_iter().filter(|(found, _)| found.len() == least).collect();
        if least > 0 {
            best.truncate(1);
        }
        for (found, ours) in best {
            self.verdict.differences.extend(found);
            self.worlds.push(ours);
        }
    }
}

/// The name of the node that this is.
pub(crate) fn node_of(target: &Target) -> Option<&str> {
    (target.0.gvk.kind.as_str() == "Node").then_some(target.0.key.name.as_str())
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
