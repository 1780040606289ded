//! HELLO: chooses the protocol and describes the server.

use super::auth;
use ladon_kernel::client::clients::check_name;
use ladon_kernel::command::args::is;
use ladon_kernel::command::error::{CommandError, CommandResult, shown_up_to};
use ladon_kernel::ctx::Ctx;
use ladon_kernel::node::REDIS_VERSION;
use ladon_resp::{Proto, parse_i64};

pub(crate) fn hello(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let proto = args.get(1).map(|version| proto_of(version)).transpose()?;
    let (mut login, mut name) = (None, None);
    let mut rest = args.get(2..).unwrap_or_default();
    while let [option, after @ ..] = rest {
        rest = match after {
            [user, password, rest @ ..] if is(option, "AUTH") => {
                login = Some((*user, *password));
                rest
            }
            [value, rest @ ..] if is(option, "SETNAME") => {
                check_name(value)?;
                name = Some(*value);
                rest
            }
            _ => {
                return Err(CommandError::err(format_args!(
                    "Syntax error in HELLO option '{}'",
                    shown_up_to(option, usize::MAX)
                )));
            }
        };
    }
    if let Some((user, password)) = login {
        auth::log_in(ctx, args[0], user, password)?;
    }
    if !ctx.session.authenticated && ctx.node.requires_login() {
        return Err(CommandError::text(
            "NOAUTH HELLO must be called with the client already authenticated, otherwise the \
             HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and \
             select the RESP protocol version at the same time",
        ));
    }
    if let Some(name) = name {
        let info = &ctx.session.info;
        info.set_name(&info.name, name);
    }
    if let Some(proto) = proto {
        ctx.session.proto = proto;
        ctx.reply.set_proto(proto);
    }
    describe(ctx);
    Ok(())
}

fn proto_of(version: &[u8]) -> Result<Proto, CommandError> {
    match parse_i64(version) {
        Some(2) => Ok(Proto::Resp2),
        Some(3) => Ok(Proto::Resp3),
        Some(_) => Err(CommandError::text("NOPROTO unsupported protocol version")),
        None => Err(CommandError::text("ERR Protocol version is not an integer or out of range")),
    }
}

fn describe(ctx: &mut Ctx<'_>) {
    let proto = i64::from(ctx.session.proto.number());
    let role = if ctx.node.role.get().is_replica() { "replica" } else { "master" };
    let reply = &mut ctx.reply;
    reply.map(7);
    // Clients look for this name.
    for (field, value) in [("server", "redis"), ("version", REDIS_VERSION)] {
        reply.bulk(field);
        reply.bulk(value);
    }
    for (field, value) in [("proto", proto), ("id", ctx.session.info.id as i64)] {
        reply.bulk(field);
        reply.integer(value);
    }
    for (field, value) in [("mode", "standalone"), ("role", role)] {
        reply.bulk(field);
        reply.bulk(value);
    }
    reply.bulk("modules");
    reply.array(0);
}
