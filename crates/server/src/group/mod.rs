//! The node's place in a cluster: a thread that sits in its group, and what the others see of it.
//!
//! | file | what |
//! |---|---|
//! | `sitting.rs` | proposals, the lease, the role: what a member decides from turn to turn |
//! | `read_index.rs` | what a follower asks the leader for those who read at the gate `quorum` |
//! | `orders.rs` | operators' orders |
//! | `standing.rs` | whether the node writes, and what of the group's log its data has |
//! | `answers.rs` | what other members ask |
//! | `handle.rs` | the others' view of all this |
//! | `thread.rs` | the thread on which it happens |
//! | `transport.rs` | questions and answers through the mesh |
//! | `membership.rs` | from the settings to the thread, and its end |
//!
//! All but the last three are generic over the runtime: the simulator runs them in virtual time.

mod answers;
mod handle;
mod membership;
mod orders;
mod planted;
mod read_index;
mod sitting;
mod standing;
mod thread;
mod transport;

pub use answers::Answers;
pub use handle::{Asked, Handle};
pub(crate) use membership::Membership;
pub use orders::join;
pub use planted::Planted;
pub use sitting::{Amounts, Ended, Place, Sitting, stand};
pub use standing::{Rest, Standing};
