//! What can be typed about a real cluster.

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

What is recorded lies in OUT.recording/ meanwhile. After a crash the same command goes on from there.";

pub(super) const MANIFESTS_EXAMPLES: &str = "Examples:
  skctl manifests tracer -c tracer.yaml | tee review.yaml | kubectl --context prod-eu1 apply -f -
  skctl manifests crd | kubectl diff -f -";

pub(super) const INSTALL_EXAMPLES: &str = "Examples:
  skctl --context prod-eu1 install tracer -c tracer.yaml --dry-run
  skctl --context lab install sim
  skctl --context lab install sim --also secrets --also widgets.example.com";

pub(super) const DOCTOR_EXAMPLES: &str = "Examples:
  skctl --context prod-eu1 doctor tracer
  skctl doctor -o json | jq '.[] | select(.state == \"fail\")'";

/// `skctl export`
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// Begin here: -7d from now, 2026-11-10T14:00, or RFC 3339.
    #[arg(short = 's', long = "start", alias = "start-time", value_name = "TIME", allow_hyphen_values = true)]
    pub start: String,
    /// End before this time; now if not said.
    #[arg(short = 't', long = "end", alias = "end-time", value_name = "TIME", allow_hyphen_values = true)]
    pub end: Option<String>,
    /// End after this long.
    #[arg(short = 'D', long, value_name = "DURATION", conflicts_with = "end")]
    pub duration: Option<String>,
    /// Where the trace goes: a path or a URL. To s3://, gs:// and azure:// the tracer itself writes.
    #[arg(short = 'O', long = "out", short_alias = 'o', value_name = "OUT")]
    pub out: String,
    /// Only these namespaces; may be repeated, or separated by commas.
    #[arg(long, value_name = "NAMESPACE", value_delimiter = ',')]
    pub include_namespaces: Vec<String>,
    /// Not these namespaces.
    #[arg(long, value_name = "NAMESPACE", value_delimiter = ',')]
    pub excluded_namespaces: Vec<String>,
    /// Only what has such labels: 'app=web,tier in (a, b),!debug'.
    #[arg(short = 'l', long, value_name = "SELECTOR", default_value = "", hide_default_value = true)]
    pub selector: LabelSelector,
    /// In which form.
    #[arg(long, value_enum, default_value = "native", value_name = "FORM")]
    pub format: ExportForm,
    /// Where the tracer is, if it is not to be found in the cluster: http://localhost:7777.
    #[arg(long, value_name = "URL")]
    pub tracer_address: Option<String>,
}

/// A form that a tracer gives traces in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExportForm {
    /// Compressed, with random access, gaps and observations.
    Native,
    /// As SimKube 2 reads it.
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
    /// What is recorded; the usual workloads if not said (-v info prints them).
    #[arg(short = 'c', long = "config-file", value_name = "CONFIG")]
    pub config: Option<PathBuf>,
    /// Where the trace goes: a path or a URL.
    #[arg(short = 'O', long = "out", short_alias = 'o', value_name = "OUT")]
    pub out: String,
}

/// `skctl record`
#[derive(Debug, Args)]
pub struct RecordArgs {
    /// What is recorded; the usual workloads if not said (-v info prints them).
    #[arg(short = 'c', long = "config-file", value_name = "CONFIG")]
    pub config: Option<PathBuf>,
    /// The file that the trace is written to at the end. One that is there already is not overwritten.
    #[arg(short = 'O', long = "out", value_name = "FILE")]
    pub out: PathBuf,
    /// Replace FILE if it is there already; until the new trace is whole, the old one stays.
    #[arg(long)]
    pub force: bool,
}

/// What the tracer's installation is made from.
#[derive(Clone, Debug, Default, Args)]
pub struct TracerArgs {
    /// What is recorded; the usual workloads if not said (-v info prints them).
    #[arg(short = 'c', long = "config-file", value_name = "CONFIG")]
    pub config: Option<PathBuf>,
    /// The tracer's image.
    #[arg(long = "tracer-image", value_name = "IMAGE")]
    pub image: Option<String>,
}

