//! Pod classes that fit on no node, remembered from loop to loop.
//!
//! Where pods wait because a group is at its maximum, every loop would try each of them on every node again. Whether a
//! pod fits depends on its class alone. A class that fitted nowhere fits nowhere until room is made: a node comes, changes
//! or goes, or a pod leaves one. More pods on nodes make room for nobody, but for classes that want to be near other
//! pods or spread evenly among them ([`needs_company`]): those are not remembered.

use std::collections::{BTreeMap, BTreeSet};

use sk_scheduler::{ClassId, PodClass};

use super::view::{Likeness, PodView, View};

/// The classes.
#[derive(Clone, Debug, Default)]
pub(super) struct Hopeless {
    /// Counts how often room was made, from 1 on once anything is remembered.
    room: u64,
    /// By class: the room for which it is known to fit nowhere.
    classes: Vec<u64>,
}

impl Hopeless {
    /// Room was made: for whom nobody knows.
    pub(super) fn room_made(&mut self) {
        self.room += 1;
    }

    /// A pod of the class waits no more. The id may come to mean another class, so it is tried again.
    pub(super) fn forget(&mut self, class: ClassId) {
        if let Some(known) = self.classes.get_mut(class.index()) {
            *known = 0;
        }
    }

    /// A pod of the class fitted on no node as they are.
    pub(super) fn add(&mut self, class: ClassId) {
        if self.classes.len() <= class.index() {
            self.classes.resize(class.index() + 1, 0);
        }
        self.classes[class.index()] = self.room + 1;
    }

    /// Is it known that the class fits nowhere?
    pub(super) fn contains(&self, class: ClassId) -> bool {
        self.classes.get(class.index()) == Some(&(self.room + 1))
    }
}

/// Can a pod that is put somewhere let pods of the class fit where they did not fit before?
pub(super) fn needs_company(class: &PodClass) -> bool {
    !class.affinity.required.is_empty() || class.spread.iter().any(|constraint| constraint.hard)
}

/// What is known of pods that fitted nowhere while others are packed.
pub(super) struct Tries {
    /// Pods of one owner that scheduling cannot tell apart are tried once, as in cluster-autoscaler.
    alike: BTreeSet<Likeness>,
    /// How many pods had a place when the class fitted nowhere.
    classes: BTreeMap<ClassId, usize>,
    pub(super) placed: usize,
    /// The nodes are those that are there, with the pods that they have: what is found holds for later loops.
    lasts: bool,
}

impl Tries {
    pub(super) fn new(lasts: bool) -> Self {
        Self { alike: BTreeSet::new(), classes: BTreeMap::new(), placed: 0, lasts }
    }

    /// Is it known that the pod fits nowhere?
    pub(super) fn is_hopeless(&self, pod: &PodView, view: &View) -> bool {
        let by_class = || {
            let then = self.classes.get(&pod.class);
            then.is_some_and(|then| *then == self.placed || !needs_company(view.what_if.cluster.class(pod.class)))
        };
        (self.lasts && view.hopeless.contains(pod.class)) || by_class() || self.alike.contains(&pod.likeness)
    }

    /// The pod was tried and has no place.
    pub(super) fn failed(&mut self, pod: &PodView, view: &mut View) {
        self.classes.insert(pod.class, self.placed);
        if matches!(pod.likeness, Likeness::Of(..)) {
            self.alike.insert(pod.likeness);
        }
        if self.lasts && self.placed == 0 && !needs_company(view.what_if.cluster.class(pod.class)) {
            view.hopeless.add(pod.class);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn class(spec: &Value) -> PodClass {
        PodClass::from_json("default", &json!({}), spec).unwrap()
    }

    #[test]
    fn pods_make_room_only_for_those_that_want_company() {
        let term = json!({"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}});
        let required = |kind: &str| {
            class(
                &json!({"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}, "containers": []}),
            )
        };
        assert!(needs_company(&required("podAffinity")));
        assert!(!needs_company(&required("podAntiAffinity")));
        let spread = |what: &str| {
            let one = json!({"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": what, "labelSelector": {}});
            class(&json!({"topologySpreadConstraints": [one], "containers": []}))
        };
        assert!(needs_company(&spread("DoNotSchedule")));
        assert!(!needs_company(&spread("ScheduleAnyway")));
    }

    #[test]
    fn a_class_is_hopeless_until_room_is_made_or_a_pod_of_it_goes() {
        let mut hopeless = Hopeless::default();
        let (one, other) = (ClassId(3), ClassId(1));
        assert!(!hopeless.contains(one));
        hopeless.add(one);
        assert!(hopeless.contains(one) && !hopeless.contains(other) && !hopeless.contains(ClassId(9)));
        hopeless.room_made();
        assert!(!hopeless.contains(one));
        hopeless.add(one);
        hopeless.add(other);
        hopeless.forget(one);
        assert!(!hopeless.contains(one) && hopeless.contains(other));
    }
}
