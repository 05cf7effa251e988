//! Sends the questions in `oracle/*.jsonl` to the oracle (tools/control-plane/cmd/oracle) and keeps its answers.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::{RecordError, today};
use crate::control_plane::Binaries;
use crate::fixture::OracleFixture;
use crate::versions::Versions;

/// The oracles that there are.
pub const ORACLES: [&str; 4] = ["quantity", "cron", "smp", "victims"];

/// Asks one oracle all its questions.
pub fn record_oracle(oracle: &str) -> Result<OracleFixture<Value>, RecordError> {
    let failed = |reason: String| RecordError::Oracle { oracle: oracle.to_owned(), reason };
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("oracle").join(oracle).with_extension("jsonl");
    let questions = File::open(&path).map_err(|error| failed(format!("{}: {error}", path.display())))?;
    let output = Command::new(Binaries::from_env()?.oracle()?)
        .arg(oracle)
        .stdin(questions)
        .stderr(Stdio::piped())
        .output()
        .map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        return Err(failed(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    let cases: Result<Vec<Value>, _> =
        serde_json::Deserializer::from_slice(&output.stdout).into_iter::<Value>().collect();
    Ok(OracleFixture {
        oracle: oracle.to_owned(),
        // The oracle is built from the libraries of the pinned version; no server is there to be asked.
        kubernetes: format!("v{}", Versions::pinned().kubernetes),
        recorded: today(),
        cases: cases.map_err(|error| failed(error.to_string()))?,
    })
}
