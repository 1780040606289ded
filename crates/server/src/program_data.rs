//! The data, as a program's thread reaches it: an IO thread's means without sockets.

use crate::counters;
use crate::positions::Positions;
use crate::program_commands::ProgramCommands;
use crate::random::random_u64;
use ladon_app::{Caller, Data, Ran, Stated};
use ladon_engine::{Garbage, Scratch};
use ladon_iproto::Request;
use ladon_kernel::blocking;
use ladon_kernel::client::clients::ClientInfo;
use ladon_kernel::local::Local;
use ladon_kernel::message::Message;
use ladon_kernel::node::Node;
use ladon_kernel::program::{Failed, User};
use ladon_kernel::request::outcome::{Flow, Outcome};
use ladon_kernel::rng::Rng;
use ladon_kernel::thread_parts::ThreadParts;
use ladon_log::{Appender, Log, PositionWaiter};
use ladon_record::{Gate, Lsn};
use ladon_tarantool::{Batch, Packet, Session, Unfinished};
use std::collections::HashMap;
use std::sync::Arc;

/// `ER_NO_SUCH_USER`.
const NO_SUCH_USER: u32 = 45;
/// Milliseconds until what had to wait is tried again.
const AGAIN_MS: u64 = 1;

/// What a request has come to that is no connection's.
pub(crate) fn ran(outcome: &Outcome) -> Ran {
    match &outcome.flow {
        Flow::GoesOn => Ran::Again { after_ms: 0 },
        flow if flow.runs_again() => Ran::Again { after_ms: AGAIN_MS },
        _ => Ran::Replied { depends: outcome.depends.0 },
    }
}

/// The data, for the thread that has the last place among the node's ([`Node`]'s `threads`).
pub struct ProgramData {
    node: Arc<Node>,
    log: Arc<Log>,
    local: Local,
    scratch: Scratch,
    appender: Appender,
    packets: Batch,
    /// Wakes the program when the log has come further.
    waiter: Arc<PositionWaiter>,
    /// One for each user as which the program has asked, but the one that asked last.
    sessions: HashMap<User, Box<Session>>,
    last: Option<(User, Box<Session>)>,
    /// What runs commands of Redis.
    commands: ProgramCommands,
    /// Something was published since the log's writer was woken, and when that was.
    has_published: bool,
    woke_ms: u64,
    /// What fibers' requests have done that are not done yet.
    unfinished: HashMap<u64, Unfinished>,
}

impl ProgramData {
    /// Of a node that has a program.
    pub fn new(node: Arc<Node>) -> ProgramData {
        let thread = node.threads.len() - 1;
        let log = Arc::clone(&node.log);
        let local = Local::new(thread, Arc::clone(&node.stats[thread]), Rng::new(random_u64()));
        let appender = log.appender();
        node.see_pauses(thread);
        let shared = Arc::clone(node.shared());
        let waiter = log.add_waiter(Arc::new(move || shared.threads[thread].wake()));
        ProgramData {
            node,
            log,
            local,
            scratch: Scratch::default(),
            appender,
            packets: Batch::default(),
            waiter,
            sessions: HashMap::new(),
            last: None,
            commands: ProgramCommands::default(),
            has_published: false,
            woke_ms: 0,
            unfinished: HashMap::new(),
        }
    }

    /// Lets the log write what was appended: the function may never end, and others wait for what is
    /// behind its records. The writer is woken at most once a millisecond, and by the watchdog
    /// (`Inbox::look`) if no request follows.
    fn publish(&mut self, now_ms: u64) {
        self.has_published |= self.appender.publish();
        if self.has_published && now_ms != self.woke_ms {
            self.log.write_soon();
            (self.has_published, self.woke_ms) = (false, now_ms);
        }
    }

    /// Does something with the session of a user.
    fn of_user<T>(&mut self, fiber: u64, user: User, with: impl FnOnce(&mut Session) -> T) -> T {
        let mut session = self.take_session(user);
        session.take_over(fiber, self.sessions.values_mut().map(|other| &mut **other));
        let done = with(&mut session);
        self.last = Some((user, session));
        done
    }

