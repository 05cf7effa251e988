//! A real Kubernetes control plane on one machine, made of processes: for `skctl lab`, and for the project's own tests.
//!
//! Without the feature `processes` this crate is plain data. With it, [`ControlPlane`] starts etcd, Kubernetes' three and
//! KWOK from programs that are there already, each on a [`Leash`] so that none outlives whoever asked for it, and
//! [`ProcessRunner`] stands in for a kubelet where a pod has to do something. It pulls no image, isolates nothing and is no
//! cluster to put anything into that somebody needs tomorrow.
//!
//! | module | what it owns |
//! |---|---|
//! | [`options`] | how a control plane is to be started |
//! | `plane` | the control plane: start, stop, restart |
//! | `programs` | where its programs are |
//! | `command`, `folder`, `ports`, `certificates`, `kinds` | what they are given |
//! | `probe`, `logs` | whether they are ready, and what they said last |
//! | `leash`, `pid_file` | processes that end when they should, also when nobody is left to end them |
//! | `runner` | pods that run as processes |
//! | `access` | waiting, and objects that are only known by name |

#[cfg(feature = "processes")]
pub mod access;
#[cfg(feature = "processes")]
mod certificates;
#[cfg(feature = "processes")]
mod command;
#[cfg(feature = "processes")]
mod error;
#[cfg(feature = "processes")]
mod folder;
#[cfg(feature = "processes")]
mod kinds;
#[cfg(feature = "processes")]
pub mod leash;
#[cfg(feature = "processes")]
mod logs;
pub mod options;
#[cfg(feature = "processes")]
pub mod pid_file;
#[cfg(feature = "processes")]
mod plane;
#[cfg(feature = "processes")]
mod ports;
#[cfg(feature = "processes")]
mod probe;
#[cfg(feature = "processes")]
mod programs;
#[cfg(feature = "processes")]
pub mod runner;

#[cfg(feature = "processes")]
pub use certificates::{Authority, Certified};
#[cfg(feature = "processes")]
pub use error::{ControlError, StartError};
#[cfg(feature = "processes")]
pub use leash::Leash;
#[cfg(feature = "processes")]
pub use logs::tail;
pub use options::{Component, Options};
#[cfg(feature = "processes")]
pub use plane::ControlPlane;
#[cfg(feature = "processes")]
pub use programs::{MissingProgram, Programs};
#[cfg(feature = "processes")]
pub use runner::{ProcessRunner, RunnerOptions};
