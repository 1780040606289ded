//! One connection to the server that this one follows.
//!
//! ```text
//! LADON.REPLICA HELLO version run-id host port
//! LADON.REPLICA TAKEOVER run end [FORCE]   -> that server, a replica until now, writes from now on
//! LADON.REPLICA POSITION run end           -> it goes on from there, or:
//! LADON.BACKUP BEGIN, READ ..., END        all data, beside what is here
//! LADON.REPLICA FRAMES run from durable applied wait count -> bytes of the log, again and again
//! ```

use super::following::{Following, Wanted};
use super::log_wait::LogWait;
use super::peer::{Connected, Peer};
use super::place::FollowedData;
use super::runs::Runs;
use ladon_kernel::replication::Place;
use ladon_kernel::role::Role;
use ladon_kernel::upstream::LinkState;
use ladon_peers::{Client, ClientError, Reply, ServerOptions};
use ladon_raft::{Incoming, RUNS_NAME};
use ladon_record::Lsn;
use ladon_settings::{Endpoint, Settings};
use ladon_tls::{ClientOptions, Trust};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use thiserror::Error;

/// The version of what is said here.
const VERSION: &[u8] = b"1";
/// A connection is made within this time, or not.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// What an answer has besides a piece of a file or of the log: the list of a data directory's files.
const REPLY_BYTES_MAX: u64 = 64 << 20;
/// Bytes of a piece of a file: the most that a server gives at once.
const PIECE_BYTES: u64 = 1 << 20;
/// Bytes of the log that are asked for at once: what a core's own cache holds twice.
const FRAMES_BYTES: u64 = 512 << 10;
/// So many pieces are asked for before the first has come.
const PIECES_ASKED: usize = 4;
/// The other server answers after this time, though nothing is new.
const HEARTBEAT: Duration = Duration::from_secs(1);
/// The same, while the other server is still to hear what is on the disk here.
const UNTOLD: Duration = Duration::from_millis(10);
/// So long the disk may take before more is asked for.
const DISK_WAIT_MAX: Duration = Duration::from_millis(50);

/// Why the link is down.
#[derive(Debug, Error)]
pub(super) enum LinkError {
    /// The connection, or what came over it.
    #[error("the server at {at}: {error}")]
    Client { at: String, error: ClientError },
    /// It is of another kind.
    #[error(
        "the server at {at} is no Ladon that can be followed (a Redis cannot be): it answers \
         '{said}'"
    )]
    NotLadon { at: String, said: String },
    /// This server's side.
    #[error("{0}")]
    Own(#[from] io::Error),
    /// The replica that was to take over does not.
    #[error("the replica does not take over: {said}")]
    NoTakeover { said: String },
    /// Something else is wanted now.
    #[error("the server is to do something else")]
    Changed,
}

impl LinkError {
    /// Whether only the position has to be asked for again.
    pub(super) fn is_resync(&self) -> bool {
        let LinkError::Client { error: ClientError::Refused(said), .. } = self else {
            return false;
        };
        said.starts_with("RESYNC ")
    }
}

/// A connection that was greeted.
pub(super) struct Link<'a> {
    following: &'a Following,
    data: &'a FollowedData,
    wanted: &'a Wanted,
    peer: Box<dyn Peer + 'a>,
    at: String,
}

