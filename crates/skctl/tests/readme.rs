//! The README shows what the program really prints.

use std::path::Path;

use assert_cmd::Command;

#[test]
fn the_readme_shows_the_demos_real_output() {
    let dir = tempfile::TempDir::new().expect("there is room for a temporary folder");
    let mut command = Command::cargo_bin("skctl").expect("the binary of this crate is built");
    let output = command.current_dir(dir.path()).args(["run", "example:nginx"]).output().expect("skctl runs");
    let printed = String::from_utf8(output.stdout).expect("the summary is text");
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let readme = std::fs::read_to_string(readme).expect("there is a README");
    // The first line says how long it took by the wall clock, which differs.
    let (first, rest) = printed.split_once('\n').expect("the summary has several lines");
    assert!(readme.contains(rest), "the README does not show this:\n{rest}");
    let id = first.rsplit(' ').next().expect("the first line ends with the run's id");
    assert!(readme.contains(id), "the README does not show the id {id}");
}
