//! What `make control-plane` says on bad days, and that it agrees with the tests about where the binaries are.
//!
//! The script runs here with a PATH of stand-ins, so nothing is built and no Go is needed.

use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use sk_testkit::Versions;

/// Programs that the script may use besides those that a test stands in for.
const PLAIN_TOOLS: [&str; 14] =
    ["bash", "awk", "cat", "cksum", "cut", "dirname", "env", "flock", "grep", "mkdir", "mv", "rm", "tail", "wc"];

/// A day on which only some programs are there.
struct Day {
    folder: tempfile::TempDir,
}

impl Day {
    fn new() -> Self {
        let day = Self { folder: tempfile::tempdir().expect("a temporary folder") };
        fs::create_dir(day.bin()).expect("a folder for programs");
        for tool in PLAIN_TOOLS {
            let found = std::env::split_paths(&std::env::var_os("PATH").expect("a PATH"))
                .map(|folder| folder.join(tool))
                .find(|path| path.is_file());
            if let Some(found) = found {
                std::os::unix::fs::symlink(found, day.bin().join(tool)).expect("a link to a program");
            }
        }
        day
    }

    fn bin(&self) -> PathBuf {
        self.folder.path().join("bin")
    }

    fn cache(&self) -> PathBuf {
        self.folder.path().join("cache")
    }

    /// Puts a script in the place of a program.
    fn with(self, program: &str, script: &str) -> Self {
        let path = self.bin().join(program);
        let _ = fs::remove_file(&path);
        fs::write(&path, format!("#!/usr/bin/env bash\n{script}\n")).expect("a script");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a script that can be run");
        self
    }

    /// A Go that is new enough, and whose build does what is said.
    fn with_go(self, build: &str) -> Self {
        let (cache, modules) = (self.folder.path().join("go-cache"), self.folder.path().join("go-modules"));
        for kinds in ["kwok/charts/crds", "kwok/apis/crds"] {
            fs::create_dir_all(modules.join(kinds)).expect("a folder for a module");
            fs::write(modules.join(kinds).join("kind.yaml"), format!("---\nof: {kinds}\n")).expect("a kind");
        }
        let script = format!(
            "case $1 in\n version) echo go version go1.99.1 linux/amd64 ;;\n env) echo {} ;;\n list) echo {} ;;\n \
             build)\n{build}\n;;\nesac",
            cache.display(),
            modules.display()
        );
        self.with("go", &script)
    }

    fn command(&self) -> Command {
        let mut command = Command::new(self.bin().join("bash"));
        command
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/control-plane/build"))
            .env_clear()
            .env("PATH", self.bin())
            .env("SIMKUBE_CACHE", self.cache());
        command
    }

    fn build(&self, arguments: &[&str]) -> Output {
        self.command().args(arguments).output().expect("bash runs")
    }

    fn message(&self) -> String {
        let output = self.build(&[]);
        assert!(!output.status.success(), "the script is content");
        String::from_utf8(output.stderr).expect("plain words")
    }
}

const ENOUGH_DISK: &str = "echo head; echo disk 999999999 1 999999999 1% /";
const OUTPUT_FILE: &str = r#"while [[ $1 != -o ]]; do shift; done; out="$2""#;

#[test]
fn missing_go_is_said_with_where_to_get_it() {
    let message = Day::new().message();
    assert!(message.contains("Go is not installed") && message.contains("https://go.dev/dl"), "{message}");
    assert!(message.contains("KUBEBUILDER_ASSETS"), "{message}");
}

#[test]
fn an_old_go_is_said_with_the_version_that_is_needed() {
    for old in ["go1.25.9", "go1.9", "go1.25rc1"] {
        let message = Day::new().with("go", &format!("echo go version {old} linux/amd64")).message();
        assert!(message.contains("is too old") && message.contains("needs Go 1.26.0"), "{old}: {message}");
        assert!(message.contains("GOTOOLCHAIN=auto"), "{message}");
    }
    // Karpenter asks for more than Kubernetes does.
    let message = Day::new().with("go", "echo go version go1.26.0 linux/amd64").message();
    assert!(message.contains("Karpenter") && message.contains("GOTOOLCHAIN=auto"), "{message}");
}

#[test]
fn a_full_disk_is_said_with_place_and_need_before_building() {
    let day = Day::new().with_go("echo built anyway; exit 1").with("df", "echo head; echo disk 9 9 2048 99% /");
    let message = day.message();
    assert!(message.contains("not enough disk") && message.contains("2 MB free"), "{message}");
    assert!(message.contains(day.cache().to_str().unwrap()) && message.contains("SIMKUBE_CACHE"), "{message}");
    assert!(!message.contains("built anyway"), "{message}");
}

