//! A request whose body is being read.

use super::exchange::{Exchange, Kind};
use super::{DISCARDED_BYTES_MAX, Now};
use crate::command::json::JsonCommands;
use crate::command::{Commands, write_head};
use crate::render::{
    Acknowledgements, Document, GetKey, JsonList, JsonOne, JsonTransaction, ScanKeys, Status,
    StatusKind,
};
use crate::reply::response::Manner;
use crate::reply::text::Encoding;
use crate::request::body::Body;
use crate::request::head::{BodyKind, Head, Method, Refused};
use crate::route::functions::FunctionCall;
use crate::route::keys::{
    self, Collection, DIGESTED_BYTES_MAX, JSON_BYTES_MAX, KeyRequest, Lifetime,
};
use crate::route::spaces::{Answer, SpaceRequest};
use crate::route::{JsonReply, Plan, route};
use std::collections::VecDeque;
use std::fmt::Write as _;
use xxhash_rust::xxh3::Xxh3;

/// What is done with the bytes of a body.
enum Taking {
    /// They are commands.
    Commands(JsonCommands, JsonReply),
    /// They are passed on as the value of a `SET`, whose options follow.
    Value { digest: Box<Xxh3>, options: Vec<Vec<u8>>, is_digested: bool },
    /// They are kept until all of them are there.
    Kept(Vec<u8>, Then),
    /// They mean nothing.
    Discarded(Then),
}

/// What a request does at the end of its body.
enum Then {
    Path(Vec<Vec<u8>>, Vec<Vec<u8>>),
    Events(Vec<Vec<u8>>),
    Key(KeyRequest),
    Collection { key: Vec<u8>, collection: Collection, lifetime: Lifetime },
    Put { key: Vec<u8>, options: Vec<Vec<u8>> },
    Patch(Vec<u8>),
    Space(SpaceRequest),
    Function(FunctionCall),
    OpenApi,
    Allow(&'static str),
    Refused(Refused),
}

/// A request whose body is being read.
pub(super) struct Incoming {
    body: Body,
    /// Bytes that may still come.
    room: u64,
    manner: Manner,
    encoding: Encoding,
    asked_headers: Option<Box<str>>,
    taking: Taking,
    /// The key and the length, until the request of a value has begun.
    value: Option<(Vec<u8>, u64)>,
    is_passed_on: bool,
}

impl std::fmt::Debug for Incoming {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Incoming").field("body", &self.body).finish_non_exhaustive()
    }
}

impl Incoming {
    /// Finds out what a request wants of its body.
    ///
    /// # Errors
    /// When the body is too long to go on behind it.
    pub(super) fn of(
        mut head: Head,
        origin: Option<Box<str>>,
        now: &Now<'_>,
    ) -> Result<Incoming, Refused> {
        let manner = Manner {
            is_old: head.is_old,
            keep_alive: head.keep_alive,
            is_head: head.method == Method::Head,
            origin,
        };
        let encoding = if head.headers.wants_base64 { Encoding::Base64 } else { Encoding::Utf8 };
        let plan = if head.headers.wants_other_format {
            Err(Refused::new(406, "the only Upstash-Response-Format here is json"))
        } else {
            route(&head)
        };
        let mut value = None;
        let taking = match plan {
            Ok(plan) => taking_of(plan, head.body, &mut value),
            Err(refused) => Taking::Discarded(Then::Refused(refused)),
        };
        let room = match &taking {
            Taking::Commands(..) | Taking::Kept(_, Then::Path(..) | Then::Put { .. }) => {
                now.rules.body_bytes_max
            }
            Taking::Value { .. } => u64::MAX,
            Taking::Kept(..) => JSON_BYTES_MAX as u64,
            Taking::Discarded(_) => DISCARDED_BYTES_MAX,
        };
        if let BodyKind::Length(length) = head.body
            && length > room
        {
            return Err(match taking {
                Taking::Discarded(Then::Refused(refused)) => refused,
                _ => too_long(),
            });
        }
        let asked_headers = head.headers.requests_headers.take();
        let body = Body::new(head.body);
        let is_passed_on = false;
        Ok(Incoming { body, room, manner, encoding, asked_headers, taking, value, is_passed_on })
    }

