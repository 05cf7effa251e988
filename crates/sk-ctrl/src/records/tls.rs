//! The controller's certificate authority and certificate, kept in a Secret so that they survive restarts. The
//! authority is published in a ConfigMap for drivers and skctl.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{Api, ObjectMeta, PostParams};
use kube::{Client, ResourceExt};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use sk_api::simulation::names;
use sk_cluster::certificate::{self, Authority, SERVING_DAYS, Serving, is_due};
use sk_cluster::tls;

use crate::parts::NOT_AFTER_ANNOTATION;

/// The Secret with the controller's authority and certificate.
const SECRET: &str = "sk-ctrl-cert";
/// Where the authority's key is in it.
const CA_SECRET_KEY: &str = "ca.key";

/// Why the controller cannot prove itself.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// The Secret or the ConfigMap cannot be read or written.
    #[error("{step}: {source}")]
    Request {
        /// What was to be done.
        step: String,
        /// The error.
        #[source]
        source: Box<kube::Error>,
    },
    /// The certificate cannot be made.
    #[error("make the controller's certificate: {0}")]
    Certificate(#[from] certificate::Error),
    /// What the Secret holds cannot be served.
    #[error("Secret {SECRET} holds no usable certificate ({0}): delete it, and the controller makes a new one")]
    Unusable(String),
}

/// The controller's authority and certificate.
#[derive(Clone, Debug)]
pub struct Identity {
    authority: Authority,
    serving: Serving,
}

impl Identity {
    /// Reads the identity from the cluster, makes what is missing or about to end, and publishes the authority.
    pub async fn establish(client: &Client, namespace: &str, more_names: &[String]) -> Result<Self, IdentityError> {
        let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
        let found = secrets.get_opt(SECRET).await.map_err(request(format!("get Secret {namespace}/{SECRET}")))?;
        let now = Timestamp::now();
        let mut server_names: Vec<_> = ["", ".svc", ".svc.cluster.local"]
            .map(|suffix| format!("{}.{namespace}{suffix}", names::CONTROLLER_NAME))
            .into_iter()
            .chain(["localhost".to_owned(), "127.0.0.1".to_owned()])
            .collect();
        server_names.extend(more_names.iter().cloned());
        let identity = match found.as_ref().and_then(Self::read) {
            Some(identity) if !is_due(identity.serving.not_after, now) && more_names.is_empty() => identity,
            // The authority stays, so that clients keep trusting it.
            Some(Self { authority, .. }) => {
                Self { serving: authority.serving(&server_names, now, SERVING_DAYS)?, authority }
            }
            None => {
                let authority = Authority::new(names::CONTROLLER_NAME, now)?;
                Self { serving: authority.serving(&server_names, now, SERVING_DAYS)?, authority }
            }
        };
        identity.keep(&secrets, found, namespace).await?;
        identity.publish(client, namespace).await?;
        Ok(identity)
    }

    /// The certificate authority that clients trust, as PEM.
    pub fn authority(&self) -> &str {
        &self.authority.certificate
    }

    /// Is it time for a new certificate?
    pub fn is_due(&self) -> bool {
        is_due(self.serving.not_after, Timestamp::now())
    }

    /// For serving TLS with it.
    pub fn server_config(&self) -> Result<Arc<ServerConfig>, IdentityError> {
        let unusable = |error: &dyn std::fmt::Display| IdentityError::Unusable(error.to_string());
        let chain =
            CertificateDer::from_pem_slice(self.serving.certificate.as_bytes()).map_err(|error| unusable(&error))?;
        let key = PrivateKeyDer::from_pem_slice(self.serving.key.as_bytes()).map_err(|error| unusable(&error))?;
        let config = tls::server_config(vec![chain], key).map_err(|error| unusable(&error))?;
        Ok(Arc::new(config))
    }

    fn read(secret: &Secret) -> Option<Self> {
        let text = |key: &str| String::from_utf8(secret.data.as_ref()?.get(key)?.0.clone()).ok();
        Some(Self {
            authority: Authority {
                name: names::CONTROLLER_NAME.to_owned(),
                certificate: text(names::CA_KEY)?,
                key: text(CA_SECRET_KEY)?,
            },
            serving: Serving {
                certificate: text("tls.crt")?,
                key: text("tls.key")?,
                not_after: secret.annotations().get(NOT_AFTER_ANNOTATION)?.parse().ok()?,
            },
        })
    }

    async fn keep(&self, secrets: &Api<Secret>, found: Option<Secret>, namespace: &str) -> Result<(), IdentityError> {
        let bytes = |text: &str| ByteString(text.as_bytes().to_vec());
        let data = BTreeMap::from([
            (names::CA_KEY.to_owned(), bytes(&self.authority.certificate)),
            (CA_SECRET_KEY.to_owned(), bytes(&self.authority.key)),
            ("tls.crt".to_owned(), bytes(&self.serving.certificate)),
            ("tls.key".to_owned(), bytes(&self.serving.key)),
        ]);
        if found.as_ref().is_some_and(|found| found.data.as_ref() == Some(&data)) {
            return Ok(());
        }
        let metadata = ObjectMeta {
            name: Some(SECRET.to_owned()),
            labels: Some(component()),
            annotations: Some(BTreeMap::from([(NOT_AFTER_ANNOTATION.to_owned(), self.serving.not_after.to_string())])),
            resource_version: found.as_ref().and_then(ResourceExt::resource_version),
            ..ObjectMeta::default()
        };
        let secret = Secret { metadata, data: Some(data), ..Secret::default() };
        let written = match found {
            Some(_) => secrets.replace(SECRET, &PostParams::default(), &secret).await,
            None => secrets.create(&PostParams::default(), &secret).await,
        };
        written.map(drop).map_err(request(format!("write Secret {namespace}/{SECRET}")))
    }

    async fn publish(&self, client: &Client, namespace: &str) -> Result<(), IdentityError> {
        let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
        let name = names::CONTROLLER_CA;
        let step = || request(format!("write ConfigMap {namespace}/{name}"));
        let found = maps.get_opt(name).await.map_err(step())?;
        let data = BTreeMap::from([(names::CA_KEY.to_owned(), self.authority.certificate.clone())]);
        if found.as_ref().is_some_and(|found| found.data.as_ref() == Some(&data)) {
            return Ok(());
        }
        let metadata = ObjectMeta {
            name: Some(name.to_owned()),
            labels: Some(component()),
            resource_version: found.as_ref().and_then(ResourceExt::resource_version),
            ..ObjectMeta::default()
        };
        let map = ConfigMap { metadata, data: Some(data), ..ConfigMap::default() };
        let written = match found {
            Some(_) => maps.replace(name, &PostParams::default(), &map).await,
            None => maps.create(&PostParams::default(), &map).await,
        };
        written.map(drop).map_err(step())
    }
}

fn component() -> BTreeMap<String, String> {
    BTreeMap::from([(names::COMPONENT_LABEL.to_owned(), names::CONTROLLER.to_owned())])
}

fn request(step: String) -> impl FnOnce(kube::Error) -> IdentityError {
    move |source| IdentityError::Request { step, source: Box::new(source) }
}
