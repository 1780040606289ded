//! An entry's frame in the log, as bytes.
//!
//! ```text
//!  0        8        16     17
//!  | index  | term   | why  | members ...          (why 2 only)
//!  | u64    | u64    | u8   |
//!
//! members:  configs u8, each: count u16, ids u64 ...;  nodes u16, each:
//!           id u64, flags u8 (1: witness), two addresses (members', clients'): length u16, bytes
//! ```
//! Little endian. Why: 0 cut, 1 a leader's first, 2 the members. There are two configs while they
//! change (joint consensus, Raft dissertation 4.3), otherwise one.

use crate::entry::{Cut, Member, Payload};
use crate::types::{EntryId, MemberId, Reign};
use openraft::vote::RaftLeaderId;
use openraft::{Membership, vote::leader_id_std};
use std::collections::{BTreeMap, BTreeSet};
use thiserror::Error;

/// Bytes in front of the members.
const HEAD_BYTES: usize = 17;

/// Bytes are not those of an entry; says why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("bytes of the log that are no entry of a group: {0}")]
pub struct BadEntry(pub(crate) &'static str);

/// Names a term, and so its one leader.
pub(crate) fn reign(term: u64) -> Reign {
    leader_id_std::LeaderId { term, voted_for: MemberId::default() }.to_committed()
}

/// The payload of the frame.
pub fn encode_entry(id: EntryId, payload: &Payload) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEAD_BYTES);
    out.extend_from_slice(&id.index.to_le_bytes());
    out.extend_from_slice(&id.leader_id.term.to_le_bytes());
    match payload {
        Payload::Normal(Cut) => out.push(0),
        Payload::Blank => out.push(1),
        Payload::Membership(members) => {
            out.push(2);
            encode_members(members, &mut out);
        }
    }
    out
}

/// The inverse of [`encode_entry`].
///
/// # Errors
/// [`BadEntry`] unless every byte belongs to it.
pub fn decode_entry(bytes: &[u8]) -> Result<(EntryId, Payload), BadEntry> {
    let mut rest = Rest(bytes);
    let (index, term) = (rest.u64()?, rest.u64()?);
    let payload = match rest.u8()? {
        0 => Payload::Normal(Cut),
        1 => Payload::Blank,
        2 => Payload::Membership(rest.members()?),
        _ => return Err(BadEntry("it is of an unknown kind")),
    };
    match rest.0 {
        [] => Ok((EntryId::new(reign(term), index), payload)),
        _ => Err(BadEntry("it goes on behind its end")),
    }
}

/// Flags of a member.
const WITNESS: u8 = 1;
const REPLICA: u8 = 2;

/// The members, as they stand in a frame.
pub(crate) fn encode_members(members: &Membership<MemberId, Member>, out: &mut Vec<u8>) {
    let configs = members.get_joint_config();
    out.push(configs.len() as u8);
    for config in configs {
        out.extend_from_slice(&(config.len() as u16).to_le_bytes());
        config.iter().for_each(|id| out.extend_from_slice(&id.to_le_bytes()));
    }
    out.extend_from_slice(&(members.nodes().count() as u16).to_le_bytes());
    for (id, member) in members.nodes() {
        out.extend_from_slice(&id.to_le_bytes());
        let (witness, replica) = (u8::from(member.is_witness), u8::from(member.is_replica));
        out.push((witness * WITNESS) | (replica * REPLICA));
        // Checked where members are added: a host's name has at most 253 bytes.
        for address in [&member.address, &member.client] {
            out.extend_from_slice(&(address.len() as u16).to_le_bytes());
            out.extend_from_slice(address.as_bytes());
        }
    }
}

/// The inverse of [`encode_members`]; nothing may follow.
pub(crate) fn decode_members(bytes: &[u8]) -> Result<Membership<MemberId, Member>, BadEntry> {
    let mut rest = Rest(bytes);
    let members = rest.members()?;
    if rest.0.is_empty() { Ok(members) } else { Err(BadEntry("it goes on behind its end")) }
}

/// Bytes that are not read yet.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], BadEntry> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(BadEntry("it ends too early"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], BadEntry> {
        let mut out = [0; N];
        out.copy_from_slice(self.take(N)?);
        Ok(out)
    }

    fn u8(&mut self) -> Result<u8, BadEntry> {
        Ok(u8::from_le_bytes(self.array()?))
    }

    fn u16(&mut self) -> Result<u16, BadEntry> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    fn u64(&mut self) -> Result<u64, BadEntry> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    fn address(&mut self) -> Result<String, BadEntry> {
        let length = self.u16()?;
        let address = std::str::from_utf8(self.take(length.into())?);
        Ok(address.map_err(|_| BadEntry("an address is not UTF-8"))?.to_owned())
    }

    fn members(&mut self) -> Result<Membership<MemberId, Member>, BadEntry> {
        let mut configs = Vec::new();
        for _ in 0..self.u8()? {
            let mut config = BTreeSet::new();
            for _ in 0..self.u16()? {
                config.insert(self.u64()?);
            }
            configs.push(config);
        }
        let mut nodes = BTreeMap::new();
        for _ in 0..self.u16()? {
            let id = self.u64()?;
            let flags = self.u8()?;
            let (is_witness, is_replica) = (flags & WITNESS != 0, flags & REPLICA != 0);
            if flags & !(WITNESS | REPLICA) != 0 || is_witness && is_replica {
                return Err(BadEntry("a member has unknown flags"));
            }
            let (address, client) = (self.address()?, self.address()?);
            nodes.insert(id, Member { address, client, is_witness, is_replica });
        }
        Membership::new(configs, nodes).map_err(|_| BadEntry("a voter is not among the members"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries() -> Vec<(EntryId, Payload)> {
        let nodes =
            [(1, "a:1"), (3, "b:1"), (7, "[::1]:2"), (u64::MAX, "")].map(|(id, address)| {
                let (address, client) = (address.to_owned(), format!("c{id}"));
                (id, Member { address, client, is_witness: id == 7, is_replica: id == 3 })
            });
        let configs = vec![BTreeSet::from([1]), BTreeSet::from([1, 7])];
        let members = Membership::new(configs, BTreeMap::from(nodes)).unwrap();
        let payloads = [Payload::Normal(Cut), Payload::Blank, Payload::Membership(members)];
        let ids = [(0, 0), (1 << 60, 3), (u64::MAX, u64::MAX)];
        let ids = ids.map(|(term, index)| EntryId::new(reign(term), index));
        ids.into_iter().zip(payloads).collect()
    }

    #[test]
    fn entries_read_back_and_no_part_of_one_does() {
        for (id, payload) in entries() {
            let bytes = encode_entry(id, &payload);
            assert_eq!(decode_entry(&bytes), Ok((id, payload)));
            for cut in 0..bytes.len() {
                assert!(decode_entry(&bytes[..cut]).is_err(), "{cut} bytes");
            }
            assert!(decode_entry(&[&bytes[..], &[0]].concat()).is_err());
        }
    }

    #[test]
    fn malformed_ones_are_refused() {
        let (id, payload) = entries().pop().unwrap();
        let good = encode_entry(id, &payload);
        for (at, byte) in [(16, 3), (17, 1 << 7), (18, 255), (good.len() - 23, 9)] {
            let mut bytes = good.clone();
            bytes[at] = byte;
            assert!(decode_entry(&bytes).is_err(), "byte {at}");
        }
    }
}
