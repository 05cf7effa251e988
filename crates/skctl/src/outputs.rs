//! Writes traces to the OUT of a command, atomically.
//!
//! Every command that writes a trace uses [`Destination::write`]: to a temporary file that is renamed, with a progress
//! bar, stoppable with Ctrl-C, and with a note about what the format could not hold.

use std::fmt;
use std::io::{self, BufWriter, IsTerminal, Stdout, Write};

use anyhow::{Context, Result, bail};
use indicatif::DecimalBytes;
use sk_store::location::Output;
use sk_store::trace::Format;
use sk_store::{Location, Trace};
use sk_trace::TraceOutput;

use crate::cli::{Form, Global};
use crate::failure::Interrupted;
use crate::progress::Progress;

/// The destination of a trace, and its format.
#[derive(Debug)]
pub(crate) struct Destination {
    place: Place,
    form: Form,
}

#[derive(Debug)]
enum Place {
    StandardOutput,
    Location(Location),
}

impl Destination {
    /// From the user's arguments. The file extension decides the format, unless a flag does.
    pub(crate) fn new(out: &str, form: Option<Form>) -> Result<Self> {
        let form = form.map_or_else(|| form_of_name(out), Ok)?;
        if out != "-" {
            return Ok(Self { place: Place::Location(out.parse()?), form });
        }
        if form != Form::Jsonl && io::stdout().is_terminal() {
            bail!("only JSON Lines can go to a terminal; use --to jsonl, or redirect standard output into a file");
        }
        Ok(Self { place: Place::StandardOutput, form })
    }

    /// Like [`Self::new`], for commands whose answer goes to standard output.
    pub(crate) fn beside_an_answer(out: &str, form: Option<Form>) -> Result<Self> {
        if out == "-" {
            bail!("the answer goes to standard output, so the trace cannot; give a path or a URL for -O");
        }
        Self::new(out, form)
    }

    /// Writes a trace there with `write`, and reports it on standard error. Returns the summary of `write`.
    pub(crate) fn write<S, E: Into<anyhow::Error>>(
        &self,
        global: &Global,
        write: impl FnOnce(Format, Sink) -> Result<TraceOutput<Sink, S>, E>,
    ) -> Result<S> {
        let target = match &self.place {
            Place::StandardOutput => Target::StandardOutput(BufWriter::new(io::stdout())),
            Place::Location(location) => Target::Location(location.create()?),
        };
        let progress = Progress::of_unknown_length(format!("writing {self}"), global.quiet)?;
        let written = write(self.form.format(), Sink { target, bytes: 0, progress, name: self.to_string() })
            .map_err(Into::into)?;
        let bytes = written.out.commit()?;
        if !global.quiet {
            let (form, losses) = (self.form.format().name(), written.losses);
            anstream::eprintln!("wrote {self}: {form}, {}", DecimalBytes(bytes));
            if !losses.is_none() {
                anstream::eprintln!("lost, because {form} cannot hold them: {losses}; native and jsonl can");
            }
        }
        Ok(written.summary)
    }

    /// The form that it is to have.
    pub(crate) fn format(&self) -> Format {
        self.form.format()
    }

    /// Opens what was written there.
    pub(crate) fn open(&self) -> Result<Trace> {
        match &self.place {
            Place::StandardOutput => bail!("standard output cannot be read again"),
            Place::Location(location) => Ok(location.open()?),
        }
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::StandardOutput => f.write_str("standard output"),
            Place::Location(location) => location.fmt(f),
        }
    }
}

/// The form that a name's ending means.
fn form_of_name(out: &str) -> Result<Form> {
    match out.rsplit_once('.').map(|(_, ending)| ending) {
        _ if out == "-" => Ok(Form::Jsonl),
        Some("sktrace") => Ok(Form::Native),
        Some("jsonl" | "ndjson") => Ok(Form::Jsonl),
        _ => bail!("the name {out} does not tell the format; end it in .sktrace (native) or .jsonl, or use --to"),
    }
}

/// What a trace is written to.
pub(crate) struct Sink {
    target: Target,
    bytes: u64,
    progress: Progress,
    /// For the bar.
    name: String,
}

enum Target {
    StandardOutput(BufWriter<Stdout>),
    Location(Output),
}

impl Sink {
    /// Puts what was written in its place; how many bytes it is.
    fn commit(self) -> Result<u64> {
        match self.target {
            Target::StandardOutput(mut out) => out.flush().context("cannot write to standard output")?,
            Target::Location(output) => output.commit()?,
        }
        Ok(self.bytes)
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let say = || format!("writing {}, {}", self.name, DecimalBytes(self.bytes));
        if self.progress.at(self.bytes, say).is_break() {
            return Err(io::Error::other(Interrupted));
        }
        let written = match &mut self.target {
            Target::StandardOutput(out) => out.write(bytes)?,
            Target::Location(output) => output.write(bytes)?,
        };
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.target {
            Target::StandardOutput(out) => out.flush(),
            Target::Location(output) => output.flush(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ending_of_a_name_tells_the_form() {
        let form = |out: &str| Destination::new(out, None).map(|destination| destination.form).ok();
        assert_eq!(form("week.sktrace"), Some(Form::Native));
        assert_eq!(form("s3://bucket/week.sktrace"), Some(Form::Native));
        assert_eq!(form("week.jsonl"), Some(Form::Jsonl));
        assert_eq!(form("-"), Some(Form::Jsonl));
        assert_eq!(form("week"), None);
        assert_eq!(Destination::new("week", Some(Form::V2)).map(|to| to.form).ok(), Some(Form::V2));
        assert!(Destination::beside_an_answer("-", None).is_err());
    }
}
