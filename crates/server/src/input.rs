//! The memory of a connection's input: its capacity, and what other threads see of it.
//!
//! Capacity follows the bytes that have arrived, not the announced length of a request. A buffer
//! grows by a quarter at a time, and doubles once it is large. The unwritten second half of a large
//! buffer uses no physical memory, and smaller steps would copy too often.

use crate::connection::Connection;
use std::sync::atomic::Ordering::Relaxed;

/// Up to this size a full buffer doubles, because requests of usual length do not keep it.
const SMALL_BYTES: usize = 32 * 1024;
/// From this size on a full buffer doubles again.
const LARGE_BYTES: usize = 256 * 1024;

/// Appends received bytes. `expected` is the number of bytes for which to make room, or 0 if
/// unknown.
#[inline]
pub(crate) fn append(input: &mut Vec<u8>, bytes: &[u8], expected: &mut usize) {
    if input.capacity() - input.len() < bytes.len() {
        input.reserve_exact(room(input.len(), *expected).max(bytes.len()));
    }
    input.extend_from_slice(bytes);
    *expected = expected.saturating_sub(bytes.len());
}

/// How much capacity to reserve after `length` bytes.
#[cold]
fn room(length: usize, expected: usize) -> usize {
    let share = match length {
        ..SMALL_BYTES => length,
        SMALL_BYTES..LARGE_BYTES => length / 4,
        LARGE_BYTES.. => length,
    };
    if expected == 0 { share } else { share.min(expected) }
}

/// Frees unneeded capacity: all of it if the connection is idle, otherwise what a large request has
/// left. Returns whether there was any.
pub(crate) fn trim(connection: &mut Connection, now_ms: u64) -> bool {
    const ROOM_BYTES_MIN: usize = 4 * 1024;
    const SILENT_MS: u64 = 2000;
    let (length, capacity) = (connection.unread(), connection.input.capacity());
    let is_silent = connection.session.info.last_active_ms.load(Relaxed) + SILENT_MS < now_ms;
    let is_large = capacity > 2 * SMALL_BYTES && length < capacity / 4;
    if capacity - length <= ROOM_BYTES_MIN || !is_silent && !is_large {
        return false;
    }
    connection.input.drain(..connection.consumed);
    connection.consumed = 0;
    connection.input.shrink_to(length);
    publish(connection);
    true
}

/// Publishes the memory of the connection's input to other threads.
#[inline]
pub(crate) fn publish(connection: &Connection) {
    let info = &*connection.session.info;
    let waiting = connection.unread();
    info.query_capacity.store(connection.input.capacity(), Relaxed);
    let dialect = connection.dialect.held();
    // As in Redis, complete arguments of an incomplete request no longer count as query buffer.
    info.query_bytes.store(waiting.saturating_sub(dialect.parsed), Relaxed);
    info.argv_bytes.store(dialect.arguments, Relaxed);
    let names = info.name_bytes.load(Relaxed);
    let subscribed = connection.session.subscribed.as_ref();
    let subscribed = subscribed.map_or(0, |subscribed| subscribed.bytes);
    let tracking = connection.session.tracking.as_ref().map_or(0, |tracking| tracking.bytes);
    let watched = connection.session.watched_bytes;
    let held = dialect.memory + names + watched + subscribed + tracking;
    info.held_bytes.store(held, Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends `length` bytes in pieces of `piece`. Returns the largest capacity per received byte,
    /// in percent, counted after the first few reads, and the number of times that the buffer grew.
    fn grow(length: usize, piece: usize, announced: usize) -> (usize, usize) {
        let (mut input, bytes) = (Vec::new(), vec![b'x'; piece]);
        let (mut percent, mut grown, mut capacity) = (0, 0, 0);
        while input.len() < length {
            let arrived = input.len();
            let mut expected = announced.saturating_sub(arrived).min(arrived.max(16 * 1024));
            append(&mut input, &bytes[..piece.min(length - arrived)], &mut expected);
            if input.capacity() != capacity {
                (grown, capacity) = (grown + 1, input.capacity());
            }
            if input.len() > 4 * piece {
                percent = percent.max(input.capacity() * 100 / input.len());
            }
        }
        (percent, grown)
    }

    #[test]
    fn room_follows_what_arrived_and_grows_in_few_steps() {
        for piece in [1_000, 1_448, 16_384, 65_536] {
            for announced in [100_000, 1 << 20, 512 << 20] {
                let (percent, _) = grow(announced.min(3 << 20), piece, announced);
                assert!(percent <= 200, "{percent} % in pieces of {piece} of {announced}");
            }
            let (percent, grown) = grow(100 << 20, piece, 100 << 20);
            assert!(percent <= 200 && grown <= 40, "{percent} %, {grown} steps");
        }
        // Half of the announced bytes have arrived.
        let (percent, _) = grow(100_000, 16_384, 200_000);
        assert!(percent <= 200);
        let (mut input, mut expected) = (vec![b'x'; 100_000], 16);
        append(&mut input, b"0123456789", &mut expected);
        assert_eq!((input.capacity(), expected), (100_016, 6));
    }
}
