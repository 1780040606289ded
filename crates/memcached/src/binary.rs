//! The binary protocol.

use crate::MEMCACHED_VERSION;
use crate::item::{Count, Counted, Deleted, Put, Stored};
use crate::output::Output;
use crate::requests::Reading;
use crate::running::{Ended, Running};
use crate::session::Session;
use crate::stats;
use crate::text::{flush_all, remove_for_too_large, wrong_type};
use ladon_kernel::request::outcome::Flow;
use ladon_memcache::binary::{
    Header, NOT_MADE, Packet, PacketError, Reply, opcode, status, text, write, write_head,
};
use ladon_memcache::{Mode, State};

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
    if matches!(state, State::SkipBinary(_)) {
        return Ok(Flow::Continue);
    }
    let packet = match Packet::read(piece) {
        Some(Ok(packet)) => packet,
        Some(Err(PacketError::TooLarge { header, key })) => {
            let is_set = loud(header.opcode).0 == opcode::SET && !running.must_log_in();
            if let Some(key) = key.filter(|_| is_set) {
                let gone = remove_for_too_large(running, key);
                if !refuse_ended(gone, out, &header)? {
                    return Ok(Flow::Continue);
                }
            }
            refuse(out, &header, status::TOO_LARGE, None);
            return Ok(Flow::Continue);
        }
        Some(Err(PacketError::Invalid(header))) => {
            session.is_broken = true;
            refuse(out, &header, status::INVALID, None);
            return Ok(Flow::Close);
        }
        None => {
            session.is_broken = true;
            return Ok(Flow::Close);
        }
    };
    let header = packet.header;
    let (code, is_quiet) = loud(header.opcode);
    let is_login =
        matches!(code, opcode::SASL_LIST | opcode::SASL_AUTH | opcode::SASL_STEP | opcode::VERSION);
    if running.must_log_in() && !is_login {
        refuse(out, &header, status::AUTH_ERROR, None);
        session.is_broken = true;
        // As memcached, which closes.
        return Ok(Flow::Close);
    }
    if !is_well_formed(code, &packet) {
        session.is_broken = true;
        refuse(out, &header, status::INVALID, None);
        return Ok(Flow::Close);
    }
    if code == opcode::QUIT {
        if !is_quiet {
            ok(out, &header, b"");
        }
        return Ok(Flow::Close);
    }
    let answered = answer(running, &packet, (code, is_quiet), out);
    refuse_ended(answered, out, &header)?;
    Ok(Flow::Continue)
}

/// Says why a request could not be answered; returns whether it was.
fn refuse_ended(
    answered: Result<(), Ended>,
    out: &mut Output<'_>,
    header: &Header,
) -> Result<bool, Flow> {
    match answered {
        Ok(()) => return Ok(true),
        Err(Ended::Later(flow)) => return Err(flow),
        Err(Ended::NotLoggedIn) => {
            out.take_back();
            refuse(out, header, status::AUTH_ERROR, None);
        }
        Err(Ended::Refused(text)) => {
            out.take_back();
            let status = match text.split(' ').next() {
                Some("OOM") => status::OUT_OF_MEMORY,
                Some("NOPERM") => status::AUTH_ERROR,
                _ => status::INTERNAL,
            };
            refuse(out, header, status, Some(&text));
        }
    }
    Ok(false)
}

/// Answers a packet that has the parts which its request asks for.
fn answer(
    running: &mut Running<'_, '_>,
    packet: &Packet<'_>,
    (code, is_quiet): (u8, bool),
    out: &mut Output<'_>,
) -> Result<(), Ended> {
    let header = &packet.header;
    match code {
        opcode::GET | opcode::GETK | opcode::GAT | opcode::GATK => {
            get(running, packet, code, is_quiet, out)
        }
        opcode::TOUCH => touch(running, packet, out),
        opcode::SET | opcode::ADD | opcode::REPLACE | opcode::APPEND | opcode::PREPEND => {
            store(running, packet, code, is_quiet, out)
        }
        opcode::DELETE => delete(running, packet, is_quiet, out),
        opcode::INCREMENT | opcode::DECREMENT => count(running, packet, code, is_quiet, out),
        opcode::FLUSH => flush_all(running, i64::from(packet.extra_u32(0))).map(|()| {
            if !is_quiet {
                ok(out, header, b"");
            }
        }),
        opcode::NOOP | opcode::VERBOSITY => {
            ok(out, header, b"");
            Ok(())
        }
        opcode::VERSION => {
            ok(out, header, MEMCACHED_VERSION.as_bytes());
            Ok(())
        }
        opcode::STAT => stat(running, packet, out),
        opcode::SASL_LIST => {
            ok(out, header, b"PLAIN");
            Ok(())
        }
        opcode::SASL_AUTH | opcode::SASL_STEP => {
            log_in(running, packet, out);
            Ok(())
        }
        _ => {
            refuse(out, header, status::UNKNOWN_COMMAND, None);
            Ok(())
        }
    }
}

