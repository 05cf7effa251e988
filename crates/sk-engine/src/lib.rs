//! The embedded cluster: a deterministic Kubernetes control plane in virtual time, in one process.
//!
//! It is a discrete-event simulator: future events wait on an agenda, time jumps from one to the next, and every
//! component is a state machine that receives events and sends requests.
//!
//! ```text
//!                 ┌────────────────── Engine ──────────────────┐
//!   handle() ───► │ sk-apiserver ─ commit ─► watch log          │ ───► watch()
//!                 │      ▲                       │ after latency│
//!                 │      │ requests, rate-limited ▼             │
//!                 │  controllers · scheduler · nodes · autoscaler│
//!                 └─────────────────────────────────────────────┘
//! ```
//!
//! Start with [`Engine`] in `engine.rs`, then `component.rs` (the interface of a component), `controller.rs` (how a
//! reconciler runs), and any file of `controllers/`. [`Settings`] has all that can be configured.

mod agenda;
mod autoscaler;
mod budget;
mod classes;
mod component;
mod controller;
mod controllers;
mod engine;
mod events;
mod kubelet;
mod limiter;
mod process;
mod scheduling;
mod settings;
mod spread;
mod workqueue;

pub use sk_apiserver::{self as api, kinds};
pub use sk_scheduler::class::PassedThrough;
pub use sk_scheduler::config as scheduler_config;

pub use autoscaler::{
    Autoscaler, Because, Choice, Decision, Expander, Informers, Limits, Resize, Rule, Trigger, Utilization, Verdict,
    new_node,
};
pub use budget::Spinning;
pub use controllers::new_namespace;
pub use engine::Engine;
pub use events::Event;
pub use limiter::RateLimit;
pub use scheduling::{Explained, NodeScore, PodsPassed, WhyVictims};
pub use settings::{ASSUMED_JOB_DURATION, Explain, NodeGroup, Settings, Timing};
pub use spread::Spread;
