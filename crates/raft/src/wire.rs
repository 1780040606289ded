//! What members ask each other, as bytes.
//!
//! ```text
//! question:  what u8
//!   1 append    vote, previous, committed, count u16, each: from u64, length u32, frames of the log
//!   2 vote      vote, last, flags u8 (1: the leader has asked for it, 2: only a question)
//!   3 transfer  vote, to u64, last
//!   4 snapshot  vote, end u64, files u32, each: length u16, name, bytes u64
//!   5 part      file u32, at u64, bytes
//!   6 end       vote, index u64, term u64, members (frame.rs)
//!   7 position  (nothing more)
//! answer:    what u8
//!   1 appended;  2 appended up to: id;  3 conflict;  4 higher vote: vote
//!   5 vote      vote, granted u8, last
//!   6 transfer  understood u8;  7 taken;  8 position: is there u8, and if so: u64
//! vote:      term u64, for u64, of a leader u8
//! id:        is there u8, and if so: index u64, term u64
//! ```
//! Little endian. An entry's index, term and members stand in the last of its frames, so they are
//! not said twice. Nothing is allocated by an announced number: every length is one of bytes that
//! are there.

use crate::entry::Entry;
use crate::frame::{BadEntry, decode_members, encode_members, reign};
use crate::network::{Request, Response};
use crate::types::{EntryId, LeaderId, Vote};
use bytes::Bytes;
use ladon_record::Lsn;
use thiserror::Error;

