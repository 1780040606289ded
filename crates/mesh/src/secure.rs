//! A connection to one that TLS has passed, if the cluster has TLS, and to one on which both sides
//! know each other.

use crate::hello::{HelloError, Introduction};
use crate::identity::{Identity, Peer, Proven};
use crate::inbox::Side;
use crate::mesh::Security;
use crate::sockets;
use ladon_tls::PeerCertificate;
use std::io;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::rustls::{CommonState, ConnectionCommon};
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// A connection, with or without TLS.
pub(crate) trait Connection: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Connection for S {}

/// What a TLS session says of itself.
struct Session {
    /// Only its two ends know it.
    key: [u8; 32],
    certificate: Option<PeerCertificate>,
}

/// Makes the connection secure, and exchanges hellos on it.
pub(crate) async fn meet(
    stream: TcpStream,
    side: Side,
    identity: &Identity,
    security: &Security,
) -> Result<(Box<dyn Connection>, Peer), HelloError> {
    if !identity.fits() {
        let text = format!("this node's address is too long: {}", identity.address);
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text).into());
    }
    sockets::set_options(&stream)?;
    let address = stream.peer_addr()?;
    let (mut stream, session): (Box<dyn Connection>, _) = match (security.tls(), side) {
        (None, _) => (Box::new(stream), None),
        (Some(tls), Side::Asks) => {
            let connector = TlsConnector::from(tls.connects.clone());
            let stream = connector.connect(address.ip().into(), stream).await;
            let stream = stream.map_err(HelloError::Tls)?;
            let session = Session::of(stream.get_ref().1)?;
            (Box::new(stream), Some(session))
        }
        (Some(tls), Side::Answers) => {
            let stream = TlsAcceptor::from(tls.accepts.clone()).accept(stream).await;
            let stream = stream.map_err(HelloError::Tls)?;
            let session = Session::of(stream.get_ref().1)?;
            (Box::new(stream), Some(session))
        }
    };
    let introduction = Introduction {
        side,
        identity,
        secret: security.secret(),
        session: session.as_ref().map_or(&[], |session| &session.key),
    };
    let identity = introduction.run(&mut stream).await?;
    let certificate = session.and_then(|session| session.certificate);
    let proven = Proven { secret: security.secret().is_some(), certificate };
    Ok((stream, Peer { identity, proven, address }))
}

impl Session {
    fn of<D, C>(connection: &C) -> Result<Session, HelloError>
    where
        C: std::ops::Deref<Target = ConnectionCommon<D>>,
    {
        let key = connection.export_keying_material([0; 32], b"EXPORTER-ladon-mesh", None);
        let key = key.map_err(|error| HelloError::Tls(io::Error::other(error)))?;
        let state: &CommonState = connection;
        let first = state.peer_certificates().and_then(<[_]>::first);
        Ok(Session { key, certificate: first.map(|der| PeerCertificate::of(der)) })
    }
}
