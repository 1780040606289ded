//! The text protocol.

use crate::expiry::Expiry;
use crate::item::{Count, Counted, Deleted, Put, Stored, Storing};
use crate::noting;
use crate::output::Output;
use crate::requests::Reading;
use crate::running::{Ended, Running, in_words_of_memcached};
use crate::session::Session;
use crate::{MEMCACHED_VERSION, dump, meta, stats};
use ladon_kernel::request::outcome::Flow;
use ladon_memcache::request::{KeyList, error, keys};
use ladon_memcache::{Mode, Request, State, Store};
use std::sync::atomic::Ordering::Relaxed;

/// What is said of a key with a value of another type.
pub(crate) const WRONG_TYPE: &str = "SERVER_ERROR the key holds a value of another type";

/// How a request ends that has written its reply, or an error.
type Ran = Result<(), Ended>;

/// Runs one piece.
///
/// # Errors
/// What to do about a piece that has not run.
pub(crate) fn run(
    running: &mut Running<'_, '_>,
    session: &mut Session,
    state: &State,
    piece: &[u8],
    out: &mut Output<'_>,
) -> Result<Flow, Flow> {
    let request = match state {
        State::Keys(list) => Request::of_more_keys(*list, piece),
        State::Skip(_) => Request::Skipped,
        _ => Request::of_line(piece),
    };
    if running.must_log_in() {
        return Ok(log_in(running, &request, out));
    }
    let is_silent = is_silent(&request);
    let (ran, flow) = match request {
        Request::Get { list, keys, is_last } => {
            if !matches!(state, State::Keys(_)) {
                session.list_failed = false;
            }
            let ran = get(running, session, list, keys, out);
            if is_last && ran.is_ok() && !session.list_failed {
                out.line("END");
            }
            session.list_failed |= matches!(ran, Err(Ended::Refused(_) | Ended::NotLoggedIn));
            (ran, Flow::Continue)
        }
        Request::Quit => return Ok(Flow::Close),
        Request::Http => {
            session.is_broken = true;
            return Ok(Flow::Close);
        }
        other => (run_other(running, other, out), Flow::Continue),
    };
    match ran {
        Ok(()) => {}
        Err(Ended::Later(flow)) => return Err(flow),
        Err(Ended::Refused(text)) => {
            out.take_back();
            out.line(&in_words_of_memcached(&text));
        }
        Err(Ended::NotLoggedIn) => {
            out.take_back();
            out.line("CLIENT_ERROR unauthenticated");
        }
    }
    if is_silent {
        out.take_back();
    }
    Ok(flow)
}

fn is_silent(request: &Request<'_>) -> bool {
    match request {
        Request::Store(Store { noreply, .. })
        | Request::Delete { noreply, .. }
        | Request::Count { noreply, .. }
        | Request::Touch { noreply, .. }
        | Request::FlushAll { noreply, .. }
        | Request::TooLarge { noreply, .. }
        | Request::Verbosity { noreply }
        | Request::Bad { noreply, .. } => *noreply,
        _ => false,
    }
}

/// Before a login, a `set` of any key is one: its value is the user's name and password.
#[cold]
fn log_in(running: &mut Running<'_, '_>, request: &Request<'_>, out: &mut Output<'_>) -> Flow {
    let line = match request {
        Request::Store(Store { mode: Mode::Set, cas: None, value, .. }) => {
            match value.iter().position(|&byte| byte == b' ') {
                None => "CLIENT_ERROR bad authentication token format",
                Some(at) => match running.log_in(&value[..at], &value[at + 1..]) {
                    true => "STORED",
                    false => "CLIENT_ERROR authentication failure",
                },
            }
        }
        Request::TooLarge { .. } => "CLIENT_ERROR auth token too long",
        Request::Skipped => return Flow::Continue,
        Request::Quit | Request::Http => return Flow::Close,
        _ => "CLIENT_ERROR unauthenticated",
    };
    out.line(line);
    Flow::Continue
}

fn get(
    running: &mut Running<'_, '_>,
    session: &Session,
    list: KeyList,
    of: &[u8],
    out: &mut Output<'_>,
) -> Ran {
    if session.list_failed {
        return Ok(());
    }
    for key in keys(of) {
        let reading = if list.exptime.is_some() { Reading::Touch } else { Reading::Plain };
        let found = running.fetch(key, reading, |at| {
            let found = at.read(list.shows_cas)?;
            if let (Some(exptime), Some(_)) = (list.exptime, &found) {
                at.touch(exptime);
            }
            Ok(found)
        })?;
        let Some(found) = found else { continue };
        let (flags, bytes) = (found.head.flags, found.value.len());
        out.raw("VALUE ");
        out.raw(key);
        match list.shows_cas {
            true => out.line(&format!(" {flags} {bytes} {}", found.head.cas)),
            false => out.line(&format!(" {flags} {bytes}")),
        }
        out.value(found.value);
        out.raw("\r\n");
    }
    Ok(())
}

