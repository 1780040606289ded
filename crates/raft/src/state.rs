//! What a member must not forget besides its log: its vote, and who belongs to the group.
//!
//! ```text
//! group:
//!  0        8        12      16       24     32     40      48         56       60    64
//!  | magic  | format | zeros | dir id | term | for  | flags | member   | body's | crc | body
//!  | 8 bytes| u32    |       | u64    | u64  | u64  | u64   | u64      | crc    |     |
//!
//!  body: id of the cluster (16 bytes), with flag 4 the LSN up to which the log came before the group
//!        (u64), then for each of the last changes of the members, the newest first:
//!        index u64, term u64, length u32, members (frame.rs)
//!
//! committed:
//!  0        8        12      16       24      32     40     48      60    64
//!  | magic  | format | zeros | dir id | index | term | LSN  | zeros | crc |
//! ```
//! Little endian; flags: 1 there is a vote, 2 it is that of a leader, 4 the log came before the group,
//! 8 the member is a witness: the directory has the log and no data. A witness's `group` has format 2,
//! so that a version which knows none does not take it for a member with data.
//!
//! **Invariants:** `group` is replaced as a whole, and is on the disk before anybody is told of the
//! vote. `committed` is written in place and never synced: an old one is true as well, and one that
//! is torn counts as none.

use crate::entry::Member;
use crate::frame::{decode_members, encode_members, reign};
use crate::types::{EntryId, LeaderId, MemberId, Vote};
use ladon_log::reader::read_full;
use ladon_log::{Meta, crc32c};
use ladon_platform::{Disk, DiskFile};
use ladon_record::Lsn;
use openraft::Membership;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The format of both files.
pub const GROUP_FORMAT: u32 = 1;

/// The format of the file `group` of a witness.
const WITNESS_FORMAT: u32 = 2;

const GROUP_MAGIC: [u8; 8] = *b"LADONGRP";
const COMMITTED_MAGIC: [u8; 8] = *b"LADONCMT";
const HEAD_BYTES: usize = 64;
const THERE_IS_A_VOTE: u64 = 1;
const OF_A_LEADER: u64 = 2;
const LOG_CAME_BEFORE: u64 = 4;
const IS_WITNESS: u64 = 8;

/// So many changes of the members are kept at least: at most one of them is not committed.
const CHANGES_KEPT: usize = 16;

/// A change of the members, and the entry that it is.
pub type MembersChange = (EntryId, Membership<MemberId, Member>);

/// Tells a cluster from all others; zeros: none.
pub type ClusterId = [u8; 16];

/// The two files of a directory.
pub struct GroupState {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    dir_id: u64,
    kept: Kept,
    committed: Option<(EntryId, Lsn)>,
    committed_file: Box<dyn DiskFile>,
}

#[derive(Clone, Default)]
struct Kept {
    cluster: ClusterId,
    member: MemberId,
    is_witness: bool,
    begins: Lsn,
    vote: Option<Vote>,
    changes: Vec<MembersChange>,
}

impl GroupState {
    /// Reads the files of this directory, or begins them.
    ///
    /// # Errors
    /// `InvalidData` if `group` is damaged: the vote is lost then, and the node must not vote under
    /// its number again. Else what the system says.
    pub fn open(disk: Arc<dyn Disk>, dir: &Path, dir_id: u64) -> io::Result<GroupState> {
        let kept = GroupState::kept(&*disk, dir, dir_id)?;
        let path = dir.join("committed");
        let committed = read(&*disk, &path)?.and_then(|bytes| decode_committed(&bytes, dir_id));
        let committed_file = match disk.create_new(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => disk.open(&path)?,
            other => other?,
        };
        let dir = dir.to_owned();
        Ok(GroupState { disk, dir, dir_id, kept, committed, committed_file })
    }

    /// The member whose directory this is, and whether it is a witness; 0 if it is nobody's. Changes
    /// nothing.
    ///
    /// # Errors
    /// As [`GroupState::open`].
    pub fn member_of(disk: &dyn Disk, dir: &Path, dir_id: u64) -> io::Result<(MemberId, bool)> {
        GroupState::kept(disk, dir, dir_id).map(|kept| (kept.member, kept.is_witness))
    }

