//! One connection: requests of HTTP to requests of RESP, and the replies to responses. No sockets.
//!
//! ```text
//! client --bytes--> step: head -> login? -> body -> plan --requests of RESP--> server
//!                                                    |
//!                                                exchanges (first in, first out)
//!                                                    |
//! client <--bytes-- out <- render <- tokens <- replied <----------replies---- server
//! ```
//!
//! Requests may be pipelined: their commands go to the server at once, and [`EXCHANGES_MAX`] wait for
//! their replies. Only a login holds up the requests behind it, and a stream of events all of them.

mod exchange;
mod incoming;

use crate::command::{Commands, write_request};
use crate::render::Step as RenderStep;
use crate::reply::response::Manner;
use crate::reply::tokens::{Token, Tokens};
use crate::request::credentials::Credentials;
use crate::request::head::{self, BodyKind, Head, Method, Refused};
use crate::request::sites::Sites;
use exchange::{Exchange, Kind};
use incoming::Incoming;
use std::collections::VecDeque;

/// Requests of a connection that wait for replies.
const EXCHANGES_MAX: usize = 64;

/// Bytes of requests that a step makes, and bytes of the client that it takes; the next one goes on.
const STEP_BYTES: usize = 64 << 10;

/// Responses beyond this wait until these have left.
const OUT_BYTES: usize = 48 << 10;

/// A body that no request needs is read, up to this length, so that the connection can go on.
const DISCARDED_BYTES_MAX: u64 = 64 << 10;

/// With a longer body, whoever shows no credentials has to be let in before it is read.
const STRANGERS_BODY_MAX: u64 = 4 << 10;

/// What all connections have in common.
#[derive(Clone, Debug)]
pub struct Rules {
    /// Whose pages may ask.
    pub sites: Sites,
    /// Bytes of a body of JSON.
    pub body_bytes_max: u64,
}

/// The moment of a call.
#[derive(Clone, Copy, Debug)]
pub struct Now<'a> {
    /// The rules of the moment.
    pub rules: &'a Rules,
    /// The text of the header `Date`.
    pub date: &'a str,
    /// Seconds of a clock that only goes forward.
    pub seconds: u64,
}

/// As whom the server takes the connection.
#[derive(Clone, Debug, PartialEq, Eq)]
enum User {
    /// As at first.
    Fresh,
    /// By these credentials.
    Of(Credentials),
    /// A login failed, or is under way.
    Unknown,
}

/// What the next bytes are.
#[derive(Debug)]
enum Reading {
    Head,
    /// A head is there; its credentials are being looked at.
    Login(Box<Head>),
    Body(Box<Incoming>),
    /// Nothing is read any more.
    Nothing,
}

/// What a step has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// There is more to do at once.
    More,
    /// Bytes have to come, from the client or from the server.
    Wait,
}

/// A connection of a client of HTTP.
#[derive(Debug)]
pub struct Connection {
    reading: Reading,
    user: User,
    /// The server lets it in as that user.
    is_let_in: bool,
    exchanges: VecDeque<Exchange>,
    /// Commands that are becoming requests.
    emission: Option<Box<Commands>>,
    /// What a login has come to: it was refused, in these words.
    login: Option<Result<(), Vec<u8>>>,
    tokens: Tokens,
    /// What goes to the client.
    out: Vec<u8>,
    /// The connection ends when `out` has left.
    ends: bool,
    was_refused: bool,
    /// When the request that is being read began, and how much of it has come.
    began: Option<u64>,
    came: u64,
    /// A login outlives its request, which the tests must notice.
    #[cfg(test)]
    kept_login_canary: bool,
}

impl Default for Connection {
    fn default() -> Connection {
        Connection {
            reading: Reading::Head,
            user: User::Fresh,
            is_let_in: false,
            exchanges: VecDeque::new(),
            emission: None,
            login: None,
            tokens: Tokens::default(),
            out: Vec::new(),
            ends: false,
            was_refused: false,
            began: None,
            came: 0,
            #[cfg(test)]
            kept_login_canary: false,
        }
    }
}

