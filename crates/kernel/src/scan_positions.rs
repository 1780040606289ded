//! Where scans of mounted spaces go on: a cursor is 64 bits, and a primary key may be of any
//! length.
//!
//! A cursor has a fingerprint of the position, which is kept here. Positions that nobody has used
//! for long are forgotten; a scan that comes back to one begins its space again, so that it finds
//! everything, some of it twice. Scans of the same data share their positions.

use ladon_record::SpaceId;
use parking_lot::Mutex;
use std::collections::HashMap;

/// Positions of a generation; there are two.
const POSITIONS_MAX: usize = 4_096;
/// Bytes of their keys.
const BYTES_MAX: usize = 4 << 20;

/// A space, and a primary key behind which a scan goes on; from its beginning without one.
pub type ScanPosition = (SpaceId, Option<Box<[u8]>>);

/// The positions that are kept.
#[derive(Default)]
pub struct ScanPositions(Mutex<Generations>);

#[derive(Default)]
struct Generations {
    young: HashMap<u64, ScanPosition>,
    old: HashMap<u64, ScanPosition>,
    young_bytes: usize,
}

impl ScanPositions {
    /// Keeps a position.
    pub fn keep(&self, fingerprint: u64, position: ScanPosition) {
        self.0.lock().keep(fingerprint, position);
    }

    /// A position, unless it was forgotten.
    pub fn find(&self, fingerprint: u64) -> Option<ScanPosition> {
        let mut generations = self.0.lock();
        if let Some(position) = generations.young.get(&fingerprint) {
            return Some(position.clone());
        }
        let position = generations.old.remove(&fingerprint)?;
        generations.keep(fingerprint, position.clone());
        Some(position)
    }
}

impl Generations {
    fn keep(&mut self, fingerprint: u64, position: ScanPosition) {
        let bytes = position.1.as_ref().map_or(0, |key| key.len());
        if self.young.insert(fingerprint, position).is_none() {
            self.young_bytes += bytes;
        }
        if self.young.len() >= POSITIONS_MAX || self.young_bytes >= BYTES_MAX {
            self.old = std::mem::take(&mut self.young);
            self.young_bytes = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_stays_and_the_rest_is_forgotten() {
        let positions = ScanPositions::default();
        positions.keep(1, (512, Some([1].into())));
        positions.keep(2, (512, None));
        for other in 0..20 * POSITIONS_MAX as u64 {
            positions.keep(100 + other, (513, Some([0; 8].into())));
            if other % 1_000 == 0 {
                assert_eq!(positions.find(1), Some((512, Some([1].into()))));
            }
        }
        assert_eq!(positions.find(2), None);
        let held = positions.0.lock();
        assert!(held.young.len() + held.old.len() <= 2 * POSITIONS_MAX);
    }

    #[test]
    fn long_keys_are_bounded_in_bytes() {
        let positions = ScanPositions::default();
        for at in 0..100 {
            positions.keep(at, (512, Some(vec![0; 1 << 20].into())));
        }
        let held = positions.0.lock();
        assert!(held.young.len() + held.old.len() <= 2 * (BYTES_MAX >> 20));
    }
}
