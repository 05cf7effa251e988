//! Checks that the tracer is installed, records, and has enough disk space.

use std::collections::BTreeSet;

use anyhow::Result;
use indicatif::{BinaryBytes, HumanCount};
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim};
use kube::api::{Api, ListParams};
use sk_api::tracer::Config;
use sk_core::{Gvk, Quantity};
use sk_tracer::install;

use super::{Finding, objects, rights};
use crate::cluster::installation::{self, TRACER};
use crate::cluster::kinds::Kinds;
use crate::cluster::rights::Right;
use crate::cluster::{Cluster, words};

/// What exporting takes.
const RIGHTS: [Right; 5] = [
    Right::in_namespace("list", "pods", ""),
    Right::in_namespace("get", "pods", "portforward"),
    Right::in_namespace("create", "pods", "portforward"),
    Right::in_namespace("get", "configmaps", "").of(install::CERTIFICATE),
    Right::in_namespace("create", "serviceaccounts", "token").of(install::EXPORTER),
];

/// What a tracer takes before it has seen anything.
const IDLE_BYTES: u64 = 64 << 20;
/// What each living object costs on top: the last state that was seen, its owners, and its place in three indexes.
const OBJECT_BYTES: u64 = 3 << 10;
/// What the installation allows a tracer.
const MEMORY_LIMIT_BYTES: u64 = 1 << 30;
/// Longer answers than this are no readiness.
const MAX_ANSWER_BYTES: usize = 64 << 10;

pub(super) async fn examine(cluster: &Cluster) -> Result<Vec<Finding>> {
    let advice = format!("ask for the Role and ClusterRole {} of `skctl manifests tracer`", install::EXPORTER_ROLE);
    let mut findings = vec![rights(cluster, &RIGHTS, &advice).await];
    let manifests = installation::tracer_in(&cluster.namespace)?;
    findings.push(objects::presence(cluster, &manifests, "skctl install tracer").await);
    let pod = objects::pod(cluster, &TRACER).await;
    let is_ready = pod.state == super::State::Ok;
    findings.push(pod);
    if is_ready {
        findings.push(recording(cluster).await);
    }
    match config(cluster).await {
        Ok(config) => findings.extend([disk(cluster, &config).await, memory(cluster, &config).await]),
        Err(why) => findings.push(Finding::warn("config", why, "skctl install tracer -c CONFIG")),
    }
    Ok(findings)
}

/// Asks the tracer itself, the way an export would.
async fn recording(cluster: &Cluster) -> Finding {
    let advice = format!("kubectl -n {} logs deploy/{}", cluster.namespace, install::NAME);
    let mut tracer = match TRACER.open(cluster).await {
        Ok(tracer) => tracer,
        Err(error) => return Finding::fail("recording", error.to_string(), advice),
    };
    match tracer.text("/readyz", MAX_ANSWER_BYTES).await {
        Ok(_) => Finding::ok("recording", "the tracer watches all of its kinds; token and certificate are valid"),
        Err(error) => Finding::fail("recording", error.to_string(), advice),
    }
}

/// The configuration of the tracer in the cluster.
async fn config(cluster: &Cluster) -> Result<Config, String> {
    let api: Api<ConfigMap> = Api::namespaced(cluster.client.clone(), &cluster.namespace);
    let map = api.get_opt(install::NAME).await.map_err(|error| format!("cannot be read: {}", words(&error)))?;
    let data = map.and_then(|map| map.data).unwrap_or_default();
    let (file, text) = data.iter().next().ok_or_else(|| "the tracer's is not there".to_owned())?;
    Config::parse(file, text).map_err(|error| format!("the tracer's configuration is invalid: {error}"))
}

async fn disk(cluster: &Cluster, config: &Config) -> Finding {
    let wanted = install::sizing(config);
    let sum = format!("expected {}: {}", BinaryBytes(wanted.bytes), wanted.arithmetic);
    let api: Api<PersistentVolumeClaim> = Api::namespaced(cluster.client.clone(), &cluster.namespace);
    let claim = match api.get_opt(install::NAME).await {
        Ok(Some(claim)) => claim,
        Ok(None) => return Finding::warn("disk", sum, "there is no volume yet"),
        Err(error) => return Finding::warn("disk", sum, format!("cannot read the volume: {}", words(&error))),
    };
    let given = claim.status.and_then(|status| status.capacity).and_then(|mut capacity| capacity.remove("storage"));
    let asked = claim.spec.and_then(|spec| spec.resources?.requests?.remove("storage"));
    let bytes = given.or(asked).and_then(|size| size.0.parse::<Quantity>().ok());
    match bytes.and_then(|bytes| u64::try_from(bytes.value()).ok()) {
        Some(bytes) if bytes < wanted.bytes => {
            let what = format!("{sum}; the volume has {}", BinaryBytes(bytes));
            Finding::warn("disk", what, "make the volume larger, or retention.bytes smaller")
        }
        Some(bytes) => Finding::ok("disk", format!("{sum}; the volume has {}", BinaryBytes(bytes))),
        None => Finding::warn("disk", sum, "the volume has no capacity"),
    }
}

/// Memory grows with what lives, not with what happens.
async fn memory(cluster: &Cluster, config: &Config) -> Finding {
    let always = ["v1.Pod", "v1.Node"].iter().filter_map(|kind| kind.parse::<Gvk>().ok());
    let kinds: BTreeSet<Gvk> = config.tracked_objects.keys().cloned().chain(always).collect();
    let mut living = 0;
    let mut unknown = Vec::new();
    let mut served = Kinds::of(cluster);
    for kind in &kinds {
        match count(&mut served, kind).await {
            Some(count) => living += count,
            None => unknown.push(kind.to_string()),
        }
    }
    let bytes = IDLE_BYTES + living * OBJECT_BYTES;
    let sum = format!(
        "expected {}: {} + {} objects × {}",
        BinaryBytes(bytes),
        BinaryBytes(IDLE_BYTES),
        HumanCount(living),
        BinaryBytes(OBJECT_BYTES)
    );
    if bytes > MEMORY_LIMIT_BYTES {
        let advice =
            format!("record fewer kinds or namespaces, or raise the limit of {}", BinaryBytes(MEMORY_LIMIT_BYTES));
        return Finding::warn("memory", sum, advice);
    }
    if unknown.is_empty() {
        return Finding::ok("memory", sum);
    }
    Finding::warn("memory", format!("{sum}, and {}", unknown.join(", ")), "you may not list them, or there are none")
}

/// How many objects of a kind there are; `None` if it is unknown.
async fn count(kinds: &mut Kinds<'_>, kind: &Gvk) -> Option<u64> {
    let api = kinds.api_everywhere(kind).await.ok()?;
    let listed = api.list_metadata(&ListParams::default().limit(1)).await.ok()?;
    let rest = listed.metadata.remaining_item_count.unwrap_or(0);
    Some(listed.items.len() as u64 + u64::try_from(rest).unwrap_or(0))
}
