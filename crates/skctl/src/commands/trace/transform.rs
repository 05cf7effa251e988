//! `skctl trace transform IN -f PROGRAM -O OUT`: edits a trace with a jq program.

use std::fmt::Write as _;
use std::io;
use std::path::Path;

use anyhow::{Context, Result, bail};
use indicatif::HumanCount;
use sk_store::Trace;
use sk_trace::transform::{Summary, plan, transform};

use crate::cli::{Global, TransformArgs};
use crate::confined::program::Confined;
use crate::failure::Interrupted;
use crate::outputs::Destination;
use crate::progress::Bar;
use crate::{output, progress, text_file, traces};

/// How many changed versions `--dry-run` shows: a few screens.
const MAX_DIFFS: usize = 50;

pub(crate) fn run(args: &TransformArgs, global: &Global) -> Result<()> {
    let path = program_path(args)?;
    let program =
        Confined::compile(&text_file::read("jq program", path)?).with_context(|| path.display().to_string())?;
    let Some(out) = &args.out else {
        return dry_run(&traces::open(&args.input, global)?, &program, global);
    };
    let destination = Destination::new(out, args.to)?;
    let trace = traces::open(&args.input, global)?;
    let written = destination.write(global, |format, out| transform(&trace, &program, format, out));
    // A program that was ended with the work it was part of has not failed.
    let summary = match written {
        Err(_) if progress::is_interrupted() => return Err(io::Error::other(Interrupted).into()),
        written => written?,
    };
    if !global.quiet {
        anstream::eprint!("{}", output::plain(&in_words(&summary)));
    }
    Ok(())
}

/// The program's path; what SimKube 2 had in its place is answered with what to do now.
fn program_path(args: &TransformArgs) -> Result<&Path> {
    let typed = args.program.as_deref().or(args.old_program.as_deref());
    let Some(path) = typed else { bail!("no program given: `skctl trace transform IN -f PROGRAM -O OUT`") };
    if path.extension().is_some_and(|ending| ending == "skel") {
        bail!("SKEL is not supported; docs/from-simkube.md has a jq line for modify, remove, delete");
    }
    if args.old_program.is_some() {
        bail!("give the program with -f: skctl trace transform {} -f {} -O OUT", args.input, path.display());
    }
    Ok(path)
}

fn dry_run(trace: &Trace, program: &Confined, global: &Global) -> Result<()> {
    let bar = Bar::of_unknown_length(format!("reading {}", trace.name()), global.quiet);
    let plan = plan(trace, program, MAX_DIFFS)?;
    drop(bar);
    let mut text = String::new();
    for diff in &plan.diffs {
        let _ = writeln!(text, "{diff}");
    }
    if plan.diffs.len() == MAX_DIFFS {
        let _ = writeln!(text, "these are the first {MAX_DIFFS} changes\n");
    }
    text += &in_words(&plan.summary);
    output::print(&text)
}

fn in_words(summary: &Summary) -> String {
    let [versions, changed] = [summary.versions, summary.changed_versions].map(HumanCount);
    let mut text = format!("{changed} of {versions} versions changed\n");
    for (kind, counts) in &summary.kinds {
        let [changed, renamed, dropped] = [counts.changed, counts.renamed, counts.dropped].map(HumanCount);
        let _ = writeln!(text, "{kind}: {changed} objects changed, {renamed} of them renamed; {dropped} dropped");
    }
    if summary.uncounted > 0 {
        let uncounted = HumanCount(summary.uncounted);
        let _ = writeln!(text, "{uncounted} names did not fit into memory: these objects are counted more than once");
    }
    if summary.forgotten_templates > 0 {
        let forgotten = HumanCount(summary.forgotten_templates);
        let _ =
            writeln!(text, "{forgotten} templates did not fit into memory; their lives follow in the order of start");
    }
    text
}
