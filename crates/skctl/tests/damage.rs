//! Bad days: whatever is wrong with a file, a folder or a disk, the program says so, exits with 2 (1 if it could
//! judge), never panics and never leaves a half-made output.

mod support;

use std::process::Output;

use sk_core::rng::Stream;
use support::{folder, names, skctl, write};
use tempfile::TempDir;

/// How many damaged files of each form are tried. Each is given to one of the commands.
const DAMAGES: u64 = 40;

/// The commands that read a trace called `in`, and write one if they do.
const COMMANDS: [&[&str]; 8] = [
    &["trace", "show", "in"],
    &["trace", "show", "in", "--values"],
    &["trace", "convert", "in", "out.sktrace"],
    &["trace", "slice", "in", "-s", "+1m", "-O", "out.sktrace"],
    &["trace", "merge", "in", "example:nginx", "--join", "-O", "out.sktrace"],
    &["trace", "scale", "in", "--replicas", "2", "-O", "out.sktrace"],
    &["validate", "in"],
    &["validate", "in", "--fix", "-O", "out.sktrace"],
];

fn run(dir: &TempDir, args: &[&str]) -> (Output, String) {
    let output = skctl(dir).args(args).output().expect("skctl starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!said.contains("panicked"), "{args:?}: {said}");
    (output, said)
}

/// Runs a command on a file that may or may not be a trace. Either it goes well, or nothing but the message is left.
fn survive(dir: &TempDir, what: &str, args: &[&str]) -> Option<i32> {
    let (output, said) = run(dir, args);
    let code = output.status.code();
    let is_written = dir.path().join("out.sktrace").exists();
    match code {
        Some(0) => assert_eq!(is_written, args.contains(&"out.sktrace"), "{what}, {args:?}"),
        Some(1) => assert_eq!(args[0], "validate", "{what}, {args:?}: {said}"),
        Some(2) => assert!(said.starts_with("error: ") && !is_written, "{what}, {args:?}: {said}"),
        code => panic!("{what}, {args:?}: exit code {code:?}, {said}"),
    }
    if is_written {
        let (again, said) = run(dir, &["trace", "show", "out.sktrace"]);
        assert_eq!(again.status.code(), Some(0), "{what}, {args:?} left a bad trace: {said}");
        std::fs::remove_file(dir.path().join("out.sktrace")).expect("it is there");
    }
    let left: Vec<String> = names(dir.path()).into_iter().filter(|name| name != "in").collect();
    assert!(left.is_empty(), "{what}, {args:?} left {left:?}");
    code
}

/// One trace in each form that is written.
fn forms() -> Vec<(&'static str, Vec<u8>)> {
    let dir = folder();
    let generate = ["-q", "trace", "generate", "--preset", "small", "-O", "small.sktrace"];
    skctl(&dir).args(generate).assert().success();
    let in_form = |form: &'static str| {
        let convert = ["-q", "trace", "convert", "small.sktrace", "-", "--to", form];
        (form, skctl(&dir).args(convert).assert().success().get_output().stdout.clone())
    };
    ["native", "v2", "jsonl"].map(in_form).into()
}

/// Cuts the file, or changes some of its bytes.
fn damage(bytes: &[u8], random: &mut Stream) -> (String, Vec<u8>) {
    let length = bytes.len() as u64;
    // Damage near the start and near the end meets headers, tables and lengths.
    let place = match random.below(3) {
        0 => random.below(length.min(200)),
        1 => length - 1 - random.below(length.min(200)),
        _ => random.below(length),
    } as usize;
    let mut damaged = bytes.to_vec();
    let what = match random.below(4) {
        0 => {
            damaged.truncate(place);
            "cut"
        }
        1 => {
            damaged[place] ^= 1 << random.below(8);
            "a bit flipped"
        }
        2 => {
            damaged.iter_mut().skip(place).take(8).for_each(|byte| *byte = 0xff);
            "a huge length"
        }
        _ => {
            // 0xdd and 0xdf are MessagePack's longest list and map.
            damaged[place] = [0xdd, 0xdf, 0xc0, b'"'][random.below(4) as usize];
            "another type"
        }
    };
    (format!("{what} at byte {place}"), damaged)
}