/// What the simulator's installation is made from.
#[derive(Clone, Debug, Default, Args)]
pub struct SimArgs {
    /// The controller's image.
    #[arg(long, value_name = "IMAGE")]
    pub ctrl_image: Option<String>,
    /// The driver's image.
    #[arg(long, value_name = "IMAGE")]
    pub driver_image: Option<String>,
    /// Let Simulations name such images for their driver too: a whole one, or the beginning of several up to a `/`, `:`
    /// or `@`; may be repeated.
    #[arg(long = "allow-driver-image", value_name = "IMAGE")]
    pub allowed_images: Vec<String>,
    /// Let Simulations run programs of their own in the controller and the driver.
    #[arg(long)]
    pub allow_hooks: bool,
    /// Let drivers read traces from the disks of their nodes; takes a namespace without a Pod Security Standard.
    #[arg(long)]
    pub local_traces: bool,
    /// Let drivers run in any namespace that a Simulation names.
    #[arg(long)]
    pub any_namespace: bool,
    /// Let the controller make a Prometheus where a Simulation asks for one.
    #[arg(long)]
    pub metrics: bool,
    /// Let the controller ask cert-manager for certificates where a Simulation names an issuer.
    #[arg(long)]
    pub cert_manager: bool,
    /// Let drivers replay this resource too, as kubectl writes it: secrets, widgets.example.com; may be repeated.
    #[arg(long, value_name = "RESOURCE[.GROUP]")]
    pub also: Vec<Resource>,
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
    /// The tracer: account, rights for exactly the recorded kinds, storage, Deployment, Service.
    Tracer(TracerArgs),
    /// The simulator: the kinds Simulation and SimulationRoot, the controller, its rights, KWOK's stages.
    Sim(SimArgs),
    /// The kinds Simulation and SimulationRoot alone.
    Crd,
}

/// Which of the two installations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// What records.
    Tracer,
    /// What replays.
    Sim,
}

/// `skctl install`
#[derive(Debug, Args)]
pub struct InstallArgs {
    /// What to install.
    #[command(subcommand)]
    pub part: InstallPart,
    /// Ask the server whether it would do it, and change nothing.
    #[arg(long, global = true)]
    pub dry_run: bool,
    /// Take over fields that somebody else has changed since.
    #[arg(long, global = true)]
    pub force: bool,
    /// Do not wait until it is ready.
    #[arg(long, global = true)]
    pub no_wait: bool,
}

/// `skctl install …`
#[derive(Debug, Subcommand)]
pub enum InstallPart {
    /// What records: one tracer.
    Tracer(TracerArgs),
    /// What replays: the controller and KWOK's stages. Marks the cluster as one for `run --cluster`.
    Sim(SimArgs),
}

/// `skctl doctor`
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// About which installation; both if not said.
    #[arg(value_enum)]
    pub part: Option<Part>,
    /// In which form.
    #[arg(short = 'o', long = "output", value_enum, default_value = "table", value_name = "FORMAT")]
    pub output: TableFormat,
}

/// Forms of what a cluster knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ObjectFormat {
    /// For people.
    Table,
    /// For programs.
    Json,
    /// For people who edit it.
    Yaml,
}

/// `skctl describe`
#[derive(Debug, Args)]
pub struct DescribeArgs {
    /// The Simulation's name.
    pub name: String,
    /// In which form.
    #[arg(short = 'o', long = "output", value_enum, default_value = "table", value_name = "FORMAT")]
    pub output: ObjectFormat,
}

/// `skctl logs`
#[derive(Debug, Args)]
pub struct LogsArgs {
    /// The Simulation's name.
    pub name: String,
}

/// `skctl pause`, `resume`, `delete`
#[derive(Debug, Args)]
pub struct NamedArgs {
    /// The Simulation's name.
    pub name: String,
}

/// `skctl nodes …`
#[derive(Debug, Subcommand)]
pub enum NodesCommand {
    /// Make KWOK nodes as a scenario's groups or a trace's recorded nodes are. Other nodes are never touched.
    #[command(after_help = "Examples:
  skctl --context lab nodes apply -f pack.yaml
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
    /// The scenario whose groups to make.
    #[arg(short = 'f', long = "scenario", value_name = "SCENARIO", conflicts_with = "trace")]
    pub scenario: Option<PathBuf>,
    /// Remove these nodes instead.
    #[arg(long)]
    pub delete: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

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
