//! Random requests to Ladon and to a real server, side by side.
//!
//! ```text
//! grammar/FAMILY.txt --grammar--> lines --generate--> Round --duel--> both servers
//!                                                       ^                  |
//!                                                       |               judge, known.txt
//!                                                       +--- shrink <--- Difference
//! ```
//!
//! A *round* is some hundred requests derived from one seed: well-formed ones of a few families
//! over a few keys, and ill-formed ones made from them, on one connection or, in turn, on several
//! (`crowd`). At its end the whole keyspaces are read and compared. A difference is shrunk to the
//! requests that it needs, in the form of a script of this crate.
//!
//! **Invariant:** a round depends only on its seed and the peer's name. What servers may choose
//! (SPOP's member, the order of a large set) is compared as far as it is defined, and never decides
//! what comes after.

mod crowd;
pub mod duel;
pub mod generate;
pub mod grammar;
pub mod guard;
pub mod hunt;
pub mod inspect;
pub mod judge;
pub mod known;
pub mod pool;
pub mod program;
pub mod rng;
pub mod rules;
pub mod shrink;

pub use duel::{Difference, Duel};
pub use generate::{Request, Round};
pub use hunt::{Found, Hunt, Sum};
