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
//! | [`quantity`] | amounts of cpu, memory and the rest, as Kubernetes writes and rounds them |
//! | [`time`] | instants and spans in whole microseconds |

pub mod gvk;
pub mod hash;
pub mod key;
pub mod quantity;
pub mod time;

pub use gvk::Gvk;
pub use hash::StableHash;
pub use key::{ObjectKey, ObjectRef};
pub use quantity::Quantity;
pub use smol_str::SmolStr;
pub use time::{SimDuration, SimTime};