    pub(super) fn is_over(&self) -> bool {
        self.body.is_over()
    }

    pub(super) fn keeps_alive(&self) -> bool {
        self.manner.keep_alive
    }

    /// Whether a part of its request is with the server.
    pub(super) fn has_begun_to_ask(&self) -> bool {
        self.is_passed_on
    }

    pub(super) fn bytes(&self) -> usize {
        match &self.taking {
            Taking::Commands(parser, _) => parser.bytes(),
            Taking::Value { .. } => size_of::<Xxh3>(),
            Taking::Kept(bytes, _) => bytes.capacity(),
            Taking::Discarded(_) => 0,
        }
    }

    /// A value is passed on from its first byte on.
    pub(super) fn begins(&mut self, exchanges: &mut VecDeque<Exchange>, requests: &mut Vec<u8>) {
        let (Taking::Value { options, .. }, Some((key, length))) =
            (&self.taking, self.value.take())
        else {
            return;
        };
        write_head(requests, b'*', 3 + options.len());
        for word in [&b"SET"[..], &key] {
            write_head(requests, b'$', word.len());
            requests.extend_from_slice(word);
            requests.extend_from_slice(b"\r\n");
        }
        write_head(requests, b'$', usize::try_from(length).unwrap_or(usize::MAX));
        let status = Status::new(StatusKind::Stored { etag: None });
        exchanges.push_back(Exchange::new(Kind::Status(Box::new(status)), self.manner.clone()));
        self.is_passed_on = true;
    }

    /// Takes bytes of the body. Returns how many were taken.
    pub(super) fn take(&mut self, input: &[u8], requests: &mut Vec<u8>) -> Result<usize, Refused> {
        let mut taken = 0;
        while taken < input.len().min(super::STEP_BYTES) && !self.body.is_over() {
            // A long value is passed on a step's share at a time.
            let share = (taken + super::STEP_BYTES).min(input.len());
            let (count, data) = self.body.take(&input[taken..share])?;
            taken += count;
            self.room = self.room.checked_sub(data.len() as u64).ok_or_else(too_long)?;
            match &mut self.taking {
                Taking::Commands(parser, _) => {
                    if let Err(why) = parser.push(data) {
                        // The rest is read if it is short, so that the connection can go on.
                        let refused = Refused::new(400, format!("ERR {why}"));
                        self.taking = Taking::Discarded(Then::Refused(refused));
                        self.room = self.room.min(DISCARDED_BYTES_MAX);
                    }
                }
                Taking::Value { digest, is_digested, .. } => {
                    if *is_digested {
                        digest.update(data);
                    }
                    requests.extend_from_slice(data);
                    if requests.len() >= super::STEP_BYTES {
                        break;
                    }
                }
                Taking::Kept(bytes, _) => bytes.extend_from_slice(data),
                Taking::Discarded(_) => {}
            }
            if count == 0 {
                break;
            }
        }
        Ok(taken)
    }

