//! Certificates that we make: an authority and what it signs, or a certificate that vouches for itself.
//!
//! This needs neither cert-manager nor Kubernetes' certificate signers, whose approval needs permissions that a
//! simulator should not have. Each authority signs one certificate, and only the clients of that server trust it.

use jiff::{SignedDuration, Timestamp, tz::TimeZone};
pub use rcgen::Error;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose,
};

/// How long the certificate of a server that renews it is good for.
pub const SERVING_DAYS: i64 = 90;
/// How long the certificate of a server is good for that makes one at its start and keeps it to its end.
pub const LASTING_DAYS: i64 = AUTHORITY_DAYS;
/// A certificate is renewed when less than this is left of it: a run of a month never sees its certificate end.
pub const RENEW_BEFORE: SignedDuration = SignedDuration::from_hours(30 * 24);
/// How long an authority is good for.
const AUTHORITY_DAYS: i64 = 3650;
/// Clocks of nodes differ; a certificate is good from a day before it was made.
const BACKDATED_DAYS: i64 = 1;

/// An authority: its certificate and its key, as PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authority {
    /// Its common name.
    pub name: String,
    /// The certificate that clients have to trust, as PEM.
    pub certificate: String,
    /// Its private key, as PEM.
    pub key: String,
}

/// A server's certificate and key, as PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Serving {
    /// The certificate.
    pub certificate: String,
    /// Its key.
    pub key: String,
    /// Until when it is good.
    pub not_after: Timestamp,
}

impl Authority {
    /// A new authority that nobody trusts yet.
    pub fn new(name: &str, now: Timestamp) -> Result<Self, Error> {
        let issuer = CertifiedIssuer::self_signed(authority_params(name, now)?, KeyPair::generate()?)?;
        Ok(Self { name: name.to_owned(), certificate: issuer.pem(), key: issuer.key().serialize_pem() })
    }

    /// A certificate for a server that is called by these names, good for so many days.
    pub fn serving(&self, names: &[String], now: Timestamp, days: i64) -> Result<Serving, Error> {
        // Of the authority's own certificate only name and key matter to what it signs.
        let issuer = Issuer::new(authority_params(&self.name, now)?, KeyPair::from_pem(&self.key)?);
        let mut params = CertificateParams::new(names.to_vec())?;
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let not_after = validity(&mut params, now, days);
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &issuer)?;
        Ok(Serving { certificate: certificate.pem(), key: key.serialize_pem(), not_after })
    }
}

/// A certificate that vouches for itself, and its key, as PEM. For servers whose clients are given it by other means; it
/// does not end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelfSigned {
    /// The certificate.
    pub certificate: String,
    /// Its key.
    pub key: String,
}

impl SelfSigned {
    /// A new one for a server that is called `name` and is found under `names`.
    pub fn new(name: &str, names: Vec<String>) -> Result<Self, Error> {
        let mut params = CertificateParams::new(names)?;
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate()?;
        Ok(Self { certificate: params.self_signed(&key)?.pem(), key: key.serialize_pem() })
    }
}

fn authority_params(name: &str, now: Timestamp) -> Result<CertificateParams, Error> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    validity(&mut params, now, AUTHORITY_DAYS);
    Ok(params)
}

/// Is it time for a new certificate?
pub fn is_due(not_after: Timestamp, now: Timestamp) -> bool {
    not_after.duration_since(now) < RENEW_BEFORE
}

/// Sets from when and until when a certificate is good, in whole days, and returns the latter.
fn validity(params: &mut CertificateParams, now: Timestamp, days: i64) -> Timestamp {
    let day = |days: i64| {
        let moment = now.saturating_add(SignedDuration::from_hours(24 * days)).unwrap_or(now);
        moment.to_zoned(TimeZone::UTC).date()
    };
    let date = |date: jiff::civil::Date| {
        rcgen::date_time_ymd(date.year().into(), date.month().unsigned_abs(), date.day().unsigned_abs())
    };
    params.not_before = date(day(-BACKDATED_DAYS));
    params.not_after = date(day(days));
    day(days).to_zoned(TimeZone::UTC).map_or(now, |end| end.timestamp())
}

#[cfg(test)]
mod tests {
    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
    use rustls::{RootCertStore, client::WebPkiServerVerifier};
    use std::{sync::Arc, time::Duration};

    use super::*;

    fn now() -> Timestamp {
        "2026-11-10T14:00:00Z".parse().unwrap()
    }

    #[test]
    fn a_certificate_is_trusted_for_its_names_until_its_end_and_no_longer() {
        let authority = Authority::new("sk-a", now()).unwrap();
        let serving = authority.serving(&["a.simkube.svc".to_owned()], now(), SERVING_DAYS).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(authority.certificate.as_bytes()).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
        let leaf = CertificateDer::from_pem_slice(serving.certificate.as_bytes()).unwrap();
        let trusted = |name: &str, at: Timestamp| {
            use rustls::client::danger::ServerCertVerifier;
            let name = ServerName::try_from(name.to_owned()).unwrap();
            let at = UnixTime::since_unix_epoch(Duration::from_secs(u64::try_from(at.as_second()).unwrap()));
            verifier.verify_server_cert(&leaf, &[], &name, &[], at).is_ok()
        };
        let hour = SignedDuration::from_hours(1);
        assert!(trusted("a.simkube.svc", now()) && trusted("a.simkube.svc", now() - hour * 20));
        assert!(!trusted("b.simkube.svc", now()));
        assert!(
            trusted("a.simkube.svc", serving.not_after - hour) && !trusted("a.simkube.svc", serving.not_after + hour)
        );
        PrivateKeyDer::from_pem_slice(serving.key.as_bytes()).unwrap();
    }

    #[test]
    fn a_certificate_is_renewed_a_month_before_its_end() {
        let end = now();
        let days = |days: i64| SignedDuration::from_hours(24 * days);
        assert!(!is_due(end, end - days(31)));
        assert!(is_due(end, end - days(29)));
    }
}