/// The bytes are no message of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BadMessage {
    /// They end too early.
    #[error("the message ends too early")]
    Short,
    /// They go on behind its end.
    #[error("the message goes on behind its end")]
    Long,
    /// A byte has a value that this version does not know.
    #[error("the message has an unknown {0}")]
    Unknown(&'static str),
    /// Bytes of the log in it are not those of an entry.
    #[error(transparent)]
    Entry(#[from] BadEntry),
}

/// The bytes of a question.
pub fn encode_request(request: &Request) -> Vec<u8> {
    request_parts(request).concat()
}

/// The bytes of a question, in parts: those of the log or of a file are not copies.
pub fn request_parts(request: &Request) -> Vec<Bytes> {
    let (mut parts, mut out) = (Vec::new(), Vec::new());
    match request {
        Request::Append { vote, previous, committed, entries } => {
            out.push(1);
            put_vote(&mut out, vote);
            put_id(&mut out, previous);
            put_id(&mut out, committed);
            // A message has a megabyte of entries, and each at least 41 bytes.
            out.extend_from_slice(&(entries.len() as u16).to_le_bytes());
            for entry in entries {
                let from = entry.extent.map_or(Lsn::ZERO, |extent| extent.from);
                out.extend_from_slice(&from.0.to_le_bytes());
                out.extend_from_slice(&(entry.frames.len() as u32).to_le_bytes());
                parts.extend([std::mem::take(&mut out).into(), entry.frames.clone()]);
            }
        }
        Request::Vote { vote, last, is_transfer, is_question } => {
            out.push(2);
            put_vote(&mut out, vote);
            put_id(&mut out, last);
            out.push(u8::from(*is_transfer) | u8::from(*is_question) << 1);
        }
        Request::Transfer { from, to, last } => {
            out.push(3);
            put_vote(&mut out, from);
            out.extend_from_slice(&to.to_le_bytes());
            put_id(&mut out, last);
        }
        Request::SnapshotBegin { vote, end, files } => {
            out.push(4);
            put_vote(&mut out, vote);
            out.extend_from_slice(&end.0.to_le_bytes());
            out.extend_from_slice(&(files.len() as u32).to_le_bytes());
            for (name, bytes) in files {
                out.extend_from_slice(&(name.len() as u16).to_le_bytes());
                out.extend_from_slice(name.as_bytes());
                out.extend_from_slice(&bytes.to_le_bytes());
            }
        }
        Request::ReadIndex => out.push(7),
        Request::SnapshotPart { file, at, bytes } => {
            out.push(5);
            out.extend_from_slice(&file.to_le_bytes());
            out.extend_from_slice(&at.to_le_bytes());
            parts.extend([std::mem::take(&mut out).into(), bytes.clone()]);
        }
        Request::SnapshotEnd { vote, members: (id, members) } => {
            out.push(6);
            put_vote(&mut out, vote);
            out.extend_from_slice(&id.index.to_le_bytes());
            out.extend_from_slice(&id.leader_id.term.to_le_bytes());
            encode_members(members, &mut out);
        }
    }
    parts.push(out.into());
    parts
}

/// The inverse of [`encode_request`]; the entries' bytes are parts of `bytes`, not copies.
///
/// # Errors
/// [`BadMessage`].
pub fn decode_request(bytes: &Bytes) -> Result<Request, BadMessage> {
    let mut rest = Rest { all: bytes, at: 0 };
    let request = match rest.u8()? {
        1 => {
            let (vote, previous, committed) = (rest.vote()?, rest.id()?, rest.id()?);
            let mut entries = Vec::new();
            for _ in 0..rest.u16()? {
                let (from, length) = (Lsn(rest.u64()?), rest.u32()?);
                entries.push(Entry::of_frames(from, rest.part(length as usize)?)?);
            }
            Request::Append { vote, previous, committed, entries }
        }
        2 => {
            let (vote, last) = (rest.vote()?, rest.id()?);
            let flags = rest.u8()?;
            if flags > 3 {
                return Err(BadMessage::Unknown("flag"));
            }
            let (is_transfer, is_question) = (flags & 1 != 0, flags & 2 != 0);
            Request::Vote { vote, last, is_transfer, is_question }
        }
        3 => Request::Transfer { from: rest.vote()?, to: rest.u64()?, last: rest.id()? },
        4 => {
            let (vote, end) = (rest.vote()?, Lsn(rest.u64()?));
            let mut files = Vec::new();
            for _ in 0..rest.u32()? {
                let length = rest.u16()?;
                let name = rest.part(length.into())?;
                let name = str::from_utf8(&name).map_err(|_| BadMessage::Unknown("name"))?;
                files.push((name.to_owned(), rest.u64()?));
            }
            Request::SnapshotBegin { vote, end, files }
        }
        5 => {
            let (file, at) = (rest.u32()?, rest.u64()?);
            let bytes = rest.part(rest.all.len() - rest.at)?;
            Request::SnapshotPart { file, at, bytes }
        }
        6 => {
            let vote = rest.vote()?;
            let (index, term) = (rest.u64()?, rest.u64()?);
            let members = rest.part(rest.all.len() - rest.at)?;
            let members = decode_members(&members)?;
            Request::SnapshotEnd { vote, members: (EntryId::new(reign(term), index), members) }
        }
        7 => Request::ReadIndex,
        _ => return Err(BadMessage::Unknown("question")),
    };
    rest.end().map(|()| request)
}

/// The bytes of an answer.
pub fn encode_response(response: &Response) -> Vec<u8> {
    let mut out = Vec::new();
    match response {
        Response::Appended => out.push(1),
        Response::AppendedUpTo(upto) => {
            out.push(2);
            put_id(&mut out, upto);
        }
        Response::Conflict => out.push(3),
        Response::HigherVote(vote) => {
            out.push(4);
            put_vote(&mut out, vote);
        }
        Response::Vote { vote, granted, last } => {
            out.push(5);
            put_vote(&mut out, vote);
            out.push(u8::from(*granted));
            put_id(&mut out, last);
        }
        Response::Transfer(understood) => out.extend_from_slice(&[6, u8::from(*understood)]),
        Response::SnapshotTaken => out.push(7),
        Response::Position(position) => {
            out.extend_from_slice(&[8, u8::from(position.is_some())]);
            if let Some(position) = position {
                out.extend_from_slice(&position.0.to_le_bytes());
            }
        }
    }
    out
}

/// The inverse of [`encode_response`].
///
/// # Errors
/// [`BadMessage`].
pub fn decode_response(bytes: &Bytes) -> Result<Response, BadMessage> {
    let mut rest = Rest { all: bytes, at: 0 };
    let response = match rest.u8()? {
        1 => Response::Appended,
        2 => Response::AppendedUpTo(rest.id()?),
        3 => Response::Conflict,
        4 => Response::HigherVote(rest.vote()?),
        5 => Response::Vote { vote: rest.vote()?, granted: rest.flag()?, last: rest.id()? },
        6 => Response::Transfer(rest.flag()?),
        7 => Response::SnapshotTaken,
        8 => Response::Position(if rest.flag()? { Some(Lsn(rest.u64()?)) } else { None }),
        _ => return Err(BadMessage::Unknown("answer")),
    };
    rest.end().map(|()| response)
}

fn put_vote(out: &mut Vec<u8>, vote: &Vote) {
    out.extend_from_slice(&vote.leader_id.term.to_le_bytes());
    out.extend_from_slice(&vote.leader_id.voted_for.to_le_bytes());
    out.push(u8::from(vote.committed));
}

fn put_id(out: &mut Vec<u8>, id: &Option<EntryId>) {
    out.push(u8::from(id.is_some()));
    if let Some(id) = id {
        out.extend_from_slice(&id.index.to_le_bytes());
        out.extend_from_slice(&id.leader_id.term.to_le_bytes());
    }
}

/// Bytes that are not read yet.
struct Rest<'a> {
    all: &'a Bytes,
    at: usize,
}

