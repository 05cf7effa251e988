//! The driver's admission webhook: gives every new pod of the run its start delays and lifetime, and restricts it to
//! virtual nodes.
//!
//! This holds for pods of any creator: an operator builds pods from templates that nobody has virtualised, and those
//! must not reach a real kubelet, nor their claims a real disk. The webhook changes pods and claims in namespaces of
//! the run only, and allows everything. The same request gets the same answer twice, so a retry of the API server does
//! not use up a recorded lifetime.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::{DefaultBodyLimit, State};
use axum::routing::{get, post};
use axum::{Json, Router};
use k8s_openapi::ByteString;
use serde_json::{Value, json};
use sk_api::simulation::names;
use sk_core::template::TEMPLATE_ANNOTATION;
use sk_core::{SimDuration, SmolStr, StableHash};
use sk_engine::api::directives::{CREATE_DELAY, READY_DELAY, millis};

use super::context::Context;
use super::pace::Pace;
use super::probe::{PROBE, SEEN};
use super::virtualise::toleration;
use super::volumes::claim_patch;
use sk_replay::mutate::{Decision, Mutator};
use sk_replay::plan::OWNER_ANNOTATION;

/// A review holds an object, at most 1.5 MiB in etcd, and of updates the old one too.
const MAX_REVIEW_BYTES: usize = 4 << 20;
/// Answers that are remembered, in case the API server asks again: it does so within seconds. At 1 KB each, 4 MB.
const MAX_REMEMBERED: usize = 4_096;

/// What the webhook answers with.
#[derive(Clone)]
pub(crate) struct Admission {
    context: Arc<Context>,
    mutator: Arc<Mutex<Mutator>>,
    remembered: Arc<Mutex<Remembered>>,
}

#[derive(Default)]
struct Remembered {
    patches: BTreeMap<String, Value>,
    order: VecDeque<String>,
}

impl Admission {
    pub(crate) fn new(context: Arc<Context>, mutator: Arc<Mutex<Mutator>>) -> Self {
        Self { context, mutator, remembered: Arc::default() }
    }

    /// All paths admit: which one the API server is told to call is the installation's choice.
    pub(crate) fn router(self) -> Router {
        Router::new()
            .route("/healthz", get(|| async { "ok" }))
            .fallback(post(review))
            .layer(DefaultBodyLimit::max(MAX_REVIEW_BYTES))
            .with_state(self)
    }

    /// The JSON patch for a request; `None` if it is none of the run's.
    fn patch(&self, request: &Value) -> Option<Value> {
        let text = |pointer: &str| request.pointer(pointer).and_then(Value::as_str);
        let is_dry = request["dryRun"].as_bool() == Some(true);
        if request.pointer("/object/metadata/annotations").and_then(|all| all.get(PROBE)).is_some() && is_dry {
            return Some(json_patch(&request["object"], [(PROBE.to_owned(), SEEN.into())], []));
        }
        if text("/operation") != Some("CREATE") {
            return None;
        }
        self.context.virtualiser.original_namespace(text("/namespace")?)?;
        match text("/kind/kind")? {
            "PersistentVolumeClaim" => {
                return Some(claim_patch(&self.context.virtualiser.simulation, &request["object"]));
            }
            "Pod" if !is_dry => {}
            _ => return None,
        }
        let uid = text("/uid")?.to_owned();
        let mut remembered = self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(patch) = remembered.patches.get(&uid) {
            return Some(patch.clone());
        }
        let patch = self.decide(&request["object"]);
        remembered.patches.insert(uid.clone(), patch.clone());
        remembered.order.push_back(uid);
        if remembered.order.len() > MAX_REMEMBERED {
            let oldest = remembered.order.pop_front().unwrap_or_default();
            remembered.patches.remove(&oldest);
        }
        Some(patch)
    }