    /// The session of a user, which becomes the last one. Its user's rights are looked up anew once they
    /// have changed; there are none once the user is gone.
    #[inline]
    fn take_session(&mut self, user: User) -> Box<Session> {
        match self.last.take() {
            Some((of, session)) if of == user => session,
            other => self.exchange_session(other, user),
        }
    }

    #[cold]
    fn exchange_session(&mut self, last: Option<(User, Box<Session>)>, user: User) -> Box<Session> {
        self.sessions.extend(last);
        self.sessions.remove(&user).unwrap_or_else(|| {
            // Fibers of users who are gone get a new one, which has no rights either.
            let spaces = &self.node.keyspace.spaces;
            let is_there = |of: &User| spaces.user_since(of.number) == of.since;
            self.sessions.retain(|of, session| is_there(of) || session.is_long_to_drop());
            let id = self.node.clients.next_id();
            let thread = self.local.thread;
            let info = ClientInfo { id, thread, ..ClientInfo::default() };
            Box::new(Session::of_program(user, Arc::new(info)))
        })
    }
}

impl Data for ProgramData {
    fn run(
        &mut self,
        caller: Caller,
        in_transaction: bool,
        request: &Request<'_>,
        reply: &mut Vec<u8>,
    ) -> Ran {
        let Caller { fiber, user, calls_triggers } = caller;
        if self.log.is_backlogged() {
            self.log.write_soon();
            return Ran::Again { after_ms: AGAIN_MS };
        }
        let mut session = self.take_session(user);
        if in_transaction {
            session.take_over(fiber, self.sessions.values_mut().map(|other| &mut **other));
        }
        let packet = Packet::of(if in_transaction { fiber } else { 0 }, *request);
        let now_ms = self.node.clock.unix_ms();
        let ProgramData { node, local, scratch, appender, packets, .. } = self;
        let mut thread = ThreadParts {
            node,
            local,
            scratch,
            now_ms,
            append: &mut |record| appender.append_record(record, now_ms),
            pump: None,
        };
        session.end_overdue(now_ms, thread.scratch);
        session.end_asked(thread.scratch);
        // What other fibers have begun on the same session is not this one's.
        if !self.unfinished.is_empty()
            && let Some(mut unfinished) = self.unfinished.remove(&fiber)
        {
            session.exchange(&mut unfinished);
        }
        session.call_triggers(calls_triggers);
        let outcome = ladon_tarantool::execute(&mut thread, &mut session, packets, packet, reply);
        if !thread.scratch.ready.is_empty() {
            blocking::serve(&mut thread);
        }
        self.packets.end();
        if session.is_unfinished() {
            let mut unfinished = Unfinished::default();
            session.exchange(&mut unfinished);
            if outcome.flow.runs_again() {
                self.unfinished.insert(fiber, unfinished);
            } else if unfinished.is_some() {
                self.scratch.garbage.push(Garbage::of(unfinished));
            }
        }
        self.last = Some((user, session));
        self.publish(now_ms);
        ran(&outcome)
    }

    fn command(
        &mut self,
        caller: Caller,
        in_transaction: bool,
        (name, args): (&str, &[&[u8]]),
        reply: &mut Vec<u8>,
    ) -> Result<Ran, Failed> {
        let Caller { fiber, user, .. } = caller;
        if self.user(user.number) != user {
            let message = format!("User '{}' is not found", user.number);
            return Err(Failed::new(NO_SUCH_USER, message, "ClientError"));
        }
        if self.log.is_backlogged() {
            self.log.write_soon();
            return Ok(Ran::Again { after_ms: AGAIN_MS });
        }
        let mut session = in_transaction.then(|| self.take_session(user));
        if let Some(session) = &mut session {
            session.take_over(fiber, self.sessions.values_mut().map(|other| &mut **other));
        }
        let now_ms = self.node.clock.unix_ms();
        let ProgramData { node, local, scratch, appender, commands, .. } = self;
        let mut thread = ThreadParts {
            node,
            local,
            scratch,
            now_ms,
            append: &mut |record| appender.append_record(record, now_ms),
            pump: None,
        };
        let transaction = session.as_deref_mut().map(|session| (session, fiber));
        let ran = commands.run(&mut thread, transaction, (user.number, name), (args, reply));
        if let Some(session) = session {
            self.last = Some((user, session));
        }
        self.publish(now_ms);
        ran
    }

