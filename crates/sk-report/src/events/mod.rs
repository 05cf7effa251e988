//! Everything that happened to pods, small enough for a page: each wait, scheduler message, eviction and end.
//!
//! The bytes that an entry takes in the page decide what is kept. Pods to which something happened (they waited, were
//! evicted, preempted, lost their node or failed) come first, with their messages; pods that just ran come where there
//! is room. Beyond that, pods with events are counted by owner and minute ([`minutes`]), and the page says so.

mod minutes;
mod names;
mod scalings;

use sk_core::SimTime;
use sk_core::lookup::{Lookup, hash_of};
use sk_record::{DecisionRow, EndedBy, Error, Outcome, PodRow};

pub use minutes::{Minute, Minutes};
pub use names::Names;
pub use scalings::{Scaling, Scalings};

use crate::causes::plain_reason;
use crate::escape::embedded_bytes;
use crate::pods::{BARE_PODS, owns_itself};
use crate::source::Source;
use crate::step::Window;
use crate::tally::end_of;

/// What pods may take in the page, of its 10 MB.
const PODS_MAX_BYTES: usize = 6_000_000;
/// What the names of owners may take, and those of nodes.
const NAMES_MAX_BYTES: usize = 400_000;
/// What answers may take.
const ANSWERS_MAX_BYTES: usize = 1_500_000;
/// What the texts of answers may take: messages, scores, victims.
const TEXTS_MAX_BYTES: usize = 1_200_000;
/// What a pod takes beside its name: eight numbers of about six digits, with commas.
const POD_BYTES: usize = 52;
/// What an answer takes: four numbers.
const ANSWER_BYTES: usize = 24;

/// One pod's life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodLine {
    /// `ns/name`.
    pub name: String,
    /// Among [`Events::owners`].
    pub owner: u32,
    /// When it was created.
    pub created: SimTime,
    /// When it was bound.
    pub scheduled: Option<SimTime>,
    /// When it ran.
    pub started: Option<SimTime>,
    /// When it left its node, or the queue.
    pub ended: Option<SimTime>,
    /// Among [`Events::nodes`].
    pub node: Option<u32>,
    /// What ended it.
    pub how: Option<EndedBy>,
    /// Why it waited, without counts, among [`Events::texts`]; nothing if the scheduler never refused it.
    pub waited_for: Option<u32>,
}

impl PodLine {
    fn is_eventful(&self) -> bool {
        is_eventful(self.waited_for.is_some(), self.how, self.scheduled)
    }
}

/// Did something happen to a pod beside running and ending as it should?
fn is_eventful(has_waited: bool, how: Option<EndedBy>, scheduled: Option<SimTime>) -> bool {
    has_waited
        || match how {
            Some(EndedBy::Evicted | EndedBy::Preempted | EndedBy::NodeLost | EndedBy::Failed) => true,
            Some(EndedBy::Finished | EndedBy::Deleted) | None => scheduled.is_none(),
        }
}

/// One answer of the scheduler about a pod that is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// When.
    pub at: SimTime,
    /// Among [`Events::pods`].
    pub pod: u32,
    /// The node that it got, among [`Events::nodes`]; nothing if none fits.
    pub node: Option<u32>,
    /// The scheduler's message, or the scores of the feasible nodes; an index into [`Events::texts`].
    pub text: Option<u32>,
}

/// How much a page tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Every pod that is kept.
    Everything,
    /// Only pods to which something happened.
    Eventful,
    /// Pods by owner and minute.
    Counted,
}

/// What a page tells of pods.
#[derive(Clone, Debug)]
pub struct Events {
    /// `ns/Kind/name`.
    pub owners: Names,
    /// Names of nodes.
    pub nodes: Names,
    /// Reasons, messages, scores.
    pub texts: Names,
    /// The pods that are listed one by one, in the order of the record.
    pub pods: Vec<PodLine>,
    /// The answers about them that say more than the pods' own times, in order of time.
    pub answers: Vec<Answer>,
    /// The pods that are only counted.
    pub minutes: Minutes,
    /// Pods that are neither listed nor counted, because nothing happened to them.
    pub quiet: u64,
    /// Messages that are left out.
    pub answers_left_out: u64,
    bytes: usize,
    quiet_bytes: usize,
    is_counting: bool,
    is_without_quiet: bool,
}

