//! The flags of SimKube 2's `run` that have no flag of their own any more. They are hidden, and they work.
//!
//! Scripts that were written for SimKube 2 keep running; docs/from-simkube.md says how each is written today. What has
//! the same meaning under another name is an alias where that name is declared, and is not repeated here.

use std::path::PathBuf;

use clap::Args;

/// Flags of SimKube 2's `skctl run`.
#[derive(Clone, Debug, Default, Args)]
pub struct OldRunArgs {
    /// The trace; today it is the first word.
    #[arg(long, hide = true)]
    pub trace_path: Option<String>,
    /// `timing.imagePullDelay`, in milliseconds.
    #[arg(long, hide = true)]
    pub image_pull_delay: Option<u32>,
    /// `timing.imagePullJitter`, in milliseconds.
    #[arg(long, hide = true)]
    pub image_pull_jitter: Option<u32>,
    /// `timing.podStartupDelay`, in milliseconds.
    #[arg(long, hide = true)]
    pub pod_startup_delay: Option<u32>,
    /// `timing.podStartupJitter`, in milliseconds.
    #[arg(long, hide = true)]
    pub pod_startup_jitter: Option<u32>,
    /// `spec.driver.namespace`.
    #[arg(long, hide = true)]
    pub driver_namespace: Option<String>,
    /// `spec.driver.args`: the driver's `--verbosity`.
    #[arg(long, hide = true)]
    pub driver_verbosity: Option<String>,
    /// `spec.driver.virtualNsPrefix`.
    #[arg(long, hide = true)]
    pub virtual_ns_prefix: Option<String>,
    /// `spec.hooks`, from files that are separated by colons.
    #[arg(long, hide = true, value_delimiter = ':')]
    pub hooks: Vec<PathBuf>,
    /// Only a `file://` trace is mounted today.
    #[arg(long, hide = true)]
    pub skip_local_volume_mount: bool,
    /// No Prometheus; today there is none unless a flag asks for it.
    #[arg(long, hide = true, conflicts_with_all = METRICS)]
    pub disable_metrics: bool,
    /// `spec.metrics.namespace`.
    #[arg(long, hide = true)]
    pub metrics_namespace: Option<String>,
    /// `spec.metrics.serviceAccount`.
    #[arg(long, hide = true)]
    pub metrics_service_account: Option<String>,
    /// `spec.metrics.podMonitorNamespaces`.
    #[arg(long, hide = true, value_delimiter = ',')]
    pub metrics_pod_monitor_namespaces: Vec<String>,
    /// `spec.metrics.podMonitorNames`.
    #[arg(long, hide = true, value_delimiter = ',')]
    pub metrics_pod_monitor_names: Vec<String>,
    /// `spec.metrics.serviceMonitorNamespaces`.
    #[arg(long, hide = true, value_delimiter = ',')]
    pub metrics_service_monitor_namespaces: Vec<String>,
    /// `spec.metrics.serviceMonitorNames`.
    #[arg(long, hide = true, value_delimiter = ',')]
    pub metrics_service_monitor_names: Vec<String>,
    /// `spec.metrics.prometheusShards`.
    #[arg(long, hide = true)]
    pub prometheus_shards: Option<u32>,
    /// `spec.metrics.remoteWriteConfigs`, as one URL.
    #[arg(long, hide = true)]
    pub remote_write_endpoint: Option<String>,
}

/// The flags that ask for a Prometheus.
const METRICS: [&str; 8] = [
    "metrics_namespace",
    "metrics_service_account",
    "metrics_pod_monitor_namespaces",
    "metrics_pod_monitor_names",
    "metrics_service_monitor_namespaces",
    "metrics_service_monitor_names",
    "prometheus_shards",
    "remote_write_endpoint",
];

impl OldRunArgs {
    /// The same as `--set` takes it: pods' start times are fields of the scenario today.
    pub(crate) fn sets(&self) -> Vec<String> {
        let timing = [
            ("imagePullDelay", self.image_pull_delay),
            ("imagePullJitter", self.image_pull_jitter),
            ("podStartupDelay", self.pod_startup_delay),
            ("podStartupJitter", self.pod_startup_jitter),
        ];
        let set = |(field, millis): (&str, Option<u32>)| millis.map(|millis| format!("timing.{field}={millis}ms"));
        timing.into_iter().filter_map(set).collect()
    }

    /// Does a flag ask for a Prometheus?
    pub(crate) fn asks_for_metrics(&self) -> bool {
        let lists = [
            &self.metrics_pod_monitor_namespaces,
            &self.metrics_pod_monitor_names,
            &self.metrics_service_monitor_namespaces,
            &self.metrics_service_monitor_names,
        ];
        self.metrics_namespace.is_some()
            || self.metrics_service_account.is_some()
            || self.prometheus_shards.is_some()
            || self.remote_write_endpoint.is_some()
            || lists.into_iter().any(|list| !list.is_empty())
    }

    /// The first flag that only a real cluster understands.
    pub(crate) fn needs_a_cluster(&self) -> Option<&'static str> {
        let typed = [
            ("--driver-namespace", self.driver_namespace.is_some()),
            ("--driver-verbosity", self.driver_verbosity.is_some()),
            ("--virtual-ns-prefix", self.virtual_ns_prefix.is_some()),
            ("--hooks", !self.hooks.is_empty()),
            ("--skip-local-volume-mount", self.skip_local_volume_mount),
            ("--disable-metrics", self.disable_metrics),
            ("--metrics-…", self.asks_for_metrics()),
        ];
        typed.iter().find(|(_, is_typed)| *is_typed).map(|(flag, _)| *flag)
    }
}