impl Connection {
    /// Memory that it holds, besides what it was given.
    pub fn bytes(&self) -> usize {
        let reading = match &self.reading {
            Reading::Body(incoming) => incoming.bytes(),
            Reading::Head | Reading::Login(_) | Reading::Nothing => 0,
        };
        let exchanges: usize = self.exchanges.iter().map(Exchange::bytes).sum();
        let emission = self.emission.as_ref().map_or(0, |commands| commands.bytes());
        reading + exchanges + emission + self.tokens.bytes() + self.out.capacity()
    }

    /// Takes what has to go to the client, if there is something.
    pub fn take_out(&mut self, spare: Vec<u8>) -> Vec<u8> {
        std::mem::replace(&mut self.out, spare)
    }

    /// Whether something has to go to the client.
    pub fn has_out(&self) -> bool {
        !self.out.is_empty()
    }

    /// Whether the connection ends once all has left.
    pub fn ends(&self) -> bool {
        self.ends
    }

    /// Whether the client may be sending still what nobody reads.
    pub fn was_refused(&self) -> bool {
        self.was_refused
    }

    /// Whether a step would do something without another byte.
    pub fn wants_step(&self) -> bool {
        self.emission.is_some() || self.login.is_some()
    }

    /// Whether nothing of the client's bytes is taken at the moment.
    pub fn is_stuck(&self) -> bool {
        self.emission.is_some()
            || self.exchanges.len() >= EXCHANGES_MAX
            || self.is_held_up()
            || matches!(self.reading, Reading::Login(_))
    }

    /// Since when a request is incomplete, in seconds, and how many bytes of it have come.
    pub fn incomplete_since(&self) -> Option<(u64, u64)> {
        if self.is_stuck() || self.ends { None } else { self.began.map(|began| (began, self.came)) }
    }

    /// Whether a request is being read or answered.
    pub fn is_busy(&self) -> bool {
        !self.exchanges.is_empty()
            || self.emission.is_some()
            || !matches!(self.reading, Reading::Head | Reading::Nothing)
    }

    /// A request that takes too long is answered, and the connection ends.
    pub fn is_too_slow(&mut self, now: &Now<'_>) {
        self.refuse(&Refused::new(408, "the request did not come in time"), now);
        self.advance();
    }

    /// The client will send nothing more. Returns whether the server may know it: everything that
    /// came has been passed on.
    pub fn input_ended(&self) -> bool {
        !self.is_stuck()
    }

    /// Nothing else can be asked any more.
    fn is_held_up(&self) -> bool {
        self.exchanges.back().is_some_and(|exchange| exchange.kind.holds_up())
    }

    /// Takes requests from the beginning of `input`, and appends what they ask of the server to
    /// `requests`. Returns how many bytes were taken.
    pub fn step(&mut self, input: &[u8], requests: &mut Vec<u8>, now: &Now<'_>) -> (usize, Step) {
        let mut taken = 0;
        loop {
            if let Some(commands) = &mut self.emission {
                if commands.write(requests, STEP_BYTES) {
                    return (taken, Step::More);
                }
                self.emission = None;
            }
            if requests.len() >= STEP_BYTES {
                return (taken, Step::More);
            }
            let rest = &input[taken..];
            let count = match self.read(rest, requests, now) {
                Ok(Some(count)) => count,
                Ok(None) => {
                    self.advance();
                    return (taken, Step::Wait);
                }
                Err(refused) => {
                    self.refuse(&refused, now);
                    self.advance();
                    return (input.len(), Step::Wait);
                }
            };
            taken += count;
            if taken >= STEP_BYTES {
                return (taken, Step::More);
            }
        }
    }

    /// Reads the next thing; `None` if that needs something else first.
    fn read(
        &mut self,
        input: &[u8],
        requests: &mut Vec<u8>,
        now: &Now<'_>,
    ) -> Result<Option<usize>, Refused> {
        if let Reading::Login(_) = self.reading {
            return self.go_on_after_login(requests, now);
        }
        if self.exchanges.len() >= EXCHANGES_MAX || self.is_held_up() {
            return Ok(None);
        }
        match &mut self.reading {
            Reading::Head => self.read_head(input, requests, now),
            Reading::Body(incoming) => {
                let count = incoming.take(input, requests)?;
                self.came += count as u64;
                if !incoming.is_over() {
                    return Ok((count > 0).then_some(count));
                }
                self.body_is_over(requests, now);
                Ok(Some(count))
            }
            // Who sends more is not read, so that it sees the answer.
            Reading::Nothing => Ok((!input.is_empty()).then_some(input.len())),
            Reading::Login(_) => Ok(None),
        }
    }

