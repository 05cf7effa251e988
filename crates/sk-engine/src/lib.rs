//! The embedded cluster: a deterministic Kubernetes control plane in virtual time, in one process.
//!
//! A discrete-event simulator: what is to happen stands on an agenda, time jumps from one entry to the next, and
//! every part is a state machine that is told what happened and asks for what it wants.
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
//! Start with [`Engine`] in `engine.rs`, then `component.rs` (what a part is), `controller.rs` (how a reconciler runs),
//! and any file of `controllers/`. [`Settings`] is all that can be set.

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
pub use scheduling::{Explained, NodeScore, PodsPassed};
pub use settings::{ASSUMED_JOB_DURATION, Explain, NodeGroup, Settings, Timing};
pub use spread::Spread;
