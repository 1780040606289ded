//! The first messages of a link, after which each side knows that the other one belongs to it.
//!
//! ```text
//!  asks                                              answers
//!   | greeting: LADONMSH, protocol u32, 32 random bytes |
//!   | ------------------------------------------------> |
//!   | <------------------------------------------------ | greeting, the same
//!   | hello: identity, proof                            |
//!   | ------------------------------------------------> | says nothing of itself before it has
//!   | <------------------------------------------------ | seen the proof
//!   |                                   hello, the same |
//! ```
//! A proof is HMAC-SHA-256, with the cluster's secret as its key, over who of the two it is, both
//! greetings, and all hellos up to and including its own; over TLS also over a value that only the
//! two ends of that TLS session know. So a proof is good for one link, one direction and one
//! identity. Without a secret it is empty.

use crate::frame::{BadFrame, GREETING, HEAD_BYTES, HELLO, Head, REFUSAL};
use crate::identity::{IDENTITY_BYTES_MAX, Identity, Stranger};
use crate::inbox::{Side, text_of};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use std::io;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

/// The version of what this crate sends. Another one is refused.
pub const PROTOCOL: u32 = 1;

const MAGIC: &[u8; 8] = b"LADONMSH";
const GREETING_BYTES: usize = 44;
const PROOF_BYTES: usize = 32;
/// The longest body before the link is open: a hello, or a refusal.
const BODY_BYTES_MAX: usize = 1024;

const _: () = assert!(IDENTITY_BYTES_MAX + PROOF_BYTES <= BODY_BYTES_MAX);

/// Why there is no link.
#[derive(Debug, Error)]
pub(crate) enum HelloError {
    /// The connection.
    #[error(transparent)]
    Io(io::Error),
    /// TLS: the certificate of one of them, mostly.
    #[error("TLS: {0}")]
    Tls(io::Error),
    /// It has closed the connection.
    #[error("the other side closed the connection without a word; its log says why")]
    Closed,
    /// Not within the time.
    #[error("the other side did not introduce itself in time")]
    Late,
    /// The bytes are those of another protocol.
    #[error("the other side does not speak the protocol of Ladon's nodes")]
    Foreign,
    /// Another version.
    #[error(
        "this node speaks version {PROTOCOL} of the nodes' protocol, the other one version {0}"
    )]
    Protocol(u32),
    /// It does not know the secret.
    #[error("the other side does not prove that it knows the cluster's secret (cluster-secret)")]
    Secret,
    /// It belongs elsewhere.
    #[error(transparent)]
    Stranger(#[from] Stranger),
    /// The other side refuses, with this text.
    #[error("the other side refuses: {0}")]
    Refused(String),
}

impl From<io::Error> for HelloError {
    fn from(error: io::Error) -> HelloError {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => HelloError::Closed,
            _ => HelloError::Io(error),
        }
    }
}

impl HelloError {
    /// What the other side may be told. It may be anybody until it has proven something, and what
    /// is told before then holds for every node of every cluster.
    fn told(&self) -> Option<String> {
        match self {
            HelloError::Protocol(_) | HelloError::Secret | HelloError::Stranger(_) => {
                Some(self.to_string())
            }
            HelloError::Io(_)
            | HelloError::Closed
            | HelloError::Tls(_)
            | HelloError::Late
            | HelloError::Foreign
            | HelloError::Refused(_) => None,
        }
    }
}

/// What a side needs for its hello.
pub(crate) struct Introduction<'a> {
    pub(crate) side: Side,
    pub(crate) identity: &'a Identity,
    pub(crate) secret: Option<&'a [u8]>,
    /// What only the two ends of a TLS session know; empty without TLS.
    pub(crate) session: &'a [u8],
}