impl Rest<'_> {
    fn part(&mut self, count: usize) -> Result<Bytes, BadMessage> {
        let end = self.at.checked_add(count).ok_or(BadMessage::Short)?;
        if end > self.all.len() {
            return Err(BadMessage::Short);
        }
        let part = self.all.slice(self.at..end);
        self.at = end;
        Ok(part)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], BadMessage> {
        let array = self.all[self.at..].first_chunk().ok_or(BadMessage::Short)?;
        self.at += N;
        Ok(*array)
    }

    fn u8(&mut self) -> Result<u8, BadMessage> {
        Ok(u8::from_le_bytes(self.array()?))
    }

    fn u16(&mut self) -> Result<u16, BadMessage> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    fn u32(&mut self) -> Result<u32, BadMessage> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    fn u64(&mut self) -> Result<u64, BadMessage> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    fn flag(&mut self) -> Result<bool, BadMessage> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(BadMessage::Unknown("flag")),
        }
    }

    fn vote(&mut self) -> Result<Vote, BadMessage> {
        let leader_id = LeaderId { term: self.u64()?, voted_for: self.u64()? };
        Ok(Vote { leader_id, committed: self.flag()? })
    }

    fn id(&mut self) -> Result<Option<EntryId>, BadMessage> {
        if !self.flag()? {
            return Ok(None);
        }
        let (index, term) = (self.u64()?, self.u64()?);
        Ok(Some(EntryId::new(reign(term), index)))
    }

    fn end(&self) -> Result<(), BadMessage> {
        if self.at == self.all.len() { Ok(()) } else { Err(BadMessage::Long) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::{Extent, Member, Payload};
    use crate::frame::encode_entry;
    use ladon_log::frame::{FrameKind, encode_frame};

    fn vote() -> Vote {
        Vote { leader_id: LeaderId { term: 1 << 40, voted_for: 7 }, committed: true }
    }

    fn id(index: u64) -> Option<EntryId> {
        Some(EntryId::new(reign(3), index))
    }

    fn entry(index: u64, from: u64, records: &[&[u8]]) -> Entry {
        let (mut frames, mut at) = (Vec::new(), Lsn(from));
        let id = id(index).unwrap();
        let payload = if index == 0 { Payload::Blank } else { Payload::Normal(crate::Cut) };
        let last = encode_entry(id, &payload);
        let records = records.iter().map(|record| (FrameKind::Changes, *record));
        for (kind, payload) in records.chain([(FrameKind::Entry, &last[..])]) {
            let frame = encode_frame(kind, 1, 7, at, payload);
            at = Lsn(at.0 + frame.len() as u64);
            frames.extend(frame);
        }
        let extent = Some(Extent { from: Lsn(from), to: at });
        Entry { id, payload, extent, frames: Bytes::from(frames) }
    }

    fn requests() -> Vec<Request> {
        let files = vec![("meta".to_owned(), 64), ("x.log".to_owned(), u64::MAX)];
        let member = Member { address: "a:1".to_owned(), ..Member::default() };
        let members = openraft::Membership::from(std::collections::BTreeMap::from([(3, member)]));
        let entries = vec![entry(0, 100, &[]), entry(1, 141, &[b"one", b""])];
        vec![
            Request::Append { vote: vote(), previous: None, committed: id(2), entries },
            Request::Append { vote: vote(), previous: id(1), committed: None, entries: vec![] },
            Request::Vote { vote: vote(), last: id(9), is_transfer: true, is_question: false },
            Request::Vote { vote: vote(), last: None, is_transfer: false, is_question: true },
            Request::Transfer { from: vote(), to: u64::MAX, last: id(0) },
            Request::ReadIndex,
            Request::SnapshotBegin { vote: vote(), end: Lsn(77), files },
            Request::SnapshotEnd { vote: vote(), members: (id(4).unwrap(), members) },
        ]
    }

    fn responses() -> Vec<Response> {
        vec![
            Response::Appended,
            Response::AppendedUpTo(id(4)),
            Response::Conflict,
            Response::HigherVote(vote()),
            Response::Vote { vote: vote(), granted: true, last: None },
            Response::Transfer(false),
            Response::Position(None),
            Response::Position(Some(Lsn(1 << 40))),
            Response::SnapshotTaken,
        ]
    }

    #[test]
    fn messages_read_back_and_no_part_of_one_does() {
        for request in requests() {
            let bytes = Bytes::from(encode_request(&request));
            assert_eq!(decode_request(&bytes).unwrap(), request);
            for cut in 0..bytes.len() {
                assert!(decode_request(&bytes.slice(..cut)).is_err(), "{cut} bytes");
            }
            let longer = Bytes::from([&bytes[..], &[0]].concat());
            let told = decode_request(&longer).unwrap_err();
            assert!(matches!(told, BadMessage::Long | BadMessage::Entry(_)), "{told}");
        }
        for response in responses() {
            let bytes = Bytes::from(encode_response(&response));
            assert_eq!(decode_response(&bytes).unwrap(), response);
            for cut in 0..bytes.len() {
                assert!(decode_response(&bytes.slice(..cut)).is_err(), "{cut} bytes");
            }
        }
    }

    #[test]
    fn a_part_of_a_file_is_all_that_follows() {
        let part = Request::SnapshotPart { file: 3, at: 1 << 33, bytes: Bytes::from("abc") };
        let bytes = Bytes::from(encode_request(&part));
        assert_eq!(decode_request(&bytes).unwrap(), part);
        assert!(decode_request(&bytes.slice(..12)).is_err());
    }

    #[test]
    fn bytes_that_are_no_extent_are_refused() {
        let one = entry(1, 0, &[b"x"]);
        let two = [&one.frames[..], &entry(2, one.frames.len() as u64, &[]).frames].concat();
        let changes = encode_frame(FrameKind::Changes, 1, 7, Lsn::ZERO, b"x");
        for (from, frames, found) in [
            (0, two, "an entry within one"),
            (1, one.frames.to_vec(), "a frame is not in its place"),
            (0, changes.clone(), "its frame is not there"),
            (0, changes[..24].to_vec(), "a frame is cut"),
        ] {
            let told = Entry::of_frames(Lsn(from), Bytes::from(frames)).unwrap_err();
            assert_eq!(told, BadEntry(found));
        }
    }
}
