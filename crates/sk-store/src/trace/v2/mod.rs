//! Trace format v2: one MessagePack map, as SimKube 2 writes it, and version 3, whose index is different.
//!
//! The whole file is one value with its events in the middle and its lifecycles at the end. So opening walks the file once
//! and keeps positions only; records and lifecycles are then streamed from there.

mod index;
mod lives;
mod read;
mod records;
mod write;
mod write_lives;

pub(crate) use index::Index;
pub(crate) use lives::Lives;
pub(crate) use read::V2;
pub(crate) use records::Records;
pub(crate) use write::Writer;

/// The tracer configuration, by its bytes: thousands of kinds, each a line.
const MAX_CONFIG_BYTES: usize = 1 << 20;

/// A map key or a short text of the format itself: `pod_lifecycles`, a kind, `namespace/name` (253 + 1 + 253).
const MAX_NAME_BYTES: usize = 4 << 10;
