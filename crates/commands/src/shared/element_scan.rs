//! What SSCAN, HSCAN and ZSCAN have in common: the shape of the reply.

use ladon_resp::Reply;

/// The page of a key that does not exist.
pub(crate) fn reply_empty(reply: &mut Reply<'_>) {
    reply.array(2);
    reply.bulk("0");
    reply.array(0);
}

/// Answers a page. `walk` writes the elements' words into the reply it is given and returns the
/// next cursor and the number of words.
pub(crate) fn reply_page(reply: &mut Reply<'_>, walk: impl FnOnce(&mut Reply<'_>) -> (u64, usize)) {
    // The cursor comes before the elements, but is known after them.
    let mut words = Vec::new();
    let (next, count) = walk(&mut Reply::new(&mut words, reply.proto()));
    reply.array(2);
    reply.bulk(next.to_string());
    reply.array(count);
    reply.raw(&words);
}
