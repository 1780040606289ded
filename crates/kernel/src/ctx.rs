//! What a command's handler works with.

use crate::client::session::Session;
use crate::command::args;
use crate::command::error::CommandError;
use crate::local::{Append, Local, Pump, Unpublished};
use crate::long::large::Large;
use crate::long::slices::Slices;
use crate::node::Node;
use crate::pubsub::published::{Kind, NotFor};
use crate::request::outcome::{Deferred, Flow};
use crate::rng::Rng;
use ladon_engine::{Key, Keyspace, Locks, PARTITIONS, Scratch, Tx};
use ladon_record::{DbId, KeyHash, Lsn, Record};
use ladon_resp::Reply;
use std::sync::Arc;

/// What a command's handler works with.
pub struct Ctx<'a> {
    /// What all connections share.
    pub node: &'a Node,
    /// This connection.
    pub session: &'a mut Session,
    /// This thread.
    pub local: &'a mut Local,
    /// The reply.
    pub reply: Reply<'a>,
    /// Time of this command, Unix milliseconds.
    pub now_ms: u64,
    /// What happens to the connection after the reply.
    pub flow: Flow,
    /// What is left to do after the command.
    pub deferred: Option<Box<Deferred>>,
    /// The command runs inside `EXEC`, where it must not block.
    pub in_exec: bool,
    /// The command waited for a key and runs again because the key was created: it must not block.
    pub in_attempt: bool,
    /// The hash of the request's first key, where it is known already.
    pub first_key: Option<KeyHash>,
    /// The LSN that the reply depends on, whatever its own transaction commits.
    pub depends: Lsn,
    /// The transaction that the command runs in.
    pub data: Data<'a>,
    pub(crate) append: Append<'a>,
    /// Serves the thread's other connections in the middle of a long script, where that is
    /// possible.
    pub pump: Option<Pump<'a>>,
}

/// The transaction, where there is one.
pub enum Data<'a> {
    /// It has the locks that the command asked for.
    Held(Tx<'a>),
    /// None is open; the next one uses this memory.
    Free(&'a mut Scratch),
    /// While the transaction is passed on, and after its end.
    Gone,
}

/// Decides whether a reply may be made after its command.
pub struct Later<'a> {
    pub(crate) node: &'a Node,
    pub(crate) local: &'a Local,
    pub(crate) must_answer: bool,
}

impl Later<'_> {
    /// The size from which values are large; never if the reply must be made at once.
    pub fn large(&self) -> Large {
        let later = self.local.replies_later && !self.must_answer;
        if later { self.node.slicing.large_reply() } else { Large::NEVER }
    }
}

