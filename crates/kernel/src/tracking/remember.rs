//! Notes what a tracked client reads.

use super::state::TrackingState;
use crate::client::session::Session;
use crate::command::flags::Flags;
use crate::ctx::Ctx;
use crate::request::invoke::Command;
use crate::request::outcome::Flow;

/// Notes the keys of a command that has just run, if it reads for a client whose reads are noted;
/// its transaction passes them on while the locks are held.
///
/// A key that the command did not find is noted too: it may come. An error is no reason not to note
/// it, as in Redis.
#[cold]
pub(crate) fn note_reads(ctx: &mut Ctx<'_>, command: Command<'_>) {
    let Command { spec, args, .. } = command;
    // A script that only reads names keys, but its commands are what reads them.
    if !spec.flags.has(Flags::READONLY) || spec.flags.has(Flags::NOSCRIPT) {
        return;
    }
    let number = ctx.session.tracking.as_deref().and_then(TrackingState::notes_reads);
    let Some(number) = number else { return };
    for at in spec.keys.positions(args) {
        let key = ctx.key(args[at]);
        ctx.tx().note_read(key, number);
    }
}

/// After a request of a connection whose tracking is or was on: `CLIENT CACHING` was for that
/// request, unless it belongs to a transaction that is still open.
#[cold]
pub(crate) fn after_request(session: &mut Session, name: &[u8], flow: &Flow) {
    if let Some(tracking) = &mut session.tracking
        && session.multi.is_none()
        && !flow.runs_again()
        && !name.eq_ignore_ascii_case(b"client")
    {
        tracking.caching = false;
    }
}
