//! The other side: a connection to a server with TLS, blocking, for the tools of the command line.

use crate::config::TlsError;
use crate::files;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_cert_signed_by_trust_anchor};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, Error, RootCertStore,
    SignatureScheme, StreamOwned,
};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use thiserror::Error;

/// Whom the client takes for the server.
#[derive(Clone, Debug, Default)]
pub enum Trust {
    /// Whoever has a certificate of an authority for the name.
    #[default]
    Name,
    /// Whoever has a certificate of an authority, for any name, or the one in this file: the tool
    /// of a server on its own machine, which it may reach by an address without a name.
    OwnServer(PathBuf),
    /// Whoever has a certificate of an authority, for any name.
    Authority,
    /// Anybody.
    Anybody,
}

/// What a client needs, by the names of `redis-cli`.
#[derive(Clone, Debug, Default)]
pub struct ClientOptions {
    /// The authorities; without any, the system's.
    pub cacert: Option<PathBuf>,
    /// A directory of them.
    pub cacertdir: Option<PathBuf>,
    /// The client's certificate, and its key.
    pub cert: Option<(PathBuf, PathBuf)>,
    /// What opens the key.
    pub key_pass: Arc<String>,
    /// The server's name, if not the one by which it is reached.
    pub sni: Option<String>,
    /// Whom the client takes for the server.
    pub trust: Trust,
}

/// Why there is no connection.
#[derive(Debug, Error)]
pub enum ConnectError {
    /// The options cannot be used.
    #[error(transparent)]
    Options(#[from] TlsError),
    /// The server's name is none.
    #[error("'{0}' is no name of a server; --sni gives another")]
    Name(String),
    /// The handshake failed.
    #[error("TLS: {0}")]
    Handshake(io::Error),
}

/// What a client begins its connections with.
#[derive(Clone, Debug)]
pub struct Client(Arc<ClientConfig>);

impl Client {
    /// A connection to a server of this name or address, which has not said anything.
    ///
    /// # Errors
    /// See [`ConnectError`].
    pub fn begin(&self, host: &str) -> Result<ClientConnection, ConnectError> {
        let server = ServerName::try_from(host.trim_matches(['[', ']']).to_owned())
            .map_err(|_| ConnectError::Name(host.to_owned()))?;
        Ok(ClientConnection::new(Arc::clone(&self.0), server).map_err(TlsError::Tls)?)
    }
}

/// A connection with TLS.
pub type TlsStream<S> = StreamOwned<ClientConnection, S>;

impl ClientOptions {
    /// Does the handshake on a connection to `host`.
    ///
    /// # Errors
    /// See [`ConnectError`].
    pub fn connect<S: Read + Write>(
        &self,
        host: &str,
        mut stream: S,
    ) -> Result<TlsStream<S>, ConnectError> {
        let mut connection = self.client()?.begin(self.sni.as_deref().unwrap_or(host))?;
        while connection.is_handshaking() {
            connection.complete_io(&mut stream).map_err(ConnectError::Handshake)?;
        }
        Ok(StreamOwned::new(connection, stream))
    }

    /// Reads the files.
    ///
    /// # Errors
    /// One cannot be used, or there are no authorities.
    pub fn client(&self) -> Result<Client, TlsError> {
        self.config().map(Client)
    }

    fn config(&self) -> Result<Arc<ClientConfig>, TlsError> {
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()?
            .dangerous()
            .with_custom_certificate_verifier(self.verifier(provider)?);
        Ok(Arc::new(match &self.cert {
            None => builder.with_no_client_auth(),
            Some((cert, key)) => {
                let key = files::key(key, &self.key_pass)?;
                builder.with_client_auth_cert(files::chain(cert)?, key)?
            }
        }))
    }

    fn verifier(
        &self,
        provider: Arc<CryptoProvider>,
    ) -> Result<Arc<dyn ServerCertVerifier>, TlsError> {
        let own = match &self.trust {
            Trust::Anybody => return Ok(Arc::new(Anybody(provider))),
            Trust::Authority => {
                let roots = Arc::new(self.authorities()?);
                return Ok(Arc::new(OwnServer::of_authorities(roots, provider)));
            }
            Trust::OwnServer(file) => files::chain(file)?.into_iter().next(),
            Trust::Name => {
                let roots = Arc::new(self.authorities()?);
                let verifier = WebPkiServerVerifier::builder_with_provider(roots, provider).build();
                return Ok(verifier.map_err(|error| TlsError::Setting {
                    name: "cacert",
                    reason: error.to_string(),
                })?);
            }
        };
        let roots = match (&self.cacert, &self.cacertdir) {
            (None, None) => RootCertStore::empty(),
            _ => self.authorities()?,
        };
        Ok(Arc::new(OwnServer { provider, roots: Arc::new(roots), own }))
    }

    fn authorities(&self) -> Result<RootCertStore, TlsError> {
        let (file, directory) = (self.cacert.as_deref(), self.cacertdir.as_deref());
        if file.is_some() || directory.is_some() {
            return files::authorities(file, directory);
        }
        let mut store = RootCertStore::empty();
        store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if store.is_empty() {
            let path = Path::new("the system's authorities").to_owned();
            let reason = "there are none; --cacert names a file of them".to_owned();
            return Err(TlsError::File { path, reason });
        }
        Ok(store)
    }
}

/// Takes anybody who has the key of the certificate that they show.
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

/// See [`Trust::OwnServer`].
#[derive(Debug)]
pub(crate) struct OwnServer {
    provider: Arc<CryptoProvider>,
    roots: Arc<RootCertStore>,
    own: Option<CertificateDer<'static>>,
}

/// What both do as everybody does: the peer has to have the key of its certificate.
macro_rules! signatures {
    ($provider:ident) => {
        fn verify_tls12_signature(
            &self,
            message: &[u8],
            cert: &CertificateDer<'_>,
            signed: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            let algorithms = &self.$provider().signature_verification_algorithms;
            verify_tls12_signature(message, cert, signed, algorithms)
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            cert: &CertificateDer<'_>,
            signed: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            let algorithms = &self.$provider().signature_verification_algorithms;
            verify_tls13_signature(message, cert, signed, algorithms)
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            self.$provider().signature_verification_algorithms.supported_schemes()
        }
    };
}

impl Anybody {
    fn provider(&self) -> &CryptoProvider {
        &self.0
    }
}

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    signatures!(provider);
}

impl OwnServer {
    /// Takes whoever has a certificate of these, for any name.
    pub(crate) fn of_authorities(
        roots: Arc<RootCertStore>,
        provider: Arc<CryptoProvider>,
    ) -> OwnServer {
        OwnServer { provider, roots, own: None }
    }

    fn provider(&self) -> &CryptoProvider {
        &self.provider
    }
}

impl ServerCertVerifier for OwnServer {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if self.own.as_deref() == Some(end_entity.as_ref()) {
            return Ok(ServerCertVerified::assertion());
        }
        if self.roots.is_empty() {
            return Err(CertificateError::UnknownIssuer.into());
        }
        verify_server_cert_signed_by_trust_anchor(
            &ParsedCertificate::try_from(end_entity)?,
            &self.roots,
            intermediates,
            now,
            self.provider.signature_verification_algorithms.all,
        )?;
        Ok(ServerCertVerified::assertion())
    }

    signatures!(provider);
}
