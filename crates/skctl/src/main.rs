//! `skctl`: parse, call a library, print.

use std::process::ExitCode;

fn main() -> ExitCode {
    skctl::main()
}
