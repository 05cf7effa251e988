//! The Kubernetes objects of a sweep: a ConfigMap with the plan and an Indexed Job with one pod per run, nothing else.
//!
//! Kubernetes distributes the runs and retries them. A pod has no ServiceAccount token and no permissions in the cluster; it
//! reads the trace and writes its record with the credentials of a Secret. Exit code 2 means that the run cannot be made: its
//! index fails at once, and the others continue. A pod that is lost with its node does not count as an attempt.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use sk_store::Location;

use super::file::{PLAN, RUNS, Sweep};
use crate::examples;

/// Where the plan is mounted.
const MOUNT: &str = "/plan";
/// What a ConfigMap may hold (core/v1 validation, `MaxSecretSize`), less what its metadata takes.
const MAX_PLAN_BYTES: usize = (1 << 20) - (16 << 10);
/// How often Kubernetes tries a run again that ended in another way than with exit code 2.
const RETRIES: u32 = 3;
/// Memory of a run, by default: an estimate on the safe side. A run of 100,000 pods peaks at 115 MiB (docs/benchmarks.md),
/// and a report needs as much again; a compressed trace of a few megabytes holds that many.
const BASE_BYTES: u64 = 256 << 20;
const BYTES_PER_TRACE_BYTE: u64 = 32;
/// The request for a trace of unknown size.
const UNKNOWN_BYTES: u64 = 2 << 30;

/// How the pods are to be.
#[derive(Debug)]
pub(super) struct Pods<'a> {
    pub(super) image: &'a str,
    pub(super) parallelism: Option<usize>,
    /// A Secret whose keys are the environment: credentials of the object store.
    pub(super) secret: Option<&'a str>,
    pub(super) namespace: Option<&'a str>,
    /// Memory of a pod, as Kubernetes writes it; by default estimated from the trace.
    pub(super) memory: Option<&'a str>,
    /// The size of the trace.
    pub(super) trace_bytes: Option<u64>,
}

/// Why a plan is for this machine alone; nothing if a pod can read the trace and write the records.
pub(super) fn obstacle(trace: &str, to: &str) -> Option<String> {
    let is_remote = |place: &str| matches!(place.parse(), Ok(Location::Remote(_)));
    if !is_remote(trace) && !trace.starts_with(examples::PREFIX) {
        return Some(format!("the trace {trace} is on this machine; give its URL in an object store"));
    }
    (!is_remote(to)).then(|| format!("the records go to {to} on this machine; give --to s3://…"))
}

/// The ConfigMap and the Job.
pub(super) fn manifests(sweep: &Sweep, pods: &Pods<'_>) -> Result<Vec<Value>> {
    let name = dns_label(&sweep.plan.name);
    let files = files(sweep)?;
    let bytes: usize = files.values().map(String::len).sum();
    if bytes > MAX_PLAN_BYTES {
        bail!("the plan has {bytes} bytes, and a ConfigMap holds {MAX_PLAN_BYTES}; split it into several sweeps");
    }
    let items: Vec<Value> = files.keys().map(|path| json!({"key": key(path), "path": path})).collect();
    let data: BTreeMap<String, &String> = files.iter().map(|(path, text)| (key(path), text)).collect();
    let metadata = |name: &str| {
        let mut metadata =
            json!({"name": name, "labels": {"app.kubernetes.io/name": "skctl-sweep", "simkube.io/sweep": name}});
        if let Some(namespace) = pods.namespace {
            metadata["namespace"] = json!(namespace);
        }
        metadata
    };
    let plan = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata(&name), "data": data});
    let job = json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata(&name),
        "spec": {
            "completionMode": "Indexed",
            "completions": sweep.lines.len(),
            "parallelism": pods.parallelism.unwrap_or(DEFAULT_PARALLELISM).min(sweep.lines.len()),
            "backoffLimitPerIndex": RETRIES,
            "podFailurePolicy": {"rules": [
                {"action": "FailIndex", "onExitCodes": {"containerName": "skctl", "operator": "In", "values": [2]}},
                {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]},
            ]},
            "template": {
                "metadata": {"labels": {"app.kubernetes.io/name": "skctl-sweep", "simkube.io/sweep": name}},
                "spec": pod(&name, &items, pods),
            },
        },
    });
    Ok(vec![plan, job])
}

/// The default parallelism: a run takes a core.
const DEFAULT_PARALLELISM: usize = 10;

