//! Namespaces: what the namespace controller needs to empty and remove one.

use serde::{Deserialize, Serialize};
use sk_core::SmolStr;

/// The finalizer every namespace has until its content is gone.
pub(crate) const KUBERNETES_FINALIZER: SmolStr = SmolStr::new_static("kubernetes");

/// A namespace's spec and status.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Namespace {
    /// `spec.finalizers`; not the same list as `metadata.finalizers`.
    pub finalizers: Vec<SmolStr>,
    /// Its phase.
    pub phase: NamespacePhase,
}

/// In use, or going.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum NamespacePhase {
    /// In use.
    #[default]
    Active,
    /// Being emptied; takes no new objects.
    Terminating,
}
