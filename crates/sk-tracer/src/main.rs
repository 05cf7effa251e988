//! The tracer's program; everything it does is in the library.

use std::process::ExitCode;

use clap::Parser;
use sk_tracer::cli::{Args, run};

#[tokio::main]
async fn main() -> ExitCode {
    match run(Args::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}
