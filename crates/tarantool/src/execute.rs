//! Runs one packet: what is asked, by whom, and the reply.

use crate::batch::Batch;
use crate::error;
use crate::packet::{Decoded, Packet};
use crate::requests::facts_of;
use crate::session::Session;
use crate::statements::{Ended, Running};
use ladon_engine::Catalog;
use ladon_iproto::reply::{self, ServerId, feature};
use ladon_iproto::request::{Delete, Request, Update, Upsert};
use ladon_iproto::{Header, RequestError, request_type};
use ladon_kernel::command::flags::Flags;
use ladon_kernel::node::Node;
use ladon_kernel::program::Failed;
use ladon_kernel::request::admission::{self, Refusal};
use ladon_kernel::request::outcome::{Flow, Outcome};
use ladon_kernel::role::Role;
use ladon_kernel::thread_parts::ThreadParts;
use ladon_record::{Lsn, SpaceId};
use ladon_space::{BoxError, Statement};
use std::sync::atomic::Ordering::Relaxed;

/// Runs one packet, and appends its reply.
#[inline]
pub fn execute(
    thread: &mut ThreadParts<'_>,
    session: &mut Session,
    batch: &mut Batch,
    packet: Packet<'_>,
    out: &mut Vec<u8>,
) -> Outcome {
    // Every reply shows the version of the definitions.
    let catalog = &**batch.catalog(&thread.node.keyspace.spaces);
    let (header, request) = match packet.0 {
        Decoded::Request(header, request) => (header, request),
        Decoded::BadHeader(bad) => {
            let told = error::of_request(&bad.error);
            error::write(out, bad.sync, catalog.version, &told);
            return Outcome::new(of_definitions(thread.node, catalog), Flow::Continue);
        }
        // The rest of the stream cannot be read.
        Decoded::EndOfStream(error) => {
            error::write(out, 0, catalog.version, &error::of_request(&error));
            return Outcome::new(of_definitions(thread.node, catalog), Flow::Close);
        }
    };
    let flags = if facts_of(header.request_type).writes { Flags::WRITE } else { Flags::READONLY };
    if thread.node.paused(thread.now_ms).is_some_and(|it| admission::is_held_back(flags, it)) {
        return Outcome::new(Lsn::ZERO, Flow::Paused);
    }
    let is_connected = session.is_connected();
    if is_connected != Ok(true) {
        return not_connected(thread.node, is_connected.err(), (catalog, header.sync), out);
    }
    let before = out.len();
    let tells_of_data = needs_data(&header, &request);
    let mut running = Running {
        thread,
        session,
        catalog,
        sync: header.sync,
        stream: header.stream_id,
        depends: catalog.changed,
        schema_version: catalog.version,
        long: None,
    };
    let admitted = match tells_of_data {
        true => running.admit(&header, &request),
        false => Ok(()),
    };
    let tells_of_data = tells_of_data && admitted.is_ok();
    let done = admitted.and_then(|()| running.run(&header, request, out));
    // Errors show the user's rights as well.
    let mut depends = running.depends.max(running.session.rights_changed());
    let node = running.thread.node;
    if !node.role.is_free() && running.is_committed(header.request_type, tells_of_data) {
        depends = Lsn::ZERO;
    }
    let (long, version) = (running.long.take(), running.schema_version);
    if let Err(Ended::Again(flow)) = done {
        out.truncate(before);
        return Outcome::new(depends, flow);
    }
    running.end_preparing();
    if let Err(Ended::Error(told)) = done {
        out.truncate(before);
        thread.local.stats.count_error(told.message.as_bytes());
        if told.code == error::ACCESS_DENIED {
            session.tell_of_denial(thread.node, &told.message);
        }
        if header.request_type == request_type::AUTH {
            session.note_failed_login(thread.now_ms);
        }
        error::write(out, header.sync, version, &told);
    }
    match long {
        Some(long) => Outcome::with_long_reply(depends, long),
        None => Outcome::new(depends, Flow::Continue),
    }
}

