//! SimKube's basic types, which every other crate uses.
//!
//! Data and pure functions only: no client, no tokio, no clock. Start with [`Gvk`] and [`ObjectKey`] (the name of an
//! object), then [`SimTime`] (when something happened).
//!
//! | module | what it owns |
//! |---|---|
//! | [`cron`] | CronJob schedules, and their next time |
//! | [`duration`] | durations and times as users write them in flags and scenarios |
//! | [`gvk`] | group, version and kind |
//! | [`hash`] | SimKube 2's stable hash, of any value and of a pod spec |
//! | [`key`] | namespace and name; a reference to one object |
//! | [`label`] | labels: lookup, allowed keys and values |
//! | [`lifecycle`] | how long a pod lived, read from its status |
//! | [`limits`] | limits of a simulation: objects, pods of one object, time |
//! | [`lookup`] | hash tables that cannot be iterated |
//! | [`memo`] | a cache of what was derived from shared values |
//! | [`owner`] | owner references |
//! | [`mod@pointer`] | JSON pointers, and patterns of them with `*` |
//! | [`quantity`] | quantities of cpu, memory and the rest, as Kubernetes writes and rounds them |
//! | [`registry`] | the built-in kinds of Kubernetes and their properties |
//! | [`resources`] | quantities as the scheduler counts them |
//! | [`rng`] | seeded randomness, a named stream per use |
//! | [`selector`] | label and field selectors, parsed and evaluated as Kubernetes does |
//! | [`taint`] | taints, tolerations and which tolerates which |
//! | [`template`] | pod templates: where they are, their identity, and which one a pod came from |
//! | [`time`] | times and durations in whole microseconds |

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
pub mod sort;
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
