//! What a log survives: being killed at any moment, and a disk without room. Both are done for real, to a child process
//! that is this program again ([`as_child`]), so that nothing of the library runs after the blow.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

#[path = "support/facts.rs"]
mod facts;

use std::fs;
use std::io::{BufRead, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use facts::{apply, at, entries, open};
use sk_core::rng::Stream;
use sk_store::log::{Fact, Item, Log, LogError, Options, Query, State};
use sk_store::trace::Format;

/// What the child is to do; the folder stands in the other variable.
const TASK: &str = "SK_STORE_LOG_TASK";
const FOLDER: &str = "SK_STORE_LOG_FOLDER";

/// Not a test of its own: what the other tests run in a process of its own. Without a task there is nothing to do.
#[test]
fn as_child() {
    let (Ok(task), Ok(folder)) = (std::env::var(TASK), std::env::var(FOLDER)) else { return };
    match task.as_str() {
        "append" => append_until_killed(Path::new(&folder)),
        "fill" => fill_and_resume(Path::new(&folder), 5, || {}),
        "fill in large steps" => fill_and_resume(Path::new(&folder), 1_500, || {}),
        "fill a small disk" => {
            let ballast = Path::new(&folder).join("ballast");
            fs::write(&ballast, vec![1; 400 << 10]).unwrap();
            fill_and_resume(&Path::new(&folder).join("log"), 5, || fs::remove_file(&ballast).unwrap());
        }
        "export" => export_much(Path::new(&folder)),
        other => panic!("{other} is no task"),
    }
}

/// This program again, told to be a child. `shell` is what is done before it becomes itself.
fn child(task: &str, folder: &Path, shell: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{shell} exec \"$0\" as_child --exact --nocapture")]);
    command.arg(std::env::current_exe().unwrap()).env(TASK, task).env(FOLDER, folder);
    command
}

/// The fact that has this number, in the test of crashes. Now and then something else than an object.
fn numbered(seq: u64) -> Fact {
    match seq % 10 {
        9 => facts::watched("v1.ConfigMap", &seq.to_string()),
        _ => apply(&format!("v1.ConfigMap default/c{}", seq % 20), seq),
    }
}

/// Small segments, so that new ones are often begun.
fn options() -> Options {
    Options { segment_bytes: 20_000, ..Options::default() }
}

fn append_until_killed(folder: &Path) {
    let (mut log, recovered) = Log::open(folder, options()).unwrap();
    let mut seq = recovered.newest.map_or(0, |(seq, _)| seq);
    loop {
        for _ in 0..=seq % 7 {
            seq += 1;
            assert_eq!(log.append(at(i64::try_from(seq).unwrap()), numbered(seq)).unwrap(), seq);
        }
        log.sync().unwrap();
        println!("synced {seq}");
    }
}

#[test]
fn killed_at_any_moment_the_log_opens_with_everything_that_was_synced() {
    let folder = tempfile::tempdir().unwrap();
    let mut delays = Stream::new(5, "moments of killing");
    for round in 0..20 {
        let mut child = child("append", folder.path(), "").stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let mut synced = lines.by_ref().find_map(number).expect("the child appends");
        std::thread::sleep(Duration::from_micros(delays.below(60_000)));
        child.kill().unwrap();
        child.wait().unwrap();
        synced = lines.filter_map(number).last().unwrap_or(synced);

        let (log, recovered) = Log::open(folder.path(), options()).unwrap();
        assert_eq!(recovered.put_aside, [], "round {round}");
        let mut items = log.reader().items();
        let read: Vec<_> = items.by_ref().collect();
        assert_eq!(items.damages(), [], "round {round}");
        assert!(read.len() as u64 >= synced, "round {round}: {synced} were synced, {} are there", read.len());
        for (expected, item) in (1..).zip(&read) {
            let Item::Entry(entry) = item else { panic!("round {round}: {item:?}") };
            assert_eq!((entry.seq, &entry.fact), (expected, &numbered(expected)), "round {round}");
        }
    }
}

/// The number in `synced 17`.
fn number(line: impl AsRef<str>) -> Option<u64> {
    line.as_ref().strip_prefix("synced ")?.parse().ok()
}

/// An object that does not compress, of about 2 KB.
fn ballast(seq: u64) -> Fact {
    let mut numbers = Stream::new(seq, "ballast");
    let noise: String = (0..250).map(|_| format!("{:08x}", numbers.below(1 << 32))).collect();
    let mut fact = facts::applied(&format!("v1.ConfigMap default/c{}", seq % 3), seq);
    let mut body = facts::body(&fact.object, seq);
    body["data"] = serde_json::json!({ "noise": noise });
    fact.body = body.to_string().into();
    Fact::Applied(fact)
}

