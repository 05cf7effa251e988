//! What the library decides, compared with recorded answers of the real kube-scheduler where there are any, and with
//! what its source says otherwise. `incremental` compares the library with itself made anew before every pod, `unused` with
//! itself when it frees nothing.

#![allow(clippy::unwrap_used, reason = "what a test needs and does not find ends it")]
#![allow(clippy::needless_pass_by_value, reason = "JSON is written where it is used")]

mod bad_input;
mod configuration;
mod failures;
mod filters;
mod incremental;
mod pods_together;
mod preemption;
mod queue;
mod queue_model;
mod recorded;
mod scores;
mod support;
mod unused;
mod what_if;