impl<'a> Link<'a> {
    /// Connects, logs in, and says who this is.
    pub(super) fn connect(
        following: &'a Following,
        data: &'a FollowedData,
        wanted: &'a Wanted,
        place: &Place,
    ) -> Result<Link<'a>, LinkError> {
        let settings = following.settings();
        let at = match place.host.contains(':') {
            true => format!("[{}]:{}", place.host, place.port),
            false => format!("{}:{}", place.host, place.port),
        };
        let failed = |error| LinkError::Client { at: at.clone(), error };
        let patience = Duration::from_secs(settings.repl_timeout());
        let options = options(settings, at.clone());
        let client = Client::connect_within(&options, patience.min(CONNECT_MAX)).map_err(failed)?;
        let client = client.with_reply_bytes_max(REPLY_BYTES_MAX);
        if let Some(socket) = client.socket()? {
            socket.set_read_timeout(Some(patience))?;
            following.may_interrupt(wanted, socket)?;
        }
        let peer = Connected { client, own: LogWait::new(data.log()), asked: Instant::now() };
        Link::over(following, (data, wanted), Box::new(peer), at)
    }

    /// The link to a server that is reached like this.
    pub(super) fn over(
        following: &'a Following,
        (data, wanted): (&'a FollowedData, &'a Wanted),
        peer: Box<dyn Peer + 'a>,
        at: String,
    ) -> Result<Link<'a>, LinkError> {
        let mut link = Link { following, data, wanted, peer, at };
        link.greet()?;
        Ok(link)
    }

    fn failed(&self, error: ClientError) -> LinkError {
        LinkError::Client { at: self.at.clone(), error }
    }

    fn ask(&mut self, words: &[&[u8]]) -> Result<Reply, LinkError> {
        let sent = self.peer.send(words).map_err(ClientError::from);
        let answer = sent.and_then(|()| self.peer.reply());
        self.heard(answer)
    }

    /// What came, unless something else is wanted by now.
    fn heard(&self, answer: Result<Reply, ClientError>) -> Result<Reply, LinkError> {
        if !self.following.still_wants(self.wanted) {
            return Err(LinkError::Changed);
        }
        let reply = answer.map_err(|error| self.failed(error))?;
        self.following.heard();
        match reply {
            Reply::Error(text) => Err(self.failed(ClientError::Refused(text))),
            reply => Ok(reply),
        }
    }

    fn greet(&mut self) -> Result<(), LinkError> {
        let (run_id, host, port) = self.following.own_name();
        let port = port.to_string();
        let words: [&[u8]; 6] = [
            b"LADON.REPLICA",
            b"HELLO",
            VERSION,
            run_id.as_bytes(),
            host.as_bytes(),
            port.as_bytes(),
        ];
        match self.ask(&words) {
            Err(LinkError::Client { at, error: ClientError::Refused(said) })
                if said.contains("unknown command") =>
            {
                Err(LinkError::NotLadon { at, said })
            }
            other => other.map(drop),
        }
    }

    /// Has the other server take over, which is a replica of this one until then.
    pub(super) fn hand_over(&mut self, force: bool) -> Result<(), LinkError> {
        let Some((run, end)) = self.data.position() else {
            let said = "the log of this server is not what its data is".to_owned();
            return Err(LinkError::NoTakeover { said });
        };
        let end = end.to_string();
        let mut words: Vec<&[u8]> = vec![b"LADON.REPLICA", b"TAKEOVER"];
        words.extend([run.as_bytes(), end.as_bytes()]);
        if force {
            words.push(b"FORCE");
        }
        match self.ask(&words) {
            Err(LinkError::Client { error: ClientError::Refused(said), .. }) => {
                Err(LinkError::NoTakeover { said })
            }
            other => other.map(drop),
        }
    }

    /// Whether the other server's log goes on where this one ends, and what that log is.
    fn position(&mut self, run: &str, end: Lsn) -> Result<(bool, Runs), LinkError> {
        let end = end.to_string();
        let words: [&[u8]; 4] = [b"LADON.REPLICA", b"POSITION", run.as_bytes(), end.as_bytes()];
        let reply = self.ask(&words)?;
        position_of(reply).ok_or_else(|| self.failed(ClientError::Malformed))
    }

    /// Follows for as long as that goes well. Returns once all data is here anew, which takes the
    /// place of what is.
    pub(super) fn run(&mut self) -> Result<(), LinkError> {
        let position = self.data.position();
        let (run, end) = position.unwrap_or_else(|| ("-".to_owned(), Lsn::ZERO));
        let (continues, runs) = self.position(&run, end)?;
        if continues {
            let last = runs.last().unwrap_or_default().to_owned();
            self.data.adopt(runs)?;
            tracing::info!("follows {} from LSN {end} on", self.at);
            return self.follow(&last).map(|never| match never {});
        }
        tracing::info!("the log of {} does not go on at LSN {end}: all data comes", self.at);
        self.following.tell(LinkState::Sync);
        self.fetch(&runs)
    }

    /// Brings the files of the other server's data beside this one's.
    fn fetch(&mut self, before: &Runs) -> Result<(), LinkError> {
        let begun = self.ask(&[b"LADON.BACKUP", b"BEGIN"])?;
        let begun = begun_of(begun).ok_or_else(|| self.failed(ClientError::Malformed))?;
        let Begun { id, end, files } = begun;
        // Had another run begun meanwhile, the files might hold some of it.
        let (_, runs) = self.position("-", Lsn::ZERO)?;
        if runs != *before {
            return Err(io::Error::other("another run of its log began meanwhile").into());
        }
        let total: u64 = files.iter().flatten().map(|(_, bytes)| bytes).sum();
        self.following.tell_sync(0, total);
        let mut own = runs;
        own.forget_behind(end);
        own.is_replica = true;
        let own = own.encode();
        let mut listed: Vec<(String, u64)> = files.iter().flatten().cloned().collect();
        listed.push((RUNS_NAME.to_owned(), own.len() as u64));
        let (disk, dir) = (self.data.disk(), self.data.log().dir().to_owned());
        let mut incoming = Incoming::begin(disk, &dir, listed, end)?;
        let fetched = self.fetch_files(&mut incoming, &id, &files, total);
        let fetched = fetched.and_then(|count| Ok(incoming.part(count, 0, &own)?));
        if let Err(error) = fetched {
            if let Err(left) = incoming.abandon() {
                tracing::warn!("cannot remove what has come of the data: {left}");
            }
            return Err(error);
        }
        // From now on, the other server keeps its log from there.
        let run = before.at_end(end).unwrap_or_default().to_owned();
        self.position(&run, end)?;
        self.ask(&[b"LADON.BACKUP", b"END", id.as_bytes()])?;
        incoming.end()?;
        tracing::info!("all data of {} has come, up to LSN {end}: {total} bytes", self.at);
        Ok(())
    }

    /// Returns the number of files. Those that are `None` are not data.
    fn fetch_files(
        &mut self,
        incoming: &mut Incoming,
        id: &str,
        files: &[Option<(String, u64)>],
        total: u64,
    ) -> Result<usize, LinkError> {
        let (mut place, mut done) = (0, 0);
        for (index, file) in files.iter().enumerate() {
            let Some((_, bytes)) = file else { continue };
            let mut asked_at = 0;
            let mut at = 0;
            if *bytes == 0 {
                incoming.part(place, 0, &[])?;
            }
            while at < *bytes {
                while asked_at < *bytes && asked_at < at + PIECES_ASKED as u64 * PIECE_BYTES {
                    let index = index.to_string();
                    let words = [&index, &asked_at.to_string(), &PIECE_BYTES.to_string()];
                    let words = words.map(|word| word.as_bytes());
                    let head: [&[u8]; 3] = [b"LADON.BACKUP", b"READ", id.as_bytes()];
                    self.peer.send(&[&head[..], &words[..]].concat())?;
                    asked_at += PIECE_BYTES;
                }
                let piece = self.peer.reply();
                let Reply::Bulk(Some(piece)) = self.heard(piece)? else {
                    return Err(self.failed(ClientError::Malformed));
                };
                if piece.is_empty() {
                    return Err(io::Error::other("a file of it became shorter").into());
                }
                incoming.part(place, at, &piece)?;
                at += piece.len() as u64;
                done += piece.len() as u64;
                self.following.tell_sync(done, total);
            }
            place += 1;
        }
        Ok(place)
    }

    /// Takes the log as it comes.
    fn follow(&mut self, run: &str) -> Result<std::convert::Infallible, LinkError> {
        let log = Arc::clone(self.data.log());
        let mut receiver = self.data.receiver();
        self.following.tell(LinkState::Connected);
        self.data.take_role(Role::Follows);
        let (mut has_come, mut is_asked) = (false, false);
        loop {
            let is_full = self.data.is_full()?;
            let from = Lsn(log.reserved().0 + receiver.bytes.len() as u64);
            if !is_asked {
                // An answer without bytes also says that somebody waits for what is on the disk here.
                let most = if has_come { Duration::ZERO } else { DISK_WAIT_MAX };
                let is_told = self.peer.own_durable(log.reserved(), most);
                let wait = if is_told && !is_full { HEARTBEAT } else { UNTOLD };
                self.ask_frames(run, from, (wait, if is_full { 0 } else { FRAMES_BYTES }))?;
            }
            let before = receiver.bytes.len();
            let answer = self.peer.reply_into(&mut receiver.bytes);
            let Reply::Bulk(Some(_)) = self.heard(answer)? else {
                return Err(self.failed(ClientError::Malformed));
            };
            let came = receiver.bytes.len() - before;
            // Nothing in answer to what was asked ahead says nothing: nobody waited there.
            has_come = came > 0 || is_asked;
            let received = Lsn(from.0 + came as u64);
            // What is next is read there, and on its way, while this is applied here.
            is_asked = !is_full && self.peer.has_more(came);
            if is_asked {
                self.peer.own_durable_soon(log.reserved());
                self.ask_frames(run, received, (Duration::ZERO, FRAMES_BYTES))?;
            }
            self.data.take(&mut receiver)?;
            self.following.tell_received(received, self.data.applied());
            if is_full {
                self.peer.rest(DISK_WAIT_MAX);
            }
        }
    }

    /// Asks for bytes of the log, at most so many, and tells what is here.
    fn ask_frames(&mut self, run: &str, from: Lsn, most: (Duration, u64)) -> Result<(), LinkError> {
        let (wait, bytes) = most;
        let numbers = [
            from.to_string(),
            self.data.log().durable().to_string(),
            self.data.applied().to_string(),
            wait.as_millis().to_string(),
            bytes.to_string(),
        ];
        let head: [&[u8]; 3] = [b"LADON.REPLICA", b"FRAMES", run.as_bytes()];
        let words: Vec<&[u8]> =
            head.into_iter().chain(numbers.iter().map(|word| word.as_bytes())).collect();
        let sent = self.peer.send(&words).map_err(ClientError::from);
        sent.map_err(|error| self.failed(error))
    }
}

