//! Who connects to this node.

use crate::answering::answer;
use crate::hello::{HelloError, Introduction};
use crate::identity::{Identity, Peer, Proven};
use crate::inbox::Side;
use crate::mesh::{Limits, Security, Service, socket_options};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// What a connection meets here.
pub(crate) struct Reception<V> {
    pub(crate) identity: Identity,
    pub(crate) security: Security,
    pub(crate) limits: Limits,
    pub(crate) service: Arc<V>,
}

impl<V: Service> Reception<V> {
    /// From the connection to its end.
    pub(crate) async fn receive(self, stream: TcpStream, address: SocketAddr) {
        let mut stream = stream;
        match timeout(self.limits.hello_time, self.introduce(&mut stream, address)).await {
            Ok(Ok(peer)) => {
                let ended = answer(stream, peer, self.service, &self.limits).await;
                tracing::debug!("link of {address} ended: {ended}");
            }
            Ok(Err(error)) => tracing::warn!("{address} is not let in: {error}"),
            Err(_) => tracing::warn!("{address} is not let in: {}", HelloError::Late),
        }
    }

    async fn introduce(
        &self,
        stream: &mut TcpStream,
        address: SocketAddr,
    ) -> Result<Peer, HelloError> {
        socket_options(stream)?;
        let Security::Secret(secret) = &self.security;
        let introduction = Introduction {
            side: Side::Answers,
            identity: &self.identity,
            secret: Some(secret),
            session: &[],
        };
        let identity = introduction.run(stream).await?;
        let proven = Proven { secret: true, certificate: false };
        Ok(Peer { identity, proven, address })
    }
}
