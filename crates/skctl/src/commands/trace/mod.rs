//! `skctl trace …`: one file per command.

mod convert;
mod generate;
mod merge;
mod scale;
mod shift;
mod show;
mod slice;
mod transform;

use anyhow::Result;

use crate::cli::{Global, TraceCommand};
use crate::failure::Outcome;

pub(crate) fn run(command: &TraceCommand, global: &Global) -> Result<Outcome> {
    match command {
        TraceCommand::Show(args) => show::run(args, global)?,
        TraceCommand::Convert(args) => convert::run(args, global)?,
        TraceCommand::Slice(args) => slice::run(args, global)?,
        TraceCommand::Merge(args) => merge::run(args, global)?,
        TraceCommand::Shift(args) => shift::run(args, global)?,
        TraceCommand::Scale(args) => scale::run(args, global)?,
        TraceCommand::Transform(args) => transform::run(args, global)?,
        TraceCommand::Generate(args) => generate::run(args, global)?,
    }
    Ok(Outcome::Good)
}
