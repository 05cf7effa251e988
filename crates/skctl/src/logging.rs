//! What libraries have to say while they work, on standard error.
//!
//! It is for whoever looks into a problem: `-v LEVEL` says how much of it. Answers and errors never go this way.

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
