//! Log output of libraries, on standard error.
//!
//! It is for debugging: `-v LEVEL` chooses how much. Results and errors are not logged.

use std::io;

use tracing_subscriber::filter::LevelFilter;

use crate::cli::Verbosity;

/// Lets what is as important as this be said, from now on.
pub(crate) fn begin(verbosity: Verbosity) {
    let level = match verbosity {
        Verbosity::Error => LevelFilter::ERROR,
        Verbosity::Warn => LevelFilter::WARN,
        Verbosity::Info => LevelFilter::INFO,
        Verbosity::Debug => LevelFilter::DEBUG,
        Verbosity::Trace => LevelFilter::TRACE,
    };
    let lines = tracing_subscriber::fmt().with_max_level(level).with_target(false).with_writer(io::stderr);
    // Somebody who embeds this as a library may have begun before; then that is how it is.
    let _ = lines.with_ansi(false).try_init();
}
