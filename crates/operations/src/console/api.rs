//! The console's requests: paths, methods, who may send them, what they carry.

use super::sessions::Session;
use super::{Console, Refusal, call, guard, json, refusal, rights, wire};
use crate::access::Peer;
use crate::body::Answer;
use crate::live::Object;
use bytes::Bytes;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::Body as HttpBody;
use hyper::header::{HeaderValue, SET_COOKIE};
use hyper::http::request::Parts;
use hyper::{Method, StatusCode};
use ladon_identity::User;
use ladon_kernel::node::{LADON_VERSION, REDIS_VERSION};
use ladon_settings::Id;
use serde::Deserialize;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Bytes of a call's body.
const BODY_BYTES_MAX: usize = 1 << 20;

/// Bytes of a login's body.
const LOGIN_BYTES_MAX: usize = 4 << 10;

/// How long a request waits for others to end.
const TURN_TIME_MAX: Duration = Duration::from_secs(1);

/// Somebody who is logged in, as the user is now.
pub(super) struct Caller {
    pub(super) session: Arc<Session>,
    pub(super) user: Arc<User>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Login {
    name: String,
    password: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    #[serde(default)]
    db: u32,
    commands: Vec<Vec<serde_json::Value>>,
}

impl Console {
    /// Answers a request.
    pub(super) async fn api<B>(
        self: &Arc<Self>,
        name: &str,
        request: &Parts,
        body: B,
        peer: &Peer,
    ) -> Result<Answer, Refusal>
    where
        B: HttpBody,
    {
        guard::refuse_foreign(&request.headers)?;
        let method = match name {
            "login" | "logout" | "command" => Method::POST,
            "session" | "history" | "live" | "tail" | "settings" | "spaces" => Method::GET,
            _ => return Err(refusal(StatusCode::NOT_FOUND, "there is no such request")),
        };
        if request.method != method {
            let allow = if method == Method::POST { "POST" } else { "GET" };
            return Err(Refusal::of_method(allow));
        }
        if method == Method::POST {
            guard::refuse_forms(&request.headers)?;
        }
        if name == "login" {
            let login: Login = parse(&read(body, LOGIN_BYTES_MAX).await?)?;
            return self.log_in(&request.headers, peer, login.name, login.password).await;
        }
        let caller = self.caller(request)?;
        match name {
            "logout" => Ok(self.log_out(&caller)),
            "session" => Ok(json(self.describe(&caller))),
            "command" => {
                let body = read(body, BODY_BYTES_MAX).await?;
                self.command(&caller, peer, &body).await
            }
            "history" => {
                self.may_watch(&caller)?;
                Ok(json(self.history.to_json()))
            }
            "live" => {
                self.may_watch(&caller)?;
                Ok(self.live(&caller))
            }
            "tail" => self.tail(&caller, peer, request.uri.query().unwrap_or_default()).await,
            "spaces" => {
                self.may_watch(&caller)?;
                self.spaces().await
            }
            _ => self.settings(&caller, peer).await,
        }
    }

    /// Who sends a request.
    fn caller(&self, request: &Parts) -> Result<Caller, Refusal> {
        let asked = || refusal(StatusCode::UNAUTHORIZED, "log in first");
        let token = guard::token(&request.headers, &self.cookie).ok_or_else(asked)?;
        let session = self.sessions.find(&token).ok_or_else(asked)?;
        let user = self.user_of(&session).ok_or_else(asked)?;
        Ok(Caller { session, user })
    }

    /// The user of a session, if the session goes on.
    pub(super) fn user_of(&self, session: &Arc<Session>) -> Option<Arc<User>> {
        if !self.sessions.has(session) {
            return None;
        }
        let node = self.state.0.node();
        let user = session.user(&self.users.now(&node.accounts));
        if user.is_none() {
            self.sessions.end(session);
        }
        user
    }

    /// What `INFO` shows is for those who may run it.
    fn may_watch(&self, caller: &Caller) -> Result<(), Refusal> {
        let node = self.state.0.node();
        if rights::may(&caller.user, &node.accounts.commands, "info") {
            return Ok(());
        }
        Err(refusal(StatusCode::FORBIDDEN, "this is for users who may run INFO"))
    }

