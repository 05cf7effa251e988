//! What the driver writes on every new pod: its start delays and its lifetime.
//!
//! [`Mutator::decide`] decides from what the plan stamped on a pod's template, and knows no engine. The embedded
//! engine calls it in the process, through [`AdmitPod`] below; on a real cluster a mutating webhook does. Lifetimes
//! come from the trace: the n-th pod of a template gets the template's n-th recorded life, in order of their starts,
//! and after the last one again the first. Where the template is unknown (traces of format v2, changed templates), all
//! lives of the owner are used.

use std::collections::{BTreeMap, VecDeque};

use sk_core::rng::Stream;
use sk_core::template::TEMPLATE_ANNOTATION;
use sk_core::{ObjectRef, SimDuration, SimTime, SmolStr};
use sk_engine::api::directives::{self, SEQUENCE};
use sk_engine::api::{AdmitPod, Body, Object};
use sk_engine::kinds::Directives;
use sk_store::trace::{Life, OwnerLives};

use crate::initial_pods::InitialPods;
use crate::plan::{OWNER_ANNOTATION, parse_owner};

/// Annotation: the pod's number among those of its owner.
pub const SEQUENCE_ANNOTATION: SmolStr = SEQUENCE;

/// How long pods take to start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StartDelays {
    /// Fetching the image takes at least this long.
    pub image_pull: SimDuration,
    /// And up to this much longer.
    pub image_pull_jitter: SimDuration,
    /// Starting takes at least this long.
    pub startup: SimDuration,
    /// And up to this much longer.
    pub startup_jitter: SimDuration,
}

/// What is decided for one pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// From being bound until its image is there.
    pub create_delay: SimDuration,
    /// From its image being there until it is ready.
    pub ready_delay: SimDuration,
    /// The recorded life that it gets, and its number among the pods that got one of these.
    pub life: Option<(u64, Life)>,
}

impl Decision {
    /// How long the pod runs; `None`: until it is deleted.
    pub fn lifetime(&self) -> Option<SimDuration> {
        let (_, life) = self.life?;
        life.end.map(|end| end.since(life.start))
    }

    /// What the pod's containers end with; `None`: 0. Kubernetes' codes are larger than a process's only on Windows.
    fn exit_code(&self) -> Option<u8> {
        let (_, life) = self.life?;
        life.exit_code.map(|code| u8::try_from(code).unwrap_or(u8::MAX))
    }

    /// The same as the embedded engine keeps it on a pod.
    pub fn directives(&self) -> Directives {
        Directives {
            create_delay: self.create_delay,
            ready_delay: self.ready_delay,
            lifetime: self.lifetime(),
            exit_code: self.exit_code(),
            sequence: self.life.map(|(number, _)| number),
        }
    }

    /// The annotations that say so, the same on both engines.
    pub fn annotations(&self) -> impl Iterator<Item = (SmolStr, SmolStr)> {
        directives::annotations(&self.directives()).collect::<Vec<_>>().into_iter()
    }
}

/// Gives pods their delays and lives.
#[derive(Clone)]
pub struct Mutator {
    delays: StartDelays,
    /// Other delays, from when on, the next first.
    later: VecDeque<(SimTime, StartDelays)>,
    jitter: Stream,
    owners: BTreeMap<ObjectRef, Owner>,
    /// Of a cluster that begins before the clock.
    start: Option<Before>,
}

/// Before the clock.
#[derive(Clone)]
struct Before {
    /// When the clock begins.
    clock: SimTime,
    /// The places that recorded pods had then.
    pods: Option<InitialPods>,
}

#[derive(Clone, Default)]
struct Owner {
    by_template: BTreeMap<String, Lives>,
    of_any_template: Lives,
}

#[derive(Clone, Default)]
struct Lives {
    by_start: Vec<Life>,
    given: u64,
}

