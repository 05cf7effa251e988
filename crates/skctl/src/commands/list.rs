//! `skctl list`: the runs in ./runs, newest first.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Result;
use serde_json::json;
use sk_record::RunMeta;

use crate::cli::{Global, ListArgs, ObjectFormat};
use crate::commands::simulations;
use crate::failure::Outcome;
use crate::output;
use crate::runs::RUNS;

pub(crate) fn run(args: &ListArgs, global: &Global) -> Result<Outcome> {
    if args.cluster {
        return simulations::list(args.output, global);
    }
    let runs = sk_record::find_runs(Path::new(RUNS))?;
    let row = |(dir, meta): &(PathBuf, RunMeta)| {
        json!({
            "dir": dir, "name": meta.name, "run_id": meta.run_id, "trace": meta.trace.name, "seed": meta.seed,
            "simulated_s": meta.end.since(meta.start).as_secs_f64(), "partial": meta.partial,
        })
    };
    let mut out = anstream::stdout().lock();
    match args.output {
        ObjectFormat::Json => output::print_json(&runs.iter().map(row).collect::<Vec<_>>())?,
        ObjectFormat::Yaml => output::print_yaml(&runs.iter().map(row).collect::<Vec<_>>())?,
        ObjectFormat::Table if runs.is_empty() => {
            writeln!(out, "no runs in ./{RUNS} yet; `skctl demo` makes one")?;
        }
        ObjectFormat::Table => {
            writeln!(out, "{:<28} {:<24} {:>10}  SEED", "RUN", "TRACE", "SIMULATED")?;
            for (dir, meta) in &runs {
                let name = dir.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
                let simulated = meta.end.since(meta.start).to_string();
                let partial = if meta.partial { "  (partial)" } else { "" };
                writeln!(out, "{name:<28} {:<24} {simulated:>10}  {}{partial}", meta.trace.name, meta.seed)?;
            }
        }
    }
    Ok(Outcome::Good)
}
