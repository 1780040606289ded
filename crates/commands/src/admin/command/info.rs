//! `COMMAND` and `COMMAND INFO`.

use super::top_level;
use ladon_command_docs::{BeginSearch, FindKeys, KeySpec};
use ladon_kernel::command::command_id::CommandId;
use ladon_kernel::command::error::CommandResult;
use ladon_kernel::ctx::Ctx;

pub(super) fn all(ctx: &mut Ctx<'_>, _args: &[&[u8]]) -> CommandResult {
    let ids = top_level(ctx);
    ctx.reply.array(ids.len());
    for id in ids {
        describe(ctx, id);
    }
    Ok(())
}

pub(super) fn info(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let names = &args[2..];
    if names.is_empty() {
        return all(ctx, args);
    }
    ctx.reply.array(names.len());
    for name in names {
        match ctx.node.table.find_full(name) {
            Some(id) => describe(ctx, id),
            None => ctx.reply.null(),
        }
    }
    Ok(())
}

fn describe(ctx: &mut Ctx<'_>, id: CommandId) {
    let entry = ctx.node.table.entry(id);
    let (spec, doc) = (entry.spec, entry.doc);
    let (first, last, step) = doc.key_range();
    ctx.reply.array(10);
    ctx.reply.bulk(&entry.full_name);
    ctx.reply.integer(spec.arity.into());
    statuses(ctx, spec.flags.names().map(str::to_owned));
    for position in [first, last, step] {
        ctx.reply.integer(position.into());
    }
    let categories = &doc.acl_categories;
    statuses(ctx, categories.iter().map(|category| format!("@{category}")));
    ctx.reply.set(doc.tips.len());
    for tip in &doc.tips {
        ctx.reply.bulk(tip);
    }
    ctx.reply.set(doc.key_specs.len());
    for key_spec in &doc.key_specs {
        describe_keys(ctx, key_spec);
    }
    ctx.reply.set(entry.subcommands.len());
    for &subcommand in &entry.subcommands {
        describe(ctx, subcommand);
    }
}

fn describe_keys(ctx: &mut Ctx<'_>, key_spec: &KeySpec) {
    ctx.reply.map(3 + usize::from(key_spec.notes.is_some()));
    if let Some(notes) = key_spec.notes {
        ctx.reply.bulk("notes");
        ctx.reply.bulk(notes);
    }
    ctx.reply.bulk("flags");
    statuses(ctx, key_spec.flags.iter().map(|flag| (*flag).to_owned()));
    match key_spec.begin_search {
        BeginSearch::Index(index) => {
            search(ctx, "begin_search", "index", &[("index", index.into())])
        }
        BeginSearch::Keyword { keyword, from } => {
            search(
                ctx,
                "begin_search",
                "keyword",
                &[("keyword", keyword.into()), ("startfrom", from.into())],
            );
        }
        BeginSearch::Unknown => search(ctx, "begin_search", "unknown", &[]),
    }
    match key_spec.find_keys {
        FindKeys::Range { last_key, key_step, limit } => {
            let fields = [("lastkey", last_key), ("keystep", key_step), ("limit", limit)];
            let fields = fields.map(|(name, number)| (name, number.into()));
            search(ctx, "find_keys", "range", &fields);
        }
        FindKeys::Unknown => search(ctx, "find_keys", "unknown", &[]),
        FindKeys::KeyNumber { key_number_index, first_key, key_step } => {
            let fields =
                [("keynumidx", key_number_index), ("firstkey", first_key), ("keystep", key_step)];
            let fields = fields.map(|(name, number)| (name, number.into()));
            search(ctx, "find_keys", "keynum", &fields);
        }
    }
}

/// A fact about where keys are.
enum Fact {
    Number(i32),
    Word(&'static str),
}

impl From<i32> for Fact {
    fn from(number: i32) -> Fact {
        Fact::Number(number)
    }
}

impl From<&'static str> for Fact {
    fn from(word: &'static str) -> Fact {
        Fact::Word(word)
    }
}

fn search(ctx: &mut Ctx<'_>, name: &str, kind: &str, fields: &[(&str, Fact)]) {
    ctx.reply.bulk(name);
    ctx.reply.map(2);
    ctx.reply.bulk("type");
    ctx.reply.bulk(kind);
    ctx.reply.bulk("spec");
    ctx.reply.map(fields.len());
    for (name, value) in fields {
        ctx.reply.bulk(name);
        match *value {
            Fact::Number(number) => ctx.reply.integer(number.into()),
            Fact::Word(word) => ctx.reply.bulk(word),
        }
    }
}

/// A set of words as status replies.
pub(super) fn statuses(ctx: &mut Ctx<'_>, words: impl Iterator<Item = String>) {
    let words: Vec<String> = words.collect();
    ctx.reply.set(words.len());
    for word in words {
        ctx.reply.simple(&word);
    }
}
