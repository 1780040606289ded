//! Why a packet is not a request, in Tarantool's words.

use thiserror::Error;

/// Why a packet is not a request. `Display` gives Tarantool's message.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RequestError {
    /// ER_INVALID_MSGPACK, with the part of the packet.
    #[error("Invalid MsgPack - {0}")]
    InvalidMsgpack(&'static str),
    /// The packet announces more bytes than it may have. Its bytes would follow: close.
    #[error("Invalid MsgPack - too big packet size in the header: {0}")]
    PacketTooLarge(u64),
    /// ER_UNKNOWN_REQUEST_TYPE.
    #[error("Unknown request type {0}")]
    UnknownType(u32),
    /// ER_MISSING_REQUEST_FIELD, with the name of the key.
    #[error("Missing mandatory field '{0}' in request")]
    MissingField(&'static str),
    /// ER_UNKNOWN_AUTH_METHOD.
    #[error("Unknown authentication method '{0}'")]
    UnknownAuthMethod(String),
    /// ER_INVALID_AUTH_REQUEST.
    #[error("Invalid '{method}' request: {reason}")]
    InvalidAuthRequest {
        /// The authentication method.
        method: &'static str,
        /// What is wrong.
        reason: &'static str,
    },
}

impl RequestError {
    /// Tarantool's code, without the bit that marks a reply as an error.
    pub const fn code(&self) -> u32 {
        match self {
            RequestError::InvalidMsgpack(_) | RequestError::PacketTooLarge(_) => 20,
            RequestError::UnknownType(_) => 48,
            RequestError::MissingField(_) => 69,
            RequestError::UnknownAuthMethod(_) => 249,
            RequestError::InvalidAuthRequest { .. } => 251,
        }
    }

    /// The name of [`RequestError::code`] in `errcode.h`.
    pub const fn name(&self) -> &'static str {
        match self {
            RequestError::InvalidMsgpack(_) | RequestError::PacketTooLarge(_) => {
                "ER_INVALID_MSGPACK"
            }
            RequestError::UnknownType(_) => "ER_UNKNOWN_REQUEST_TYPE",
            RequestError::MissingField(_) => "ER_MISSING_REQUEST_FIELD",
            RequestError::UnknownAuthMethod(_) => "ER_UNKNOWN_AUTH_METHOD",
            RequestError::InvalidAuthRequest { .. } => "ER_INVALID_AUTH_REQUEST",
        }
    }
}
