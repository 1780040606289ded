//! All integration tests of this crate in one binary: linking is most of what they cost.

mod go_redis;
mod iproto_transcript;
mod real_users;
mod redis_benchmark;
mod redis_cli;
mod redis_py;
mod scripts;
mod side_by_side;
mod side_by_side_iproto;
mod sql;
