//! Flags of the commands that install the tracer and the simulator: `manifests`, `install`, `doctor`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Subcommand, ValueEnum};

use crate::cli::TableFormat;

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