    /// The directory gets the identity that the file `meta` has, which may be another one: what the
    /// member must not forget is the same.
    ///
    /// # Errors
    /// As [`GroupState::open`].
    pub(crate) fn adopt(disk: &dyn Disk, dir: &Path, meta: &Path) -> io::Result<()> {
        let wrong = || {
            let text = format!("{} is no data directory's meta file", meta.display());
            io::Error::new(io::ErrorKind::InvalidData, text)
        };
        let bytes = read(disk, meta)?.ok_or_else(wrong)?;
        let meta = Meta::decode(&bytes).map_err(|_| wrong())?;
        let path = dir.join("group");
        let Some(bytes) = read(disk, &path)? else { return Ok(()) };
        // The identity stands in its header; a checksum tells whether the rest is whole.
        let before = bytes.get(16..24).and_then(|id| id.try_into().ok()).map(u64::from_le_bytes);
        let kept = GroupState::kept(disk, dir, before.unwrap_or_default())?;
        disk.replace(&path, &dir.join("group.tmp"), &encode_group(&kept, meta.dir_id))
    }

    fn kept(disk: &dyn Disk, dir: &Path, dir_id: u64) -> io::Result<Kept> {
        let path = dir.join("group");
        let Some(bytes) = read(disk, &path)? else { return Ok(Kept::default()) };
        decode_group(&bytes, dir_id).map_err(|found| {
            let text = format!(
                "{} is damaged: {found}; this node's vote is lost with it, so it may not come \
                 back under its number: replace the node",
                path.display()
            );
            io::Error::new(io::ErrorKind::InvalidData, text)
        })
    }

    /// This node's number in its group; 0 if it belongs to none.
    pub fn member(&self) -> MemberId {
        self.kept.member
    }

    /// The cluster that this node belongs to.
    pub fn cluster(&self) -> ClusterId {
        self.kept.cluster
    }

    /// Whether this node keeps the log and has no data.
    pub fn is_witness(&self) -> bool {
        self.kept.is_witness
    }

    /// Up to here the log came before the group: none of its entries has that.
    pub fn begins(&self) -> Lsn {
        self.kept.begins
    }

    /// The node belongs to a group of a cluster from now on. What its log has up to `begins` came
    /// before.
    ///
    /// # Errors
    /// What the system says; nothing has changed then.
    pub fn set_member(
        &mut self,
        cluster: ClusterId,
        member: MemberId,
        begins: Lsn,
    ) -> io::Result<()> {
        self.replace(Kept { cluster, member, begins, ..self.kept.clone() })
    }

    /// As [`GroupState::set_member`], for a node without data, which is to have none.
    ///
    /// # Errors
    /// As [`GroupState::set_member`].
    pub fn set_witness(&mut self, cluster: ClusterId, member: MemberId) -> io::Result<()> {
        self.replace(Kept { cluster, member, is_witness: true, ..self.kept.clone() })
    }