    /// The body is over: asks the server, or answers. Returns commands that are to become requests.
    pub(super) fn finish(
        self,
        exchanges: &mut VecDeque<Exchange>,
        requests: &mut Vec<u8>,
        now: &Now<'_>,
    ) -> Option<Commands> {
        let Incoming { manner, encoding, taking, asked_headers, .. } = self;
        let outcome = match taking {
            Taking::Value { digest, options, is_digested } => {
                requests.extend_from_slice(b"\r\n");
                for option in &options {
                    write_head(requests, b'$', option.len());
                    requests.extend_from_slice(option);
                    requests.extend_from_slice(b"\r\n");
                }
                if let Some(Exchange { kind: Kind::Status(status), .. }) = exchanges.back_mut() {
                    let etag = is_digested.then(|| format!("{:016x}", digest.digest()));
                    status.kind = StatusKind::Stored { etag };
                }
                return None;
            }
            Taking::Commands(parser, reply) => commands_of(parser, reply, encoding),
            Taking::Kept(bytes, then) => then.run(&bytes, encoding),
            Taking::Discarded(Then::Allow(methods)) => {
                exchanges.push_back(allow(methods, asked_headers.as_deref(), manner, now));
                return None;
            }
            Taking::Discarded(then) => then.run(&[], encoding),
        };
        let exchange = match outcome {
            Ok((Kind::Ready(body), _)) => {
                Exchange::answer(200, None, manner, now, |out| out.extend_from_slice(&body))
            }
            Ok((kind, commands)) => {
                exchanges.push_back(Exchange::new(kind, manner));
                return Some(commands);
            }
            Err(refused) => Exchange::refusal(&refused, manner, now),
        };
        exchanges.push_back(exchange);
        None
    }
}

fn too_long() -> Refused {
    Refused::new(413, "the body is longer than this request may have")
}

fn taking_of(plan: Plan, body: BodyKind, value: &mut Option<(Vec<u8>, u64)>) -> Taking {
    match plan {
        Plan::Commands(reply) => Taking::Commands(JsonCommands::new(reply.shape()), reply),
        Plan::Path { args, query, takes_body } => {
            let then = Then::Path(args, query);
            if takes_body { Taking::Kept(Vec::new(), then) } else { Taking::Discarded(then) }
        }
        Plan::Events(args) => Taking::Discarded(Then::Events(args)),
        Plan::Key(KeyRequest::PutString { key, condition, lifetime }) => {
            let options = keys::set_options(condition.as_ref(), lifetime);
            match body {
                BodyKind::Length(length) => {
                    *value = Some((key, length));
                    let digest = Box::new(Xxh3::new());
                    Taking::Value { digest, options, is_digested: length <= DIGESTED_BYTES_MAX }
                }
                BodyKind::Chunked => Taking::Kept(Vec::new(), Then::Put { key, options }),
            }
        }
        Plan::Key(KeyRequest::PutCollection { key, collection, lifetime }) => {
            Taking::Kept(Vec::new(), Then::Collection { key, collection, lifetime })
        }
        Plan::Key(KeyRequest::Patch(key)) => Taking::Kept(Vec::new(), Then::Patch(key)),
        Plan::Key(request) => Taking::Discarded(Then::Key(request)),
        Plan::Space(request) if request.takes_body => {
            Taking::Kept(Vec::new(), Then::Space(request))
        }
        Plan::Space(request) => Taking::Discarded(Then::Space(request)),
        Plan::Function(call) => Taking::Kept(Vec::new(), Then::Function(call)),
        Plan::OpenApi => Taking::Discarded(Then::OpenApi),
        Plan::Allow(methods) => Taking::Discarded(Then::Allow(methods)),
    }
}

type Outcome = Result<(Kind, Commands), Refused>;

fn commands_of(parser: JsonCommands, reply: JsonReply, encoding: Encoding) -> Outcome {
    let refused = |why| Refused::new(400, format!("ERR {why}"));
    let commands = parser.finish().map_err(refused)?;
    let count = commands.len();
    let kind = match reply {
        JsonReply::One => Kind::One(Box::new(JsonOne::new(encoding))),
        _ if count == 0 => Kind::Ready(b"[]".to_vec()),
        JsonReply::List => Kind::List(Box::new(JsonList::new(encoding, count))),
        JsonReply::Transaction => {
            let commands = commands.in_transaction();
            let kind = Kind::Transaction(Box::new(JsonTransaction::new(encoding, count)));
            return Ok((kind, commands));
        }
    };
    Ok((kind, commands))
}

