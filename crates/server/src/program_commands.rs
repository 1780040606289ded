//! Redis' commands that a program runs (`box.resp.call`): each as a request of its own, or as a part of
//! the program's transaction, by the rights of a Redis user.

use crate::program_data::ran;
use ladon_app::Ran;
use ladon_kernel::access::Access;
use ladon_kernel::client::clients::ClientInfo;
use ladon_kernel::client::session::Session;
use ladon_kernel::command::flags::Flags;
use ladon_kernel::node::Node;
use ladon_kernel::program::Failed;
use ladon_kernel::request::execute::{Request, execute};
use ladon_kernel::request::joint::Joint;
use ladon_kernel::request::outcome::Flow;
use ladon_kernel::rng::Rng;
use ladon_kernel::thread_parts::ThreadParts;
use ladon_resp::Proto;
use ladon_tarantool::Session as BoxSession;
use std::collections::HashMap;
use std::sync::Arc;

/// Numbers of Tarantool's users that are Redis' user `default`: the guest where nobody has to log in.
const GUEST: u32 = 0;
const ADMIN: u32 = 1;
/// Who is Redis' user `default` without a login: no user has this name.
const UNNAMED: &[u8] = b"";
/// Users of which sessions are kept.
const SESSIONS_MAX: usize = 1_000;
/// The user is gone, or has other rights than the session began with.
const LOST: &str = "NOPERM The user has lost its rights";
/// What no script runs, but a program does.
const RUN_SCRIPTS: [&str; 6] = ["eval", "eval_ro", "evalsha", "evalsha_ro", "fcall", "fcall_ro"];

/// The sessions of Redis' users, by name: a number of Tarantool's may be another user's later.
#[derive(Default)]
pub(crate) struct ProgramCommands(HashMap<Vec<u8>, Session>);

impl ProgramCommands {
    /// Runs a command as a user, of this number and name, and appends the reply, of RESP3. In a
    /// transaction, which a session has for a fiber, it is a part of that.
    ///
    /// # Errors
    /// Those of the transaction.
    pub(crate) fn run(
        &mut self,
        thread: &mut ThreadParts<'_>,
        transaction: Option<(&mut BoxSession, u64)>,
        (user, name): (u32, &str),
        (args, out): (&[&[u8]], &mut Vec<u8>),
    ) -> Result<Ran, Failed> {
        let node = thread.node;
        let refuse = |out: &mut Vec<u8>, why: &str| {
            out.extend_from_slice(format!("-{why}\r\n").as_bytes());
            Ok(Ran::Replied { depends: 0 })
        };
        if let Some(why) = refused(node, args) {
            return refuse(out, &why);
        }
        let is_default = user == ADMIN || user == GUEST && !node.requires_login();
        let known = if is_default { UNNAMED } else { name.as_bytes() };
        let unknown = || format!("NOPERM There is no user '{name}' of Redis' protocol");
        if let Some((transaction, fiber)) = transaction {
            let begin = |thread: &mut ThreadParts<'_>| {
                let session = new_session(thread, known)?;
                Some(Joint::new(known, session, Rng::new(thread.local.rng.next_u64())))
            };
            let outcome = transaction.command(thread, fiber, begin, (known, args, out))?;
            return match outcome {
                None => refuse(out, &unknown()),
                Some(outcome) if matches!(outcome.flow, Flow::Drop) => refuse(out, LOST),
                Some(outcome) => Ok(ran(&outcome)),
            };
        }
        if self.0.len() >= SESSIONS_MAX {
            self.0.clear();
        }
        let Some(mut session) = self.0.remove(known).or_else(|| new_session(thread, known)) else {
            return refuse(out, &unknown());
        };
        session.db = 0;
        let id = node.table.find(args[0]);
        let first_key = id
            .and_then(|id| node.table.spec(id).keys.positions(args).next())
            .map(|at| node.keyspace.hash(args[at]));
        let outcome = execute(thread, &mut session, Request { id, args, first_key }, out);
        if matches!(outcome.flow, Flow::Drop) {
            out.clear();
            return refuse(out, LOST);
        }
        self.0.insert(known.to_vec(), session);
        Ok(ran(&outcome))
    }
}

/// Why a program may not run a command: what is about a connection, or waits.
fn refused(node: &Node, args: &[&[u8]]) -> Option<String> {
    let id = node.table.find(args.first()?)?;
    let spec = node.table.spec(id);
    if RUN_SCRIPTS.contains(&spec.name) {
        return None;
    }
    let is_of_connection = spec.flags.has(Flags::NOSCRIPT) || spec.name == "select";
    let is_refused = is_of_connection || spec.flags.has(Flags::BLOCKING);
    is_refused.then(|| format!("ERR box.resp.call runs no '{}'", spec.name))
}

/// A session of a user of Redis' protocol.
fn new_session(thread: &ThreadParts<'_>, name: &[u8]) -> Option<Session> {
    let node = thread.node;
    let access = match name == UNNAMED {
        true => Access::of_new_connection(node),
        false => Access::of_name(node, name)?,
    };
    let (id, of) = (node.clients.next_id(), thread.local.thread);
    let info = Arc::new(ClientInfo { id, thread: of, ..ClientInfo::default() });
    let mut session = Session::new(info, true, access);
    session.proto = Proto::Resp3;
    Some(session)
}
