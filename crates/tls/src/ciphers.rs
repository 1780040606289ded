//! OpenSSL's names of protocols and cipher suites, as Redis' settings have them.

use crate::config::TlsError;
use rustls::crypto::ring::cipher_suite as suites;
use rustls::version::{TLS12, TLS13};
use rustls::{SupportedCipherSuite, SupportedProtocolVersion};

/// TLS 1.3 (`tls-ciphersuites`), strongest first.
const TLS13_SUITES: [(&str, SupportedCipherSuite); 3] = [
    ("TLS_AES_256_GCM_SHA384", suites::TLS13_AES_256_GCM_SHA384),
    ("TLS_CHACHA20_POLY1305_SHA256", suites::TLS13_CHACHA20_POLY1305_SHA256),
    ("TLS_AES_128_GCM_SHA256", suites::TLS13_AES_128_GCM_SHA256),
];

/// TLS 1.2 (`tls-ciphers`), strongest first.
const TLS12_SUITES: [(&str, SupportedCipherSuite); 6] = [
    ("ECDHE-ECDSA-AES256-GCM-SHA384", suites::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384),
    ("ECDHE-RSA-AES256-GCM-SHA384", suites::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384),
    ("ECDHE-ECDSA-CHACHA20-POLY1305", suites::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256),
    ("ECDHE-RSA-CHACHA20-POLY1305", suites::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256),
    ("ECDHE-ECDSA-AES128-GCM-SHA256", suites::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256),
    ("ECDHE-RSA-AES128-GCM-SHA256", suites::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256),
];

/// Words of OpenSSL for groups that all of the suites above belong to.
const ALL: [&str; 5] = ["DEFAULT", "ALL", "HIGH", "ECDHE", "AEAD"];

/// Words of OpenSSL for groups that none of them belongs to: to exclude one asks for nothing.
const NONE: [&str; 20] = [
    "LOW", "MEDIUM", "EXP", "EXPORT", "NULL", "aNULL", "eNULL", "ADH", "AECDH", "DES", "3DES",
    "RC4", "RC2", "IDEA", "SEED", "CAMELLIA", "MD5", "SHA1", "PSK", "SRP",
];

/// The protocols of `tls-protocols`; empty for all.
pub(crate) fn protocols(text: &str) -> Result<Vec<&'static SupportedProtocolVersion>, TlsError> {
    let mut found: Vec<&'static SupportedProtocolVersion> = Vec::new();
    for word in text.split_ascii_whitespace() {
        let version = match word.to_ascii_lowercase().as_str() {
            "tlsv1.2" => &TLS12,
            "tlsv1.3" => &TLS13,
            "tlsv1" | "tlsv1.1" => {
                return Err(TlsError::Setting {
                    name: "tls-protocols",
                    reason: format!("{word} is broken and not supported"),
                });
            }
            _ => {
                return Err(TlsError::Setting {
                    name: "tls-protocols",
                    reason: "Invalid tls-protocols specified. Use a combination of 'TLSv1.2' and \
                             'TLSv1.3'."
                        .to_owned(),
                });
            }
        };
        if !found.contains(&version) {
            found.push(version);
        }
    }
    Ok(if found.is_empty() { vec![&TLS13, &TLS12] } else { found })
}

/// The suites of `tls-ciphersuites` and `tls-ciphers`, in the order in which they are named; empty
/// for all.
pub(crate) fn suites(tls13: &str, tls12: &str) -> Result<Vec<SupportedCipherSuite>, TlsError> {
    let mut found = named("tls-ciphersuites", tls13, &TLS13_SUITES)?;
    found.extend(named("tls-ciphers", tls12, &TLS12_SUITES)?);
    Ok(found)
}

fn named(
    setting: &'static str,
    text: &str,
    known: &[(&'static str, SupportedCipherSuite)],
) -> Result<Vec<SupportedCipherSuite>, TlsError> {
    let words = text.split([':', ',', ' ']).filter(|word| !word.is_empty());
    let mut found: Vec<SupportedCipherSuite> = Vec::new();
    let mut add = |suite: SupportedCipherSuite| {
        if !found.contains(&suite) {
            found.push(suite);
        }
    };
    let mut nothing = true;
    for word in words {
        nothing = false;
        if let Some((_, suite)) = known.iter().find(|(name, _)| name.eq_ignore_ascii_case(word)) {
            add(*suite);
        } else if ALL.contains(&word) {
            known.iter().for_each(|(_, suite)| add(*suite));
        } else if !word.strip_prefix('!').is_some_and(|word| NONE.contains(&word)) {
            let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
            let reason = format!("'{word}' is not supported; there are {}", names.join(":"));
            return Err(TlsError::Setting { name: setting, reason });
        }
    }
    if nothing {
        known.iter().for_each(|(_, suite)| add(*suite));
    }
    if found.is_empty() {
        let reason = "it names no cipher suite".to_owned();
        return Err(TlsError::Setting { name: setting, reason });
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(tls13: &str, tls12: &str, expected: Result<usize, &str>) {
        let found = suites(tls13, tls12).map(|found| found.len());
        assert_eq!(found.map_err(|error| error.to_string()), expected.map_err(str::to_owned));
    }

    #[test]
    fn suites_have_the_names_of_openssl() {
        check("", "", Ok(9));
        check("TLS_AES_128_GCM_SHA256", "", Ok(7));
        check("", "DEFAULT:!MEDIUM", Ok(9));
        check("", "ecdhe-rsa-aes128-gcm-sha256:!aNULL", Ok(4));
        check("", "ECDHE-RSA-AES128-GCM-SHA256, ECDHE-RSA-AES256-GCM-SHA384", Ok(5));
        check("", "!MD5", Err("tls-ciphers: it names no cipher suite"));
        check(
            "TLS_AES_128_CCM_SHA256",
            "",
            Err("tls-ciphersuites: 'TLS_AES_128_CCM_SHA256' is not supported; there are \
                 TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256"),
        );
        assert!(suites("", "DHE-RSA-AES128-GCM-SHA256").is_err());
        assert!(suites("", "DEFAULT:!ECDHE").is_err());
    }

    #[test]
    fn protocols_have_the_names_of_redis() {
        let count = |text: &str| protocols(text).map(|found| found.len());
        assert_eq!(count("").unwrap(), 2);
        assert_eq!(count("TLSv1.3").unwrap(), 1);
        assert_eq!(count("tlsv1.2 TLSv1.3 TLSv1.2").unwrap(), 2);
        for bad in ["TLSv1", "TLSv1.1 TLSv1.2", "SSLv3", "1.3"] {
            assert!(protocols(bad).is_err(), "{bad}");
        }
    }
}