    fn read_head(
        &mut self,
        input: &[u8],
        requests: &mut Vec<u8>,
        now: &Now<'_>,
    ) -> Result<Option<usize>, Refused> {
        // Empty lines in front of a request are passed over (RFC 9112, section 2.2).
        if let Some(rest) = input.strip_prefix(b"\r\n") {
            return Ok(Some(input.len() - rest.len()));
        }
        if matches!(input, b"" | b"\r") {
            self.began = None;
            return Ok(None);
        }
        self.began.get_or_insert(now.seconds);
        self.came = input.len() as u64;
        let Some((head, count)) = head::parse(input)? else { return Ok(None) };
        self.came = 0;
        let credentials = Credentials::of(&head);
        if head.method == Method::Options {
            // A browser asks without credentials whether it may ask with them.
            let origin = now.rules.sites.check(&head.headers, true)?;
            self.begin(head, origin, requests, now)?;
            return Ok(Some(count));
        }
        let has_credentials = credentials != Credentials::None;
        let origin = now.rules.sites.check(&head.headers, has_credentials)?;
        if self.needs_login(&head, &credentials) {
            self.log_in(&credentials, requests)?;
            self.reading = Reading::Login(Box::new(head));
            return Ok(Some(count));
        }
        self.begin(head, origin, requests, now)?;
        Ok(Some(count))
    }

    fn needs_login(&self, head: &Head, credentials: &Credentials) -> bool {
        let is_long = match head.body {
            BodyKind::Length(length) => length > STRANGERS_BODY_MAX,
            BodyKind::Chunked => true,
        };
        match &self.user {
            User::Fresh => *credentials != Credentials::None || is_long && !self.is_let_in,
            #[cfg(test)]
            User::Of(_) if self.kept_login_canary => false,
            User::Of(known) => known != credentials,
            User::Unknown => true,
        }
    }

    fn log_in(&mut self, credentials: &Credentials, requests: &mut Vec<u8>) -> Result<(), Refused> {
        match (credentials, &self.user) {
            (Credentials::Given(_), _) => {
                let Some(login) = credentials.login() else {
                    return Err(Refused::new(
                        401,
                        "WRONGPASS Authorization is Bearer PASSWORD, Bearer USER:PASSWORD or Basic",
                    ));
                };
                let user = login.user.as_deref();
                let words = [Some(&b"AUTH"[..]), user, Some(&login.password)];
                write_request(requests, &words.into_iter().flatten().collect::<Vec<_>>());
                self.user = User::Unknown;
            }
            // Asks only whether it is let in.
            (Credentials::None, User::Fresh) => write_request(requests, &[b"PING"]),
            (Credentials::None, _) => {
                write_request(requests, &[b"RESET"]);
                self.user = User::Unknown;
            }
        }
        self.login = None;
        self.exchanges.push_back(Exchange::new(Kind::Login, Manner::default()));
        self.advance();
        Ok(())
    }

    fn go_on_after_login(
        &mut self,
        requests: &mut Vec<u8>,
        now: &Now<'_>,
    ) -> Result<Option<usize>, Refused> {
        let Some(result) = self.login.take() else { return Ok(None) };
        let Reading::Login(head) = std::mem::replace(&mut self.reading, Reading::Nothing) else {
            return Ok(None);
        };
        if let Err(text) = result {
            let status = crate::reply::response::status_of(&text);
            return Err(Refused::new(status, String::from_utf8_lossy(&text)));
        }
        let credentials = Credentials::of(&head);
        let has_credentials = credentials != Credentials::None;
        self.user = match credentials {
            Credentials::None => User::Fresh,
            given => User::Of(given),
        };
        self.is_let_in = true;
        let origin = now.rules.sites.check(&head.headers, has_credentials)?;
        self.begin(*head, origin, requests, now)?;
        Ok(Some(0))
    }