#[test]
fn a_disk_that_fills_up_while_building_is_said_too() {
    let build = "echo 'write /tmp/x: no space left on device'; exit 1";
    let message = Day::new().with_go(build).with("df", ENOUGH_DISK).message();
    assert!(message.contains("building etcd failed") && message.contains("The disk is full"), "{message}");
}

#[test]
fn a_silent_module_proxy_is_told_apart_from_a_broken_build() {
    let build = "echo 'dial tcp: lookup proxy.example.com: no such host'; exit 1";
    let message = Day::new().with_go(build).with("df", ENOUGH_DISK).message();
    assert!(message.contains("Check the network"), "{message}");
}

#[test]
fn a_build_that_is_cut_short_leaves_nothing_half_made() {
    let half = format!("{OUTPUT_FILE}; echo half > \"$out\"; exit 1");
    let day = Day::new().with_go(&half).with("df", ENOUGH_DISK);
    day.message();
    let where_to = String::from_utf8(day.build(&["where"]).stdout).unwrap();
    let left: Vec<_> = fs::read_dir(where_to.trim()).unwrap().flatten().map(|entry| entry.file_name()).collect();
    let unfinished: Vec<_> = left.iter().filter(|name| *name != ".lock" && *name != "etcd.log").collect();
    assert!(unfinished.is_empty(), "{unfinished:?}");
}

#[test]
fn what_is_built_is_not_built_again_until_its_sources_change() {
    let built = format!("{OUTPUT_FILE}; echo \"#!/bin/sh\" > \"$out\"; /bin/chmod +x \"$out\"");
    let day = Day::new().with_go(&built).with("df", ENOUGH_DISK);
    let first = day.build(&[]);
    let said = String::from_utf8(first.stderr).unwrap();
    assert!(first.status.success() && said.contains("kube-apiserver") && said.contains("done in"), "{said}");

    let day = day.with_go("echo built again; exit 1");
    let second = day.build(&[]);
    assert!(second.status.success(), "{second:?}");
    assert!(String::from_utf8(second.stderr).unwrap().contains("up to date"));

    let folder = String::from_utf8(day.build(&["where"]).stdout).unwrap();
    let kinds = fs::read_to_string(Path::new(folder.trim()).join("karpenter-crds.yaml")).unwrap();
    assert_eq!(kinds, "---\nof: kwok/charts/crds\n---\nof: kwok/apis/crds\n");
    fs::write(Path::new(folder.trim()).join("guard.recipe"), "of other sources\n").unwrap();
    assert!(day.message().contains("building guard failed"));
}

#[test]
fn a_second_build_waits_for_the_first_and_builds_nothing_again() {
    let day = Day::new();
    let counted = day.folder.path().join("builds");
    // A build that takes a while, so that the two meet.
    let build = format!(
        "{OUTPUT_FILE}; echo 1 >> {}; read -t 0.2 <> <(:); echo \"#!/bin/sh\" > \"$out\"; /bin/chmod +x \"$out\"",
        counted.display()
    );
    let day = day.with_go(&build).with("df", ENOUGH_DISK);
    let mut both = [(); 2].map(|()| day.command().stderr(Stdio::piped()).spawn().unwrap());
    let said = both.each_mut().map(|child| {
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert!(child.wait().unwrap().success(), "{said}");
        said
    });
    assert!(said.iter().any(|said| said.contains("another build is running")), "{said:?}");
    assert_eq!(fs::read_to_string(counted).unwrap().lines().count(), 8, "{said:?}");
}

#[test]
fn binaries_in_kubebuilder_assets_are_not_built() {
    let build = format!("{OUTPUT_FILE}; echo \"#!/bin/sh\" > \"$out\"; /bin/chmod +x \"$out\"");
    let day = Day::new().with_go(&build).with("df", ENOUGH_DISK);
    let assets = day.folder.path().join("assets");
    fs::create_dir(&assets).unwrap();
    for ready in ["etcd", "kube-apiserver"] {
        std::os::unix::fs::symlink(day.bin().join("go"), assets.join(ready)).unwrap();
    }
    let output = day.command().env("KUBEBUILDER_ASSETS", &assets).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && said.contains("kube-scheduler"), "{said}");
    assert!(!said.contains("etcd  ") && !said.contains("kube-apiserver"), "{said}");
}

#[test]
fn the_script_and_the_tests_agree_where_the_binaries_are() {
    let day = Day::new();
    let output = day.build(&["where"]);
    let folder = String::from_utf8(output.stdout).unwrap();
    let expected = day.cache().join("control-plane").join(Versions::pinned().to_string());
    assert_eq!(Path::new(folder.trim()), expected);
}
