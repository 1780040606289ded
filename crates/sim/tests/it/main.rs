//! All integration tests of this crate in one binary: linking is most of what they cost.

mod cluster;
mod full_disk;
mod seeds;