    /// The directory is no member's any more: a server may have it for itself, or begin a cluster with
    /// it. Nobody may use it meanwhile.
    ///
    /// # Errors
    /// What the system says.
    pub fn forget(disk: &dyn Disk, dir: &Path) -> io::Result<()> {
        // A note without a group says nothing; a group without a note is a member still.
        for name in ["committed", "group"] {
            match disk.remove(&dir.join(name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => disk.sync_dir(dir)?,
            }
        }
        Ok(())
    }

    /// The last vote.
    pub fn vote(&self) -> Option<Vote> {
        self.kept.vote
    }

    /// The vote is on the disk when this returns.
    ///
    /// # Errors
    /// As [`GroupState::set_member`].
    pub fn save_vote(&mut self, vote: Vote) -> io::Result<()> {
        self.replace(Kept { vote: Some(vote), ..self.kept.clone() })
    }

    /// The last changes of the members that this node applied, the newest first.
    pub fn changes(&self) -> &[MembersChange] {
        &self.kept.changes
    }

    /// Notes a change of the members that was applied. `needed`: the entry that covers the newest
    /// checkpoint. The members as of that one, or of a later checkpoint, may be asked for at any time,
    /// so the last change up to it is kept, and all that follow.
    ///
    /// # Errors
    /// As [`GroupState::set_member`].
    pub fn save_change(
        &mut self,
        change: MembersChange,
        needed: Option<EntryId>,
    ) -> io::Result<()> {
        let mut kept = self.kept.clone();
        kept.changes.retain(|(id, _)| id.index < change.0.index);
        kept.changes.insert(0, change);
        let is_needed = |&(id, _): &MembersChange| needed.is_some_and(|needed| id <= needed);
        let needed = kept.changes.iter().position(is_needed).map_or(0, |at| at + 1);
        kept.changes.truncate(needed.max(CHANGES_KEPT));
        if encode_group(&kept, self.dir_id).len() as u64 > FILE_BYTES_MAX {
            // Thousands without a checkpoint: the vote must stay readable.
            kept.changes.truncate(CHANGES_KEPT);
        }
        self.replace(kept)
    }

    /// How far the group's log was known to be committed, and where that is in the log.
    pub fn committed(&self) -> Option<(EntryId, Lsn)> {
        self.committed
    }

    /// Notes how far the log is committed.
    ///
    /// # Errors
    /// What the system says.
    pub fn save_committed(&mut self, id: EntryId, end: Lsn) -> io::Result<()> {
        let mut out = head(COMMITTED_MAGIC, GROUP_FORMAT, self.dir_id);
        out[24..32].copy_from_slice(&id.index.to_le_bytes());
        out[32..40].copy_from_slice(&id.leader_id.term.to_le_bytes());
        out[40..48].copy_from_slice(&end.0.to_le_bytes());
        seal(&mut out);
        self.committed_file.write_all_at(&out, 0)?;
        self.committed = Some((id, end));
        Ok(())
    }

    fn replace(&mut self, kept: Kept) -> io::Result<()> {
        let bytes = encode_group(&kept, self.dir_id);
        let (path, temporary) = (self.dir.join("group"), self.dir.join("group.tmp"));
        self.disk.replace(&path, &temporary, &bytes)?;
        self.kept = kept;
        Ok(())
    }
}

/// Sixteen changes of some hundred members each fit, and thousands of a few members.
const FILE_BYTES_MAX: u64 = 1 << 20;

fn read(disk: &dyn Disk, path: &Path) -> io::Result<Option<Vec<u8>>> {
    read_file(disk, path, FILE_BYTES_MAX)
}

/// The first bytes of a file, all of one that is no longer than `most`; `None` if there is none.
pub(crate) fn read_file(disk: &dyn Disk, path: &Path, most: u64) -> io::Result<Option<Vec<u8>>> {
    let file = match disk.open_read_only(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut bytes = vec![0; file.len()?.min(most) as usize];
    let read = read_full(&*file, &mut bytes, 0)?;
    bytes.truncate(read);
    Ok(Some(bytes))
}

fn head(magic: [u8; 8], format: u32, dir_id: u64) -> Vec<u8> {
    let mut out = vec![0; HEAD_BYTES];
    out[0..8].copy_from_slice(&magic);
    out[8..12].copy_from_slice(&format.to_le_bytes());
    out[16..24].copy_from_slice(&dir_id.to_le_bytes());
    out
}

fn seal(head: &mut [u8]) {
    let crc = crc32c(&head[..60]);
    head[60..64].copy_from_slice(&crc.to_le_bytes());
}

/// The fields of a head that is whole and belongs to this directory.
fn checked_head(bytes: &[u8], magic: [u8; 8], dir_id: u64) -> Result<[u64; 8], &'static str> {
    let head: &[u8; HEAD_BYTES] = bytes.first_chunk().ok_or("it ends inside its header")?;
    let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| head[at * 8 + i]));
    let words = std::array::from_fn(word);
    if head[..8] != magic {
        return Err("it does not begin with its magic bytes");
    }
    if words[7] >> 32 != u64::from(crc32c(&head[..60])) {
        return Err("its header's checksum does not match");
    }
    if !(GROUP_FORMAT..=WITNESS_FORMAT).contains(&(words[1] as u32)) {
        return Err("a newer version wrote it");
    }
    if words[2] != dir_id {
        return Err("it belongs to another data directory");
    }
    Ok(words)
}

