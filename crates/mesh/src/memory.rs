//! Memory of large messages: it neither moves nor goes in one piece of work that heartbeats would
//! wait for. Copying 512 MiB takes a fifth of a second, giving it back to the system nearly as long.

use tokio::runtime::Handle;

/// Bytes of a message that have to be here before room for the longest one is made. Moving them
/// takes 3 ms. The room is addresses only: pages come as bytes do.
const MOVED_MAX: usize = 8 << 20;
/// Memory of fewer bytes is given back at once.
pub(crate) const FREED_HERE_MAX: usize = 1 << 20;

/// Appends to a message that may have `max` bytes.
pub(crate) fn append(message: &mut Vec<u8>, bytes: &[u8], max: usize) {
    let length = message.len() + bytes.len();
    if length > message.capacity() && length > MOVED_MAX {
        message.reserve_exact(max.max(length) - message.len());
    }
    message.extend_from_slice(bytes);
}

/// Drops what has so many bytes, on another thread if they are many.
pub(crate) fn free<T: Send + 'static>(message: T, bytes: usize) {
    if bytes > FREED_HERE_MAX
        && let Ok(runtime) = Handle::try_current()
    {
        runtime.spawn_blocking(move || drop(message));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_moves_while_it_is_short() {
        let (mut message, mut moved) = (Vec::new(), Vec::new());
        let piece = [7; 64 << 10];
        for _ in 0..1000 {
            let (length, capacity) = (message.len(), message.capacity());
            append(&mut message, &piece, 1 << 30);
            if message.capacity() != capacity {
                moved.push(length);
            }
        }
        assert_eq!(message.len(), 1000 * piece.len());
        assert!(moved.iter().all(|length| *length <= MOVED_MAX), "{moved:?}");
        assert!(message.iter().all(|byte| *byte == 7));
        let mut short = Vec::new();
        append(&mut short, &piece, 1 << 30);
        assert!(short.capacity() <= 2 * piece.len(), "no room before bytes");
    }
}
