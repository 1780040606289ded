//! A connection's state: who it is, and its open transactions.

use crate::access::{Access, Rights};
use crate::error;
use crate::preparation::Preparing;
use crate::program::Asked;
use crate::sql::{Aside, Change, State, Steps};
use crate::transactions::Transactions;
use ladon_engine::{GUEST, Scratch, Stated};
use ladon_iproto::greeting::{self, SALT_BYTES};
use ladon_kernel::client::clients::ClientInfo;
use ladon_kernel::client::schema_watchers::WatchingClient;
use ladon_kernel::node::Node;
use ladon_kernel::program::User;
use ladon_kernel::statistics::failed_logins;
use ladon_kernel::untaken::Untaken;
use ladon_record::Lsn;
use ladon_space::{BoxError, Space};
use std::collections::HashSet;
use std::sync::Arc;

/// The version that the greeting shows: connectors decide by it what they may ask.
pub(crate) const VERSION: &str = "2.11.0";

/// The largest packet of a client that has not logged in: as an argument over RESP.
pub const GUEST_PACKET_BYTES_MAX: u64 = 16 << 10;

/// A connection's state, as requests know it.
pub struct Session {
    salt: [u8; SALT_BYTES],
    user: u32,
    /// The version of all users and rights by which it has logged in. Once its user is dropped, it
    /// has none: another one may get the number.
    user_since: u64,
    /// The user's rights, and the version of all rights that they are from.
    rights: Option<(u64, Rights)>,
    pub(crate) transactions: Transactions,
    /// What the transaction has done that committed last, if it kept that.
    pub(crate) committed: Vec<Stated>,
    /// Who runs the request that runs calls what is to be called when tuples change.
    pub(crate) calls_triggers: bool,
    /// What the program was told of when the client connected, until it has answered.
    pub(crate) connecting: Option<Arc<Asked>>,
    /// The same, if the request that runs waits for it.
    pub(crate) awaited: Option<Arc<Asked>>,
    /// What the program has made for it and it has not taken, if it has asked for anything.
    pub(crate) untaken: Option<Arc<Untaken>>,
    /// The program may keep something of it.
    pub(crate) is_known: bool,
    /// The program was told of its end while it was still at work for it.
    pub(crate) has_ended: bool,
    /// It is the program's, which has no other to ask.
    pub(crate) is_of_program: bool,
    /// What the definition takes long for that the request asks for which runs.
    pub(crate) preparing: Option<Box<Preparing>>,
    /// What the program was asked for by the request that runs.
    pub(crate) asked: Option<Arc<Asked>>,
    /// A long reply is being made.
    pub(crate) has_long_reply: bool,
    /// The client sends no more.
    pub(crate) has_left: bool,
    /// The keys that it watches.
    pub(crate) watched: HashSet<Box<[u8]>>,
    /// `_session_settings`, if anybody asked for it.
    pub(crate) settings: Option<Box<Space>>,
    /// What it keeps of SQL.
    pub(crate) sql: State,
    /// The statement that runs on a thread for the request that runs.
    pub(crate) sql_aside: Option<Aside>,
    /// The transaction of the statement that runs, if it takes long.
    pub(crate) sql_change: Option<Box<Change>>,
    /// What that statement, or one in a stream, has still to write.
    pub(crate) sql_steps: Option<Box<Steps>>,
    info: Arc<ClientInfo>,
}

impl Session {
    /// Says in the server's log that its client could not log in.
    #[cold]
    pub(crate) fn note_failed_login(&self, now_ms: u64) {
        failed_logins::tell(None, &self.info.addr, self.info.id, now_ms);
    }

    /// A new connection's; `salt` are random numbers.
    pub fn new(salt: [u64; 4], info: Arc<ClientInfo>) -> Session {
        let mut bytes = [0; SALT_BYTES];
        for (part, number) in bytes.chunks_exact_mut(8).zip(salt) {
            part.copy_from_slice(&number.to_le_bytes());
        }
        Session {
            salt: bytes,
            user: GUEST,
            user_since: 0,
            rights: None,
            transactions: Transactions::default(),
            committed: Vec::new(),
            calls_triggers: false,
            connecting: None,
            awaited: None,
            untaken: None,
            is_known: false,
            has_ended: false,
            is_of_program: false,
            preparing: None,
            asked: None,
            has_long_reply: false,
            has_left: false,
            watched: HashSet::new(),
            settings: None,
            sql: State::default(),
            sql_aside: None,
            sql_change: None,
            sql_steps: None,
            info,
        }
    }

    /// The client sends no more. What it has sent is answered, but it gets no definition that takes
    /// long.
    pub fn input_ended(&mut self) {
        self.has_left = true;
    }

