//! The versions of Kubernetes, etcd and KWOK that the project is checked against.
//!
//! `tools/control-plane/go.mod` is the only place that sets them; this file reads it at compile time, so that the
//! binaries, the recorded fixtures and the tests cannot disagree unnoticed.

use std::fmt;

const GO_MOD: &str = include_str!("../../../tools/control-plane/go.mod");

/// The versions that `tools/control-plane/go.mod` pins, without the leading `v`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Versions {
    /// kube-apiserver, kube-controller-manager and kube-scheduler.
    pub kubernetes: String,
    /// etcd.
    pub etcd: String,
    /// KWOK.
    pub kwok: String,
}

/// Why a go.mod does not say which versions are pinned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("go.mod requires no {0}: add a line `require {0} v...` to tools/control-plane/go.mod")]
pub struct NotPinned(&'static str);

impl Versions {
    /// The versions pinned in this repository.
    pub fn pinned() -> Self {
        Self::from_go_mod(GO_MOD).expect("the repository's go.mod names all three; a test below holds it to that")
    }

    /// Reads the text of a go.mod.
    pub fn from_go_mod(text: &str) -> Result<Self, NotPinned> {
        let version = |module: &'static str| required_version(text, module).ok_or(NotPinned(module));
        Ok(Self {
            kubernetes: version("k8s.io/kubernetes")?,
            etcd: version("go.etcd.io/etcd/server/v3")?,
            kwok: version("sigs.k8s.io/kwok")?,
        })
    }
}

impl fmt::Display for Versions {
    /// The name of the folder that `tools/control-plane/build` puts the binaries in.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "kubernetes-{}_etcd-{}_kwok-{}", self.kubernetes, self.etcd, self.kwok)
    }
}

/// The version of `module` in a `require` line, alone or inside a block: `[require] module vX.Y.Z [// indirect]`.
fn required_version(go_mod: &str, module: &str) -> Option<String> {
    go_mod.lines().find_map(|line| {
        let mut words = line.split_whitespace().skip_while(|word| *word == "require");
        (words.next() == Some(module)).then(|| words.next()?.strip_prefix('v').map(str::to_owned)).flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_repository_pins_all_three() {
        let pinned = Versions::pinned();
        assert!(pinned.kubernetes.starts_with("1.36."), "{pinned}");
        assert_eq!(
            pinned.to_string(),
            format!("kubernetes-{}_etcd-{}_kwok-{}", pinned.kubernetes, pinned.etcd, pinned.kwok)
        );
    }

    #[test]
    fn replace_and_tool_lines_are_not_taken_for_requirements() {
        let text = "tool go.etcd.io/etcd/server/v3\n\
                    require k8s.io/kubernetes v1.36.4\n\
                    require (\n\tgo.etcd.io/etcd/server/v3 v3.6.8 // indirect\n\tsigs.k8s.io/kwok v0.8.0\n)\n\
                    replace k8s.io/kubernetes => k8s.io/kubernetes v9.9.9\n";
        let versions = Versions::from_go_mod(text).unwrap();
        assert_eq!(versions.to_string(), "kubernetes-1.36.4_etcd-3.6.8_kwok-0.8.0");
    }

    #[test]
    fn a_missing_requirement_is_named() {
        let error = Versions::from_go_mod("require k8s.io/kubernetes v1.36.4\n").unwrap_err();
        assert!(error.to_string().contains("go.etcd.io/etcd/server/v3"), "{error}");
    }
}
