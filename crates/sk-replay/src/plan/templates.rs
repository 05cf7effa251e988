//! Where a kind keeps its pod templates.

use sk_core::Gvk;
use sk_core::pointer::PointerPattern;
use sk_core::registry::template_path;
use sk_store::trace::TracerConfig;

/// The recorded configuration's word, else Kubernetes' own; nothing for kinds without pods. A path that is not a JSON pointer
/// finds nothing; validation names it.
pub fn paths(gvk: &Gvk, config: &TracerConfig) -> Vec<PointerPattern> {
    match config.tracked().get(gvk).and_then(|tracked| tracked.pod_spec_template_paths.as_ref()) {
        Some(paths) => paths.iter().filter_map(|path| path.parse().ok()).collect(),
        None => template_path(gvk).into_iter().collect(),
    }
}
