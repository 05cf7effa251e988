//! What a tracer keeps of what it watches.
//!
//! Two halves. The stateless one, [`Rules`], turns one object as it came off the wire into a [`Sighting`]: sanitised,
//! made private, hashed. Each watcher calls it for itself, in parallel. The stateful one, [`Ledger`], belongs to the one
//! task that writes the log: it tells changes from repetitions, follows owners, attributes pods to the templates they
//! were made from, keeps lives, and says what to write as [`Fact`](sk_store::log::Fact)s.
//!
//! ```text
//!  bytes ──Rules::sieve──▶ Sighting ──Ledger::applied, deleted──▶ [Fact] ──▶ sk_store::log
//!          (per watcher)               (one task)  ▲    │
//!                                   lookup_ended │    ▼ missing_owners
//!                                               the API server, asked by the caller
//! ```
//!
//! Nothing here talks to a cluster, reads a clock or touches a file: bytes and `now` come in, facts go out. No input
//! makes it panic, and everything that grows is bounded by a named constant or by what lives in the cluster.
//!
//! | module | what it owns |
//! |---|---|
//! | `tape` | an object as a flat list of tokens, read once |
//! | `shape` | which fields of which kind may stay as they are |
//! | `privacy` | how a private text is hidden |
//! | `scheduler_message` | what of a scheduler's words may be read |
//! | `sanitise` | the walk that writes what is kept |
//! | [`Rules`] | the configuration, compiled; the sieve |
//! | [`Ledger`] | what there is, and what of it is news |

mod ledger;
mod overlay;
mod pod;
mod privacy;
mod rules;
mod sanitise;
mod scheduler_message;
mod shape;
mod sighting;
mod tape;
mod uid;

pub use ledger::{Ledger, LookupResult, OwnerLookup, Stats, Trouble, Warning};
pub use privacy::PrivacyKey;
pub use rules::{Role, Rules, SieveError};
pub use sighting::Sighting;
