//! Who a peer is by its certificate.

use x509_cert::Certificate;
use x509_cert::der::Decode;
use x509_cert::der::asn1::{PrintableStringRef, TeletexStringRef, Utf8StringRef};
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;

/// `commonName`.
const COMMON_NAME: &str = "2.5.4.3";

/// The names in a certificate that was verified.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeerCertificate {
    /// The subject's common name (CN).
    pub common_name: Option<String>,
    /// The URIs among its alternative names (SAN), as SPIFFE has them.
    pub uris: Vec<String>,
}

impl PeerCertificate {
    /// Reads the names; those that cannot be read are not there.
    pub fn of(der: &[u8]) -> PeerCertificate {
        let Ok(certificate) = Certificate::from_der(der) else { return PeerCertificate::default() };
        let certificate = certificate.tbs_certificate();
        let attributes = certificate.subject().iter();
        // The last one is the most specific.
        let common_name = attributes
            .filter(|attribute| attribute.oid.to_string() == COMMON_NAME)
            .filter_map(|attribute| {
                let value = &attribute.value;
                let text = value
                    .decode_as::<Utf8StringRef<'_>>()
                    .map(|text| text.as_str().to_owned())
                    .or_else(|_| {
                        value.decode_as::<PrintableStringRef<'_>>().map(|t| t.as_str().to_owned())
                    })
                    .or_else(|_| {
                        value.decode_as::<TeletexStringRef<'_>>().map(|t| t.as_str().to_owned())
                    });
                text.ok()
            })
            .last();
        let mut uris = Vec::new();
        if let Ok(Some((_, SubjectAltName(names)))) = certificate.get_extension::<SubjectAltName>()
        {
            uris.extend(names.into_iter().filter_map(|name| match name {
                GeneralName::UniformResourceIdentifier(uri) => Some(uri.to_string()),
                _ => None,
            }));
        }
        PeerCertificate { common_name, uris }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, DnType, KeyPair, SanType};

    #[test]
    fn names_are_read_and_what_is_no_certificate_has_none() {
        let mut params = CertificateParams::new(vec!["db.example".to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, "ada");
        let uri = "spiffe://example/reports";
        params.subject_alt_names.push(SanType::URI(uri.try_into().unwrap()));
        let certificate = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
        let expected =
            PeerCertificate { common_name: Some("ada".to_owned()), uris: vec![uri.to_owned()] };
        assert_eq!(PeerCertificate::of(certificate.der()), expected);
        for end in 0..certificate.der().len() {
            PeerCertificate::of(&certificate.der()[..end]);
        }
        assert_eq!(PeerCertificate::of(b"none"), PeerCertificate::default());
    }
}