    fn user(&self, number: u32) -> User {
        User { number, since: self.node.keyspace.spaces.user_since(number) }
    }

    fn savepoint(&mut self, fiber: u64, user: User) -> Result<u64, Failed> {
        self.of_user(fiber, user, |session| session.savepoint(fiber))
    }

    fn go_back(&mut self, fiber: u64, user: User, savepoint: u64) -> Result<(), Failed> {
        self.of_user(fiber, user, |session| session.go_back(fiber, savepoint))
    }

    fn keep_stated(&mut self, fiber: u64, user: User) -> Result<(), Failed> {
        self.of_user(fiber, user, |session| session.keep_stated(fiber))
    }

    fn stated(&mut self, fiber: u64, user: User) -> Vec<Stated> {
        let stated = self.of_user(fiber, user, |session| session.stated(fiber));
        let shown = stated.into_iter().map(|(space, (old, new))| Stated { space, old, new });
        shown.collect()
    }

    fn set_triggers(&mut self, space: u32, has_triggers: bool) -> Result<(), Failed> {
        let catalog = self.node.keyspace.spaces.catalog();
        let Some(cell) = catalog.get(space) else {
            let message = format!("Space '{space}' does not exist");
            return Err(Failed::new(36, message, "ClientError"));
        };
        cell.set_triggers(has_triggers);
        Ok(())
    }

    fn last_stated(&mut self, fiber: u64, user: User, space: u32) -> Option<Stated> {
        let stated = self.of_user(fiber, user, |session| session.last_stated(fiber, space));
        stated.map(|(old, new)| Stated { space, old, new })
    }

    fn broadcast(&mut self, key: &[u8], value: &[u8], depends: u64) -> Result<(), Failed> {
        let done = ladon_tarantool::broadcast(self.node.shared(), key, value, Lsn(depends));
        done.map_err(|error| Failed::new(error.code.0, error.message, "ClientError"))
    }

    fn check_call(&mut self, user: User, name: &str) -> Result<(), Failed> {
        let mut session = self.take_session(user);
        let checked = session.check_call(&self.node, &mut self.scratch, name);
        self.last = Some((user, session));
        checked.map_err(|error| Failed::new(error.code.0, error.message, "AccessDeniedError"))
    }

    fn has_session(&self, session: u64) -> bool {
        self.node.clients.find(session).is_some()
    }

    fn settle(&mut self) {
        let thread = self.local.thread;
        self.node.see_pauses(thread);
        for message in self.node.threads[thread].take() {
            if let Message::Ready(keys) = message {
                self.scratch.ready.extend(keys);
            }
            // The rest is about connections, of which this thread has none.
        }
        if self.appender.publish() || std::mem::take(&mut self.has_published) {
            self.log.write_soon();
        }
        for answer in std::mem::take(&mut self.local.answers) {
            self.node.threads[answer.thread].send(Message::Answer(answer));
        }
        counters::settle(&self.node, &self.local.stats, &mut self.scratch);
        self.scratch.garbage.clear();
    }

    fn has_passed(&mut self, depends: u64) -> bool {
        let (lsn, gate) = (Lsn(depends), self.node.settings.gate());
        self.appender.publish();
        if Positions::of(&self.log).passed(gate, lsn) {
            return true;
        }
        match gate {
            Gate::None => true,
            Gate::Write | Gate::EverySec => {
                self.log.write_soon();
                self.waiter.await_written(lsn)
            }
            Gate::Fsync => {
                self.log.want_durable(lsn);
                self.waiter.await_durable(lsn)
            }
            Gate::Quorum => {
                self.log.want_committed(lsn);
                self.waiter.await_committed(lsn)
            }
        }
    }

    fn schema_version(&self) -> u64 {
        self.node.keyspace.spaces.version()
    }
}

impl Drop for ProgramData {
    fn drop(&mut self) {
        self.log.remove_waiter(&self.waiter);
        self.node.ends_running(self.local.thread);
    }
}
