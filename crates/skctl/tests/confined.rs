//! Assertions and jq programs that somebody else wrote: bounded in time, memory and stack, ended by the first signal,
//! refused with a sentence.

mod support;

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use predicates::prelude::*;
use predicates::str::contains;
use support::{folder, skctl, write};

/// Far above the bounds of one evaluation, far below a test that hangs.
const PATIENCE: Duration = Duration::from_secs(120);

/// An assertion that multiplies a list by itself eleven times over: 10^11 steps.
fn endless() -> String {
    let list = "[1,2,3,4,5,6,7,8,9,0]";
    let nested = (0..11).fold("true".to_owned(), |inner, depth| format!("{list}.all(x{depth}, {inner})"));
    format!("{nested} && nodes.max >= 0")
}

/// An assertion that doubles a text thirty times and more.
fn greedy() -> String {
    let doubled = (0..34)
        .fold("'aaaaaaaa'".to_owned(), |inner, depth| format!("[{inner}].map(x{depth}, x{depth} + x{depth})[0]"));
    format!("{doubled} != '' && nodes.max >= 0")
}

#[test]
fn an_assertion_without_end_is_refused_before_the_run() {
    let dir = folder();
    let began = Instant::now();
    let out = skctl(&dir).args(["run", "example:nginx", "--assert", &endless()]).timeout(PATIENCE).assert().code(2);
    out.stderr(contains("evaluating it takes more than 10 s")).stdout("");
    assert!(began.elapsed() < PATIENCE);
    assert!(!dir.path().join("runs").exists(), "nothing ran");
}

#[test]
fn an_assertion_that_takes_all_memory_is_refused_before_the_run() {
    let dir = folder();
    let out = skctl(&dir).args(["run", "example:nginx", "--assert", &greedy()]).timeout(PATIENCE).assert().code(2);
    out.stderr(contains("MiB of memory").or(contains("takes more than"))).stdout("");
}

#[test]
fn jq_programs_without_bounds_are_refused_with_the_object_and_leave_nothing() {
    let dir = folder();
    let programs = [
        ("def f: f; f", "more than 10 s"),
        ("def f: 1 + f; f", "MiB of stack"),
        ("\"x\" * 2000000000 | {}", "MiB of memory"),
    ];
    for (program, why) in programs {
        write(&dir, "p.jq", program);
        let args = ["trace", "transform", "example:nginx", "-f", "p.jq", "-O", "out.sktrace"];
        let out = skctl(&dir).args(args).timeout(PATIENCE).assert().code(2);
        out.stderr(contains(why).and(contains("Deployment monitoring/node-watch")));
        assert!(!dir.path().join("out.sktrace").exists(), "{program}");
    }
}

#[test]
fn a_program_that_is_within_its_bounds_gives_what_it_always_gave() {
    let dir = folder();
    write(&dir, "p.jq", "if $kind == \"Deployment\" then .metadata.labels.team = \"a\" else . end");
    let args = ["trace", "transform", "example:nginx", "-f", "p.jq", "-O", "out.jsonl"];
    skctl(&dir).args(args).assert().success().stderr(contains("objects changed"));
    let text = std::fs::read_to_string(dir.path().join("out.jsonl")).expect("it was written");
    assert!(text.contains("\"team\":\"a\""), "{text}");
}

/// The whole process group is not asked: only the parent gets the signal, as from `kill` or a CI system.
#[cfg(unix)]
#[test]
fn the_first_signal_ends_an_endless_program_and_its_child() {
    let dir = folder();
    write(&dir, "p.jq", "def f: f; f");
    let mut command = Command::new(assert_cmd::cargo::cargo_bin("skctl"));
    let args = ["trace", "transform", "example:nginx", "-f", "p.jq", "-O", "out.sktrace"];
    let mut child = command.current_dir(dir.path()).args(args).stderr(Stdio::piped()).spawn().expect("skctl starts");
    std::thread::sleep(Duration::from_secs(2));
    let began = Instant::now();
    let killed = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().expect("kill is there");
    assert!(killed.success());
    let status = child.wait().expect("it ends");
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    assert_eq!(status.code(), Some(130));
    assert!(!dir.path().join("out.sktrace").exists());
}
