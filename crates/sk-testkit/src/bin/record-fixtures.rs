//! `make record-fixtures`: records anew what the real control plane does with each scenario, and what the oracles
//! answer. Arguments name the scenarios or oracles to record; without any, all are.

use std::process::ExitCode;
use std::time::Instant;

use sk_testkit::Scenario;
use sk_testkit::recorder::{ORACLES, RecordError, record, record_oracle, write, write_oracle};

#[tokio::main]
async fn main() -> ExitCode {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    match record_wanted(&wanted).await {
        Ok(0) => {
            eprintln!("nothing is called {}: see crates/sk-testkit/scenarios and oracle", wanted.join(" or "));
            ExitCode::from(2)
        }
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("record-fixtures: {error}");
            ExitCode::from(2)
        }
    }
}

/// Records what is wanted and says how many that were.
async fn record_wanted(wanted: &[String]) -> Result<usize, RecordError> {
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|want| want == name);
    let mut recorded = 0;
    for oracle in ORACLES.into_iter().filter(|oracle| is_wanted(&format!("oracle-{oracle}"))) {
        println!("{}", write_oracle(&record_oracle(oracle)?)?.display());
        recorded += 1;
    }
    for scenario in Scenario::all()?.iter().filter(|scenario| is_wanted(&scenario.name)) {
        let began = Instant::now();
        let path = write(&record(scenario).await?)?;
        println!("{} ({:.0} s)", path.display(), began.elapsed().as_secs_f64());
        recorded += 1;
    }
    Ok(recorded)
}