    fn decide(&self, pod: &Value) -> Value {
        let annotations = &pod["metadata"]["annotations"];
        let stamped = |name: &str| annotations.get(name).and_then(Value::as_str);
        let decision = {
            let mut mutator = self.mutator.lock().unwrap_or_else(PoisonError::into_inner);
            mutator.decide(stamped(OWNER_ANNOTATION), stamped(TEMPLATE_ANNOTATION))
        };
        let hash = (names::POD_HASH_ANNOTATION.to_owned(), stable_hash(&pod["spec"]).to_string().into());
        let annotations = annotations_of(&decision, &self.context.pace).chain([hash]);
        let labels = [
            (names::SIMULATION_LABEL.to_owned(), self.context.virtualiser.simulation.as_str().into()),
            (names::VIRTUAL_LABEL.to_owned(), "true".into()),
        ];
        let mut patch = json_patch(pod, annotations, labels);
        if let Some(operations) = patch.as_array_mut() {
            operations.extend(to_virtual_nodes(&pod["spec"]));
        }
        patch
    }
}

/// What a decision writes on a pod of a cluster: delays in wall time, the life in the trace's.
///
/// Jitter has been drawn already, from the run's seed. Stages that read the jitter's annotation find the same value there
/// and so draw nothing on top.
pub(crate) fn annotations_of(decision: &Decision, pace: &Pace) -> impl Iterator<Item = (String, Value)> + use<> {
    let wall = |span: SimDuration| {
        let micros = i64::try_from(pace.wall(span).as_micros()).unwrap_or(i64::MAX);
        millis(SimDuration::from_micros(micros))
    };
    let (create, ready) = (wall(decision.create_delay), wall(decision.ready_delay));
    let delays = [
        (names::CREATE_DELAY_ANNOTATION, create.clone()),
        (names::CREATE_DELAY_JITTER_ANNOTATION, create),
        (names::READY_DELAY_ANNOTATION, ready.clone()),
        (names::READY_DELAY_JITTER_ANNOTATION, ready),
    ];
    let is_delay = |name: &SmolStr| *name == CREATE_DELAY || *name == READY_DELAY;
    let others: Vec<_> = decision.annotations().filter(|(name, _)| !is_delay(name)).collect();
    let delays = delays.into_iter().map(|(name, value)| (name.to_owned(), value.as_str().into()));
    delays.chain(others.into_iter().map(|(name, value)| (name.to_string(), value.as_str().into())))
}

/// The hash that the recording would have for this pod: without what a cluster run adds.
fn stable_hash(spec: &Value) -> StableHash {
    let mut spec = spec.clone();
    if let Some(fields) = spec.as_object_mut() {
        if let Some(selector) = fields.get_mut("nodeSelector").and_then(Value::as_object_mut) {
            selector.remove(names::NODE_SELECTOR.0);
            if selector.is_empty() {
                fields.remove("nodeSelector");
            }
        }
        if let Some(tolerations) = fields.get_mut("tolerations").and_then(Value::as_array_mut) {
            tolerations.retain(|toleration| toleration["key"] != names::NODE_TAINT);
        }
    }
    StableHash::of_pod_spec(&spec)
}

fn json_patch(
    pod: &Value,
    annotations: impl IntoIterator<Item = (String, Value)>,
    labels: impl IntoIterator<Item = (String, Value)>,
) -> Value {
    let mut operations = Vec::new();
    let mut add = |map: &str, entries: &mut dyn Iterator<Item = (String, Value)>| {
        let mut entries = entries.peekable();
        if entries.peek().is_some() && !pod["metadata"][map].is_object() {
            operations.push(json!({"op": "add", "path": format!("/metadata/{map}"), "value": {}}));
        }
        for (name, value) in entries {
            let name = name.replace('~', "~0").replace('/', "~1");
            operations.push(json!({"op": "add", "path": format!("/metadata/{map}/{name}"), "value": value}));
        }
    };
    add("annotations", &mut annotations.into_iter());
    add("labels", &mut labels.into_iter());
    Value::Array(operations)
}

