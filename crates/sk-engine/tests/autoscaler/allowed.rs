//! Where the real autoscaler was random or its rig shows, and what is therefore allowed; and what is known to differ.
//!
//! Both lists may only shrink. Nothing is compared loosely: with the listed seed and rig a scenario comes out as recorded, to
//! the last event. What a scenario may need beyond the usual seed and rig is granted by a sentence of the recordings' README,
//! which a test looks up there; where that sentence is a general one, the recording's own lines say why it applies.

use std::fmt::Write as _;

use sk_testkit::autoscaling;

use crate::player::Rig;

/// How far the list of pods and the watch of them were apart at most; `rig` holds it against what was measured.
pub(crate) const POD_RACE_MS: i64 = 50;

/// A sentence of the recordings' README that allows something.
#[derive(Debug)]
pub(crate) struct Ground {
    /// The heading under which it stands.
    section: &'static str,
    quote: &'static str,
}

const TIES: Ground = Ground { section: "Scale-up rules", quote: "ties fall either way" };
const PACKED_ANEW: Ground = Ground { section: "Scale-up rules", quote: "pods are packed on them anew each time" };
const MIXED_SIZES: Ground = Ground {
    section: "Scale-up rules",
    quote: "the new packing differs from loop to loop (seen in the log, c11-2) and can be worse than the estimate",
};
const ORDER: Ground =
    Ground { section: "Scale-down rules", quote: "Candidate order is not by utilisation nor age (d3, d4, a1)" };
const NEVER_READY: Ground =
    Ground { section: "Format", quote: "2 of 246 nodes (c1 m-10, c10 m-7) never became Ready in the record" };
const LATE_NODES: Ground = Ground { section: "Format", quote: "10 were 1.5-2.1 s late" };
const TARGET_SIZE: Ground = Ground {
    section: "Format",
    quote: "the target size is the number of node objects, so an informer lag right after a scale-up can ask for the same node \
            again (g2-…-true: 7 instead of 6 nodes)",
};
const CLOCK: Ground = Ground { section: "Format", quote: "Times are seconds; 0 is the start of CA's first loop" };
const RAN_ONCE: Ground =
    Ground { section: "Format", quote: "Most scenarios ran once: what is random there shows one outcome" };
const BUSY: Ground = Ground {
    section: "What the real cluster-autoscaler 1.36.1 does",
    quote: "The machine was busy (load 10-15 on 2 cores)",
};

/// What one scenario needs to come out as recorded.
#[derive(Clone, Debug, Default)]
pub(crate) struct Allowed {
    grounds: Vec<&'static Ground>,
    /// What the recording's own lines say about it.
    lines: &'static str,
    /// The seed that gives what was seen; 0: chance has no part in it.
    pub(crate) seed: u64,
    /// The latencies of the rig that give what was seen.
    pub(crate) rig: Rig,
    /// Compared until then.
    pub(crate) until: Option<f64>,
    /// Compared more closely than must be.
    pub(crate) tight: bool,
}

impl Allowed {
    /// Lots were drawn: this seed gives what was seen.
    fn drawn(ground: &'static Ground, seed: u64) -> Self {
        Self { grounds: vec![ground], seed, ..Self::default() }
    }

    fn and(mut self, ground: &'static Ground) -> Self {
        self.grounds.push(ground);
        self
    }

    /// The recording's own lines say so.
    fn lines(mut self, lines: &'static str) -> Self {
        self.lines = lines;
        self
    }

    /// Some nodes were late.
    fn with_late_nodes(mut self) -> Self {
        self.rig.ready_ms = 500;
        self.and(&LATE_NODES)
    }

    /// A node never became ready: only what happened before that is compared.
    fn until_a_node_fails(self, secs: f64) -> Self {
        self.and(&NEVER_READY).until(secs)
    }

    /// Only what happened before that is compared.
    pub(crate) fn until(mut self, secs: f64) -> Self {
        self.until = Some(secs);
        self
    }

