//! The tracer's processing of watch events, without I/O: from the bytes of an object to the entries of the log.
//!
//! It has two halves. [`Rules`] is stateless: it turns the bytes of one object into a [`Sighting`], with the object
//! sanitised, private values hashed, and its hash. Each watcher calls it, in parallel. [`Ledger`] is stateful and belongs
//! to the one task that writes the log: it detects changes, resolves owners, attributes pods to the templates that they
//! were created from, follows their lifecycles, and emits [`Fact`](sk_store::log::Fact)s for the log.
//!
//! ```text
//!  bytes ──Rules::sieve──▶ Sighting ──Ledger::applied, deleted──▶ [Fact] ──▶ sk_store::log
//!          (per watcher)               (one task)  ▲    │
//!                                   lookup_ended │    ▼ missing_owners
//!                                               the API server, asked by the caller
//! ```
//!
//! Nothing here has a client, a clock or a file: bytes and `now` go in, facts come out. No input makes it panic, and
//! everything that grows is bounded by a named constant or by the number of objects in the cluster.
//!
//! | module | what it owns |
//! |---|---|
//! | `tape` | an object as a flat list of tokens |
//! | `shape` | the allow-list of fields that stay readable, per kind |
//! | `privacy` | keyed hashes of private strings |
//! | `scheduler_message` | which messages of schedulers stay readable |
//! | `sanitise` | writes what is kept of an object |
//! | [`Rules`] | the compiled configuration, and the entry point for one object |
//! | [`Ledger`] | the recorded state of the cluster, and what changed |

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
