//! Exit codes and error messages.

use std::process::ExitCode;

use sk_report::Exit;

use crate::output;

/// How a command ended when it did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The command succeeded.
    Good,
    /// The command worked, and the result is negative: an assertion failed, a trace is invalid.
    Bad,
    /// The command could not decide; its output says why.
    Unjudged,
    /// The user pressed Ctrl-C; results so far are kept.
    Interrupted,
}

impl From<Exit> for Outcome {
    fn from(exit: Exit) -> Self {
        match exit {
            Exit::Good => Self::Good,
            Exit::Bad => Self::Bad,
            Exit::Unjudged => Self::Unjudged,
        }
    }
}

impl Outcome {
    /// The process's exit code. A failure is printed with all its causes; it means that nothing was judged.
    pub(crate) fn exit(outcome: anyhow::Result<Self>) -> ExitCode {
        match outcome {
            Ok(Self::Good) => ExitCode::SUCCESS,
            Ok(Self::Bad) => ExitCode::from(1),
            Ok(Self::Unjudged) => ExitCode::from(2),
            Ok(Self::Interrupted) => ExitCode::from(130),
            Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
            Err(error) if is_interrupted(&error) => {
                anstream::eprintln!("{Interrupted}");
                ExitCode::from(130)
            }
            Err(error) => {
                anstream::eprintln!("error: {}", output::moved_in(&sentence(&error)));
                ExitCode::from(2)
            }
        }
    }
}

/// The error with its causes.
fn sentence(error: &anyhow::Error) -> String {
    each_once(error.chain())
}

/// An error and its causes, each said once: libraries often repeat a cause in their own words.
pub(crate) fn each_once<'a>(causes: impl Iterator<Item = &'a (dyn std::error::Error + 'static)>) -> String {
    let mut text = String::new();
    for cause in causes.map(ToString::to_string) {
        if !text.contains(&cause) {
            let colon = if text.is_empty() { "" } else { ": " };
            text = format!("{text}{colon}{cause}");
        }
    }
    text
}

/// What clap has to say: help and version are answers, everything else is a usage error.
pub(crate) fn usage(error: &clap::Error) -> ExitCode {
    // A closed standard output is no reason to complain on standard error.
    let _ = error.print();
    if error.use_stderr() { ExitCode::from(2) } else { ExitCode::SUCCESS }
}

/// The user pressed Ctrl-C while a file was written that is useless unless it is complete.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("interrupted; nothing was left behind")]
pub(crate) struct Interrupted;

fn is_interrupted(error: &anyhow::Error) -> bool {
    io_errors(error).any(|error| error.get_ref().and_then(|inner| inner.downcast_ref::<Interrupted>()).is_some())
}

/// `skctl report | head` is not an error.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    io_errors(error).any(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}

fn io_errors(error: &anyhow::Error) -> impl Iterator<Item = &std::io::Error> {
    error.chain().filter_map(|cause| cause.downcast_ref())
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    #[test]
    fn a_cause_is_said_once() {
        let error = anyhow!("disk full").context("cannot write x: disk full").context("the run failed");
        assert_eq!(sentence(&error), "the run failed: cannot write x: disk full");
    }
}
