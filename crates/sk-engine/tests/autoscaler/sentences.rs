//! The rules that the recordings' README has in words, sentence by sentence, each with what of the model would have to be
//! left out for it not to hold, and the recording that would notice.
//!
//! The list goes into docs/fidelity.md. A test holds it against the switches: none is without a sentence.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use sk_engine::Rule;
use sk_testkit::autoscaling;

use crate::one_flag;
use crate::rules::{BY_FLAG, shows_in};

/// What stands for a sentence.
enum Cover {
    /// A switch of the model.
    Rule(Rule),
    /// A flag with another value than the recording has.
    Flag(&'static str),
    /// A flag by itself in a small cluster, because no recording shows it.
    OneFlag(&'static str),
    /// Words: it follows from others, or its scenario is not among the recordings.
    Words(&'static str),
}

use Cover::{Flag, OneFlag, Rule as Switch, Words};

type Sentence = (&'static str, &'static [Cover]);

const SCALE_UP: &[Sentence] = &[
    ("A pod that appears starts a loop at once.", &[Switch(Rule::PodsStartLoops)]),
    ("While all unschedulable pods are younger than 2 s, the loop waits.", &[Switch(Rule::YoungPodsWait)]),
    (
        "The next loop is a scan interval later, because the timer restarts.",
        &[Switch(Rule::TimerRestarts), Flag("scan-interval")],
    ),
    ("With older pending pods around, young ones are helped at once.", &[Switch(Rule::OldPodsBringYoung)]),
    ("Without frequent loops only the timer starts them.", &[Flag("frequent-loops-enabled")]),
    (
        "A loop follows a scale-up, and the start of a scale-down, at once.",
        &[Switch(Rule::LoopFollowsScaleUp), Switch(Rule::LoopFollowsScaleDown)],
    ),
    ("One loop enlarges one group, with salvo several.", &[Flag("salvo-scale-up")]),
    ("Estimate: first fit decreasing on template nodes.", &[Switch(Rule::LargestPodsFirst)]),
    ("Capped by the group's room,", &[Switch(Rule::GroupMaximum)]),
    ("by max-nodes-total,", &[Flag("max-nodes-total"), Switch(Rule::ReadyNodesFillTheCluster)]),
    (
        "by max-nodes-per-scaleup and by cores-total.",
        &[Flag("max-nodes-per-scaleup"), Flag("cores-total"), OneFlag("memory-total")],
    ),
    ("Pods that do not fit under the cap stay and are told later.", &[Switch(Rule::RefusedAfterScaleUp)]),
    (
        "The template is the provider's until a node has been ready for a minute, then that node.",
        &[Switch(Rule::TemplateAfterAMinute), Switch(Rule::TemplateFromNode)],
    ),
    ("It is cleaned of soft taints.", &[Switch(Rule::TemplateLosesSoftTaint)]),
    ("DaemonSet pods are in the template.", &[Switch(Rule::DaemonsInTemplate)]),
    ("Upcoming nodes count as empty template nodes in every loop.", &[Switch(Rule::UpcomingNodes)]),
    ("Pods are packed on them anew, which may call for a further node.", &[Switch(Rule::PackedInAnyOrder)]),
    ("Equal pods: exact.", &[Words("follows from the two above; the swarm checks it for random sizes")]),
    ("Nodes whose pods vanish are still awaited.", &[Switch(Rule::StartingNodesStay)]),
    (
        "Nodes that never become ready count for max-node-startup-time, then pods ask again in the same group.",
        &[Switch(Rule::StartupTime), Flag("max-node-startup-time")],
    ),
    (
        "Over 45 % and more than 3 unready: everything stops.",
        &[Switch(Rule::ClusterHealth), Flag("ok-total-unready-count"), Flag("max-total-unready-percentage")],
    ),
    (
        "least-waste: the mean of wasted CPU and memory over all new nodes, of pods alone.",
        &[Switch(Rule::BothWastesCount), Switch(Rule::ResidentsAreWaste)],
    ),
    ("least-waste, most-pods, least-nodes, random and priority choose as named.", &[Flag("expander")]),
    ("Ties fall either way.", &[Switch(Rule::TiesAreDrawn)]),
    ("priority hands what is left to the next expander, else to chance.", &[Words("a unit test of the chain")]),
    ("A group at its maximum is no option.", &[Switch(Rule::GroupMaximum)]),
    ("Preferred affinity is ignored.", &[Switch(Rule::PreferencesDoNotCount)]),
    (
        "Required affinity, selectors, taints, host anti-affinity, pod slots and spread are simulated.",
        &[
            Switch(Rule::PodsAreFiltered),
            Switch(Rule::NodeAffinityFilters),
            Switch(Rule::TaintsFilter),
            Switch(Rule::PodAffinityFilters),
            Switch(Rule::PodSlotsFilter),
            Switch(Rule::SpreadFilters),
        ],
    ),
    (
        "Zone spread: only the zones of existing nodes and of the template count.",
        &[Switch(Rule::SpreadFilters), Words("g2 shows it: all nodes in one zone")],
    ),
    (
        "Balancing needs equal labels but for zone and host, or balancing-ignore-label.",
        &[
            Flag("balance-similar-node-groups"),
            Flag("balancing-ignore-label"),
            Switch(Rule::ChosenGroupGetsTheRest),
            Switch(Rule::SimilarGroupsTakeThePods),
        ],
    ),
    (
        "NotTriggerScaleUp counts groups per reason, once per pod.",
        &[Switch(Rule::ToldOnce), Words("every message is compared")],
    ),
    ("Pods that triggered a capped scale-up get it too.", &[Switch(Rule::RefusedAfterScaleUp)]),
    ("A group below its minimum is filled only with the flag.", &[Flag("enforce-node-group-min-size")]),
    (
        "Expendable pods: no scale-up, no event, no room taken.",
        &[Switch(Rule::ExpendablePods), Flag("expendable-pods-priority-cutoff")],
    ),
    ("Pods with a nominated node are not helped; preempted ones are.", &[Switch(Rule::NominatedPodsWait)]),
    (
        "new-pod-scale-up-delay: the first loop after that age; younger pods take room all the same.",
        &[Flag("new-pod-scale-up-delay"), Switch(Rule::NewPodsTakeRoom)],
    ),
];

const SCALE_DOWN: &[Sentence] = &[
    (
        "The larger share of CPU and memory counts; at the threshold a node may go.",
        &[Switch(Rule::LargerShareCounts), Flag("scale-down-utilization-threshold")],
    ),
    ("DaemonSet pods count, or are taken from both sides.", &[Flag("ignore-daemonsets-utilization")]),
    (
        "The soft taint comes in the loop that finds a node unneeded, ten per loop, and is taken back.",
        &[Flag("max-bulk-soft-taint-count"), Switch(Rule::SoftTaintsInBulk), Switch(Rule::SoftTaintsTakenBack)],
    ),
    (
        "The time restarts from 0 and runs on in cooldowns and removals.",
        &[Switch(Rule::UnneededTimeRestarts), Switch(Rule::TimeRunsInCooldown), Switch(Rule::TimeRunsDuringRemovals)],
    ),
    ("A node goes in the first loop after scale-down-unneeded-time.", &[Flag("scale-down-unneeded-time")]),
    (
        "A node found unremovable in simulation is left alone, even if it becomes empty; a used one is looked at in every loop.",
        &[Switch(Rule::RecheckTimeout), Flag("unremovable-node-recheck-timeout"), Switch(Rule::UsedNodesEveryLoop)],
    ),
    (
        "Simulation is cumulative and uses up budgets; empty nodes first; a node that goes is no destination.",
        &[
            Switch(Rule::CumulativeSimulation),
            Switch(Rule::BudgetsUsedUp),
            Switch(Rule::EmptyNodesFirst),
            Switch(Rule::NoDestination),
        ],
    ),
    (
        "Candidates come in any order, and go in any.",
        &[Switch(Rule::CandidatesInAnyOrder), Switch(Rule::RemovedInAnyOrder)],
    ),
    (
        "Removal: taint and cordon; 5 s later gone, or all pods evicted at once, DaemonSets' too, with bounded grace; then polled.",
        &[
            Flag("cordon-node-before-terminating"),
            Switch(Rule::DelayAfterTaint),
            Flag("node-delete-delay-after-taint"),
            Switch(Rule::AllPodsAtOnce),
            Flag("daemonset-eviction-for-occupied-nodes"),
            Flag("max-graceful-termination-sec"),
            Switch(Rule::DrainPolls),
        ],
    ),
    (
        "At most so many removals and drains at once, empty ones beside a drain; those in flight count.",
        &[
            Flag("max-scale-down-parallelism"),
            Flag("max-drain-parallelism"),
            Switch(Rule::EmptyBesideDrain),
            Switch(Rule::RemovalsCountForParallelism),
        ],
    ),
    ("Only so many nodes are followed as unneeded.", &[Switch(Rule::UnneededLimit)]),
    (
        "delay-after-add counts from the decision, for all groups.",
        &[
            Switch(Rule::DelayAfterAdd),
            Switch(Rule::DelayFromDecision),
            Flag("scale-down-delay-after-add"),
            Flag("scale-down-delay-type-local"),
        ],
    ),
    (
        "delay-after-delete counts from the start of the deletion.",
        &[Flag("scale-down-delay-after-delete"), Switch(Rule::DelayFromTaint)],
    ),
    (
        "A node in removal is not used for pending pods; a scale-up does not stop a drain.",
        &[Words("`unrecorded` has a small cluster for it")],
    ),
    (
        "A drain that fails is taken back 40 s after eviction, and the node's time restarts; delay-after-failure has no effect.",
        &[Switch(Rule::DrainFails), Switch(Rule::FailedDrainStartsAnew), Switch(Rule::FailureHoldsNothingBack)],
    ),
    (
        "What blocks a node: bare pods, safe-to-evict, budgets, the annotation, local storage, system pods.",
        &[
            Switch(Rule::BarePodsBlock),
            Switch(Rule::UnsafePodsBlock),
            Switch(Rule::SafePodsMove),
            Switch(Rule::BudgetsBlock),
            Switch(Rule::MarkedNodesStay),
            Switch(Rule::MemoryVolumesMove),
            Switch(Rule::SafeVolumesMove),
            Switch(Rule::GuardedSystemPodsMove),
        ],
    ),
    (
        "What the skip-nodes-with-* flags change.",
        &[
            Flag("skip-nodes-with-system-pods"),
            Flag("skip-nodes-with-local-storage"),
            Flag("skip-nodes-with-custom-controller-pods"),
        ],
    ),
    ("The minimum of a group, removals counted.", &[Switch(Rule::MinimumStays), Switch(Rule::RemovalsCountForMinimum)]),
    (
        "Job, StatefulSet, mirror and finished pods keep no node.",
        &[Switch(Rule::OwnedPodsMove), Switch(Rule::MirrorPodsGo), Switch(Rule::FinishedPodsAreGone)],
    ),
    ("min-replica-count.", &[OneFlag("min-replica-count")]),
    ("A budget that allows one lets a node with three of its pods go.", &[Switch(Rule::BudgetMovesWholeNodes)]),
];

/// The cover in words: what is left out, and where that shows.
fn in_words(cover: &Cover) -> String {
    match cover {
        Switch(rule) => {
            let unshown = match rule {
                Rule::TemplateLosesSoftTaint => "no recording can; a unit test of ours",
                Rule::SimilarGroupsTakeThePods => "a small cluster",
                _ => "nothing notices it yet",
            };
            let shown = shows_in(*rule).map_or(unshown, short);
            format!("{rule:?} ({shown})")
        }
        Flag(flag) => {
            let shown: BTreeSet<&str> =
                BY_FLAG.iter().filter(|(known, ..)| known == flag).map(|(_, in_, _)| short(in_)).collect();
            format!("`{flag}` ({})", Vec::from_iter(shown).join(", "))
        }
        OneFlag(flag) => format!("`{flag}` (a small cluster)"),
        Words(words) => (*words).to_owned(),
    }
}

/// A scenario as the README calls it: `g6-…-balance-true` stays, `a1-nginx-story` is a1.
fn short(scenario: &'static str) -> &'static str {
    let starts_like = |name: &str| autoscaling::all().iter().filter(|seen| seen.scenario.starts_with(name)).count();
    let short = scenario.split_once('-').map_or(scenario, |(short, _)| short);
    if starts_like(&format!("{short}-")) == 1 { short } else { scenario }
}

fn all() -> impl Iterator<Item = &'static Sentence> {
    SCALE_UP.iter().chain(SCALE_DOWN)
}

#[test]
fn every_switch_stands_for_a_sentence_of_the_recordings_readme() {
    let covers = || all().flat_map(|(_, covers)| covers.iter());
    let rules: Vec<Rule> =
        covers().filter_map(|cover| if let Switch(rule) = cover { Some(*rule) } else { None }).collect();
    let idle: Vec<&Rule> = Rule::ALL.iter().filter(|rule| !rules.contains(rule)).collect();
    assert!(idle.is_empty(), "these rules stand for nothing that was observed: {idle:?}");
    let flags: BTreeSet<&str> =
        covers().filter_map(|cover| if let Flag(flag) = cover { Some(*flag) } else { None }).collect();
    assert_eq!(flags, BY_FLAG.iter().map(|(flag, ..)| *flag).collect(), "the sentences and the flags that show");
    let alone = covers().filter_map(|cover| if let OneFlag(flag) = cover { Some(*flag) } else { None });
    assert!(alone.into_iter().all(one_flag::is_tried), "they are tried");
}

#[test]
fn the_docs_list_every_sentence_with_its_switch() {
    let mut table = "| what was observed | left out by (noticed in) |\n|---|---|\n".to_owned();
    for (sentence, covers) in all() {
        let covers: Vec<String> = covers.iter().map(in_words).collect();
        writeln!(table, "| {sentence} | {} |", covers.join("; ")).expect("a text grows");
    }
    autoscaling::docs_section("fidelity.md", "autoscaler-rules", &table).unwrap_or_else(|error| panic!("{error}"));
}