/// A copy that the other server has begun.
struct Begun {
    id: String,
    end: Lsn,
    /// Name and bytes; `None` for what is not data.
    files: Vec<Option<(String, u64)>>,
}

fn text_of(reply: Reply) -> Option<String> {
    match reply {
        Reply::Bulk(Some(bytes)) => String::from_utf8(bytes).ok(),
        Reply::Simple(text) => Some(text),
        _ => None,
    }
}

fn number_of(reply: Reply) -> Option<u64> {
    match reply {
        Reply::Integer(number) => u64::try_from(number).ok(),
        _ => None,
    }
}

fn array_of<const N: usize>(reply: Reply) -> Option<[Reply; N]> {
    match reply {
        Reply::Array(parts) => parts.try_into().ok(),
        _ => None,
    }
}

fn begun_of(reply: Reply) -> Option<Begun> {
    /// Users are each server's own.
    const USERS_NAME: &str = "users.acl";
    let [id, end, files] = array_of(reply)?;
    let Reply::Array(files) = files else { return None };
    let file = |reply: Reply| {
        let [name, bytes] = array_of(reply)?;
        let (name, bytes) = (text_of(name)?, number_of(bytes)?);
        Some((name != USERS_NAME).then_some((name, bytes)))
    };
    let files = files.into_iter().map(file).collect::<Option<Vec<_>>>()?;
    Some(Begun { id: text_of(id)?, end: Lsn(number_of(end)?), files })
}

