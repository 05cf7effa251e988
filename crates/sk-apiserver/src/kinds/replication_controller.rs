//! ReplicationControllers: like ReplicaSets, with a plain map of labels as selector.
//!
//! Kubernetes runs both with one controller and converts between them (`pkg/controller/replication/conversion.go`,
//! 1.36); so does this body.

use serde_json::{Map, Value, json};

use super::{Kind, ReplicaSet};
use crate::error::Invalid;

/// A replication controller, as the replica set that it amounts to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReplicationController(pub ReplicaSet);

impl Kind for ReplicationController {
    fn read(fields: &mut Map<String, Value>) -> Result<Self, serde_json::Error> {
        if let Some(spec) = fields.get_mut("spec").and_then(Value::as_object_mut) {
            let written = spec.get("selector").filter(|selector| !is_empty(selector)).cloned();
            // Without a selector the labels of the template are one (`SetDefaults_ReplicationController`).
            let labels = written.or_else(|| spec.get("template")?.pointer("/metadata/labels").cloned());
            spec.insert("selector".into(), json!({"matchLabels": labels.unwrap_or_default()}));
        }
        ReplicaSet::read(fields).map(Self)
    }

    fn write(&self, fields: &mut Map<String, Value>) {
        self.0.write(fields);
        if let Some(selector) = fields.get_mut("spec").and_then(|spec| spec.get_mut("selector")) {
            *selector = selector.get_mut("matchLabels").map(Value::take).unwrap_or_default();
        }
    }

    fn prepare_for_create(&mut self) {
        self.0.prepare_for_create();
    }

    fn set_status(&mut self, other: &Self) {
        self.0.set_status(&other.0);
    }

    fn prepare_for_update(&mut self, stored: &Self) {
        self.0.prepare_for_update(&stored.0);
    }

    fn same_desire(&self, other: &Self) -> bool {
        self.0.same_desire(&other.0)
    }

    fn validate(&self) -> Result<(), Invalid> {
        self.0.validate()
    }

    fn validate_update(&self, stored: &Self) -> Result<(), Invalid> {
        self.0.validate_update(&stored.0)
    }
}

fn is_empty(selector: &Value) -> bool {
    selector.as_object().is_none_or(Map::is_empty)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(spec: &Value) -> Value {
        let Value::Object(mut fields) = json!({"spec": spec}) else { unreachable!("an object was written") };
        let body = ReplicationController::read(&mut fields).unwrap();
        body.validate().unwrap();
        body.write(&mut fields);
        fields["spec"].clone()
    }

    #[test]
    fn its_selector_is_a_plain_map_and_by_default_the_labels_of_the_template() {
        let template = json!({
            "metadata": {"labels": {"app": "a", "tier": "b"}},
            "spec": {"containers": [{"name": "a", "image": "a:1"}]},
        });
        let written = round_trip(&json!({"selector": {"app": "a"}, "template": template}));
        assert_eq!(written["selector"], json!({"app": "a"}));
        let defaulted = round_trip(&json!({"template": template}));
        assert_eq!(defaulted["selector"], json!({"app": "a", "tier": "b"}));
    }
}
