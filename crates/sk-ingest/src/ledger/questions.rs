//! Questions for the API server: to be asked, in flight, and to be retried.

use std::collections::{BTreeMap, BTreeSet};

use sk_core::{SimDuration, SimTime};

use super::ownership::Question;
use crate::uid::Uid;

/// How many questions may be open, and how many may wait to be asked again. Beyond it owners are not asked for until
/// somebody else refers to them; their children are recorded all the same.
const MAX_QUESTIONS: usize = 4_096;

/// How long a question that failed waits at first: an API server that restarts is back in about that time.
const FIRST_PAUSE: SimDuration = SimDuration::from_secs(5);

/// How long it waits at most, twice as long after each failure: of an owner that must not be read at all,
/// [`MAX_QUESTIONS`] of them make 7 requests a second.
const LONGEST_PAUSE: SimDuration = SimDuration::from_mins(10);

/// The questions.
#[derive(Debug, Default)]
pub(super) struct Questions {
    to_ask: Vec<Question>,
    open: BTreeSet<Uid>,
    /// Those that failed: how long each waited last. One that is being asked again stays here.
    failed: BTreeMap<Uid, Failed>,
    /// When which of them is due.
    due: BTreeSet<(SimTime, Uid)>,
    unasked: u64,
}

#[derive(Debug)]
struct Failed {
    question: Question,
    pause: SimDuration,
    due: SimTime,
}

impl Questions {
    /// Has a question asked, unless it is already.
    pub(super) fn ask(&mut self, uid: Uid, question: Question) {
        if self.open.contains(&uid) || self.failed.contains_key(&uid) {
            return;
        }
        if self.open.len() >= MAX_QUESTIONS {
            self.unasked += 1;
            return;
        }
        self.open.insert(uid);
        self.to_ask.push(question);
    }

    /// There was no answer; it is to be asked again after a while.
    pub(super) fn failed(&mut self, now: SimTime, uid: Uid, question: &Question) {
        self.open.remove(&uid);
        let before = self.failed.remove(&uid);
        if before.is_none() && self.failed.len() >= MAX_QUESTIONS {
            self.unasked += 1;
            return;
        }
        let pause = before.map_or(FIRST_PAUSE, |before| (before.pause + before.pause).min(LONGEST_PAUSE));
        let due = now + pause;
        self.due.insert((due, uid.clone()));
        self.failed.insert(uid, Failed { question: question.clone(), pause, due });
    }

    /// The question is no longer one.
    pub(super) fn forget(&mut self, uid: &Uid) {
        self.open.remove(uid);
        if let Some(failed) = self.failed.remove(uid) {
            self.due.remove(&(failed.due, uid.clone()));
        }
    }

    /// Nobody needs the answer any more: what failed is not asked again. One that is under way will be answered.
    pub(super) fn give_up(&mut self, uid: &Uid) {
        if !self.open.contains(uid) {
            self.forget(uid);
        }
    }

    /// What is to be asked now.
    pub(super) fn take(&mut self, now: SimTime) -> Vec<Question> {
        while self.open.len() < MAX_QUESTIONS
            && let Some((due, _)) = self.due.first()
            && *due <= now
        {
            let Some((_, uid)) = self.due.pop_first() else { break };
            let Some(failed) = self.failed.get(&uid) else { continue };
            self.to_ask.push(failed.question.clone());
            self.open.insert(uid);
        }
        std::mem::take(&mut self.to_ask)
    }

    /// How many are to be asked or have been, without an answer so far.
    pub(super) fn open(&self) -> usize {
        self.open.len()
    }

    /// How many have failed and wait to be asked again.
    pub(super) fn failing(&self) -> usize {
        self.failed.len()
    }

    /// How many were not asked because there was no room.
    pub(super) fn unasked(&self) -> u64 {
        self.unasked
    }
}

#[cfg(test)]
mod tests {
    use sk_core::Gvk;

    use super::*;

    fn question(number: usize) -> Question {
        Question {
            kind: Gvk::new_static("x.io", "v1", "Thing"),
            namespace: None,
            name: "thing".into(),
            uid: number.to_string().into(),
        }
    }

    #[test]
    fn a_question_is_given_out_once_and_their_number_is_bounded() {
        let (mut questions, now) = (Questions::default(), SimTime::EPOCH);
        for number in [0, 0].into_iter().chain(1..=MAX_QUESTIONS) {
            questions.ask(Uid::new(&number.to_string()), question(number));
        }
        assert_eq!((questions.take(now).len(), questions.take(now).len()), (MAX_QUESTIONS, 0));
        assert_eq!(questions.unasked(), 1);
        questions.forget(&Uid::new("0"));
        questions.ask(Uid::new("new"), question(1));
        assert_eq!(questions.take(now).len(), 1);
    }

    #[test]
    fn a_question_that_fails_is_asked_again_ever_more_seldom() {
        let (mut questions, uid) = (Questions::default(), Uid::new("1"));
        questions.ask(uid.clone(), question(1));
        let mut now = SimTime::from_secs(0);
        questions.take(now);
        for pause in [5, 10, 20, 40, 80, 160, 320, 600, 600] {
            questions.failed(now, uid.clone(), &question(1));
            questions.ask(uid.clone(), question(1));
            assert!(questions.take(now + SimDuration::from_secs(pause - 1)).is_empty(), "{pause}");
            now += SimDuration::from_secs(pause);
            assert_eq!(questions.take(now).len(), 1, "{pause}");
            assert!(questions.take(now).is_empty(), "it is under way");
        }
        questions.forget(&uid);
        assert!(questions.take(now + LONGEST_PAUSE).is_empty(), "it was answered");
        assert_eq!((questions.open(), questions.failing(), questions.due.len()), (0, 0, 0));
    }

    #[test]
    fn a_question_whose_answer_nobody_needs_is_not_asked_again() {
        let (mut questions, uid) = (Questions::default(), Uid::new("1"));
        questions.failed(SimTime::EPOCH, uid.clone(), &question(1));
        questions.give_up(&uid);
        assert!(questions.take(SimTime::EPOCH + LONGEST_PAUSE).is_empty());
        assert_eq!(questions.failing(), 0);
    }
}
