//! How large traces are, how fast they are looked through and in how much memory, against the plain way: the whole v2
//! file, by rmp-serde, into JSON values. Both sides in one run, on the trace of `generate`'s preset `bench-100k`.
//!
//! `cargo bench -p sk-trace --bench traces [-- EVENTS]`; fewer events are for trying it out. Prints tables and judges
//! nothing, because figures depend on the machine; docs/benchmarks.md says what they mean. It stops only if the two
//! sides have not read the same. Peak memory is asked of Linux, so it runs nowhere else.

#![allow(clippy::unwrap_used, reason = "a benchmark that cannot go on should stop")]

mod plain;
mod steps;
mod table;

use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use sk_store::trace::Format;
use sk_trace::generate::{GenerateSpec, generate};

use steps::{Measured, Step};
use table::Row;

/// Each step is run so often, in turns with the others, so that a busy moment of the machine meets both sides. The best
/// of each counts.
const ROUNDS: usize = 3;

/// How many times longer the trace is that memory must not grow with.
const LONGER: u32 = 10;

/// The level of zstd that the plain file is compressed with, to compare sizes.
const ZSTD_LEVEL: i32 = 3;

fn main() {
    // Cargo adds `--bench`.
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    if let [flag, step, file] = arguments.as_slice()
        && flag == steps::ONCE
    {
        return steps::once(step, Path::new(file));
    }
    let mut spec = GenerateSpec::preset("bench-100k").unwrap();
    if let Some(events) = arguments.first() {
        spec.events = Some(events.parse().expect("the only argument is a number of events"));
    }
    compare(&spec);
}

fn compare(spec: &GenerateSpec) {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, spec: &GenerateSpec, format| written(folder.path().join(name), spec, format);
    let v2 = write("v2", spec, Format::V2);
    let native = write("native", spec, Format::Native);
    let long = write("long", &longer(spec), Format::Native);
    let specification = folder.path().join("spec.json");
    fs::write(&specification, serde_json::to_vec(spec).unwrap()).unwrap();
    let [plain, heads, objects, reach, show, validate, show_v2, validate_v2, write_plainly, generate] = best([
        (Step::Plain, &v2),
        (Step::Heads, &native),
        (Step::Objects, &native),
        (Step::Reach, &native),
        (Step::Show, &native),
        (Step::Validate, &native),
        (Step::Show, &v2),
        (Step::Validate, &v2),
        (Step::Write, &v2),
        (Step::Generate, &specification),
    ]);
    assert_eq!(plain.answer, heads.answer, "the heads tell something else than the v2 file");
    assert_eq!(plain.answer, objects.answer, "the objects tell something else than the v2 file");
    assert_eq!(write_plainly.answer, generate.answer, "another number of events was generated than written");
    let (show_long, validate_long) = (Step::Show.apart(&long), Step::Validate.apart(&long));

    let (events, deployments) = (spec.events.unwrap_or_default(), spec.services.count);
    println!("{events} events over {deployments} Deployments, a v2 file of {}\n", table::megabytes(len(&v2)));
    table::print(
        ["size", "`zstd -3` of the v2 file", "native", "ratio", "goal"],
        &[Row::size("file", compressed_len(&v2), len(&native), "at most 1.3 ×")],
    );
    table::print(
        ["time", "plain", "SimKube", "ratio", "goal"],
        &[
            Row::speed("time, key, kind and labels of everything", &plain, &heads, "at least 3 × as fast"),
            Row::speed("every object decoded", &plain, &objects, "no slower"),
            Row::speed("first record of the second half", &plain, &reach, ""),
            Row::speed("`trace show`", &plain, &show, "no slower"),
            Row::speed("`validate`", &plain, &validate, "no slower"),
            Row::speed("`trace show` of the v2 file", &plain, &show_v2, ""),
            Row::speed("`validate` of the v2 file", &plain, &validate_v2, ""),
        ],
    );
    table::print(
        ["time", "objects from memory into a v2 file", "SimKube", "ratio", "goal"],
        &[Row::speed("`trace generate`, native", &write_plainly, &generate, "at least 0.2 × as fast")],
    );
    table::print(
        ["peak memory", "plain", "SimKube", "ratio", "goal"],
        &[
            Row::memory("`trace show`", &plain, &show, "at most 0.100 ×"),
            Row::memory("`validate`", &plain, &validate, "at most 0.100 ×"),
            Row::memory("`trace show` of the v2 file", &plain, &show_v2, ""),
            Row::memory("`validate` of the v2 file", &plain, &validate_v2, ""),
        ],
    );
    table::print(
        ["peak memory, a longer trace", "1 × the length", &format!("{LONGER} × the length"), "ratio", "goal"],
        &[
            Row::memory("`trace show`", &show, &show_long, "flat"),
            Row::memory("`validate`", &validate, &validate_long, "flat"),
        ],
    );
}

/// Runs all steps, each in a process of its own, and keeps the best of each.
fn best<const N: usize>(steps: [(Step, &PathBuf); N]) -> [Measured; N] {
    let mut best = steps.map(|(step, file)| step.apart(file));
    for _ in 1..ROUNDS {
        for (best, (step, file)) in best.iter_mut().zip(steps) {
            best.improve(&step.apart(file));
        }
    }
    best
}

/// The same workload for longer.
fn longer(spec: &GenerateSpec) -> GenerateSpec {
    GenerateSpec {
        events: spec.events.map(|events| events * u64::from(LONGER)),
        duration: spec.duration * i64::from(LONGER),
        ..spec.clone()
    }
}

fn written(path: PathBuf, spec: &GenerateSpec, format: Format) -> PathBuf {
    let out = BufWriter::new(File::create(&path).unwrap());
    let written = generate(spec, format, out).unwrap();
    assert_eq!(Some(written.summary.events), spec.events, "the time ended before the events");
    path
}

fn len(path: &Path) -> u64 {
    fs::metadata(path).unwrap().len()
}

fn compressed_len(path: &Path) -> u64 {
    zstd::stream::encode_all(File::open(path).unwrap(), ZSTD_LEVEL).unwrap().len() as u64
}
