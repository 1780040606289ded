//! Certificates made for a test, in files.

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    SanType,
};
use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// An authority and a directory for what it has signed.
pub struct Authority {
    pub dir: TempDir,
    issuer: Issuer<'static, KeyPair>,
    pub certificate: CertificateDer<'static>,
}

/// A certificate and its key.
pub struct Identity {
    pub chain: Vec<CertificateDer<'static>>,
    pub key: PrivateKeyDer<'static>,
    pub cert_file: PathBuf,
    pub key_file: PathBuf,
}

impl Authority {
    pub fn new() -> Authority {
        let dir = tempfile::tempdir().expect("a directory");
        let mut params = CertificateParams::new(Vec::new()).expect("params");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "test authority");
        let key = KeyPair::generate().expect("a key");
        let certificate = params.self_signed(&key).expect("a certificate");
        fs::write(dir.path().join("ca.pem"), certificate.pem()).expect("written");
        let der = certificate.der().clone();
        Authority { dir, issuer: Issuer::new(params, key), certificate: der }
    }

    pub fn ca_file(&self) -> PathBuf {
        self.dir.path().join("ca.pem")
    }

    /// A certificate for the server.
    pub fn server(&self, name: &str) -> Identity {
        self.sign(name, ExtendedKeyUsagePurpose::ServerAuth)
    }

    /// A certificate for a client.
    pub fn client(&self, name: &str) -> Identity {
        self.sign(name, ExtendedKeyUsagePurpose::ClientAuth)
    }

    fn sign(&self, name: &str, usage: ExtendedKeyUsagePurpose) -> Identity {
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).expect("params");
        params.distinguished_name.push(DnType::CommonName, name);
        params.extended_key_usages = vec![usage];
        let uri = format!("spiffe://test/{name}");
        params.subject_alt_names.push(SanType::URI(uri.try_into().expect("a URI")));
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        let file = |end: &str| self.dir.path().join(format!("{name}.{end}"));
        let (cert_file, key_file) = (file("crt"), file("key"));
        fs::write(&cert_file, certificate.pem()).expect("written");
        fs::write(&key_file, key.serialize_pem()).expect("written");
        let der = PrivatePkcs8KeyDer::from(key.serialize_der());
        Identity { chain: vec![certificate.der().clone()], key: der.into(), cert_file, key_file }
    }

    pub fn roots(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.clone()).expect("an authority");
        roots
    }
}

pub fn text(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}
