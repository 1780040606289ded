//! A request whose response is owed.

use super::{Now, PassedOn};
use crate::render::{
    Document, Events, Function, GetKey, JsonList, JsonOne, JsonTransaction, Making, OpenApi,
    ScanKeys, Status, Step, write_error,
};
use crate::reply::response::{Manner, Response};
use crate::reply::tokens::Token;
use crate::request::head::Refused;

/// How its replies become its response.
#[derive(Debug)]
pub(super) enum Kind {
    /// The response is made already.
    Ready(Vec<u8>),
    /// The reply says whether another request may go on.
    Login,
    One(Box<JsonOne>),
    List(Box<JsonList>),
    Transaction(Box<JsonTransaction>),
    Events(Box<Events>),
    GetKey(Box<GetKey>),
    ScanKeys(Box<ScanKeys>),
    Status(Box<Status>),
    Document(Document),
    Function(Box<Function>),
    OpenApi(Box<OpenApi>),
}

impl Kind {
    /// Whether no other request may be passed on before this one is answered.
    pub(super) fn holds_up(&self) -> bool {
        matches!(self, Kind::Events(_))
    }
}

/// A request whose response is owed.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) kind: Kind,
    manner: Manner,
    response: Option<Response>,
    /// The connection ends with it.
    pub(super) ends: bool,
}

impl Exchange {
    pub(super) fn new(kind: Kind, manner: Manner) -> Exchange {
        let ends = !manner.keep_alive && !matches!(kind, Kind::Login);
        Exchange { kind, manner, response: None, ends }
    }

    /// One that is answered at once, with a body of JSON; `allow` names the methods that there are.
    pub(super) fn answer(
        status: u16,
        allow: Option<&str>,
        manner: Manner,
        now: &Now<'_>,
        body: impl FnOnce(&mut Vec<u8>),
    ) -> Exchange {
        let mut out = Vec::new();
        let mut response = None;
        let mut making =
            Making { manner: &manner, response: &mut response, date: now.date, out: &mut out };
        let begun = making.begin_json(status);
        if let Some(methods) = allow {
            begun.header("Allow", methods);
        }
        body(making.body());
        making.finish();
        Exchange::new(Kind::Ready(out), manner)
    }

    /// One that is refused.
    pub(super) fn refusal(refused: &Refused, manner: Manner, now: &Now<'_>) -> Exchange {
        Exchange::answer(refused.status, refused.allow, manner, now, |body| {
            write_error(body, refused.why.as_bytes());
        })
    }

    /// Memory that it holds.
    pub(super) fn bytes(&self) -> usize {
        let ready = if let Kind::Ready(bytes) = &self.kind { bytes.capacity() } else { 0 };
        let response = self.response.as_ref().map_or(0, Response::bytes);
        size_of::<Exchange>() + ready + response
    }

    pub(super) fn token(
        &mut self,
        token: Token<'_>,
        depth: usize,
        out: &mut Vec<u8>,
        login: &mut Option<Result<(), Vec<u8>>>,
        now: &Now<'_>,
        pass: &mut PassedOn,
    ) {
        let Exchange { kind, manner, response, .. } = self;
        let mut making = Making { manner, response, date: now.date, out };
        let making = &mut making;
        let mut waits = false;
        let step = match kind {
            // It needs no reply: this one is for nobody.
            Kind::Ready(_) => Step::More,
            Kind::Login => {
                if !token.ends_element() || depth > 0 {
                    return;
                }
                *login = Some(match token {
                    Token::Error(text) if is_refusal(text) => Err(text.to_vec()),
                    _ => Ok(()),
                });
                Step::Done
            }
            Kind::One(one) => one.token(token, depth, making),
            Kind::List(list) => list.token(token, depth, making),
            Kind::Transaction(transaction) => transaction.token(token, depth, making),
            Kind::Events(events) => {
                let step = events.token(token, depth, making);
                waits = events.waits();
                step
            }
            Kind::GetKey(get) => {
                let step = get.token(token, depth, making);
                waits = get.waits();
                step
            }
            Kind::ScanKeys(scan) => scan.token(token, depth, making),
            Kind::Status(status) => status.token(token, depth, making),
            Kind::Document(document) => document.token(token, making),
            Kind::Function(function) => {
                let step = function.token(token, depth, making);
                waits = function.waits();
                step
            }
            Kind::OpenApi(open_api) => open_api.token(token, making),
        };
        if !waits && let Some(response) = making.response {
            response.flush(making.out);
        }
        pass.step = Some(step);
    }
}

/// Whether an error says that someone is not let in, rather than that nobody is served now.
fn is_refusal(text: &[u8]) -> bool {
    [&b"NOAUTH"[..], b"WRONGPASS", b"ERR"].iter().any(|word| text.starts_with(word))
}
