//! Runs on the real control plane: real scheduler, controllers, garbage collector and KWOK with the stages that we ship.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bad_days;
mod every_kind;
mod fidelity;
mod killed;
mod story;
mod support;
mod volumes;
mod webhook;