    /// Whether a long reply is being made. A second one waits for its end.
    #[inline]
    pub fn note_long_reply(&mut self, has_long_reply: bool) {
        self.has_long_reply = has_long_reply;
    }

    /// Exchanges what requests have left that are not done: each finds what it left itself.
    pub fn exchange(&mut self, unfinished: &mut Unfinished) {
        std::mem::swap(&mut self.preparing, &mut unfinished.preparing);
        std::mem::swap(&mut self.asked, &mut unfinished.asked);
        std::mem::swap(&mut self.awaited, &mut unfinished.awaited);
        std::mem::swap(&mut self.sql_aside, &mut unfinished.sql_aside);
        std::mem::swap(&mut self.sql_change, &mut unfinished.sql_change);
        std::mem::swap(&mut self.sql_steps, &mut unfinished.sql_steps);
    }

    /// Whether the request that runs next has left something to be exchanged.
    pub fn is_unfinished(&self) -> bool {
        self.preparing.is_some()
            || self.asked.is_some()
            || self.awaited.is_some()
            || self.sql_aside.is_some()
            || self.sql_change.is_some()
            || self.sql_steps.is_some()
    }

    /// The node's data was exchanged for other data.
    pub fn data_changed(&mut self) {
        debug_assert!(!self.is_long_to_drop(), "it has begun something on the data before");
        self.rights = None;
    }

    /// The connection has ended: nothing is to be told to it.
    pub fn leave(&self, node: &Node) {
        self.tell_of_end(node);
        for key in &self.watched {
            crate::watch::unwatch(node, key, self.info.id);
        }
    }

    /// Bytes that the program has made for it and it has not taken.
    #[inline]
    pub fn untaken_bytes(&self) -> usize {
        self.untaken.as_ref().map_or(0, |untaken| untaken.bytes())
    }

    /// What is known of its client.
    pub(crate) fn info(&self) -> &Arc<ClientInfo> {
        &self.info
    }

    /// A session of a program, which runs as a user.
    pub fn of_program(user: User, info: Arc<ClientInfo>) -> Session {
        let mut session = Session::new([0; 4], info);
        session.log_in(user.number, user.since);
        session.is_of_program = true;
        session
    }

    pub(crate) fn client(&self) -> WatchingClient {
        (self.info.id, self.info.thread, self.info.slot)
    }

    /// Identifies the node.
    pub(crate) fn instance_uuid(&self, node: &Node) -> String {
        crate::server_info::instance_uuid(node)
    }

    /// Whether a transaction is open, or a definition being prepared: dropping the session may take long.
    pub fn is_long_to_drop(&self) -> bool {
        !self.transactions.is_empty() || self.preparing.is_some()
    }

    /// Bytes of memory that what it prepares of a definition takes.
    pub fn prepared_bytes(&self) -> usize {
        self.preparing.as_ref().map_or(0, |preparing| preparing.bytes())
    }

    /// When the next of its transactions times out, in Unix milliseconds.
    #[inline]
    pub fn next_timeout_ms(&self) -> Option<u64> {
        self.transactions.next_timeout_ms()
    }

    /// Takes back the transactions that have timed out. Their streams are told at their next
    /// request.
    pub fn end_overdue(&mut self, now_ms: u64, scratch: &mut Scratch) {
        self.transactions.end_overdue(now_ms, scratch);
    }

    /// Takes back the transactions that were asked to end, because too much memory is kept for them.
    #[inline]
    pub fn end_asked(&mut self, scratch: &mut Scratch) {
        if !self.transactions.is_empty() {
            self.transactions.end_asked(scratch);
        }
    }

    /// Appends the greeting.
    pub fn greet(&self, node: &Node, out: &mut Vec<u8>) {
        out.extend_from_slice(&greeting::write(VERSION, &self.instance_uuid(node), &self.salt));
    }

    /// Appends an error that answers no request.
    pub fn refuse(&self, reason: &str, out: &mut Vec<u8>) {
        error::write(out, 0, 0, &error::of_lua(reason.to_owned()));
    }

    pub(crate) fn salt(&self) -> &[u8; SALT_BYTES] {
        &self.salt
    }

    /// Its user, and the version of all users and rights by which it has logged in.
    pub(crate) fn logged_in(&self) -> (u32, u64) {
        (self.user, self.user_since)
    }

    /// Its user, as a program knows it.
    pub(crate) fn known_user(&self, node: &Node) -> User {
        let since = node.keyspace.spaces.login_since(self.user, self.user_since);
        User { number: self.user, since }
    }

    /// The number of its user.
    pub(crate) fn user(&self) -> u32 {
        self.user
    }

