//! Connections that are kept for the next parcel, as Redis keeps them.

use crate::connection::Connection;
use ladon_kernel::long::parcel::{Login, Parcel};
use parking_lot::Mutex;
use std::time::{Duration, Instant};

/// More are not kept.
const CONNECTIONS_MAX: usize = 64;

/// A connection that nobody has used for so long is closed.
const KEPT_FOR: Duration = Duration::from_secs(10);

/// Whose connection it is. A parcel without a login must not use that of another.
#[derive(Clone, PartialEq, Eq)]
struct Target {
    host: String,
    port: u16,
    login: Option<Login>,
}

impl Target {
    fn of(parcel: &Parcel) -> Target {
        Target { host: parcel.host.clone(), port: parcel.port, login: parcel.login.clone() }
    }
}

struct Kept {
    target: Target,
    connection: Connection,
    since: Instant,
}

/// The idle connections, in the order in which they became idle.
#[derive(Default)]
pub(crate) struct Idle(Mutex<Vec<Kept>>);

impl Idle {
    /// The connection to this target that was used last.
    pub(crate) fn take(&self, parcel: &Parcel) -> Option<Connection> {
        let target = Target::of(parcel);
        let mut kept = self.0.lock();
        let at = kept.iter().rposition(|kept| kept.target == target)?;
        let Kept { connection, since, .. } = kept.remove(at);
        (since.elapsed() < KEPT_FOR).then_some(connection)
    }

    /// Keeps a connection on which everything was answered.
    pub(crate) fn put(&self, parcel: &Parcel, connection: Connection) {
        let mut kept = self.0.lock();
        if kept.len() >= CONNECTIONS_MAX {
            kept.remove(0);
        }
        kept.push(Kept { target: Target::of(parcel), connection, since: Instant::now() });
    }

    pub(crate) fn close_old(&self) {
        self.0.lock().retain(|kept| kept.since.elapsed() < KEPT_FOR);
    }

    pub(crate) fn count(&self) -> usize {
        self.0.lock().len()
    }
}
