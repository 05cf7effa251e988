//! The cluster target: replays a plan on a real Kubernetes with virtual nodes, in wall time.
//!
//! ```text
//!  trace ─ plan ─► replay ─► hands ─────────────► API server ◄───── scheduler, controllers, KWOK
//!          (due by the clock)  (dress)               │    ▲ ▲
//!                                        webhook ◄───┘    │ └─ lives: when running pods end
//!                                       (mutate)          │
//!                    recorder ◄─ sight ◄─ watch ◄─────────┘
//! ```
//!
//! The same plan, decisions and rows as the embedded run. What is different: names and owners ([`dress`]), a schedule on
//! the wall clock ([`clock`]) whose lateness is measured ([`lateness`]), and great care with what belongs to others: the
//! run creates a root that owns all it makes, touches nothing that it did not make, and removes the root in the end.
//! Start with [`run`], then `replay`, then `hands`.

pub mod clock;
mod context;
pub mod deliver;
pub mod dress;
mod hands;
pub mod hooks;
mod kinds;
pub mod lateness;
mod own_webhook;
mod pace;
mod replay;
pub mod request;
pub mod root;
mod run;
mod sight;
mod status;
mod stop;
mod tally;
pub mod tls;
mod watch;
mod webhook;

pub use deliver::{Controller, Destination};
pub use run::{Options, Outcome, RunError, Webhook, run};
pub use stop::Stop;
pub use tally::Totals;
