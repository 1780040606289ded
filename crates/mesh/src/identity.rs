//! Who a node is, in its own words and proven.

use ladon_tls::PeerCertificate;
use std::net::SocketAddr;
use thiserror::Error;

/// Bytes of an address: a name of DNS, a colon and a port.
const ADDRESS_BYTES_MAX: usize = 260;
/// Bytes of an identity before the address.
const FIXED_BYTES: usize = 46;
/// Bytes of an identity at most.
pub(crate) const IDENTITY_BYTES_MAX: usize = FIXED_BYTES + ADDRESS_BYTES_MAX;

/// What a node says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// Which cluster it belongs to; zeros for none yet.
    pub cluster: [u8; 16],
    /// Which member it is; 0 for none yet.
    pub node: u64,
    /// Random at each start.
    pub incarnation: u64,
    /// How others reach its mesh, `HOST:PORT`.
    pub address: String,
    /// What version its messages have. The mesh carries it and does not judge it.
    pub version: u32,
    /// What it can do, as bits. The mesh carries them and does not judge them.
    pub features: u64,
}

/// What proved that a node belongs to the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proven {
    /// It knows the cluster's secret.
    pub secret: bool,
    /// It has this certificate of the cluster's authority, and the key of it.
    pub certificate: Option<PeerCertificate>,
}

/// The other side of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// What it says of itself. Whoever has the secret or a certificate may say anything here.
    pub identity: Identity,
    /// What it has proven.
    pub proven: Proven,
    /// Where its end of the connection is.
    pub address: SocketAddr,
}

/// Why the other side is not taken for a node of this cluster.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum Stranger {
    /// Of another cluster.
    #[error("this node belongs to cluster {ours}, the other one to cluster {theirs}")]
    Cluster {
        /// This node's cluster.
        ours: String,
        /// The other one's.
        theirs: String,
    },
    /// It is this process.
    #[error("the address leads back to this node ({0})")]
    Itself(String),
    /// It says that it is this member.
    #[error(
        "both nodes say that they are member {0}; a node's data directory may not be used for \
         another one"
    )]
    SameMember(u64),
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Identity {
    /// Whether the other node may talk to this one.
    pub(crate) fn judge(&self, other: &Identity) -> Result<(), Stranger> {
        const NONE: [u8; 16] = [0; 16];
        if other.incarnation == self.incarnation {
            return Err(Stranger::Itself(other.address.clone()));
        }
        let both_have = self.cluster != NONE && other.cluster != NONE;
        if both_have && self.cluster != other.cluster {
            let (ours, theirs) = (hex(&self.cluster), hex(&other.cluster));
            return Err(Stranger::Cluster { ours, theirs });
        }
        if self.node != 0 && self.node == other.node {
            return Err(Stranger::SameMember(self.node));
        }
        Ok(())
    }

    /// The bytes of it.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(FIXED_BYTES + self.address.len());
        out.extend_from_slice(&self.cluster);
        out.extend_from_slice(&self.node.to_le_bytes());
        out.extend_from_slice(&self.incarnation.to_le_bytes());
        out.extend_from_slice(&self.version.to_le_bytes());
        out.extend_from_slice(&self.features.to_le_bytes());
        out.extend_from_slice(&(self.address.len() as u16).to_le_bytes());
        out.extend_from_slice(self.address.as_bytes());
        out
    }

    /// Whether its address fits into a message.
    pub(crate) fn fits(&self) -> bool {
        self.address.len() <= ADDRESS_BYTES_MAX
    }

    /// The inverse of [`Identity::encode`], and the bytes behind it; `None` for anything else.
    pub fn decode(bytes: &[u8]) -> Option<(Identity, &[u8])> {
        let (cluster, rest) = bytes.split_first_chunk()?;
        let (node, rest) = rest.split_first_chunk()?;
        let (incarnation, rest) = rest.split_first_chunk()?;
        let (version, rest) = rest.split_first_chunk()?;
        let (features, rest) = rest.split_first_chunk()?;
        let (length, rest) = rest.split_first_chunk()?;
        let (address, rest) = rest.split_at_checked(u16::from_le_bytes(*length).into())?;
        let address = str::from_utf8(address).ok()?;
        if address.len() > ADDRESS_BYTES_MAX || address.contains(char::is_control) {
            return None;
        }
        let identity = Identity {
            cluster: *cluster,
            node: u64::from_le_bytes(*node),
            incarnation: u64::from_le_bytes(*incarnation),
            address: address.to_owned(),
            version: u32::from_le_bytes(*version),
            features: u64::from_le_bytes(*features),
        };
        Some((identity, rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity() -> Identity {
        Identity {
            cluster: [1; 16],
            node: 2,
            incarnation: 3,
            address: "db.example:16379".to_owned(),
            version: 4,
            features: 5,
        }
    }

    #[test]
    fn an_identity_is_read_as_it_was_written() {
        let bytes = [identity().encode(), b"rest".to_vec()].concat();
        assert_eq!(Identity::decode(&bytes), Some((identity(), &b"rest"[..])));
        for end in 0..bytes.len() - 4 {
            assert_eq!(Identity::decode(&bytes[..end]), None);
        }
        let long = Identity { address: "a".repeat(261), ..identity() };
        assert!(!long.fits());
        assert_eq!(Identity::decode(&long.encode()), None);
        let odd = Identity { address: "a\nb".to_owned(), ..identity() };
        assert_eq!(Identity::decode(&odd.encode()), None);
    }

    #[test]
    fn others_belong_and_this_node_and_other_clusters_do_not() {
        let other = Identity { node: 7, incarnation: 8, ..identity() };
        assert_eq!(identity().judge(&other), Ok(()));
        let new = Identity { cluster: [0; 16], node: 0, ..other.clone() };
        assert_eq!((identity().judge(&new), new.judge(&identity())), (Ok(()), Ok(())));
        let text = |other: &Identity| identity().judge(other).unwrap_err().to_string();
        assert_eq!(text(&identity()), "the address leads back to this node (db.example:16379)");
        assert_eq!(
            text(&Identity { cluster: [0xab; 16], ..other.clone() }),
            "this node belongs to cluster 01010101010101010101010101010101, the other one to \
             cluster abababababababababababababababab"
        );
        assert_eq!(
            text(&Identity { node: 2, ..other }),
            "both nodes say that they are member 2; a node's data directory may not be used for \
             another one"
        );
    }
}
