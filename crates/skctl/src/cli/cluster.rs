//! Commands and flags that concern a real cluster.

use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Subcommand, ValueEnum};
use sk_core::LabelSelector;

use super::{TRACE_HELP, TableFormat};

pub(super) const EXPORT_EXAMPLES: &str = "Examples:
  skctl --context prod-eu1 export -s -7d -O week.sktrace
  skctl export -s 2026-11-10T13:30 -t 2026-11-10T15:00 -O tuesday.sktrace --tz Europe/Berlin
  skctl export -s -2h -D 1h --excluded-namespaces hr -O s3://sim-traces/prod-eu1/hour.sktrace";

pub(super) const SNAPSHOT_EXAMPLES: &str = "Examples:
  skctl --context prod-eu1 snapshot -O now.sktrace
  skctl snapshot -c tracer.yaml -O now.sktrace";

pub(super) const RECORD_EXAMPLES: &str = "Examples:
  skctl record -O incident.sktrace
  skctl --context lab record -c tracer.yaml -O test.sktrace

The recording is kept in OUT.recording/ until it is done. After a crash, the same command continues it.";

pub(super) const MANIFESTS_EXAMPLES: &str = "Examples:
  skctl manifests tracer -c tracer.yaml | tee review.yaml | kubectl --context prod-eu1 apply -f -
  skctl manifests crd | kubectl diff -f -";

pub(super) const INSTALL_EXAMPLES: &str = "Examples:
  skctl --context prod-eu1 install tracer -c tracer.yaml --dry-run
  skctl --context lab install sim
  skctl --context lab install sim --image-prefix registry.example.com/simkube
  skctl --context lab install sim --also secrets --also widgets.example.com";

pub(super) const DOCTOR_EXAMPLES: &str = "Examples:
  skctl --context prod-eu1 doctor tracer
  skctl doctor -o json | jq '.[] | select(.state == \"fail\")'";

pub(super) const LAB_EXAMPLES: &str = "Examples:
  KUBEBUILDER_ASSETS=~/kubernetes/bin skctl lab up
  skctl lab status -o json
  skctl lab down

Needs etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kwok in $KUBEBUILDER_ASSETS or on the PATH.";

/// `skctl export`
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// Start at this time: -7d before now, 2026-11-10T14:00, or RFC 3339.
    #[arg(short = 's', long = "start", alias = "start-time", value_name = "TIME", allow_hyphen_values = true)]
    pub start: String,
    /// End before this time; by default now.
    #[arg(short = 't', long = "end", alias = "end-time", value_name = "TIME", allow_hyphen_values = true)]
    pub end: Option<String>,
    /// End this long after the start.
    #[arg(short = 'D', long, value_name = "DURATION", conflicts_with = "end")]
    pub duration: Option<String>,
    /// Write the trace to this path or URL. The tracer itself writes to s3://, gs:// and azure://.
    #[arg(short = 'O', long = "out", short_alias = 'o', alias = "output-path", value_name = "OUT")]
    pub out: String,
    /// Export these namespaces only; may be repeated or separated by commas.
    #[arg(long, value_name = "NAMESPACE", value_delimiter = ',')]
    pub include_namespaces: Vec<String>,
    /// Leave these namespaces out; may be repeated or separated by commas.
    #[arg(long, value_name = "NAMESPACE", value_delimiter = ',')]
    pub excluded_namespaces: Vec<String>,
    /// Export objects with these labels only: 'app=web,tier in (a, b),!debug'.
    #[arg(short = 'l', long, value_name = "SELECTOR", default_value = "", hide_default_value = true)]
    pub selector: LabelSelector,
    /// Trace format.
    #[arg(long, value_enum, default_value = "native", value_name = "FORM")]
    pub format: ExportForm,
    /// The address of the tracer, such as http://localhost:7777; by default it is found in the cluster.
    #[arg(long, value_name = "URL")]
    pub tracer_address: Option<String>,
    /// The SKEL program that SimKube 2 ran on the way.
    #[arg(long, hide = true)]
    pub transform: Option<PathBuf>,
}

