//! The autoscaler keeps its picture of the cluster change by change: whatever happens, it is the picture that looking at
//! everything anew gives.

use serde_json::{Value, json};
use sk_core::{ObjectKey, ObjectRef, SimDuration};
use sk_engine::api::{DeleteOptions, Object, Request};
use sk_engine::kinds::{NAMESPACE, NODE, POD};
use sk_engine::{Autoscaler, Engine, Settings, Timing};

use crate::draw::Draw;
use crate::{START, Told, nodes};

const SEEDS: u64 = 30;
/// One random change on every third second.
const SECONDS: i64 = 150;

/// What the swarm does not draw, and the autoscaler looks at.
fn act(draw: &mut Draw, engine: &mut Engine) {
    let request = match draw.below(6) {
        0..3 => Some(bare_pod(draw)),
        3 => changed(draw, engine, &NODE, |draw, node| {
            let stays = if draw.below(2) == 0 { "true" } else { "false" };
            node["metadata"]["annotations"]["cluster-autoscaler.kubernetes.io/scale-down-disabled"] = json!(stays);
            node["metadata"]["labels"]["rack"] = json!(format!("r{}", draw.below(3)));
        }),
        4 => changed(draw, engine, &NAMESPACE, |draw, namespace| {
            namespace["metadata"]["labels"]["team"] = json!(format!("t{}", draw.below(3)));
        }),
        _ => changed(draw, engine, &POD, |draw, pod| {
            pod["metadata"]["labels"]["tier"] = json!(format!("t{}", draw.below(3)));
            let safe = if draw.below(2) == 0 { "true" } else { "false" };
            pod["metadata"]["annotations"]["cluster-autoscaler.kubernetes.io/safe-to-evict"] = json!(safe);
        }),
    };
    if let Some(request) = request {
        drop(engine.handle(request));
    }
}

/// Some fit nowhere, some are expendable, some are near others or not near them; and a name comes again.
fn bare_pod(draw: &mut Draw) -> Request {
    let name = format!("bare-{}", draw.below(12));
    if draw.below(4) == 0 {
        let target = ObjectRef::new(POD.clone(), ObjectKey::namespaced("default", name));
        return Request::Delete { target, options: DeleteOptions { grace_secs: Some(0), ..DeleteOptions::default() } };
    }
    let cpu = ["200m", "1500m", "3", "900"][draw.below(4) as usize];
    let mut spec = json!({"containers": [{"name": "main", "image": "a:1", "resources": {"requests": {"cpu": cpu}}}]});
    let term = json!([{
        "labelSelector": {"matchLabels": {"tier": "t0"}}, "namespaceSelector": {"matchLabels": {"team": "t0"}},
        "topologyKey": "kubernetes.io/hostname",
    }]);
    match draw.below(6) {
        0 => spec["priority"] = json!(-20),
        1 => spec["priority"] = json!(1_000),
        2 => spec["affinity"] = json!({"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": term}}),
        3 => spec["affinity"] = json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": term}}),
        _ => {}
    }
    let labels = json!({"tier": format!("t{}", draw.below(3))});
    let metadata = json!({"name": name, "namespace": "default", "labels": labels});
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec});
    Request::create(Object::from_json(pod).expect("a pod"))
}

/// An object of the kind, with something changed.
fn changed(
    draw: &mut Draw,
    engine: &Engine,
    kind: &sk_core::Gvk,
    change: impl Fn(&mut Draw, &mut Value),
) -> Option<Request> {
    let count = engine.list(kind).count() as u64;
    let mut object = engine.list(kind).nth(draw.below(count) as usize)?.to_json();
    change(draw, &mut object);
    Some(Request::update(Object::from_json(object).expect("what came out goes in")))
}

fn play(seed: u64) {
    let _told = Told(seed);
    let mut draw = Draw::new(seed);
    let timing = if draw.below(2) == 0 { Timing::ideal() } else { Timing::real_like() };
    let autoscaler = Autoscaler {
        scan_interval: SimDuration::from_secs(3),
        scale_down_unneeded_time: SimDuration::from_secs(20),
        scale_down_delay_after_add: SimDuration::from_secs(10),
        unremovable_node_recheck_timeout: SimDuration::from_secs(15),
        ..Autoscaler::default()
    };
    let mut group = nodes();
    group.max = 1 + draw.below(6) as u32;
    let settings = Settings { seed, timing, groups: vec![group], autoscaler, ..Settings::default() };
    let mut engine = Engine::new(&settings, START);
    for second in 1..=SECONDS {
        match second % 3 {
            0 => act(&mut draw, &mut engine),
            1 if draw.below(3) == 0 => draw.act(&mut engine),
            _ => {}
        }
        engine.advance_to(START + SimDuration::from_secs(second));
        assert_eq!(engine.strays(), None, "seed {seed}, second {second}");
    }
}

#[test]
fn the_autoscalers_kept_view_is_the_one_that_is_built_anew() {
    (1..=SEEDS).for_each(play);
}