/// What a request of a client comes to that the program has refused, or has not answered yet.
#[cold]
fn not_connected(
    node: &Node,
    refused: Option<Failed>,
    (catalog, sync): (&Catalog, u64),
    out: &mut Vec<u8>,
) -> Outcome {
    let Some(failed) = refused else { return Outcome::new(Lsn::ZERO, Flow::AwaitsProgram) };
    let entry = (failed.code, &*failed.class, &*failed.message);
    error::write_entry(out, sync, catalog.version, entry);
    Outcome::new(of_definitions(node, catalog), Flow::Close)
}

/// What a reply depends on that shows the definitions' version and nothing else of the data. At a node
/// that does not lead it would wait, at the gate `quorum`, for a word that never comes.
#[cold]
fn of_definitions(node: &Node, catalog: &Catalog) -> Lsn {
    if node.role.is_free() { catalog.changed } else { Lsn::ZERO }
}

/// Whether a request reads or changes data. What the server is can be asked of every node.
fn needs_data(header: &Header, request: &Result<Request<'_>, RequestError>) -> bool {
    let is_about_server = matches!(request, Ok(Request::Call(call) | Request::Call16(call)) if call.name == b"box.info");
    facts_of(header.request_type).needs_data && !is_about_server
}

/// Some requests are only for streams, and others only outside of them.
fn check_stream(header: &Header) -> Result<(), BoxError> {
    use request_type::{AUTH, BEGIN, COMMIT, PING, ROLLBACK};
    /// The last one that is about data.
    const DATA_MAX: u32 = ROLLBACK;
    let of = header.request_type;
    let is_outside = of == AUTH || of > DATA_MAX && of != PING;
    let is_inside = matches!(of, BEGIN | COMMIT | ROLLBACK);
    let refused = match header.stream_id {
        0 => is_inside.then_some(true),
        _ => is_outside.then_some(false),
    };
    match refused {
        None => Ok(()),
        Some(out_of) => {
            let name = request_type::name(of).unwrap_or("unknown");
            Err(error::not_in_this_stream(name, out_of))
        }
    }
}

impl Running<'_, '_> {
    /// Whether what a node shows that does not lead is committed. A follower has nothing else, and answers
    /// what tells of no data at any gate; and what is read once the leader has named its position.
    fn is_committed(&self, of: u32, tells_of_data: bool) -> bool {
        let node = self.thread.node;
        match tells_of_data {
            true if of == request_type::AUTH => node.role.get() == Role::Follows,
            true => self.thread.local.leader_read.is_in_force(&node.leader_reads),
            false => true,
        }
    }

    /// Admits what is about data.
    fn admit(
        &mut self,
        header: &Header,
        request: &Result<Request<'_>, RequestError>,
    ) -> Result<(), Ended> {
        let node = self.thread.node;
        admission::on_data(node).map_err(|refusal| error::of_refusal(refusal, node))?;
        if header.request_type == request_type::AUTH {
            // Who may log in is known at every node.
            return Ok(());
        }
        if !node.role.is_free() {
            // What is called writes by statements, which are refused then.
            let is_call =
                matches!(request, Ok(Request::Call(_) | Request::Call16(_) | Request::Execute(_)));
            let writes = facts_of(header.request_type).writes && !is_call;
            let read = self.thread.local.leader_read;
            match admission::in_cluster(node, (None, read), writes) {
                Err(Refusal::AwaitsLeader) => return Err(Ended::Again(Flow::AwaitsLeader)),
                admitted => admitted.map_err(|refusal| error::of_refusal(refusal, node))?,
            }
        }
        self.depends = self.depends.max(Lsn::DATA);
        Ok(())
    }

