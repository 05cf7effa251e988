//! What is measured: one step at a time, in a process of its own, so that its memory is its own.

use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use sk_core::SimDuration;
use sk_store::log::{Log, Options, Query};
use sk_store::trace::Format;

use crate::plain;
use crate::recording::{self, Recorded};

/// `--once STEP FILE FOLDER` is how this program asks itself for one step.
pub(crate) const ONCE: &str = "--once";

/// Something that is done with the stream, or with the log that was made of it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) enum Step {
    /// Parsed and kept.
    Plain,
    /// Recorded, as the tracer does it.
    Record,
    /// Recorded in one thread.
    RecordOneThread,
    /// Everything that was recorded is exported.
    Export,
}

/// What a step cost.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Measured {
    pub(crate) took: Duration,
    /// Processor time of all threads: on a busy machine this compares better than time on the wall.
    pub(crate) processor: Duration,
    /// The most memory that the process ever had.
    pub(crate) peak_kib: u64,
    pub(crate) events: u64,
    /// Bytes on disk, where something was written.
    pub(crate) disk: u64,
}

impl Measured {
    /// Keeps the better of two runs, of each figure.
    pub(crate) fn improve(best: &mut Option<Self>, other: Self) {
        let known = best.get_or_insert(other);
        known.took = known.took.min(other.took);
        known.processor = known.processor.min(other.processor);
        known.peak_kib = known.peak_kib.min(other.peak_kib);
    }
}

/// Does one step and prints what it cost, for [`Step::apart`].
pub(crate) fn once(step: &str, file: &Path, folder: &Path) {
    let step: Step = serde_json::from_str(step).unwrap();
    println!("{}", serde_json::to_string(&step.here(file, folder)).unwrap());
}

impl Step {
    /// Does it in a process of its own.
    pub(crate) fn apart(self, file: &Path, folder: &Path) -> Measured {
        let program = std::env::current_exe().unwrap();
        let step = serde_json::to_string(&self).unwrap();
        let output = Command::new(program).args([ONCE, &step]).args([file, folder]).output().unwrap();
        assert!(output.status.success(), "{self:?}: {}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    fn here(self, file: &Path, folder: &Path) -> Measured {
        match self {
            Self::Plain => measure(|| plain::keep(file), |kept| Recorded { events: kept.len() as u64, disk: 0 }),
            Self::Record => measure(|| recording::record(file, folder), |recorded| recorded),
            Self::RecordOneThread => measure(|| recording::record_in_one_thread(file, folder), |recorded| recorded),
            Self::Export => measure(|| export(folder), |recorded| recorded),
        }
    }
}

fn measure<T>(work: impl FnOnce() -> T, told: impl FnOnce(T) -> Recorded) -> Measured {
    let (begin, before) = (Instant::now(), processor_time("self"));
    let done = black_box(work());
    let (took, processor) = (begin.elapsed(), processor_time("self") - before);
    let peak_kib = peak_kib();
    let Recorded { events, disk } = told(done);
    Measured { took, processor, peak_kib, events, disk }
}

pub(crate) fn export(folder: &Path) -> Recorded {
    let (log, _) = Log::open(folder, Options::default()).unwrap();
    let reader = log.reader();
    let (from, to) = reader.kept().unwrap();
    let query = Query::window(from, to + SimDuration::from_micros(1));
    let file = tempfile::NamedTempFile::new().unwrap();
    let exported = reader.export(&query, Format::Native, file.as_file()).unwrap();
    // Two of the records are the marks at the edges of the window.
    Recorded { events: exported.records - 2, disk: file.as_file().metadata().unwrap().len() }
}

/// What a process has used of processors so far, as Linux counts it: in hundredths of a second, of all its threads.
pub(crate) fn processor_time(process: &str) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).expect("processor time is asked of Linux");
    // The name before it may hold blanks and parentheses. User and system time are the 14th and 15th fields of all.
    let (_, fields) = stat.rsplit_once(") ").expect("the name of a program is in parentheses");
    let ticks: u64 = fields.split(' ').skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap()).sum();
    Duration::from_millis(ticks * 10)
}

/// The high-water mark of this process.
fn peak_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("peak memory is asked of Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("Linux tells the high-water mark");
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
