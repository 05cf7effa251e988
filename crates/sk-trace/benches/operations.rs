//! How fast traces are generated and looked through, and in how much memory.
//!
//! `cargo bench -p sk-trace [-- PRESET [FACTOR]]`, usually `bench-100k`; a factor makes it so many times longer. Prints
//! a figure a line; judges nothing, because figures depend on the machine. Each operation runs in a process of its own
//! (`--once OPERATION SPEC FILE`), so that its memory is its own.

#![allow(clippy::unwrap_used, reason = "a benchmark that cannot go on should stop")]

use std::fs::{self, File};
use std::io::BufWriter;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use sk_store::trace::{Format, convert, open};
use sk_trace::generate::{GenerateSpec, generate};
use sk_trace::show::{show, values};
use sk_trace::slice::{Slice, slice};
use sk_trace::transform::{Program, transform};
use sk_trace::validate::validate;

const OPERATIONS: [&str; 8] =
    ["generate", "generate-v2", "show", "validate", "validate-v2", "values", "slice", "transform"];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    if let [flag, operation, spec, file] = arguments.as_slice()
        && flag == "--once"
    {
        let begin = Instant::now();
        let what = once(operation, &GenerateSpec::from_text(spec).unwrap(), Path::new(file));
        println!("{operation} {:.2?}, peak memory {} MiB, {what}", begin.elapsed(), own_peak_mib());
        return;
    }
    let preset = arguments.first().map_or("bench-100k", String::as_str);
    let factor: u64 = arguments.get(1).map_or(1, |factor| factor.parse().unwrap());
    let mut spec = GenerateSpec::preset(preset).unwrap();
    spec.events = spec.events.map(|events| events * factor);
    spec.duration = spec.duration * i64::try_from(factor).unwrap();
    println!("{preset}, {factor} times");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("trace");
    for operation in OPERATIONS {
        let spec = serde_json::to_string(&spec).unwrap();
        let program = std::env::current_exe().unwrap();
        let output = Command::new(program).args(["--once", operation, &spec]).arg(&file).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        print!("{}", String::from_utf8(output.stdout).unwrap());
    }
}

/// Does one thing with the trace in `file`; `generate` puts it there, and a v2 one beside it.
fn once(operation: &str, spec: &GenerateSpec, file: &Path) -> String {
    let v2 = file.with_extension("v2");
    let write = |path: &Path| BufWriter::new(File::create(path).unwrap());
    let program = r#"if $kind == "Deployment" then .spec.replicas *= 2 else . end"#;
    match operation {
        "generate" => {
            let generated = generate(spec, Format::Native, write(file)).unwrap().summary;
            format!("{generated:?}, {} bytes", fs::metadata(file).unwrap().len())
        }
        "generate-v2" => {
            convert(&open(file).unwrap(), Format::V2, write(&v2)).unwrap();
            format!("converted, {} bytes", fs::metadata(&v2).unwrap().len())
        }
        "show" => format!("{} events", show(&open(file).unwrap(), None).unwrap().events),
        "validate" => format!("{} findings", validate(&open(file).unwrap()).unwrap().report.findings.len()),
        "validate-v2" => format!("{} findings", validate(&open(&v2).unwrap()).unwrap().report.findings.len()),
        "values" => format!("{:?}", values(&open(file).unwrap(), |_| Ok(())).unwrap()),
        "slice" => {
            let trace = open(file).unwrap();
            let (start, end) = trace.span().unwrap();
            let middle = start + end.since(start) / 2;
            let part = Slice { start: Some(middle), ..Slice::default() };
            let sliced = slice(&trace, &part, Format::Native, write(&file.with_extension("half"))).unwrap();
            format!("{:?}", sliced.summary)
        }
        "transform" => {
            let program = Program::compile(program).unwrap();
            let out = write(&file.with_extension("jq"));
            let written = transform(&open(file).unwrap(), &program, Format::Native, out).unwrap();
            format!("{} versions changed", written.summary.changed_versions)
        }
        other => panic!("no operation {other}"),
    }
}

/// The high-water mark of this process, in MiB.
fn own_peak_mib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap_or("0");
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) / 1024
}
