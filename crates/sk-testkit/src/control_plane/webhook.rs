//! Letting the API server reach a test's webhook through a Service, as it would in a cluster.
//!
//! Nothing here forwards traffic. With `Options::webhook_routing` the API server looks the Service's EndpointSlice up
//! and connects to the address in it, which must not be a loopback address: it is the host's own.

use std::net::IpAddr;

use serde_json::json;

use super::{ControlError, ControlPlane};
use crate::objects;

impl ControlPlane {
    /// This machine's own address, which a webhook has to listen on.
    pub fn host_address() -> Result<IpAddr, ControlError> {
        sk_lab::runner::host_address()
    }

    /// Makes a Service (port 443) that leads to `port` on [`ControlPlane::host_address`].
    pub async fn route_service(&self, namespace: &str, name: &str, port: u16) -> Result<(), ControlError> {
        let service = objects::object(json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"namespace": namespace, "name": name},
            "spec": {"ports": [{"name": "https", "port": 443, "targetPort": port}]},
        }));
        let slice = objects::object(json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
            "metadata": {
                "namespace": namespace, "name": name, "labels": {"kubernetes.io/service-name": name},
            },
            "endpoints": [{"addresses": [Self::host_address()?], "conditions": {"ready": true}}],
            "ports": [{"name": "https", "port": port, "protocol": "TCP"}],
        }));
        self.create(&service).await?;
        self.create(&slice).await?;
        Ok(())
    }
}
