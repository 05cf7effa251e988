//! The controller's binary; everything is in the library.

use clap::Parser;
use sk_ctrl::cli::Arguments;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    sk_ctrl::cli::run(Arguments::parse()).await
}
