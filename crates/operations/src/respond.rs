//! From a request to its response: paths, methods, rights. No sockets.

use crate::access::{Access, Peer};
use crate::body::{Answer, Body};
use crate::console::Console;
use crate::door::Door;
use crate::health::{Health, Said};
use crate::texts::{Format, Names, Texts};
use crate::users::KnownUsers;
use hyper::header::{
    ACCEPT, ALLOW, AUTHORIZATION, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, TRANSFER_ENCODING,
    WWW_AUTHENTICATE,
};
use hyper::http::request::Parts;
use hyper::{HeaderMap, Method, Response, StatusCode};
use ladon_kernel::node::Node;
use ladon_kernel::statistics::failed_logins;
use ladon_settings::Settings;
use std::sync::Arc;
use std::time::Duration;

/// How long the answer to a wrong password is held back, so that guessing takes time. With at most
/// [`crate::http::CONNECTIONS_MAX`] guesses under way.
pub(crate) const WRONG_AFTER: Duration = Duration::from_millis(500);

const INDEX: &str = "\
Ladon's port for operations

/metrics               Prometheus' text format; OpenMetrics if the Accept header asks for it
/metrics?names=redis   with the names of redis_exporter
/healthz               200 while the IO threads turn
/readyz                200 once the data is loaded, while writes are accepted
/console/              the web console, for users who log in
";

/// The node's state, as the port shows it; shared by its threads.
#[derive(Clone)]
pub struct State(pub(crate) Arc<Health>);

impl State {
    /// Of this node.
    pub fn new(node: Arc<Node>) -> State {
        State(Arc::new(Health::new(node)))
    }

    /// The data was exchanged: this node has it.
    pub fn exchange(&self, node: Arc<Node>) {
        self.0.exchange(node);
    }

    /// The server stops: it is not ready any more.
    pub fn stops(&self) {
        self.0.stops();
    }
}

/// What answers requests.
pub struct Port {
    state: State,
    texts: Texts,
    settings: Arc<Settings>,
    users: Arc<KnownUsers>,
    console: Arc<Console>,
}

impl Port {
    /// Over this state. `door` leads to the server that it is a part of.
    pub fn new(state: State, texts: Texts, door: Arc<dyn Door>) -> Port {
        let node = state.0.node();
        let settings = Arc::clone(&node.settings);
        let users = Arc::new(KnownUsers::new(&node.accounts));
        let console = Console::new(state.clone(), door, Arc::clone(&users), texts.clone());
        Port { state, texts, settings, users, console: Arc::new(console) }
    }

    /// Answers a request. Takes time only where it says so: for a text, or a wrong password.
    pub(crate) async fn answer<B>(&self, request: &Parts, body: B, peer: &Peer) -> Answer
    where
        B: hyper::body::Body,
    {
        let is_for_console = Console::has(request.uri.path());
        if !is_for_console && let Some(refusal) = refuse_form(request) {
            return refusal;
        }
        let authorization = request.headers.get(AUTHORIZATION).map(|value| value.as_bytes());
        let node = self.state.0.node();
        let users = (&*self.users.now(&node.accounts), &node.accounts.commands);
        let access = Access::of(&self.settings, users, peer, authorization);
        if access == Access::Protected {
            return text(
                StatusCode::FORBIDDEN,
                "Ladon runs in protected mode: no password is set, so this port serves programs of \
                 this machine only. Set 'http-admin-password' or 'requirepass', or \
                 'protected-mode no' if every network that reaches it is trusted.\n",
            );
        }
        if is_for_console {
            return self.console.answer(request, body, peer).await;
        }
        match request.uri.path() {
            // Probes of an orchestrator have no password, and learn nothing that is secret.
            "/healthz" => said(self.state.0.alive()),
            "/readyz" => said(self.state.0.ready()),
            path => match access {
                Access::Granted => self.page(path, request).await,
                Access::Wrong => {
                    self.tell(peer);
                    tokio::time::sleep(WRONG_AFTER).await;
                    unauthorized()
                }
                _ => unauthorized(),
            },
        }
    }

