//! Plays a round at both servers and judges the replies.

use std::io;
use std::net::SocketAddr;

use super::crowd;
use super::generate::{Request, Round};
use super::inspect;
use super::judge::Check;
use super::known::{Known, Peer, Verdict};
use crate::connection::{Connection, encode};
use crate::reply::Reply;

/// A reply that differs from the peer's.
#[derive(Clone, Debug)]
pub struct Difference {
    /// The request, as a line of a script.
    pub request: String,
    /// The peer's reply.
    pub wanted: Reply,
    /// What Ladon said.
    pub got: Reply,
    /// The number of the round's request; that of its last one if the keyspace differs at the end.
    pub at: usize,
}

/// Two servers that get the same requests.
#[derive(Debug)]
pub struct Duel {
    reference: SocketAddr,
    subject: SocketAddr,
    peer: Peer,
    /// How often each known difference was met.
    pub known: Known,
}

impl Duel {
    /// `reference` is the real server, `subject` the one to judge.
    ///
    /// # Errors
    /// If the reference does not say who it is.
    pub fn new(reference: SocketAddr, subject: SocketAddr) -> io::Result<Duel> {
        let peer = Peer::of(&mut Connection::open(reference, 2)?)?;
        let known = Known::of(&peer).map_err(io::Error::other)?;
        Ok(Duel { reference, subject, peer, known })
    }

    /// Who the reference is.
    pub fn peer(&self) -> &Peer {
        &self.peer
    }

    /// The first difference of a round, if there is one.
    ///
    /// # Errors
    /// If a server cannot be reached.
    pub fn play(&mut self, round: &Round) -> io::Result<Option<Difference>> {
        let mut pair = self.pair(2)?;
        pair.prepare(round)?;
        if round.connections > 1 {
            match crowd::play(self, &mut pair, round)? {
                Outcome::Same => {}
                Outcome::Diverged => return Ok(None),
                Outcome::Differs(found) => return Ok(Some(found)),
            }
            return self.inspect(&mut pair, round);
        }
        let mut transaction = Vec::new();
        for (number, requests) in round.requests.chunks(round.pipeline).enumerate() {
            let replies = pair.ask(requests);
            for (index, (request, (wanted, got))) in requests.iter().zip(replies).enumerate() {
                let at = number * round.pipeline + index;
                match self.judge(request, &wanted, &got, &mut transaction) {
                    Outcome::Same => {}
                    Outcome::Diverged => return Ok(None),
                    Outcome::Differs(found) => return Ok(Some(Difference { at, ..found })),
                }
            }
        }
        self.inspect(&mut pair, round)
    }

    /// A connection to each.
    pub(super) fn pair(&self, protocol: u8) -> io::Result<Pair> {
        Ok(Pair {
            reference: Connection::open(self.reference, protocol)?,
            subject: Connection::open(self.subject, protocol)?,
        })
    }

    /// What differs in the data after a round.
    fn inspect(&mut self, pair: &mut Pair, round: &Round) -> io::Result<Option<Difference>> {
        let at = round.requests.len().saturating_sub(1);
        for requests in inspect::steps(round.reload) {
            let requests = requests(&mut |requests| pair.ask(requests));
            let replies = pair.ask(&requests);
            for (request, (wanted, got)) in requests.iter().zip(replies) {
                match self.differ(request, &wanted, &got) {
                    Outcome::Same => {}
                    Outcome::Diverged => return Ok(None),
                    Outcome::Differs(found) => {
                        let request = format!("at the end: {}", found.request);
                        return Ok(Some(Difference { at, request, ..found }));
                    }
                }
            }
        }
        Ok(None)
    }

    /// What differs, if it is not known to. `queue`: the requests of the open transaction.
    pub(super) fn judge(
        &mut self,
        request: &Request,
        wanted: &Reply,
        got: &Reply,
        queue: &mut Vec<Request>,
    ) -> Outcome {
        let command = request.words.first().map(|it| it.to_ascii_uppercase()).unwrap_or_default();
        let queued = Reply::Simple("QUEUED".into());
        if *wanted == queued && *got == queued {
            queue.push(request.clone());
            return Outcome::Same;
        }
        if matches!(command.as_slice(), b"MULTI" | b"DISCARD") && !matches!(wanted, Reply::Error(_))
        {
            queue.clear();
        }
        if command == b"EXEC" {
            let queue = std::mem::take(queue);
            if let (Reply::Array(wanted), Reply::Array(got)) = (wanted, got)
                && wanted.len() == queue.len()
                && got.len() == queue.len()
            {
                for (request, (wanted, got)) in queue.iter().zip(wanted.iter().zip(got)) {
                    match self.differ(request, wanted, got) {
                        Outcome::Same => {}
                        other => return other,
                    }
                }
                return Outcome::Same;
            }
        }
        self.differ(request, wanted, got)
    }

    pub(super) fn differ(&mut self, request: &Request, wanted: &Reply, got: &Reply) -> Outcome {
        if request.check.same(wanted, got) {
            return Outcome::Same;
        }
        match self.known.verdict(request, wanted, got) {
            Verdict::Known => Outcome::Same,
            Verdict::Diverged => Outcome::Diverged,
            Verdict::Unknown => {
                let request = request.line();
                let (wanted, got) = (wanted.clone(), got.clone());
                Outcome::Differs(Difference { request, wanted, got, at: 0 })
            }
        }
    }
}

/// What came of one reply, or one round.
pub(super) enum Outcome {
    Same,
    Diverged,
    Differs(Difference),
}

pub(super) struct Pair {
    pub(super) reference: Connection,
    pub(super) subject: Connection,
}

impl Pair {
    /// Empties both servers and sets both up alike.
    fn prepare(&mut self, round: &Round) -> io::Result<()> {
        let mut requests = vec![
            Request::new(Check::Exact, &[b"FLUSHALL"]),
            Request::new(Check::Exact, &[b"SCRIPT", b"FLUSH"]),
            Request::new(Check::Exact, &[b"FUNCTION", b"FLUSH"]),
        ];
        for (name, value) in &round.settings {
            let words = [b"CONFIG", &b"SET"[..], name.as_bytes(), value.as_bytes()];
            requests.push(Request::new(Check::Kind, &words));
        }
        if round.protocol == 3 {
            requests.push(Request::new(Check::Kind, &[b"HELLO", b"3"]));
        }
        for (request, (wanted, got)) in requests.iter().zip(self.ask(&requests)) {
            let setting = request.words[0] == b"CONFIG";
            // A setting may be newer than the reference; Ladon has to know all of them.
            let refused = |reply: &Reply| !matches!(reply, Reply::Simple(_) | Reply::Map(_));
            if refused(&got) || refused(&wanted) && !setting {
                let text = format!("{}: {}, {}", request.line(), wanted.show(), got.show());
                return Err(io::Error::other(text));
            }
        }
        Ok(())
    }

    /// Sends all, then reads all: the reference's reply and the subject's for each.
    pub(super) fn ask(&mut self, requests: &[Request]) -> Vec<(Reply, Reply)> {
        let mut bytes = Vec::new();
        for request in requests {
            encode(&request.words, &mut bytes);
        }
        self.reference.send_raw(&bytes);
        self.subject.send_raw(&bytes);
        requests.iter().map(|_| (self.reference.read(), self.subject.read())).collect()
    }
}
