//! The program; everything it does is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("sk-driver: cannot start: {error}");
            return ExitCode::FAILURE;
        }
    };
    let code = runtime.block_on(sk_driver::cli::main());
    // A thread that still fetches or sends something is not waited for: the driver may have been asked to stop.
    runtime.shutdown_background();
    code
}
