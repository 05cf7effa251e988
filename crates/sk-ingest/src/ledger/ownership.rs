//! Who belongs to whom. Every reference is followed, through what is watched first; what nobody watches is asked of the
//! API server, by whoever drives the ledger, and remembered within a bound.
//!
//! An owner whose kind is watched is never asked for: it comes by itself, or it is gone.

use std::collections::{BTreeMap, BTreeSet};

use sk_core::{Gvk, ObjectKey, ObjectRef, OwnerReference, SimTime, SmolStr};
use sk_store::log::{Fact, Link};

use super::{KindId, Ledger, Place};
use crate::sighting::Sighting;
use crate::uid::Uid;

/// How many ancestors are followed. Real chains have two or three links; this ends cycles and nonsense.
const MAX_ANCESTORS: usize = 32;

/// How many answers of the API server are remembered: 16,384 at about 400 bytes is 6.5 MB. An answer that is forgotten
/// is asked for again when somebody new refers to it.
const MAX_ANSWERS: usize = 16_384;

/// How many questions may be open. Beyond it owners are not asked for until there is room; their children are recorded
/// all the same.
const MAX_QUESTIONS: usize = 4_096;

/// An owner that the API server has to be asked about: a GET of its metadata is enough.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Question {
    /// Its kind.
    pub kind: Gvk,
    /// Where its child lives; of a cluster-scoped kind it means nothing.
    pub namespace: Option<SmolStr>,
    /// Its name.
    pub name: SmolStr,
    /// Which of those that had the name.
    pub uid: SmolStr,
}

/// Whom something descends from.
#[derive(Debug, Default)]
pub(super) struct Ancestry {
    /// The recorded ones, nearest first.
    pub(super) recorded: Vec<(KindId, ObjectKey)>,
    /// Those that may still turn up.
    pub(super) unknown: Vec<Uid>,
}

impl Ledger {
    /// Whom something with these owners descends from.
    pub(super) fn ancestry(&self, owners: &[OwnerReference]) -> Ancestry {
        let mut found = Ancestry::default();
        let mut queue: Vec<&OwnerReference> = owners.iter().collect();
        let mut next = 0;
        while next < queue.len() && next < MAX_ANCESTORS {
            let uid = Uid::new(&queue[next].uid);
            next += 1;
            let owners: &[OwnerReference] = match self.by_uid.get(&uid) {
                Some(Place::Object(kind, key)) => match self.objects.get(&(*kind, key.clone())) {
                    Some(object) => {
                        if !object.is_link() {
                            found.recorded.push((*kind, key.clone()));
                        }
                        &object.owners
                    }
                    None => &[],
                },
                Some(Place::Pod(key)) => self.pods.get(key).map_or(&[], |pod| pod.owners()),
                Some(Place::Node) => &[],
                None => match self.answers.get(&uid) {
                    Some(Some(link)) => &link.owners,
                    Some(None) => &[],
                    None => {
                        found.unknown.push(uid);
                        &[]
                    }
                },
            };
            let unseen = owners.iter().filter(|owner| queue.iter().all(|queued| queued.uid != owner.uid));
            let unseen: Vec<_> = unseen.collect();
            queue.extend(unseen);
        }
        found
    }

    /// Has those of these owners asked for that are neither known nor watched.
    pub(super) fn ask_for_unknown(&mut self, namespace: Option<&SmolStr>, owners: &[OwnerReference]) {
        for owner in owners.iter().filter(|owner| !self.watched.contains(&owner.gvk)) {
            let uid = Uid::new(&owner.uid);
            if self.by_uid.contains_key(&uid) || self.answers.touch(&uid) {
                continue;
            }
            let question = Question {
                kind: owner.gvk.clone(),
                namespace: namespace.cloned(),
                name: owner.name.clone(),
                uid: owner.uid.clone(),
            };
            self.questions.ask(uid, question);
        }
    }

    /// What the API server said about an owner; `None` if it is not there, or could not be asked. Then the chain ends
    /// there, and nothing that was recorded is lost.
    pub fn owner_answered(&mut self, now: SimTime, question: &Question, answer: Option<Sighting>, out: &mut Vec<Fact>) {
        let uid = Uid::new(&question.uid);
        self.questions.answered(&uid);
        // Another object may have the name by now.
        let link = answer.filter(|sighting| sighting.uid == question.uid).map(|sighting| Link {
            object: sighting.object,
            uid: sighting.uid,
            owners: sighting.owners,
        });
        if let Some(link) = &link {
            out.push(Fact::Link(link.clone()));
            self.ask_for_unknown(link.object.key.namespace.as_ref().or(question.namespace.as_ref()), &link.owners);
        }
        if let Some(forgotten) = self.answers.remember(uid.clone(), link) {
            out.push(Fact::Unlinked(forgotten.uid));
        }
        self.owner_arrived(now, &uid, out);
    }

