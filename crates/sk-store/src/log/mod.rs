//! The tracer's durable event log: ordered, crash-safe and bounded in size.
//!
//! [`Log`] is the only writer; [`Reader`]s read what was synced, from any thread, and export windows of it as traces. The
//! entries are [`Fact`]s, already sanitised and with private values hashed.
//!
//! ```text
//!  Fact ──append──▶ Log ──sync──▶ 0000000007.sklog   header | state | entries …      ──items──▶ Item
//!                    │            0000000008.sklog   header | state | entries …         │
//!                  State                                                             export ──▶ trace
//! ```
//!
//! A log is a sequence of segments. Each starts with the complete state ([`State`]) and is written once, from start to
//! end. So retention deletes the oldest files, and every export within the retained time starts with the complete state.
//! The price is that the writer keeps the live objects in memory.
//!
//! It is not a database because nothing is looked up by key: entries are appended and read in order, and the versions of
//! an object differ in a few bytes. One long compressed stream exploits that; stores that compress values separately
//! cannot. Measured with 50,000 events (1,000 objects of 2.4 KB of JSON, 50 versions of each in turn), synced every
//! 2,000, the median of three runs side by side on two busy cores (`cargo bench -p sk-store --bench log` for ours):
//!
//! | | events/s | bytes on disk per event | open and read all |
//! |---|---|---|---|
//! | this log | 67,000 | 46 | 0.17 s and 0.19 s |
//! | fjall 3.1.13 | 65,000 | 2,677 | 0.22 s |
//! | redb 4.4.0 | 38,500 | 5,390 | 0.27 s |
//!
//! The log needs one second of one core for 170,000 events. It does not write differences to the last version of an
//! object, although that would be smaller and faster still: a reader would have to hold every live body, and an export
//! holds one.
//!
//! The log never changes what it has written, except that opening it truncates a block that a crash left incomplete. It
//! never continues after a failed write as if nothing had happened ([`Log::resume`]).

mod catalog;
mod codec;
mod error;
mod export;
mod fact;
mod options;
mod reader;
mod recovery;
mod segment;
mod state;
mod timeline;
mod writer;

pub use error::{Damage, LogError};
pub use export::{ExportError, Exported, Query};
pub use fact::{Applied, Attribution, Deleted, Entry, Fact, Link, PodFacts, Watched};
pub use options::Options;
pub use reader::Reader;
pub use recovery::Recovered;
pub use state::{Live, State};
pub use timeline::{Item, Items};
pub use writer::{Log, Stats};
