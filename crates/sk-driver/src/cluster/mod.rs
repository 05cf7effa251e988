//! The cluster target: replays a plan on a real Kubernetes with virtual nodes, in wall time.
//!
//! ```text
//!  trace ─ plan ─► replay ─► applier ───────────► API server ◄───── scheduler, controllers, KWOK
//!          (due by the clock)  (virtualise)          │    ▲ ▲
//!                                        webhook ◄───┘    │ └─ lives: when running pods end
//!                                       (mutate)          │
//!                    recorder ◄─ informer ◄─ watch ◄──────┘
//! ```
//!
//! The same plan, decisions and rows as the embedded run. What is different: names and owners ([`virtualise`]), a schedule on
//! the wall clock ([`clock`]) whose lateness is measured ([`lateness`]), and great care with what belongs to others: the
//! run creates a root that owns all it makes, touches nothing that it did not make, and removes the root in the end. Its
//! claims get volumes of the run's own (`volumes`), its webhook is probed before anything depends on it (`probe`), and
//! without a controller it holds a [`lease`] while it runs. Start with [`run()`], then `replay`, then `applier`.

mod applier;
pub mod clock;
mod context;
pub(crate) mod controller;
pub(crate) mod counters;
mod error;
pub mod hooks;
mod informer;
pub mod judge;
mod kinds;
pub mod lateness;
pub mod lease;
mod own_webhook;
mod pace;
mod probe;
mod repetitions;
mod replay;
pub mod request;
mod role_binding;
pub mod root;
mod run;
mod serving;
mod status;
mod stop;
pub mod tls;
pub mod upload;
pub mod virtualise;
mod volumes;
mod watch;
mod webhook;

pub use controller::{Controller, ControllerError};
pub use counters::Totals;
pub use error::RunError;
pub use judge::{Judge, Judged};
pub use repetitions::{Repetitions, run};
pub use run::{Options, Outcome};
pub use serving::Webhook;
pub use stop::Stop;
pub use upload::Destination;
