//! `skctl trace show TRACE`: summarises a trace; with `--values`, lists every string in it.

use std::io::{self, BufWriter, Write};

use anyhow::Result;
use indicatif::HumanCount;
use sk_core::Gvk;
use sk_report::escape::json_in_terminal;
use sk_store::Trace;
use sk_trace::show::{Summary, ValueRow, show, values};

use crate::cli::{Global, ShowArgs, TableFormat};
use crate::progress::Bar;
use crate::{output, traces};

pub(crate) fn run(args: &ShowArgs, global: &Global) -> Result<()> {
    let trace = traces::open(&args.trace, global)?;
    if args.values {
        return list_values(&trace, args.output, global);
    }
    let bar = Bar::of_unknown_length(format!("reading {}", trace.name()), global.quiet);
    let summary = show(&trace, traces::bytes_of(&args.trace))?;
    drop(bar);
    match args.output {
        TableFormat::Table => output::print(&in_lines(summary).to_string()),
        TableFormat::Json => output::print_json(&summary),
    }
}

/// Names that came with the trace as parts of a line.
fn in_lines(mut summary: Summary) -> Summary {
    summary.name = output::line(&summary.name);
    let namespaces = std::mem::take(&mut summary.namespaces);
    summary.namespaces = namespaces.into_iter().map(|(name, counts)| (output::line(&name).into(), counts)).collect();
    let in_line = |gvk: Gvk| Gvk {
        group: output::line(&gvk.group).into(),
        version: output::line(&gvk.version).into(),
        kind: output::line(&gvk.kind).into(),
    };
    let kinds = std::mem::take(&mut summary.kinds);
    summary.kinds = kinds.into_iter().map(|(kind, counts)| (in_line(kind), counts)).collect();
    summary.tracked = std::mem::take(&mut summary.tracked).into_iter().map(in_line).collect();
    summary.gaps.first.iter_mut().for_each(|gap| *gap = output::line(gap));
    summary
}

/// Lists the texts as they come, because there may be more of them than fit into memory.
fn list_values(trace: &Trace, format: TableFormat, global: &Global) -> Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    let mut bar = Some(Bar::of_unknown_length(format!("reading {}", trace.name()), global.quiet));
    let mut list = Listing::default();
    let summary = values(trace, |row| {
        // The first text comes when the trace has been read.
        bar = None;
        match format {
            TableFormat::Table => list.text(&mut out, row),
            TableFormat::Json => list.json(&mut out, row),
        }
    })?;
    if format == TableFormat::Json {
        writeln!(out, "{}", if list.is_begun { "\n]" } else { "[]" })?;
    }
    out.flush()?;
    if !global.quiet {
        let (distinct, places) = (HumanCount(summary.distinct), HumanCount(summary.places));
        anstream::eprintln!("{distinct} different texts at {places} places; names of fields stand in the places");
    }
    Ok(())
}

/// A list of texts, each place said once.
#[derive(Default)]
struct Listing {
    place: String,
    is_begun: bool,
}

impl Listing {
    fn text(&mut self, out: &mut impl Write, row: ValueRow<'_>) -> io::Result<()> {
        let place = output::line(&format!("{} {}", row.part, row.pointer));
        if self.place != place {
            writeln!(out, "{place}")?;
            self.place = place;
        }
        // Quoted, so that a text of several lines is told from several texts, and no terminal obeys it.
        writeln!(out, "{:>9}  {:?}", row.count, row.value)
    }

    /// One element of a JSON array.
    fn json(&mut self, out: &mut impl Write, row: ValueRow<'_>) -> io::Result<()> {
        out.write_all(if self.is_begun { b",\n" } else { b"[\n" })?;
        self.is_begun = true;
        out.write_all(json_in_terminal(&serde_json::to_string(&row)?).as_bytes())
    }
}
