//! What a run does not simulate: objects with pods that no controller acts on, objects that the API server refuses or
//! all of whose pods it refuses, and pods for another scheduler. They are counted by name and number, so that no
//! verdict can ignore them.
//!
//! Where an object's own fields do not say how many pods it has, the recorded lives of its pods do; numbers that are
//! unknown are marked as unknown.

use std::collections::BTreeMap;

use serde_json::Value;
use sk_core::registry::template_path;
use sk_core::registry::{self, Modelled};
use sk_core::{Gvk, ObjectRef, SimTime};
use sk_record::{Basis, Missing, MissingWhy};
use sk_store::trace::{OwnerLives, TracerConfig};

use super::Window;
use super::children::controller;
use super::demand::{Demand, Schedulers};
use super::prerequisites::Prerequisites;

/// Objects that are named one by one; the rest of a kind is one entry. 10,000 × 400 bytes are 4 MB of run.json.
const MAX_NAMED: usize = 10_000;
/// How much of the API server's message about an object is kept.
const MAX_MESSAGE_CHARS: usize = 300;

/// Objects that are not simulated, so far.
#[derive(Clone, Debug, Default)]
pub struct Gaps {
    objects: BTreeMap<ObjectRef, Found>,
    pub(super) schedulers: Schedulers,
    /// What pods of manifests need; of a recording it is taken for granted.
    pub(super) prerequisites: Option<Prerequisites>,
    /// What workloads ask for that need something.
    demands: BTreeMap<ObjectRef, Demand>,
    /// The demand of the last object: if it is refused, that is what is missing.
    last: Option<(ObjectRef, Option<Demand>)>,
}

#[derive(Clone, Debug)]
struct Found {
    why: MissingWhy,
    demand: Demand,
    message: Option<String>,
    /// Objects that it controls and that are in the trace too: the Workflows of a CronWorkflow.
    made: BTreeMap<ObjectRef, Demand>,
}

impl Found {
    fn new(why: MissingWhy, demand: Demand) -> Self {
        Self { why, demand, message: None, made: BTreeMap::new() }
    }
}

impl Gaps {
    /// Looks at a version of an object. `replaces`: the versions before it lie before the run's start and do not count.
    pub(super) fn look_at(&mut self, object: &ObjectRef, value: &Value, config: &TracerConfig, replaces: bool) {
        let paths = config.template_paths(&object.gvk);
        let demand = Demand::of(&object.gvk, value, &paths, &self.schedulers);
        if let Some(prerequisites) = &mut self.prerequisites {
            prerequisites.look_at(object, value, &paths);
            self.demands.extend(demand.map(|demand| (object.clone(), demand)));
        }
        let why = demand.and_then(|demand| why_missing(&object.gvk, &demand));
        let (Some(why), Some(demand)) = (why, demand) else { return self.simulated(object, demand, replaces) };
        self.last = Some((object.clone(), Some(demand)));
        let maker = controller(object, value).and_then(|maker| self.objects.get_mut(&maker));
        if let Some(maker) = maker {
            maker.made.insert(object.clone(), demand);
            return;
        }
        let found = self.objects.entry(object.clone()).or_insert_with(|| Found::new(why, demand));
        found.demand = if replaces { demand } else { most(found.demand, demand) };
    }

    /// What a simulated object asks for; nothing if it asks for nothing, or is not simulated.
    pub(super) fn demand(&self, gvk: &Gvk, value: &Value, config: &TracerConfig) -> Option<Demand> {
        Demand::of(gvk, value, &config.template_paths(gvk), &self.schedulers)
            .filter(|demand| why_missing(gvk, demand).is_none())
    }

    /// An object that is simulated, and what it asks for.
    pub(super) fn simulated(&mut self, object: &ObjectRef, demand: Option<Demand>, replaces: bool) {
        self.last = Some((object.clone(), demand));
        if replaces {
            self.objects.remove(object);
        }
    }

    /// An object that was gone before the run's start.
    pub(super) fn forget(&mut self, object: &ObjectRef) {
        self.objects.remove(object);
    }

