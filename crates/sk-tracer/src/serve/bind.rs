//! Binds the server's address, chooses its certificate and publishes it.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;
use tokio::net::TcpListener;

use crate::access::Access;
use crate::error_reporter::Cause;
use crate::folder::DataFolder;
use crate::install::CERTIFICATE_KEY;
use crate::options::{Publication, Security, Serving};
use crate::tls::Identity;
use crate::tracer::StartError;

/// Between two attempts to publish the certificate.
const PUBLISH_PAUSE: Duration = Duration::from_secs(10);

/// Binds the address; refuses one that others can reach without authentication.
pub(crate) async fn listen(serving: &Serving) -> Result<TcpListener, StartError> {
    let address = serving.address;
    if serving.security == Security::Insecure && !address.ip().is_loopback() {
        return Err(StartError::Insecure(address));
    }
    TcpListener::bind(address).await.map_err(|source| StartError::Bind { address, source })
}

pub(crate) fn identity(serving: &Serving, folder: &DataFolder) -> Result<Option<Identity>, StartError> {
    let identity = match &serving.security {
        Security::Insecure => {
            tracing::warn!("--insecure: every user of this machine can export everything");
            return Ok(None);
        }
        Security::OwnCertificate => Identity::kept_in(folder.path(), serving.address)?,
        Security::Certificate(files) => Identity::read(files)?,
    };
    tracing::info!(sha256 = identity.fingerprint, "the certificate's fingerprint");
    Ok(Some(identity))
}

/// Writes the certificate into its ConfigMap, however long that takes; nothing waits for it.
pub(crate) async fn publish(access: Access, place: Publication, certificate: String) {
    let what = format!("the certificate's ConfigMap {}/{}", place.namespace, place.name);
    let patch = Patch::Merge(json!({"data": {CERTIFICATE_KEY: certificate}}));
    loop {
        let api: Api<ConfigMap> = Api::namespaced(access.client(), &place.namespace);
        match api.patch(&place.name, &PatchParams::default(), &patch).await {
            Ok(_) => return access.failures().recovered(&what),
            Err(error) => {
                access.failures().note(&what, Cause::of(&error), &error);
                tokio::time::sleep(PUBLISH_PAUSE).await;
            }
        }
    }
}
