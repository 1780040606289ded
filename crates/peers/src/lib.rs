//! Ladon as another server's client: values on their way there (`MIGRATE`), and the connection of the
//! tools and of a replica.
//!
//! ```text
//! IO thread     Peers::take: is there room for one more to this target? -> an errand
//! errand thread connects or takes an idle connection -> AUTH, SELECT -> RESTORE for each value,
//!               while answers are read -> what became of each value
//! ```
//!
//! **Architecture invariant:** whatever a target does, it costs a thread of its own and some hundred
//! kilobytes: each step ends after the parcel's patience, lines of answers are short, a value is
//! sent as it is encoded, and the number of errands is limited, for each target and in total.
//! Absent: locks, the keyspace, replies to clients.

mod client;
mod connection;
mod deliver;
mod idle;
mod load;
mod sent_value;

pub use client::{Client, ClientError, Reply, ServerOptions};
use deliver::deliver;
use idle::Idle;
use ladon_kernel::long::parcel::{Errand, Parcel, Peers};
use ladon_platform::Clock;
use load::Load;
use std::sync::Arc;

/// The way to other servers over TCP.
pub struct TcpPeers {
    clock: Arc<dyn Clock>,
    load: Arc<Load>,
    idle: Arc<Idle>,
}

impl TcpPeers {
    /// Without connections. Relative times are made at the clock's time.
    pub fn new(clock: Arc<dyn Clock>) -> TcpPeers {
        TcpPeers { clock, load: Arc::default(), idle: Arc::default() }
    }
}

impl Peers for TcpPeers {
    fn take(&self, parcel: Parcel) -> Option<Errand> {
        let place = Load::enter(&self.load, (&parcel.host, parcel.port))?;
        let (clock, idle) = (Arc::clone(&self.clock), Arc::clone(&self.idle));
        Some(Box::new(move || {
            let delivery = deliver(&parcel, &*clock, &idle);
            drop(place);
            delivery
        }))
    }

    fn idle_connections(&self) -> usize {
        self.idle.count()
    }

    fn tidy(&self) {
        self.idle.close_old();
    }
}
