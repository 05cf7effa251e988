//! Kinds that are served before the controllers start: Karpenter's, because it looks for them once and does without what
//! it does not find; and a test's own, because the garbage collector looks for new kinds only every 30 s.

use std::fmt::Display;
use std::fs;
use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ListParams, PostParams};

use crate::access::eventually;
use crate::control_plane::ControlPlane;
use crate::error::StartError;
use crate::options::Component;

/// How long the API server may take to serve new kinds; it is a second when nothing else goes on.
const KINDS_LIMIT: Duration = Duration::from_secs(60);

impl ControlPlane {
    /// Creates the kinds that were asked for, and Karpenter's if it is to run, and waits until they are served.
    pub(crate) async fn bring_kinds(&self) -> Result<(), StartError> {
        let mut kinds: Vec<CustomResourceDefinition> = Vec::new();
        for definition in &self.options.kinds {
            kinds.push(serde_json::from_value(definition.clone()).map_err(wrong)?);
        }
        if self.options.runs(Component::Karpenter) {
            let text = fs::read_to_string(self.programs.find("karpenter-crds.yaml")?).map_err(wrong)?;
            kinds.extend(serde_saphyr::from_multiple::<CustomResourceDefinition>(&text).map_err(wrong)?);
        }
        if kinds.is_empty() {
            return Ok(());
        }
        let api: Api<CustomResourceDefinition> = Api::all(self.client());
        for kind in &kinds {
            api.create(&PostParams::default(), kind).await.map_err(wrong)?;
        }
        let served = eventually("new kinds to be served", KINDS_LIMIT, || async {
            let listed = api.list(&ListParams::default()).await?.items;
            Ok((listed.iter().filter(|kind| is_established(kind)).count() >= kinds.len()).then_some(()))
        });
        served.await.map_err(wrong)
    }
}

fn wrong(error: impl Display) -> StartError {
    StartError::Kinds(error.to_string())
}

fn is_established(kind: &CustomResourceDefinition) -> bool {
    let conditions = kind.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.into_iter().flatten().any(|condition| condition.type_ == "Established" && condition.status == "True")
}
