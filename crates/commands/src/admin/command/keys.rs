//! `COMMAND GETKEYS` and `COMMAND GETKEYSANDFLAGS`.

use super::info::statuses;
use ladon_command_docs::{BeginSearch, FindKeys, KeySpec};
use ladon_kernel::command::command_id::CommandId;
use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_kernel::command::spec::{Handler, KeyPositions};
use ladon_kernel::ctx::Ctx;

pub(super) fn getkeys(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let command = &args[2..];
    let (_, positions) = keys_of(ctx, command)?;
    ctx.reply.array(positions.len());
    for at in positions {
        ctx.reply.bulk(command[at]);
    }
    Ok(())
}

pub(super) fn getkeysandflags(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let command = &args[2..];
    let (id, positions) = keys_of(ctx, command)?;
    ctx.reply.array(positions.len());
    for at in positions {
        ctx.reply.array(2);
        ctx.reply.bulk(command[at]);
        let flags = ctx.node.table.spec(id).key_flags(command, at);
        statuses(ctx, flags.iter().map(|flag| (*flag).to_owned()));
    }
    Ok(())
}

/// Finds which command this is, and the positions of its keys.
fn keys_of(ctx: &Ctx<'_>, command: &[&[u8]]) -> Result<(CommandId, Vec<usize>), CommandError> {
    let table = ctx.node.table;
    let id = table.find(command[0]).and_then(|id| match (table.spec(id).handler, command) {
        (Handler::Container | Handler::RunOrContainer(_), [_, name, ..]) => {
            table.find_subcommand(id, name)
        }
        _ => Some(id),
    });
    let id = id.ok_or(CommandError::text("ERR Invalid command specified"))?;
    let spec = table.spec(id);
    let are_channels = |specs: &[KeySpec]| {
        !specs.is_empty() && specs.iter().all(|it| it.flags.contains(&"not_key"))
    };
    if matches!(spec.keys, KeyPositions::None) || are_channels(&table.entry(id).doc.key_specs) {
        return Err(CommandError::text("ERR The command has no key arguments"));
    }
    if !spec.accepts(command.len()) {
        return Err(CommandError::text("ERR Invalid number of arguments specified for command"));
    }
    let by_keyword =
        table.entry(id).doc.key_specs.iter().find_map(|spec| after_keyword(spec, command));
    let positions = by_keyword.unwrap_or_else(|| spec.keys.positions(command).collect());
    if positions.is_empty() || !counts_right(spec.keys, command, positions.len()) {
        // A script may have none; then any wrong count is as good as 0.
        if table.entry(id).doc.flags.contains(&"no_mandatory_keys") {
            return Ok((id, Vec::new()));
        }
        return Err(CommandError::text("ERR Invalid arguments specified for command"));
    }
    Ok((id, positions))
}

/// The keys that follow a keyword, whatever the options before it: those may be wrong. `None`: the
/// keys stand elsewhere.
fn after_keyword(spec: &KeySpec, command: &[&[u8]]) -> Option<Vec<usize>> {
    let BeginSearch::Keyword { keyword, from } = spec.begin_search else { return None };
    let FindKeys::Range { last_key: -1, key_step: 1, limit } = spec.find_keys else { return None };
    let from = usize::try_from(from).ok()?;
    let first = (from..command.len())
        .find(|&at| command[at].eq_ignore_ascii_case(keyword.as_bytes()))
        .map_or(command.len(), |at| at + 1);
    let keys = (command.len() - first) / usize::try_from(limit).ok()?.max(1);
    Some((first..first + keys).collect())
}

/// Whether the number of keys found agrees with the command's own count.
fn counts_right(keys: KeyPositions, command: &[&[u8]], found: usize) -> bool {
    let (count_at, found) = match keys {
        KeyPositions::Counted { count_at, .. } => (count_at, found),
        KeyPositions::FirstAndCounted { count_at } => (count_at, found - 1),
        KeyPositions::None
        | KeyPositions::Range { .. }
        | KeyPositions::FirstAndOption(_)
        | KeyPositions::Found(_) => return true,
    };
    let count = command.get(usize::from(count_at)).and_then(|text| ladon_resp::parse_i64(text));
    count.is_some_and(|count| usize::try_from(count) == Ok(found))
}