impl Mutator {
    /// With the lives that a trace holds. An owner may come in several rows, and a template in several of them: long rows
    /// are cut when they are written, and pods of one template may differ in the hash of SimKube 2.
    pub fn new(seed: u64, delays: StartDelays, lives: impl IntoIterator<Item = OwnerLives>) -> Self {
        let mut owners: BTreeMap<ObjectRef, Owner> = BTreeMap::new();
        for row in lives {
            let owner = owners.entry(row.owner).or_default();
            for template in row.templates {
                owner.of_any_template.by_start.extend(&template.lives);
                if let Some(id) = template.template {
                    owner.by_template.entry(id.to_string()).or_default().by_start.extend(&template.lives);
                }
            }
        }
        for owner in owners.values_mut() {
            owner.all_lives().for_each(|lives| lives.by_start.sort_unstable());
        }
        let jitter = Stream::new(seed, "pod-start");
        Self { delays, later: VecDeque::new(), jitter, owners, start: None }
    }

    /// The same, for a cluster that begins before the clock does. Pods that are made until then stand for those that there
    /// were at that moment: they get their lives, of which the rest is left, and their places if these are known.
    pub(crate) fn beginning_at(mut self, clock: SimTime, pods: Option<InitialPods>) -> Self {
        for owner in self.owners.values_mut() {
            owner.all_lives().for_each(|lives| lives.begin_at(clock));
        }
        self.start = Some(Before { clock, pods });
        self
    }

    /// The same, with other delays from some moments on, in order.
    pub(crate) fn changing(mut self, later: impl Iterator<Item = (SimTime, StartDelays)>) -> Self {
        self.later = later.collect();
        self
    }

    fn jittered(&mut self, least: SimDuration, jitter: SimDuration) -> SimDuration {
        let spread = u64::try_from(jitter.as_micros()).unwrap_or(0);
        if spread == 0 {
            return least;
        }
        let more = self.jitter.below(spread.saturating_add(1));
        least + SimDuration::from_micros(i64::try_from(more).unwrap_or(i64::MAX))
    }

    /// Decides for the next pod of a template. `owner` and `template` are what stands in the pod's annotations
    /// [`OWNER_ANNOTATION`] and [`TEMPLATE_ANNOTATION`].
    pub fn decide(&mut self, owner: Option<&str>, template: Option<&str>) -> Decision {
        self.decide_for(|| parse_owner(owner?), template)
    }

    /// The same; whose pod it is, is asked only if anybody has recorded lives.
    fn decide_for(&mut self, owner: impl FnOnce() -> Option<ObjectRef>, template: Option<&str>) -> Decision {
        let create_delay = self.jittered(self.delays.image_pull, self.delays.image_pull_jitter);
        let ready_delay = self.jittered(self.delays.startup, self.delays.startup_jitter);
        let life = if self.owners.is_empty() { None } else { self.next_life(owner(), template) };
        Decision { create_delay, ready_delay, life }
    }

    /// The next life for a pod of this template, and its number.
    fn next_life(&mut self, owner: Option<ObjectRef>, template: Option<&str>) -> Option<(u64, Life)> {
        let owner = self.owners.get_mut(&owner?)?;
        let template = template.and_then(|template| owner.by_template.get_mut(template));
        template.unwrap_or(&mut owner.of_any_template).next()
    }
}

impl Owner {
    fn all_lives(&mut self) -> impl Iterator<Item = &mut Lives> {
        self.by_template.values_mut().chain([&mut self.of_any_template])
    }
}

impl Lives {
    /// Lives that were over by then are given last.
    fn begin_at(&mut self, clock: SimTime) {
        self.by_start.sort_by_key(|life| (life.end.is_some_and(|end| end <= clock), *life));
    }

    fn next(&mut self) -> Option<(u64, Life)> {
        let count = u64::try_from(self.by_start.len()).ok().filter(|count| *count > 0)?;
        let number = self.given;
        self.given += 1;
        Some((number, self.by_start[usize::try_from(number % count).ok()?]))
    }
}

