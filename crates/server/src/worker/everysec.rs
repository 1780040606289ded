//! What the gate `everysec` promises: a sync within a second of every reply that leaves there.
//!
//! The promise belongs to the reply, not to the server's default gate: a connection may ask for
//! `everysec` where nobody else does, and a default that becomes laxer takes nothing back.

use super::Worker;
use ladon_model::{Gate, Lsn};

impl Worker {
    /// A reply that depends on `lsn` leaves at `gate` in this turn, or waits there from now on.
    #[inline]
    pub(super) fn note_everysec(everysec_lsn: &mut Lsn, gate: Gate, lsn: Lsn) {
        if gate == Gate::EverySec {
            *everysec_lsn = (*everysec_lsn).max(lsn);
        }
    }

    /// Starts the second of what was noted.
    #[inline]
    pub(super) fn promise_everysec(&mut self) {
        let lsn = std::mem::take(&mut self.everysec_lsn);
        if lsn != Lsn::ZERO && !self.unsynced_everysec_canary {
            self.log.sync_soon(lsn);
        }
    }
}