impl Default for Events {
    fn default() -> Self {
        Self {
            owners: Names::of_at_most(NAMES_MAX_BYTES),
            nodes: Names::of_at_most(NAMES_MAX_BYTES),
            texts: Names::of_at_most(TEXTS_MAX_BYTES),
            pods: Vec::new(),
            answers: Vec::new(),
            minutes: Minutes::default(),
            quiet: 0,
            answers_left_out: 0,
            bytes: 0,
            quiet_bytes: 0,
            is_counting: false,
            is_without_quiet: false,
        }
    }
}

impl Events {
    /// Takes in one pod.
    pub(crate) fn see(&mut self, pod: &PodRow<&str>, window: Window) {
        if window.clip(pod.created, end_of(pod)).is_none() {
            return;
        }
        let bytes = embedded_bytes(pod.namespace) + 1 + embedded_bytes(pod.name) + POD_BYTES;
        if !is_eventful(pod.waited_for.is_some(), pod.ended_by, pod.scheduled) {
            return self.see_quiet(pod, bytes);
        }
        let line = self.line(pod);
        self.bytes += bytes;
        self.make_room();
        if !self.is_counting && self.bytes > PODS_MAX_BYTES {
            self.count_all(window);
        }
        if self.is_counting {
            self.minutes.add(&line, window);
        } else {
            self.pods.push(line);
        }
    }

    fn see_quiet(&mut self, pod: &PodRow<&str>, bytes: usize) {
        self.quiet_bytes += bytes;
        self.quiet += 1;
        self.make_room();
        if !self.is_without_quiet {
            let line = self.line(pod);
            self.pods.push(line);
        }
    }

    /// Pods that just ran go where there is no room for all.
    fn make_room(&mut self) {
        if !self.is_without_quiet && self.bytes + self.quiet_bytes > PODS_MAX_BYTES {
            self.is_without_quiet = true;
            self.pods.retain(PodLine::is_eventful);
        }
    }

    /// There are too many to list one by one: from now on they are counted.
    fn count_all(&mut self, window: Window) {
        self.is_counting = true;
        self.is_without_quiet = true;
        for line in std::mem::take(&mut self.pods).iter().filter(|line| line.is_eventful()) {
            self.minutes.add(line, window);
        }
    }

    fn line(&mut self, pod: &PodRow<&str>) -> PodLine {
        let reason = pod.waited_for.map(plain_reason);
        let owner = if owns_itself(pod) {
            self.owners.place(&[pod.namespace, "/", BARE_PODS].concat())
        } else {
            self.owners.place(pod.owner)
        };
        PodLine {
            name: [pod.namespace, "/", pod.name].concat(),
            owner,
            created: pod.created,
            scheduled: pod.scheduled,
            started: pod.started,
            ended: end_of(pod),
            node: pod.node.map(|node| self.nodes.place(node)),
            how: pod.ended_by,
            waited_for: reason.map(|reason| self.texts.place(&reason)),
        }
    }

    /// All pods were seen.
    pub(crate) fn end_pods(&mut self) {
        if !self.is_without_quiet {
            self.quiet = 0;
        }
    }

    /// Reads the messages about the pods that are listed one by one.
    pub(crate) fn read_answers(&mut self, source: &impl Source) -> Result<(), Error> {
        let mut places: Option<Places> = None;
        let mut bytes = 0;
        source.each_decision(|row| {
            let scores = row.explained.scores;
            let is_refusal = row.outcome == Outcome::Unschedulable;
            // A pod that was just placed says so itself; only scores add to that.
            if !is_refusal && scores.is_none() {
                return;
            }
            let Some(pod) = places.get_or_insert_with(|| Places::of(&self.pods)).find(&self.pods, row) else { return };
            if bytes + ANSWER_BYTES > ANSWERS_MAX_BYTES {
                self.answers_left_out += u64::from(is_refusal);
                return;
            }
            let text = if is_refusal { row.message } else { scores };
            let text = text.map(|text| self.texts.place(text));
            if !is_refusal && text == Some(Names::OTHER) {
                return;
            }
            bytes += ANSWER_BYTES;
            let node = row.node.filter(|_| !is_refusal).map(|node| self.nodes.place(node));
            self.answers.push(Answer { at: row.time, pod, node, text });
        })
    }