fn encode_group(kept: &Kept, dir_id: u64) -> Vec<u8> {
    let format = if kept.is_witness { WITNESS_FORMAT } else { GROUP_FORMAT };
    let mut out = head(GROUP_MAGIC, format, dir_id);
    let mut flags = if kept.is_witness { IS_WITNESS } else { 0 };
    if let Some(vote) = &kept.vote {
        out[24..32].copy_from_slice(&vote.leader_id.term.to_le_bytes());
        out[32..40].copy_from_slice(&vote.leader_id.voted_for.to_le_bytes());
        flags |= THERE_IS_A_VOTE | if vote.committed { OF_A_LEADER } else { 0 };
    }
    out[48..56].copy_from_slice(&kept.member.to_le_bytes());
    out.extend_from_slice(&kept.cluster);
    if kept.begins > Lsn::ZERO {
        flags |= LOG_CAME_BEFORE;
        out.extend_from_slice(&kept.begins.0.to_le_bytes());
    }
    out[40..48].copy_from_slice(&flags.to_le_bytes());
    for (id, members) in &kept.changes {
        let mut bytes = Vec::new();
        encode_members(members, &mut bytes);
        out.extend_from_slice(&id.index.to_le_bytes());
        out.extend_from_slice(&id.leader_id.term.to_le_bytes());
        out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        out.extend_from_slice(&bytes);
    }
    let crc = crc32c(&out[HEAD_BYTES..]);
    out[56..60].copy_from_slice(&crc.to_le_bytes());
    seal(&mut out);
    out
}

fn decode_group(bytes: &[u8], dir_id: u64) -> Result<Kept, &'static str> {
    let words = checked_head(bytes, GROUP_MAGIC, dir_id)?;
    let (_, mut body) = bytes.split_at(HEAD_BYTES);
    if words[7] as u32 != crc32c(body) {
        return Err("its checksum does not match");
    }
    let vote = (words[5] & THERE_IS_A_VOTE != 0).then(|| Vote {
        leader_id: LeaderId { term: words[3], voted_for: words[4] },
        committed: words[5] & OF_A_LEADER != 0,
    });
    let (cluster, rest) = body.split_first_chunk().ok_or("it ends inside the cluster's id")?;
    body = rest;
    let mut begins = Lsn::ZERO;
    if words[5] & LOG_CAME_BEFORE != 0 {
        let (lsn, rest) =
            body.split_first_chunk().ok_or("it ends inside where the group begins")?;
        (begins, body) = (Lsn(u64::from_le_bytes(*lsn)), rest);
    }
    let is_witness = words[5] & IS_WITNESS != 0;
    let (cluster, member, changes) = (*cluster, words[6], Vec::new());
    let mut kept = Kept { cluster, member, is_witness, begins, vote, changes };
    while !body.is_empty() {
        let short = "it ends inside a change of the members";
        let (fields, rest) = body.split_first_chunk::<20>().ok_or(short)?;
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| fields[at + i]));
        let length = u32::from_le_bytes(std::array::from_fn(|i| fields[16 + i]));
        let (members, rest) = rest.split_at_checked(length as usize).ok_or(short)?;
        let members = decode_members(members).map_err(|_| "its members are malformed")?;
        kept.changes.push((EntryId::new(reign(word(8)), word(0)), members));
        body = rest;
    }
    Ok(kept)
}

