//! The meta commands.

use crate::expiry::{Expiry, seconds_left};
use crate::item::{Count, Counted, Deleted, Found, Invalidation, Put, Stored, WrongType};
use crate::output::Output;
use crate::requests::Reading;
use crate::running::{At, Ended, Running};
use crate::text::WRONG_TYPE;
use ladon_engine::{EntryRef, ItemHead, Tracking};
use ladon_memcache::Mode;
use ladon_memcache::meta::{Flags, Meta, Shown};
use ladon_memcache::request::error;

/// What a reply shows of an item.
#[derive(Clone, Copy, Default)]
struct Facts {
    cas: u64,
    flags: u32,
    bytes: usize,
    /// Seconds; -1 if it does not expire.
    left: i64,
    idle_seconds: u32,
}

/// Runs a meta command.
pub(crate) fn run(
    running: &mut Running<'_, '_>,
    meta: &Meta<'_>,
    out: &mut Output<'_>,
) -> Result<(), Ended> {
    match meta {
        Meta::Noop => out.line("MN"),
        Meta::Get(flags) => get(running, flags, out)?,
        Meta::Set(flags, mode, value) => set(running, flags, *mode, value, out)?,
        Meta::Delete(flags) => delete(running, flags, out)?,
        Meta::Count(flags, down) => count(running, flags, *down, out)?,
        Meta::Debug(flags) => debug(running, flags, out)?,
    }
    Ok(())
}

/// Appends a code, what flags ask for, and the marks, without the line's end.
fn head(out: &mut Output<'_>, code: &str, flags: &Flags<'_>, facts: Option<Facts>) {
    out.raw(code);
    for shown in flags.shown() {
        let number = match (shown, facts) {
            (Shown::Opaque(word), _) => {
                out.raw(" ");
                out.raw(word);
                continue;
            }
            (Shown::Key, _) => {
                out.raw(" k");
                flags.write_key(out.buffer());
                if flags.is_base64 {
                    // So that clients know how it is written.
                    out.raw(" b");
                }
                continue;
            }
            (_, None) => continue,
            (Shown::Cas, Some(facts)) => format!(" c{}", facts.cas),
            (Shown::ClientFlags, Some(facts)) => format!(" f{}", facts.flags),
            (Shown::IdleSeconds, Some(facts)) => format!(" l{}", facts.idle_seconds),
            (Shown::Size, Some(facts)) => format!(" s{}", facts.bytes),
            (Shown::TimeToLive, Some(facts)) => format!(" t{}", facts.left),
        };
        out.raw(number);
    }
}

fn shows(flags: &Flags<'_>, what: Shown<'_>) -> bool {
    flags.shown().any(|shown| shown == what)
}

/// What `mg` has found.
struct Got {
    found: Found,
    idle_seconds: u32,
    /// Marks: has won, is stale, another one has won.
    marks: [bool; 3],
}

impl AsRef<Found> for Got {
    fn as_ref(&self) -> &Found {
        &self.found
    }
}

