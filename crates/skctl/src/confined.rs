//! Runs assertions and jq programs in a process with limits.
//!
//! skctl starts itself again ([`sk_sandbox`]); [`serve`] is what the child does. If an assertion or a program needs too
//! much time, memory or stack, it is refused with a message, and the command exits with 2.

pub(crate) mod assertions;
pub(crate) mod program;

use std::process::ExitCode;

const PROGRAM: &str = "program";

/// What a process that was started to evaluate does; nothing for every other process.
pub(crate) fn serve() -> Option<ExitCode> {
    let role = sk_sandbox::role()?;
    if role != PROGRAM {
        return Some(sk_sandbox::assertions::serve().unwrap_or(ExitCode::from(2)));
    }
    let mut evaluator = sk_trace::transform::Evaluator::default();
    Some(sk_sandbox::serve(move |request| evaluator.answer(request)))
}