    async fn page(&self, path: &str, request: &Parts) -> Answer {
        match path {
            "/" => text(StatusCode::OK, INDEX),
            "/metrics" => match names(request.uri.query().unwrap_or_default()) {
                Ok(names) => self.metrics(names, format(&request.headers)).await,
                Err(wrong) => text(StatusCode::BAD_REQUEST, &wrong),
            },
            _ => text(StatusCode::NOT_FOUND, "there is no such page; / lists them\n"),
        }
    }

    async fn metrics(&self, names: Names, format: Format) -> Answer {
        match self.texts.get(names, format).await {
            Some(bytes) => {
                let mut answer = Response::new(Body::of(bytes));
                let kind = format.content_type();
                answer.headers_mut().insert(CONTENT_TYPE, kind);
                answer.headers_mut().insert(CACHE_CONTROL, no_store());
                answer
            }
            None => text(StatusCode::SERVICE_UNAVAILABLE, "the server stops\n"),
        }
    }

    fn tell(&self, peer: &Peer) {
        let addr = match peer {
            Peer::Unix => "unix (http-admin)".to_owned(),
            Peer::Tcp(address) => format!("{address} (http-admin)"),
        };
        let now_ms = self.state.0.node().clock.unix_ms();
        failed_logins::tell(None, &addr, 0, now_ms);
    }
}

/// Refuses what no page of this port takes.
fn refuse_form(request: &Parts) -> Option<Answer> {
    if request.method != Method::GET && request.method != Method::HEAD {
        let mut answer = text(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD are known\n");
        answer.headers_mut().insert(ALLOW, hyper::header::HeaderValue::from_static("GET, HEAD"));
        return Some(answer);
    }
    let length = request.headers.get(CONTENT_LENGTH);
    let has_body = request.headers.contains_key(TRANSFER_ENCODING)
        || length.is_some_and(|length| length.as_bytes() != b"0");
    has_body.then(|| text(StatusCode::PAYLOAD_TOO_LARGE, "a request has no body here\n"))
}

/// The names that a query asks for.
fn names(query: &str) -> Result<Names, String> {
    let mut names = Names::Ladon;
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        names = match pair {
            "names=redis" => Names::Redis,
            "names=ladon" => Names::Ladon,
            _ => return Err("only names=ladon and names=redis are known\n".to_owned()),
        };
    }
    Ok(names)
}

/// OpenMetrics for those who ask for it, as Prometheus does.
fn format(headers: &HeaderMap) -> Format {
    let mut accepted = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    match accepted.any(|value| value.contains("application/openmetrics-text")) {
        true => Format::OpenMetrics,
        false => Format::Prometheus,
    }
}

fn said(said: Said) -> Answer {
    let status = if said.ok { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    text(status, &format!("{}\n", said.text))
}

fn unauthorized() -> Answer {
    let wanted = "a password is needed: Authorization: Bearer PASSWORD, or Bearer USER:PASSWORD or Basic \
                  of a user who may run INFO\n";
    let mut answer = text(StatusCode::UNAUTHORIZED, wanted);
    let challenge = hyper::header::HeaderValue::from_static("Basic realm=\"ladon\"");
    answer.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    answer
}

fn no_store() -> hyper::header::HeaderValue {
    hyper::header::HeaderValue::from_static("no-store")
}

fn text(status: StatusCode, text: &str) -> Answer {
    let mut answer = Response::new(Body::of(text.to_owned()));
    *answer.status_mut() = status;
    let plain = hyper::header::HeaderValue::from_static("text/plain; charset=utf-8");
    answer.headers_mut().insert(CONTENT_TYPE, plain);
    answer.headers_mut().insert(CACHE_CONTROL, no_store());
    answer
}
