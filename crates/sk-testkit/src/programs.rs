//! The workspace's own programs, for tests of one crate that run another's. Cargo builds only the tested package's.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Names a folder with programs that are built already, as `make e2e` does; they are not built again then.
const READY: &str = "SIMKUBE_PROGRAMS";

/// Where a program of the workspace is. Unless they are ready, all are built at once, so that what they share is built the
/// same way; `beside` is any program that cargo has built for the calling test.
pub fn built(program: &str, beside: &Path) -> PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| folder(beside)).join(program)
}

fn folder(beside: &Path) -> PathBuf {
    if let Some(ready) = std::env::var_os(READY) {
        return ready.into();
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build.args(["build", "--quiet", "--workspace", "--bins"]).current_dir(root);
    // What cargo tells this test about itself would look to build scripts like a change, and half of it be built anew.
    let is_told = |name: &str| ["CARGO_MANIFEST_", "CARGO_PKG_", "CARGO_BIN_"].iter().any(|own| name.starts_with(own));
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(is_told)) {
        build.env_remove(name);
    }
    let status = build.status();
    assert!(status.expect("cargo runs, it built this test").success(), "the programs build");
    beside.parent().expect("a program is in a folder").to_owned()
}
