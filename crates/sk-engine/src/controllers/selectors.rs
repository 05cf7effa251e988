//! Which label selectors of a namespace select a pod: found by the pod's labels instead of by trying each of them.
//!
//! Almost every selector requires one value of some label, so it can only select pods with that label. It stands in
//! the index under the rarest label that it requires, because all selectors of a namespace often share another one
//! (`part-of: shop`). A selector that requires no value (`Exists`, `NotIn`, an empty one) is tried with every pod.

use std::collections::{BTreeMap, BTreeSet};

use sk_apiserver::{Labels, ObjectId};
use sk_core::selector::{Operator, Requirement};
use sk_core::{LabelSelector, SmolStr};

/// The selectors of some kind of objects, by the namespace and id of the object.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selectors {
    namespaces: BTreeMap<SmolStr, OfNamespace>,
}

#[derive(Clone, Debug, Default)]
struct OfNamespace {
    all: BTreeMap<ObjectId, LabelSelector>,
    /// By a label and a value that the pod must have.
    by_label: BTreeMap<SmolStr, BTreeMap<SmolStr, BTreeSet<ObjectId>>>,
    /// Those that require no value of any label.
    without_label: BTreeSet<ObjectId>,
}

impl Selectors {
    pub(crate) fn is_empty(&self) -> bool {
        self.namespaces.is_empty()
    }

    /// What an object of the namespace selects.
    pub(crate) fn get(&self, namespace: &str, id: ObjectId) -> Option<&LabelSelector> {
        self.namespaces.get(namespace)?.all.get(&id)
    }

    /// Sets what an object selects.
    pub(crate) fn insert(&mut self, namespace: SmolStr, id: ObjectId, selector: LabelSelector) {
        self.remove(&namespace, id);
        self.namespaces.entry(namespace).or_default().insert(id, selector);
    }

    /// The object is gone.
    pub(crate) fn remove(&mut self, namespace: &str, id: ObjectId) {
        let Some(selectors) = self.namespaces.get_mut(namespace) else { return };
        selectors.remove(id);
        if selectors.all.is_empty() {
            self.namespaces.remove(namespace);
        }
    }

    /// The objects of the namespace that select these labels, by id.
    pub(crate) fn selecting(&self, namespace: &str, labels: &Labels) -> Vec<ObjectId> {
        let Some(selectors) = self.namespaces.get(namespace) else { return Vec::new() };
        let mut found: Vec<_> = selectors.candidates(labels).filter(|id| selectors.selects(*id, labels)).collect();
        found.sort_unstable();
        found
    }
}

impl OfNamespace {
    fn insert(&mut self, id: ObjectId, selector: LabelSelector) {
        let rarest = required(&selector).min_by_key(|required| self.sharing(required)).cloned();
        match rarest {
            Some(required) => {
                let by_value = self.by_label.entry(required.key().into()).or_default();
                for value in required.values() {
                    by_value.entry(value.clone()).or_default().insert(id);
                }
            }
            None if selector.is_nothing() => {}
            None => drop(self.without_label.insert(id)),
        }
        self.all.insert(id, selector);
    }

    /// How many selectors stand under the values of a requirement.
    fn sharing(&self, required: &Requirement) -> usize {
        let Some(by_value) = self.by_label.get(required.key()) else { return 0 };
        required.values().iter().filter_map(|value| by_value.get(value)).map(BTreeSet::len).sum()
    }

    fn remove(&mut self, id: ObjectId) {
        let Some(selector) = self.all.remove(&id) else { return };
        self.without_label.remove(&id);
        for required in required(&selector) {
            let Some(by_value) = self.by_label.get_mut(required.key()) else { continue };
            for value in required.values() {
                let is_last = by_value.get_mut(value).is_some_and(|ids| ids.remove(&id) && ids.is_empty());
                if is_last {
                    by_value.remove(value);
                }
            }
            if by_value.is_empty() {
                self.by_label.remove(required.key());
            }
        }
    }

    /// Those that may select these labels, each once: a selector stands under values of one label, of which a pod has one.
    fn candidates<'a>(&'a self, labels: &'a Labels) -> impl Iterator<Item = ObjectId> + 'a {
        let labelled = labels.iter().filter_map(|(key, value)| self.by_label.get(key)?.get(value)).flatten();
        labelled.chain(&self.without_label).copied()
    }

    fn selects(&self, id: ObjectId, labels: &Labels) -> bool {
        self.all.get(&id).is_some_and(|selector| selector.matches(&**labels))
    }
}

