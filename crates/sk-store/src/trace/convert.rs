//! Converts a trace to another format.

use std::io::Write;

use crate::trace::rows::Section;
use crate::trace::write::{Losses, WriteError, Writer};
use crate::trace::{Format, Trace};

/// Writes all of `trace` to `out` in `format`; says what that form could not hold.
pub fn convert<W: Write>(trace: &Trace, format: Format, out: W) -> Result<(W, Losses), WriteError> {
    let mut writer = Writer::new(format, out, trace.header())?;
    for record in trace.records()? {
        writer.record(&record?)?;
    }
    for section in Section::ALL {
        for row in trace.rows(section)? {
            writer.row(&row?)?;
        }
    }
    writer.finish()
}