/// Formats that the tracer exports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExportForm {
    /// Compressed, with random access, gaps and observations.
    Native,
    /// The format of SimKube 2.
    V2,
}

impl ExportForm {
    /// What it is called in a request.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::V2 => "v2",
        }
    }
}

/// `skctl snapshot`
#[derive(Debug, Args)]
pub struct SnapshotArgs {
    /// The tracer configuration; by default the usual workloads are recorded (`-v info` prints which).
    #[arg(short = 'c', long = "config-file", value_name = "CONFIG")]
    pub config: Option<PathBuf>,
    /// Write the trace to this path or URL.
    #[arg(short = 'O', long = "out", short_alias = 'o', alias = "output", value_name = "OUT")]
    pub out: String,
    /// Leave these namespaces out; may be repeated or separated by commas.
    #[arg(long, value_name = "NAMESPACE", value_delimiter = ',')]
    pub excluded_namespaces: Vec<String>,
}

/// `skctl record`
#[derive(Debug, Args)]
pub struct RecordArgs {
    /// The tracer configuration; by default the usual workloads are recorded (`-v info` prints which).
    #[arg(short = 'c', long = "config-file", value_name = "CONFIG")]
    pub config: Option<PathBuf>,
    /// Write the trace to this file when the recording ends. The command refuses a file that exists.
    #[arg(short = 'O', long = "out", value_name = "FILE")]
    pub out: PathBuf,
    /// Replace FILE if it exists. The old file stays until the new trace is complete.
    #[arg(long)]
    pub force: bool,
}

/// Options of the tracer's manifests.
#[derive(Clone, Debug, Default, Args)]
pub struct TracerArgs {
    /// The tracer configuration; by default the usual workloads are recorded (`-v info` prints which).
    #[arg(short = 'c', long = "config-file", value_name = "CONFIG")]
    pub config: Option<PathBuf>,
    /// The image of the tracer.
    #[arg(long = "tracer-image", value_name = "IMAGE")]
    pub image: Option<String>,
    /// Pull the image from this registry and path: registry.example.com/simkube means
    /// registry.example.com/simkube/sk-tracer:VERSION.
    #[arg(long, value_name = "PREFIX", value_parser = image_prefix)]
    pub image_prefix: Option<String>,
}

/// Options of the simulator's manifests.
#[derive(Clone, Debug, Default, Args)]
pub struct SimArgs {
    /// The image of the controller.
    #[arg(long, value_name = "IMAGE")]
    pub ctrl_image: Option<String>,
    /// The image of the driver.
    #[arg(long, value_name = "IMAGE")]
    pub driver_image: Option<String>,
    /// Pull the images from this registry and path: registry.example.com/simkube means
    /// registry.example.com/simkube/sk-ctrl:VERSION and …/sk-driver:VERSION.
    #[arg(long, value_name = "PREFIX", value_parser = image_prefix)]
    pub image_prefix: Option<String>,
    /// Allow Simulations to use this driver image: a full name, or a prefix that ends before a `/`, `:` or `@`; may be
    /// repeated.
    #[arg(long = "allow-driver-image", value_name = "IMAGE")]
    pub allowed_images: Vec<String>,
    /// Allow Simulations to run hooks: commands in the controller and the driver.
    #[arg(long)]
    pub allow_hooks: bool,
    /// Allow drivers to read file:// traces from their node. Needs a namespace without a Pod Security Standard.
    #[arg(long)]
    pub local_traces: bool,
    /// Allow Simulations to run their driver in any namespace.
    #[arg(long)]
    pub any_namespace: bool,
    /// Allow the controller to create a Prometheus for Simulations that ask for one.
    #[arg(long)]
    pub metrics: bool,
    /// Allow the controller to request certificates from cert-manager for Simulations that name an issuer.
    #[arg(long)]
    pub cert_manager: bool,
    /// Allow drivers to replay this resource in the namespaces of their runs: secrets, widgets.example.com; may be
    /// repeated.
    #[arg(long, value_name = "RESOURCE[.GROUP]")]
    pub also: Vec<Resource>,
    /// Allow drivers to replay this cluster-scoped resource. They can then change every object of it; may be repeated.
    #[arg(long, value_name = "RESOURCE[.GROUP]")]
    pub also_cluster: Vec<Resource>,
}

