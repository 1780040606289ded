//! A packet, decoded once: its facts, and then its run.

use crate::batch::Batch;
use crate::quick::is_quick;
use crate::requests::{RequestFacts, facts_of};
use ladon_iproto::header::HeaderError;
use ladon_iproto::request::Request;
use ladon_iproto::{Header, RequestError, frame, request_type};
use ladon_kernel::node::Node;

/// A packet.
pub struct Packet<'a>(pub(crate) Decoded<'a>);

pub(crate) enum Decoded<'a> {
    /// With why the body cannot be read, if it cannot.
    Request(Header, Result<Request<'a>, RequestError>),
    /// Its header cannot be read.
    BadHeader(HeaderError),
    /// The bytes are no packet.
    EndOfStream(RequestError),
}

impl<'a> Packet<'a> {
    /// Decodes a packet, with its length in front. Inlined: a packet is large, and would be copied.
    #[inline(always)]
    pub fn decode(bytes: &'a [u8]) -> Packet<'a> {
        Packet(match frame::next(bytes, frame::PACKET_BYTES_MAX) {
            frame::Progress::Complete { start, end } => match Header::decode(&bytes[start..end]) {
                Ok((header, body)) => Decoded::Request(header, Request::decode(&header, body)),
                Err(bad) => Decoded::BadHeader(bad),
            },
            frame::Progress::Invalid(error) => Decoded::EndOfStream(error),
            // It is longer than requests may be here.
            frame::Progress::Incomplete { .. } => {
                let length = frame::announced(bytes).unwrap_or(bytes.len() as u64);
                Decoded::EndOfStream(RequestError::PacketTooLarge(length))
            }
        })
    }

    /// A request that comes from inside of the process, of a stream (0: of none).
    #[inline(always)]
    pub fn of(stream_id: u64, request: Request<'a>) -> Packet<'a> {
        let request_type = request.request_type();
        Packet(Decoded::Request(
            Header { request_type, stream_id, ..Header::default() },
            Ok(request),
        ))
    }

    /// Whether it belongs to a stream, whose replies keep the order of its requests. What is no
    /// request is no stream's, but ends or follows others'.
    #[inline]
    pub fn is_of_stream(&self) -> bool {
        !matches!(&self.0, Decoded::Request(header, _) if header.stream_id == 0)
    }

    /// What is known of the packet before it runs. One that cannot be read does nothing.
    #[inline(always)]
    pub fn facts(&self, node: &Node, batch: &mut Batch) -> RequestFacts {
        let Decoded::Request(header, request) = &self.0 else {
            return facts_of(request_type::PING);
        };
        let mut facts = facts_of(header.request_type);
        let Ok(request) = request else { return facts };
        facts.is_quick = facts.is_quick || is_quick(node, batch, request);
        facts
    }
}