    /// A head is read, and who sent it may ask: what follows is its body.
    fn begin(
        &mut self,
        head: Head,
        origin: Option<Box<str>>,
        requests: &mut Vec<u8>,
        now: &Now<'_>,
    ) -> Result<(), Refused> {
        self.reading = Reading::Head;
        let expects = head.expects_continue;
        let mut incoming = Box::new(Incoming::of(head, origin, now)?);
        self.advance();
        let waits_for_nobody = self.exchanges.is_empty();
        incoming.begins(&mut self.exchanges, requests);
        let is_over = incoming.is_over();
        self.reading = Reading::Body(incoming);
        if is_over {
            self.body_is_over(requests, now);
        } else if expects && waits_for_nobody {
            // Otherwise the client sends its body when it has waited long enough.
            self.out.extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
        }
        Ok(())
    }

    fn body_is_over(&mut self, requests: &mut Vec<u8>, now: &Now<'_>) {
        let Reading::Body(incoming) = std::mem::replace(&mut self.reading, Reading::Head) else {
            return;
        };
        self.began = None;
        let keeps_alive = incoming.keeps_alive();
        let commands = incoming.finish(&mut self.exchanges, requests, now);
        self.emission = commands.map(Box::new);
        if !keeps_alive {
            self.reading = Reading::Nothing;
        }
    }

    /// Answers, and reads nothing more.
    fn refuse(&mut self, refused: &Refused, now: &Now<'_>) {
        if let Reading::Body(incoming) = &self.reading
            && incoming.has_begun_to_ask()
        {
            // The server has a part of it: there is no way to go on, and nothing to say before its
            // reply.
            self.exchanges.pop_back();
        }
        self.reading = Reading::Nothing;
        self.emission = None;
        self.began = None;
        self.was_refused = true;
        self.exchanges.push_back(Exchange::refusal(refused, Manner::default(), now));
    }

    /// Lets out what needs no reply.
    fn advance(&mut self) {
        while let Some(Exchange { kind: Kind::Ready(_), .. }) = self.exchanges.front() {
            let Some(Exchange { kind: Kind::Ready(bytes), ends, .. }) = self.exchanges.pop_front()
            else {
                return;
            };
            self.out.extend_from_slice(&bytes);
            self.ends |= ends;
        }
    }

    /// Takes replies from the beginning of `bytes`, as far as the client takes responses. Returns how
    /// many bytes were taken.
    pub fn replied(&mut self, bytes: &[u8], now: &Now<'_>) -> usize {
        let mut taken = 0;
        while self.out.len() < OUT_BYTES {
            if self.ends {
                // Nobody waits for it.
                return bytes.len();
            }
            let mut pass = PassedOn::default();
            let Connection { tokens, exchanges, out, login, .. } = self;
            let front = exchanges.front_mut();
            let step = tokens.next(&bytes[taken..], |token, depth| {
                let is_unasked = front.is_none();
                match front {
                    Some(exchange) => exchange.token(token, depth, out, login, now, &mut pass),
                    None => pass.unasked(token),
                }
                pass.is_unasked = is_unasked;
                pass.is_inside = depth > 0 || !token.ends_element();
            });
            match step {
                Ok(Some(count)) => taken += count,
                Ok(None) => return bytes.len(),
                Err(_) => {
                    self.ends = true;
                    return bytes.len();
                }
            }
            self.follow(pass, now);
        }
        taken
    }

    fn follow(&mut self, pass: PassedOn, now: &Now<'_>) {
        if pass.is_unasked {
            if let Some(text) = pass.error {
                // The server ends the connection, and says why.
                let status = crate::reply::response::status_of(&text);
                let status = if status == 400 { 503 } else { status };
                self.refuse(&Refused::new(status, String::from_utf8_lossy(&text)), now);
            }
        } else {
            match pass.step {
                Some(RenderStep::Done) => {
                    if let Some(exchange) = self.exchanges.pop_front() {
                        // What is answered before its reply is over was no reply to it.
                        self.ends |= exchange.ends || pass.is_inside;
                    }
                }
                Some(RenderStep::More) | None => {}
            }
        }
        self.advance();
    }
}

/// What a token has led to.
#[derive(Default)]
struct PassedOn {
    step: Option<RenderStep>,
    is_unasked: bool,
    /// The reply goes on behind the token.
    is_inside: bool,
    error: Option<Vec<u8>>,
}

impl PassedOn {
    fn unasked(&mut self, token: Token<'_>) {
        if let Token::Error(text) = token {
            self.error = Some(text.to_vec());
        }
    }
}

#[cfg(test)]
mod tests;
