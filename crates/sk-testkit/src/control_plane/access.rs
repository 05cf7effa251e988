//! What tests do most with a control plane: create, get, wait; and compact etcd's history.

use kube::api::{Api, DynamicObject};
use kube::{Client, Config};
use serde_json::{Value, json};
use sk_core::Gvk;
pub(crate) use sk_lab::access::{create_value, dynamic_api};

use super::{ControlError, ControlPlane};
use crate::objects::Object;
use crate::options::Component;

impl ControlPlane {
    /// Creates an object.
    pub async fn create(&self, object: &Object) -> Result<DynamicObject, ControlError> {
        create_value(self.client(), object.as_value()).await
    }

    /// Creates nodes for KWOK to play, and waits until pods can be scheduled to them.
    pub async fn create_nodes(&self, nodes: impl IntoIterator<Item = Object>) -> Result<(), ControlError> {
        let mut names = Vec::new();
        for node in nodes {
            self.create(&node).await?;
            names.push(node.key().name.to_string());
        }
        let untaints = self.options().runs(Component::ControllerManager);
        sk_lab::access::until_nodes_ready(self.client(), &names, untaints).await
    }

    /// The API of any kind, in one namespace or in all.
    pub async fn api(&self, gvk: &Gvk, namespace: Option<&str>) -> Result<Api<DynamicObject>, ControlError> {
        dynamic_api(self.client(), gvk, namespace).await
    }

    /// What the API server says its version is, such as `v1.36.4`.
    pub async fn version(&self) -> Result<String, ControlError> {
        let info = self.client().apiserver_version().await.map_err(ControlError::request("ask for the version"))?;
        Ok(info.git_version)
    }

    /// Makes etcd forget all history up to now, as a cluster does every five minutes.
    ///
    /// The API server still remembers recent changes by itself. To have a watch from an old version end with 410 Gone,
    /// also restart [`Component::ApiServer`]: it cannot fill its memory again from what etcd has forgotten.
    pub async fn compact_etcd(&self) -> Result<(), ControlError> {
        // Any key will do: the answer's header carries the current revision.
        let answer = self.etcd("/v3/kv/range", &json!({"key": "AA=="})).await?;
        let revision = answer["header"]["revision"].clone();
        self.etcd("/v3/kv/compaction", &json!({"revision": revision, "physical": true})).await.map(drop)
    }

    /// etcd's own API, over its JSON gateway.
    async fn etcd(&self, path: &str, body: &Value) -> Result<Value, ControlError> {
        let step = || ControlError::request(format!("POST {path} to etcd"));
        let url = format!("http://127.0.0.1:{}", self.etcd_port()).parse();
        let config = Config::new(url.expect("an address and a port make a URL"));
        let client = Client::try_from(config).map_err(step())?;
        let request = http::Request::post(path).body(body.to_string().into_bytes());
        let request = request.map_err(|error| step()(kube::Error::HttpError(error)))?;
        client.request(request).await.map_err(step())
    }
}