    /// The autoscaler's list of pods was behind the watch that starts its loops, or ahead of it, by chance.
    fn with_pod_race(mut self) -> Self {
        self.rig.race_ms = POD_RACE_MS;
        self.and(&BUSY).and(&RAN_ONCE)
    }

    /// The provider did not see so many new nodes in the loop after its first scale-up.
    fn with_unseen_nodes(mut self, nodes: usize) -> Self {
        self.rig.unseen_nodes = nodes;
        self.and(&TARGET_SIZE)
    }

    /// The first loop was at this phase of the clock, which the recording does not have, and pods came when it has them.
    fn with_clock(mut self, phase_ms: i64, steps: u64) -> Self {
        (self.rig.phase_ms, self.rig.steps) = (phase_ms, steps);
        self.and(&CLOCK)
    }

    /// The same, compared more closely.
    pub(crate) fn tightly(&self) -> Self {
        Self { tight: true, ..self.clone() }
    }

    /// The grounds in words.
    pub(crate) fn why(&self) -> String {
        let quotes: Vec<String> = self.grounds.iter().map(|ground| format!("“{}”", ground.quote)).collect();
        let mut why = quotes.join("; ");
        if let Some(until) = self.until {
            write!(why, "; compared until {until} s").expect("a text grows");
        }
        if !self.lines.is_empty() {
            write!(why, ". Its lines: {}", self.lines).expect("a text grows");
        }
        why
    }
}

/// What is allowed in a scenario; `None`: nothing.
pub(crate) fn of(scenario: &str) -> Option<Allowed> {
    let allowed = match scenario {
        "b-least-waste-equal-groups" => Allowed::drawn(&TIES, 409),
        "b-random-equal-groups" => Allowed::drawn(&TIES, 106),
        "b-least-waste-small-capped" => Allowed::drawn(&PACKED_ANEW, 2)
            .lines("which of equal pods is left over, and so told of the second scale-up"),
        "b-most-pods-small-big" => Allowed::drawn(&TIES, 8),
        "c1-binpack-mixed" => Allowed::drawn(&MIXED_SIZES, 217).until_a_node_fails(47.0),
        "c10-one-size-slow-nodes" => Allowed::drawn(&PACKED_ANEW, 28).with_pod_race().until_a_node_fails(59.0).lines(
            "p18#12 is told of 6->7 within half a second of its creation; so young a pod is helped only beside an older one, so two \
             pods were left over from ten places and the loop, which p18#11 or p18#12 started, had read both",
        ),
        // Where the pods then went is the scheduler's: the further node, which was ready last, ended empty.
        "c11-mixed-from-zero-1" | "c11-mixed-from-zero-3" => Allowed::drawn(&MIXED_SIZES, 6).with_late_nodes(),
        "c5-two-groups-needed" => Allowed::drawn(&TIES, 4).lines("both options waste 62.30 %"),
        "c7-max-nodes-per-scaleup" => {
            Allowed::drawn(&PACKED_ANEW, 2).lines("which of equal pods is left over, and so told of each scale-up")
        }
        "c9-binpack-old-node" => Allowed::drawn(&MIXED_SIZES, 10).with_late_nodes(),
        "d3-order-drain1" => Allowed::drawn(&ORDER, 5),
        "d4-drain3" => Allowed::drawn(&ORDER, 14),
        "e1-blockers" => Allowed::drawn(&ORDER, 3).lines("which of the nodes under one budget is tried first"),
        "e2-blockers-skip-off" => Allowed::drawn(&ORDER, 18).lines("which of the nodes under one budget is tried first"),
        "f5-scan-20s" => Allowed { seed: 1, ..Allowed::default() }.with_pod_race().lines(
            "a pod started the loop of 52.0, and it was p3, because p2 had been refused 19 s before and only the last 10 s count; the \
             loop found p2 alone unschedulable and says nothing of p3, so its list of pods was behind the watch",
        ),
        "g1-taints-labels" => Allowed::drawn(&TIES, 5).lines("plain and labelled waste the same"),
        "g2-spread-zones-balance-false" | "g2-spread-zones-balance-ignore-label" => {
            Allowed::drawn(&TIES, 8).lines("za, zb and zc waste the same")
        }
        "g2-spread-zones-balance-true" => Allowed::drawn(&TIES, 14)
            .with_unseen_nodes(1)
            .lines("`Upcoming 5 nodes` in the loop after za 0->6, and then za 5->6 makes the seventh node"),
        "g3-nospread-balance-ignore-label" => Allowed::drawn(&TIES, 3).lines("za, zb and zc waste the same"),
        "g3-nospread-balance-true" => Allowed::drawn(&TIES, 4).lines("za, zb and zc waste the same"),
        "g6-spread-zones-one-each-balance-false" => Allowed::drawn(&TIES, 110).and(&PACKED_ANEW),
        "g6-spread-zones-one-each-balance-ignore-label" => Allowed::drawn(&TIES, 20).and(&PACKED_ANEW),
        "g6-spread-zones-one-each-balance-true" => Allowed::drawn(&TIES, 869).and(&PACKED_ANEW),
        "k1-daemonset-in-template" => Allowed::drawn(&MIXED_SIZES, 3)
            .lines("in the loop of 20.3 one pod has a place and 2->3 is for one of 3400m: the place went to one of 3500m"),
        _ => return None,
    };
    Some(allowed)
}