fn get(
    running: &mut Running<'_, '_>,
    flags: &Flags<'_>,
    out: &mut Output<'_>,
) -> Result<(), Ended> {
    let (key, now_ms) = (&*flags.key, running.thread.now_ms);
    let access = running.thread.node.keyspace.access_rules().at(now_ms);
    if shows(flags, Shown::IdleSeconds) {
        let text = match access.tracking() {
            Tracking::Recency => "",
            Tracking::Modification => {
                "flag l: an LRM maxmemory policy keeps times of changes alone"
            }
            Tracking::Frequency => "flag l: an LFU maxmemory policy keeps no times of access",
        };
        if !text.is_empty() {
            return Err(Ended::Refused(text.to_owned()));
        }
    }
    let reading = match (flags.vivify, flags.exptime) {
        (Some(_), _) => Reading::Make,
        (None, Some(_)) => Reading::TouchIfThere,
        (None, None) => Reading::Plain,
    };
    let got = running.fetch(key, reading, |at| {
        let idle = |at: &mut At<'_, '_, '_>| {
            at.tx.peek(at.db, at.key).map(EntryRef::access).map(|it| access.idle_seconds(it))
        };
        let idle_seconds = idle(at).unwrap_or(0);
        look(at, flags).map(|found| found.map(|(found, marks)| Got { found, idle_seconds, marks }))
    })?;
    let Some(Got { found, idle_seconds, marks: [won, stale, sent] }) = got else {
        if !flags.quiet {
            head(out, "EN", flags, None);
            out.raw("\r\n");
        }
        return Ok(());
    };
    let bytes = found.value.len();
    let shows_value = flags.value && flags.cas.is_none_or(|cas| cas != found.head.cas);
    let facts = Facts {
        cas: found.head.cas,
        flags: found.head.flags,
        bytes,
        left: seconds_left(found.expire_at, now_ms),
        idle_seconds,
    };
    let code = if shows_value { format!("VA {bytes}") } else { "HD".to_owned() };
    head(out, &code, flags, Some(facts));
    for (is, mark) in [(sent, " Z"), (stale, " X"), (won, " W")] {
        if is {
            out.raw(mark);
        }
    }
    out.raw("\r\n");
    if shows_value {
        out.value(found.value);
        out.raw("\r\n");
    }
    Ok(())
}

/// Looks an item up, makes it or gives it another expiry, as flags say.
fn look(
    at: &mut At<'_, '_, '_>,
    flags: &Flags<'_>,
) -> Result<Option<(Found, [bool; 3])>, WrongType> {
    let wants_cas = shows(flags, Shown::Cas) || flags.cas.is_some();
    let mut won = false;
    let found = match flags.no_bump {
        false => at.read(wants_cas)?,
        true => at.inspect(wants_cas)?,
    };
    let mut found = match (found, flags.vivify) {
        (Some(found), _) => found,
        (None, None) => return Ok(None),
        (None, Some(exptime)) => {
            let Expiry::At(expire_at) = Expiry::of(exptime, at.now_ms) else { return Ok(None) };
            let head = ItemHead { cas: flags.new_cas.unwrap_or(0), ..ItemHead::default() };
            at.make(expire_at, head, wants_cas);
            won = true;
            let Some(made) = at.found() else { return Ok(None) };
            Found { is_made: true, ..made }
        }
    };
    let sent = found.head.won;
    if let Some(exptime) = flags.exptime
        && !won
    {
        at.touch(exptime);
        found.expire_at = Expiry::of(exptime, at.now_ms).as_ms();
    }
    if let Some(recache) = flags.recache
        && found.expire_at != 0
        && !sent
        && !won
    {
        won = match Expiry::of(recache, at.now_ms) {
            Expiry::At(until) => found.expire_at < until,
            Expiry::Gone => false,
        };
    }
    let stale = found.head.stale;
    won |= stale && !sent;
    if won {
        at.tx.set_item(at.db, at.key, |head| ItemHead { won: true, ..head });
    }
    Ok(Some((found, [won, stale, sent])))
}

/// Appends a line without a value, unless it is usual and nobody wants to hear that.
fn answer(
    out: &mut Output<'_>,
    code: &str,
    is_quiet: bool,
    flags: &Flags<'_>,
    facts: Option<Facts>,
) {
    if !is_quiet {
        head(out, code, flags, facts);
        out.raw("\r\n");
    }
}

fn set(
    running: &mut Running<'_, '_>,
    flags: &Flags<'_>,
    mode: Mode,
    value: &[u8],
    out: &mut Output<'_>,
) -> Result<(), Ended> {
    let put = Put {
        mode,
        flags: flags.client_flags,
        exptime: flags.exptime.unwrap_or(0),
        cas: flags.cas,
        invalidates: flags.invalidates,
        new_cas: flags.new_cas,
        vivify: flags.vivify,
        wants_cas: shows(flags, Shown::Cas),
        value,
    };
    let stored = running.store(&flags.key, &put)?;
    let mut facts = Facts { flags: flags.client_flags, bytes: value.len(), ..Facts::default() };
    let code = match stored {
        Stored::Done { cas, bytes } => {
            (facts.cas, facts.bytes) = (cas, bytes);
            "HD"
        }
        Stored::Unmet => "NS",
        Stored::Exists => "EX",
        Stored::NotFound => "NF",
        Stored::TooLarge => {
            out.line(error::TOO_LARGE);
            return Ok(());
        }
        Stored::WrongType => {
            out.line(WRONG_TYPE);
            return Ok(());
        }
    };
    answer(out, code, flags.quiet && code == "HD", flags, Some(facts));
    Ok(())
}

