//! The driver's Job.
//!
//! The contract with the driver is its environment (`names::ENV_*`): the name of the Simulation, the webhook's
//! certificate, and where to send the record with which token. Everything else the driver reads from the Simulation.

use serde_json::{Value, json};
use sk_api::simulation::names;

use crate::parts::Plan;

/// Where the webhook's certificate is mounted.
const CERT_DIR: &str = "/etc/simkube/webhook";
/// Where the token and the authority for sending the record are mounted.
const RECORDS_DIR: &str = "/etc/simkube/records";
/// Where the driver may write. Not /tmp, which would hide a trace that lies in the node's.
const SCRATCH_DIR: &str = "/var/lib/simkube/scratch";
/// Where its last words go.
const TERMINATION_LOG: &str = "/dev/termination-log";
/// How long a token lives before the kubelet brings a new one.
const TOKEN_SECS: u32 = 3600;
/// How long a driver that is stopped has to send what it has and to take away what it made. A root with thousands of
/// objects takes the garbage collector half a minute.
const GRACE_SECS: u32 = 120;
/// What a driver asks for. Measured drivers take far less; a limit on memory keeps a bad trace from hurting its node.
const REQUESTS: (&str, &str) = ("100m", "128Mi");
const MEMORY_LIMIT: &str = "2Gi";

/// The Job's spec.
pub(crate) fn spec(plan: &Plan<'_>) -> Value {
    let spec = &plan.simulation.spec;
    let labels = json!({names::SIMULATION_LABEL: plan.name(), names::COMPONENT_LABEL: names::DRIVER});
    let mut job = json!({
        "completions": spec.repetitions,
        // One repetition after the other, each knowing which it is.
        "parallelism": 1,
        "completionMode": "Indexed",
        // A repetition that was broken off has left half a story behind; another try would not be the same run.
        "backoffLimit": 0,
        "template": {"metadata": {"labels": labels}, "spec": pod(plan)},
    });
    if let Some(seconds) = spec.driver.deadline_seconds {
        job["activeDeadlineSeconds"] = seconds.into();
    }
    job
}

fn pod(plan: &Plan<'_>) -> Value {
    let mut volumes = vec![
        json!({"name": "webhook", "secret": {"secretName": names::driver_certificate(plan.name())}}),
        json!({"name": "records", "projected": {"sources": [
            {"configMap": {"name": names::driver_ca(plan.name()), "items": [{"key": names::CA_KEY, "path": names::CA_KEY}]}},
            {"serviceAccountToken": {
                "audience": names::CONTROLLER_AUDIENCE, "expirationSeconds": TOKEN_SECS, "path": "token",
            }},
        ]}}),
        json!({"name": "scratch", "emptyDir": {}}),
    ];
    let mut mounts = vec![
        json!({"name": "webhook", "mountPath": CERT_DIR, "readOnly": true}),
        json!({"name": "records", "mountPath": RECORDS_DIR, "readOnly": true}),
        json!({"name": "scratch", "mountPath": SCRATCH_DIR}),
    ];
    if let Some(path) = local_path(&plan.simulation.spec.driver.trace_path) {
        volumes.push(json!({"name": "trace", "hostPath": {"path": path, "type": "File"}}));
        mounts.push(json!({"name": "trace", "mountPath": path, "readOnly": true}));
    }
    json!({
        "restartPolicy": "Never",
        "serviceAccountName": plan.settings.driver_account,
        "terminationGracePeriodSeconds": GRACE_SECS,
        "securityContext": {
            "runAsNonRoot": true, "runAsUser": 65532, "runAsGroup": 65532, "fsGroup": 65532,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container(plan, &mounts)],
        "volumes": volumes,
    })
}