#[test]
fn damaged_traces_are_refused_without_a_panic_and_without_a_rest() {
    for (form, whole) in forms() {
        let mut random = Stream::new(1, form);
        let mut refused = 0;
        for round in 0..DAMAGES {
            let dir = folder();
            let (what, damaged) = damage(&whole, &mut random);
            write(&dir, "in", damaged);
            let args = COMMANDS[(round as usize) % COMMANDS.len()];
            refused += u64::from(survive(&dir, &format!("{form}, {what}"), args) == Some(2));
        }
        assert!(refused > DAMAGES / 4, "of {DAMAGES} damaged {form} files only {refused} were refused");
    }
}

#[test]
fn a_native_trace_with_any_bit_flipped_is_refused() {
    let dir = folder();
    let (_, whole) = forms().into_iter().find(|(form, _)| *form == "native").expect("native is a form");
    let mut random = Stream::new(2, "bits");
    for _ in 0..DAMAGES {
        let mut damaged = whole.clone();
        let place = random.below(whole.len() as u64) as usize;
        damaged[place] ^= 1 << random.below(8);
        write(&dir, "in", damaged);
        let code = survive(&dir, &format!("a bit flipped at byte {place}"), &["trace", "convert", "in", "out.sktrace"]);
        assert_eq!(code, Some(2), "byte {place}");
    }
}

#[test]
fn what_is_no_trace_is_refused_by_every_command() {
    let inputs: [(&str, &[u8]); 5] = [
        ("an empty file", b""),
        ("a picture", b"\x89PNG\r\n\x1a\nrest"),
        ("a list of a billion", &[0xdf, 0xff, 0xff, 0xff, 0xff]),
        ("an older version", &[0x94, 1, 0x80, 0x90, 0x80]),
        ("deep nesting", &[0x81; 4096]),
    ];
    for (what, bytes) in inputs {
        for args in COMMANDS {
            let dir = folder();
            write(&dir, "in", bytes);
            assert_eq!(survive(&dir, what, args), Some(2), "{what}, {args:?}");
        }
    }
}

#[test]
fn a_missing_file_and_an_empty_folder_are_refused_by_every_command() {
    for args in COMMANDS {
        let dir = folder();
        assert_eq!(survive(&dir, "a missing file", args), Some(2), "{args:?}");
        std::fs::create_dir(dir.path().join("in")).expect("a temporary folder can be written to");
        assert_eq!(survive(&dir, "an empty folder", args), Some(2), "{args:?}");
    }
}

#[cfg(unix)]
#[test]
fn a_file_that_may_not_be_read_is_named() {
    use std::os::unix::fs::PermissionsExt as _;
    use std::os::unix::process::CommandExt as _;
    let dir = folder();
    write(&dir, "in", "secret");
    let path = dir.path().join("in");
    let allow = |path: &std::path::Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("it is ours");
    };
    allow(&path, 0o000);
    let mut command = if std::fs::read(&path).is_ok() {
        // The superuser may read everything, so nobody is asked instead, who may not go to where the program lies.
        let program = dir.path().join("skctl");
        std::fs::copy(env!("CARGO_BIN_EXE_skctl"), &program).expect("there is room for a copy");
        allow(dir.path(), 0o755);
        let mut command = std::process::Command::new(program);
        command.uid(NOBODY).gid(NOBODY);
        command
    } else {
        std::process::Command::new(env!("CARGO_BIN_EXE_skctl"))
    };
    let output = command.args(["trace", "show", "in"]).current_dir(dir.path()).output().expect("skctl starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("in") && said.contains("may read"), "{said}");
}

