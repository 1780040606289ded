//! The server that is followed, as it answers a link of the simulated replicas: by the calls that the
//! commands make.

use super::super::peer::Peer;
use super::{Life, Shown, happen, text};
use ladon_kernel::replication::Place;
use ladon_kernel::upstream::{FramesError, FramesWanted, ReplicaName, Replicas as _};
use ladon_peers::{ClientError, Reply};
use ladon_record::Lsn;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// The way to the server that is followed.
pub(super) struct SimPeer {
    pub(super) world: Shown,
    /// Who asks, and whom.
    pub(super) between: (usize, usize),
    pub(super) lives: (u64, u64),
    pub(super) client: u64,
    pub(super) depth: u32,
    pub(super) asks_left: u64,
    pub(super) replies: VecDeque<Reply>,
    /// Answers in a row with nothing in them.
    pub(super) quiet: u64,
    /// What went wrong in the world meanwhile.
    pub(super) trouble: Rc<RefCell<Option<String>>>,
}

impl Drop for SimPeer {
    fn drop(&mut self) {
        if let Some(other) = self.other() {
            other.shared.clients.remove(self.client);
        }
    }
}

fn broke() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, "it broke")
}

fn word(word: &[u8]) -> String {
    String::from_utf8_lossy(word).into_owned()
}

fn number(word: &[u8]) -> u64 {
    self::word(word).parse().expect("a number")
}

fn bulk(text: &str) -> Reply {
    Reply::Bulk(Some(text.as_bytes().to_vec()))
}

impl SimPeer {
    /// Whom this asks, if that is the same life still.
    fn other(&self) -> Option<Arc<Life>> {
        let other = self.world.borrow().life(self.between.1);
        other.filter(|life| life.number == self.lives.1)
    }

    /// Whether the link is over.
    fn is_over(&mut self) -> bool {
        let world = self.world.borrow();
        let node = &world.nodes[self.between.0];
        let is_own = node.life.as_ref().is_some_and(|life| life.number == self.lives.0);
        !is_own || node.dies.is_some() || self.asks_left == 0 || !world.faults && self.quiet > 3
    }

    fn answer(&self, words: &[&[u8]], life: &Life) -> Reply {
        let answered = match (words[0], words[1]) {
            (b"LADON.REPLICA", b"HELLO") => {
                let place = Place { host: word(words[4]), port: 1 };
                let name = ReplicaName { run_id: word(words[3]), place };
                life.replicas.greet(self.client, &name).map(|()| Reply::Simple("OK".to_owned()))
            }
            (b"LADON.REPLICA", b"POSITION") => self.position(words, life),
            (b"LADON.REPLICA", b"FRAMES") => match self.frames(words, life) {
                Err(FramesError::Resync(text)) => return Reply::Error(format!("RESYNC {text}")),
                Err(FramesError::Failed(text)) => Err(text),
                Ok(bytes) => Ok(Reply::Bulk(Some(bytes))),
            },
            (b"LADON.BACKUP", b"BEGIN") => self.begin_copy(life),
            (b"LADON.BACKUP", b"READ") => read_copy(words, life),
            (b"LADON.BACKUP", b"END") => {
                life.copies.lock().remove(&word(words[2]));
                Ok(Reply::Simple("OK".to_owned()))
            }
            _ => Err("unknown command".to_owned()),
        };
        answered.unwrap_or_else(|text| Reply::Error(format!("ERR {text}")))
    }

    fn position(&self, words: &[&[u8]], life: &Life) -> Result<Reply, String> {
        let (run, end) = (word(words[2]), Lsn(number(words[3])));
        let position = life.replicas.position(self.client, &run, end)?;
        let run = |(run, begin): &(String, Lsn)| {
            Reply::Array(vec![bulk(run), Reply::Integer(begin.0 as i64)])
        };
        let runs = position.runs.iter().map(run).collect();
        let continues = Reply::Integer(i64::from(position.continues));
        Ok(Reply::Array(vec![continues, Reply::Array(runs)]))
    }

