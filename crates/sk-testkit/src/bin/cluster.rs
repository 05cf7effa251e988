//! Starts a real control plane to try things: `cargo run -p sk-testkit --features control-plane --bin cluster
//! [NODES]`.
//!
//! Prints how to reach it and runs until Ctrl-C. NODES is the number of KWOK nodes, 0 by default.

use std::process::ExitCode;

use sk_testkit::control_plane::{ControlError, ControlPlane};
use sk_testkit::{Options, objects};

#[tokio::main]
async fn main() -> ExitCode {
    let nodes = std::env::args().nth(1).unwrap_or_else(|| "0".to_owned());
    let Ok(nodes) = nodes.parse() else {
        eprintln!("usage: cluster [NODES]; `{nodes}` is no number");
        return ExitCode::from(2);
    };
    match run(nodes).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cluster: {error}");
            ExitCode::from(2)
        }
    }
}

async fn run(nodes: u16) -> Result<(), ControlError> {
    let cluster = ControlPlane::start(Options::default()).await?;
    cluster.create_nodes((1..=nodes).map(|n| objects::node().name(&format!("node-{n}")))).await?;
    println!("export KUBECONFIG={}", cluster.kubeconfig().display());
    eprintln!("ready after {:.1} s; logs in {}", cluster.took().as_secs_f64(), cluster.logs_dir().display());
    if tokio::signal::ctrl_c().await.is_err() {
        eprintln!("cluster: cannot wait for Ctrl-C; ending");
    }
    Ok(())
}