fn decode_committed(bytes: &[u8], dir_id: u64) -> Option<(EntryId, Lsn)> {
    let words = checked_head(bytes, COMMITTED_MAGIC, dir_id).ok()?;
    Some((EntryId::new(reign(words[4]), words[3]), Lsn(words[5])))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ladon_sim_disk::SimDisk;
    use std::collections::BTreeMap;

    fn open(disk: &SimDisk) -> io::Result<GroupState> {
        GroupState::open(Arc::new(disk.clone()), Path::new("/data"), 7)
    }

    fn vote(term: u64, committed: bool) -> Vote {
        Vote { leader_id: LeaderId { term, voted_for: term + 1 }, committed }
    }

    fn change(index: u64) -> MembersChange {
        let member = Member { address: format!("h:{index}"), ..Member::default() };
        (EntryId::new(reign(3), index), Membership::from(BTreeMap::from([(index, member)])))
    }

    fn disk(seed: u64) -> SimDisk {
        let disk = SimDisk::new(seed);
        disk.create_dir_all(Path::new("/data")).unwrap();
        disk.sync_dir(Path::new("/")).unwrap();
        disk
    }

    #[test]
    fn what_was_saved_outlives_a_power_cut() {
        for seed in 0..200 {
            let disk = disk(seed);
            let mut state = open(&disk).unwrap();
            assert_eq!((state.vote(), state.member(), state.committed()), (None, 0, None));
            let begins = Lsn(seed % 3);
            state.set_member([3; 16], 4, begins).unwrap();
            for index in 1..4 {
                state.save_change(change(index), None).unwrap();
            }
            state.save_vote(vote(9, seed % 2 == 0)).unwrap();
            disk.cut_power_after(1 + seed % 5);
            let torn = state.save_vote(vote(10, false)).is_err();
            disk.power_cut();
            let state = open(&disk).unwrap();
            let expected = [vote(9, seed % 2 == 0), vote(10, false)];
            let found = state.vote().unwrap();
            assert!(expected.contains(&found) && (torn || found == expected[1]));
            assert_eq!((state.cluster(), state.member()), ([3; 16], 4));
            assert_eq!(state.begins(), begins);
            assert_eq!(state.changes(), [change(3), change(2), change(1)]);
        }
    }

    #[test]
    fn a_witness_stays_one_and_older_versions_refuse_its_file() {
        let disk = disk(3);
        let mut state = open(&disk).unwrap();
        assert!(!state.is_witness());
        state.set_witness([3; 16], 4).unwrap();
        state.save_vote(vote(9, true)).unwrap();
        disk.power_cut();
        let state = open(&disk).unwrap();
        assert_eq!((state.member(), state.is_witness()), (4, true));
        let bytes = disk.contents(Path::new("/data/group")).unwrap();
        assert_eq!(bytes[8..12], WITNESS_FORMAT.to_le_bytes());
        let member = GroupState::member_of(&disk, Path::new("/data"), 7).unwrap();
        assert_eq!(member, (4, true));
    }

    #[test]
    fn changes_are_kept_as_far_back_as_a_checkpoint_needs_them() {
        let disk = disk(5);
        let mut state = open(&disk).unwrap();
        let entry = |index| Some(EntryId::new(reign(3), index));
        let oldest = |state: &GroupState| state.changes().last().unwrap().0.index;
        (1..=20).for_each(|index| state.save_change(change(index), None).unwrap());
        assert_eq!((state.changes().len(), oldest(&state)), (CHANGES_KEPT, 5));
        // A checkpoint after the seventh.
        (21..=60).for_each(|index| state.save_change(change(index), entry(7)).unwrap());
        let state_again = open(&disk).unwrap();
        assert_eq!(state_again.changes(), state.changes());
        assert_eq!((state.changes().len(), oldest(&state)), (54, 7));
        // The next one is newer than all of them.
        state.save_change(change(70), entry(65)).unwrap();
        assert_eq!((state.changes().len(), oldest(&state)), (CHANGES_KEPT, 46));
        // Too many for the file: it stays one that can be read.
        let long = |index| {
            let (id, _) = change(index);
            let member = Member { address: "h".repeat(5000), ..Member::default() };
            (id, Membership::from(BTreeMap::from([(index, member)])))
        };
        (71..=400).for_each(|index| state.save_change(long(index), entry(46)).unwrap());
        let state = open(&disk).unwrap();
        assert_eq!(state.changes().first().unwrap().0.index, 400);
        assert!(state.changes().len() >= CHANGES_KEPT && oldest(&state) > 71);
    }

    #[test]
    fn a_torn_note_of_what_is_committed_counts_as_none() {
        let (mut whole, mut none) = (0, 0);
        for seed in 0..200 {
            let disk = disk(seed);
            let mut state = open(&disk).unwrap();
            state.save_committed(EntryId::new(reign(2), 5), Lsn(77)).unwrap();
            disk.kill();
            let mut state = open(&disk).unwrap();
            assert_eq!(state.committed(), Some((EntryId::new(reign(2), 5), Lsn(77))));
            state.save_committed(EntryId::new(reign(2), 6), Lsn(80)).unwrap();
            disk.power_cut();
            match open(&disk).unwrap().committed() {
                None => none += 1,
                Some((id, end)) => {
                    assert!((id.index, end.0) == (5, 77) || (id.index, end.0) == (6, 80));
                    whole += 1;
                }
            }
        }
        assert!(whole > 0 && none > 0);
    }

    #[test]
    fn a_damaged_vote_is_no_vote_to_begin_anew_with() {
        let disk = disk(1);
        let mut state = open(&disk).unwrap();
        state.save_change(change(1), None).unwrap();
        state.save_vote(vote(9, true)).unwrap();
        let path = Path::new("/data/group");
        let bytes = disk.contents(path).unwrap();
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            disk.set_contents(path, &flipped);
            let Err(error) = open(&disk) else { panic!("bit {bit}") };
            assert!(error.to_string().starts_with("/data/group is damaged: "), "{error}");
        }
        disk.set_contents(path, &bytes[..20]);
        assert!(open(&disk).is_err());
    }
}
