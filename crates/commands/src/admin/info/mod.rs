//! `INFO`: information about the node, in Redis' sections and one of Ladon's own.
//!
//! A Redis field is shown if Ladon has what it describes, with the true value. A field without a
//! counterpart here (replicas, scripts) shows the value that means "none".

mod clients;
mod commands;
mod keyspace;
mod ladon;
mod memory;
mod persistence;
mod replication;
mod server;
mod stats;
mod text;

use ladon_kernel::command::args::is;
use ladon_kernel::command::error::CommandResult;
use ladon_kernel::command::spec::{Code, LockNeed};
use ladon_kernel::ctx::Ctx;
use text::Text;

pub(crate) use memory::{Allocated, ratio};
pub(crate) use text::human_bytes;

pub(crate) const COMMANDS: &[Code] = &[Code::with_locks("info", LockNeed::Own, info)];

/// A section: its name, when it is shown, and the function that writes it.
struct Section {
    name: &'static str,
    when: When,
    write: fn(&mut Ctx<'_>, &mut Text),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum When {
    /// Without arguments, and by `default`.
    Default,
    /// By `all`, `everything` and its name.
    All,
    /// By its name only.
    Named,
}

/// In the order of the reply.
const SECTIONS: &[Section] = &[
    Section { name: "server", when: When::Default, write: server::write },
    Section { name: "clients", when: When::Default, write: clients::write },
    Section { name: "memory", when: When::Default, write: memory::write },
    Section { name: "persistence", when: When::Default, write: persistence::write },
    Section { name: "stats", when: When::Default, write: stats::write },
    Section { name: "replication", when: When::Default, write: replication::write },
    Section { name: "cpu", when: When::Default, write: server::write_cpu },
    Section { name: "modules", when: When::Default, write: replication::write_modules },
    Section { name: "commandstats", when: When::All, write: commands::write_commandstats },
    Section { name: "errorstats", when: When::Default, write: commands::write_errorstats },
    Section { name: "latencystats", when: When::All, write: commands::write_latencystats },
    Section { name: "cluster", when: When::Default, write: replication::write_cluster },
    Section { name: "keyspace", when: When::Default, write: keyspace::write },
    Section { name: "ladon", when: When::Default, write: ladon::write },
    Section { name: "debug", when: When::Named, write: stats::write_debug },
];

fn info(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let mut text = Text::default();
    let names = &args[1..];
    // It describes data, so it waits at the gate like a read. While the log has failed, an operator
    // who looks into that gets the other sections at once.
    let shows_keys =
        ctx.node.durability.accepts_writes() || names.iter().any(|it| is(it, "keyspace"));
    for section in SECTIONS {
        if is_wanted(section, names) && (shows_keys || section.name != "keyspace") {
            (section.write)(ctx, &mut text);
        }
    }
    ctx.reply.verbatim(*b"txt", text.finish());
    Ok(())
}

fn is_wanted(section: &Section, names: &[&[u8]]) -> bool {
    if names.is_empty() {
        return section.when == When::Default;
    }
    names.iter().any(|name| match name.to_ascii_lowercase().as_slice() {
        b"default" => section.when == When::Default,
        // Excluding what modules add: there are none, and Redis omits the heading too.
        b"all" => section.when != When::Named && section.name != "modules",
        b"everything" => section.when != When::Named,
        name => name == section.name.as_bytes(),
    })
}
