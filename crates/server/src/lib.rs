//! Ladon's server: IO threads, the batch, the gate's waiting room, checkpoints, start and stop.
//!
//! ```text
//! ladon-net backend --bytes--> Worker: parse, batch, execute, publish --> gate --> replies
//!                                          |                               ^
//!                                          +--> log (appender) ------------+ positions
//! ```
//!
//! **Architecture invariant:** [`Worker`] is a state machine without sockets, files or threads of
//! its own, so that the simulator runs the very code that the server runs.

mod aside;
mod assembly;
mod background;
mod backups;
mod batch;
mod checkpoint_run;
mod checkpointer;
mod client_memory;
mod configured_users;
mod connection;
mod console_door;
mod counters;
mod dialect;
pub mod dropper;
mod durability;
mod errands;
mod exposure;
mod followed;
mod gate_waits;
pub mod group;
mod input;
mod io_thread;
mod listening;
mod loading;
mod positions;
mod program_commands;
mod program_data;
mod protocol;
mod queues;
mod random;
mod recovery;
mod reload;
mod replication;
mod reports;
mod run;
mod run_error;
mod set_aside;
mod shutdown;
mod timed_disk;
mod tls;
mod waiting;
mod worker;

pub use assembly::{Assembly, dataset, node_over};
pub use checkpoint_run::{Applied, CheckpointRun};
pub use checkpointer::Checkpointer;
pub use connection::ConnectionStart;
pub use ladon_operations::{FILES as HTTP_ADMIN_FILES, Heartbeat, STUCK_AFTER};
pub use ladon_tls::HALF_OPEN_MAX;
pub use loading::{databases, finish_incoming};
pub use program_data::ProgramData;
pub use protocol::Protocol;
pub use random::random_u64;
pub use recovery::{Recovered, is_of_witness, recover};
pub use reload::Reload;
pub use run::{Lifecycle, run};
pub use run_error::RunError;
pub use shutdown::StopSignal;
pub use worker::{Interrupt, Net, Pace, PacketRan, Planted, Point, Worker, WorkerParts};
