//! How our servers speak TLS: ring, today's protocol versions, HTTP/2 and HTTP/1.1.

use std::sync::Arc;

use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::ResolvesServerCert;
use rustls::{ConfigBuilder, ServerConfig, WantsVerifier};

/// For a server with one certificate.
pub fn server_config(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<ServerConfig, rustls::Error> {
    Ok(with_alpn(builder()?.with_no_client_auth().with_single_cert(chain, key)?))
}

/// For a server whose certificate may be exchanged while connections come in.
pub fn server_config_resolving(served: Arc<dyn ResolvesServerCert>) -> Result<ServerConfig, rustls::Error> {
    Ok(with_alpn(builder()?.with_no_client_auth().with_cert_resolver(served)))
}

fn builder() -> Result<ConfigBuilder<ServerConfig, WantsVerifier>, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions()
}

fn with_alpn(mut config: ServerConfig) -> ServerConfig {
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    config
}
