//! The HTTP port for operations (`http-admin`): metrics, health, readiness, the web console.
//!
//! ```text
//! ladon-http     accepts, parses (hyper), decides who may see what      at a low priority
//!      |  asks for a text, waits without blocking
//! ladon-metrics  reads counters, counts keys, makes the text            as an IO thread
//! ```
//!
//! The second thread takes locks that IO threads wait for, so its priority must not be lower than
//! theirs; the first one takes none.
//!
//! **Architecture invariant:** whatever clients of this port do, IO threads lose no more than a
//! bounded share of their time: connections, their bytes and their lifetime are bounded, and a text
//! is made a few times a second at most, however often it is asked for. Absent: any way to data or
//! settings but requests of a user, which the console sends through the server's own front door
//! (`door.rs`).

mod access;
mod body;
mod console;
mod door;
mod health;
mod heartbeat;
mod http;
mod listen;
mod live;
mod metrics;
mod respond;
mod streams;
mod texts;
mod users;

pub use access::{Access, Peer};
pub use body::Body;
pub use door::Door;
pub use heartbeat::{Heartbeat, STUCK_AFTER};
pub use http::{FILES, Port, serve_stream};
pub use listen::{Listeners, PortError, bind};

pub use respond::{Port as Responder, State};
pub use texts::{Format, Names, Texts};