    fn run(
        &mut self,
        header: &Header,
        request: Result<Request<'_>, RequestError>,
        out: &mut Vec<u8>,
    ) -> Result<(), Ended> {
        let version = self.schema_version;
        if header.schema_version != 0 && header.schema_version != version {
            return Err(error::wrong_schema_version(header.schema_version, version).into());
        }
        check_stream(header)?;
        let request = request.map_err(|error| error::of_request(&error))?;
        match request {
            Request::Ping | Request::Nop => reply::ok(out, self.sync, version),
            Request::Id(id) => {
                if id.features & (1 << feature::ERROR_EXTENSION) != 0 {
                    self.session.info().marshals_errors.store(true, Relaxed);
                }
                let features = &[
                    feature::STREAMS,
                    feature::TRANSACTIONS,
                    feature::ERROR_EXTENSION,
                    feature::PAGINATION,
                    feature::SPACE_AND_INDEX_NAMES,
                    feature::WATCHERS,
                    feature::WATCH_ONCE,
                ];
                let server = ServerId { version: 6, features, auth_type: "chap-sha1" };
                reply::id(out, self.sync, version, &server);
            }
            Request::Auth(auth) => {
                self.authenticate(&auth)?;
                reply::ok(out, self.sync, version);
            }
            Request::Select(select) => self.select(&select, out)?,
            Request::Insert(put) => {
                let id = self.space_id(put.space)?;
                self.write_and_show(id, Statement::Insert(put.tuple), out)?;
            }
            Request::Replace(put) => {
                let id = self.space_id(put.space)?;
                self.write_and_show(id, Statement::Replace(put.tuple), out)?;
            }
            Request::Update(Update { space, index, index_base, key, operations }) => {
                let id = self.space_id(space)?;
                let index = self.index_id(id, index)?;
                let update = Statement::Update { index, key, operations, index_base };
                self.write_and_show(id, update, out)?;
            }
            Request::Delete(Delete { space, index, key }) => {
                let id = self.space_id(space)?;
                let index = self.index_id(id, index)?;
                self.write_and_show(id, Statement::Delete { index, key }, out)?;
            }
            Request::Upsert(Upsert { space, index_base, tuple, operations }) => {
                let id = self.space_id(space)?;
                let upsert = Statement::Upsert { tuple, operations, index_base };
                self.write_and_show(id, upsert, out)?;
            }
            Request::Call(call) => self.call(&call, false, out)?,
            Request::Call16(call) => self.call(&call, true, out)?,
            other => self.run_apart_from_data(header, &other, out)?,
        }
        Ok(())
    }

    /// Runs a request about transactions or events.
    fn run_apart_from_data(
        &mut self,
        header: &Header,
        request: &Request<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Ended> {
        let version = self.schema_version;
        match request {
            Request::Watch(key) => self.watch(key, out)?,
            Request::Unwatch(key) => self.unwatch(key),
            Request::WatchOnce(key) => self.watch_once(key, out)?,
            Request::Begin(begin) => {
                self.begin(begin)?;
                reply::ok(out, self.sync, version);
            }
            Request::Commit(Some(true)) => {
                return Err(error::unsupported("synchronous transactions").into());
            }
            Request::Commit(_) => {
                self.commit()?;
                reply::ok(out, self.sync, version);
            }
            Request::Rollback => {
                self.roll_back();
                reply::ok(out, self.sync, version);
            }
            Request::Eval(call) => self.evaluate(call, out)?,
            Request::Execute(execute) => self.execute_sql(execute, out)?,
            Request::Prepare(execute) => self.prepare_sql(execute, out)?,
            _ => {
                let name = request_type::name(header.request_type).unwrap_or("this request");
                return Err(error::unsupported(name).into());
            }
        }
        Ok(())
    }

    /// Runs a statement, and appends a reply with one tuple or none.
    fn write_and_show(
        &mut self,
        id: SpaceId,
        statement: Statement<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Ended> {
        if self.is_for_program(id) {
            return self.state(id, statement, out);
        }
        let written = self.write(id, statement)?;
        let tuple = statement.shown(&written);
        let data = reply::begin_data(out, self.sync, self.schema_version);
        if let Some(tuple) = tuple {
            out.extend_from_slice(tuple.bytes());
        }
        data.finish(out, u32::from(tuple.is_some()))
            .map_err(|error| crate::error::illegal(&error.to_string()).into())
    }
}