    /// The same with less detail, for a page that would be too large.
    pub fn with(&self, detail: Detail, window: Window) -> Self {
        let mut less = self.clone();
        let told = |line: &PodLine| match detail {
            Detail::Everything => true,
            Detail::Eventful => line.is_eventful(),
            Detail::Counted => false,
        };
        let mut places: Vec<Option<u32>> = Vec::with_capacity(self.pods.len());
        less.pods.clear();
        for line in &self.pods {
            places.push(told(line).then_some(less.pods.len() as u32));
            if told(line) {
                less.pods.push(line.clone());
            } else if line.is_eventful() {
                less.minutes.add(line, window);
            } else {
                less.quiet += 1;
            }
        }
        let moved = |answer: &Answer| Some(Answer { pod: places[answer.pod as usize]?, ..*answer });
        less.answers = self.answers.iter().filter_map(moved).collect();
        less.answers_left_out += (self.answers.len() - less.answers.len()) as u64;
        less
    }

    /// Is every pod listed?
    pub fn is_whole(&self) -> bool {
        self.quiet == 0 && self.minutes.is_empty()
    }
}

/// The pods of each name: a StatefulSet gives a name again.
#[derive(Default)]
struct Places {
    /// The first pod of a name.
    first: Lookup<u32>,
    /// By pod: the next one of its name.
    next: Vec<Option<u32>>,
}

impl Places {
    fn of(pods: &[PodLine]) -> Self {
        let mut places = Self::default();
        // From behind, so that each finds the next one of its name.
        places.next.resize(pods.len(), None);
        for (place, pod) in pods.iter().enumerate().rev() {
            let (hash, place) = (hash_of(pod.name.as_bytes()), place as u32);
            places.next[place as usize] = places.first.remove(hash, |known| pods[*known as usize].name == pod.name);
            places.first.insert(hash, place, |place| hash_of(pods[*place as usize].name.as_bytes()));
        }
        places
    }

    /// The pod that an answer is about: of several of one name the one that was there.
    fn find(&self, pods: &[PodLine], row: &DecisionRow<&str>) -> Option<u32> {
        let name = format!("{}/{}", row.namespace, row.pod);
        let first = *self.first.find(hash_of(name.as_bytes()), |place| pods[*place as usize].name == name)?;
        let named = || std::iter::successors(Some(first), |place| self.next[*place as usize]);
        let was_there = |place: &u32| {
            let pod = &pods[*place as usize];
            pod.created <= row.time && pod.ended.is_none_or(|ended| row.time <= ended)
        };
        named().find(was_there).or_else(|| named().last())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window() -> Window {
        Window::new(SimTime::EPOCH, SimTime::from_secs(3_600))
    }

    fn pod(number: usize, waited: bool) -> PodRow {
        PodRow {
            namespace: "default".into(),
            name: format!("web-{number}-{}", "x".repeat(200)),
            uid: String::new(),
            owner: "default/Deployment/web".into(),
            created: SimTime::from_secs(number as i64 % 3_000),
            scheduled: Some(SimTime::from_secs(number as i64 % 3_000 + 10)),
            started: None,
            finished: None,
            deleted: None,
            node: Some("n1".into()),
            group: None,
            cpu_m: 0,
            memory_bytes: 0,
            phase: "Running".into(),
            waited_for: waited.then(|| "0/1 nodes are available: 1 Insufficient cpu.".into()),
            ended_by: None,
        }
    }

    #[test]
    fn pods_that_just_ran_make_room_for_those_that_waited() {
        let mut events = Events::default();
        (0..30_000).for_each(|number| events.see(&pod(number, number % 10 == 0).borrowed(), window()));
        events.end_pods();
        assert_eq!(events.pods.len(), 3_000, "every pod that waited is told");
        assert_eq!(events.quiet, 27_000);
        assert!(events.minutes.is_empty() && !events.is_whole());
    }

    #[test]
    fn too_many_waits_are_counted_by_owner_and_minute_and_none_is_lost() {
        let mut events = Events::default();
        (0..30_000).for_each(|number| events.see(&pod(number, true).borrowed(), window()));
        events.end_pods();
        assert!(events.pods.is_empty());
        let waited: i64 = events.minutes.rows().map(|(_, _, minute)| minute.waited).sum();
        assert_eq!(waited, 30_000);
        assert_eq!(events.minutes.rows().count(), 50, "3,000 seconds are 50 minutes");
    }

    #[test]
    fn a_small_run_is_told_whole() {
        let mut events = Events::default();
        (0..100).for_each(|number| events.see(&pod(number, false).borrowed(), window()));
        events.end_pods();
        assert!(events.is_whole() && events.pods.len() == 100);
    }
}
