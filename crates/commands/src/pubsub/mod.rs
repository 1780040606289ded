//! Publish and subscribe: SUBSCRIBE, PUBLISH, their forms for patterns and shards, and PUBSUB.

use crate::shared::help::HELP;
use ladon_kernel::client::session::ReplyMode;
use ladon_kernel::command::accessed::Channels;
use ladon_kernel::command::error::{CommandError, CommandResult, shown};
use ladon_kernel::command::flags::Flags;
use ladon_kernel::command::spec::{Code, HandlerFn, LockNeed};
use ladon_kernel::ctx::Ctx;
use ladon_kernel::pubsub::joining;
use ladon_kernel::pubsub::published::Kind;

pub(crate) const COMMANDS: &[Code] = &[
    while_subscribed("subscribe", |ctx, args| subscribe(ctx, args, Kind::Channel))
        .on_channels(Channels::All),
    while_subscribed("psubscribe", |ctx, args| subscribe(ctx, args, Kind::Pattern))
        .on_channels(Channels::Patterns),
    while_subscribed("ssubscribe", |ctx, args| subscribe(ctx, args, Kind::Shard))
        .on_channels(Channels::All),
    while_subscribed("unsubscribe", |ctx, args| unsubscribe(ctx, args, Kind::Channel)),
    while_subscribed("punsubscribe", |ctx, args| unsubscribe(ctx, args, Kind::Pattern)),
    while_subscribed("sunsubscribe", |ctx, args| unsubscribe(ctx, args, Kind::Shard)),
    Code::with_locks("publish", LockNeed::None, |ctx, args| publish(ctx, args, Kind::Channel))
        .with(Flags::MAY_REPLICATE)
        .on_channels(Channels::One),
    Code::with_locks("spublish", LockNeed::None, |ctx, args| publish(ctx, args, Kind::Shard))
        .with(Flags::MAY_REPLICATE)
        .on_channels(Channels::One),
    Code::container(
        "pubsub",
        &[
            Code::with_locks("channels", LockNeed::None, |ctx, args| {
                names(ctx, args, Kind::Channel)
            }),
            Code::with_locks("shardchannels", LockNeed::None, |ctx, args| {
                names(ctx, args, Kind::Shard)
            }),
            Code::with_locks("numsub", LockNeed::None, |ctx, args| {
                subscribers(ctx, args, Kind::Channel)
            }),
            Code::with_locks("shardnumsub", LockNeed::None, |ctx, args| {
                subscribers(ctx, args, Kind::Shard)
            }),
            Code::with_locks("numpat", LockNeed::None, patterns),
            HELP,
        ],
    ),
];

const fn while_subscribed(name: &'static str, handler: HandlerFn) -> Code {
    Code::with_locks(name, LockNeed::None, handler).with(Flags::WHILE_SUBSCRIBED)
}

/// Number of subscriptions as replies about a kind give it: channels and patterns are counted
/// together.
fn count(ctx: &Ctx<'_>, kind: Kind) -> i64 {
    let of = |kind| ctx.session.subscriptions(kind);
    let count = match kind {
        Kind::Shard => of(Kind::Shard),
        _ => of(Kind::Channel) + of(Kind::Pattern),
    };
    count as i64
}

fn subscribe(ctx: &mut Ctx<'_>, args: &[&[u8]], kind: Kind) -> CommandResult {
    if kind == Kind::Shard && ctx.in_exec {
        let text = "ERR SSUBSCRIBE isn't allowed for a DENY BLOCKING client";
        return Err(CommandError::text(text));
    }
    let word = ["subscribe", "ssubscribe", "psubscribe"][kind as usize];
    for name in &args[1..] {
        joining::subscribe(ctx.node, ctx.local, ctx.session, kind, name);
        confirm(ctx, word, Some(name), kind);
    }
    Ok(())
}

fn unsubscribe(ctx: &mut Ctx<'_>, args: &[&[u8]], kind: Kind) -> CommandResult {
    let word = ["unsubscribe", "sunsubscribe", "punsubscribe"][kind as usize];
    for name in &args[1..] {
        joining::unsubscribe(ctx.node, ctx.local, ctx.session, kind, name);
        confirm(ctx, word, Some(name), kind);
    }
    if args.len() == 1 {
        let all = ctx.session.subscribed.as_ref().map(|subscribed| subscribed.names(kind));
        let all = all.unwrap_or_default();
        for name in &all {
            joining::unsubscribe(ctx.node, ctx.local, ctx.session, kind, name);
            confirm(ctx, word, Some(name), kind);
        }
        if all.is_empty() {
            confirm(ctx, word, None, kind);
        }
    }
    Ok(())
}

/// Tells the client about one name.
fn confirm(ctx: &mut Ctx<'_>, word: &str, name: Option<&[u8]>, kind: Kind) {
    let count = count(ctx, kind);
    let start = ctx.reply.position();
    ctx.reply.push(3);
    ctx.reply.bulk(word);
    match name {
        Some(name) => ctx.reply.bulk(name),
        None => ctx.reply.null(),
    }
    ctx.reply.integer(count);
    if ctx.session.reply_mode != ReplyMode::On {
        ctx.local.unsilenced.extend_from_slice(ctx.reply.written_since(start));
    }
}

fn publish(ctx: &mut Ctx<'_>, args: &[&[u8]], kind: Kind) -> CommandResult {
    let receivers = ctx.publish(kind, args[1], args[2]);
    ctx.reply.integer(receivers as i64);
    Ok(())
}

fn names(ctx: &mut Ctx<'_>, args: &[&[u8]], kind: Kind) -> CommandResult {
    if args.len() > 3 {
        return Err(CommandError::err(format_args!(
            "unknown subcommand or wrong number of arguments for '{}'. Try PUBSUB HELP.",
            shown(args[1])
        )));
    }
    let names = ctx.node.pubsub.matching(kind, args.get(2).copied());
    ctx.reply.array(names.len());
    for name in &names {
        ctx.reply.bulk(name);
    }
    Ok(())
}

fn subscribers(ctx: &mut Ctx<'_>, args: &[&[u8]], kind: Kind) -> CommandResult {
    let channels = &args[2..];
    ctx.reply.array(channels.len() * 2);
    for channel in channels {
        ctx.reply.bulk(channel);
        let count = ctx.node.pubsub.subscribers(kind, channel);
        ctx.reply.integer(count as i64);
    }
    Ok(())
}

fn patterns(ctx: &mut Ctx<'_>, _args: &[&[u8]]) -> CommandResult {
    let count = ctx.node.pubsub.names(Kind::Pattern);
    ctx.reply.integer(count as i64);
    Ok(())
}