    /// The API server refused the last object, or one that the plan added for it.
    pub(super) fn refused(&mut self, object: &ObjectRef, words: &str) {
        let last = self.last.as_ref().filter(|(last, _)| last == object);
        // What has no pods is refused all the same, and asks for none; a workload that cannot be read asks for nobody
        // knows how many.
        let none = template_path(&object.gvk).is_none().then_some(0);
        let unread = Demand { pods: none, cpu_m: none, ..Demand::default() };
        let demand = last.and_then(|(_, demand)| *demand).unwrap_or(unread);
        let message = Some(words.chars().take(MAX_MESSAGE_CHARS).collect());
        self.objects.insert(object.clone(), Found { message, ..Found::new(MissingWhy::Refused, demand) });
    }

    /// Workloads all of whose pods a server refuses, each with its message.
    pub(crate) fn lacking(&self) -> impl Iterator<Item = (&ObjectRef, String)> {
        self.prerequisites.iter().flat_map(Prerequisites::lacking)
    }

    /// Everything that is missing, worst first. Lives tell what objects do not say.
    pub fn into_missing(mut self, lives: &[OwnerLives], window: Window) -> Vec<Missing> {
        let lacking: Vec<_> = self.lacking().map(|(object, words)| (object.clone(), words)).collect();
        for (object, words) in lacking {
            let demand = self.demands.get(&object).copied().unwrap_or_default();
            let found = Found { message: Some(words), ..Found::new(MissingWhy::Refused, demand) };
            self.objects.entry(object).or_insert(found);
        }
        // An owner with many lives has several rows.
        let mut rows: BTreeMap<&ObjectRef, Vec<&OwnerLives>> = BTreeMap::new();
        lives.iter().for_each(|row| rows.entry(&row.owner).or_default().push(row));
        let missing = self.objects.iter().map(|(object, found)| {
            let recorded = rows.get(object).map(|rows| recorded(rows, window)).filter(|(pods, _)| *pods > 0);
            found.missing(object, recorded)
        });
        let counts = |missing: &Missing| missing.why == MissingWhy::Refused || missing.pods != Some(0);
        let mut missing: Vec<Missing> = missing.filter(counts).collect();
        missing.sort_by(|a, b| b.cpu_m.cmp(&a.cpu_m).then(b.pods.cmp(&a.pods)).then_with(|| a.object.cmp(&b.object)));
        fold(missing)
    }
}

impl Found {
    fn missing(&self, object: &ObjectRef, recorded: Option<(i64, i64)>) -> Missing {
        let Demand { pods, cpu_m, cpu_m_of_one, .. } = self.demand.or(self.of_what_it_made());
        let (pods, cpu_m, basis) = match (pods, recorded) {
            (Some(_), _) => (pods, cpu_m, Basis::Estimated),
            (None, Some((all, at_once))) => (Some(all), Some(at_once.saturating_mul(cpu_m_of_one)), Basis::Recorded),
            (None, None) => (None, None, Basis::Unknown),
        };
        let name = crate::record::owner_name(object);
        Missing {
            why: self.why,
            kind: kind_name(&object.gvk),
            object: name,
            objects: 1,
            pods,
            cpu_m,
            basis,
            message: self.message.clone(),
        }
    }
}

impl Found {
    /// What the objects that it made ask for together; nothing if it made none. They mostly follow one another, so the
    /// largest of them is its largest moment.
    fn of_what_it_made(&self) -> Option<Demand> {
        let add = |a: Demand, b: &Demand| Demand {
            pods: a.pods.zip(b.pods).map(|(a, b)| a.saturating_add(b)),
            ..most(a, *b)
        };
        let mut made = self.made.values();
        let first = *made.next()?;
        Some(made.fold(first, add))
    }
}

fn why_missing(gvk: &Gvk, demand: &Demand) -> Option<MissingWhy> {
    match registry::find(gvk).map(|kind| kind.modelled) {
        Some(Modelled::Acted) => demand.other_scheduler.then_some(MissingWhy::OtherScheduler),
        // A PodTemplate is kept for others to read; nothing ever makes pods of it.
        Some(Modelled::Stored) => None,
        // A custom kind with a pod template has a controller somewhere, and it is not here.
        Some(Modelled::Missing) | None => Some(MissingWhy::NoController),
    }
}

/// The larger of two versions; what one of them does not say is not known.
fn most(a: Demand, b: Demand) -> Demand {
    let larger = |a: Option<i64>, b: Option<i64>| Some(a?.max(b?));
    Demand {
        pods: larger(a.pods, b.pods),
        cpu_m: larger(a.cpu_m, b.cpu_m),
        cpu_m_of_one: a.cpu_m_of_one.max(b.cpu_m_of_one),
        other_scheduler: a.other_scheduler || b.other_scheduler,
    }
}

