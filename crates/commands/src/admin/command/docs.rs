//! `COMMAND DOCS`.

use super::top_level;
use crate::admin::command::info::statuses;
use ladon_command_docs::Argument;
use ladon_kernel::command::command_id::CommandId;
use ladon_kernel::command::error::CommandResult;
use ladon_kernel::ctx::Ctx;

pub(super) fn docs(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let names = &args[2..];
    let ids: Vec<CommandId> = match names {
        [] => top_level(ctx),
        // Unknown names are skipped silently.
        names => names.iter().filter_map(|name| ctx.node.table.find_full(name)).collect(),
    };
    ctx.reply.map(ids.len());
    for id in ids {
        ctx.reply.bulk(&ctx.node.table.entry(id).full_name);
        describe(ctx, id);
    }
    Ok(())
}

fn describe(ctx: &mut Ctx<'_>, id: CommandId) {
    let entry = ctx.node.table.entry(id);
    let doc = entry.doc;
    let mark = ctx.reply.begin_map();
    let mut count = 0;
    let mut text = |ctx: &mut Ctx<'_>, name: &str, value: &str| {
        ctx.reply.bulk(name);
        ctx.reply.bulk(value);
        count += 1;
    };
    text(ctx, "summary", doc.summary);
    text(ctx, "since", doc.since);
    text(ctx, "group", doc.group);
    if !doc.complexity.is_empty() {
        text(ctx, "complexity", doc.complexity);
    }
    if !doc.doc_flags.is_empty() {
        ctx.reply.bulk("doc_flags");
        statuses(ctx, doc.doc_flags.iter().map(|flag| (*flag).to_owned()));
        count += 1;
    }
    if let Some((since, replaced_by)) = doc.deprecated {
        for (name, value) in [("deprecated_since", since), ("replaced_by", replaced_by)] {
            ctx.reply.bulk(name);
            ctx.reply.bulk(value);
            count += 1;
        }
    }
    if !doc.history.is_empty() {
        ctx.reply.bulk("history");
        ctx.reply.set(doc.history.len());
        for (version, change) in &doc.history {
            ctx.reply.array(2);
            ctx.reply.bulk(version);
            ctx.reply.bulk(change);
        }
        count += 1;
    }
    let arguments = doc.arguments();
    if !arguments.is_empty() {
        ctx.reply.bulk("arguments");
        list(ctx, &arguments);
        count += 1;
    }
    if !entry.subcommands.is_empty() {
        ctx.reply.bulk("subcommands");
        ctx.reply.map(entry.subcommands.len());
        for &id in &entry.subcommands {
            ctx.reply.bulk(&ctx.node.table.entry(id).full_name);
            describe(ctx, id);
        }
        count += 1;
    }
    ctx.reply.end_map(mark, count);
}

fn list(ctx: &mut Ctx<'_>, arguments: &[Argument]) {
    ctx.reply.array(arguments.len());
    for argument in arguments {
        let mark = ctx.reply.begin_map();
        let mut count = 2;
        ctx.reply.bulk("name");
        ctx.reply.bulk(&argument.name);
        ctx.reply.bulk("type");
        ctx.reply.bulk(argument.kind.name());
        if let Some(text) = &argument.display_text {
            ctx.reply.bulk("display_text");
            ctx.reply.bulk(text);
            count += 1;
        }
        if let Some(index) = argument.key_spec_index {
            ctx.reply.bulk("key_spec_index");
            ctx.reply.integer(index.into());
            count += 1;
        }
        let texts = [
            ("token", &argument.token),
            ("since", &argument.since),
            ("deprecated_since", &argument.deprecated_since),
        ];
        for (name, value) in texts {
            if let Some(value) = value {
                ctx.reply.bulk(name);
                ctx.reply.bulk(value);
                count += 1;
            }
        }
        if argument.flags().next().is_some() {
            ctx.reply.bulk("flags");
            statuses(ctx, argument.flags().map(str::to_owned));
            count += 1;
        }
        if !argument.arguments.is_empty() {
            ctx.reply.bulk("arguments");
            list(ctx, &argument.arguments);
            count += 1;
        }
        ctx.reply.end_map(mark, count);
    }
}
