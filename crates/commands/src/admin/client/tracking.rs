//! `CLIENT TRACKING` and what belongs to it: which invalidations a connection gets.

use ladon_kernel::command::args::{self, is};
use ladon_kernel::command::error::{CommandError, CommandResult, shown};
use ladon_kernel::ctx::Ctx;
use ladon_kernel::tracking::joining;
use ladon_kernel::tracking::state::{Modes, TrackingState};

/// What `CLIENT TRACKING` was asked for.
#[derive(Default)]
struct Wanted<'a> {
    modes: Modes,
    redirect: u64,
    prefixes: Vec<&'a [u8]>,
}

pub(super) fn tracking(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let wanted = Wanted::read(ctx, &args[3..])?;
    if is(args[2], "on") {
        wanted.check(ctx.session.tracking.as_deref())?;
        wanted.check_rights(ctx)?;
        let Wanted { modes, redirect, prefixes } = wanted;
        joining::turn_on(ctx.node, ctx.local, ctx.session, modes, redirect, &prefixes);
    } else if is(args[2], "off") {
        joining::turn_off(ctx.node, ctx.local, ctx.session);
    } else {
        return Err(CommandError::Syntax);
    }
    ctx.reply.ok();
    Ok(())
}

impl<'a> Wanted<'a> {
    fn read(ctx: &Ctx<'_>, options: &[&'a [u8]]) -> Result<Wanted<'a>, CommandError> {
        let mut wanted = Wanted::default();
        let mut options = options.iter().copied();
        while let Some(option) = options.next() {
            if is(option, "bcast") {
                wanted.modes.broadcast = true;
            } else if is(option, "optin") {
                wanted.modes.opt_in = true;
            } else if is(option, "optout") {
                wanted.modes.opt_out = true;
            } else if is(option, "noloop") {
                wanted.modes.no_loop = true;
            } else if is(option, "redirect") {
                let Some(id) = options.next() else { return Err(CommandError::Syntax) };
                wanted.redirect = redirect(ctx, id, wanted.redirect)?;
            } else if is(option, "prefix") {
                let Some(prefix) = options.next() else { return Err(CommandError::Syntax) };
                wanted.prefixes.push(prefix);
            } else {
                return Err(CommandError::Syntax);
            }
        }
        Ok(wanted)
    }

    /// Whether the user may read all keys of which it would be told: Redis tells any user.
    fn check_rights(&self, ctx: &Ctx<'_>) -> CommandResult {
        let user = &ctx.session.access.user;
        let may_read = |prefix: &[u8]| user.allows_prefix(prefix);
        let may_read_all = match self.prefixes.as_slice() {
            _ if !self.modes.broadcast => true,
            [] => may_read(b""),
            prefixes => prefixes.iter().all(|prefix| may_read(prefix)),
        };
        let denied = CommandError::text("NOPERM No permissions to access a key");
        if may_read_all { Ok(()) } else { Err(denied) }
    }

    /// Whether this is possible by itself, and after what the connection has chosen before.
    fn check(&self, before: Option<&TrackingState>) -> CommandResult {
        let Modes { broadcast, opt_in, opt_out, .. } = self.modes;
        let before = before.filter(|before| before.on);
        if !broadcast && !self.prefixes.is_empty() {
            return Err(CommandError::text("ERR PREFIX option requires BCAST mode to be enabled"));
        }
        if before.is_some_and(|before| before.modes.broadcast != broadcast) {
            return Err(CommandError::text(
                "ERR You can't switch BCAST mode on/off before disabling tracking for this client, \
                 and then re-enabling it with a different mode.",
            ));
        }
        if broadcast && (opt_in || opt_out) {
            return Err(CommandError::text("ERR OPTIN and OPTOUT are not compatible with BCAST"));
        }
        if opt_in && opt_out {
            return Err(CommandError::text(
                "ERR You can't specify both OPTIN mode and OPTOUT mode",
            ));
        }
        let switches = |before: &TrackingState| {
            opt_in && before.modes.opt_out || opt_out && before.modes.opt_in
        };
        if before.is_some_and(switches) {
            return Err(CommandError::text(
                "ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, \
                 and then re-enabling it with a different mode.",
            ));
        }
        self.check_prefixes(before)
    }

    /// Whether no prefix overlaps with one from before, nor two of them. As in Redis, the first one
    /// that does is named.
    fn check_prefixes(&self, before: Option<&TrackingState>) -> CommandResult {
        let own = self.own_overlap();
        let until = own.map_or(self.prefixes.len(), |(a, _)| a + 1);
        for prefix in &self.prefixes[..until] {
            if let Some(other) = before.and_then(|before| before.overlapping(prefix)) {
                return Err(overlap(prefix, "an existing", other));
            }
        }
        match own {
            Some((a, b)) => Err(overlap(self.prefixes[a], "another provided", self.prefixes[b])),
            None => Ok(()),
        }
    }

    /// Two of these prefixes that overlap, by their places. In order, one that another begins with
    /// comes before that, with nothing but such ones in between.
    fn own_overlap(&self) -> Option<(usize, usize)> {
        let mut sorted: Vec<(&[u8], usize)> =
            self.prefixes.iter().enumerate().map(|(at, &prefix)| (prefix, at)).collect();
        sorted.sort_unstable();
        let mut first: Option<(usize, usize)> = None;
        for pair in sorted.windows(2) {
            let [(short, a), (long, b)] = *pair else { continue };
            if long.starts_with(short) {
                let pair = (a.min(b), a.max(b));
                first = Some(first.map_or(pair, |first| first.min(pair)));
            }
        }
        first.map(|found| self.first_overlap().unwrap_or(found))
    }
}

