//! SimKube's vocabulary: the words every other crate speaks.
//!
//! Data and pure functions only: no client, no tokio, no clock. Start with [`Gvk`] and [`ObjectKey`] (what an object
//! is called), then [`SimTime`] (when something happened).
//!
//! | module | what it owns |
//! |---|---|
//! | [`gvk`] | group, version and kind |
//! | [`hash`] | SimKube 2's stable hash, of any value and of a pod's spec |
//! | [`key`] | namespace and name; a reference to one object |
//! | [`lifecycle`] | how long a pod lived, read from its status |
//! | [`memo`] | what was derived from shared values |
//! | [`quantity`] | amounts of cpu, memory and the rest, as Kubernetes writes and rounds them |
//! | [`resources`] | amounts of compute, as the scheduler counts them |
//! | [`rng`] | seeded randomness, a named stream per use |
//! | [`taint`] | taints, tolerations and which tolerates which |
//! | [`time`] | instants and spans in whole microseconds |

pub mod gvk;
pub mod hash;
pub mod key;
pub mod lifecycle;
pub mod memo;
pub mod quantity;
pub mod resources;
pub mod rng;
pub mod selector;
pub mod taint;
pub mod time;

pub use gvk::Gvk;
pub use hash::StableHash;
pub use key::{ObjectKey, ObjectRef};
pub use lifecycle::PodLifecycle;
pub use quantity::Quantity;
pub use resources::Resources;
pub use smol_str::SmolStr;
pub use taint::{Taint, TaintEffect, Toleration};
pub use time::{SimDuration, SimTime};
