//! The architecture as it is written down is the architecture as it is built.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// What a crate uses: ours, and whether it knows the Kubernetes client.
type Uses = (BTreeSet<String>, bool);

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("crates/skctl is two folders down").to_owned()
}

fn read(path: &str) -> String {
    let path = root().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The table of ARCHITECTURE.md.
fn written() -> BTreeMap<String, Uses> {
    let rows = read("ARCHITECTURE.md");
    let rows = rows.lines().filter(|line| line.starts_with("| sk"));
    let row = |line: &str| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [name, _, uses, kube] = cells.as_slice() else { panic!("a row has four cells: {line}") };
        (name.to_string(), (uses.split_whitespace().map(str::to_owned).collect(), *kube == "yes"))
    };
    rows.map(row).collect()
}

fn metadata() -> Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline"])
        .current_dir(root())
        .output()
        .expect("cargo runs, it built this test");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("cargo prints JSON")
}

/// The dependencies as cargo knows them, tests' own left out.
fn built() -> BTreeMap<String, Uses> {
    let metadata = metadata();
    let packages = metadata["packages"].as_array().expect("a workspace has packages");
    let names: BTreeSet<&str> = packages.iter().filter_map(|package| package["name"].as_str()).collect();
    let uses = |package: &Value| {
        let all = package["dependencies"].as_array().into_iter().flatten();
        let normal: Vec<&str> =
            all.filter(|dependency| dependency["kind"].is_null()).filter_map(|d| d["name"].as_str()).collect();
        let ours = normal.iter().filter(|name| names.contains(*name)).map(|name| (*name).to_owned()).collect();
        (ours, normal.contains(&"kube"))
    };
    packages
        .iter()
        .map(|package| (package["name"].as_str().expect("a package has a name").to_owned(), uses(package)))
        .collect()
}

#[test]
fn the_dependency_table_is_what_cargo_sees() {
    assert_eq!(written(), built(), "left: ARCHITECTURE.md, right: cargo metadata");
}

/// The crates of a build of skctl.
fn crates_of(flags: &[&str]) -> BTreeSet<String> {
    let args =
        ["tree", "--package", "skctl", "--edges", "normal", "--prefix", "none", "--format", "{lib}", "--offline"];
    let output = Command::new(env!("CARGO")).args(args).args(flags).current_dir(root()).output().expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}

#[test]
fn the_first_command_builds_nothing_that_talks_to_a_cluster() {
    let (light, whole) = (crates_of(&["--no-default-features"]), crates_of(&[]));
    assert!(light.contains("sk_engine") && light.contains("sk_trace"), "{light:?}");
    for name in ["kube", "k8s_openapi", "tokio", "hyper", "rustls", "ring", "object_store", "reqwest", "sk_tracer"] {
        assert!(!light.contains(name) && whole.contains(name), "{name}");
    }
    let alias = read(".cargo/config.toml");
    assert!(alias.contains("demo = \"run --release --package skctl --no-default-features -- demo\""), "{alias}");
    assert!(read("README.md").contains("\ncargo demo\n"), "the README begins with it");
}

#[test]
fn every_crate_is_in_a_folder_of_its_own_name() {
    for name in built().keys() {
        assert!(root().join("crates").join(name).join("Cargo.toml").is_file(), "{name}");
    }
}

#[test]
fn the_deterministic_crates_ban_the_same_things() {
    let expected = read("crates/sk-core/clippy.toml");
    for name in ["sk-apiserver", "sk-scheduler", "sk-engine"] {
        assert_eq!(read(&format!("crates/{name}/clippy.toml")), expected, "{name}");
    }
    for banned in ["std::time::Instant::now", "std::collections::HashMap", "std::thread::spawn", "std::env::var"] {
        assert!(expected.contains(banned), "{banned}");
    }
}

#[test]
fn no_documented_file_is_missing() {
    for document in ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "docs/testing.md"] {
        let text = read(document);
        let words = text.split(|char: char| char.is_whitespace() || "()`,;:".contains(char));
        let paths = words
            .filter(|word| word.starts_with("docs/") || word.starts_with("crates/") || word.starts_with("examples/"));
        for path in paths.map(|path| path.trim_end_matches(['.', '/'])).filter(|path| !path.contains(['*', '<', '{'])) {
            assert!(root().join(path).exists(), "{document} speaks of {path}");
        }
    }
}

#[test]
fn no_test_against_real_parts_is_left_out_of_make_e2e() {
    let makefile = read("Makefile").replace("\\\n", " ");
    let list = |name: &str| makefile.lines().find_map(|line| line.strip_prefix(name)).expect("the Makefile names them");
    let names = ["E2E_TESTS = ", "E2E_ALONE = "].map(list).into_iter().flat_map(str::split_whitespace);
    let named: BTreeSet<String> = names.map(str::to_owned).collect();
    let metadata = metadata();
    let targets = metadata["packages"].as_array().into_iter().flatten().flat_map(|package| {
        let targets = package["targets"].as_array().into_iter().flatten();
        targets.filter(|target| target["kind"][0] == "test" && !target["required-features"].is_null())
    });
    let required: BTreeSet<String> =
        targets.map(|target| target["name"].as_str().expect("a target has a name").to_owned()).collect();
    assert_eq!(named, required, "left: the Makefile, right: tests with required-features");
}