/// The request of a quiet one, and whether it is that.
fn loud(code: u8) -> (u8, bool) {
    match code {
        opcode::GETQ => (opcode::GET, true),
        opcode::GETKQ => (opcode::GETK, true),
        opcode::GATQ => (opcode::GAT, true),
        opcode::GATKQ => (opcode::GATK, true),
        // SETQ, ADDQ, REPLACEQ, DELETEQ, INCREMENTQ, DECREMENTQ, QUITQ, FLUSHQ
        opcode::SETQ..=0x18 => (code - opcode::SETQ + opcode::SET, true),
        // APPENDQ
        0x19 => (opcode::APPEND, true),
        opcode::PREPENDQ => (opcode::PREPEND, true),
        code => (code, false),
    }
}

/// Whether a packet has the parts that its request asks for.
fn is_well_formed(code: u8, packet: &Packet<'_>) -> bool {
    let (extras, key, value) = (packet.extras.len(), packet.key.len(), packet.value.len());
    match code {
        opcode::GET | opcode::GETK => extras == 0 && key > 0 && value == 0,
        opcode::GAT | opcode::GATK | opcode::TOUCH => extras == 4 && key > 0 && value == 0,
        opcode::SET | opcode::ADD | opcode::REPLACE => extras == 8 && key > 0,
        opcode::APPEND | opcode::PREPEND => extras == 0 && key > 0,
        opcode::DELETE => extras == 0 && key > 0 && value == 0,
        opcode::INCREMENT | opcode::DECREMENT => extras == 20 && key > 0 && value == 0,
        opcode::QUIT | opcode::NOOP | opcode::VERSION | opcode::SASL_LIST => {
            extras == 0 && key == 0 && value == 0
        }
        opcode::FLUSH => (extras == 0 || extras == 4) && key == 0 && value == 0,
        opcode::VERBOSITY => extras == 4 && key == 0 && value == 0,
        opcode::STAT => extras == 0 && value == 0,
        opcode::SASL_AUTH | opcode::SASL_STEP => extras == 0 && key > 0,
        _ => true,
    }
}

fn ok(out: &mut Output<'_>, to: &Header, value: &[u8]) {
    write(out.buffer(), to, &Reply { value, ..Reply::default() });
}

/// Answers with an error; in other words than memcached's, where they say more.
fn refuse(out: &mut Output<'_>, to: &Header, status: u16, words: Option<&str>) {
    let value = words.unwrap_or(text(status)).as_bytes();
    write(out.buffer(), to, &Reply { status, value, ..Reply::default() });
}

fn get(
    running: &mut Running<'_, '_>,
    packet: &Packet<'_>,
    code: u8,
    is_quiet: bool,
    out: &mut Output<'_>,
) -> Result<(), Ended> {
    let (key, header) = (packet.key, &packet.header);
    let exptime = matches!(code, opcode::GAT | opcode::GATK).then(|| packet.extra_u32(0));
    let reading = if exptime.is_some() { Reading::Touch } else { Reading::Plain };
    let found = running.fetch(key, reading, |at| {
        let found = at.read(true)?;
        if let (Some(exptime), Some(_)) = (exptime, &found) {
            at.touch(i64::from(exptime));
        }
        Ok(found)
    })?;
    let shows_key = matches!(code, opcode::GETK | opcode::GATK);
    let Some(found) = found else {
        if !is_quiet {
            let status = status::NOT_FOUND;
            let (key, value) = match shows_key {
                true => (key, &b""[..]),
                false => (&b""[..], text(status).as_bytes()),
            };
            write(out.buffer(), header, &Reply { status, key, value, ..Reply::default() });
        }
        return Ok(());
    };
    let extras = found.head.flags.to_be_bytes();
    let key = if shows_key { key } else { b"" };
    let reply = Reply { cas: found.head.cas, extras: &extras, key, ..Reply::default() };
    write_head(out.buffer(), header, &reply, found.value.len());
    out.value(found.value);
    Ok(())
}

fn touch(
    running: &mut Running<'_, '_>,
    packet: &Packet<'_>,
    out: &mut Output<'_>,
) -> Result<(), Ended> {
    let exptime = i64::from(packet.extra_u32(0));
    match running.touch(packet.key, exptime)? {
        true => ok(out, &packet.header, b""),
        false => refuse(out, &packet.header, status::NOT_FOUND, None),
    }
    Ok(())
}

