//! CALL and EVAL of what the program has: asked of it, and answered when it has answered.
//!
//! ```text
//! first run    rights, then Program::ask             Flow::AwaitsProgram: the packet is set aside
//! the answer   Asked::answer, and the IO thread is told
//! second run   the reply is made of the answer
//! ```
//!
//! A program does not begin a request whose connection has too many answers to take: it gives it
//! back ([`Given::Postponed`]), and the second run, which comes after those answers' own, asks again.

use crate::access::Access;
use crate::error;
use crate::session::Session;
use crate::statements::{Ended, Running};
use ladon_engine::SpaceCell;
use ladon_iproto::reply;
use ladon_iproto::request::{Auth, Call};
use ladon_kernel::client::clients::ClientInfo;
use ladon_kernel::message::Message;
use ladon_kernel::node::Node;
use ladon_kernel::program::{Answer, Asker, Failed, Kind, Request, Returned, User};
use ladon_kernel::request::outcome::Flow;
use ladon_kernel::shared::Shared;
use ladon_kernel::untaken::{Counted, Untaken};
use ladon_msgpack::write;
use ladon_record::{Lsn, SpaceId};
use ladon_space::{BoxError, Statement};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// A request that the program has, and its answer.
pub(crate) struct Asked {
    given: Mutex<Option<Given>>,
    shared: Arc<Shared>,
    untaken: Arc<Untaken>,
    info: Arc<ClientInfo>,
    /// The connection: its number, its thread, its place there.
    client: (u64, usize, u32),
    /// The request's number, and the schema's version when it came.
    request: (u64, u64),
}

/// What has become of a request.
enum Given {
    /// Its answer, whose bytes are untaken while this is here.
    Answer { answer: Answer, _untaken: Option<Counted> },
    /// It was not begun.
    Postponed,
}

/// Bytes of unread replies above which a client is pushed nothing.
const UNREAD_BYTES_MAX: usize = 256 << 10;

impl Asked {
    pub(crate) fn is_answered(&self) -> bool {
        self.given.lock().is_some()
    }

    pub(crate) fn has_answer(&self) -> bool {
        matches!(&*self.given.lock(), Some(Given::Answer { .. }))
    }

    fn give(&self, given: Given) {
        *self.given.lock() = Some(given);
        let (client, thread, slot) = self.client;
        self.shared.threads[thread].leave(Message::ProgramAnswered { client, slot });
    }
}

impl Asker for Asked {
    fn answer(&self, answer: Answer, counted: Option<Counted>) {
        self.give(Given::Answer { answer, _untaken: counted });
    }

    fn postpone(&self) {
        self.give(Given::Postponed);
    }

    fn has_room(&self) -> bool {
        self.untaken.has_room()
    }

    fn has_room_to_push(&self) -> bool {
        self.has_room() && self.info.output_bytes.load(Relaxed) <= UNREAD_BYTES_MAX
    }

    fn count(&self, bytes: usize) -> Option<Counted> {
        self.untaken.count(bytes)
    }

    fn push(&self, value: &[u8], depends: u64) -> bool {
        let mut bytes = Vec::new();
        // The program's machine has bounded the value.
        if reply::chunk(&mut bytes, self.request, value).is_err() {
            return false;
        }
        let Some(counted) = self.count(bytes.len()) else { return false };
        let ((client, thread, slot), depends) = (self.client, Lsn(depends));
        let pushed = Message::Pushed { client, slot, bytes, depends, counted };
        self.shared.threads[thread].send(pushed);
        true
    }

    fn thread(&self) -> usize {
        self.client.1
    }

    fn wake(&self) {
        self.shared.threads[self.client.1].wake();
    }
}

impl Session {
    fn asked_by(&mut self, node: &Node, request: (u64, u64)) -> Arc<Asked> {
        let (given, shared) = (Mutex::new(None), Arc::clone(node.shared()));
        let new = || Arc::new(Untaken::new(Arc::clone(&node.untaken_bytes)));
        let untaken = Arc::clone(self.untaken.get_or_insert_with(new));
        let info = Arc::clone(self.info());
        Arc::new(Asked { given, shared, untaken, info, client: self.client(), request })
    }

    fn request(
        &self,
        (kind, name, arguments): (Kind, &[u8], &[u8]),
        (user, sync): (User, u64),
        asker: Option<Arc<dyn Asker>>,
    ) -> Request {
        Request {
            kind,
            name: name.to_vec(),
            arguments: arguments.to_vec(),
            user,
            client: Arc::clone(self.info()),
            sync,
            asker,
        }
    }

