//! Prints results on standard output.
//!
//! Names and strings in a trace come from other clusters and can contain terminal escape sequences. They are printed in
//! a harmless form.

use std::fmt::Write as _;
use std::io::{self, Write};

use anyhow::Result;
use serde::Serialize;
use sk_report::escape::{is_deceptive, json_in_terminal};

use crate::cli::Global;

/// The text with every control character but the line feed, and every mark that turns text around, written out, like
/// `\u{1b}`.
pub(crate) fn plain(text: &str) -> String {
    written_out(text, |char| char != '\n')
}

/// The text as one line: line feeds are written out too. What came from a trace or a cluster goes through here before it
/// becomes a part of an answer, so that no name begins a line of its own.
pub(crate) fn line(text: &str) -> String {
    written_out(text, |_| true)
}

fn written_out(text: &str, counts: impl Fn(char) -> bool) -> String {
    let mut plain = String::with_capacity(text.len());
    for char in text.chars() {
        if (char.is_control() || is_deceptive(char)) && counts(char) {
            // Writing into a String cannot fail.
            let _ = write!(plain, "{}", char.escape_default());
        } else {
            plain.push(char);
        }
    }
    plain
}

/// A message of several lines with all but the first one moved in, so that none of them looks like an answer.
pub(crate) fn moved_in(text: &str) -> String {
    plain(text).replace('\n', "\n  ")
}

/// How wide a line may be: as wide as the terminal, or as `COLUMNS` says; 80 where there is neither.
pub(crate) fn columns() -> usize {
    let told = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok()).filter(|columns| *columns > 0);
    let terminal = || console::Term::stdout().size_checked().map(|(_, columns)| usize::from(columns));
    told.or_else(terminal).unwrap_or(sk_report::terminal::COLUMNS)
}

/// Prints text for people.
pub(crate) fn print(text: &str) -> Result<()> {
    Ok(anstream::stdout().write_all(plain(text).as_bytes())?)
}

/// Prints JSON for programs.
pub(crate) fn print_json(value: &impl Serialize) -> Result<()> {
    let text = serde_json::to_string_pretty(value)?;
    let mut out = io::stdout().lock();
    writeln!(out, "{}", json_in_terminal(&text))?;
    Ok(out.flush()?)
}

/// Prints objects as a stream of YAML documents. It is quoted so that readers of YAML 1.1, as Kubernetes has them, take
/// no text for a number or a truth.
pub(crate) fn print_yaml(objects: &[impl Serialize]) -> Result<()> {
    let text = serde_saphyr::to_string_multiple(objects)?;
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

/// Says something to the person in front of it, unless that is not wanted.
pub(crate) fn say(global: &Global, text: &str) {
    if !global.quiet {
        anstream::eprintln!("{}", plain(text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_written_out() {
        assert_eq!(plain("web\u{1b}[2J\r\nüñ"), "web\\u{1b}[2J\\r\nüñ");
        assert_eq!(plain("\u{9b}31m"), "\\u{9b}31m");
        assert_eq!(plain("pay\u{202e}roll"), "pay\\u{202e}roll");
    }

    #[test]
    fn a_name_begins_no_line() {
        assert_eq!(line("web\nVALID  all is well"), "web\\nVALID  all is well");
        assert_eq!(moved_in("web\nerror: none"), "web\n  error: none");
    }
}