/// How many pods were recorded in the window, and how many of them at one moment.
fn recorded(rows: &[&OwnerLives], window: Window) -> (i64, i64) {
    let all = rows.iter().flat_map(|row| &row.templates).flat_map(|template| &template.lives);
    let in_window = all.filter(|life| !window.is_after(life.start) && life.end.is_none_or(|end| end >= window.start));
    let mut changes: Vec<(SimTime, i64)> = Vec::new();
    let mut pods = 0;
    for life in in_window {
        pods += 1;
        changes.push((life.start, 1));
        changes.extend(life.end.map(|end| (end, -1)));
    }
    // At one moment ends come before starts: a pod that follows another does not run beside it.
    changes.sort_unstable();
    let mut running = 0;
    let at_once = changes.iter().map(|(_, change)| {
        running += change;
        running
    });
    (pods, at_once.max().unwrap_or(0))
}

/// Names the worst, and of the rest of each kind only the sum.
fn fold(mut missing: Vec<Missing>) -> Vec<Missing> {
    if missing.len() <= MAX_NAMED {
        return missing;
    }
    let mut rest: BTreeMap<(MissingWhy, Basis, String), Missing> = BTreeMap::new();
    for one in missing.split_off(MAX_NAMED) {
        let add = |a: Option<i64>, b: Option<i64>| Some(a?.saturating_add(b?));
        rest.entry((one.why, one.basis, one.kind.clone()))
            .and_modify(|sum| {
                sum.objects += one.objects;
                sum.object = format!("{} others", sum.objects);
                sum.pods = add(sum.pods, one.pods);
                sum.cpu_m = add(sum.cpu_m, one.cpu_m);
                sum.message = None;
            })
            .or_insert(one);
    }
    missing.extend(rest.into_values());
    missing
}

