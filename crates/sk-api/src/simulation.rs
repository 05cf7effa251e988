//! The resources of a replay on a real cluster: `Simulation`, which people write, and `SimulationRoot`, which owns
//! everything that a run makes.
//!
//! The types are the schema: [`crds`] generates validation, defaults and the columns of `kubectl get` from them. Only
//! kube's types are used here, never its client, and all but the names needs the feature `resources`, so a build for the
//! embedded engine contains no Kubernetes types. The spec of a Simulation is immutable except `pausedTime` (pause and
//! resume) and `record.ttlSecondsAfterFinished` (how long it is kept).
//!
//! | module | what it owns |
//! |---|---|
//! | [`spec`] | `spec` |
//! | [`status`] | `status`; written by the controller and, where noted, by the driver |
//! | [`names`] | names of all objects, labels and annotations, for whoever makes or looks for them |

#[cfg(feature = "resources")]
mod crds;
pub mod names;
#[cfg(feature = "resources")]
pub mod spec;
#[cfg(feature = "resources")]
pub mod status;

#[cfg(feature = "resources")]
pub use {
    crds::crds,
    spec::{
        DriverSpec, Hook, Hooks, LifecycleParams, MetricsSpec, RecordSpec, Simulation, SimulationRoot,
        SimulationRootSpec, SimulationSpec,
    },
    status::{HookProgress, Lateness, Progress, SimulationStatus, State, Totals},
};
