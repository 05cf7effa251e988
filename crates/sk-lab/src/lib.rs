//! A real Kubernetes control plane on one machine, made of processes: for `skctl lab`, and for the project's own tests.
//!
//! Without the feature `processes` this crate is plain data. With it, [`ControlPlane`] starts etcd, Kubernetes' three and
//! KWOK from programs that are already installed, each under a [`Supervision`] so that none outlives its parent, and
//! [`ProcessRunner`] replaces a kubelet where a pod must run a program. It pulls no images and isolates nothing; do not
//! store anything in it that you need tomorrow.
//!
//! | module | what it owns |
//! |---|---|
//! | [`options`] | the options of a control plane |
//! | `control_plane` | the control plane: start, stop, restart |
//! | `programs` | finds its programs |
//! | `command`, `folder`, `ports`, `certificates`, `kinds` | their arguments, files, ports, certificates and kinds |
//! | `probe`, `logs` | readiness, and the last lines of their logs |
//! | `child_process`, `pid_file` | processes that end with their parent, and pid files of what is left |
//! | `runner` | pods that run as processes |
//! | `access` | waiting, and objects that are only known by name |

#[cfg(feature = "processes")]
pub mod access;
#[cfg(feature = "processes")]
mod certificates;
#[cfg(feature = "processes")]
pub mod child_process;
#[cfg(feature = "processes")]
mod command;
#[cfg(feature = "processes")]
mod control_plane;
#[cfg(feature = "processes")]
mod error;
#[cfg(feature = "processes")]
mod folder;
#[cfg(feature = "processes")]
mod kinds;
#[cfg(feature = "processes")]
mod logs;
pub mod options;
#[cfg(feature = "processes")]
pub mod pid_file;
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
pub use child_process::Supervision;
#[cfg(feature = "processes")]
pub use control_plane::ControlPlane;
#[cfg(feature = "processes")]
pub use error::{ControlError, StartError};
#[cfg(feature = "processes")]
pub use logs::tail;
pub use options::{Component, Options};
#[cfg(feature = "processes")]
pub use programs::{MissingProgram, Programs};
#[cfg(feature = "processes")]
pub use runner::{ProcessRunner, RunnerOptions};
