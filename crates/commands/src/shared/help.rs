//! `HELP` of every container of subcommands, from the facts about them.

use ladon_command_docs::{Argument, ArgumentKind, CommandDoc};
use ladon_kernel::command::error::CommandResult;
use ladon_kernel::command::spec::{Code, LockNeed};
use ladon_kernel::ctx::Ctx;

/// The subcommand `HELP`, for any container.
pub(crate) const HELP: Code = Code::with_locks("help", LockNeed::None, help);

fn help(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let name = String::from_utf8_lossy(args[0]).to_ascii_lowercase();
    let entry = ctx.node.table.find(args[0]).map(|id| ctx.node.table.entry(id));
    let subcommands = entry.into_iter().flat_map(|entry| &entry.subcommands);
    let docs =
        subcommands.map(|&id| ctx.node.table.entry(id).doc).map(|doc| (usage(doc), doc.summary));
    reply(ctx, &name, &docs.collect::<Vec<_>>());
    Ok(())
}

/// Replies with a heading and then, for each of (usage, explanation), a line and an indented one.
pub(crate) fn reply(ctx: &mut Ctx<'_>, name: &str, lines: &[(String, &str)]) {
    ctx.reply.array(1 + lines.len() * 2);
    ctx.reply.simple(&format!(
        "{} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
        name.to_uppercase()
    ));
    for (usage, explanation) in lines {
        ctx.reply.simple(usage);
        ctx.reply.simple(&format!("    {explanation}"));
    }
}

/// `USAGE key [SAMPLES count]`
pub(crate) fn usage(doc: &CommandDoc) -> String {
    let words = doc.name.rsplit('|').next().unwrap_or_default().to_uppercase();
    let arguments = doc.arguments();
    let arguments = arguments.iter().map(shown);
    std::iter::once(words).chain(arguments).collect::<Vec<_>>().join(" ")
}

/// An argument as the usual manuals write it.
fn shown(argument: &Argument) -> String {
    let inner =
        |separator: &str| argument.arguments.iter().map(shown).collect::<Vec<_>>().join(separator);
    let token = argument.token.as_deref();
    let value = match argument.kind {
        ArgumentKind::PureToken => None,
        ArgumentKind::OneOf => Some(format!("<{}>", inner(" | "))),
        ArgumentKind::Block => Some(inner(" ")),
        _ => Some(argument.display_text.clone().unwrap_or_else(|| argument.name.clone())),
    };
    let value = match (value, argument.multiple) {
        (Some(value), true) => Some(format!("{value} [{value} ...]")),
        (value, _) => value,
    };
    let text =
        [token.map(str::to_owned), value].into_iter().flatten().collect::<Vec<_>>().join(" ");
    if argument.optional { format!("[{text}]") } else { text }
}

#[cfg(test)]
mod tests {
    use super::usage;

    #[test]
    fn usages_read_as_in_the_manuals() {
        for (name, expected) in [
            ("config|get", "GET parameter [parameter ...]"),
            ("memory|usage", "USAGE key [SAMPLES count]"),
            ("slowlog|reset", "RESET"),
            ("flushall", "FLUSHALL [<ASYNC | SYNC>]"),
            ("config|set", "SET parameter value [parameter value ...]"),
        ] {
            assert_eq!(usage(ladon_command_docs::find(name).unwrap()), expected);
        }
    }
}