fn position_of(reply: Reply) -> Option<(bool, Runs)> {
    let [continues, runs] = array_of(reply)?;
    let Reply::Array(runs) = runs else { return None };
    let run = |reply: Reply| {
        let [identity, begin] = array_of(reply)?;
        Some((text_of(identity)?, Lsn(number_of(begin)?)))
    };
    let runs = Runs::of_list(runs.into_iter().map(run).collect::<Option<Vec<_>>>()?)?;
    runs.last()?;
    Some((number_of(continues)? != 0, runs))
}

/// How the other server is reached.
fn options(settings: &Settings, address: String) -> ServerOptions {
    let given = |text: String| Some(text).filter(|text| !text.is_empty());
    let file = |text: String| given(text).map(PathBuf::from);
    let cert = file(settings.tls_cert_file()).zip(file(settings.tls_key_file()));
    let tls = settings.tls_replication().then(|| ClientOptions {
        cacert: file(settings.tls_ca_cert_file()),
        cacertdir: file(settings.tls_ca_cert_dir()),
        cert,
        key_pass: settings.tls_key_file_pass(),
        sni: None,
        trust: Trust::Name,
    });
    let password = given(settings.masterauth().to_string());
    ServerOptions { address, user: given(settings.masteruser()), password, tls }
}

/// The first port that this server listens on for Redis' clients.
pub(super) fn own_port(settings: &Settings) -> u16 {
    let of_tcp = |endpoint: &Endpoint| match endpoint {
        Endpoint::Tcp { port, .. } => Some(*port),
        Endpoint::Unix(_) => None,
    };
    settings.resp().iter().find_map(of_tcp).unwrap_or(0)
}
