//! A certificate authority for one control plane: serving certificates and the key that signs ServiceAccount tokens.

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose};

/// An authority that lives as long as its control plane.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// A key and the certificate that vouches for it, as PEM.
#[derive(Clone, Debug)]
pub struct Certified {
    /// The certificate.
    pub certificate: String,
    /// The private key.
    pub key: String,
}

/// A bare key pair, as PEM.
pub(crate) struct Keys {
    pub(crate) private: String,
    pub(crate) public: String,
}

impl Authority {
    /// A new authority that nobody trusts yet.
    pub fn new() -> Result<Self, rcgen::Error> {
        let mut params = CertificateParams::new(Vec::new())?;
        params.distinguished_name.push(DnType::CommonName, "simkube lab");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        Ok(Self { issuer: CertifiedIssuer::self_signed(params, KeyPair::generate()?)? })
    }

    /// The authority's own certificate as PEM: what clients have to trust.
    pub fn certificate(&self) -> String {
        self.issuer.pem()
    }

    /// A certificate for a server that is called by these DNS names and addresses.
    pub fn serving(&self, names: &[&str]) -> Result<Certified, rcgen::Error> {
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        let key = KeyPair::generate()?;
        let certificate = CertificateParams::new(names)?.signed_by(&key, &self.issuer)?;
        Ok(Certified { certificate: certificate.pem(), key: key.serialize_pem() })
    }
}

impl Keys {
    /// A new pair.
    pub(crate) fn new() -> Result<Self, rcgen::Error> {
        let pair = KeyPair::generate()?;
        Ok(Self { private: pair.serialize_pem(), public: pair.public_key_pem() })
    }
}