    /// Takes in an answer that the log knows.
    pub(super) fn restore_answer(&mut self, link: Link) {
        self.answers.remember(Uid::new(&link.uid), Some(link));
    }

    /// A recorded object by its place.
    pub(super) fn object_ref(&self, kind: KindId, key: &ObjectKey) -> ObjectRef {
        ObjectRef::new(self.kinds.gvk(kind).clone(), key.clone())
    }
}

/// What the API server has said, the longest unused forgotten first.
#[derive(Debug, Default)]
pub(super) struct Answers {
    by_uid: BTreeMap<Uid, (u64, Option<Link>)>,
    by_use: BTreeMap<u64, Uid>,
    uses: u64,
}

impl Answers {
    pub(super) fn len(&self) -> usize {
        self.by_uid.len()
    }

    fn get(&self, uid: &Uid) -> Option<Option<&Link>> {
        self.by_uid.get(uid).map(|(_, link)| link.as_ref())
    }

    /// Is it known? Then it counts as used now.
    fn touch(&mut self, uid: &Uid) -> bool {
        let Some((used, _)) = self.by_uid.get_mut(uid) else { return false };
        self.by_use.remove(used);
        self.uses += 1;
        *used = self.uses;
        self.by_use.insert(self.uses, uid.clone());
        true
    }

    /// Says which link was forgotten to make room.
    fn remember(&mut self, uid: Uid, link: Option<Link>) -> Option<Link> {
        self.uses += 1;
        if let Some((used, _)) = self.by_uid.insert(uid.clone(), (self.uses, link)) {
            self.by_use.remove(&used);
        }
        self.by_use.insert(self.uses, uid);
        if self.by_uid.len() <= MAX_ANSWERS {
            return None;
        }
        let (_, oldest) = self.by_use.pop_first()?;
        self.by_uid.remove(&oldest).and_then(|(_, link)| link)
    }
}

/// What is to be asked, and what has been asked and not answered.
#[derive(Debug, Default)]
pub(super) struct Questions {
    to_ask: Vec<Question>,
    open: BTreeSet<Uid>,
    unasked: u64,
}

impl Questions {
    fn ask(&mut self, uid: Uid, question: Question) {
        if self.open.contains(&uid) {
            return;
        }
        if self.open.len() >= MAX_QUESTIONS {
            self.unasked += 1;
            return;
        }
        self.open.insert(uid);
        self.to_ask.push(question);
    }

    fn answered(&mut self, uid: &Uid) {
        self.open.remove(uid);
    }

    pub(super) fn take(&mut self) -> Vec<Question> {
        std::mem::take(&mut self.to_ask)
    }

    pub(super) fn unasked(&self) -> u64 {
        self.unasked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(name: &str) -> Link {
        let object = ObjectRef::new(Gvk::new_static("x.io", "v1", "Thing"), ObjectKey::cluster(name));
        Link { object, uid: name.into(), owners: Vec::new() }
    }

    #[test]
    fn the_answer_that_was_longest_unused_is_forgotten() {
        let mut answers = Answers::default();
        let uid = |number: usize| Uid::new(&number.to_string());
        for number in 0..MAX_ANSWERS {
            assert!(answers.remember(uid(number), Some(link(&number.to_string()))).is_none());
        }
        assert!(answers.touch(&uid(0)));
        let forgotten = answers.remember(uid(MAX_ANSWERS), None);
        assert_eq!(forgotten.map(|link| link.uid), Some("1".into()));
        assert!(answers.get(&uid(0)).is_some() && !answers.touch(&uid(1)));
        assert_eq!((answers.len(), answers.by_use.len()), (MAX_ANSWERS, MAX_ANSWERS));
    }

    #[test]
    fn a_question_is_given_out_once_and_their_number_is_bounded() {
        let mut questions = Questions::default();
        let question = |number: usize| Question {
            kind: Gvk::new_static("x.io", "v1", "Thing"),
            namespace: None,
            name: "thing".into(),
            uid: number.to_string().into(),
        };
        for number in [0, 0].into_iter().chain(1..=MAX_QUESTIONS) {
            questions.ask(Uid::new(&number.to_string()), question(number));
        }
        assert_eq!((questions.take().len(), questions.take().len()), (MAX_QUESTIONS, 0));
        assert_eq!(questions.unasked(), 1);
        questions.answered(&Uid::new("0"));
        questions.ask(Uid::new("new"), question(1));
        assert_eq!(questions.take().len(), 1);
    }
}
