//! What a request asks for: from method and path to a plan.
//!
//! ```text
//! POST /  /pipeline  /multi-exec                      commands as JSON        (Upstash)
//! GET|POST|PUT|HEAD /COMMAND/ARGUMENT...              a command as a path     (Upstash)
//! GET|POST /subscribe/CH  /psubscribe/P  /monitor     a stream of events      (Upstash)
//! /v1/keys  /v1/keys/KEY                              keys as resources
//! /v1/spaces  /v1/spaces/SPACE  /v1/spaces/SPACE/PK   spaces and their tuples
//! /v1/functions/LIBRARY/NAME                          a function as a handler
//! /v1/openapi.json                                    all of it, described
//! ```

pub mod functions;
pub mod keys;
pub mod openapi;
pub mod spaces;

use crate::command::json::Shape;
use crate::request::head::{Head, Method, Refused};
use functions::FunctionCall;
use keys::KeyRequest;
use spaces::SpaceRequest;

/// How the replies to commands of a JSON body are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonReply {
    /// `{"result":..}`
    One,
    /// `[{"result":..},{"error":..}]`
    List,
    /// The same, of one transaction.
    Transaction,
}

impl JsonReply {
    /// The shape of the body that asks for it.
    pub fn shape(self) -> Shape {
        match self {
            JsonReply::One => Shape::One,
            JsonReply::List | JsonReply::Transaction => Shape::List,
        }
    }
}

/// What to do.
#[derive(Debug)]
pub enum Plan {
    /// Commands in the body.
    Commands(JsonReply),
    /// A command in the path. The body, if there is one, is another argument, followed by the query.
    Path {
        /// Name and arguments.
        args: Vec<Vec<u8>>,
        /// Arguments behind the body.
        query: Vec<Vec<u8>>,
        /// The body counts.
        takes_body: bool,
    },
    /// A stream of events that this command begins.
    Events(Vec<Vec<u8>>),
    /// A key, or all of them.
    Key(KeyRequest),
    /// A space, or a tuple.
    Space(SpaceRequest),
    /// A function.
    Function(FunctionCall),
    /// The description of everything.
    OpenApi,
    /// Which methods there are.
    Allow(&'static str),
}

/// Finds the plan.
///
/// # Errors
/// When there is no such thing, or the request makes no sense.
pub fn route(head: &Head) -> Result<Plan, Refused> {
    use Method::{Get, Head as HeadMethod, Options, Post, Put};
    let segments: Vec<&[u8]> = head.target.segments.iter().map(Vec::as_slice).collect();
    if head.method == Options {
        return Ok(Plan::Allow(methods(&segments)));
    }
    if segments.first() == Some(&&b"v1"[..]) {
        return versioned(head, &segments[1..]);
    }
    if !matches!(head.method, Get | HeadMethod | Post | Put) {
        return Err(Refused::not_allowed("GET, HEAD, POST, PUT, OPTIONS"));
    }
    let of_body = match segments[..] {
        [] | [b""] => Some(JsonReply::One),
        [b"pipeline"] => Some(JsonReply::List),
        [b"multi-exec"] => Some(JsonReply::Transaction),
        _ => None,
    };
    if let Some(reply) = of_body {
        return match head.method {
            Post | Put => Ok(Plan::Commands(reply)),
            _ => Err(Refused::not_allowed("POST, PUT, OPTIONS")),
        };
    }
    if segments == [b"healthz"] {
        return Ok(path(vec![b"PING".to_vec()], Vec::new(), false));
    }
    match segments[..] {
        [b"subscribe", ref channels @ ..] => return events(b"SUBSCRIBE", channels),
        [b"psubscribe", ref patterns @ ..] => return events(b"PSUBSCRIBE", patterns),
        [b"monitor"] => return Ok(Plan::Events(vec![b"MONITOR".to_vec()])),
        _ => {}
    }
    let query = head.target.query.iter().filter(|(name, _)| name != b"_token");
    let query = query.flat_map(|(name, value)| [Some(name.clone()), value.clone()]).flatten();
    let args = segments.iter().map(|segment| segment.to_vec()).collect();
    Ok(path(args, query.collect(), matches!(head.method, Post | Put)))
}

/// The methods of a path.
fn methods(segments: &[&[u8]]) -> &'static str {
    match segments {
        [b"v1", b"keys" | b"spaces"] => "GET, HEAD, OPTIONS",
        [b"v1", b"openapi.json"] => "GET, OPTIONS",
        [b"v1", b"keys", _] => "GET, HEAD, PUT, PATCH, DELETE, OPTIONS",
        [b"v1", b"spaces", _] | [b"v1", b"functions", _, _] => "GET, HEAD, POST, OPTIONS",
        [b"v1", ..] => "GET, HEAD, PUT, PATCH, DELETE, OPTIONS",
        [] | [b"pipeline" | b"multi-exec"] => "POST, PUT, OPTIONS",
        _ => "GET, HEAD, POST, PUT, OPTIONS",
    }
}

fn path(args: Vec<Vec<u8>>, query: Vec<Vec<u8>>, takes_body: bool) -> Plan {
    Plan::Path { args, query, takes_body }
}

fn events(command: &[u8], channels: &[&[u8]]) -> Result<Plan, Refused> {
    if channels.is_empty() || channels.iter().any(|channel| channel.is_empty()) {
        return Err(Refused::new(400, "no channel"));
    }
    let args = std::iter::once(command).chain(channels.iter().copied());
    Ok(Plan::Events(args.map(<[u8]>::to_vec).collect()))
}

fn versioned(head: &Head, segments: &[&[u8]]) -> Result<Plan, Refused> {
    match segments {
        [b"keys", rest @ ..] => KeyRequest::of(head, rest).map(Plan::Key),
        [b"spaces", rest @ ..] => SpaceRequest::of(head, rest).map(Plan::Space),
        [b"functions", library, name] => FunctionCall::of(head, library, name).map(Plan::Function),
        [b"openapi.json"] if head.method == Method::Get => Ok(Plan::OpenApi),
        [b"openapi.json"] => Err(Refused::not_allowed("GET, OPTIONS")),
        _ => Err(Refused::new(404, "there is no such path; GET /v1/openapi.json describes all")),
    }
}

/// Refuses names in the query that mean nothing: a misspelt one must not be passed over.
pub(crate) fn check_query(head: &Head, names: &[&str]) -> Result<(), Refused> {
    match head.target.other_than(names).filter(|name| *name != b"_token") {
        None => Ok(()),
        Some(name) => Err(Refused::new(
            400,
            format!("the query has no {:?} here", String::from_utf8_lossy(name)),
        )),
    }
}
