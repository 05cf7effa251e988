//! Runs assertions and jq programs in a process with limits.
//!
//! skctl starts itself again ([`sk_sandbox`]); [`serve`] is what the child does. If an assertion or a program needs too
//! much time, memory or stack, it is refused with a message, and the command exits with 2.

pub(crate) mod assertions;
pub(crate) mod program;

use std::process::ExitCode;

const ASSERTIONS: &str = "assertions";
const PROGRAM: &str = "program";

/// What a process that was started to evaluate does; nothing for every other process.
pub(crate) fn serve() -> Option<ExitCode> {
    let role = sk_sandbox::role()?;
    Some(match role.as_str() {
        ASSERTIONS => {
            let mut evaluator = sk_report::confined::Evaluator::default();
            sk_sandbox::serve(move |question| evaluator.answer(question))
        }
        PROGRAM => {
            let mut evaluator = sk_trace::transform::Evaluator::default();
            sk_sandbox::serve(move |question| evaluator.answer(question))
        }
        _ => ExitCode::from(2),
    })
}
