//! What must hold for any bytes. Shared by the tests, the corpus' replay and the fuzz target
//! `memcache_pieces`.

use ladon_memcache::binary::Packet;
use ladon_memcache::frame::frame;
use ladon_memcache::meta::Meta;
use ladon_memcache::request::keys;
use ladon_memcache::{Framed, KEY_BYTES_MAX, Limits, Request, State};

const LIMITS: Limits = Limits { value_bytes_max: 1 << 16 };

/// Takes the bytes as a stream from its beginning.
pub fn check(bytes: &[u8]) {
    let (mut state, mut rest) = (State::Fresh, bytes);
    while let Framed::Complete { end, next } = frame(&state, rest, LIMITS) {
        assert!(0 < end && end <= rest.len(), "a piece of the input");
        cut(&state, &rest[..end], &next);
        request(&state, &next, &rest[..end]);
        (state, rest) = (next, &rest[end..]);
    }
    let _ = Packet::read(bytes);
}

/// A piece is complete when its last byte has arrived, and not before, unless it is skipped.
fn cut(state: &State, piece: &[u8], next: &State) {
    let is_part = matches!(state, State::Skip(_) | State::SkipBinary(_) | State::Keys(_))
        || matches!(next, State::Keys(_));
    if is_part || piece.len() > 4096 {
        return;
    }
    for length in 0..piece.len() {
        let framed = frame(state, &piece[..length], LIMITS);
        let is_whole = !matches!(framed, Framed::Incomplete { .. });
        assert!(!is_whole, "{length} bytes of {} in {state:?}", piece.escape_ascii());
    }
}

fn request(state: &State, next: &State, piece: &[u8]) {
    match (state, next) {
        (State::Skip(_) | State::SkipBinary(_), _) => {}
        (State::Binary, _) | (_, State::Binary | State::SkipBinary(_)) => {
            if let Some(Ok(packet)) = Packet::read(piece) {
                assert!(packet.key.len() <= KEY_BYTES_MAX);
                let parts = packet.extras.len() + packet.key.len() + packet.value.len();
                assert_eq!(parts, packet.header.body_bytes as usize);
            }
        }
        (State::Keys(list), _) => of_text(&Request::of_more_keys(*list, piece)),
        _ => of_text(&Request::of_line(piece)),
    }
}

fn of_text(request: &Request<'_>) {
    match request {
        Request::Get { keys: of, .. } => {
            assert!(keys(of).all(|key| !key.is_empty() && key.len() <= KEY_BYTES_MAX));
        }
        Request::Store(store) => assert!(store.key.len() <= KEY_BYTES_MAX),
        Request::Meta(
            Meta::Get(flags)
            | Meta::Set(flags, ..)
            | Meta::Delete(flags)
            | Meta::Count(flags, _)
            | Meta::Debug(flags),
        ) => {
            assert!(!flags.key.is_empty() && flags.key.len() <= KEY_BYTES_MAX);
            flags.write_key(&mut Vec::new());
            assert!(flags.shown().count() <= 20);
        }
        _ => {}
    }
}
