//! Who is logged in.
//!
//! A session is that of a user as it was when it logged in: it is over once the user is deleted,
//! turned off, or has lost the password that the session began with.

use ladon_identity::{PasswordHash, User, Users};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// Sessions at a time; for another one, the one that was idle longest leaves.
pub(super) const SESSIONS_MAX: usize = 32;

/// How long a session lasts after its last request. An open stream counts as one.
pub(super) const IDLE_MAX: Duration = Duration::from_secs(30 * 60);

/// Calls of one session at a time.
const CALLS_MAX: usize = 4;

/// Somebody who is logged in.
pub(crate) struct Session {
    /// Of the secret in the cookie.
    token: PasswordHash,
    user: Arc<User>,
    password: PasswordHash,
    used: Mutex<Instant>,
    pub(super) streams: AtomicUsize,
    pub(super) calls: Semaphore,
}

impl Session {
    /// The session of a user who has given this password.
    pub(super) fn new(token: PasswordHash, user: Arc<User>, password: &[u8]) -> Session {
        Session {
            token,
            user,
            password: PasswordHash::of(password),
            used: Mutex::new(Instant::now()),
            streams: AtomicUsize::new(0),
            calls: Semaphore::new(CALLS_MAX),
        }
    }

    /// The user as it is now, if it still may be here.
    pub(super) fn user(&self, users: &Users) -> Option<Arc<User>> {
        let user = users.current(&self.user)?;
        let is_known = user.passwords().iter().any(|known| known.is_same(&self.password));
        let may = user.is_on() && (user.needs_no_password() || is_known);
        may.then(|| Arc::clone(user))
    }

    fn is_over(&self) -> bool {
        self.streams.load(Relaxed) == 0 && self.used.lock().elapsed() >= IDLE_MAX
    }
}

/// All sessions.
#[derive(Default)]
pub(crate) struct Sessions(Mutex<Vec<Arc<Session>>>);

impl Sessions {
    /// Adds one.
    pub(super) fn add(&self, session: Session) {
        let mut all = self.0.lock();
        all.retain(|session| !session.is_over());
        if all.len() >= SESSIONS_MAX {
            let used = all.iter().enumerate().map(|(at, session)| (*session.used.lock(), at));
            if let Some((_, at)) = used.min() {
                all.remove(at);
            }
        }
        all.push(Arc::new(session));
    }

    /// The session with this token, which is used by that.
    pub(super) fn find(&self, token: &PasswordHash) -> Option<Arc<Session>> {
        let mut all = self.0.lock();
        all.retain(|session| !session.is_over());
        let session = all.iter().find(|session| session.token.is_same(token))?;
        *session.used.lock() = Instant::now();
        Some(Arc::clone(session))
    }

    /// Whether a session is still one.
    pub(super) fn has(&self, session: &Arc<Session>) -> bool {
        self.0.lock().iter().any(|known| Arc::ptr_eq(known, session))
    }

    /// Ends one.
    pub(super) fn end(&self, session: &Arc<Session>) {
        self.0.lock().retain(|known| !Arc::ptr_eq(known, session));
    }
}

/// A stream of a session, which is in use meanwhile.
pub(super) struct Watching(pub(super) Arc<Session>);

impl Watching {
    pub(super) fn begin(session: &Arc<Session>) -> Watching {
        session.streams.fetch_add(1, Relaxed);
        Watching(Arc::clone(session))
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        *self.0.used.lock() = Instant::now();
        self.0.streams.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ladon_identity::{CommandTable, RuleContext};

    #[test]
    fn a_session_ends_with_what_its_user_was() {
        let table = CommandTable::new(&[], []);
        let context = RuleContext { table: &table, all_channels_at_first: false };
        let mut users = Users::new(&table);
        let set = |users: &mut Users, rules: &[&str]| {
            let rules = rules.iter().map(|rule| rule.as_bytes());
            assert!(users.set(b"ann", rules, context).is_ok());
        };
        set(&mut users, &["on", ">one"]);
        let user = Arc::clone(users.get(b"ann").expect("a user"));
        let session = Session::new(PasswordHash::of(b"token"), user, b"one");
        assert!(session.user(&users).is_some());
        set(&mut users, &[">two"]);
        assert!(session.user(&users).is_some());
        set(&mut users, &["off"]);
        assert!(session.user(&users).is_none());
        set(&mut users, &["on", "<one"]);
        assert!(session.user(&users).is_none());
        set(&mut users, &["nopass"]);
        assert!(session.user(&users).is_some());
    }

    #[test]
    fn sessions_are_bounded_and_the_idlest_leaves() {
        let table = CommandTable::new(&[], []);
        let users = Users::new(&table);
        let sessions = Sessions::default();
        let token = |number: usize| PasswordHash::of(number.to_string().as_bytes());
        for number in 0..SESSIONS_MAX {
            let user = Arc::clone(users.default_user());
            sessions.add(Session::new(token(number), user, b""));
        }
        let first = sessions.find(&token(0)).expect("the first");
        sessions.add(Session::new(token(1000), Arc::clone(users.default_user()), b""));
        assert!(sessions.find(&token(1)).is_none());
        assert!(sessions.has(&first) && sessions.find(&token(1000)).is_some());
        sessions.end(&first);
        assert!(!sessions.has(&first) && sessions.find(&token(0)).is_none());
        // It was idle for long; an open stream keeps it.
        let second = sessions.find(&token(2)).expect("another");
        let watching = Watching::begin(&second);
        let long_ago = Instant::now().checked_sub(IDLE_MAX).expect("the machine runs for longer");
        *second.used.lock() = long_ago;
        assert!(!second.is_over());
        drop(watching);
        *second.used.lock() = long_ago;
        assert!(sessions.find(&token(2)).is_none());
    }
}
