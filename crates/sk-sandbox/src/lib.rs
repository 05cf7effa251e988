//! Evaluates what others wrote (an assertion, a jq program) in a child process with limits.
//!
//! Assertions and programs may come from a pull request. Their interpreters cannot be interrupted, and a thread cannot
//! bound memory, so they run in a process of their own: this program again, started with [`ARGUMENT`] and a role. The
//! binary's `main` asks [`role`] first and hands over to [`serve`]; everybody else talks to a [`Worker`].
//!
//! | bound | who enforces it |
//! |---|---|
//! | time of one answer | the parent, which kills the child; by the wall clock, because an interpreter never waits |
//! | memory | the kernel: `RLIMIT_AS`, set by the child before it reads anything. macOS does not enforce it |
//! | stack | the child answers on a thread of that stack; an overflow ends the child and not its parent |
//! | length of an answer | the parent |
//! | life | a child ends with its parent: it looks for it, because an endless program reads no end of file |
//!
//! Requests and responses are bytes with a length before them; callers define what they mean. This is not a
//! security boundary against native code: the child keeps the rights of whoever started it. Neither interpreter has a
//! way to a file, a clock or the network.

mod child;
mod frame;
mod worker;

use std::time::Duration;

pub use child::{ARGUMENT, role, serve};
pub use worker::{Stopped, Worker};

/// What evaluating may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// For one answer.
    pub time: Duration,
    /// Of the whole child, its program included.
    pub memory_bytes: u64,
    /// Of the thread that answers.
    pub stack_bytes: usize,
}
