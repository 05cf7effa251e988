//! The tracer's durable event log: what it saw, in order, safe from crashes, bounded in size.
//!
//! [`Log`] is the writing end, of which there is one; [`Reader`]s look at what was synced, from any thread, and export
//! windows of it as traces. What is written are [`Fact`]s, already sanitised and made private.
//!
//! ```text
//!  Fact ──append──▶ Log ──sync──▶ 0000000007.sklog   header | state | entries …      ──items──▶ Item
//!                    │            0000000008.sklog   header | state | entries …         │
//!                  State                                                             export ──▶ trace
//! ```
//!
//! A log is a row of segments, each of which begins with the whole state ([`State`]) and is written once, from its
//! beginning to its end. So giving up old history is deleting the oldest files, and every export within what is kept
//! begins with the full state, at the price of keeping the live objects in the writer's memory.
//!
//! Why not a database: nothing here is looked up by key, everything is appended and read in order, and the versions of
//! an object differ in a few bytes. One long compressed stream uses that; stores that keep values apart cannot. 50,000
//! events (1,000 objects of 2.4 KB of JSON, 50 versions of each in turn), synced every 2,000, the median of three runs
//! side by side on two cores that were busy with other work (`cargo bench -p sk-store --bench log` for ours):
//!
//! | | events/s | bytes on disk per event | open and read all |
//! |---|---|---|---|
//! | this log | 67,000 | 46 | 0.17 s and 0.19 s |
//! | fjall 3.1.13 | 65,000 | 2,677 | 0.22 s |
//! | redb 4.4.0 | 38,500 | 5,390 | 0.27 s |
//!
//! The log takes a second of one core's time for 170,000 events. Nor are differences to an object's last version
//! written, which would be smaller and faster still: whoever reads them must hold every live body, and an export holds
//! one.
//!
//! What it refuses to do: it never changes what it has written, except that opening it cuts a block off that a crash
//! left torn; and it never goes on after a failed write as if nothing had happened ([`Log::resume`]).

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
