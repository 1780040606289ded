//! From a name and a password to a session.

use super::call::{CallError, Connection};
use super::sessions::Session;
use super::{Console, Refusal, guard, json, refusal};
use crate::access::Peer;
use crate::body::Answer;
use crate::respond::WRONG_AFTER;
use hyper::header::{HeaderValue, SET_COOKIE};
use hyper::{HeaderMap, StatusCode};
use ladon_identity::{PasswordHash, User};
use ladon_resp::client::Value;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

/// How long a login waits for others to end.
const TURN_TIME_MAX: Duration = Duration::from_secs(3);

/// Bytes of a session's secret.
const TOKEN_BYTES: usize = 32;

impl Console {
    pub(super) async fn log_in(
        self: &Arc<Self>,
        headers: &HeaderMap,
        peer: &Peer,
        name: String,
        password: String,
    ) -> Result<Answer, Refusal> {
        self.refuse_rebound(headers, &name)?;
        let turn = Arc::clone(&self.logins).acquire_owned();
        let Ok(Ok(turn)) = tokio::time::timeout(TURN_TIME_MAX, turn).await else {
            let text = "too many logins are under way; try again";
            return Err(refusal(StatusCode::TOO_MANY_REQUESTS, text));
        };
        let (console, peer) = (Arc::clone(self), peer.clone());
        // A task of its own: whoever hangs up early does not guess any faster.
        let task = tokio::spawn(async move {
            let result = console.try_log_in(&peer, &name, &password).await;
            if result.is_err() {
                tokio::time::sleep(WRONG_AFTER).await;
            }
            drop(turn);
            result
        });
        let stopped = || refusal(StatusCode::SERVICE_UNAVAILABLE, "the server stops");
        let user = match task.await {
            Ok(Ok((user, password))) => (user, password),
            Ok(Err((status, text))) => return Err(refusal(status, text)),
            Err(_) => return Err(stopped()),
        };
        let token = random_token().ok_or_else(stopped)?;
        let session = Session::new(PasswordHash::of(token.as_bytes()), user.0, user.1.as_bytes());
        self.sessions.add(session);
        let mut answer = json("{}");
        let cookie = format!("{}={token}; Path=/console/; HttpOnly; SameSite=Strict", self.cookie);
        let cookie = HeaderValue::from_str(&cookie).map_err(|_| stopped())?;
        answer.headers_mut().insert(SET_COOKIE, cookie);
        Ok(answer)
    }

    /// Where anybody may log in, a foreign page that lets its name point here must not.
    fn refuse_rebound(&self, headers: &HeaderMap, name: &str) -> Result<(), Refusal> {
        let node = self.state.0.node();
        let users = self.users.now(&node.accounts);
        let is_open = users.get(name.as_bytes()).is_some_and(|user| user.needs_no_password());
        if is_open && !guard::is_plain_host(headers) {
            let text = "this user needs no password, so the console has to be opened by an IP \
                        address or as localhost: a page of another site could come by another name";
            return Err(refusal(StatusCode::FORBIDDEN, text));
        }
        Ok(())
    }

    /// Asks the server, which counts a wrong password and writes it down like any other.
    async fn try_log_in(
        &self,
        peer: &Peer,
        name: &str,
        password: &str,
    ) -> Result<(Arc<User>, String), (StatusCode, String)> {
        let auth = [b"AUTH", name.as_bytes(), password.as_bytes()];
        let opened = Connection::open(&*self.door, peer, None, &auth).await;
        let (_, greeting) = opened
            .map_err(|error: CallError| (StatusCode::SERVICE_UNAVAILABLE, error.to_string()))?;
        if let Value::Error(error) = greeting {
            let is_wrong = error.starts_with(b"WRONGPASS");
            let status = match is_wrong {
                true => StatusCode::UNAUTHORIZED,
                false => StatusCode::SERVICE_UNAVAILABLE,
            };
            return Err((status, String::from_utf8_lossy(&error).into_owned()));
        }
        let node = self.state.0.node();
        let users = self.users.now(&node.accounts);
        match users.authenticate(name.as_bytes(), password.as_bytes()) {
            Some(user) => Ok((Arc::clone(user), password.to_owned())),
            None => Err((StatusCode::UNAUTHORIZED, "the user has just changed".to_owned())),
        }
    }
}

/// As hexadecimal digits; `None` if the system has no randomness.
fn random_token() -> Option<String> {
    let mut bytes = [0; TOKEN_BYTES];
    getrandom::fill(&mut bytes).ok()?;
    let mut token = String::with_capacity(2 * TOKEN_BYTES);
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(token, "{byte:02x}");
    }
    Some(token)
}