/// Meets the `restricted` Pod Security Standard.
fn pod(name: &str, items: &[Value], pods: &Pods<'_>) -> Value {
    let memory =
        pods.trace_bytes.map_or(UNKNOWN_BYTES, |bytes| BASE_BYTES + bytes.saturating_mul(BYTES_PER_TRACE_BYTE));
    let memory = pods.memory.map_or_else(|| format!("{}Mi", memory.div_ceil(1 << 20)), str::to_owned);
    let credentials: Vec<Value> = pods.secret.iter().map(|secret| json!({"secretRef": {"name": secret}})).collect();
    json!({
        "restartPolicy": "Never",
        "automountServiceAccountToken": false,
        "enableServiceLinks": false,
        "securityContext": {"runAsNonRoot": true, "runAsUser": 65534, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [{
            "name": "skctl",
            "image": pods.image,
            "args": ["--quiet", "sweep", "run", MOUNT],
            "envFrom": credentials,
            "resources": {"requests": {"cpu": "1", "memory": memory}, "limits": {"memory": memory}},
            "securityContext": {
                "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": {"drop": ["ALL"]},
            },
            "terminationMessagePolicy": "FallbackToLogsOnError",
            "volumeMounts": [{"name": "plan", "mountPath": MOUNT, "readOnly": true}, {"name": "tmp", "mountPath": "/tmp"}],
        }],
        "volumes": [
            {"name": "plan", "configMap": {"name": name, "items": items}},
            // Where a run is written before it is sent.
            {"name": "tmp", "emptyDir": {}},
        ],
    })
}

/// The files of a plan by their paths in its folder.
fn files(sweep: &Sweep) -> Result<BTreeMap<String, String>> {
    let mut paths = vec![PLAN.to_owned(), RUNS.to_owned()];
    let folders: std::collections::BTreeSet<&str> = sweep.lines.iter().map(|line| line.folder.as_str()).collect();
    for folder in folders {
        let entries = fs::read_dir(sweep.dir.join(folder)).with_context(|| format!("cannot read {folder}"))?;
        for entry in entries {
            paths.push(format!("{folder}/{}", entry?.file_name().to_string_lossy()));
        }
    }
    let read = |path: String| -> Result<(String, String)> {
        let text = fs::read_to_string(sweep.dir.join(&path)).with_context(|| format!("cannot read {path}"))?;
        Ok((path, text))
    };
    paths.into_iter().map(read).collect()
}

/// A ConfigMap's key has no slashes.
fn key(path: &str) -> String {
    path.replace('/', ".")
}

fn dns_label(name: &str) -> String {
    let plain = |char: char| if char.is_ascii_alphanumeric() { char.to_ascii_lowercase() } else { '-' };
    // A Job's name and its pods' suffix fit into a label's 63 characters.
    let label: String = name.chars().map(plain).take(45).collect();
    let label = label.trim_matches('-');
    if label.is_empty() { "sweep".to_owned() } else { label.to_owned() }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::file::{Line, Plan};
    use super::*;

    fn sweep(dir: &Path, trace: &str, to: &str) -> Sweep {
        let line = |index: usize| Line {
            index,
            variant: String::new(),
            folder: "v0".into(),
            seed: 1,
            name: "pack".into(),
            run_id: format!("pack-{index}"),
        };
        fs::create_dir_all(dir.join("v0")).unwrap();
        fs::write(dir.join("v0/scenario.yaml"), "kind: Scenario\n").unwrap();
        let plan = Plan::new("Pack 36".into(), trace.into(), to.into(), false, Vec::new());
        let sweep = Sweep { dir: dir.to_owned(), plan, lines: (0..12).map(line).collect() };
        sweep.write().unwrap();
        sweep
    }

    fn pods() -> Pods<'static> {
        Pods {
            image: "skctl:0",
            parallelism: None,
            secret: Some("s3"),
            namespace: None,
            memory: None,
            trace_bytes: Some(4 << 20),
        }
    }

    #[test]
    fn a_job_has_an_index_for_each_run_and_no_rights() {
        let dir = tempfile::tempdir().unwrap();
        let sweep = sweep(dir.path(), "example:nginx", "s3://runs/pack");
        assert_eq!(obstacle(&sweep.plan.trace, &sweep.plan.to), None);
        let made = manifests(&sweep, &pods()).unwrap();
        let [plan, job] = made.as_slice() else { panic!("a ConfigMap and a Job: {made:?}") };
        assert_eq!((&plan["kind"], &job["metadata"]["name"]), (&json!("ConfigMap"), &json!("pack-36")));
        assert_eq!(plan["data"]["v0.scenario.yaml"], "kind: Scenario\n");
        assert_eq!(job["spec"]["completions"], 12);
        assert_eq!(job["spec"]["parallelism"], 10);
        let pod = &job["spec"]["template"]["spec"];
        assert_eq!(pod["automountServiceAccountToken"], false);
        let items = pod["volumes"][0]["configMap"]["items"].as_array().unwrap();
        assert!(items.contains(&json!({"key": "v0.scenario.yaml", "path": "v0/scenario.yaml"})), "{items:?}");
        assert_eq!(pod["containers"][0]["resources"]["requests"]["memory"], "384Mi");
        assert_eq!(pod["containers"][0]["envFrom"], json!([{"secretRef": {"name": "s3"}}]));
    }

    #[test]
    fn what_a_pod_cannot_reach_is_said() {
        let trace = obstacle("/home/me/week.sktrace", "s3://runs/pack").unwrap();
        assert!(trace.contains("/home/me/week.sktrace"), "{trace}");
        let records = obstacle("s3://traces/week.sktrace", "/home/me/runs").unwrap();
        assert!(records.contains("--to s3://"), "{records}");
    }

    #[test]
    fn a_plan_that_is_too_large_for_a_config_map_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let sweep = sweep(dir.path(), "example:nginx", "s3://runs/pack");
        fs::write(dir.path().join("v0/overlay.yaml"), "#".repeat(MAX_PLAN_BYTES)).unwrap();
        assert!(manifests(&sweep, &pods()).unwrap_err().to_string().contains("split it"));
    }
}