    fn log_out(&self, caller: &Caller) -> Answer {
        self.sessions.end(&caller.session);
        let mut answer = json("{}");
        let gone = format!("{}=; Path=/console/; Max-Age=0", self.cookie);
        if let Ok(gone) = HeaderValue::from_str(&gone) {
            answer.headers_mut().insert(SET_COOKIE, gone);
        }
        answer
    }

    fn describe(&self, caller: &Caller) -> String {
        let node = self.state.0.node();
        let rights = rights::of(&caller.user, &node.accounts.commands);
        let mut out = Object::new();
        out.text("user", &String::from_utf8_lossy(caller.user.name()))
            .raw("rights", &serde_json::json!(rights).to_string())
            .text("version", LADON_VERSION)
            .text("redis_version", REDIS_VERSION)
            .number("started", node.started_ms)
            .number("databases", node.keyspace.databases() as u64)
            .number("threads", node.stats.len() as u64)
            .text("io_backend", &node.io_backend)
            .text("listens", &node.settings.value(Id::resp))
            .text("gate", &node.settings.value(Id::gate))
            .flag("latency_tracking", node.settings.latency_tracking());
        out.end()
    }

    async fn command(&self, caller: &Caller, peer: &Peer, body: &[u8]) -> Result<Answer, Refusal> {
        let call: Call = parse(body)?;
        let commands =
            arguments(&call.commands).map_err(|error| refusal(StatusCode::BAD_REQUEST, error))?;
        let began = Instant::now();
        let (replies, ended) = self.call(caller, peer, call.db, &commands).await?;
        let took = format!("{:.3}", began.elapsed().as_secs_f64() * 1000.0);
        let mut out = b"{\"replies\":[".to_vec();
        out.extend_from_slice(&replies);
        out.extend_from_slice(b"],\"ms\":");
        out.extend_from_slice(took.as_bytes());
        if let Err(error) = ended {
            out.extend_from_slice(b",\"cut\":");
            wire::string(&mut out, error.to_string().as_bytes());
        }
        out.push(b'}');
        Ok(json(out))
    }

    /// Runs commands once there is room for another call.
    pub(super) async fn call(
        &self,
        caller: &Caller,
        peer: &Peer,
        database: u32,
        commands: &[Vec<Vec<u8>>],
    ) -> Result<(Vec<u8>, Result<(), call::CallError>), Refusal> {
        let turn = async {
            let own = caller.session.calls.acquire().await;
            (own, self.calls.acquire().await)
        };
        let turn = tokio::time::timeout(TURN_TIME_MAX, turn).await;
        let Ok(_turn) = turn else {
            let text = "too many commands of the console are under way";
            return Err(refusal(StatusCode::TOO_MANY_REQUESTS, text));
        };
        let user = Arc::clone(&caller.user);
        Ok(call::call(&*self.door, peer, user, database, commands).await)
    }
}

/// The commands of a call.
fn arguments(commands: &[Vec<serde_json::Value>]) -> Result<Vec<Vec<Vec<u8>>>, String> {
    if commands.is_empty() || commands.len() > call::COMMANDS_MAX {
        return Err(format!("a call has 1 to {} commands", call::COMMANDS_MAX));
    }
    let of = |command: &Vec<serde_json::Value>| {
        if command.is_empty() {
            return Err("a command has a name".to_owned());
        }
        command.iter().map(wire::argument).collect()
    };
    commands.iter().map(of).collect()
}

/// All of a body.
async fn read<B: HttpBody>(body: B, bytes_max: usize) -> Result<Bytes, Refusal> {
    let body = Limited::new(body.map_err(|_| Cut), bytes_max);
    match body.collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => {
            let text = format!("the body has more than {bytes_max} bytes");
            Err(refusal(StatusCode::PAYLOAD_TOO_LARGE, text))
        }
        Err(_) => Err(refusal(StatusCode::BAD_REQUEST, "the body cannot be read")),
    }
}

/// A body ended before its end.
#[derive(Debug, thiserror::Error)]
#[error("the body cannot be read")]
struct Cut;

fn parse<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, Refusal> {
    serde_json::from_slice(body).map_err(|error| {
        refusal(StatusCode::BAD_REQUEST, format!("the body is not right: {error}"))
    })
}