/// A registry and a path in it, without the slash that follows.
fn image_prefix(text: &str) -> Result<String, String> {
    let prefix = text.trim_end_matches('/');
    let is_plain = |char: char| char.is_ascii_alphanumeric() || "-._:/".contains(char);
    if prefix.is_empty() || !prefix.chars().all(is_plain) || prefix.contains("//") {
        return Err("a registry and a path, as in registry.example.com:5000/simkube; no https://".to_owned());
    }
    Ok(prefix.to_owned())
}

/// A resource as kubectl writes it: the plural, and the group unless it is the core's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// The plural.
    pub plural: String,
    /// The group; empty for the core.
    pub group: String,
}

impl FromStr for Resource {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (plural, group) = text.split_once('.').unwrap_or((text, ""));
        let is_label = |part: &str| {
            let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
            !part.is_empty() && part.len() <= 63 && part.bytes().all(plain)
        };
        if !is_label(plural) || !(group.is_empty() || group.split('.').all(is_label)) || text.ends_with('.') {
            return Err("a resource is a plural and its group, as in `kubectl api-resources`: secrets, or \
                        widgets.example.com"
                .to_owned());
        }
        Ok(Self { plural: plural.to_owned(), group: group.to_owned() })
    }
}

/// `skctl manifests …`
#[derive(Debug, Subcommand)]
pub enum ManifestsCommand {
    /// The tracer: ServiceAccount, RBAC for the recorded kinds only, PersistentVolumeClaim, Deployment, Service.
    Tracer(TracerArgs),
    /// The simulator: CRDs, controller, RBAC, admission policies and KWOK stages.
    Sim(SimArgs),
    /// The CRDs Simulation and SimulationRoot.
    Crd,
}

/// The two installations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// The tracer, which records.
    Tracer,
    /// The simulator, which replays.
    Sim,
}

/// `skctl install`
#[derive(Debug, Args)]
pub struct InstallArgs {
    /// What to install.
    #[command(subcommand)]
    pub part: InstallPart,
    /// Send the manifests as a server-side dry run; change nothing.
    #[arg(long, global = true)]
    pub dry_run: bool,
    /// Overwrite fields that another field manager owns.
    #[arg(long, global = true)]
    pub force: bool,
    /// Do not wait until the pods are ready.
    #[arg(long, global = true)]
    pub no_wait: bool,
}

/// `skctl install …`
#[derive(Debug, Subcommand)]
pub enum InstallPart {
    /// Install the tracer, which records this cluster.
    Tracer(TracerArgs),
    /// Install the controller and KWOK stages, and mark the cluster as one to simulate on.
    Sim(SimArgs),
}

/// `skctl doctor`
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// The installation to check; by default both.
    #[arg(value_enum)]
    pub part: Option<Part>,
    /// Output format.
    #[arg(short = 'o', long = "output", value_enum, default_value = "table", value_name = "FORMAT")]
    pub output: TableFormat,
}

/// Output formats of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ObjectFormat {
    /// For people.
    #[value(alias = "list")]
    Table,
    /// For programs.
    Json,
    /// YAML.
    Yaml,
}

/// `skctl describe`
#[derive(Debug, Args)]
pub struct DescribeArgs {
    /// The name of the Simulation.
    pub name: String,
    /// Output format.
    #[arg(short = 'o', long = "output", value_enum, default_value = "table", value_name = "FORMAT")]
    pub output: ObjectFormat,
}

/// `skctl logs`
#[derive(Debug, Args)]
pub struct LogsArgs {
    /// The name of the Simulation.
    pub name: String,
}

