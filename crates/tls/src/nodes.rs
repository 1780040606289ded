//! TLS between the nodes of a cluster: each shows its certificate, and takes those of the cluster's
//! authority.

use crate::client::OwnServer;
use crate::config::{TlsError, TlsOptions};
use rustls::client::Resumption;
use rustls::crypto::ring;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::sign::SingleCertAndKey;
use rustls::version::TLS13;
use rustls::{ClientConfig, ServerConfig};
use std::sync::Arc;

/// What rustls needs at both ends.
#[derive(Clone, Debug)]
pub struct NodeTls {
    /// For the node that is connected to.
    pub accepts: Arc<ServerConfig>,
    /// For the node that connects.
    pub connects: Arc<ClientConfig>,
}

impl TlsOptions {
    /// Reads the files and puts together what two nodes of a cluster need: TLS 1.3, a certificate
    /// of the authority from either, for whatever name, since nodes reach each other by address.
    /// So the authority has to be the cluster's own: whoever has a certificate of it is let in.
    /// Of these options it takes the files alone.
    ///
    /// # Errors
    /// See [`TlsError`].
    pub fn load_nodes(&self) -> Result<NodeTls, TlsError> {
        let provider = Arc::new(ring::default_provider());
        let roots = Arc::new(self.authorities()?);
        let key = Arc::new(SingleCertAndKey::from(self.certified_key(&provider)?));
        let clients = WebPkiClientVerifier::builder_with_provider(roots.clone(), provider.clone());
        let clients = clients.build().map_err(|error| TlsError::Setting {
            name: "tls-ca-cert-file",
            reason: error.to_string(),
        })?;
        let mut accepts = ServerConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&[&TLS13])?
            .with_client_cert_verifier(clients)
            .with_cert_resolver(key.clone());
        // Every link shows its certificates: one that was taken away is not let in by a ticket.
        accepts.session_storage = Arc::new(NoServerSessionStorage {});
        accepts.send_tls13_tickets = 0;
        let servers = OwnServer::of_authorities(roots, provider.clone());
        let mut connects = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13])?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(servers))
            .with_client_cert_resolver(key);
        connects.resumption = Resumption::disabled();
        connects.enable_sni = false;
        Ok(NodeTls { accepts: Arc::new(accepts), connects: Arc::new(connects) })
    }
}
