//! From settings to what rustls needs. Whatever is wrong is said with the setting or the file.

use crate::{ciphers, files, tickets};
use rustls::ServerConfig;
use rustls::crypto::{CryptoProvider, ring};
use rustls::server::{NoServerSessionStorage, ServerSessionMemoryCache, WebPkiClientVerifier};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use thiserror::Error;

/// What rustls needs; a new one for every change.
pub type Config = Arc<ServerConfig>;

/// Whether clients have to show a certificate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AuthClients {
    /// They are asked for none.
    No,
    /// Only clients with a certificate of the authorities are let in.
    #[default]
    Yes,
    /// Clients may show one, which has to be valid.
    Optional,
}

/// Redis' settings of TLS, by their names there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "as in the settings' table")]
pub struct TlsOptions {
    pub cert_file: PathBuf,
    pub key_file: PathBuf,
    pub key_file_pass: Arc<String>,
    pub ca_cert_file: PathBuf,
    pub ca_cert_dir: PathBuf,
    pub auth_clients: AuthClients,
    pub protocols: String,
    pub ciphersuites: String,
    pub ciphers: String,
    pub prefer_server_ciphers: bool,
    pub session_caching: bool,
    pub session_cache_size: usize,
    /// Seconds.
    pub session_cache_timeout: u32,
}

/// Why the settings of TLS cannot be used.
#[derive(Debug, Error)]
pub enum TlsError {
    /// A file cannot be read, or is not what it should be.
    #[error("{}: {reason}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A setting is missing or has a value that cannot be used.
    #[error("{name}: {reason}")]
    Setting {
        /// The setting.
        name: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// rustls refuses all of it together.
    #[error(transparent)]
    Tls(#[from] rustls::Error),
}

impl TlsOptions {
    /// Reads the files and puts together what rustls needs.
    ///
    /// # Errors
    /// See [`TlsError`].
    pub fn load(&self) -> Result<Config, TlsError> {
        let suites = ciphers::suites(&self.ciphersuites, &self.ciphers)?;
        let versions = ciphers::protocols(&self.protocols)?;
        let provider =
            Arc::new(CryptoProvider { cipher_suites: suites, ..ring::default_provider() });
        let key = self.certified_key(&provider)?;
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&versions)?;
        let builder = match self.auth_clients {
            AuthClients::No => {
                // Nobody needs them yet, but what cannot be used is said now, as in Redis.
                if self.has_authorities() {
                    self.authorities()?;
                }
                builder.with_no_client_auth()
            }
            auth => {
                let verifier = WebPkiClientVerifier::builder_with_provider(
                    Arc::new(self.authorities()?),
                    provider,
                );
                let verifier = match auth {
                    AuthClients::Optional => verifier.allow_unauthenticated(),
                    _ => verifier,
                };
                let verifier = verifier.build().map_err(|error| TlsError::Setting {
                    name: "tls-ca-cert-file",
                    reason: error.to_string(),
                })?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let mut config = builder.with_cert_resolver(Arc::new(SingleCertAndKey::from(key)));
        config.ignore_client_order = self.prefer_server_ciphers;
        if self.session_caching {
            config.ticketer = tickets::ticketer(self.session_cache_timeout)?;
            // For clients of TLS 1.2 that take no tickets.
            config.session_storage = ServerSessionMemoryCache::new(self.session_cache_size);
        } else {
            config.session_storage = Arc::new(NoServerSessionStorage {});
            config.send_tls13_tickets = 0;
        }
        Ok(Arc::new(config))
    }

    pub(crate) fn certified_key(
        &self,
        provider: &CryptoProvider,
    ) -> Result<CertifiedKey, TlsError> {
        let certificate = named("tls-cert-file", &self.cert_file)?;
        let key_file = named("tls-key-file", &self.key_file)?;
        let chain = files::chain(certificate)?;
        let key = files::key(key_file, &self.key_file_pass)?;
        let bad = |reason: String| TlsError::File { path: key_file.to_owned(), reason };
        let key = provider.key_provider.load_private_key(key);
        let key = CertifiedKey::new(chain, key.map_err(|error| bad(error.to_string()))?);
        match key.keys_match() {
            Err(rustls::Error::InconsistentKeys(rustls::InconsistentKeys::KeyMismatch)) => {
                Err(bad(format!("it is not the key of {}", certificate.display())))
            }
            // An old form of certificate cannot be compared; clients judge it.
            _ => Ok(key),
        }
    }

    fn has_authorities(&self) -> bool {
        !self.ca_cert_file.as_os_str().is_empty() || !self.ca_cert_dir.as_os_str().is_empty()
    }

    pub(crate) fn authorities(&self) -> Result<rustls::RootCertStore, TlsError> {
        let present = |path: &PathBuf| !path.as_os_str().is_empty();
        let file = Some(self.ca_cert_file.as_path()).filter(|_| present(&self.ca_cert_file));
        let directory = Some(self.ca_cert_dir.as_path()).filter(|_| present(&self.ca_cert_dir));
        if file.is_none() && directory.is_none() {
            return Err(TlsError::Setting {
                name: "tls-ca-cert-file",
                reason: "Either tls-ca-cert-file or tls-ca-cert-dir must be specified when \
                         tls-auth-clients is enabled!"
                    .to_owned(),
            });
        }
        files::authorities(file, directory)
    }
}

fn named<'a>(name: &'static str, path: &'a Path) -> Result<&'a Path, TlsError> {
    if path.as_os_str().is_empty() {
        return Err(TlsError::Setting { name, reason: format!("No {name} configured!") });
    }
    Ok(path)
}
