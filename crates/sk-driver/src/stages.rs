//! The KWOK stages for the pods and virtual nodes of a run; `skctl install sim` applies them.
//!
//! They follow the labels and annotations that the driver writes (`sk_api::simulation::names`), and ignore everything
//! else: pods without SimKube's label and nodes of other providers. KWOK's own `stage-fast` for pods must not be
//! installed beside them: it handles every pod, and would start and complete the run's pods immediately.

use serde_json::Value;

/// The stages as they stand in the repository, with their comments.
const TEXTS: [&str; 7] = [
    include_str!("../stages/node-initialize.yaml"),
    include_str!("../stages/node-heartbeat.yaml"),
    include_str!("../stages/pod-create.yaml"),
    include_str!("../stages/pod-ready.yaml"),
    include_str!("../stages/pod-complete.yaml"),
    include_str!("../stages/pod-fail.yaml"),
    include_str!("../stages/pod-delete.yaml"),
];

/// Annotation: `true` on pods (or their template) that end badly when their life is over.
pub const FAIL_ANNOTATION: &str = "simkube.io/kwok-stage-fail";

/// All stages, as objects to apply.
pub fn stages() -> Vec<Value> {
    TEXTS.iter().map(|text| serde_saphyr::from_str(text).expect("the stages of this repository are YAML")).collect()
}

/// All stages as one YAML stream, as `kwok --config` reads them.
pub fn stages_yaml() -> String {
    TEXTS.join("---\n")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn stages_have_names_of_their_own_and_only_touch_what_is_simkubes() {
        let names: BTreeSet<_> = stages().iter().map(|stage| stage["metadata"]["name"].clone().to_string()).collect();
        assert_eq!(names.len(), TEXTS.len());
        for stage in stages() {
            let label = match stage["spec"]["resourceRef"]["kind"].as_str() {
                Some("Node") => "simkube.io/node-group",
                _ => sk_api::simulation::names::SIMULATION_LABEL,
            };
            let first = &stage["spec"]["selector"]["matchExpressions"][0]["jq"];
            assert_eq!(first["key"], format!(".metadata.labels[\"{label}\"]"), "{}", stage["metadata"]["name"]);
            assert_eq!(first["operator"], "Exists");
        }
    }
}
