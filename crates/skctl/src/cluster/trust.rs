//! Verifies the certificates of the tracer and the controller.
//!
//! Both create their certificates and publish them in their namespace, where only users with write access can change
//! them. A server is trusted if the published authority signed its certificate, or if it shows the published
//! certificate itself. The system's certificate authorities are not used: none of them knows these servers.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

/// Certificates in one published file. An authority, the one before it and a server's own are three.
const MAX_CERTIFICATES: usize = 16;

/// Why the published certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TrustError {
    #[error("{place} contains no certificate; install again to publish it")]
    NoCertificate { place: String },
    #[error("{place} contains an invalid certificate: {reason}; install again to publish it")]
    Certificate { place: String, reason: String },
}

/// TLS that trusts what was published at `place`, and nothing else.
pub(crate) fn client_config(pem: &[u8], place: &str) -> Result<Arc<ClientConfig>, TrustError> {
    let wrong = |reason: String| TrustError::Certificate { place: place.to_owned(), reason };
    let read = CertificateDer::pem_slice_iter(pem).take(MAX_CERTIFICATES).collect::<Result<Vec<_>, _>>();
    let published = read.map_err(|error| wrong(error.to_string()))?;
    if published.is_empty() {
        return Err(TrustError::NoCertificate { place: place.to_owned() });
    }
    let mut roots = RootCertStore::empty();
    for certificate in &published {
        roots.add(certificate.clone()).map_err(|error| wrong(error.to_string()))?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let by_authority = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone()).build();
    let verifier =
        Published { by_authority: by_authority.map_err(|error| wrong(error.to_string()))?, published, provider };
    let config = ClientConfig::builder_with_provider(verifier.provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong(error.to_string()))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    Ok(Arc::new(config))
}

/// Accepts the published certificates themselves, and what they have signed for the right name.
#[derive(Debug)]
struct Published {
    by_authority: Arc<WebPkiServerVerifier>,
    published: Vec<CertificateDer<'static>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Published {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        // The certificate itself was published: its name and age say nothing that this does not.
        if self.published.iter().any(|published| published == end_entity) {
            return Ok(ServerCertVerified::assertion());
        }
        self.by_authority.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
