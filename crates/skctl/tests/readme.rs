//! The README shows what the program really prints.

use std::path::Path;

use assert_cmd::Command;

fn skctl(dir: &Path, args: &[&str]) -> String {
    let mut command = Command::cargo_bin("skctl").expect("the binary of this crate is built");
    let output = command.current_dir(dir).args(args).output().expect("skctl runs");
    String::from_utf8(output.stdout).expect("it prints text")
}

fn readme() -> String {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    std::fs::read_to_string(readme).expect("there is a README")
}

#[test]
fn the_readme_shows_the_comparisons_real_output() {
    let dir = tempfile::TempDir::new().expect("there is room for a temporary folder");
    skctl(dir.path(), &["run", "example:shop", "-O", "runs/shop", "-q"]);
    let printed = skctl(dir.path(), &["compare", "runs/shop/spread", "runs/shop/packed"]);
    assert!(printed.contains("packed vs spread"), "{printed}");
    assert!(readme().contains(&printed), "the README does not show this:\n{printed}");
}

#[test]
fn the_bundled_shop_is_what_its_specification_generates() {
    let dir = tempfile::TempDir::new().expect("there is room for a temporary folder");
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let spec = examples.join("workloads/shop.yaml");
    skctl(dir.path(), &["trace", "generate", "-q", "-f", &spec.display().to_string(), "-O", "shop.sktrace"]);
    let generated = std::fs::read(dir.path().join("shop.sktrace")).expect("it was generated");
    assert!(generated == std::fs::read(examples.join("shop.sktrace")).expect("it is bundled"), "generate it anew");
}

#[test]
fn the_readme_shows_the_demos_real_output() {
    let dir = tempfile::TempDir::new().expect("there is room for a temporary folder");
    let printed = skctl(dir.path(), &["run", "example:nginx"]);
    let readme = readme();
    // The first line says how long it took by the wall clock, which differs.
    let (first, rest) = printed.split_once('\n').expect("the summary has several lines");
    assert!(readme.contains(rest), "the README does not show this:\n{rest}");
    let id = first.rsplit(' ').next().expect("the first line ends with the run's id");
    assert!(readme.contains(id), "the README does not show the id {id}");
}
