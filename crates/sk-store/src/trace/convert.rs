//! A trace into another form.

use std::io::Write;

use super::rows::Section;
use super::write::{Losses, WriteError, Writer};
use super::{Format, Trace};

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