/// The requirements that name the values a label may have.
fn required(selector: &LabelSelector) -> impl Iterator<Item = &Requirement> {
    let requirements = if selector.is_nothing() { &[] } else { selector.requirements() };
    requirements.iter().filter(|requirement| requirement.operator() == Operator::In)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use sk_apiserver::{ApiServer, Object, Request};
    use sk_core::SimTime;
    use sk_core::rng::Stream;

    use super::*;
    use crate::controllers::new_namespace;

    /// So many ids, as a store gives them.
    fn ids(count: usize) -> Vec<ObjectId> {
        let mut server = ApiServer::new(1);
        server.handle(SimTime::EPOCH, Request::apply(new_namespace("default"))).unwrap();
        for number in 0..count {
            let metadata = json!({"name": format!("c{number}"), "namespace": "default"});
            let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
            server.handle(SimTime::EPOCH, Request::apply(Object::from_json(object).unwrap())).unwrap();
        }
        let is_ours = |object: &Object| object.gvk.kind == "ConfigMap";
        server.store().now().everything().filter(|(_, object)| is_ours(object)).map(|(id, _)| id).collect()
    }

    fn selector(json: &Value) -> LabelSelector {
        LabelSelector::from_json(json).unwrap()
    }

    fn labels(of: &[(&str, &str)]) -> Labels {
        of.iter().map(|(key, value)| (SmolStr::from(*key), SmolStr::from(*value))).collect()
    }

    #[test]
    fn a_pod_is_tried_with_the_selectors_that_ask_for_its_rarest_label_alone() {
        let (mut selectors, ids) = (Selectors::default(), ids(1_000));
        for (number, id) in ids.iter().enumerate() {
            let wanted = json!({"matchLabels": {"app": format!("a{number}"), "part-of": "shop"}});
            selectors.insert("n".into(), *id, selector(&wanted));
        }
        let pod = labels(&[("app", "a500"), ("part-of", "shop")]);
        let tried = selectors.namespaces["n"].candidates(&pod).count();
        assert!(tried <= 2, "{tried} of 1,000 selectors were tried");
        assert_eq!(selectors.selecting("n", &pod), [ids[500]]);
        assert!(selectors.selecting("other", &pod).is_empty());
    }

    #[test]
    fn the_index_finds_what_trying_every_selector_finds() {
        let ids = ids(12);
        for seed in 0..200 {
            let mut stream = Stream::new(seed, "selectors");
            let mut selectors = Selectors::default();
            let mut plain = BTreeMap::new();
            for _ in 0..40 {
                let id = ids[stream.below(12) as usize];
                if stream.below(3) == 0 {
                    selectors.remove("n", id);
                    plain.remove(&id);
                } else {
                    let wanted = drawn(&mut stream);
                    selectors.insert("n".into(), id, wanted.clone());
                    plain.insert(id, wanted);
                }
                let pod: Vec<_> =
                    ["a", "b", "c"].iter().map(|key| (*key, ["1", "2"][stream.below(2) as usize])).collect();
                let pod = labels(&pod[stream.below(3) as usize..]);
                let expected: Vec<_> =
                    plain.iter().filter(|(_, selector)| selector.matches(&*pod)).map(|(id, _)| *id).collect();
                assert_eq!(selectors.selecting("n", &pod), expected, "seed {seed}");
            }
            plain.keys().for_each(|id| selectors.remove("n", *id));
            assert!(selectors.is_empty(), "seed {seed}: nothing is left behind");
        }
    }

    fn drawn(stream: &mut Stream) -> LabelSelector {
        let key = ["a", "b", "c"][stream.below(3) as usize];
        let other = ["a", "b", "c"][stream.below(3) as usize];
        match stream.below(7) {
            0 => LabelSelector::nothing(),
            1 => LabelSelector::everything(),
            2 => selector(&json!({"matchLabels": {key: "1"}})),
            3 => selector(&json!({"matchLabels": {key: "1", other: "2"}})),
            4 => selector(&json!({"matchExpressions": [{"key": key, "operator": "In", "values": ["1", "2", "3"]}]})),
            5 => selector(&json!({"matchExpressions": [{"key": key, "operator": "NotIn", "values": ["1"]}]})),
            _ => selector(&json!({
                "matchLabels": {other: "1"}, "matchExpressions": [{"key": key, "operator": "Exists"}],
            })),
        }
    }
}
