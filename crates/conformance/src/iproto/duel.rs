//! Plays rounds at both servers, judges the replies, and makes small what differs.

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::time::Duration;

use super::client::{CLOSED, Client, Reply};
use super::generate::Round;
use super::request::Request;
use crate::random::hunt::{Hunt, Sum, cut};
use crate::random::rules::{Rules, Verdict};
use crate::random::shrink::fewest;
use crate::server::{ADMIN_PASSWORD, Server};

const KNOWN: &str = include_str!("../../grammar/iproto_known.txt");

/// A reply that differs from the real server's.
#[derive(Clone, Debug)]
pub struct Difference {
    /// The request.
    pub request: String,
    /// The real server's reply.
    pub wanted: Reply,
    /// What Ladon said.
    pub got: Reply,
    /// The number of the round's request; that of its last one if the data differ at the end.
    pub at: usize,
}

/// A difference, with the least that shows it.
#[derive(Clone, Debug)]
pub struct Found {
    seed: u64,
    length: usize,
    requests: Vec<Request>,
    difference: Difference,
}

/// What starts a server without data.
pub type Start = Box<dyn Fn() -> io::Result<Server>>;

/// How long the real server may take to end after it has closed a connection.
const END_LIMIT: Duration = Duration::from_secs(10);

/// Two servers that get the same requests. If the real one crashes, both are started again.
pub struct Duel {
    start: [Start; 2],
    reference: Server,
    subject: Server,
    /// How often each known difference was met.
    pub known: Rules,
    /// The seeds of the rounds in which the real server crashed or hung.
    pub crashes: Vec<u64>,
    /// The round that is played.
    seed: u64,
}

impl Duel {
    /// `reference` starts the real server, `subject` the one to judge.
    ///
    /// # Errors
    /// If one of them does not start, or does not speak IPROTO.
    pub fn new(reference: Start, subject: Start) -> io::Result<Duel> {
        let known = Rules::parse("iproto_known.txt", KNOWN, "tarantool-2.6");
        let known = known.map_err(io::Error::other)?;
        let start = [reference, subject];
        let (reference, subject) = ((start[0])()?, (start[1])()?);
        Ok(Duel { start, reference, subject, known, crashes: Vec::new(), seed: 0 })
    }

    /// The real server and the one to judge, as they are now.
    pub fn servers(&self) -> (&Server, &Server) {
        (&self.reference, &self.subject)
    }

    /// Starts both again, because the real one has crashed or answers no more.
    fn start_again(&mut self) -> io::Result<()> {
        self.crashes.push(self.seed);
        self.reference = (self.start[0])()?;
        self.subject = (self.start[1])()?;
        Ok(())
    }

    fn connect(&mut self) -> io::Result<Pair> {
        let reference = match connect(&self.reference, "the real server") {
            Ok(reference) => reference,
            Err(_) => {
                self.start_again()?;
                connect(&self.reference, "the real server")?
            }
        };
        Ok(Pair { reference, subject: connect(&self.subject, "ladon")? })
    }

    /// Whether the real server gave no reply because it crashed or hangs.
    fn has_crashed(&mut self, wanted: &Reply) -> io::Result<bool> {
        match wanted {
            Reply::Lost(why) if why == CLOSED => self.reference.ends_within(END_LIMIT),
            Reply::Lost(_) => Ok(true),
            _ => Ok(false),
        }
    }

    /// The first difference that these requests make, if there is one.
    fn play(&mut self, round: &Round, requests: &[Request]) -> io::Result<Option<Difference>> {
        let mut pair = self.connect()?;
        pair.ask(&round.clean);
        let replies = pair.ask(requests);
        for (at, (request, (wanted, got))) in requests.iter().zip(replies).enumerate() {
            match self.judge(request, wanted, got)? {
                Outcome::Same => {}
                Outcome::Diverged => return Ok(None),
                Outcome::Differs(found) => return Ok(Some(Difference { at, ..found })),
            }
        }
        self.inspect(&mut pair, round, requests.len().saturating_sub(1))
    }