    /// A client has connected. If the program wants to know that, its requests wait until it has
    /// answered.
    pub fn connect(&mut self, node: &Node) {
        let program = node.program.as_deref().filter(|program| program.wants(Kind::Connect));
        let Some(program) = program else { return };
        let asked = self.asked_by(node, (0, 0));
        let asker = Some(Arc::clone(&asked) as Arc<dyn Asker>);
        program.tell(self.request((Kind::Connect, b"", b""), (self.known_user(node), 0), asker));
        self.is_known = true;
        self.connecting = Some(asked);
    }

    /// Whether the program has answered that the client has connected.
    ///
    /// # Errors
    /// It refuses it.
    pub(crate) fn is_connected(&mut self) -> Result<bool, Failed> {
        self.awaited = None;
        let Some(asked) = self.connecting.take() else { return Ok(true) };
        let refused = match &*asked.given.lock() {
            Some(Given::Answer { answer, .. }) => answer.result.as_ref().err().cloned(),
            Some(Given::Postponed) => None,
            None => {
                self.awaited = Some(Arc::clone(&asked));
                self.connecting = Some(Arc::clone(&asked));
                return Ok(false);
            }
        };
        let Some(failed) = refused else { return Ok(true) };
        self.connecting = Some(asked);
        Err(failed)
    }

    /// The client has gone, while the program may be at work for it.
    pub fn end_early(&mut self, node: &Node) {
        if !self.has_ended {
            self.tell_of_end(node);
            self.has_ended = true;
        }
    }

    /// The client has gone. If the program has been told so already, it only forgets what requests
    /// have left since.
    pub(crate) fn tell_of_end(&self, node: &Node) {
        let Some(program) = node.program.as_deref() else { return };
        if self.is_known || program.wants(Kind::Disconnect) {
            let name: &[u8] = if self.has_ended { b"again" } else { b"" };
            let user = self.known_user(node);
            program.tell(self.request((Kind::Disconnect, name, b""), (user, 0), None));
        }
    }
}

impl Session {
    /// The client was refused something. The program is told if it wants to know, and has not too much
    /// to do.
    #[cold]
    pub(crate) fn tell_of_denial(&mut self, node: &Node, message: &str) {
        let Some(program) = node.program.as_deref().filter(|it| it.wants(Kind::Denied)) else {
            return;
        };
        if !self.is_of_program {
            let what = (Kind::Denied, message.as_bytes(), &b""[..]);
            // It has as much to do as it may have: it is not told of this one.
            let _ = program.ask(self.request(what, (self.known_user(node), 0), None));
        }
    }
}

impl Running<'_, '_> {
    /// Whether this request has been asked of the program before.
    pub(crate) fn is_asked(&self) -> bool {
        self.session.asked.is_some()
    }

