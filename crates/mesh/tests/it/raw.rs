//! The other end of a link, made by hand from docs/format/mesh.md: it can break every rule.

use crate::common::identity;
use hmac::{Hmac, KeyInit as _, Mac as _};
use ladon_mesh::{HEAD_BYTES, Head, Identity};
use sha2::Sha256;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

pub const GREETING: u8 = 1;
pub const HELLO: u8 = 2;
pub const REFUSAL: u8 = 3;
pub const GIVEN_UP: u8 = 5;

pub struct Raw {
    pub stream: TcpStream,
}

pub fn greeting(protocol: u32) -> Vec<u8> {
    [&b"LADONMSH"[..], &protocol.to_le_bytes(), &[0x55; 32]].concat()
}

pub fn frame(kind: u8, flags: u8, id: u32, body: &[u8]) -> Vec<u8> {
    let head = Head { length: body.len() as u32, kind, flags, group: 0, id };
    [&head.encode(), body].concat()
}

fn proof(label: &[u8], said: &[&[u8]]) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(b"the secret of the tests").expect("any key");
    mac.update(label);
    said.iter().for_each(|said| mac.update(said));
    mac.finalize().into_bytes().to_vec()
}

impl Raw {
    pub async fn connect(address: &str) -> Raw {
        Raw { stream: TcpStream::connect(address).await.expect("a connection") }
    }

    pub async fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.expect("it takes them");
    }

    /// The next frame; `None` at the connection's end.
    pub async fn receive(&mut self) -> Option<(Head, Vec<u8>)> {
        let mut head = [0; HEAD_BYTES];
        self.stream.read_exact(&mut head).await.ok()?;
        let head = Head::decode(&head).expect("a head");
        let mut body = vec![0; head.length as usize];
        self.stream.read_exact(&mut body).await.ok()?;
        Some((head, body))
    }

    /// The text with which the other side ends the connection.
    pub async fn refusal(&mut self) -> String {
        loop {
            let (head, body) = self.receive().await.expect("a refusal before the end");
            if head.kind == REFUSAL {
                assert!(self.receive().await.is_none(), "the refusal is the last frame");
                return String::from_utf8(body).expect("text");
            }
        }
    }

    /// Says that it is member `node`, and proves that it knows the secret.
    pub async fn introduce(&mut self, identity: &Identity) -> Option<Identity> {
        let ours = greeting(1);
        self.send(&frame(GREETING, 0, 0, &ours)).await;
        let (_, theirs) = self.receive().await?;
        let hello = identity.encode();
        let proof = proof(b"ladon mesh asks\0\0\0", &[&ours, &theirs, &hello]);
        self.send(&frame(HELLO, 0, 0, &[hello, proof].concat())).await;
        let (head, body) = self.receive().await?;
        assert_eq!(head.kind, HELLO, "{}", String::from_utf8_lossy(&body));
        Some(Identity::decode(&body)?.0)
    }

    /// A link to `address`, on which this is member 2.
    pub async fn link(address: &str) -> Raw {
        let mut raw = Raw::connect(address).await;
        let other = raw.introduce(&identity(2)).await.expect("it is let in");
        assert_eq!(other, identity(other.node));
        raw
    }
}
