//! Requests that break the protocol. The connection answers with the text and closes.

/// Why a request cannot be understood. `Display` gives Redis' exact texts (without `-ERR `).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolError {
    /// An inline request longer than [`crate::Limits::inline_bytes_max`].
    #[error("Protocol error: too big inline request")]
    InlineTooBig,
    /// A quote that is not closed, or is closed in the middle of a word.
    #[error("Protocol error: unbalanced quotes in request")]
    UnbalancedQuotes,
    /// `*` without a number, or with one beyond the limit.
    #[error("Protocol error: invalid multibulk length")]
    MultibulkLength,
    /// More arguments than a client may send before it has logged in.
    #[error("Protocol error: unauthenticated multibulk length")]
    UnauthenticatedMultibulkLength,
    /// The line after `*` does not end.
    #[error("Protocol error: too big mbulk count string")]
    MultibulkLineTooBig,
    /// An argument that does not begin with `$`.
    #[error("Protocol error: expected '$', got '{}'", printable(*.got))]
    ExpectedBulk {
        /// The byte found instead.
        got: u8,
    },
    /// `$` without a number, with a negative one, or with one beyond the limit.
    #[error("Protocol error: invalid bulk length")]
    BulkLength,
    /// A longer argument than a client may send before it has logged in.
    #[error("Protocol error: unauthenticated bulk length")]
    UnauthenticatedBulkLength,
    /// No request, but the first record of TLS.
    #[error("Protocol error: a TLS handshake, and this port does not speak TLS")]
    Tls,
    /// The line after `$` does not end.
    #[error("Protocol error: too big bulk count string")]
    BulkLineTooBig,
}

/// Redis sends the raw byte; CR and LF would break the error line and become spaces there, and
/// what is not ASCII is shown as a question mark here, as the text has to stay UTF-8.
fn printable(byte: u8) -> char {
    match byte {
        b'\r' | b'\n' => ' ',
        0x80.. => '?',
        _ => byte as char,
    }
}