/// `skctl pause`, `resume`, `delete`
#[derive(Debug, Args)]
pub struct NamedArgs {
    /// The name of the Simulation.
    pub name: String,
}

/// `skctl nodes …`
#[derive(Debug, Subcommand)]
pub enum NodesCommand {
    /// Create KWOK nodes from the groups of a scenario, or from the nodes recorded in a trace. Other nodes stay as they are.
    #[command(after_help = "Examples:
  skctl --context lab nodes apply -f pack.yaml
  skctl --context lab nodes apply -f example:nginx --set cluster.groups.small.min=10
  skctl --context lab nodes apply week.sktrace
  skctl --context lab nodes apply -f pack.yaml --delete")]
    Apply(NodesApplyArgs),
}

/// `skctl nodes apply`
#[derive(Debug, Args)]
pub struct NodesApplyArgs {
    #[arg(help = TRACE_HELP, required_unless_present = "scenario")]
    #[allow(missing_docs, reason = "the help text says it")]
    pub trace: Option<String>,
    /// The scenario with the node groups: a file, or `example:NAME`.
    #[arg(short = 'f', long = "scenario", value_name = "SCENARIO", conflicts_with = "trace")]
    pub scenario: Option<PathBuf>,
    /// Set one field of the scenario, such as cluster.groups.small.min=10; may be repeated.
    #[arg(long, value_name = "PATH=VALUE", requires = "scenario")]
    pub set: Vec<String>,
    /// Delete these nodes.
    #[arg(long)]
    pub delete: bool,
    /// Do not wait until the nodes are ready.
    #[arg(long, conflicts_with = "delete")]
    pub no_wait: bool,
}

/// `skctl lab …`
#[derive(Debug, Subcommand)]
pub enum LabCommand {
    /// Start the lab and print its kubeconfig.
    Up(LabPlaceArgs),
    /// Stop the lab and delete its folder, also after a crash.
    Down(LabPlaceArgs),
    /// Show whether the lab is up, and its processes. Exit code 1 if it is not.
    Status(LabStatusArgs),
    /// The process that supervises the lab.
    #[command(hide = true)]
    Serve(LabPlaceArgs),
    /// Executes one of its programs.
    #[command(hide = true)]
    Exec(LabWords),
    /// The controller, as `sk-ctrl`.
    #[command(hide = true)]
    Ctrl(LabWords),
    /// A driver, as `sk-driver`.
    #[command(hide = true)]
    Driver(LabWords),
}

/// Which lab.
#[derive(Debug, Args)]
pub struct LabPlaceArgs {
    /// The folder of the lab; by default ~/.local/state/simkube/lab.
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

/// `skctl lab status`
#[derive(Debug, Args)]
pub struct LabStatusArgs {
    /// Which lab.
    #[command(flatten)]
    pub place: LabPlaceArgs,
    /// Output format.
    #[arg(short = 'o', long = "output", value_enum, default_value = "table", value_name = "FORMAT")]
    pub output: TableFormat,
}

/// The arguments of another program.
#[derive(Debug, Args)]
pub struct LabWords {
    /// All of them.
    #[arg(last = true)]
    pub words: Vec<OsString>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_of_images_is_a_registry_and_a_path() {
        for (typed, read) in
            [("registry.example.com:5000/a/", "registry.example.com:5000/a"), ("localhost", "localhost")]
        {
            assert_eq!(image_prefix(typed).as_deref(), Ok(read));
        }
        for wrong in ["", "/", "https://registry.example.com", "a b"] {
            assert!(image_prefix(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_resource_is_written_as_kubectl_does() {
        let read = |text: &str| text.parse::<Resource>().map(|resource| (resource.plural, resource.group));
        assert_eq!(read("secrets"), Ok(("secrets".to_owned(), String::new())));
        assert_eq!(read("widgets.example.com"), Ok(("widgets".to_owned(), "example.com".to_owned())));
        for wrong in ["", "*", "Widget", "pods/log", "widgets.", ".example.com", "widgets..com", "v1.Pod"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
