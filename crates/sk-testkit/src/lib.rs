//! For tests only: object builders, recorded answers of a real Kubernetes, and a real control plane to start.
//!
//! Two tiers. Without features this crate is data and pure functions, so that hermetic tests can build objects and
//! compare with what the real thing answered. With the feature `control-plane` it starts the real thing.
//! Start with [`objects`] to build, [`Fixture`] to compare; docs/testing.md tells how both tiers are run.
//!
//! | module | what it owns |
//! |---|---|
//! | [`objects`] | Kubernetes objects built by chaining |
//! | [`scenario`] | what is done to a cluster, when, and what is waited for |
//! | [`autoscaling`] | what the real cluster-autoscaler was seen to do |
//! | [`canonical`] | what happened, told so that two clusters can be compared |
//! | [`compare`] | what two recordings must agree on |
//! | [`fixture`] | recorded answers on disk |
//! | [`api`] | requests to an API server, and what a real one answered |
//! | [`options`] | how a control plane is to be started (sk-lab's) |
//! | [`states`] | what the engine and a recording must agree on |
//! | [`scheduling`] | scenarios for the scheduler alone, and what the real one answered |
//! | [`versions`] | which Kubernetes the project is checked against |
//! | `control_plane` | starting the real thing (with the feature) |
//! | `process_runner` | running chosen pods as local processes, in place of a kubelet (sk-lab's, with the feature) |
//! | `recorder` | playing a scenario against it and keeping what happened (with the feature) |

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
