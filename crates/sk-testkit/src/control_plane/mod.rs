//! A real Kubernetes control plane for one test: etcd, kube-apiserver, kube-controller-manager, kube-scheduler, KWOK,
//! and Karpenter on request.
//!
//! [`ControlPlane::start`] takes about four seconds on two cores. Each has its own ports, folder, certificates and
//! accounts, so several run side by side. Its processes end when it is dropped, or when the test panics or is killed.
//! A failed start names the component, the cause and what to do; it never skips a test.
//!
//! ```no_run
//! # async fn test() -> Result<(), Box<dyn std::error::Error>> {
//! use sk_testkit::control_plane::ControlPlane;
//! use sk_testkit::{Options, objects};
//!
//! let cluster = ControlPlane::start(Options::default()).await?;
//! cluster.create_nodes([objects::node().name("a")]).await?;
//! cluster.create(&objects::deployment().name("web").replicas(2)).await?;
//! # Ok(()) }
//! ```

pub(crate) mod access;
mod binaries;
mod inventory;
mod webhook;

use std::ops::{Deref, DerefMut};

pub use binaries::{Binaries, BinariesError};
pub use sk_lab::access::eventually;
pub use sk_lab::{Authority, Certified, ControlError, StartError};
use sk_lab::{Options, Supervision};

/// A running control plane for one test: [`sk_lab::ControlPlane`] in a temporary folder, its processes under
/// guard.
pub struct ControlPlane(sk_lab::ControlPlane);

impl ControlPlane {
    /// Starts one with the binaries that the environment names (see [`Binaries::from_env`]) and waits until all of it
    /// is ready.
    pub async fn start(options: Options) -> Result<Self, StartError> {
        Self::start_with(Binaries::from_env()?, options).await
    }

    /// Starts one with these binaries.
    pub async fn start_with(binaries: Binaries, options: Options) -> Result<Self, StartError> {
        let supervision = Supervision::Guard(binaries.guard()?);
        Ok(Self(sk_lab::ControlPlane::start(binaries.programs(), &supervision, &options, None).await?))
    }
}

impl Deref for ControlPlane {
    type Target = sk_lab::ControlPlane;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for ControlPlane {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

impl Drop for ControlPlane {
    /// If a test is panicking, prints the last log lines of each component and keeps the logs. The processes end with the rest.
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}--- all logs are kept in {}", self.last_words(), self.keep_logs().join("logs").display());
        }
    }
}
