//! The node's place in a cluster: a thread that sits in its group, and what the others see of it.
//!
//! | file | what |
//! |---|---|
//! | `thread.rs` | the thread: proposals, the lease, the role, operators' orders |
//! | `standing.rs` | whether the node writes, and what of the group's log its data has |
//! | `transport.rs` | questions and answers through the mesh |
//! | `membership.rs` | from the settings to the thread, and its end |
//! | `handle.rs` | the others' view of all this |

mod handle;
mod membership;
mod standing;
mod thread;
mod transport;

pub(crate) use membership::Membership;
pub(crate) use thread::Ended;
