//! Nodes with certificates.

use crate::common::{ECHO, LONG, PATIENCE, identity, mesh_with, node_with, run, secret};
use ladon_mesh::{Identity, Limits, Mesh, Security};
use ladon_tls::{NodeTls, TlsOptions};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, SerialNumber,
};
use std::fs;

/// An authority, and a folder for what it has signed.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    folder: tempfile::TempDir,
}

impl Authority {
    pub fn new(name: &str) -> Authority {
        let mut params = CertificateParams::new(vec![]).expect("parameters");
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let issuer = CertifiedIssuer::self_signed(params, key).expect("an authority");
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("ca.crt"), issuer.pem()).expect("a file");
        Authority { issuer, folder }
    }

    /// What a node has whose certificate is this authority's, and which trusts `trusted`.
    pub fn node(&self, name: &str, trusted: &Authority) -> NodeTls {
        let mut params = CertificateParams::new(vec![]).expect("parameters");
        params.distinguished_name.push(DnType::CommonName, name);
        params.serial_number = Some(SerialNumber::from(7_u64));
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        let file = |end: &str| self.folder.path().join(format!("{name}.{end}"));
        fs::write(file("crt"), certificate.pem()).expect("a file");
        fs::write(file("key"), key.serialize_pem()).expect("a file");
        let options = TlsOptions {
            cert_file: file("crt"),
            key_file: file("key"),
            ca_cert_file: trusted.folder.path().join("ca.crt"),
            ..TlsOptions::default()
        };
        options.load_nodes().expect("the files can be used")
    }
}

async fn ask(mesh: &Mesh, address: &str) -> Result<(), String> {
    let answer = mesh.ask(address, None, ECHO, 0, b"x".to_vec(), PATIENCE).await;
    let answer = answer.map_err(|error| error.to_string().replace(address, "node"))?;
    assert_eq!(answer, "x");
    Ok(())
}

fn node(security: Security) -> crate::common::Node {
    node_with(identity(1), security, Limits::default())
}

#[test]
fn nodes_of_one_authority_talk() {
    run(async {
        let authority = Authority::new("ours");
        let (one, two) = (authority.node("one", &authority), authority.node("two", &authority));
        let node = node(Security::Tls(one));
        let other = mesh_with(identity(2), Security::Tls(two));
        for length in [0_u32, 1, 65_536, 65_537, 10_000_000] {
            let wanted = length.to_le_bytes().to_vec();
            let answer = other.ask(&node.address, Some(1), LONG, 0, wanted, PATIENCE).await;
            let answer = answer.expect("an answer");
            assert!((0..length).map(|at| (at % 251) as u8).eq(answer.iter().copied()));
        }
        let name = node.service.certificates.lock().pop().expect("it was shown");
        assert_eq!(name.as_deref(), Some("two"));
        let stranger = mesh_with(Identity { cluster: [9; 16], ..identity(3) }, {
            Security::Tls(authority.node("three", &authority))
        });
        let refused = ask(&stranger, &node.address).await.expect_err("another cluster");
        assert!(refused.starts_with("node: the other side refuses: this node belongs to"));
    });
}

#[test]
fn certificates_of_other_authorities_are_refused_by_both() {
    run(async {
        let (ours, theirs) = (Authority::new("ours"), Authority::new("theirs"));
        let node = node(Security::Tls(ours.node("one", &ours)));
        // It does not trust the node.
        let other = mesh_with(identity(2), Security::Tls(theirs.node("two", &theirs)));
        let text = "node: TLS: invalid peer certificate: UnknownIssuer";
        assert_eq!(ask(&other, &node.address).await, Err(text.to_owned()));
        // It does, and the node does not trust it.
        let other = mesh_with(identity(2), Security::Tls(theirs.node("three", &ours)));
        let text = "node: received fatal alert: UnknownCA";
        assert_eq!(ask(&other, &node.address).await, Err(text.to_owned()));
        assert!(node.service.seen.lock().is_empty());
        assert_eq!(node.mesh.counts().answering, 0);
    });
}

#[test]
fn with_and_without_tls_do_not_mix() {
    run(async {
        let authority = Authority::new("ours");
        let tls = || authority.node("one", &authority);
        let sealed = node(Security::Tls(tls()));
        let plain = mesh_with(identity(2), secret());
        let refused = ask(&plain, &sealed.address).await.expect_err("no TLS");
        assert_eq!(
            refused,
            "node: the other side closed the connection without a word; its log says why"
        );
        let open = node(secret());
        let other = mesh_with(identity(2), Security::Tls(tls()));
        let refused = ask(&other, &open.address).await.expect_err("TLS");
        assert!(refused.starts_with("node: TLS: "), "{refused}");
    });
}

#[test]
fn a_secret_on_tls_is_asked_for_too() {
    run(async {
        let authority = Authority::new("ours");
        let both = |secret: &[u8]| {
            Security::SecretOnTls(secret.to_vec(), authority.node("one", &authority))
        };
        let node = node(both(b"right"));
        assert_eq!(ask(&mesh_with(identity(2), both(b"right")), &node.address).await, Ok(()));
        let no_proof = "node: the other side refuses: the other side does not prove that it knows \
                        the cluster's secret (cluster-secret)";
        let other = mesh_with(identity(3), both(b"wrong"));
        assert_eq!(ask(&other, &node.address).await, Err(no_proof.to_owned()));
        let without = Security::Tls(authority.node("one", &authority));
        let other = mesh_with(identity(3), without);
        assert_eq!(ask(&other, &node.address).await, Err(no_proof.to_owned()));
    });
}

#[test]
fn new_links_take_the_new_security() {
    run(async {
        let (old, new) = (Authority::new("old"), Authority::new("new"));
        let node = node(Security::Tls(old.node("one", &old)));
        let other = mesh_with(identity(2), Security::Tls(old.node("two", &old)));
        assert_eq!(ask(&other, &node.address).await, Ok(()));
        node.mesh.secure(Security::Tls(new.node("one", &new)));
        // The link is there already.
        assert_eq!(ask(&other, &node.address).await, Ok(()));
        let third = mesh_with(identity(3), Security::Tls(old.node("two", &old)));
        assert!(ask(&third, &node.address).await.is_err());
        third.secure(Security::Tls(new.node("two", &new)));
        tokio::time::sleep(Limits::default().backoff).await;
        assert_eq!(ask(&third, &node.address).await, Ok(()));
    });
}