impl Wanted<'_> {
    /// The first prefix that overlaps with a later one, and the first such one, as Redis names
    /// them. `None`: there are so many that looking would take long.
    fn first_overlap(&self) -> Option<(usize, usize)> {
        const COMPARED_MAX: usize = 100;
        let prefixes = &self.prefixes;
        let pairs = (0..prefixes.len()).flat_map(|a| (a + 1..prefixes.len()).map(move |b| (a, b)));
        let overlap = |&(a, b): &(usize, usize)| {
            prefixes[a].starts_with(prefixes[b]) || prefixes[b].starts_with(prefixes[a])
        };
        if prefixes.len() > COMPARED_MAX { None } else { { pairs }.find(overlap) }
    }
}

fn overlap(prefix: &[u8], which: &str, other: &[u8]) -> CommandError {
    CommandError::err(format_args!(
        "Prefix '{}' overlaps with {which} prefix '{}'. Prefixes for a single client must not \
         overlap.",
        shown(prefix),
        shown(other)
    ))
}

/// The connection that is to get the invalidations: it has to exist now.
fn redirect(ctx: &Ctx<'_>, id: &[u8], before: u64) -> Result<u64, CommandError> {
    if before != 0 {
        return Err(CommandError::text("ERR A client can only redirect to a single other client"));
    }
    let id = u64::try_from(args::integer(id)?).ok();
    let exists = |id: &u64| ctx.node.clients.find(*id).is_some_and(|info| !info.is_gone());
    id.filter(exists)
        .ok_or(CommandError::text("ERR The client ID you want redirect to does not exist"))
}

pub(super) fn caching(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let Some(tracking) = ctx.session.tracking.as_mut().filter(|tracking| tracking.on) else {
        return Err(CommandError::text(
            "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN \
             or OPTOUT mode enabled",
        ));
    };
    if is(args[2], "yes") {
        if !tracking.modes.opt_in {
            return Err(CommandError::text(
                "ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.",
            ));
        }
    } else if is(args[2], "no") {
        if !tracking.modes.opt_out {
            return Err(CommandError::text(
                "ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.",
            ));
        }
    } else {
        return Err(CommandError::Syntax);
    }
    tracking.caching = true;
    ctx.reply.ok();
    Ok(())
}

/// The connection that gets the invalidations instead: 0 for none, -1 without tracking.
fn redirected(tracking: Option<&TrackingState>) -> i64 {
    tracking.map_or(-1, |tracking| tracking.redirect as i64)
}

pub(super) fn getredir(ctx: &mut Ctx<'_>, _args: &[&[u8]]) -> CommandResult {
    let tracking = ctx.session.tracking.as_deref().filter(|tracking| tracking.on);
    ctx.reply.integer(redirected(tracking));
    Ok(())
}

pub(super) fn info(ctx: &mut Ctx<'_>, _args: &[&[u8]]) -> CommandResult {
    let tracking = ctx.session.tracking.as_deref().filter(|tracking| tracking.on);
    let flags: Vec<&str> = match tracking {
        None => vec!["off"],
        Some(TrackingState { modes, caching, is_broken, .. }) => [
            (true, "on"),
            (modes.broadcast, "bcast"),
            (modes.opt_in, "optin"),
            (modes.opt_in && *caching, "caching-yes"),
            (modes.opt_out, "optout"),
            (modes.opt_out && *caching, "caching-no"),
            (modes.no_loop, "noloop"),
            (*is_broken, "broken_redirect"),
        ]
        .into_iter()
        .filter_map(|(holds, flag)| holds.then_some(flag))
        .collect(),
    };
    let reply = &mut ctx.reply;
    reply.map(3);
    reply.bulk("flags");
    reply.set(flags.len());
    flags.iter().for_each(|flag| reply.bulk(flag));
    reply.bulk("redirect");
    reply.integer(redirected(tracking));
    reply.bulk("prefixes");
    let prefixes = tracking.map(TrackingState::prefixes);
    reply.array(prefixes.as_ref().map_or(0, ExactSizeIterator::len));
    prefixes.into_iter().flatten().for_each(|prefix| reply.bulk(prefix));
    Ok(())
}