/// As an error of the commands on whose behalf it runs.
pub(crate) fn wrong_type() -> String {
    WRONG_TYPE.trim_start_matches("SERVER_ERROR ").to_owned()
}

fn run_other(running: &mut Running<'_, '_>, request: Request<'_>, out: &mut Output<'_>) -> Ran {
    match request {
        Request::Store(store) => return run_store(running, &store, out),
        Request::Delete { key, .. } => {
            out.line(match running.delete(key, None)? {
                Deleted::Done => "DELETED",
                Deleted::NotFound => "NOT_FOUND",
                Deleted::Exists => "EXISTS",
                Deleted::WrongType => WRONG_TYPE,
            });
        }
        Request::Count { key, delta, down, .. } => count(running, key, delta, down, out)?,
        Request::Touch { key, exptime, .. } => {
            out.line(if running.touch(key, exptime)? { "TOUCHED" } else { "NOT_FOUND" });
        }
        Request::FlushAll { exptime, .. } => {
            flush_all(running, exptime)?;
            out.line("OK");
        }
        Request::Version => out.line(&format!("VERSION {MEMCACHED_VERSION}")),
        Request::Verbosity { .. } => out.line("OK"),
        Request::Stats(of) => return stats::text(running, of, out),
        Request::Dump { form, is_empty } => return dump::dump(running, form, is_empty, out),
        Request::Watch(watched) => return noting::watch(running, watched, out),
        Request::Granted => out.line("OK"),
        Request::Refused(why) => out.line(why),
        Request::Meta(meta) => return meta::run(running, &meta, out),
        Request::TooLarge { set, .. } => {
            if let Some(key) = set {
                remove_for_too_large(running, key)?;
            }
            out.line(error::TOO_LARGE);
        }
        Request::Bad { error, .. } => out.line(error),
        Request::Skipped | Request::Get { .. } | Request::Quit | Request::Http => {}
    }
    Ok(())
}

/// Removes an item for which a value came that is too large, as memcached does: the one before is not
/// what the client wants to be read.
pub(crate) fn remove_for_too_large(running: &mut Running<'_, '_>, key: &[u8]) -> Ran {
    running.on_key(&[b"del", key], |at| at.delete(None))?;
    running.thread.local.stats.items.store_too_large.add(1);
    let storing = Storing { key, mode: Mode::Set, has_cas: false, exptime: 0, bytes: 0 };
    running.has_stored(storing, Stored::TooLarge);
    Ok(())
}

/// Deletes all items, now or at that time.
pub(crate) fn flush_all(running: &mut Running<'_, '_>, exptime: i64) -> Ran {
    running.run(&[b"flushdb"], None, |ctx| {
        ctx.local.stats.items.cmd_flush.add(1);
        let at_ms = match Expiry::of(exptime, ctx.now_ms) {
            Expiry::At(at_ms) => at_ms,
            Expiry::Gone => 0,
        };
        // The last one counts.
        ctx.node.flush_at_ms.store(at_ms, Relaxed);
        if at_ms == 0 {
            let db = ctx.db();
            ctx.tx().flush(db);
        }
    })
}

fn run_store(running: &mut Running<'_, '_>, store: &Store<'_>, out: &mut Output<'_>) -> Ran {
    let put = Put {
        mode: store.mode,
        flags: store.flags,
        exptime: store.exptime,
        cas: store.cas,
        invalidates: false,
        new_cas: None,
        vivify: None,
        wants_cas: false,
        value: store.value,
    };
    out.line(match running.store(store.key, &put)? {
        Stored::Done { .. } => "STORED",
        Stored::Unmet => "NOT_STORED",
        Stored::Exists => "EXISTS",
        Stored::NotFound => "NOT_FOUND",
        Stored::TooLarge => error::TOO_LARGE,
        Stored::WrongType => WRONG_TYPE,
    });
    Ok(())
}

fn count(
    running: &mut Running<'_, '_>,
    key: &[u8],
    delta: u64,
    down: bool,
    out: &mut Output<'_>,
) -> Ran {
    let count = Count {
        delta,
        down,
        cas: None,
        new_cas: None,
        exptime: None,
        vivify: None,
        wants_cas: false,
    };
    match running.count(key, &count)? {
        Counted::Is { number, .. } => out.line(&number.to_string()),
        Counted::NotFound => out.line("NOT_FOUND"),
        Counted::Exists => out.line("EXISTS"),
        Counted::NotANumber => {
            out.line("CLIENT_ERROR cannot increment or decrement non-numeric value");
        }
        Counted::WrongType => out.line(WRONG_TYPE),
    }
    Ok(())
}