    /// What differs in the data after a round.
    fn inspect(
        &mut self,
        pair: &mut Pair,
        round: &Round,
        at: usize,
    ) -> io::Result<Option<Difference>> {
        let replies = pair.ask(&round.reads);
        for (request, (wanted, got)) in round.reads.iter().zip(replies) {
            match self.judge(request, wanted, got)? {
                Outcome::Same => {}
                Outcome::Diverged => return Ok(None),
                Outcome::Differs(found) => {
                    let request = format!("at the end: {}", found.request);
                    return Ok(Some(Difference { at, request, ..found }));
                }
            }
        }
        Ok(None)
    }

    /// What differs, if it is not known to.
    fn judge(&mut self, request: &Request, wanted: Reply, got: Reply) -> io::Result<Outcome> {
        if request.same(&wanted, &got) {
            return Ok(Outcome::Same);
        }
        let line = request.line();
        if self.has_crashed(&wanted)? {
            self.start_again()?;
            return Ok(Outcome::Diverged);
        }
        Ok(match self.known.verdict(&line, &wanted.show(), &got.show()) {
            Verdict::Known => Outcome::Same,
            Verdict::Diverged => Outcome::Diverged,
            Verdict::Unknown => Outcome::Differs(Difference { request: line, wanted, got, at: 0 }),
        })
    }
}

/// Hunts with rounds that `round` makes of a seed and a length; tells `found` each kind of
/// difference once.
///
/// # Errors
/// If a server cannot be reached.
pub fn hunt(
    hunt: Hunt,
    duel: &mut Duel,
    round: impl Fn(u64, usize) -> Round,
    mut found: impl FnMut(Found),
) -> io::Result<Sum> {
    let mut seen = BTreeSet::new();
    hunt.rounds(|seed| {
        let round = round(seed, hunt.length);
        duel.seed = seed;
        let Some(difference) = duel.play(&round, &round.requests)? else {
            return Ok((round.requests.len(), false));
        };
        let requests = round.requests[..=difference.at].to_vec();
        let kind = difference.kind();
        if !seen.insert(kind.clone()) {
            return Ok((round.requests.len(), false));
        }
        let (requests, difference) = fewest(requests, difference, |requests| {
            let found = duel.play(&round, requests)?;
            Ok(found.filter(|it| it.kind() == kind))
        })?;
        found(Found { seed, length: hunt.length, requests, difference });
        Ok((round.requests.len(), true))
    })
}

/// What came of one reply.
enum Outcome {
    Same,
    Diverged,
    Differs(Difference),
}

struct Pair {
    reference: Client,
    subject: Client,
}

impl Pair {
    /// Sends all, then reads all: the reference's reply and the subject's for each.
    fn ask(&mut self, requests: &[Request]) -> Vec<(Reply, Reply)> {
        self.reference.send(requests);
        self.subject.send(requests);
        let wanted = self.reference.read(requests.len());
        wanted.into_iter().zip(self.subject.read(requests.len())).collect()
    }
}

fn connect(server: &Server, who: &str) -> io::Result<Client> {
    let address = server.iproto.ok_or_else(|| io::Error::other("a server without IPROTO"));
    let connected = address.and_then(Client::connect).and_then(|mut client| {
        client.log_in("admin", ADMIN_PASSWORD)?;
        Ok(client)
    });
    connected.map_err(|error| io::Error::other(format!("{who}: {error}")))
}

impl Difference {
    /// Distinguishes kinds of differences, roughly.
    fn kind(&self) -> (String, String, String) {
        let start = |text: String| text.chars().take(40).collect();
        let request = self.request.trim_start_matches("at the end: ");
        let command = request.split(' ').next().unwrap_or_default().to_owned();
        (command, start(self.wanted.show()), start(self.got.show()))
    }
}

impl Found {
    /// How many requests it takes.
    pub fn requests(&self) -> usize {
        self.requests.len()
    }
}

impl fmt::Debug for Duel {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Duel").field("crashes", &self.crashes).finish_non_exhaustive()
    }
}

impl fmt::Display for Found {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Found { seed, length, requests, difference } = self;
        writeln!(out, "# --seed {seed} --commands 1 --length {length}")?;
        for request in requests {
            writeln!(out, "{}", cut(&request.line()))?;
        }
        writeln!(out, "#   request {}", cut(&difference.request))?;
        writeln!(out, "#   wanted  {}", cut(&difference.wanted.show()))?;
        write!(out, "#   got     {}", cut(&difference.got.show()))
    }
}
