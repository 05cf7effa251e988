//! The program; everything it does is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    sk_driver::cli::start(std::env::args_os())
}
