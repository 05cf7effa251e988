//! For tests only: object builders, recorded results of a real Kubernetes, and a real control plane to start.
//!
//! There are two tiers. Without features this crate is data and pure functions, so that hermetic tests can build
//! objects and compare with recordings. With the feature `control-plane` it starts a real control plane. Start with
//! [`objects`] to build, [`Fixture`] to compare; docs/testing.md says how to run both tiers.
//!
//! | module | what it owns |
//! |---|---|
//! | [`objects`] | Kubernetes objects built by chaining |
//! | [`scenario`] | steps on a cluster, their times, and conditions to wait for |
//! | [`autoscaling`] | recorded decisions of the real cluster-autoscaler |
//! | [`canonical`] | histories in a form in which two clusters can be compared |
//! | [`compare`] | what two recordings must agree on |
//! | [`fixture`] | recorded results on disk |
//! | [`api`] | requests to an API server, and the recorded responses of a real one |
//! | [`options`] | options of a control plane (sk-lab's) |
//! | [`states`] | what the engine and a recording must agree on |
//! | [`scheduling`] | scenarios for the scheduler alone, and what the real one did |
//! | [`versions`] | the Kubernetes version that the project is checked against |
//! | `control_plane` | starts a real control plane (with the feature) |
//! | `process_runner` | runs chosen pods as local processes, in place of a kubelet (sk-lab's, with the feature) |
//! | `recorder` | plays a scenario on it and records the result (with the feature) |

pub mod api;
pub mod autoscaling;
pub mod canonical;
pub mod compare;
#[cfg(feature = "control-plane")]
pub mod control_plane;
pub mod fixture;
pub mod merge;
pub mod objects;
pub mod programs;
#[cfg(feature = "control-plane")]
pub mod recorder;
pub mod scenario;
pub mod scheduling;
pub mod states;
pub mod versions;

pub use fixture::{Fixture, OracleFixture};
pub use scenario::Scenario;
pub use sk_lab::options::{self, Component, Options};
#[cfg(feature = "control-plane")]
pub use sk_lab::runner as process_runner;
pub use versions::Versions;
