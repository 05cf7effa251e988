//! Finds the control plane's binaries: in `$KUBEBUILDER_ASSETS` if it holds them, else in the cache that `make
//! control-plane` fills. If they are missing it says what to do; it builds nothing.

use std::env;
use std::path::{Path, PathBuf};

use sk_lab::{MissingProgram, Programs, StartError};

use crate::options::Component;
use crate::versions::Versions;

/// What to do about a binary that is missing.
const ADVICE: &str = "run `make control-plane`, which builds it once";

/// The binaries of one control plane. Finding them all before the first start saves a test from failing half-way.
#[derive(Clone, Debug)]
pub struct Binaries(Programs);

/// Why there are no binaries to start.
#[derive(Debug, thiserror::Error)]
pub enum BinariesError {
    /// They are not built here.
    #[error(transparent)]
    Missing(#[from] MissingProgram),
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
        Ok(Self(Programs::in_folders(assets.into_iter().chain([built]), ADVICE)))
    }

    /// Looks only in these folders.
    pub fn in_folders(folders: &[&Path]) -> Self {
        Self(Programs::in_folders(folders.iter().map(|folder| (*folder).to_owned()), ADVICE))
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

    /// As a control plane takes them.
    pub(crate) fn programs(&self) -> &Programs {
        &self.0
    }

    fn find(&self, name: &str) -> Result<PathBuf, BinariesError> {
        Ok(self.0.find(name)?)
    }
}

impl From<BinariesError> for StartError {
    fn from(error: BinariesError) -> Self {
        match error {
            BinariesError::Missing(missing) => Self::Program(missing),
            BinariesError::NoCache => Self::NoPrograms(error.to_string()),
        }
    }
}

fn folder_from(variable: &str) -> Option<PathBuf> {
    env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from)
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