impl AdmitPod for Mutator {
    fn admit(&mut self, pod: &mut Object, now: SimTime) {
        while let Some((_, delays)) = self.later.front().copied().filter(|(from, _)| *from <= now) {
            self.delays = delays;
            self.later.pop_front();
        }
        let stamped = |name: &str| pod.meta.annotations.get(name).map(SmolStr::as_str);
        // A pod that nobody has made is the recorded object itself.
        let owner = || match stamped(OWNER_ANNOTATION) {
            Some(text) => parse_owner(text),
            None => pod.controller().is_none().then(|| pod.reference()),
        };
        let template = stamped(TEMPLATE_ANNOTATION);
        let decision = self.decide_for(owner, template);
        let mut directives = decision.directives();
        let place = match self.start.as_mut().filter(|start| now < start.clock) {
            Some(start) => {
                let owner = owner();
                let ends_for_good = owner.as_ref().is_some_and(|owner| owner.gvk.kind == "Job");
                directives.lifetime =
                    decision.life.and_then(|(_, life)| rest_of(life, start.clock, now, ends_for_good));
                start.pods.as_mut().and_then(|pods| pods.next(owner.as_ref(), template, &pod.key))
            }
            None => None,
        };
        if let Body::Pod(pod) = &mut pod.body {
            if place.is_some() {
                // It has been running there for a while.
                directives.create_delay = SimDuration::ZERO;
                directives.ready_delay = SimDuration::ZERO;
                pod.node_name = place;
            }
            pod.directives = Some(directives);
        }
    }

    fn fork(&self) -> Box<dyn AdmitPod> {
        Box::new(self.clone())
    }
}

