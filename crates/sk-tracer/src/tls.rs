//! The tracer's certificate: a given one, or one that it creates and keeps.
//!
//! Its own certificate is created once and stored in the data folder, so its fingerprint stays. Clients trust it
//! because the tracer writes it into a ConfigMap that only the tracer may change (see `install`), or because somebody
//! compares the fingerprint with the tracer's log.

use std::fs;
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use sha2::{Digest, Sha256};
use sk_cluster::certificate::{self, SelfSigned};

/// The name in the tracer's own certificate. It is the same wherever the tracer runs, because clients come through a
/// port-forward and know it by no other name.
pub const SERVER_NAME: &str = "sk-tracer";

const CERTIFICATE: &str = "tls.crt";
const KEY: &str = "tls.key";

/// Why the certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("read {}: {source}; --tls-cert and --tls-key name PEM files", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: rustls::pki_types::pem::Error,
    },
    /// A file of ours cannot be written.
    #[error("write {}: {source}", path.display())]
    Write {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A certificate cannot be made.
    #[error("make a certificate: {0}")]
    Make(#[from] certificate::Error),
    /// Certificate and key do not belong together, or are of no use.
    #[error("use the certificate {}: {source}", path.display())]
    Use {
        /// Which.
        path: PathBuf,
        /// Why.
        source: rustls::Error,
    },
    /// A file contains no certificate.
    #[error("{} contains no certificate", .0.display())]
    Empty(PathBuf),
}

/// Where a certificate and its key are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    /// The certificate chain, as PEM.
    pub certificate: PathBuf,
    /// The private key, as PEM.
    pub key: PathBuf,
}

/// The server's certificate.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    pub(crate) config: Arc<rustls::ServerConfig>,
    /// The certificate file as it is: what a client may trust.
    pub(crate) certificate: String,
    /// SHA-256 of the first certificate, in hexadecimal.
    pub(crate) fingerprint: String,
}

impl Identity {
    /// Reads a certificate and its key.
    pub(crate) fn read(files: &Files) -> Result<Self, TlsError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| TlsError::Read { path, source }
        };
        let chain = CertificateDer::pem_file_iter(&files.certificate)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(failed(&files.certificate))?;
        let first = chain.first().ok_or_else(|| TlsError::Empty(files.certificate.clone()))?;
        let key = PrivateKeyDer::from_pem_file(&files.key).map_err(failed(&files.key))?;
        let fingerprint = Sha256::digest(first).iter().map(|byte| format!("{byte:02x}")).collect();
        let certificate = fs::read_to_string(&files.certificate).unwrap_or_default();
        let wrong = |source| TlsError::Use { path: files.certificate.clone(), source };
        let config = sk_cluster::tls::server_config(chain, key).map_err(wrong)?;
        Ok(Self { config: Arc::new(config), certificate, fingerprint })
    }

    /// The certificate in this folder; it is made if it is not there.
    pub(crate) fn kept_in(folder: &Path, bind: SocketAddr) -> Result<Self, TlsError> {
        let files = Files { certificate: folder.join(CERTIFICATE), key: folder.join(KEY) };
        if !(files.certificate.exists() && files.key.exists()) {
            make(&files, bind.ip())?;
        }
        Self::read(&files)
    }
}

/// Creates a key and a self-signed certificate.
fn make(files: &Files, bind: IpAddr) -> Result<(), TlsError> {
    let mut names = vec![SERVER_NAME.to_owned(), "localhost".to_owned(), Ipv4Addr::LOCALHOST.to_string()];
    if !bind.is_unspecified() && bind != IpAddr::V4(Ipv4Addr::LOCALHOST) {
        names.push(bind.to_string());
    }
    let SelfSigned { certificate, key } = SelfSigned::new(SERVER_NAME, names)?;
    // The key first: a certificate is only looked at when both are there.
    write_private(&files.key, &key)?;
    write_private(&files.certificate, &certificate)
}

/// Writes a file that only its owner may read. It is whole or as it was: a crash or a full disk leaves no half of it.
pub(crate) fn write_private(path: &Path, text: &str) -> Result<(), TlsError> {
    let written = || -> io::Result<()> {
        let folder = path.parent().unwrap_or(Path::new("."));
        // Temporary files are their owner's alone.
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(text.as_bytes())?;
        file.as_file().sync_all()?;
        file.persist(path)?;
        fs::File::open(folder)?.sync_all()
    };
    written().map_err(|source| TlsError::Write { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_made_once_and_then_kept() {
        let folder = tempfile::tempdir().unwrap();
        let bind = "10.0.0.7:7777".parse().unwrap();
        let first = Identity::kept_in(folder.path(), bind).unwrap();
        let again = Identity::kept_in(folder.path(), bind).unwrap();
        assert_eq!(first.fingerprint, again.fingerprint);
        assert_eq!(first.fingerprint.len(), 64);
        let written = fs::read_to_string(folder.path().join(CERTIFICATE)).unwrap();
        assert_eq!(written, first.certificate);
    }

    #[test]
    fn a_key_that_is_no_key_is_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let files = Files { certificate: folder.path().join("a.crt"), key: folder.path().join("a.key") };
        make(&files, Ipv4Addr::LOCALHOST.into()).unwrap();
        fs::write(&files.key, "nothing").unwrap();
        assert!(Identity::read(&files).unwrap_err().to_string().contains("a.key"));
        fs::write(&files.certificate, "").unwrap();
        assert!(Identity::read(&files).unwrap_err().to_string().contains("a.crt"));
    }
}