/// A scenario that is known to differ.
pub(crate) struct Different {
    pub(crate) scenario: &'static str,
    /// The seed and the rig that come nearest.
    pub(crate) nearest: Allowed,
    /// All that differs then.
    pub(crate) left: &'static [&'static str],
    pub(crate) why: &'static str,
}

/// The scenarios that are known to differ.
pub(crate) fn different() -> Vec<Different> {
    vec![Different {
        scenario: "f7-trickle",
        nearest: Allowed::drawn(&PACKED_ANEW, 445).with_clock(900, 10),
        left: &["no event TriggeredScaleUp w: pod triggered scale-up: [{t 10->11 (max: 20)}]"],
        why: "ages of pods count in whole seconds, and the recording does not say at which part of a second its first loop was: at \
              about 0.9 s, because w#1, of 3.1 s, was too young in the loop of 5.0 s and w#5, of 7.1 s, no longer in that of 8.1 s. \
              With that, and with pods that come when the recording has them, seed 445 gives the seven scale-ups, all sizes and \
              times and every other event. Which of equal pods is left over is drawn in every loop, and no seed is known that \
              draws all of them: seed 445 leaves over a pod in the loop of 12.5 s that had been told before, where the real one \
              left over w#8; seed 1160 draws that one and another in the loop of 8.1 s",
    }]
}

/// The text of one section of the README, with single spaces.
fn section(readme: &str, name: &str) -> Option<String> {
    let mut sections = readme.split("\n#").map(|text| text.trim_start_matches(['#', ' ']));
    let found = sections.find(|text| text.starts_with(name))?;
    Some(found.split_whitespace().collect::<Vec<_>>().join(" "))
}

#[test]
fn every_allowance_quotes_the_recordings_readme() {
    let readme = autoscaling::readme();
    let mut wrong = Vec::new();
    for seen in autoscaling::all() {
        let Some(allowed) = of(&seen.scenario) else { continue };
        assert!(!allowed.grounds.is_empty(), "{} is allowed for no reason", seen.scenario);
        assert!(different().iter().all(|known| known.scenario != seen.scenario), "{} is either", seen.scenario);
        for ground in allowed.grounds {
            let quote = ground.quote.split_whitespace().collect::<Vec<_>>().join(" ");
            if !section(&readme, ground.section).is_some_and(|text| text.contains(&quote)) {
                wrong.push(format!("{}: the section {} does not say: {quote}", seen.scenario, ground.section));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
