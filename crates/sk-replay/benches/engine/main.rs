//! What a whole embedded run costs (reading the trace, engine, record, report), against a plain loop over all nodes that
//! places the same pods: both sides in one run, on one core. Beside them, believable clusters (`generated`), which no loop
//! could place.
//!
//! `make bench-engine`, or `cargo bench -p sk-replay --bench engine [-- CASE…] [--shrink N]`; `--shrink 10` tries it out on
//! a tenth of the pods. Prints tables and judges nothing, because figures depend on the machine; docs/benchmarks.md says
//! what they mean. Each measurement is a process of its own, which tells its user time and its peak memory; that is asked
//! of Linux, so it runs nowhere else. `--leave TRACE SCENARIO FOLDER` measures nothing and leaves a run with its page.

#![allow(clippy::unwrap_used, reason = "a benchmark that cannot go on should stop")]

mod case;
mod generated;
mod plain;
mod whole;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use case::Case;

/// Both sides are measured so often, in turns, so that a busy moment of the machine meets both. The best of each counts.
const ROUNDS: usize = 3;

/// What one process tells of itself.
#[derive(Clone, Copy, Debug)]
struct Measured {
    user_secs: f64,
    peak_mib: f64,
}

fn main() {
    // Cargo adds `--bench`.
    let mut arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    if let [flag, side, name, shrink, folder] = arguments.as_slice()
        && flag == "--once"
    {
        if side == "generated" {
            generated::run(name, shrink.parse().unwrap(), Path::new(folder));
            return tell();
        }
        let case = Case::find(name).unwrap().shrunk(shrink.parse().unwrap());
        match side.as_str() {
            "write" => whole::write_trace(&case, Path::new(folder)),
            "plain" => plain::run(&case),
            "whole" => whole::run(&case, Path::new(folder)),
            "idle" => whole::read(&case, Path::new(folder)),
            side => panic!("there is no side `{side}`"),
        }
        return tell();
    }
    if let [flag, trace, scenario, out] = arguments.as_slice()
        && flag == "--leave"
    {
        whole::leave(Path::new(trace), Path::new(scenario), Path::new(out));
        return;
    }
    let mut shrink = 1;
    if let Some(place) = arguments.iter().position(|argument| argument == "--shrink") {
        shrink = arguments[place + 1].parse().expect("--shrink takes a number");
        arguments.drain(place..place + 2);
    }
    let folder = tempfile::tempdir().unwrap();
    println!("| workload | pods | loop | whole run | run / loop | per pod | peak memory | per pod |");
    println!("|---|--:|--:|--:|--:|--:|--:|--:|");
    let mut user_secs = BTreeMap::new();
    for case in Case::ALL.iter().filter(|case| arguments.is_empty() || arguments.iter().any(|name| name == case.name)) {
        user_secs.insert(case.name, compare(&case.shrunk(shrink), shrink, folder.path()));
    }
    let is_asked = |name: &&&str| arguments.is_empty() || arguments.iter().any(|argument| argument == *name);
    for preset in generated::PRESETS.iter().filter(is_asked) {
        generated::measure(preset, shrink, folder.path());
    }
    if let (Some(without), Some(with)) = (user_secs.get("no-scans"), user_secs.get("scans")) {
        println!("\nscanning every 10 s takes {:.2} times as long as not scanning", with / without.max(0.01));
    }
    if let (Some(without), Some(with)) = (user_secs.get("one-deployment"), user_secs.get("one-budget")) {
        println!("\na budget over 10,000 pods takes {:.2} times as long as none", with / without.max(0.01));
    }
}

/// Prints the workload's line; the user time of its whole run.
fn compare(case: &Case, shrink: u64, folder: &Path) -> f64 {
    whole::write_trace(case, folder);
    let best = |side: &str| best(side, case.name, shrink, folder);
    let (plain, whole, idle) = (best("plain"), best("whole"), best("idle"));
    let pods = case.pods as f64;
    println!(
        "| {} | {} | {:.2} s | {:.2} s | {:.2} | {:.1} µs | {:.0} MiB | {:.1} KiB |",
        case.title,
        case.pods,
        plain.user_secs,
        whole.user_secs,
        whole.user_secs / plain.user_secs.max(0.01),
        whole.user_secs * 1e6 / pods,
        whole.peak_mib,
        (whole.peak_mib - idle.peak_mib) * 1024.0 / case.live as f64,
    );
    whole.user_secs
}

/// One side of one workload, the best of some processes.
fn best(side: &str, name: &str, shrink: u64, folder: &Path) -> Measured {
    let once = || {
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--once", side, name, &shrink.to_string()])
            .arg(folder)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        let (user, peak) = text.trim().split_once(' ').unwrap();
        Measured { user_secs: user.parse().unwrap(), peak_mib: peak.parse().unwrap() }
    };
    (0..ROUNDS).map(|_| once()).min_by(|a, b| a.user_secs.total_cmp(&b.user_secs)).unwrap()
}

/// Says what this process took.
fn tell() {
    let Measured { user_secs, peak_mib } = measured();
    println!("{user_secs} {peak_mib}");
}

/// This process's user time and the high-water mark of its resident set.
fn measured() -> Measured {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    // Fields are counted after the name in brackets, which may hold spaces; utime is the 14th of all, in hundredths.
    let ticks: f64 = stat.rsplit_once(')').unwrap().1.split_whitespace().nth(11).unwrap().parse().unwrap();
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak_kib: f64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    Measured { user_secs: ticks / 100.0, peak_mib: peak_kib / 1024.0 }
}
