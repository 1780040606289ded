//! What a client may announce before it is cut off.

/// Bounds on one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Longest argument in bytes: Redis' `proto-max-bulk-len`.
    pub bulk_bytes_max: u64,
    /// Most arguments in one request.
    pub multibulk_count_max: u32,
    /// Longest inline request, and longest unfinished length line, in bytes.
    pub inline_bytes_max: usize,
    /// Whether the client is authenticated (or need not be). Until then a request has at most
    /// [`Limits::UNAUTHENTICATED_COUNT_MAX`] arguments of at most
    /// [`Limits::UNAUTHENTICATED_BULK_BYTES_MAX`] bytes, so that unauthenticated clients cannot
    /// make the server hold much.
    pub authenticated: bool,
}

impl Limits {
    /// Redis' bound for unauthenticated clients.
    pub const UNAUTHENTICATED_COUNT_MAX: u32 = 10;
    /// Redis' bound for unauthenticated clients.
    pub const UNAUTHENTICATED_BULK_BYTES_MAX: u64 = 16 * 1024;

    /// The same limits for a client that is, or is not, authenticated.
    #[must_use]
    pub fn with_authenticated(self, authenticated: bool) -> Limits {
        Limits { authenticated, ..self }
    }
}

impl Default for Limits {
    /// Redis' defaults, for a client that needs no password.
    fn default() -> Limits {
        Limits {
            bulk_bytes_max: 512 * 1024 * 1024,
            multibulk_count_max: i32::MAX as u32,
            inline_bytes_max: 64 * 1024,
            authenticated: true,
        }
    }
}