    /// Asks the program, or makes the reply of its answer.
    pub(crate) fn ask(
        &mut self,
        kind: Kind,
        call: &Call<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Ended> {
        if let Some(answer) = self.answer()? {
            return self.show_answer(answer, out);
        }
        if self.is_in_transaction() {
            let what = "a program's functions inside a stream's transaction";
            return Err(error::unsupported(what).into());
        }
        let node = self.thread.node;
        let Some(program) = &node.program else {
            return Err(error::unsupported("EVAL without a program: see `ladon tarantool`").into());
        };
        let name = String::from_utf8_lossy(call.name);
        let number = self.session.rights(node, self.thread.scratch)?.runs_as(&name, kind);
        let user = match self.session.known_user(node) {
            own if own.number == number => own,
            _ => User { number, since: node.keyspace.spaces.user_since(number) },
        };
        let asked = self.session.asked_by(node, (self.sync, self.schema_version));
        let asker = Some(Arc::clone(&asked) as Arc<dyn Asker>);
        let what = (kind, call.name, call.arguments);
        let request = self.session.request(what, (user, self.sync), asker);
        if program.ask(request).is_err() {
            // It has as many as it may have: this one asks again in a moment.
            return Err(Ended::Again(Flow::AwaitsCommit));
        }
        self.session.is_known = true;
        self.session.asked = Some(asked);
        Err(Ended::Again(Flow::AwaitsProgram))
    }

    /// The answer, if something was asked and not given back.
    fn answer(&mut self) -> Result<Option<Answer>, Ended> {
        let Some(asked) = self.session.asked.take() else { return Ok(None) };
        let given = asked.given.lock().take();
        match given {
            Some(Given::Answer { answer, .. }) => Ok(Some(answer)),
            Some(Given::Postponed) => Ok(None),
            None => {
                self.session.asked = Some(asked);
                Err(Ended::Again(Flow::AwaitsProgram))
            }
        }
    }

    /// AUTH. The program may refuse it, and is told as well if it failed.
    pub(crate) fn authenticate(&mut self, auth: &Auth<'_>) -> Result<(), Ended> {
        let before = self.session.logged_in();
        let done = self.log_in(auth);
        let program = self.thread.node.program.as_deref();
        let Some(program) = program.filter(|it| it.wants(Kind::Auth)) else {
            self.session.asked = None;
            return Ok(done?);
        };
        let access = Access::of(self.thread.node, self.thread.scratch)?;
        if access.user_named(&String::from_utf8_lossy(auth.user_name)).is_none() {
            return Ok(done?);
        }
        let after = self.session.logged_in();
        self.session.log_in(before.0, before.1);
        if let Some(answer) = self.answer()? {
            self.depends = self.depends.max(Lsn(answer.depends));
            answer.result.map_err(|failed| error::of_lua(failed.message))?;
            done?;
            self.session.log_in(after.0, after.1);
            return Ok(());
        }
        let node = self.thread.node;
        let asked = self.session.asked_by(node, (self.sync, self.schema_version));
        let mut arguments = Vec::new();
        write::array(&mut arguments, 2);
        write::str(&mut arguments, auth.user_name);
        write::bool(&mut arguments, done.is_ok());
        let what = (Kind::Auth, &b""[..], &arguments[..]);
        let asker = Some(Arc::clone(&asked) as Arc<dyn Asker>);
        let user = self.session.known_user(node);
        program.tell(self.session.request(what, (user, self.sync), asker));
        self.session.asked = Some(asked);
        Err(Ended::Again(Flow::AwaitsProgram))
    }

    fn show_answer(&mut self, answer: Answer, out: &mut Vec<u8>) -> Result<(), Ended> {
        self.depends = self.depends.max(Lsn(answer.depends));
        self.show_result(answer.result, out)
    }

    /// Makes the reply of what a function has returned or raised.
    pub(crate) fn show_result(
        &mut self,
        result: Result<Returned, Failed>,
        out: &mut Vec<u8>,
    ) -> Result<(), Ended> {
        match result {
            Ok(Returned { values, count }) => {
                let data = reply::begin_data(out, self.sync, self.schema_version);
                out.extend_from_slice(&values);
                Ok(data.finish(out, count).map_err(|long| error::illegal(&long.to_string()))?)
            }
            Err(failed) => {
                self.show_failed(&failed, out);
                Ok(())
            }
        }
    }

    fn show_failed(&mut self, failed: &Failed, out: &mut Vec<u8>) {
        self.thread.local.stats.count_error(failed.message.as_bytes());
        error::write_failed(out, self.sync, self.schema_version, failed);
    }

    /// Whether the program has to be asked for a statement on a space, since functions of it are to
    /// be called. In a transaction of the client's, it cannot be: the space refuses it.
    pub(crate) fn is_for_program(&self, id: SpaceId) -> bool {
        self.is_asked()
            || self.catalog.get(id).is_some_and(SpaceCell::has_triggers)
                && self.thread.node.program.is_some()
                && !self.session.is_of_program
                && !self.is_in_transaction()
    }

    /// A statement that the program runs, with what is to be called.
    pub(crate) fn state(
        &mut self,
        id: SpaceId,
        statement: Statement<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Ended> {
        let (name, parts, numbers): (_, [&[u8]; 2], [Option<u32>; 2]) = match statement {
            Statement::Insert(tuple) => ("insert", [tuple, &[]], [None, None]),
            Statement::Replace(tuple) => ("replace", [tuple, &[]], [None, None]),
            Statement::Update { index, key, operations, index_base } => {
                ("update", [key, operations], [Some(index), Some(index_base)])
            }
            Statement::Delete { index, key } => ("delete", [key, &[]], [Some(index), None]),
            Statement::Upsert { tuple, operations, index_base } => {
                ("upsert", [tuple, operations], [None, Some(index_base)])
            }
        };
        let mut arguments = Vec::new();
        write::array(&mut arguments, 5);
        write::uint(&mut arguments, id.into());
        for number in numbers {
            write::uint(&mut arguments, number.unwrap_or(0).into());
        }
        for part in parts {
            arguments.extend_from_slice(if part.is_empty() { &[0x90] } else { part });
        }
        let call = Call { name: name.as_bytes(), arguments: &arguments };
        self.ask(Kind::Statement, &call, out)
    }

    /// EVAL.
    pub(crate) fn evaluate(&mut self, call: &Call<'_>, out: &mut Vec<u8>) -> Result<(), Ended> {
        if !self.is_asked() {
            self.rights()?.check_evaluation()?;
        }
        self.ask(Kind::Eval, call, out)
    }

    /// A call of what is no method of a space: the program's, if there is one.
    pub(crate) fn call_program(
        &mut self,
        call: &Call<'_>,
        is_16: bool,
        undefined: impl Fn() -> BoxError,
        out: &mut Vec<u8>,
    ) -> Result<(), Ended> {
        if self.thread.node.program.is_none() {
            return Err(undefined().into());
        }
        self.ask(if is_16 { Kind::Call16 } else { Kind::Call }, call, out)
    }
}
