//! Names of connections and their libraries.

use ladon_kernel::client::clients;
use ladon_kernel::command::args::is;
use ladon_kernel::command::error::{CommandError, CommandResult, shown};
use ladon_kernel::ctx::Ctx;

pub(super) fn setname(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    clients::check_name(args[2])?;
    let info = &ctx.session.info;
    info.set_name(&info.name, args[2]);
    ctx.reply.ok();
    Ok(())
}

pub(super) fn getname(ctx: &mut Ctx<'_>, _args: &[&[u8]]) -> CommandResult {
    let name = ctx.session.info.name.lock();
    if name.is_empty() {
        ctx.reply.null();
    } else {
        ctx.reply.bulk(&*name);
    }
    Ok(())
}

pub(super) fn setinfo(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (attribute, value) = (args[2], args[3]);
    let info = &ctx.session.info;
    let field = if is(attribute, "lib-name") {
        &info.lib_name
    } else if is(attribute, "lib-ver") {
        &info.lib_ver
    } else {
        return Err(CommandError::err(format_args!("Unrecognized option '{}'", shown(attribute))));
    };
    if !clients::is_plain(value) {
        return Err(CommandError::err(format_args!(
            "{} cannot contain spaces, newlines or special characters.",
            shown(attribute)
        )));
    }
    info.set_name(field, value);
    ctx.reply.ok();
    Ok(())
}