impl Then {
    fn run(self, body: &[u8], encoding: Encoding) -> Outcome {
        let of = |args: &[Vec<u8>]| {
            let args: Vec<&[u8]> = args.iter().map(Vec::as_slice).collect();
            let mut commands = Commands::default();
            commands.add(&args);
            commands
        };
        let stored = || StatusKind::Stored { etag: None };
        let status = |kind| Kind::Status(Box::new(Status::new(kind)));
        Ok(match self {
            Then::Path(mut args, query) => {
                if !body.is_empty() {
                    args.push(body.to_vec());
                }
                args.extend(query);
                let args: Vec<&[u8]> = args.iter().map(Vec::as_slice).collect();
                let commands =
                    Commands::one(&args).map_err(|why| Refused::new(400, format!("ERR {why}")))?;
                (Kind::One(Box::new(JsonOne::new(encoding))), commands)
            }
            Then::Events(args) => (Kind::Events(Box::default()), of(&args)),
            Then::Key(KeyRequest::Scan(args)) => {
                (Kind::ScanKeys(Box::new(ScanKeys::new(encoding))), of(&args))
            }
            Then::Key(KeyRequest::Get { key, as_json, known }) => {
                let get = GetKey::new(as_json, known, encoding);
                (Kind::GetKey(Box::new(get)), keys::read(&key))
            }
            Then::Key(KeyRequest::Delete { key, condition }) => {
                let is_conditional = condition.is_some();
                let commands = keys::delete(&key, condition.as_ref())?;
                (status(StatusKind::Deleted { is_conditional }), commands)
            }
            // Their bodies are kept or passed on.
            Then::Key(_) => return Err(Refused::new(500, "a body is missing")),
            Then::Collection { key, collection, lifetime } => {
                let commands = keys::put_collection(&key, collection, lifetime, body)?;
                let acknowledgements = Acknowledgements::of(commands.len() - 2);
                (status(StatusKind::Transaction(acknowledgements)), commands)
            }
            Then::Put { key, options } => {
                let mut args = vec![b"SET".to_vec(), key, body.to_vec()];
                args.extend(options);
                (status(stored()), of(&args))
            }
            Then::Patch(key) => {
                let commands = keys::patch(&key, body)?;
                let transaction = JsonTransaction::new(encoding, commands.len() - 2);
                (Kind::Transaction(Box::new(transaction)), commands)
            }
            Then::Space(request) => {
                let answer: Answer = request.answer;
                (Kind::Document(Document::new(answer)), request.command(body))
            }
            Then::Function(call) => (Kind::Function(Box::default()), call.command(body)?),
            Then::OpenApi => {
                let list = [b"LADON.SPACE".to_vec(), b"LIST".to_vec()];
                (Kind::OpenApi(Box::default()), of(&list))
            }
            Then::Allow(_) => return Err(Refused::new(500, "no methods")),
            Then::Refused(refused) => return Err(refused),
        })
    }
}

/// The answer to `OPTIONS`; for a browser that asks whether its page may ask.
fn allow(methods: &str, headers: Option<&str>, manner: Manner, now: &Now<'_>) -> Exchange {
    let mut out = Vec::new();
    let may_ask = manner.origin.is_some();
    let mut response = crate::reply::response::Response::new(204, manner.clone(), now.date);
    response.header("Allow", methods);
    if may_ask {
        response.header("Access-Control-Allow-Methods", methods);
        let mut allowed = String::from("Authorization, Content-Type, If-Match, If-None-Match");
        let is_plain =
            |name: &&str| name.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'-');
        for name in headers.unwrap_or_default().split(',').map(str::trim).filter(is_plain) {
            if !name.is_empty() {
                // A string takes everything.
                let _ = write!(allowed, ", {name}");
            }
        }
        response.header("Access-Control-Allow-Headers", allowed);
        response.header("Access-Control-Max-Age", 600);
    }
    response.finish(&mut out);
    Exchange::new(Kind::Ready(out), manner)
}