fn container(plan: &Plan<'_>, mounts: &[Value]) -> Value {
    let driver = &plan.simulation.spec.driver;
    let image = driver.image.as_ref().unwrap_or(&plan.settings.driver_image);
    let arguments: Vec<_> = ["run", "--simulation", plan.name()]
        .into_iter()
        .map(str::to_owned)
        .chain(driver.args.iter().cloned())
        .collect();
    let allowed = plan.settings.allow_hooks.then(|| (names::ENV_ALLOW_HOOKS, "true".to_owned()));
    let variables = [
        (names::ENV_SIMULATION, plan.name().to_owned()),
        (names::ENV_CERT_DIR, CERT_DIR.to_owned()),
        (names::ENV_RECORDS_URL, plan.settings.records_url.clone()),
        (names::ENV_RECORDS_CA, format!("{RECORDS_DIR}/{}", names::CA_KEY)),
        (names::ENV_RECORDS_TOKEN, format!("{RECORDS_DIR}/token")),
        (names::ENV_TERMINATION_LOG, TERMINATION_LOG.to_owned()),
        ("TMPDIR", SCRATCH_DIR.to_owned()),
    ];
    let env: Vec<_> =
        variables.into_iter().chain(allowed).map(|(name, value)| json!({"name": name, "value": value})).collect();
    let env_from: Vec<_> = driver.secrets.iter().map(|secret| json!({"secretRef": {"name": secret}})).collect();
    json!({
        "name": "driver",
        "image": image,
        "args": arguments,
        "env": env,
        "envFrom": env_from,
        "ports": [{"name": "https", "containerPort": driver.port}],
        "volumeMounts": mounts,
        "resources": {
            "requests": {"cpu": REQUESTS.0, "memory": REQUESTS.1}, "limits": {"memory": MEMORY_LIMIT},
        },
        "terminationMessagePath": TERMINATION_LOG,
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": {
            "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": {"drop": ["ALL"]},
        },
    })
}

/// The path of a trace that lies on the node, and nowhere else.
pub(crate) fn local_path(location: &str) -> Option<&str> {
    let path = location.strip_prefix("file://").unwrap_or(location);
    path.starts_with('/').then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;

    fn job_where(trace: &str, allow_hooks: bool) -> Value {
        let simulation = json!({
            "apiVersion": "simkube.io/v1", "kind": "Simulation", "metadata": {"name": "a"},
            "spec": {
                "driver": {"tracePath": trace, "args": ["--stop-on-refusal"], "secrets": ["s3"], "deadlineSeconds": 9},
                "repetitions": 3,
            },
        });
        let simulation = serde_json::from_value(simulation).unwrap();
        let settings = Settings { allow_hooks, ..Settings::in_namespace("simkube", "sk-driver:1") };
        Plan { simulation: &simulation, settings: &settings, root_uid: "u" }.job()
    }

    fn job(trace: &str) -> Value {
        job_where(trace, false)
    }

    #[test]
    fn repetitions_run_one_after_the_other_and_are_never_tried_again() {
        let job = job("s3://a/b");
        let picked = ["completions", "parallelism", "backoffLimit", "completionMode", "activeDeadlineSeconds"]
            .map(|field| job["spec"][field].clone());
        assert_eq!(picked, [json!(3), json!(1), json!(0), json!("Indexed"), json!(9)]);
        let container = &job["spec"]["template"]["spec"]["containers"][0];
        assert_eq!(container["args"], json!(["run", "--simulation", "a", "--stop-on-refusal"]));
        assert_eq!(container["envFrom"], json!([{"secretRef": {"name": "s3"}}]));
    }

    #[test]
    fn a_driver_is_told_that_it_may_run_hooks_only_where_that_is_allowed() {
        let told = |allow_hooks| {
            let job = job_where("s3://a/b", allow_hooks);
            let env = job["spec"]["template"]["spec"]["containers"][0]["env"].as_array().unwrap().clone();
            env.iter().find(|entry| entry["name"] == "SIMKUBE_ALLOW_HOOKS").map(|entry| entry["value"].clone())
        };
        assert_eq!(told(true), Some(json!("true")));
        assert_eq!(told(false), None);
    }

    #[test]
    fn only_a_local_trace_is_mounted_from_the_node() {
        let mounted = |trace: &str| {
            let job = job(trace);
            let volumes = job["spec"]["template"]["spec"]["volumes"].as_array().unwrap().clone();
            volumes.iter().find(|volume| volume["name"] == "trace").map(|volume| volume["hostPath"]["path"].clone())
        };
        assert_eq!(mounted("/traces/a.sktrace"), Some(json!("/traces/a.sktrace")));
        assert_eq!(mounted("file:///traces/a.sktrace"), Some(json!("/traces/a.sktrace")));
        assert_eq!(mounted("https://example.com/a.sktrace"), None);
        assert_eq!(mounted(&names::uploaded_trace_path(&"0".repeat(64))), None);
    }
}
