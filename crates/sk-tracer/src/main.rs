//! The tracer's program; everything it does is in the library.

use std::process::ExitCode;

use clap::Parser;
use sk_tracer::cli::{Args, run};

// One thread for the network, beside the store's: a connection hands its watcher an event at a time, and on one thread that
// wakes nobody. Sieving takes some 10 µs, so this thread has room for more events than any API server sends.
#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run(Args::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}