    fn frames(&self, words: &[&[u8]], life: &Life) -> Result<Vec<u8>, FramesError> {
        let bytes = number(words[7]).min(1 + self.world.borrow_mut().random.below(400));
        let lsn = |at: usize| Lsn(number(words[at]));
        let (run, from, durable, applied) = (word(words[2]), lsn(3), lsn(4), lsn(5));
        let (wait, bytes) = (Duration::ZERO, bytes as usize);
        let wanted = FramesWanted { run, from, durable, applied, wait, bytes };
        life.replicas.frames(self.client, &wanted)
    }

    fn begin_copy(&self, life: &Life) -> Result<Reply, String> {
        life.log.make_durable(life.log.reserved()).map_err(text)?;
        // Nobody syncs while this waits: what is behind that is a mark of the sync itself.
        let end = |newest: Lsn| newest.max(life.log.durable());
        let copy = life.log.begin_copy_until(end).map_err(text)?;
        let file = |file: &ladon_log::CopiedFile| {
            Reply::Array(vec![bulk(&file.name), Reply::Integer(file.bytes as i64)])
        };
        let files = copy.files().iter().map(file).collect();
        let (id, end) = (self.client.to_string(), Reply::Integer(copy.end().0 as i64));
        life.copies.lock().insert(id.clone(), copy);
        Ok(Reply::Array(vec![bulk(&id), end, Reply::Array(files)]))
    }
}

fn read_copy(words: &[&[u8]], life: &Life) -> Result<Reply, String> {
    let mut copies = life.copies.lock();
    let copy = copies.get_mut(&word(words[2])).ok_or("no such backup")?;
    let mut bytes = vec![0; number(words[5]) as usize];
    let read = copy.read(number(words[3]) as usize, &mut bytes, number(words[4])).map_err(text)?;
    bytes.truncate(read);
    Ok(Reply::Bulk(Some(bytes)))
}

impl Peer for SimPeer {
    fn send(&mut self, words: &[&[u8]]) -> io::Result<()> {
        self.asks_left = self.asks_left.saturating_sub(1);
        let acts = {
            let mut world = self.world.borrow_mut();
            if world.faults { world.random.below(3) } else { 0 }
        };
        for _ in 0..acts {
            if let Err(what) = happen(&self.world, self.depth) {
                *self.trouble.borrow_mut() = Some(what);
                return Err(broke());
            }
        }
        if self.is_over() {
            return Err(broke());
        }
        let life = self.other().ok_or_else(broke)?;
        let reply = self.answer(words, &life);
        self.quiet = if reply == Reply::Bulk(Some(Vec::new())) { self.quiet + 1 } else { 0 };
        self.replies.push_back(reply);
        Ok(())
    }

    fn reply(&mut self) -> Result<Reply, ClientError> {
        self.replies.pop_front().ok_or_else(|| broke().into())
    }

    fn reply_into(&mut self, into: &mut Vec<u8>) -> Result<Reply, ClientError> {
        let mut reply = self.reply()?;
        if let Reply::Bulk(Some(bytes)) = &mut reply {
            into.append(bytes);
        }
        Ok(reply)
    }

    fn has_more(&mut self, came: usize) -> bool {
        came > 0 && self.world.borrow_mut().random.chance(1, 2)
    }

    fn own_durable(&mut self, lsn: Lsn, _: Duration) -> bool {
        let (own, syncs) = {
            let mut world = self.world.borrow_mut();
            let syncs = !world.faults || world.random.chance(1, 3);
            (world.life(self.between.0), syncs)
        };
        let Some(life) = own.filter(|life| life.number == self.lives.0) else { return false };
        let _ = life.log.write_published();
        if syncs {
            let _ = life.log.make_durable(lsn);
        }
        life.log.durable() >= lsn
    }

    fn own_durable_soon(&mut self, lsn: Lsn) {
        self.own_durable(lsn, Duration::ZERO);
    }

    fn rest(&mut self, _: Duration) {}
}
