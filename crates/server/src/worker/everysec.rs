//! The promise of the gate `everysec`: every reply that leaves at this gate is followed by a sync
//! within a second.
//!
//! The promise belongs to the reply, not to the server's default gate. A connection may ask for
//! `everysec` where no other does, and a laxer default revokes no promise.

use super::Worker;
use ladon_record::{Gate, Lsn};

impl Worker {
    /// Notes that a reply that depends on `lsn` leaves at `gate` in this turn, or starts to wait
    /// there.
    #[inline]
    pub(super) fn note_everysec(everysec_lsn: &mut Lsn, gate: Gate, lsn: Lsn) {
        if gate == Gate::EverySec {
            *everysec_lsn = (*everysec_lsn).max(lsn);
        }
    }

    /// Starts the second for the noted replies.
    #[inline]
    pub(super) fn promise_everysec(&mut self) {
        let lsn = std::mem::take(&mut self.everysec_lsn);
        if lsn > Lsn::DATA && !self.unsynced_everysec_canary {
            self.log.sync_soon(lsn);
        }
    }
}
