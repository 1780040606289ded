//! Users, and whether they may run what they ask for.
//!
//! ```text
//! accounts.rs        the node's users, and the log of what was denied
//! standing.rs        a connection's user, as it is now
//! request_rights.rs  a request as rights know it: keys, channels, databases
//! denial.rs          what is written down about a denial, and said
//! ```
//!
//! The users are plain data of `ladon-identity`. A change of them makes new ones and a new number
//! ([`Accounts::generation`]). A connection whose user may do everything costs a request one
//! comparison with that number ([`Access::is_free`]).

mod accounts;
mod denial;
mod request_rights;
mod standing;

pub use accounts::{Accounts, CATEGORIES};
pub use denial::{changed_since_queued, note, note_failed_login};
pub use request_rights::{Asked, asked_by, may_read_every_key, may_run};
pub use standing::{Access, Standing, stands};
