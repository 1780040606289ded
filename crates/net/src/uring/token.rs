//! What a completion belongs to, in the 64 bits that the kernel returns unchanged.
//!
//! ```text
//!   63      60 59                        32 31                             0
//!  ┌──────────┬────────────────────────────┬────────────────────────────────┐
//!  │  kind    │  generation, low 28 bits   │  slot, or the listener's number│
//!  └──────────┴────────────────────────────┴────────────────────────────────┘
//! ```

use crate::ConnId;

/// How many bits of a generation a token carries.
pub(super) const GENERATION_BITS: u32 = 28;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Cancel = 0,
    Accept = 1,
    Receive = 2,
    Send = 3,
    Wake = 4,
}

pub(super) fn of_connection(kind: Kind, conn: ConnId) -> u64 {
    let generation = conn.generation & ((1 << GENERATION_BITS) - 1);
    (kind as u64) << 60 | u64::from(generation) << 32 | u64::from(conn.slot)
}

/// `number` is different for each [`Backend::listen`](crate::Backend::listen).
pub(super) fn of_listener(number: u32) -> u64 {
    of_connection(Kind::Accept, ConnId { slot: number, generation: 0 })
}

pub(super) fn plain(kind: Kind) -> u64 {
    (kind as u64) << 60
}

pub(super) fn kind(token: u64) -> Kind {
    match token >> 60 {
        0 => Kind::Cancel,
        1 => Kind::Accept,
        2 => Kind::Receive,
        3 => Kind::Send,
        4 => Kind::Wake,
        other => unreachable!("no token of ours: kind {other}"),
    }
}

pub(super) fn slot(token: u64) -> u32 {
    token as u32
}

pub(super) fn generation(token: u64) -> u32 {
    (token >> 32) as u32 & ((1 << GENERATION_BITS) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_gives_back_what_went_in() {
        let conn = ConnId { slot: u32::MAX, generation: u32::MAX };
        for kind_in in [Kind::Accept, Kind::Receive, Kind::Send] {
            let token = of_connection(kind_in, conn);
            assert_eq!(kind(token), kind_in);
            assert_eq!(slot(token), u32::MAX);
            assert_eq!(generation(token), (1 << GENERATION_BITS) - 1);
        }
        assert_eq!(kind(plain(Kind::Wake)), Kind::Wake);
    }
}
