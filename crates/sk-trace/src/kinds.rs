//! The pod template paths of the kinds in a trace.

use sk_core::registry;
use sk_core::{Gvk, PointerPattern};
use sk_store::trace::TracerConfig;

/// The pod template paths of a kind: those of the tracer configuration, else those of Kubernetes' own kinds.
pub(crate) fn template_paths(config: &TracerConfig, gvk: &Gvk) -> Vec<PointerPattern> {
    match config.tracked().get(gvk).and_then(|tracked| tracked.pod_spec_template_paths.as_ref()) {
        Some(paths) => paths.iter().filter_map(|path| path.parse().ok()).collect(),
        None => registry::template_path(gvk).into_iter().collect(),
    }
}
