//! Maps the flags of SimKube 2 to fields of the Simulation.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use serde_json::json;
use sk_api::simulation::spec::{Hooks, MetricsSpec, SimulationSpec};

use crate::cli::OldRunArgs;
use crate::text_file;

/// Writes them into the Simulation.
pub(super) fn apply(old: &OldRunArgs, spec: &mut SimulationSpec) -> Result<()> {
    if old.skip_local_volume_mount && spec.driver.trace_path.starts_with("file://") {
        bail!("--skip-local-volume-mount: a file:// trace lies on the node, and the driver reads it from a mount");
    }
    if let Some(namespace) = &old.driver_namespace {
        spec.driver.namespace.clone_from(namespace);
    }
    if let Some(prefix) = &old.virtual_ns_prefix {
        spec.driver.virtual_ns_prefix.clone_from(prefix);
    }
    if let Some(level) = &old.driver_verbosity {
        spec.driver.args.extend(["--verbosity".to_owned(), level.clone()]);
    }
    spec.hooks = hooks(&old.hooks)?;
    spec.metrics = metrics(old)?;
    Ok(())
}

/// The hooks of all files, in their order.
fn hooks(files: &[PathBuf]) -> Result<Hooks> {
    let mut all = Hooks::default();
    for path in files {
        let text = text_file::read("hooks file", path)?;
        let hooks: Hooks = serde_saphyr::from_str(&text).with_context(|| format!("--hooks {}", path.display()))?;
        all.pre_start_hooks.extend(hooks.pre_start_hooks);
        all.pre_run_hooks.extend(hooks.pre_run_hooks);
        all.post_run_hooks.extend(hooks.post_run_hooks);
        all.post_stop_hooks.extend(hooks.post_stop_hooks);
    }
    Ok(all)
}

/// A Prometheus, if a flag asks for one; what no flag says is the definition's default.
fn metrics(old: &OldRunArgs) -> Result<Option<MetricsSpec>> {
    if !old.asks_for_metrics() {
        return Ok(None);
    }
    let smallest: MetricsSpec = serde_json::from_value(json!({})).context("please report this")?;
    let endpoint = old.remote_write_endpoint.iter().map(|url| json!({"url": url}));
    Ok(Some(MetricsSpec {
        namespace: old.metrics_namespace.clone().unwrap_or(smallest.namespace),
        service_account: old.metrics_service_account.clone().unwrap_or(smallest.service_account),
        prometheus_shards: old.prometheus_shards,
        pod_monitor_names: old.metrics_pod_monitor_names.clone(),
        pod_monitor_namespaces: old.metrics_pod_monitor_namespaces.clone(),
        service_monitor_names: old.metrics_service_monitor_names.clone(),
        service_monitor_namespaces: old.metrics_service_monitor_namespaces.clone(),
        remote_write_configs: endpoint.collect(),
    }))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Command};

    fn apply_to(trace: &str, line: &str) -> Result<SimulationSpec> {
        let words = ["skctl", "run", trace, "--cluster"].into_iter().chain(line.split_whitespace());
        let Command::Run(args) = Cli::try_parse_from(words).unwrap().command else { panic!("it is a run") };
        let mut spec: SimulationSpec = serde_json::from_value(json!({"driver": {"tracePath": trace}})).unwrap();
        apply(&args.old, &mut spec)?;
        Ok(spec)
    }

    #[test]
    fn flags_become_fields() {
        let spec =
            apply_to("s3://b/a", "--driver-namespace sims --driver-verbosity debug --virtual-ns-prefix v").unwrap();
        assert_eq!((spec.driver.namespace.as_str(), spec.driver.virtual_ns_prefix.as_str()), ("sims", "v"));
        assert_eq!(spec.driver.args, ["--verbosity", "debug"]);
        assert_eq!(spec.metrics, None, "nobody asked for a Prometheus");
        let spec = apply_to("s3://b/a", "--metrics-pod-monitor-names a,b --remote-write-endpoint http://c/d").unwrap();
        let metrics = spec.metrics.expect("a Prometheus was asked for");
        assert_eq!(metrics.pod_monitor_names, ["a", "b"]);
        assert_eq!(metrics.remote_write_configs, [json!({"url": "http://c/d"})]);
        assert_eq!(metrics.service_account, "prometheus-k8s");
    }

    #[test]
    fn hooks_of_several_files_run_in_their_order() {
        let dir = tempfile::TempDir::new().unwrap();
        let file = |name: &str, text: &str| {
            let path = dir.path().join(name);
            std::fs::write(&path, text).unwrap();
            path.display().to_string()
        };
        let first = file("a.yaml", "preStartHooks: [{cmd: a}]\npostStopHooks: [{cmd: z, ignoreFailure: true}]\n");
        let second = file("b.yaml", "preStartHooks: [{cmd: b}]\n");
        let spec = apply_to("s3://b/a", &format!("--hooks {first}:{second}")).unwrap();
        let commands: Vec<&str> = spec.hooks.pre_start_hooks.iter().map(|hook| hook.cmd.as_str()).collect();
        assert_eq!(commands, ["a", "b"]);
        assert!(spec.hooks.post_stop_hooks[0].ignore_failure);
        let wrong = file("c.yaml", "preStartHooks: [{args: [a]}]\n");
        let refused = format!("{:#}", apply_to("s3://b/a", &format!("--hooks {wrong}")).unwrap_err());
        assert!(refused.contains("c.yaml") && refused.contains("cmd"), "{refused}");
    }

    #[test]
    fn a_trace_on_the_node_cannot_be_read_without_its_mount() {
        let refused = apply_to("file:///traces/a", "--skip-local-volume-mount").unwrap_err().to_string();
        assert!(refused.contains("--skip-local-volume-mount"), "{refused}");
        apply_to("s3://b/a", "--skip-local-volume-mount").unwrap();
    }
}
