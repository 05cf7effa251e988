//! SimKube's vocabulary: the words every other crate speaks.
//!
//! Data and pure functions only: no client, no tokio, no clock. Start with [`Gvk`] and [`ObjectKey`] (what an object
//! is called), then [`SimTime`] (when something happened).
//!
//! | module | what it owns |
//! |---|---|
//! | [`cron`] | schedules of CronJobs, and the next moment that they mean |
//! | [`duration`] | spans and moments as people write them in flags and scenarios |
//! | [`gvk`] | group, version and kind |
//! | [`hash`] | SimKube 2's stable hash, of any value and of a pod's spec |
//! | [`key`] | namespace and name; a reference to one object |
//! | [`label`] | labels: how they are looked up, which keys and values are allowed |
//! | [`lifecycle`] | how long a pod lived, read from its status |
//! | [`limits`] | how much a simulation may be: objects, pods of one object, time |
//! | [`lookup`] | a hash table that nobody can iterate |
//! | [`memo`] | what was derived from shared values |
//! | [`owner`] | owner references |
//! | [`mod@pointer`] | JSON pointers, and patterns of them with `*` |
//! | [`quantity`] | amounts of cpu, memory and the rest, as Kubernetes writes and rounds them |
//! | [`registry`] | what is known of every kind that Kubernetes brings |
//! | [`resources`] | amounts of compute, as the scheduler counts them |
//! | [`rng`] | seeded randomness, a named stream per use |
//! | [`selector`] | label and field selectors, read and evaluated as Kubernetes does |
//! | [`taint`] | taints, tolerations and which tolerates which |
//! | [`template`] | pod templates: where they stand, which is which, whose pod this is |
//! | [`time`] | instants and spans in whole microseconds |

pub mod cron;
pub mod duration;
pub mod gvk;
pub mod hash;
pub mod key;
pub mod label;
pub mod lifecycle;
pub mod limits;
pub mod lookup;
pub mod memo;
pub mod owner;
pub mod pointer;
pub mod quantity;
pub mod registry;
pub mod resources;
pub mod rng;
pub mod selector;
pub mod taint;
pub mod template;
pub mod time;

pub use duration::TimeSpec;
pub use gvk::Gvk;
pub use hash::{StableHash, StableHasher};
pub use key::{ObjectKey, ObjectRef};
pub use lifecycle::PodLifecycle;
pub use owner::OwnerReference;
pub use pointer::{Pointer, PointerPattern};
pub use quantity::Quantity;
pub use resources::Resources;
pub use selector::{FieldSelector, LabelSelector};
pub use smol_str::SmolStr;
pub use taint::{Taint, TaintEffect, Toleration};
pub use template::TemplateId;
pub use time::{SimDuration, SimTime};