    pub(crate) fn log_in(&mut self, user: u32, version: u64) {
        self.user = user;
        self.user_since = version;
        self.rights = None;
    }

    /// The largest packet that the client may send; `of_all`: what nobody may exceed. A guest that may
    /// change nothing has only to log in.
    #[inline]
    pub fn packet_bytes_max(&mut self, node: &Node, announced: u64, of_all: u64) -> u64 {
        if announced <= GUEST_PACKET_BYTES_MAX || self.user != GUEST || self.may_change(node) {
            return of_all;
        }
        of_all.min(GUEST_PACKET_BYTES_MAX)
    }

    #[cold]
    fn may_change(&mut self, node: &Node) -> bool {
        let rights = self.rights(node, &mut Scratch::default());
        rights.is_ok_and(Rights::may_change)
    }

    /// The LSN that the user's rights are from, if they were asked for: errors show them.
    #[inline]
    pub(crate) fn rights_changed(&self) -> Lsn {
        self.rights.as_ref().map_or(Lsn::ZERO, |(_, rights)| rights.changed)
    }

    /// Whether the user may call a function of `_func`, or anything else by its name.
    ///
    /// # Errors
    /// `ER_ACCESS_DENIED`.
    pub fn check_call(
        &mut self,
        node: &Node,
        scratch: &mut Scratch,
        name: &str,
    ) -> Result<(), BoxError> {
        self.rights(node, scratch)?.check_call(name)
    }

    /// Takes the user's rights out, which [`Session::rights`] has just looked up.
    pub(crate) fn take_rights(&mut self) -> Option<(u64, Rights)> {
        self.rights.take()
    }

    /// Puts them back.
    pub(crate) fn give_rights(&mut self, rights: Option<(u64, Rights)>) {
        self.rights = rights;
    }

    /// The user's rights as they are now.
    pub(crate) fn rights(
        &mut self,
        node: &Node,
        scratch: &mut Scratch,
    ) -> Result<&Rights, BoxError> {
        let version = node.keyspace.spaces.access_version();
        if self.rights.as_ref().is_none_or(|(of, _)| *of != version) {
            let access: Arc<Access> = Access::of(node, scratch)?;
            let is_gone = node.keyspace.spaces.was_dropped_since(self.user, self.user_since);
            self.rights = Some((version, access.rights(self.user, is_gone)));
        }
        match &self.rights {
            Some((_, rights)) => Ok(rights),
            None => unreachable!("they were just read"),
        }
    }
}

/// What a request has done of its work, besides what its transaction holds.
#[derive(Default)]
pub struct Unfinished {
    preparing: Option<Box<Preparing>>,
    asked: Option<Arc<Asked>>,
    awaited: Option<Arc<Asked>>,
    sql_aside: Option<Aside>,
    sql_change: Option<Box<Change>>,
    sql_steps: Option<Box<Steps>>,
}

impl Unfinished {
    /// Whether there is something.
    pub fn is_some(&self) -> bool {
        self.preparing.is_some()
            || self.sql_aside.is_some()
            || self.sql_change.is_some()
            || self.sql_steps.is_some()
    }

    /// Whether the program has answered what it was asked for.
    pub fn is_answered(&self) -> bool {
        let mut asked = [&self.asked, &self.awaited].into_iter().flatten();
        asked.any(|asked| asked.is_answered())
    }

    /// Whether it has an answer to be shown: what the program has given back has none.
    pub fn has_answer(&self) -> bool {
        self.asked.as_ref().is_some_and(|asked| asked.has_answer())
    }

    /// As [`Session::prepared_bytes`].
    pub fn prepared_bytes(&self) -> usize {
        self.preparing.as_ref().map_or(0, |preparing| preparing.bytes())
    }
}

/// The first 32 hexadecimal digits as a UUID of version 4 (RFC 9562): they are as good as random, but
/// for the digits that say so. Tarantool's own client refuses a greeting with another one.
pub(crate) fn uuid_of(id: &str) -> String {
    let mut digits = id.get(..32).unwrap_or("00000000000000000000000000000000").to_owned();
    let of_variant = u8::from_str_radix(&digits[16..17], 16).unwrap_or(0);
    digits.replace_range(12..13, "4");
    digits.replace_range(16..17, ["8", "9", "a", "b"][usize::from(of_variant % 4)]);
    let parts = [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]];
    parts.join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_says_its_version_and_its_variant() {
        let id = "0123456789abcdef0123456789abcdef01234567";
        assert_eq!(uuid_of(id), "01234567-89ab-4def-8123-456789abcdef");
        assert_eq!(uuid_of(&"f".repeat(40)), "ffffffff-ffff-4fff-bfff-ffffffffffff");
    }
}
