//! `COMMAND LIST`.

use ladon_kernel::command::args::is;
use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_kernel::ctx::Ctx;
use ladon_settings::Glob;

pub(super) fn list(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let filter = match args {
        [_, _] => Filter::None,
        [_, _, filterby, kind, value] if is(filterby, "filterby") => match value {
            _ if is(kind, "module") => Filter::Module,
            value if is(kind, "aclcat") => Filter::Category(value),
            value if is(kind, "pattern") => Filter::Pattern(Glob::new(value, true)),
            _ => return Err(CommandError::Syntax),
        },
        _ => return Err(CommandError::Syntax),
    };
    let table = ctx.node.table;
    let names: Vec<&str> = table
        .iter()
        .filter(|(_, entry)| match &filter {
            Filter::None => true,
            Filter::Module => false,
            Filter::Category(wanted) => {
                entry.doc.acl_categories.iter().any(|category| is(wanted, category))
            }
            Filter::Pattern(pattern) => pattern.matches(entry.full_name.as_bytes()),
        })
        .map(|(_, entry)| entry.full_name.as_str())
        .collect();
    ctx.reply.array(names.len());
    for name in names {
        ctx.reply.bulk(name);
    }
    Ok(())
}

enum Filter<'a> {
    None,
    /// Ladon has no modules, whatever the name.
    Module,
    Category(&'a [u8]),
    Pattern(Glob),
}
