//! All integration tests of this crate in one binary: linking is most of what they cost.
//! With `--cfg loom` it is the model checker's run alone.

#[cfg(not(loom))]
mod check;
#[cfg(not(loom))]
mod checkpoint;
#[cfg(not(loom))]
mod corpus;
#[cfg(not(loom))]
mod follow;
#[cfg(not(loom))]
mod foreign_keys;
#[cfg(not(loom))]
mod growing;
mod growing_spaces;
#[cfg(not(loom))]
mod interactive;
#[cfg(not(loom))]
mod items;
#[cfg(loom)]
mod loom;
#[cfg(not(loom))]
mod open_transactions;
#[cfg(not(loom))]
mod preparation;
mod prepared_foreign_keys;
#[cfg(not(loom))]
mod repeated_foreign_keys;
#[cfg(not(loom))]
mod rights;
#[cfg(not(loom))]
mod spaces;
#[cfg(not(loom))]
mod strings;
#[cfg(not(loom))]
mod threads;