/// Appends until there is no room, syncing at every so many, goes on being told things, resumes when `make_room` has made some, and looks at what
/// there is in the end.
fn fill_and_resume(folder: &Path, step: i64, make_room: impl FnOnce()) {
    let mut log = open(folder);
    let (mut seq, mut synced) = (0, 0);
    let error = loop {
        seq += 1;
        assert!(seq < 50_000, "the room must end some time");
        let done =
            log.append(at(seq), ballast(seq as u64)).and_then(|_| if seq % step == 0 { log.sync() } else { Ok(()) });
        match done {
            Ok(()) if seq % step == 0 => synced = seq,
            Ok(()) => {}
            Err(error) => break error,
        }
    };
    assert!(error.is_full() && error.stops_recording() && log.is_stopped(), "{error}");
    assert!(synced > 0);
    for _ in 0..10 {
        seq += 1;
        let refused = log.append(at(seq), ballast(seq as u64)).unwrap_err();
        assert!(matches!(refused, LogError::Stopped { since } if since == at(synced)), "{refused}");
    }
    assert!(log.sync().is_err());
    let kept = entries(&log.reader());
    assert_eq!(kept.len() as i64, synced, "what was synced can be read while nothing is recorded");
    let whole = |log: &Log| log.reader().export(&Query::window(at(1), at(seq + 99)), Format::Native, std::io::sink());
    assert_eq!(whole(&log).unwrap().gaps, 1, "a trace that is made meanwhile says that its end was not seen");

    make_room();
    log.resume(at(seq + 10)).unwrap();
    log.append(at(seq + 11), apply("v1.ConfigMap default/after", 1)).unwrap();
    log.sync().unwrap();
    let truth = log.state().clone();
    check_resumed(&log, &truth, (synced, seq + 10));
    drop(log);
    let (log, recovered) = Log::open(folder, Options::default()).unwrap();
    assert_eq!((recovered.cut_bytes, recovered.put_aside.len()), (0, 0), "nothing was left torn");
    check_resumed(&log, &truth, (synced, seq + 10));
    println!("synced {synced}");
}

/// Whoever reads the log ends with the truth, finds no damage, and one gap.
fn check_resumed(log: &Log, truth: &State, missed: (i64, i64)) {
    let mut items = log.reader().items();
    let mut followed = State::default();
    for item in items.by_ref() {
        match item {
            Item::State(fact) => followed.apply(at(0), fact),
            Item::Healed(at, fact) => followed.apply(at, fact),
            Item::Entry(entry) => followed.apply(entry.at, entry.fact),
            Item::Vanished(..) => panic!("there are no pods"),
        }
    }
    assert_eq!((&followed, items.damages()), (truth, [].as_slice()));
    assert_eq!(log.state(), truth);
    let [gap] = log.state().gaps() else { panic!("{:?}", log.state().gaps()) };
    assert_eq!((gap.from, gap.to), (at(missed.0), at(missed.1)));
    let exported = log.reader().export(&Query::window(at(1), at(missed.1 + 9)), Format::Native, std::io::sink());
    assert_eq!(exported.unwrap().gaps, 1);
}

/// Exports a state that is too large to wait in memory.
fn export_much(folder: &Path) {
    let mut log = open(folder);
    for n in 0..4_000 {
        let mut fact = facts::applied(&format!("v1.ConfigMap default/c{n}"), n);
        let mut body = facts::body(&fact.object, n);
        body["data"] = serde_json::json!({ "ballast": "x".repeat(2_000) });
        fact.body = body.to_string().into();
        log.append(at(0), Fact::Applied(fact)).unwrap();
    }
    log.sync().unwrap();
    for format in [Format::Native, Format::V2] {
        let exported = log.reader().export(&Query::window(at(5), at(9)), format, std::io::sink()).unwrap();
        assert_eq!(exported.records, 4_002);
    }
    println!("synced 0");
}

#[test]
fn an_export_needs_no_room_for_temporary_files_but_in_the_folder_of_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = child("export", folder.path(), "");
    let (status, said) = succeeded(child.env("TMPDIR", folder.path().join("no such folder")));
    assert!(status.success() && said.contains("synced "), "{said}");
}

fn succeeded(child: &mut Command) -> (ExitStatus, String) {
    let output = child.output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status, String::from_utf8_lossy(&said).into_owned())
}

#[test]
fn a_file_that_may_not_grow_stops_the_recording_with_a_gap_and_never_with_a_broken_log() {
    // Blocks of 512 or 1,024 bytes, as shells count; the signal is ignored so that writing fails instead. The large steps
    // are of several blocks of the log, of which some are whole when the room ends.
    for (task, blocks) in [("fill", 200), ("fill in large steps", 9_000)] {
        let folder = tempfile::tempdir().unwrap();
        let (status, said) = succeeded(&mut child(task, folder.path(), &format!("trap '' XFSZ; ulimit -f {blocks};")));
        assert!(status.success() && said.contains("synced "), "{said}");
        let mut items = open(folder.path()).reader().items();
        assert!(items.by_ref().count() > 10);
        assert_eq!(items.damages(), []);
    }
}

#[test]
fn a_full_disk_stops_the_recording_with_a_gap_and_never_with_a_broken_log() {
    // A disk of 1 MiB in a mount namespace of its own, which ends with the child.
    let folder = tempfile::tempdir().unwrap();
    let inside = |namespaces: &[&str], shell: &str| {
        let mut command = Command::new("unshare");
        let mount = format!("mount -t tmpfs -o size=1m none '{}' && {shell}", folder.path().display());
        command.args(namespaces).args(["sh", "-c", &mount]);
        command
    };
    // Where ordinary users get no namespaces, the superuser still has his own.
    let ways: [&[&str]; 2] = [&["--user", "--map-root-user", "--mount"], &["--mount"]];
    let works = |way: &&&[&str]| inside(way, "true").output().is_ok_and(|output| output.status.success());
    let Some(way) = ways.iter().find(works) else {
        // Not `eprintln!`, which the harness keeps to itself when a test passes.
        let words = "NOT TESTED: a full disk, because none can be mounted here; only the limit of a file's length was";
        let _ = writeln!(std::io::stderr(), "{words}");
        return;
    };
    let mut child = inside(way, "exec \"$0\" as_child --exact --nocapture");
    child.arg(std::env::current_exe().unwrap()).env(TASK, "fill a small disk").env(FOLDER, folder.path());
    let (status, said) = succeeded(&mut child);
    assert!(status.success() && said.contains("synced "), "{said}");
}
