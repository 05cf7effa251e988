//! Where the control plane's binaries are: `$KUBEBUILDER_ASSETS` if it holds them, else the cache that
//! `make control-plane` fills. Finds, and says what to do when there is nothing to find; builds nothing.

use std::env;
use std::path::{Path, PathBuf};

use crate::options::Component;
use crate::versions::Versions;

/// The binaries of one control plane. Finding them all before the first start saves a test from failing half-way.
#[derive(Clone, Debug)]
pub struct Binaries {
    folders: Vec<PathBuf>,
}

/// Why there are no binaries to start.
#[derive(Debug, thiserror::Error)]
pub enum BinariesError {
    /// Nobody has built them here.
    #[error("{name} is not in {}: run `make control-plane`, which builds it once", listed(folders))]
    Missing {
        /// The binary.
        name: String,
        /// Where it was looked for.
        folders: Vec<PathBuf>,
    },
    /// There is no telling where they would be.
    #[error("there is no cache folder: set HOME, XDG_CACHE_HOME or SIMKUBE_CACHE, then run `make control-plane`")]
    NoCache,
}

impl Binaries {
    /// The folders that the environment names, in the order in which they are looked through.
    pub fn from_env() -> Result<Self, BinariesError> {
        let assets = folder_from("KUBEBUILDER_ASSETS");
        let cache = folder_from("SIMKUBE_CACHE")
            .or_else(|| folder_from("XDG_CACHE_HOME").map(|cache| cache.join("simkube")))
            .or_else(|| folder_from("HOME").map(|home| home.join(".cache/simkube")))
            .ok_or(BinariesError::NoCache)?;
        let built = cache.join("control-plane").join(Versions::pinned().to_string());
        Ok(Self { folders: assets.into_iter().chain([built]).collect() })
    }

    /// Looks only in these folders.
    pub fn in_folders(folders: &[&Path]) -> Self {
        Self { folders: folders.iter().map(|folder| (*folder).to_owned()).collect() }
    }

    /// A component's binary.
    pub fn component(&self, component: Component) -> Result<PathBuf, BinariesError> {
        self.find(component.name())
    }

    /// The program that holds another on a leash.
    pub fn guard(&self) -> Result<PathBuf, BinariesError> {
        self.find("guard")
    }

    /// The program that answers for Kubernetes' libraries.
    pub fn oracle(&self) -> Result<PathBuf, BinariesError> {
        self.find("oracle")
    }

    /// The definition of cert-manager's Certificate, as YAML.
    pub fn cert_manager_kinds(&self) -> Result<PathBuf, BinariesError> {
        self.find("cert-manager-crds.yaml")
    }

    /// The definition of the Prometheus operator's Prometheus, as YAML.
    pub fn prometheus_kinds(&self) -> Result<PathBuf, BinariesError> {
        self.find("prometheus-operator-crds.yaml")
    }

    /// The custom resource definitions that Karpenter needs, as a YAML stream.
    pub fn karpenter_kinds(&self) -> Result<PathBuf, BinariesError> {
        self.find("karpenter-crds.yaml")
    }

    fn find(&self, name: &str) -> Result<PathBuf, BinariesError> {
        let found = self.folders.iter().map(|folder| folder.join(name)).find(|path| path.is_file());
        found.ok_or_else(|| BinariesError::Missing { name: name.to_owned(), folders: self.folders.clone() })
    }
}

fn folder_from(variable: &str) -> Option<PathBuf> {
    env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from)
}

fn listed(folders: &[PathBuf]) -> String {
    folders.iter().map(|folder| folder.display().to_string()).collect::<Vec<_>>().join(" or ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_binary_is_named_with_where_it_was_looked_for_and_what_to_do() {
        let binaries = Binaries::in_folders(&[Path::new("nowhere"), Path::new("elsewhere")]);
        let error = binaries.component(Component::Scheduler).unwrap_err().to_string();
        assert_eq!(
            error,
            "kube-scheduler is not in nowhere or elsewhere: run `make control-plane`, which builds it once"
        );
    }
}
