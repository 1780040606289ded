//! Replies of RESP2 on their way to a client of HTTP.

pub mod response;
pub mod text;
pub mod tokens;
