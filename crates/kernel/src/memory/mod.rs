//! Eviction, and what is freed in the background.

pub mod eviction;
pub mod eviction_state;
pub mod lazy_free;
