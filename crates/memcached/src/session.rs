//! A connection's state, and the way of each piece of its input.

use crate::delayed_flush::flush_if_due;
use crate::output::Output;
use crate::running::{Ended, Running};
use crate::{binary, text};
use ladon_identity::User;
use ladon_kernel::access::{self, Access};
use ladon_kernel::client::session::Session as Client;
use ladon_kernel::node::Node;
use ladon_kernel::request::outcome::{Flow, Outcome};
use ladon_kernel::thread_parts::ThreadParts;
use ladon_memcache::frame::{self, LOGIN_BYTES_MAX};
use ladon_memcache::{Framed, Limits, State};
use ladon_record::Lsn;
use std::collections::VecDeque;
use std::sync::Arc;

/// What is kept of a connection besides its buffers.
#[derive(Default)]
pub struct Session {
    /// The stream's state behind the last piece that ran.
    state: State,
    /// That behind each piece that was gathered and has not run.
    ahead: VecDeque<State>,
    /// The rest of a list of keys is read, and not answered: an error was.
    pub(crate) list_failed: bool,
    /// The connection ends because of what it has sent.
    pub(crate) is_broken: bool,
}

/// How far the next piece goes, see [`Session::gather`].
pub enum Piece {
    /// It has so many bytes.
    Complete(usize),
    /// At least so many bytes are missing; 0 if that is unknown.
    Incomplete(usize),
}

impl Session {
    /// Pieces are gathered from where the last one has run.
    pub fn read_again(&mut self) {
        self.ahead.clear();
    }

    /// The next piece of the input behind those that were gathered before. A stream that cannot be
    /// read on is one piece, to the end.
    pub fn gather(&mut self, client: &Client, node: &Node, input: &[u8]) -> Piece {
        let value_bytes_max = match client.authenticated {
            true => match node.settings.client_query_buffer_limit() {
                0 => node.settings.proto_max_bulk_len(),
                limit => limit.min(node.settings.proto_max_bulk_len()),
            },
            false => LOGIN_BYTES_MAX,
        };
        let state = self.ahead.back().unwrap_or(&self.state);
        match frame::frame(state, input, Limits { value_bytes_max }) {
            Framed::Complete { end, next } => {
                self.ahead.push_back(next);
                Piece::Complete(end)
            }
            Framed::Incomplete { needed } => Piece::Incomplete(needed),
            Framed::Invalid(_) => {
                self.ahead.push_back(State::Text);
                Piece::Complete(input.len())
            }
        }
    }

    /// Whether the connection ends because the stream could not be read on.
    pub fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// Whether these bytes, behind what has run, begin with a whole piece, or with none at all.
    pub fn begins_with_piece(&self, input: &[u8]) -> bool {
        let limits = Limits { value_bytes_max: u64::MAX };
        !matches!(frame::frame(&self.state, input, limits), Framed::Incomplete { .. })
    }
}

/// Runs one piece that was gathered, and appends its reply.
pub fn execute(
    thread: &mut ThreadParts<'_>,
    client: &mut Client,
    session: &mut Session,
    piece: &[u8],
    out: &mut Vec<u8>,
) -> Outcome {
    let now_ms = thread.now_ms;
    flush_if_due(thread);
    let state = std::mem::take(&mut session.state);
    let next = session.ahead.pop_front().unwrap_or(State::Text);
    let limits = Limits { value_bytes_max: u64::MAX };
    let mut output = Output::new(out);
    if let Framed::Invalid(_) = frame::frame(&state, piece, limits) {
        session.is_broken = true;
        // As memcached, without a word.
        return output.end(Lsn::ZERO, Flow::Close, now_ms);
    }
    let mut running = Running { thread, client, depends: Lsn::ZERO };
    let is_binary = matches!(next, State::Binary | State::SkipBinary(_));
    let ran = match is_binary {
        true => binary::run(&mut running, session, &state, piece, &mut output),
        false => text::run(&mut running, session, &state, piece, &mut output),
    };
    let depends = running.depends;
    match ran {
        Ok(flow) => {
            session.state = next;
            output.end(depends, flow, now_ms)
        }
        // The piece runs again, from the state in which it was.
        Err(flow) => {
            output.take_back();
            session.state = state;
            session.ahead.clear();
            Outcome::new(Lsn::ZERO, flow)
        }
    }
}

/// What is said in the place of replies whose changes may be lost, before the connection ends.
pub fn gives_up(session: &Session, text: &str, out: &mut Vec<u8>) {
    // Nobody knows which packet an error would answer.
    if !matches!(session.state, State::Binary | State::SkipBinary(_)) {
        out.extend_from_slice(format!("SERVER_ERROR {text}\r\n").as_bytes());
    }
}

impl Running<'_, '_> {
    /// Whether the client has to log in before anything else.
    pub(crate) fn must_log_in(&self) -> bool {
        !self.client.authenticated && self.thread.node.requires_login()
    }

    /// Makes the connection the user's if the password is right.
    pub(crate) fn log_in(&mut self, user: &[u8], password: &[u8]) -> bool {
        let node = self.thread.node;
        let counts = &self.thread.local.stats.items;
        counts.auth_cmds.add(1);
        // A change from now on is seen at the next request.
        let generation = node.accounts.generation();
        let found: Option<Arc<User>> =
            node.accounts.users().authenticate(user, password).map(Arc::clone);
        match found {
            Some(user) => self.client.log_in(Access::of(user, generation)),
            None => {
                counts.auth_errors.add(1);
                access::note_failed_login(node, self.client, b"auth", user);
            }
        }
        self.client.authenticated
    }
}

impl From<Flow> for Ended {
    fn from(flow: Flow) -> Ended {
        Ended::Later(flow)
    }
}
