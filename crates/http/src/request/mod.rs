//! Requests of HTTP/1.1 out of bytes (RFC 9112).

pub mod body;
pub mod credentials;
pub mod head;
pub mod sites;
pub mod target;
