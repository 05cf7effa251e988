//! What is measured: one step at a time, in a process of its own, so that its memory is its own.

use std::fs;
use std::hint::black_box;
use std::io::sink;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use sk_core::{ObjectRef, SimTime};
use sk_store::trace::{Change, Format, Selection, What, open};
use sk_trace::generate::{GenerateSpec, generate};
use sk_trace::show::show;
use sk_trace::validate::validate;

use crate::plain::Plain;

/// `--once STEP FILE` is how this program asks itself for one step.
pub(crate) const ONCE: &str = "--once";

/// Something that is done with a trace file.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) enum Step {
    /// All of a v2 file in memory, the plain way.
    Plain,
    /// Time, key, kind and labels of everything that happened.
    Heads,
    /// Every object decoded, one after the other.
    Objects,
    /// The first record of the second half of the time.
    Reach,
    /// What `trace show` does.
    Show,
    /// What `validate` does.
    Validate,
    /// All of a v2 file from memory into a new one, the plain way. Reading it is not counted.
    Write,
    /// What `trace generate` does, in the native format. The file is its specification.
    Generate,
}

/// What a step cost.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Measured {
    /// From before the file is opened until the answer is there.
    pub(crate) took: Duration,
    /// The most memory that the process ever had.
    pub(crate) peak_kib: u64,
    /// What was found out: the same for [`Step::Plain`], [`Step::Heads`] and [`Step::Objects`].
    pub(crate) answer: u64,
}

impl Measured {
    /// Keeps the better of two runs, of each figure.
    pub(crate) fn improve(&mut self, other: &Self) {
        assert_eq!(self.answer, other.answer, "a step that is repeated finds out the same");
        self.took = self.took.min(other.took);
        self.peak_kib = self.peak_kib.min(other.peak_kib);
    }
}

/// Does one step and prints what it cost, for [`Step::apart`].
pub(crate) fn once(step: &str, file: &Path) {
    let step: Step = serde_json::from_str(step).unwrap();
    println!("{}", serde_json::to_string(&step.here(file)).unwrap());
}

impl Step {
    /// Does it in a process of its own.
    pub(crate) fn apart(self, file: &Path) -> Measured {
        let program = std::env::current_exe().unwrap();
        let step = serde_json::to_string(&self).unwrap();
        let output = Command::new(program).args([ONCE, &step]).arg(file).output().unwrap();
        assert!(output.status.success(), "{self:?}: {}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    fn here(self, file: &Path) -> Measured {
        let itself = |answer: &u64| *answer;
        match self {
            // The plain side is not charged for adding up and for letting go of what it has read.
            Self::Plain => measure(|| Plain::read(file), Plain::weight),
            Self::Heads => measure(|| heads(file), itself),
            Self::Objects => measure(|| objects(file), itself),
            Self::Reach => measure(|| reach(file), itself),
            Self::Show => measure(|| show(&open(file).unwrap(), None).unwrap().events, itself),
            Self::Validate => measure(|| validate(&open(file).unwrap()).unwrap().report.events, itself),
            Self::Write => {
                let plain = Plain::read(file);
                measure(|| plain.write(), itself)
            }
            Self::Generate => {
                let spec = GenerateSpec::from_text(&fs::read_to_string(file).unwrap()).unwrap();
                measure(|| generate(&spec, Format::Native, sink()).unwrap().summary.events, itself)
            }
        }
    }
}

fn measure<T>(work: impl FnOnce() -> T, answer: impl FnOnce(&T) -> u64) -> Measured {
    let begin = Instant::now();
    let done = black_box(work());
    let took = begin.elapsed();
    let peak_kib = peak_kib();
    Measured { took, peak_kib, answer: answer(&done) }
}

fn heads(file: &Path) -> u64 {
    let trace = open(file).unwrap();
    let weights = trace.heads().unwrap().map(|head| {
        let head = head.unwrap();
        match &head.what {
            What::Apply(object, labels) | What::Delete(object, labels) => {
                let labels = labels.iter().map(|(key, value)| (key.as_str(), value.as_str()));
                weight(head.at.as_secs(), names(object), labels)
            }
            What::Mark => 0,
        }
    });
    weights.sum()
}

fn objects(file: &Path) -> u64 {
    let trace = open(file).unwrap();
    let weights = trace.records().unwrap().map(|record| {
        let record = black_box(record.unwrap());
        let secs = record.at.as_secs();
        match &record.change {
            Change::Apply(object) => weight(secs, names(object.reference()), object.labels()),
            Change::Delete(deletion) => weight(secs, names(&deletion.object), []),
            Change::Mark(_) => 0,
        }
    });
    weights.sum()
}

fn reach(file: &Path) -> u64 {
    let trace = open(file).unwrap();
    let (start, end) = trace.span().unwrap();
    let middle = SimTime::from_micros(i64::midpoint(start.as_micros(), end.as_micros()));
    trace.select(&Selection::all().from(middle)).unwrap().next().unwrap().unwrap().seq
}

fn names(object: &ObjectRef) -> [&str; 3] {
    [&object.gvk.kind, object.key.namespace_or_empty(), &object.key.name]
}

/// A sum over all that a pass looks at, so that nothing is left out and both sides can be seen to have read the same.
pub(crate) fn weight<'a>(secs: i64, names: [&str; 3], labels: impl IntoIterator<Item = (&'a str, &'a str)>) -> u64 {
    let names: usize = names.iter().map(|name| name.len()).sum();
    let labels: usize = labels.into_iter().map(|(key, value)| key.len() + value.len()).sum();
    secs.unsigned_abs() + (names + labels) as u64
}

/// The high-water mark of this process.
fn peak_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("peak memory is asked of Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("Linux tells the high-water mark");
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
