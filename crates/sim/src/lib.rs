//! The simulator: a whole node on one thread, everything from one seed.
//!
//! ```text
//! clients --requests--> Worker x N --log--> SimDisk        seed: schedule, clients, clock,
//!    ^                     |                                torn and reordered writes, lost
//!    +------ replies <- gate                                syncs, write errors, crashes
//!    |
//!  oracle: is there an order of the requests that explains every reply, and the data after
//!          every crash?
//! ```
//!
//! The code under test is the server's own: worker, commands, engine, log, checkpoints,
//! recovery. Only sockets, disk and clock are simulated. [`run_seed`] prints nothing and returns
//! what went wrong; a failure repeats from its seed.
//!
//! **The oracle.** Between two crashes, the requests of all clients must have an order that
//! respects real time and explains every reply (the data as a whole is linearizable, so every
//! key is). Requests without a reply when the node crashed may have happened or not, but wholly:
//! some such order must end in exactly the data that recovery finds. So nothing acknowledged is
//! lost, no reply showed what a crash took back, and nothing unacknowledged is half there.

mod beside_script;
mod client;
mod clock;
mod cluster;
mod crowd;
mod functions;
mod history;
mod node;
mod oracle;
mod oracle_commands;
mod plan;
mod producers;
mod run;
mod scripts;
mod spaces;
mod streams;
mod subscriber;
mod threads;
mod waits;
mod witness;

pub use beside_script::{BesideScript, run_beside_script};
pub use cluster::{ClusterCanary, ClusterReport, run_cluster_seed};
pub use crowd::{Crowd, run_crowd};
pub use plan::Canary;
pub use run::{Report, Trouble, run_seed};
