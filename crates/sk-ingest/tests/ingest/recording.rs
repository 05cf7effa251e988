//! What the tests of this crate share: configurations, objects as a server sends them, and a recording to play with.

use std::sync::Arc;

use serde_json::{Value, json};
use sk_api::tracer::Config;
use sk_core::{Gvk, SimTime, SmolStr};
use sk_ingest::{Ledger, PrivacyKey, Role, Rules, Sighting};
use sk_store::log::{Applied, Fact, PodFacts};
use sk_testkit::objects::Object;

pub(crate) const DEPLOYMENT: Gvk = Gvk::new_static("apps", "v1", "Deployment");
pub(crate) const REPLICA_SET: Gvk = Gvk::new_static("apps", "v1", "ReplicaSet");
pub(crate) const POD: Gvk = Gvk::new_static("", "v1", "Pod");
pub(crate) const NODE: Gvk = Gvk::new_static("", "v1", "Node");
pub(crate) const CONFIG_MAP: Gvk = Gvk::new_static("", "v1", "ConfigMap");

pub(crate) fn config(yaml: &str) -> Config {
    Config::parse("test.yaml", yaml).unwrap()
}

pub(crate) fn rules(yaml: &str) -> Rules {
    Rules::new(&config(yaml), PrivacyKey::new([7; 16]))
}

pub(crate) fn kind(text: &str) -> Gvk {
    text.parse().unwrap()
}

/// The second `second` of the story.
pub(crate) fn at(second: i64) -> SimTime {
    SimTime::from_secs(1_700_000_000 + second)
}

/// An object as a server sends it: with what it allots.
pub(crate) fn served(object: Object, uid: &str) -> Value {
    let mut object = object.into_value();
    object["metadata"]["uid"] = json!(uid);
    object["metadata"]["resourceVersion"] = json!("1");
    if object["metadata"]["creationTimestamp"].is_null() {
        object["metadata"]["creationTimestamp"] = json!(at(0).to_rfc3339_secs());
    }
    object
}

pub(crate) fn sieve(rules: &Rules, kind: &Gvk, role: Role, object: &Value) -> Option<Sighting> {
    rules.sieve(kind, role, object.to_string().as_bytes()).unwrap()
}

/// The sanitised body of an object, as it goes into the log.
pub(crate) fn body(yaml: &str, kind: &Gvk, object: &Value) -> Value {
    serde_json::from_slice(&applied_once(yaml, kind, object).body).unwrap()
}

/// The fact that the first sight of an object makes.
pub(crate) fn applied_once(yaml: &str, kind: &Gvk, object: &Value) -> Applied {
    let mut recording = Recording::new(yaml);
    let facts = recording.applied(0, kind, object);
    let applied =
        facts.into_iter().find_map(|fact| if let Fact::Applied(applied) = fact { Some(applied) } else { None });
    applied.expect("an object of a tracked kind is recorded")
}

/// A ledger with its rules, driven as a tracer drives it.
pub(crate) struct Recording {
    pub(crate) rules: Arc<Rules>,
    pub(crate) ledger: Ledger,
}

impl Recording {
    /// With watchers on the tracked kinds, pods, nodes and ReplicaSets.
    pub(crate) fn new(yaml: &str) -> Self {
        Self::with_key(yaml, [7; 16])
    }

    /// The same, hiding under another key.
    pub(crate) fn with_key(yaml: &str, key: [u8; 16]) -> Self {
        let rules = Arc::new(Rules::new(&config(yaml), PrivacyKey::new(key)));
        let ledger = Ledger::new(rules.clone(), [POD, NODE, REPLICA_SET]);
        Self { rules, ledger }
    }

    fn role(&self, kind: &Gvk) -> Role {
        match kind {
            kind if *kind == POD => Role::Pod,
            kind if *kind == NODE => Role::Node,
            kind if self.rules.tracked_kinds().any(|tracked| tracked == kind) => Role::Tracked,
            _ => Role::Link,
        }
    }

    pub(crate) fn applied(&mut self, second: i64, kind: &Gvk, object: &Value) -> Vec<Fact> {
        let mut facts = Vec::new();
        if let Some(sighting) = sieve(&self.rules, kind, self.role(kind), object) {
            self.ledger.applied(at(second), sighting, &mut facts);
        }
        facts
    }

    pub(crate) fn deleted(&mut self, second: i64, kind: &Gvk, object: &Value) -> Vec<Fact> {
        let mut facts = Vec::new();
        if let Some(sighting) = sieve(&self.rules, kind, self.role(kind), object) {
            self.ledger.deleted(at(second), sighting, &mut facts);
        }
        facts
    }

    /// A whole list of a kind, with a gap since `since` if that is given.
    pub(crate) fn relisted(&mut self, second: i64, kind: &Gvk, objects: &[&Value], since: Option<i64>) -> Vec<Fact> {
        self.ledger.relist_begins(kind);
        let mut facts: Vec<_> = objects.iter().flat_map(|object| self.applied(second, kind, object)).collect();
        let gap = since.map(|since| (at(since), "the watch expired".to_owned()));
        self.ledger.relist_ended(at(second), kind, gap, &mut facts);
        facts
    }
}

/// What the facts say of the pod last.
pub(crate) fn pod_facts(facts: &[Fact]) -> &PodFacts {
    let pods = facts.iter().rev().filter_map(|fact| if let Fact::Pod(pod) = fact { Some(&**pod) } else { None });
    pods.into_iter().next().expect("a fact about a pod")
}

/// Facts as one word each.
pub(crate) fn words(facts: &[Fact]) -> Vec<String> {
    let word = |fact: &Fact| match fact {
        Fact::Applied(applied) => format!("applied {} {}", applied.object, applied.uid),
        Fact::Deleted(deleted) => format!("deleted {} {}", deleted.object, deleted.uid),
        Fact::Link(link) => format!("link {} {}", link.object, link.uid),
        Fact::Unlinked(uid) => format!("unlinked {uid}"),
        Fact::Pod(pod) if pod.deleted.is_some() => format!("gone {} {}", pod.pod, pod.uid),
        Fact::Pod(pod) => format!("pod {} {}", pod.pod, pod.uid),
        Fact::Node(name, Some(_)) => format!("node {name}"),
        Fact::Node(name, None) => format!("no node {name}"),
        Fact::Gap(gap) => format!("gap {}", gap.kind.as_ref().map_or(SmolStr::default(), |kind| kind.kind.clone())),
        Fact::Watched(watched) => format!("watched {} {}", watched.kind, watched.version),
        Fact::Lost(kind) => format!("lost {kind}"),
    };
    facts.iter().map(word).collect()
}