impl<'a> Ctx<'a> {
    /// A fresh context for a request outside `EXEC`.
    #[inline(always)]
    pub(crate) fn new(
        node: &'a Node,
        local: &'a mut Local,
        session: &'a mut Session,
        reply: Reply<'a>,
        now_ms: u64,
        append: Append<'a>,
    ) -> Ctx<'a> {
        Ctx {
            node,
            session,
            local,
            reply,
            now_ms,
            flow: Flow::Continue,
            deferred: None,
            in_exec: false,
            in_attempt: false,
            first_key: None,
            depends: Lsn::ZERO,
            data: Data::Gone,
            append,
            pump: None,
        }
    }

    /// What is left to do after the command, to add to.
    pub(crate) fn deferred(&mut self) -> &mut Deferred {
        self.deferred.get_or_insert_default()
    }

    /// The data of a command that runs with locks.
    ///
    /// # Panics
    /// If the command's `LockNeed` is none.
    #[inline]
    pub fn tx(&mut self) -> &mut Tx<'a> {
        match &mut self.data {
            Data::Held(tx) => tx,
            _ => panic!("a command without locks asked for data"),
        }
    }

    /// The transaction and the reply, to answer from borrowed data.
    #[inline]
    pub fn tx_and_reply(&mut self) -> (&mut Tx<'a>, &mut Reply<'a>) {
        match &mut self.data {
            Data::Held(tx) => (tx, &mut self.reply),
            _ => panic!("a command without locks asked for data"),
        }
    }

    /// As `tx_and_reply`, with the size from which values are large.
    #[inline]
    pub fn tx_reply_and_later(&mut self) -> (&mut Tx<'a>, &mut Reply<'a>, Later<'_>) {
        let must_answer = self.in_attempt;
        let later = Later { node: self.node, local: self.local, must_answer };
        match &mut self.data {
            Data::Held(tx) => (tx, &mut self.reply, later),
            _ => panic!("a command without locks asked for data"),
        }
    }

    /// As `tx_and_reply`, with random numbers.
    #[inline]
    pub fn tx_reply_and_rng(&mut self) -> (&mut Tx<'a>, &mut Reply<'a>, &mut Rng) {
        match &mut self.data {
            Data::Held(tx) => (tx, &mut self.reply, &mut self.local.rng),
            _ => panic!("a command without locks asked for data"),
        }
    }

    /// The keyspace.
    #[inline]
    pub fn keyspace(&self) -> &'a Keyspace {
        &self.node.keyspace
    }

    /// The database that the connection has selected.
    #[inline]
    pub fn db(&self) -> DbId {
        self.keyspace().select(self.session.db)
    }

    /// The number of an existing database, from an argument.
    pub fn database_number(&self, argument: &[u8]) -> Result<u16, CommandError> {
        let number = args::integer_between(argument, i32::MIN.into(), i32::MAX.into())?;
        u16::try_from(number)
            .ok()
            .filter(|&number| number < self.keyspace().databases())
            .ok_or(CommandError::text("ERR DB index is out of range"))
    }

    /// A key with its hash.
    #[inline]
    pub fn key<'k>(&self, bytes: &'k [u8]) -> Key<'k> {
        Key { bytes, hash: self.keyspace().hash(bytes) }
    }

    /// The key at position 1, for a command with only that key.
    #[inline]
    pub fn first_key<'k>(&self, args: &[&'k [u8]]) -> Key<'k> {
        let bytes = args[1];
        let hash = self.first_key.unwrap_or_else(|| self.keyspace().hash(bytes));
        debug_assert_eq!(hash, self.keyspace().hash(bytes));
        Key { bytes, hash }
    }

    /// Runs `f` on one partition: inside `EXEC` within its transaction, otherwise in a separate one
    /// that is committed before this returns. An error if a long script holds the partition.
    pub fn on_partition<R>(
        &mut self,
        index: usize,
        f: impl FnOnce(&mut Tx<'_>) -> R,
    ) -> Result<R, CommandError> {
        self.on(Locks::Partition(index), f)
    }

    /// As `on_partition`, with any set of locks.
    pub fn on<R>(
        &mut self,
        locks: Locks<'_>,
        f: impl FnOnce(&mut Tx<'_>) -> R,
    ) -> Result<R, CommandError> {
        let result = match &mut self.data {
            Data::Held(tx) => f(tx),
            Data::Free(scratch) => {
                let tx = match self.local.serves_busy {
                    true => None,
                    false => self.node.begin_or_busy(locks, scratch, self.now_ms),
                };
                let mut tx = tx.ok_or_else(|| self.node.scripts.running.busy())?;
                let result = f(&mut tx);
                tx.set_origin(self.session.info.id);
                let (lsn, wrote) = tx.commit(&mut *self.append);
                self.depends = self.depends.max(lsn);
                if wrote {
                    self.session.last_write = lsn;
                }
                result
            }
            Data::Gone => unreachable!("the transaction changes hands between commands only"),
        };
        Ok(result)
    }

    /// As `on`; also returns what a reply about the result depends on. Inside a transaction, its
    /// own reply does.
    pub fn on_and_depends<R>(
        &mut self,
        locks: Locks<'_>,
        f: impl FnOnce(&mut Tx<'_>) -> R,
    ) -> Result<(R, Lsn), CommandError> {
        let before = std::mem::replace(&mut self.depends, Lsn::ZERO);
        let result = self.on(locks, f);
        let depends = self.depends;
        self.depends = depends.max(before);
        Ok((result?, depends))
    }

    /// Ends the transaction, if there is one, and releases its locks. Returns the LSN that the
    /// reply depends on.
    #[inline]
    pub(crate) fn commit(&mut self) -> Lsn {
        let Data::Held(tx) = &mut self.data else { return self.depends };
        let changes = tx.change_count();
        tx.set_origin(self.session.info.id);
        let (lsn, wrote) = tx.commit_in_place(&mut *self.append);
        self.end_commit(lsn, wrote.then_some(changes))
    }

    /// As `commit`, with changes of spaces, which the caller has locked, in the same record. Returns
    /// the record's LSN.
    ///
    /// # Panics
    /// Without a transaction.
    pub(crate) fn commit_beside(&mut self, record: Record<'_>) -> Lsn {
        let Data::Held(tx) = &mut self.data else {
            unreachable!("what is beside a transaction has one");
        };
        let changes = tx.change_count();
        tx.set_origin(self.session.info.id);
        let append = &mut *self.append;
        let mut beside = Some(record);
        let (mut lsn, wrote) = tx.commit_in_place(|record| match beside.take() {
            Some(beside) => record.with(beside, &mut *append),
            None => append(record),
        });
        if let Some(record) = beside.filter(|record| !record.is_empty()) {
            lsn = lsn.max(append(record));
        }
        self.end_commit(lsn, wrote.then_some(changes))
    }

    /// What is left to do, with this many changes, while the locks are still held.
    #[inline(always)]
    fn end_commit(&mut self, lsn: Lsn, changes: Option<u32>) -> Lsn {
        if !self.local.unpublished.is_empty() {
            // While the locks are held, so that a transaction's messages have the order of its
            // changes. They depend on what the sender wrote before as well.
            let depends = lsn.max(self.session.last_write);
            publish_all(self.node, self.local, self.session.info.id, depends);
        }
        self.data = Data::Gone;
        if self.local.undoable.is_some() {
            self.end_undoable();
        }
        if let Some(changes) = changes {
            self.session.last_write = lsn;
            self.local.stats.dirty.add(u64::from(changes));
        }
        self.depends.max(lsn)
    }

    /// Publishes a message, or leaves it to the end of the transaction that runs. Returns its
    /// number of receivers.
    pub fn publish(&mut self, kind: Kind, channel: &[u8], payload: &[u8]) -> usize {
        let pubsub = &self.node.pubsub;
        if matches!(self.data, Data::Held(_)) {
            let (channel, payload) = (channel.to_vec(), payload.to_vec());
            let receivers = pubsub.receivers(kind, &channel);
            self.local.unpublished.push(Unpublished { kind, channel, payload });
            return receivers;
        }
        // What the sender knows that others could miss is what it wrote itself.
        pubsub.publish(kind, channel, payload, self.session.last_write)
    }

    /// The numbers of all partitions.
    pub fn partitions(&self) -> std::ops::Range<usize> {
        0..PARTITIONS
    }

    /// Makes the reply depend on everything up to `lsn`.
    pub fn depend_on(&mut self, lsn: Lsn) {
        self.depends = self.depends.max(lsn);
    }

    /// The size from which values are large here; never if the reply must be made at once.
    pub fn large(&self) -> Large {
        let must_answer = self.in_attempt;
        Later { node: self.node, local: self.local, must_answer }.large()
    }

    /// Continues the reply with `slices`; only after `large` has allowed it for the value.
    pub fn reply_in_slices(&mut self, slices: impl Slices + 'static) {
        debug_assert_ne!(self.large(), Large::NEVER);
        self.deferred().slices = Some(Box::new(slices));
    }
}

/// Publishes the messages of a transaction that has just committed. What its client subscribed to
/// in it gets those that came later.
#[cold]
fn publish_all(node: &Node, local: &mut Local, client: u64, depends: Lsn) {
    let joined = std::mem::take(&mut local.joined_late);
    for (at, message) in local.unpublished.drain(..).enumerate() {
        let Unpublished { kind, channel, payload } = message;
        let later = joined.iter().filter(|(before, ..)| *before > at);
        let names: Vec<_> = later.map(|(_, kind, name)| (*kind, Arc::clone(name))).collect();
        let not_for = (!names.is_empty()).then(|| Box::new(NotFor { client, names }));
        node.pubsub.publish_except(kind, &channel, &payload, depends, not_for);
    }
}
