//! Scanning a collection's table piece by piece, as clients do.

use super::Table;
use super::entry::EntryRef;
use ladon_record::KeyHasher;

/// A cursor is the top 48 bits of a hash, which is as fine as buckets ever get; it stays positive
/// for clients that read it as a signed number.
const SCAN_SHIFT: u32 = 16;

impl Table {
    /// Visits entries from a cursor (0 to begin) on, about `count` of them at least, unless the end
    /// comes first or `visit` returns that it is enough. Returns the next cursor, 0 at the end. An
    /// entry that stays in the table for the whole scan is visited at least once.
    pub(crate) fn scan_from(
        &self,
        hasher: &KeyHasher,
        cursor: u64,
        count: usize,
        mut visit: impl FnMut(EntryRef<'_>) -> bool,
    ) -> u64 {
        let (mut seen, mut goes_on) = (0, true);
        let mut at = cursor << SCAN_SHIFT;
        loop {
            let next = self.scan(hasher, at, 1, |entry| {
                seen += 1;
                goes_on &= visit(entry);
            });
            match next {
                None => return 0,
                Some(next) if seen >= count || !goes_on => return next >> SCAN_SHIFT,
                Some(next) => at = next,
            }
        }
    }
}