fn delete(
    running: &mut Running<'_, '_>,
    flags: &Flags<'_>,
    out: &mut Output<'_>,
) -> Result<(), Ended> {
    let key = &*flags.key;
    let deleted = if flags.invalidates || flags.removes_value {
        let invalid = Invalidation {
            cas: flags.cas,
            new_cas: flags.new_cas,
            exptime: flags.exptime.filter(|_| flags.invalidates),
            stale: flags.invalidates,
            removes_value: flags.removes_value,
        };
        running.invalidate(key, &invalid)?
    } else {
        running.delete(key, flags.cas)?
    };
    let (code, is_usual) = match deleted {
        Deleted::Done => ("HD", true),
        Deleted::NotFound => ("NF", false),
        Deleted::Exists => ("EX", false),
        Deleted::WrongType => {
            out.line(WRONG_TYPE);
            return Ok(());
        }
    };
    answer(out, code, flags.quiet && is_usual, flags, None);
    Ok(())
}

fn count(
    running: &mut Running<'_, '_>,
    flags: &Flags<'_>,
    down: bool,
    out: &mut Output<'_>,
) -> Result<(), Ended> {
    let count = Count {
        delta: flags.delta,
        down,
        cas: flags.cas,
        new_cas: flags.new_cas,
        exptime: flags.exptime,
        vivify: flags.vivify.map(|exptime| (flags.initial, exptime)),
        wants_cas: shows(flags, Shown::Cas),
    };
    let now_ms = running.thread.now_ms;
    let (number, facts) = match running.count(&flags.key, &count)? {
        Counted::Is { number, cas, expire_at, .. } => {
            let left = seconds_left(expire_at, now_ms);
            (number, Facts { cas, left, ..Facts::default() })
        }
        Counted::NotFound => {
            answer(out, "NF", false, flags, None);
            return Ok(());
        }
        Counted::Exists => {
            answer(out, "EX", false, flags, None);
            return Ok(());
        }
        Counted::NotANumber => {
            out.line("CLIENT_ERROR cannot increment or decrement non-numeric value");
            return Ok(());
        }
        Counted::WrongType => {
            out.line(WRONG_TYPE);
            return Ok(());
        }
    };
    let number = number.to_string();
    let facts = Some(Facts { bytes: number.len(), ..facts });
    match flags.value && !flags.quiet {
        true => {
            head(out, &format!("VA {}", number.len()), flags, facts);
            out.raw("\r\n");
            out.line(&number);
        }
        false => answer(out, "HD", flags.quiet, flags, facts),
    }
    Ok(())
}

fn debug(
    running: &mut Running<'_, '_>,
    flags: &Flags<'_>,
    out: &mut Output<'_>,
) -> Result<(), Ended> {
    let now_ms = running.thread.now_ms;
    // memcached counts no other meta command there.
    running.thread.local.stats.items.cmd_meta.add(1);
    let access = running.thread.node.keyspace.access_rules().at(now_ms);
    let facts = running.on_key(&[b"get", &flags.key], |at| {
        let entry = at.tx.peek(at.db, at.key)?;
        let (idle, bytes) = (access.idle_seconds(entry.access()), entry.bytes());
        let left = seconds_left(entry.expire_at(), at.now_ms);
        let cas = at.tx.item_cas(at.db, at.key)?;
        Some((left, idle, cas, bytes))
    })?;
    match facts {
        None => out.line("EN"),
        Some((left, idle, cas, bytes)) => {
            out.raw("ME ");
            flags.write_key(out.buffer());
            out.line(&format!(" exp={left} la={idle} cas={cas} size={bytes}"));
        }
    }
    Ok(())
}