/// `apps/StatefulSet`, and `Pod` for the group without a name.
fn kind_name(gvk: &Gvk) -> String {
    if gvk.group.is_empty() { gvk.kind.to_string() } else { format!("{}/{}", gvk.group, gvk.kind) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use sk_core::SimDuration;
    use sk_store::trace::{Life, Object, TemplateLives};

    use super::*;

    const START: SimTime = SimTime::from_secs(1_000);

    fn window() -> Window {
        Window { start: START, end: START + SimDuration::from_mins(60), includes_end: true }
    }

    #[expect(clippy::needless_pass_by_value, reason = "the macro that makes it is written in place")]
    fn object(api_version: &str, kind: &str, name: &str, spec: Value) -> Object {
        let metadata = json!({"name": name, "namespace": "data"});
        Object::new(json!({"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec})).unwrap()
    }

    fn set(name: &str, replicas: i64, cpu: &str) -> Object {
        let containers = json!([{"name": "c", "resources": {"requests": {"cpu": cpu}}}]);
        let template = json!({"spec": {"containers": containers}});
        object("argoproj.io/v1alpha1", "Rollout", name, json!({"replicas": replicas, "template": template}))
    }

    fn cron(name: &str) -> Object {
        let containers = json!([{"name": "c", "resources": {"requests": {"cpu": "2"}}}]);
        let job = json!({"spec": {"template": {"spec": {"containers": containers}}}});
        object("argoproj.io/v1alpha1", "CronWorkflow", name, json!({"jobTemplate": job}))
    }

    fn look_at(gaps: &mut Gaps, object: &Object, replaces: bool) {
        let config = TracerConfig::of_kinds([]);
        gaps.look_at(object.reference(), object.value(), &config, replaces);
    }

    fn numbers(missing: &[Missing]) -> Vec<(&str, Option<i64>, Option<i64>, Basis)> {
        missing.iter().map(|one| (one.object.as_str(), one.pods, one.cpu_m, one.basis)).collect()
    }

    #[test]
    fn the_worst_comes_first_and_what_asks_for_nothing_is_not_missing() {
        let mut gaps = Gaps::default();
        for set in [set("asleep", 0, "9"), set("backup", 1, "1"), set("kafka", 3, "4"), set("zoo", 5, "2")] {
            look_at(&mut gaps, &set, true);
        }
        let missing = gaps.into_missing(&[], window());
        let expected = [
            ("data/Rollout/kafka", Some(3), Some(12_000), Basis::Estimated),
            ("data/Rollout/zoo", Some(5), Some(10_000), Basis::Estimated),
            ("data/Rollout/backup", Some(1), Some(1_000), Basis::Estimated),
        ];
        assert_eq!(numbers(&missing), expected);
        assert_eq!((missing[0].kind.as_str(), missing[0].why), ("argoproj.io/Rollout", MissingWhy::NoController));
    }

    #[test]
    fn the_most_that_was_asked_for_counts_but_not_what_was_asked_before_the_start() {
        let mut gaps = Gaps::default();
        for (replicas, replaces) in [(50, true), (2, true), (4, false), (3, false)] {
            look_at(&mut gaps, &set("kafka", replicas, "1"), replaces);
        }
        look_at(&mut gaps, &set("gone", 9, "9"), true);
        gaps.forget(set("gone", 9, "9").reference());
        assert_eq!(
            numbers(&gaps.into_missing(&[], window())),
            [("data/Rollout/kafka", Some(4), Some(4_000), Basis::Estimated)]
        );
    }

    #[test]
    fn recorded_lives_tell_how_many_pods_an_object_had_and_how_many_at_once() {
        let mut gaps = Gaps::default();
        look_at(&mut gaps, &cron("etl"), true);
        look_at(&mut gaps, &cron("quiet"), true);
        let life = |from: i64, to: i64| {
            let at = |mins| START + SimDuration::from_mins(mins);
            Life { start: at(from), end: Some(at(to)), guessed: false, exit_code: None }
        };
        let row = |lives| {
            let templates = vec![TemplateLives { template: None, pod_hash: None, lives }];
            OwnerLives { owner: cron("etl").reference().clone(), templates }
        };
        // One before the window, two that overlap, one that follows at once, one after the window; in two rows, as lives are
        // when there are many.
        let rows = [row(vec![life(-20, -10), life(1, 5)]), row(vec![life(2, 5), life(5, 6), life(70, 80)])];
        let missing = gaps.into_missing(&rows, window());
        let expected = [
            ("data/CronWorkflow/etl", Some(3), Some(4_000), Basis::Recorded),
            ("data/CronWorkflow/quiet", None, None, Basis::Unknown),
        ];
        assert_eq!(numbers(&missing), expected);
    }

    #[test]
    fn a_refused_object_is_missing_with_its_name_and_the_servers_words() {
        let mut gaps = Gaps::default();
        let wrong = object("apps/v1", "Deployment", "web", json!({"replicas": "three"}));
        look_at(&mut gaps, &wrong, true);
        gaps.refused(wrong.reference(), "spec.replicas: not a number");
        let missing = gaps.into_missing(&[], window());
        assert_eq!((missing[0].object.as_str(), missing[0].why), ("data/Deployment/web", MissingWhy::Refused));
        assert_eq!(missing[0].message.as_deref(), Some("spec.replicas: not a number"));
        assert_eq!(missing[0].basis, Basis::Unknown, "nobody knows how many `three` are");
    }

    #[test]
    fn what_an_object_made_that_is_in_the_trace_too_is_counted_once_and_with_it() {
        let mut gaps = Gaps::default();
        look_at(&mut gaps, &cron("etl"), true);
        for name in ["etl-1", "etl-2"] {
            let containers = json!([{"name": "c", "resources": {"requests": {"cpu": "2"}}}]);
            let spec = json!({"replicas": 3, "template": {"spec": {"containers": containers}}});
            let mut job = object("argoproj.io/v1alpha1", "Workflow", name, spec).into_value();
            let owner = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "CronWorkflow", "name": "etl"});
            job["metadata"]["ownerReferences"] = json!([owner]);
            job["metadata"]["ownerReferences"][0]["controller"] = json!(true);
            look_at(&mut gaps, &Object::new(job).unwrap(), false);
        }
        let missing = gaps.into_missing(&[], window());
        assert_eq!(numbers(&missing), [("data/CronWorkflow/etl", Some(6), Some(6_000), Basis::Estimated)]);
    }

    #[test]
    fn more_objects_than_are_named_are_summed_by_kind() {
        let mut gaps = Gaps::default();
        for number in 0..MAX_NAMED + 50 {
            look_at(&mut gaps, &set(&format!("s{number}"), 2, "1"), true);
        }
        let missing = gaps.into_missing(&[], window());
        assert_eq!(missing.len(), MAX_NAMED + 1);
        let last = &missing[MAX_NAMED];
        assert_eq!((last.object.as_str(), last.objects, last.pods), ("50 others", 50, Some(100)));
    }
}
