//! The definitions of both kinds, made from their types.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{CustomResourceDefinition, ValidationRule};
use kube_core::CustomResourceExt;

use super::{Simulation, SimulationRoot, names};

/// The definitions of both kinds, ready to be applied.
pub fn crds() -> Vec<CustomResourceDefinition> {
    let mut simulation = Simulation::crd();
    for version in &mut simulation.spec.versions {
        if let Some(schema) = version.schema.as_mut().and_then(|schema| schema.open_api_v3_schema.as_mut()) {
            schema.x_kubernetes_validations = Some(vec![name_rule()]);
        }
    }
    vec![simulation, SimulationRoot::crd()]
}

/// A Simulation's name becomes part of the names of a Service and of the Job's pods, which are DNS labels.
fn name_rule() -> ValidationRule {
    let length = names::MAX_SIMULATION_NAME;
    ValidationRule {
        rule: format!(
            "self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$') && self.metadata.name.size() <= {length}"
        ),
        message: Some(format!(
            "a simulation's name has at most {length} lower-case letters, digits and dashes, because it becomes part of the names of its Job and Service"
        )),
        ..ValidationRule::default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn simulation_schema() -> Value {
        let crd = serde_json::to_value(&crds()[0]).unwrap();
        crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone()
    }

    #[test]
    fn the_kinds_have_the_names_that_users_know() {
        let found: Vec<_> = crds()
            .into_iter()
            .map(|crd| (crd.metadata.name.unwrap(), crd.spec.scope, crd.spec.names.short_names.unwrap()))
            .collect();
        let wanted =
            [("simulations.simkube.io", ["sim", "sims"]), ("simulationroots.simkube.io", ["simroot", "simroots"])]
                .map(|(name, short)| (name.to_owned(), "Cluster".to_owned(), short.map(str::to_owned).to_vec()));
        assert_eq!(found, wanted);
    }

    #[test]
    fn the_table_shows_time_speed_runs_and_state() {
        let crd = serde_json::to_value(&crds()[0]).unwrap();
        let columns = crd["spec"]["versions"][0]["additionalPrinterColumns"].as_array().unwrap().clone();
        let names: Vec<_> = columns.iter().map(|column| column["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["start time", "end time", "speed factor", "completed", "total", "progress", "state"]);
        assert_eq!(crd["spec"]["versions"][0]["subresources"]["status"], json!({}));
    }

    #[test]
    fn defaults_stand_in_the_schema() {
        let spec = &simulation_schema()["properties"]["spec"]["properties"];
        assert_eq!(spec["speed"]["default"], json!(1.0));
        assert_eq!(spec["repetitions"]["default"], json!(1));
        assert_eq!(spec["driver"]["properties"]["namespace"]["default"], json!("simkube"));
        assert_eq!(spec["driver"]["properties"]["virtualNsPrefix"]["default"], json!("virtual"));
        let hook = &spec["hooks"]["properties"]["preStartHooks"]["items"]["properties"];
        assert_eq!(hook["ignoreFailure"]["default"], json!(false));
    }

    /// A field that is added to the spec needs a rule of its own, or a reason to stand among those that may change.
    #[test]
    fn every_field_of_the_spec_but_the_pause_has_a_rule_that_it_never_changes() {
        let spec = &simulation_schema()["properties"]["spec"];
        let rules_of = |schema: &Value| {
            let rules = schema["x-kubernetes-validations"].as_array().cloned().unwrap_or_default();
            rules.iter().map(|rule| rule["rule"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        let above = rules_of(spec);
        let free: Vec<_> = spec["properties"]
            .as_object()
            .unwrap()
            .iter()
            .filter(|(name, schema)| {
                let required = spec["required"].as_array().unwrap().contains(&json!(name));
                let own = rules_of(schema).contains(&"self == oldSelf".to_owned());
                let always_there = required || !schema["default"].is_null();
                let guarded = above.iter().any(|rule| rule.contains(&format!("oldSelf.{name}")));
                !(guarded || own && always_there)
            })
            .map(|(name, _)| name.as_str())
            .collect();
        assert_eq!(free, ["pausedTime"]);
        let record = above.iter().find(|rule| rule.contains("oldSelf.record")).unwrap();
        assert!(record.contains("oldSelf.record.path") && !record.contains("ttl"), "{record}");
    }

    #[test]
    fn a_small_simulation_reads_with_the_same_defaults_as_the_server_sets() {
        let simulation: Simulation = serde_json::from_value(json!({
            "apiVersion": "simkube.io/v1", "kind": "Simulation", "metadata": {"name": "a"},
            "spec": {"driver": {"tracePath": "/traces/a.sktrace"}, "hooks": {"preStartHooks": [{"cmd": "true"}]}},
        }))
        .unwrap();
        assert_eq!(simulation.spec.driver.namespace, "simkube");
        assert_eq!((simulation.spec.repetitions, simulation.spec.speed), (1, 1.0));
        assert!(!simulation.spec.hooks.pre_start_hooks[0].ignore_failure);
    }
}
