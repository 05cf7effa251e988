//! The program; everything it does is in the library.

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    sk_driver::cli::main().await
}
