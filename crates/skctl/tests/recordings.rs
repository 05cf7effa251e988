//! Recorded traces run with every pod simulated: ours, and those beside the repository where there are any.

mod support;

use std::path::{Path, PathBuf};

use predicates::str::contains;
use serde_json::Value;
use support::{folder, skctl};

fn traces() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folders = [root.join("examples"), root.join("crates/sk-store/tests/traces"), root.join("../shared/traces")];
    let listed = folders.iter().filter_map(|folder| std::fs::read_dir(folder).ok()).flatten().flatten();
    let mut traces: Vec<PathBuf> = listed.map(|entry| entry.path()).collect();
    traces.retain(|path| path.extension().is_some_and(|extension| extension == "sktrace"));
    // A file of every part of the format is no recording of a cluster.
    traces.retain(|path| path.file_stem().is_some_and(|stem| stem != "every-part"));
    traces.sort();
    traces
}

#[test]
fn recorded_traces_run_with_every_pod_simulated() {
    let traces = traces();
    assert!(!traces.is_empty(), "at least the examples are there");
    for trace in traces {
        let dir = folder();
        let typed = trace.display().to_string();
        skctl(&dir).args(["run", &typed, "-O", "out", "-q"]).assert().success();
        let read = |name: &str| -> Value {
            let text = std::fs::read_to_string(dir.path().join("out").join(name)).expect("the run left it");
            serde_json::from_str(&text).expect("it is JSON")
        };
        let (meta, summary) = (read("run.json"), read("summary.json"));
        assert_eq!(meta["missing"], Value::Null, "{typed}");
        assert_eq!(summary["verdict"], "DONE", "{typed}");
        assert!(meta["tables"]["pods"]["rows"].as_u64() > Some(0), "{typed}: no pod was simulated");
        // bare-pods of SimKube 2 makes its fourth pod in the trace's last moment.
        let (created, ran) = (summary["pods"]["created"].as_i64(), summary["pods"]["ran"].as_i64());
        if created != ran {
            skctl(&dir).args(["report", "out"]).assert().stdout(contains("1 starting at the end"));
        }
    }
}