impl Introduction<'_> {
    /// Says who this node is, and learns who the other one is.
    pub(crate) async fn run<S>(&self, stream: &mut S) -> Result<Identity, HelloError>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let outcome = self.exchange(stream).await;
        if let Err(error) = &outcome
            && let Some(text) = error.told()
        {
            // The other side may be gone, which changes nothing.
            let _ = send(stream, REFUSAL, text.as_bytes()).await;
            let _ = stream.shutdown().await;
        }
        outcome
    }

    async fn exchange<S>(&self, stream: &mut S) -> Result<Identity, HelloError>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let ours = greeting()?;
        let mut said = self.session.to_vec();
        match self.side {
            Side::Asks => {
                send(stream, GREETING, &ours).await?;
                let theirs = receive(stream, GREETING).await?;
                check_greeting(&theirs)?;
                said.extend_from_slice(&[ours.as_slice(), &theirs].concat());
                self.say(stream, &mut said).await?;
                self.hear(stream, &mut said).await
            }
            Side::Answers => {
                let theirs = receive(stream, GREETING).await?;
                check_greeting(&theirs)?;
                send(stream, GREETING, &ours).await?;
                said.extend_from_slice(&[theirs.as_slice(), &ours].concat());
                let identity = self.hear(stream, &mut said).await?;
                self.say(stream, &mut said).await?;
                Ok(identity)
            }
        }
    }

    /// Sends this side's hello; `said` is all that was said before.
    async fn say<S>(&self, stream: &mut S, said: &mut Vec<u8>) -> Result<(), HelloError>
    where
        S: AsyncWrite + Unpin,
    {
        let mut hello = self.identity.encode();
        said.extend_from_slice(&hello);
        if let Some(secret) = self.secret {
            hello.extend_from_slice(&mac(secret, self.side, said).finalize().into_bytes());
        }
        Ok(send(stream, HELLO, &hello).await?)
    }

    async fn hear<S>(&self, stream: &mut S, said: &mut Vec<u8>) -> Result<Identity, HelloError>
    where
        S: AsyncRead + Unpin,
    {
        let hello = receive(stream, HELLO).await?;
        let (identity, proof) = Identity::decode(&hello).ok_or(HelloError::Foreign)?;
        said.extend_from_slice(&hello[..hello.len() - proof.len()]);
        let other = match self.side {
            Side::Asks => Side::Answers,
            Side::Answers => Side::Asks,
        };
        match self.secret {
            // Compares in constant time.
            Some(secret) => {
                mac(secret, other, said).verify_slice(proof).map_err(|_| HelloError::Secret)?
            }
            None if proof.is_empty() => {}
            // It has a secret, and this node could not show that it knows it.
            None => return Err(HelloError::Secret),
        }
        self.identity.judge(&identity)?;
        Ok(identity)
    }
}

fn mac(secret: &[u8], side: Side, said: &[u8]) -> Hmac<Sha256> {
    let label = match side {
        Side::Asks => b"ladon mesh asks\0\0\0",
        Side::Answers => b"ladon mesh answers",
    };
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).expect("a key may have any length");
    mac.update(label);
    mac.update(said);
    mac
}

fn greeting() -> io::Result<[u8; GREETING_BYTES]> {
    let mut bytes = [0; GREETING_BYTES];
    bytes[..8].copy_from_slice(MAGIC);
    bytes[8..12].copy_from_slice(&PROTOCOL.to_le_bytes());
    getrandom::fill(&mut bytes[12..]).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(bytes)
}

fn check_greeting(bytes: &[u8]) -> Result<(), HelloError> {
    let rest = bytes.strip_prefix(MAGIC).ok_or(HelloError::Foreign)?;
    let (protocol, rest) = rest.split_first_chunk().ok_or(HelloError::Foreign)?;
    match u32::from_le_bytes(*protocol) {
        PROTOCOL if rest.len() == GREETING_BYTES - 12 => Ok(()),
        PROTOCOL => Err(HelloError::Foreign),
        other => Err(HelloError::Protocol(other)),
    }
}

async fn send<S: AsyncWrite + Unpin>(stream: &mut S, kind: u8, body: &[u8]) -> io::Result<()> {
    let head = Head::own(kind, 0, body.len());
    stream.write_all(&[&head.encode(), body].concat()).await?;
    stream.flush().await
}

/// The body of the next frame, which has to be of this kind, or a refusal.
async fn receive<S>(stream: &mut S, kind: u8) -> Result<Vec<u8>, HelloError>
where
    S: AsyncRead + Unpin,
{
    let mut head = [0; HEAD_BYTES];
    stream.read_exact(&mut head).await?;
    let head = Head::decode(&head).map_err(|_: BadFrame| HelloError::Foreign)?;
    let is_known = [kind, REFUSAL].contains(&head.kind) && head.flags == 0;
    if !is_known || head.length as usize > BODY_BYTES_MAX {
        return Err(HelloError::Foreign);
    }
    let mut body = [0; BODY_BYTES_MAX];
    let body = &mut body[..head.length as usize];
    stream.read_exact(body).await?;
    match head.kind {
        REFUSAL => Err(HelloError::Refused(text_of(body))),
        _ => Ok(body.to_vec()),
    }
}
