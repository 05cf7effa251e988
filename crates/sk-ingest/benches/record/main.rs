//! What recording costs, against the plain way: each event of a watch parsed into a JSON value and kept. Both sides in one
//! run, on the same prepared watch stream of 1,000 Deployments with 50 versions each, 2.4 KB of JSON a version.
//!
//! `cargo bench -p sk-ingest --bench record [-- OBJECTS | programs]`; fewer objects are for trying it out, `programs`
//! compares nothing but whole tracers. Prints tables and judges nothing, because figures depend on the machine. It stops
//! only if the recording lacks an event. Memory is asked of Linux, so it runs nowhere else.

#![allow(clippy::unwrap_used, reason = "a benchmark that cannot go on should stop")]
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a benchmark reads clocks and files")]

mod peer;
mod plain;
mod recording;
mod server;
mod steps;
mod stream;
mod table;

use std::fs::{self, File};
use std::path::Path;

use steps::{Measured, Step};
use table::Row;

/// Each step is run so often, in turns with the others, so that a busy moment of the machine meets both sides. The best
/// of each counts.
const ROUNDS: usize = 3;

/// How many objects there are unless told.
const OBJECTS: usize = 1_000;

fn main() {
    // Cargo adds `--bench`.
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    if let [flag, step, file, folder] = arguments.as_slice()
        && flag == steps::ONCE
    {
        return steps::once(step, Path::new(file), Path::new(folder));
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("stream");
    let only_programs = arguments.first().is_some_and(|argument| argument == "programs");
    let objects = arguments.first().filter(|_| !only_programs);
    let objects = objects.map_or(OBJECTS, |count| count.parse().expect("the argument is a number of objects"));
    let events = stream::write(&mut File::create(&file).unwrap(), objects);
    let json = fs::metadata(&file).unwrap().len();
    println!("{events} events over {objects} Deployments, {} bytes of JSON each\n", json / events);
    if !only_programs {
        compare(&file, events, json, folder.path());
    }
    peer::compare(&file, events, folder.path());
}

fn compare(file: &Path, events: u64, json: u64, folder: &Path) {
    let mut best = [None, None, None, None];
    for round in 0..ROUNDS {
        let log = folder.join(format!("log-{round}"));
        let one_thread = folder.join(format!("log-one-{round}"));
        let measured = [
            Step::Plain.apart(file, &log),
            Step::Record.apart(file, &log),
            Step::RecordOneThread.apart(file, &one_thread),
            Step::Export.apart(file, &log),
        ];
        for (best, measured) in best.iter_mut().zip(measured) {
            Measured::improve(best, measured);
        }
    }
    let [plain, record, one_thread, export] = best.map(Option::unwrap);
    assert_eq!(record.events, events, "every version of every object is an event");
    assert_eq!(export.events, events, "every event is exported");
    table::print(
        ["events per second", "plain", "SimKube", "ratio", "goal"],
        &[
            Row::rate("recorded and synced every 100 ms", &plain, &record, "no slower"),
            Row::rate("the same in one thread", &plain, &one_thread, ""),
        ],
    );
    table::print(
        ["events per processor-second", "plain", "SimKube", "ratio", "goal"],
        &[
            Row::work("recorded and synced every 100 ms", &plain, &record, ""),
            Row::work("the same in one thread", &plain, &one_thread, ""),
        ],
    );
    table::print(
        ["memory", "plain", "SimKube", "ratio", "goal"],
        &[Row::memory("peak while recording", &plain, &record, "at most 0.050 ×")],
    );
    table::print(
        ["bytes per event", "JSON", "SimKube", "ratio", "goal"],
        &[Row::bytes("on disk", json / events, record.disk / events, "at most 0.050 ×")],
    );
    println!(
        "export of {events} events: {:.1} s, peak memory {}",
        export.took.as_secs_f64(),
        table::mebibytes(export.peak_kib)
    );
}
