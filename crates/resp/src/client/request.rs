//! Requests to bytes.

use crate::reply::{Proto, Reply};

/// Appends one request: an array of bulk strings.
///
/// ```
/// let mut out = Vec::new();
/// ladon_resp::client::write_request(&mut out, &["GET", "key"]);
/// assert_eq!(out, b"*2\r\n$3\r\nGET\r\n$3\r\nkey\r\n");
/// ```
pub fn write_request<A: AsRef<[u8]>>(out: &mut Vec<u8>, arguments: &[A]) {
    let mut writer = Reply::new(out, Proto::Resp2);
    writer.array(arguments.len());
    for argument in arguments {
        writer.bulk(argument);
    }
}