/// What keeps a pod off real nodes, as far as its template has not seen to it.
fn to_virtual_nodes(spec: &Value) -> Vec<Value> {
    let mut operations = Vec::new();
    let mut add = |path: &str, value: Value| operations.push(json!({"op": "add", "path": path, "value": value}));
    let (label, virtual_node) = names::NODE_SELECTOR;
    if !spec["nodeSelector"].is_object() {
        add("/spec/nodeSelector", json!({label: virtual_node}));
    } else if spec["nodeSelector"][label] != virtual_node {
        let label = label.replace('~', "~0").replace('/', "~1");
        add(&format!("/spec/nodeSelector/{label}"), virtual_node.into());
    }
    let ours = toleration();
    match spec["tolerations"].as_array() {
        None => add("/spec/tolerations", json!([ours])),
        Some(present) if !present.contains(&ours) => add("/spec/tolerations/-", ours),
        Some(_) => {}
    }
    // A pod that names its node passes by the scheduler, and so by the selector.
    if spec.get("nodeName").is_some() {
        operations.push(json!({"op": "remove", "path": "/spec/nodeName"}));
    }
    operations
}

async fn review(State(admission): State<Admission>, Json(review): Json<Value>) -> Json<Value> {
    let request = &review["request"];
    let mut response = json!({"uid": request["uid"], "allowed": true});
    if let Some(patch) = admission.patch(request) {
        response["patchType"] = "JSONPatch".into();
        response["patch"] = json!(ByteString(patch.to_string().into_bytes()));
    }
    Json(json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}))
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use sk_core::SimTime;
    use sk_store::trace::{Life, OwnerLives, TemplateLives, TracerConfig};

    use super::*;
    use crate::cluster::clock::Clock;
    use crate::cluster::counters::Counters;
    use crate::cluster::kinds::Kinds;
    use crate::cluster::request::RetryPolicy;
    use crate::cluster::stop::Stop;
    use crate::cluster::virtualise::Virtualiser;
    use sk_replay::mutate::StartDelays;

    /// A webhook at ten times the recorded speed, for pods that pull for a second and lived for 10 and 20 seconds.
    fn admission() -> Admission {
        let nowhere = kube::Config::new(http::Uri::from_static("http://127.0.0.1:1"));
        let client = kube::Client::try_from(nowhere).unwrap();
        let (counters, stop) = (Counters::default(), Stop::default());
        let context = Context {
            retry: RetryPolicy::new(&counters, &stop, std::time::Duration::ZERO),
            parted: Mutex::default(),
            kinds: Kinds::new(client.clone()),
            client,
            virtualiser: Virtualiser::example(),
            role_binder: super::super::role_binding::RoleBinder::default(),
            config: TracerConfig::default(),
            counters,
            pace: Pace::new(Clock::paused(SimTime::EPOCH, 10.0, Instant::now())),
            stop,
            recorder: tokio::sync::mpsc::channel(1).0,
            stop_on_refusal: false,
            bare_pods: None,
        };
        let life = |seconds| Life {
            start: SimTime::EPOCH,
            end: Some(SimTime::from_secs(seconds)),
            guessed: false,
            exit_code: None,
        };
        let owner = sk_core::ObjectRef::new("batch/v1.Job".parse().unwrap(), "shop/j".parse().unwrap());
        let lives = vec![life(10), life(20)];
        let lives = OwnerLives { owner, templates: vec![TemplateLives { template: None, pod_hash: None, lives }] };
        let delays = StartDelays { image_pull: SimDuration::from_secs(1), ..StartDelays::default() };
        Admission::new(Arc::new(context), Arc::new(Mutex::new(Mutator::new(1, delays, [lives]))))
    }

    fn request(uid: &str, namespace: &str) -> Value {
        json!({
            "uid": uid, "namespace": namespace, "operation": "CREATE", "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "object": {
                "metadata": {"annotations": {OWNER_ANNOTATION: "batch/v1.Job:shop/j"}}, "spec": {"containers": []},
            },
        })
    }

    fn added(patch: &Value, annotation: &str) -> Value {
        let path = format!("/metadata/annotations/{}", annotation.replace('/', "~1"));
        let found = patch.as_array().unwrap().iter().find(|operation| operation["path"] == path.as_str());
        found.map(|operation| operation["value"].clone()).unwrap_or_default()
    }

    #[tokio::test]
    async fn a_request_that_is_sent_twice_gets_the_same_life_and_the_next_one_the_next() {
        let admission = admission();
        let lifetime = |uid: &str| {
            let patch = admission.patch(&request(uid, "virtual-shop")).unwrap();
            added(&patch, "static.simkube.io/lifetime")
        };
        assert_eq!(["a", "a", "b", "a"].map(lifetime), ["10000000us", "10000000us", "20000000us", "10000000us"]);
        let patch = admission.patch(&request("c", "virtual-shop")).unwrap();
        assert_eq!(added(&patch, names::POD_SEQUENCE_ANNOTATION), "2");
        assert_eq!(added(&patch, names::CREATE_DELAY_ANNOTATION), "100ms", "a recorded second at ten times the speed");
        assert_eq!(added(&patch, names::CREATE_DELAY_JITTER_ANNOTATION), "100ms");
        assert_ne!(added(&patch, names::POD_HASH_ANNOTATION), Value::Null);
        let label = json!({"op": "add", "path": "/metadata/labels/simkube.io~1virtual", "value": "true"});
        assert!(patch.as_array().unwrap().contains(&label), "the watch selects pods by it: {patch}");
    }

    #[tokio::test]
    async fn what_is_not_the_runs_is_left_as_it_is() {
        let admission = admission();
        let mut dry = request("a", "virtual-shop");
        dry["dryRun"] = json!(true);
        let mut update = request("a", "virtual-shop");
        update["operation"] = json!("UPDATE");
        for request in [request("a", "shop"), dry, update, json!({}), json!(null), json!({"kind": {"kind": "Pod"}})] {
            assert_eq!(admission.patch(&request), None, "{request}");
        }
    }

    #[tokio::test]
    async fn a_pod_whose_template_nobody_virtualised_is_kept_off_real_nodes() {
        let admission = admission();
        let about_nodes = |uid: &str, spec: Value| {
            let mut request = request(uid, "virtual-shop");
            request["object"]["spec"] = spec;
            let patch = admission.patch(&request).unwrap();
            let operations = patch.as_array().unwrap().iter();
            operations.filter(|one| one["path"].as_str().unwrap().starts_with("/spec")).cloned().collect::<Vec<_>>()
        };
        let bare = [
            json!({"op": "add", "path": "/spec/nodeSelector", "value": {"type": "virtual"}}),
            json!({"op": "add", "path": "/spec/tolerations", "value": [toleration()]}),
        ];
        assert_eq!(about_nodes("a", json!({"containers": []})), bare);
        let pinned = json!({
            "nodeName": "real", "nodeSelector": {"type": "metal", "disk": "ssd"}, "tolerations": [{"key": "gpu"}],
        });
        let moved = [
            json!({"op": "add", "path": "/spec/nodeSelector/type", "value": "virtual"}),
            json!({"op": "add", "path": "/spec/tolerations/-", "value": toleration()}),
            json!({"op": "remove", "path": "/spec/nodeName"}),
        ];
        assert_eq!(about_nodes("b", pinned), moved);
        let virtualised = json!({"nodeSelector": {"type": "virtual"}, "tolerations": [toleration()]});
        assert_eq!(about_nodes("c", virtualised), Vec::<Value>::new());
    }

    #[test]
    fn a_patch_makes_the_maps_it_needs_and_escapes_names() {
        let entries = || [("a/b~c".to_owned(), json!("x"))];
        let patch = json_patch(&json!({"metadata": {"labels": {"l": "m"}}}), entries(), entries());
        let wanted = json!([
            {"op": "add", "path": "/metadata/annotations", "value": {}},
            {"op": "add", "path": "/metadata/annotations/a~1b~0c", "value": "x"},
            {"op": "add", "path": "/metadata/labels/a~1b~0c", "value": "x"},
        ]);
        assert_eq!(patch, wanted);
    }

    #[test]
    fn the_hash_is_the_recordings() {
        let recorded = json!({"containers": [{"name": "c"}], "tolerations": [{"key": "other"}]});
        let mut replayed = recorded.clone();
        replayed["nodeSelector"] = json!({"type": "virtual"});
        replayed["tolerations"] = json!([{"key": "other"}, {"key": "kwok-provider", "operator": "Exists"}]);
        assert_eq!(stable_hash(&replayed), StableHash::of_pod_spec(&recorded));
    }
}