/// How long a pod that is made before the clock lives from now on, so that it ends when the recorded one did. One that
/// stands for a pod of another time, because there were not so many then, lives as long as that one after the clock began;
/// but what a Job had done by then is done.
fn rest_of(life: Life, clock: SimTime, now: SimTime, ends_for_good: bool) -> Option<SimDuration> {
    let end = life.end?;
    if end <= clock && ends_for_good {
        return Some(SimDuration::ZERO);
    }
    let is_of_then = life.start < clock && end > clock;
    Some(if is_of_then { end.since(now) } else { clock.since(now) + end.since(life.start) })
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use sk_core::template::TemplateId;
    use sk_engine::api::directives::{CREATE_DELAY, LIFETIME};
    use sk_store::trace::TemplateLives;

    use super::*;

    fn pod(owner: Option<&str>) -> Object {
        let mut json = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "a", "annotations": {}},
            "spec": {"containers": []},
        });
        if let Some(owner) = owner {
            json["metadata"]["annotations"][OWNER_ANNOTATION] = json!(owner);
        }
        Object::from_json(json).unwrap()
    }

    fn lives(lengths: &[Option<i64>]) -> OwnerLives {
        let life = |(index, length): (usize, &Option<i64>)| {
            let start = SimTime::from_secs(index as i64);
            Life {
                start,
                end: length.map(|length| start + SimDuration::from_secs(length)),
                guessed: false,
                exit_code: None,
            }
        };
        let lives = lengths.iter().enumerate().map(life).collect();
        let owner = parse_owner("batch/v1.Job:a/j").unwrap();
        OwnerLives { owner, templates: vec![TemplateLives { template: None, pod_hash: None, lives }] }
    }

    #[test]
    fn a_pod_whose_life_failed_is_told_with_what() {
        let mut lives = lives(&[Some(10), Some(20)]);
        lives.templates[0].lives[0].exit_code = Some(3);
        let mut mutator = Mutator::new(1, StartDelays::default(), [lives]);
        let mut code = || mutator.decide(Some("batch/v1.Job:a/j"), None).directives().exit_code;
        assert_eq!((code(), code()), (Some(3), None));
    }

    #[test]
    fn pods_take_their_owners_lives_in_order_and_begin_again() {
        let mut mutator = Mutator::new(1, StartDelays::default(), [lives(&[Some(10), None, Some(30)])]);
        let mut admit = |owner: Option<&str>| {
            let mut pod = pod(owner);
            mutator.admit(&mut pod, SimTime::EPOCH);
            pod.annotations().get(&LIFETIME).cloned()
        };
        let given: Vec<_> = (0..4).map(|_| admit(Some("batch/v1.Job:a/j"))).collect();
        let ten = Some("10000000us".into());
        assert_eq!(given, [ten.clone(), None, Some("30000000us".into()), ten]);
        assert_eq!((admit(Some("batch/v1.Job:a/other")), admit(Some("rubbish")), admit(None)), (None, None, None));
    }

    #[test]
    fn a_pod_from_before_the_clock_ends_when_the_recorded_one_did() {
        // Lives that begin at 0, 1 and 2 s; the clock begins at 20 s, when the first is over.
        let lives = lives(&[Some(10), Some(100), None]);
        let clock = SimTime::from_secs(20);
        let mut mutator = Mutator::new(1, StartDelays::default(), [lives]).beginning_at(clock, None);
        let mut admit = |at: i64| {
            let mut pod = pod(Some("batch/v1.Job:a/j"));
            mutator.admit(&mut pod, SimTime::from_secs(at));
            pod.annotations().get(&LIFETIME).cloned()
        };
        assert_eq!(admit(5), Some("96000000us".into()), "until 101 s");
        assert_eq!(admit(5), None, "until it is deleted");
        assert_eq!(admit(30), Some("10000000us".into()), "after the clock began a life is a life");
    }

    #[test]
    fn a_known_template_has_its_own_lives() {
        let template: TemplateId = "/spec/template@00000000000000ff".parse().unwrap();
        let mut owner = lives(&[Some(10)]);
        let mut own = lives(&[Some(99)]).templates.remove(0);
        own.template = Some(template.clone());
        owner.templates.push(own);
        let mut mutator = Mutator::new(1, StartDelays::default(), [owner]);
        let mut pod = pod(Some("batch/v1.Job:a/j"));
        pod.meta.annotations.make_mut().insert(TEMPLATE_ANNOTATION.into(), template.to_string().into());
        mutator.admit(&mut pod, SimTime::EPOCH);
        assert_eq!(pod.annotations()[&LIFETIME], "99000000us");
    }

    #[test]
    fn an_owner_whose_lives_fill_several_rows_keeps_all_of_them() {
        let template: TemplateId = "/spec/template@00000000000000ff".parse().unwrap();
        let row = |start: i64| {
            let start = SimTime::from_secs(start);
            let mut row = lives(&[None]);
            row.templates[0].template = Some(template.clone());
            row.templates[0].lives =
                vec![Life { start, end: Some(start + start.since(SimTime::EPOCH)), guessed: false, exit_code: None }];
            row
        };
        let mut first = row(20);
        first.templates.extend(row(10).templates);
        let mut mutator = Mutator::new(1, StartDelays::default(), [first, row(30)]);
        let mut given = |template: Option<&str>| {
            let decided = (0..4).map(|_| mutator.decide(Some("batch/v1.Job:a/j"), template).lifetime());
            decided.map(|lifetime| lifetime.map_or(0.0, SimDuration::as_secs_f64)).collect::<Vec<_>>()
        };
        let all = vec![10.0, 20.0, 30.0, 10.0];
        assert_eq!((given(Some(&template.to_string())), given(None)), (all.clone(), all));
    }

    #[test]
    fn jitter_comes_on_top_and_follows_from_the_seed() {
        let second = SimDuration::from_secs(1);
        let delays = StartDelays { image_pull: second, image_pull_jitter: second, ..StartDelays::default() };
        let draw = |seed| {
            let mut mutator = Mutator::new(seed, delays, []);
            let mut draw = || {
                let mut pod = pod(None);
                mutator.admit(&mut pod, SimTime::EPOCH);
                let text = pod.annotations()[&CREATE_DELAY].clone();
                text.trim_end_matches("ms").parse::<i64>().unwrap()
            };
            (0..50).map(|_| draw()).collect::<Vec<_>>()
        };
        assert!(draw(1).iter().all(|millis| (1_000..=2_001).contains(millis)));
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }
}
