//! Members and scores in replies.

use ladon_resp::{Proto, Reply};

/// Writes the header for this many members, each with its score if `with_scores`: pairs in RESP3,
/// alternating in RESP2.
pub(super) fn header(reply: &mut Reply<'_>, count: usize, with_scores: bool) {
    let flat = with_scores && reply.proto() == Proto::Resp2;
    reply.array(if flat { 2 * count } else { count });
}

/// One member of such an array.
#[inline]
pub(super) fn member(reply: &mut Reply<'_>, member: &[u8], score: f64, with_scores: bool) {
    if with_scores && reply.proto() == Proto::Resp3 {
        reply.array(2);
    }
    reply.bulk(member);
    if with_scores {
        reply.double(score);
    }
}