/// The user and the group that own nothing, on every Linux and most other systems.
#[cfg(unix)]
const NOBODY: u32 = 65_534;

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_said_and_exits_with_2() {
    let dir = folder();
    for form in ["native", "v2", "jsonl"] {
        let args = ["trace", "convert", "example:nginx", "/dev/full", "--to", form];
        let (output, said) = run(&dir, &args);
        assert_eq!(output.status.code(), Some(2), "{form}: {said}");
        assert!(said.contains("No space left") && said.contains("disk space"), "{form}: {said}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_behind_standard_output_is_said_and_exits_with_2() {
    let dir = folder();
    let to_full = || std::fs::File::options().write(true).open("/dev/full").expect("Linux has /dev/full");
    let commands: [&[&str]; 5] = [
        &["trace", "convert", "example:nginx", "-"],
        &["trace", "show", "example:nginx"],
        &["trace", "show", "example:nginx", "--values"],
        &["validate", "example:nginx"],
        &["scenario", "schema"],
    ];
    for args in commands {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_skctl"));
        let output = command.args(args).current_dir(dir.path()).stdout(to_full()).output().expect("skctl starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.contains("No space left") && !said.contains("panicked"), "{args:?}: {said}");
    }
}

#[test]
fn an_output_in_a_missing_folder_or_onto_a_folder_is_refused() {
    let dir = folder();
    std::fs::create_dir(dir.path().join("in.sktrace")).expect("a temporary folder can be written to");
    for out in ["missing/out.sktrace", "in.sktrace"] {
        let (output, said) = run(&dir, &["trace", "convert", "example:nginx", out]);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(out), "{said}");
    }
    assert_eq!(names(dir.path()), ["in.sktrace"]);
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_with_130_and_leaves_nothing() {
    let dir = folder();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_skctl"));
    let args = ["trace", "generate", "--preset", "million", "-O", "out.sktrace"];
    let mut child = command.args(args).current_dir(dir.path()).spawn().expect("skctl starts");
    // The file beside the goal is there as soon as the writing begins.
    while names(dir.path()).is_empty() {
        assert!(child.try_wait().expect("it is our child").is_none(), "it ended before it began");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    std::thread::sleep(std::time::Duration::from_millis(300));
    let kill = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(kill.expect("there is a `kill`").success());
    assert_eq!(child.wait().expect("it is our child").code(), Some(130));
    assert!(names(dir.path()).is_empty(), "{:?}", names(dir.path()));
}

#[test]
fn a_wrong_assertion_is_named_with_its_place_once() {
    let dir = folder();
    let nodes = "{groups: {g: {min: 1, max: 3, cpu: 4, memory: 8Gi}}}";
    write(
        &dir,
        "s.yaml",
        format!("apiVersion: simkube.io/v1\nkind: Scenario\ncluster: {nodes}\nassert:\n  - podz < 3\n"),
    );
    let (output, said) = run(&dir, &["run", "example:nginx", "-f", "s.yaml"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(said.starts_with("error: s.yaml:5:5: assertion `podz < 3`: "), "{said}");
}

#[test]
fn a_node_or_a_trace_in_place_of_a_scenario_is_told_what_it_is() {
    let dir = folder();
    write(&dir, "node.yaml", "apiVersion: v1\nkind: Node\nmetadata: {name: a}\nstatus: {capacity: {cpu: 4}}\n");
    let (output, said) = run(&dir, &["run", "example:nginx", "-f", "node.yaml"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(said.contains("node.yaml:2:7: kind: this is a Node") && said.contains("`cluster.groups`"), "{said}");
    assert!(!said.contains("SimKube 2"), "{said}");
    skctl(&dir).args(["-q", "trace", "convert", "example:nginx", "week.sktrace"]).assert().success();
    let (_, said) = run(&dir, &["run", "my-run", "-f", "week.sktrace"]);
    assert!(said.contains("skctl run week.sktrace --name my-run --cluster"), "an old habit is known: {said}");
}

#[test]
fn nobody_reads_the_words_of_a_yaml_library() {
    let dir = folder();
    write(&dir, "twice.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\nmetadata: {name: b}\n");
    write(
        &dir,
        "deep.yaml",
        format!("apiVersion: v1\nkind: ConfigMap\ndata: {}{}\n", "[".repeat(200), "]".repeat(200)),
    );
    write(
        &dir,
        "deeper.yaml",
        format!("apiVersion: v1\nkind: ConfigMap\ndata: {}{}\n", "[".repeat(300), "]".repeat(300)),
    );
    let laughs: String =
        (0..9).map(|n| format!("a{}: &a{} [{}]\n", n + 1, n + 1, format!("*a{n}, ").repeat(9))).collect();
    write(&dir, "laughs.yaml", format!("a0: &a0 [x]\n{laughs}"));
    for (file, words) in [
        ("twice.yaml", "document 1, line 4: `metadata` occurs twice; keep one of them"),
        ("deep.yaml", "line 3: it is nested deeper than is read"),
        ("deeper.yaml", "it is nested deeper than is read"),
        ("laughs.yaml", "aliases (`*name`) repeat more than is read"),
    ] {
        for command in [&["validate", file][..], &["trace", "show", file]] {
            let (output, said) = run(&dir, command);
            assert_eq!(output.status.code(), Some(2));
            assert!(said.contains(words), "{said}");
            assert!(!said.contains("budget") && !said.contains("Policy") && !said.contains(" { "), "{said}");
        }
    }
}
