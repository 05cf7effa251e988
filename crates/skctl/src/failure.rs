//! What a caller gets back: exit codes and messages.

use std::process::ExitCode;

/// How a command ended when it did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It did it, and all is good.
    Good,
    /// It judged, and the judgement is bad.
    Bad,
    /// Somebody pressed Ctrl-C; what was done so far is kept.
    Interrupted,
}

impl Outcome {
    /// The process's exit code. A failure is printed with all its causes; it means that nothing was judged.
    pub(crate) fn exit(outcome: anyhow::Result<Self>) -> ExitCode {
        match outcome {
            Ok(Self::Good) => ExitCode::SUCCESS,
            Ok(Self::Bad) => ExitCode::from(1),
            Ok(Self::Interrupted) => ExitCode::from(130),
            Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
            Err(error) => {
                anstream::eprintln!("error: {error:#}");
                ExitCode::from(2)
            }
        }
    }
}

/// What clap has to say: help and version are answers, everything else is a usage error.
pub(crate) fn usage(error: &clap::Error) -> ExitCode {
    // A closed standard output is no reason to complain on standard error.
    let _ = error.print();
    if error.use_stderr() { ExitCode::from(2) } else { ExitCode::SUCCESS }
}

/// `skctl report | head` is no error.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io = error.chain().filter_map(|cause| cause.downcast_ref::<std::io::Error>());
    io.into_iter().any(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}
