//! Evaluates expressions and programs of others (an assertion, a jq program) in a child process with limits.
//!
//! Assertions and programs may come from a pull request. Their interpreters cannot be interrupted, and a thread cannot
//! bound memory, so they run in a process of their own: this program again, started with [`ARGUMENT`] and a role. The
//! binary's `main` calls [`role`] first and hands over to [`serve`]; everything else uses a [`Worker`].
//!
//! | limit | who enforces it |
//! |---|---|
//! | time of one response | the parent, which kills the child; by the wall clock, because an interpreter never waits |
//! | memory | the kernel: `RLIMIT_AS`, set by the child before it reads anything. macOS does not enforce it |
//! | stack | the child evaluates on a thread with that stack; an overflow ends the child and not its parent |
//! | length of a response | the parent |
//! | lifetime | the child ends with its parent: it checks for it, because an endless program never reads the end of the pipe |
//!
//! Requests and responses are length-prefixed bytes; callers define what they mean. [`assertions`] is such a caller, shared by
//! the programs that judge runs; jq programs are skctl's own. This is not a security boundary
//! against native code: the child has the rights of the user who started it. Neither interpreter can reach a file, a
//! clock or the network.

pub mod assertions;
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
