//! The web console, under `/console/`.
//!
//! ```text
//! guard.rs     which requests a browser may send here: Host, Origin, content type, cookie
//! sessions.rs  who is logged in
//! login.rs     from a name and a password to a session
//! call.rs      commands on a connection of their own, as the session's user
//! tail.rs      messages of channels, as events
//! live.rs      samples of the server, as events
//! spaces.rs    names and sizes of spaces
//! settings.rs  CONFIG GET, and where each value comes from
//! rights.rs    which commands the user may run, for buttons that show it
//! assets.rs    the pages
//! ```
//!
//! **Architecture invariant:** the console knows no way to data but requests of a user. Each of its
//! calls is a connection that the server serves like any other.

mod api;
mod assets;
mod call;
mod guard;
mod live;
mod login;
mod rights;
mod sessions;
mod settings;
mod spaces;
mod tail;
mod wire;

use crate::access::Peer;
use crate::body::{Answer, Body};
use crate::door::Door;
use crate::live::History;
use crate::respond::State;
use crate::streams::Streams;
use crate::texts::Texts;
use crate::users::KnownUsers;
use hyper::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue, LOCATION};
use hyper::http::request::Parts;
use hyper::{Method, Response, StatusCode};
use sessions::Sessions;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Where the console is.
pub(crate) const PREFIX: &str = "/console";

/// Calls under way, of all sessions together. A call holds a connection of the server's, and up to
/// [`call::REPLY_BYTES_MAX`] of replies.
const CALLS_MAX: usize = 8;

/// Logins under way. With the time that a wrong password takes, it bounds the guesses a second.
const LOGINS_MAX: usize = 8;

/// Open files of the console: both ends of a connection for each call, login and stream.
pub(crate) const FILES: usize = 2 * (CALLS_MAX + LOGINS_MAX + crate::streams::STREAMS_MAX);

/// What the console's requests share.
pub(crate) struct Console {
    state: State,
    door: Arc<dyn Door>,
    users: Arc<KnownUsers>,
    history: Arc<History>,
    texts: Texts,
    sessions: Sessions,
    streams: Arc<Streams>,
    calls: Semaphore,
    logins: Arc<Semaphore>,
    /// The cookie's name, which servers on other ports of this machine do not share.
    cookie: String,
}

impl Console {
    pub(crate) fn new(
        state: State,
        door: Arc<dyn Door>,
        users: Arc<KnownUsers>,
        texts: Texts,
    ) -> Console {
        let run_id: String = state.0.node().run_id.lock().chars().take(8).collect();
        Console {
            state,
            door,
            users,
            history: texts.history(),
            texts,
            sessions: Sessions::default(),
            streams: Arc::default(),
            calls: Semaphore::new(CALLS_MAX),
            logins: Arc::new(Semaphore::new(LOGINS_MAX)),
            cookie: format!("ladon-console-{run_id}"),
        }
    }

    /// Whether a path is the console's.
    pub(crate) fn has(path: &str) -> bool {
        path.strip_prefix(PREFIX).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// Answers a request for one of its paths.
    pub(crate) async fn answer<B>(self: &Arc<Self>, request: &Parts, body: B, peer: &Peer) -> Answer
    where
        B: hyper::body::Body,
    {
        let path = request.uri.path().strip_prefix(PREFIX).unwrap_or_default();
        let mut answer = match path.strip_prefix("/api/") {
            Some(name) => match self.api(name, request, body, peer).await {
                Ok(answer) => answer,
                Err(refusal) => refusal.answer(),
            },
            None if request.method != Method::GET && request.method != Method::HEAD => {
                Refusal::of_method("GET, HEAD").answer()
            }
            None if path.is_empty() => {
                let mut answer = Response::new(Body::of(""));
                *answer.status_mut() = StatusCode::PERMANENT_REDIRECT;
                answer.headers_mut().insert(LOCATION, HeaderValue::from_static("/console/"));
                answer
            }
            None => assets::answer(&path[1..], &request.headers),
        };
        guard::protect(answer.headers_mut());
        answer
    }
}

/// Why a request is not answered, for people and programs: `{"error": ...}`.
struct Refusal {
    status: StatusCode,
    text: String,
    /// The method that the request has to have.
    allow: Option<&'static str>,
}

fn refusal(status: StatusCode, text: impl Into<String>) -> Refusal {
    Refusal { status, text: text.into(), allow: None }
}

impl Refusal {
    /// The request has another method than these.
    fn of_method(allow: &'static str) -> Refusal {
        let text = format!("only {allow} is known here");
        Refusal { status: StatusCode::METHOD_NOT_ALLOWED, text, allow: Some(allow) }
    }

    fn answer(self) -> Answer {
        let mut answer = json(serde_json::json!({ "error": self.text }).to_string());
        *answer.status_mut() = self.status;
        if let Some(allow) = self.allow {
            answer.headers_mut().insert(ALLOW, HeaderValue::from_static(allow));
        }
        answer
    }
}

/// JSON that nobody keeps.
fn json(text: impl Into<bytes::Bytes>) -> Answer {
    let mut answer = Response::new(Body::of(text));
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}