fn store(
    running: &mut Running<'_, '_>,
    packet: &Packet<'_>,
    code: u8,
    is_quiet: bool,
    out: &mut Output<'_>,
) -> Result<(), Ended> {
    let header = &packet.header;
    let mode = match code {
        opcode::ADD => Mode::Add,
        opcode::REPLACE => Mode::Replace,
        opcode::APPEND => Mode::Append,
        opcode::PREPEND => Mode::Prepend,
        _ => Mode::Set,
    };
    let put = Put {
        mode,
        flags: packet.extra_u32(0),
        exptime: i64::from(packet.extra_u32(4) as i32),
        cas: (header.cas != 0).then_some(header.cas),
        invalidates: false,
        new_cas: None,
        vivify: None,
        wants_cas: !is_quiet,
        value: packet.value,
    };
    let failed = match running.store(packet.key, &put)? {
        Stored::Done { cas, .. } => {
            if !is_quiet {
                write(out.buffer(), header, &Reply { cas, ..Reply::default() });
            }
            return Ok(());
        }
        Stored::Unmet => match mode {
            Mode::Add => status::EXISTS,
            Mode::Replace => status::NOT_FOUND,
            _ => status::NOT_STORED,
        },
        Stored::Exists => status::EXISTS,
        Stored::NotFound => status::NOT_FOUND,
        Stored::TooLarge => status::TOO_LARGE,
        Stored::WrongType => return Err(Ended::Refused(wrong_type())),
    };
    refuse(out, header, failed, None);
    Ok(())
}

fn delete(
    running: &mut Running<'_, '_>,
    packet: &Packet<'_>,
    is_quiet: bool,
    out: &mut Output<'_>,
) -> Result<(), Ended> {
    let header = &packet.header;
    let cas = (header.cas != 0).then_some(header.cas);
    match running.delete(packet.key, cas)? {
        Deleted::Done if is_quiet => {}
        Deleted::Done => ok(out, header, b""),
        Deleted::NotFound => refuse(out, header, status::NOT_FOUND, None),
        Deleted::Exists => refuse(out, header, status::EXISTS, None),
        Deleted::WrongType => return Err(Ended::Refused(wrong_type())),
    }
    Ok(())
}

fn count(
    running: &mut Running<'_, '_>,
    packet: &Packet<'_>,
    code: u8,
    is_quiet: bool,
    out: &mut Output<'_>,
) -> Result<(), Ended> {
    let header = &packet.header;
    let (initial, exptime) = (packet.extra_u64(8), packet.extra_u32(16));
    let down = code == opcode::DECREMENT;
    let count = Count {
        delta: packet.extra_u64(0),
        down,
        cas: (header.cas != 0).then_some(header.cas),
        new_cas: None,
        exptime: None,
        vivify: (exptime != NOT_MADE).then_some((initial, i64::from(exptime))),
        wants_cas: !is_quiet,
    };
    match running.count(packet.key, &count)? {
        Counted::Is { .. } if is_quiet => {}
        Counted::Is { number, cas, .. } => {
            let value = number.to_be_bytes();
            write(out.buffer(), header, &Reply { cas, value: &value, ..Reply::default() });
        }
        Counted::NotFound => refuse(out, header, status::NOT_FOUND, None),
        Counted::Exists => refuse(out, header, status::EXISTS, None),
        Counted::NotANumber => refuse(out, header, status::NON_NUMERIC, None),
        Counted::WrongType => return Err(Ended::Refused(wrong_type())),
    }
    Ok(())
}

/// A packet for each fact, and an empty one.
fn stat(
    running: &mut Running<'_, '_>,
    packet: &Packet<'_>,
    out: &mut Output<'_>,
) -> Result<(), Ended> {
    let header = &packet.header;
    if packet.key == b"reset" {
        stats::reset(running)?;
        ok(out, header, b"");
        return Ok(());
    }
    match stats::facts(running, packet.key)? {
        Err(stats::NoStats::Unknown) => refuse(out, header, status::NOT_FOUND, None),
        Err(stats::NoStats::Refused(why)) => {
            refuse(out, header, status::NOT_FOUND, Some(why));
        }
        Ok(facts) => {
            for (name, value) in &facts {
                let (key, value) = (name.as_bytes(), value.as_bytes());
                write(out.buffer(), header, &Reply { key, value, ..Reply::default() });
            }
            ok(out, header, b"");
        }
    }
    Ok(())
}

/// SASL's PLAIN: `[authorized as] NUL user NUL password`.
fn log_in(running: &mut Running<'_, '_>, packet: &Packet<'_>, out: &mut Output<'_>) {
    let header = &packet.header;
    let mut parts = packet.value.splitn(3, |&byte| byte == 0);
    let (_, user, password) = (parts.next(), parts.next(), parts.next());
    let is_in = match (packet.key, user, password) {
        // There is one step, which is the first.
        (b"PLAIN", Some(user), Some(password)) if header.opcode == opcode::SASL_AUTH => {
            running.log_in(user, password)
        }
        _ => false,
    };
    match is_in {
        true => ok(out, header, b"Authenticated"),
        false => refuse(out, header, status::AUTH_ERROR, None),
    }
}
