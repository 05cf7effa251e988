//! Believable clusters: presets of `trace generate` with nodes, replayed on those nodes.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use sk_api::Scenario;
use sk_report::Analysis;
use sk_store::trace::{self, Format};
use sk_trace::generate::{self, GenerateSpec};

use crate::best;
use crate::whole::simulate;

/// Those that are measured.
pub(crate) const PRESETS: [&str; 1] = ["day"];

/// Prints a preset's line. `shrink`: a part of its time.
pub(crate) fn measure(preset: &str, shrink: u64, folder: &Path) {
    let mut spec = GenerateSpec::preset(preset).unwrap();
    spec.duration = spec.duration / i64::try_from(shrink).unwrap();
    let file = BufWriter::new(File::create(folder.join(format!("{preset}.sktrace"))).unwrap());
    let written = generate::generate(&spec, Format::Native, file).unwrap();
    let pods = written.summary.observations;
    let whole = best("generated", preset, shrink, folder);
    println!(
        "| the generated `{preset}`, all kinds on their own nodes | {pods} | | {:.2} s | | {:.1} µs | {:.0} MiB | |",
        whole.user_secs,
        whole.user_secs * 1e6 / pods as f64,
        whole.peak_mib,
    );
}

/// From the trace on disk to the figures.
pub(crate) fn run(preset: &str, _shrink: u64, folder: &Path) {
    let trace = trace::open(&folder.join(format!("{preset}.sktrace"))).unwrap();
    let text = "apiVersion: simkube.io/v1\nkind: Scenario\ncluster: {nodes: recorded}\n";
    let out = tempfile::tempdir_in(folder).unwrap();
    let scenario = Scenario::parse("bench.yaml", text).unwrap();
    let staged = simulate(&trace, &scenario, "bench", &out.path().join("run"));
    let summary = Analysis::of(&staged.run().unwrap()).unwrap().summary;
    assert!(summary.pods.ran * 100 >= summary.pods.created * 99, "nearly every pod runs: {:?}", summary.pods);
}
