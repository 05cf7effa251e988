//! The resources of a replay on a real cluster: `Simulation`, which people write, and `SimulationRoot`, which owns
//! everything that a run makes.
//!
//! The types are the schema: validation, defaults and the columns of `kubectl get` are made from them by [`crds`]. Only
//! kube's vocabulary is used here, never its client, and all but the names needs the feature `resources`: who only
//! replays on the embedded engine builds no Kubernetes types. A Simulation is one question: the schema refuses every change of its
//! spec but two, `pausedTime` (it is paused) and `record.ttlSecondsAfterFinished` (it is kept for longer or shorter).
//!
//! | module | what it owns |
//! |---|---|
//! | [`spec`] | what is asked for |
//! | [`status`] | what became of it; written by the controller and, where it says so, by the driver |
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
