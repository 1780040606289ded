//! `FUNCTION RESTORE`: the libraries of a payload, all or none of them.

use super::{exists, function_exists, load, payload};
use ladon_engine::{Library, Locks, Tx};
use ladon_kernel::command::args::is;
use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_kernel::ctx::Ctx;
use ladon_platform::Clock;
use std::collections::HashSet;
use std::sync::Arc;

/// What to do with the libraries that are there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Policy {
    Append,
    Replace,
    Flush,
}

pub(super) fn restore(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let policy = match args[3..] {
        [] => Policy::Append,
        [how] if is(how, "append") => Policy::Append,
        [how] if is(how, "replace") => Policy::Replace,
        [how] if is(how, "flush") => Policy::Flush,
        [_] => {
            return Err(CommandError::text(
                "ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE.",
            ));
        }
        _ => return Err(CommandError::subcommand(args)),
    };
    let Some(computed) = ctx.take_libraries() else {
        let bytes_max = usize::try_from(ctx.node.settings.proto_max_bulk_len());
        let codes = payload::read(args[2], bytes_max.unwrap_or(usize::MAX))?;
        return match ctx.libraries_aside(move |clock| make_all(codes, clock)) {
            Some(libraries) => join(ctx, libraries?, policy),
            None => Ok(()),
        };
    };
    join(ctx, computed?, policy)
}

/// Runs the code of all libraries of a payload.
fn make_all(codes: Vec<Vec<u8>>, clock: &dyn Clock) -> Result<Vec<Arc<Library>>, CommandError> {
    let (mut names, mut functions) = (HashSet::new(), HashSet::new());
    let mut libraries = Vec::with_capacity(codes.len());
    for code in codes {
        let name = super::header::parse(&code)?.name;
        if !names.insert(name.clone()) {
            return Err(exists(&name));
        }
        let library = load::make(code, clock)?;
        for function in &library.body.functions {
            if functions.contains(&function.name.to_ascii_lowercase()) {
                return Err(function_exists(&function.name));
            }
        }
        let new = library.body.functions.iter();
        functions.extend(new.map(|function| function.name.to_ascii_lowercase()));
        libraries.push(library);
    }
    Ok(libraries)
}

fn join(ctx: &mut Ctx<'_>, libraries: Vec<Arc<Library>>, policy: Policy) -> CommandResult {
    ctx.on(Locks::All, |tx| {
        match policy {
            Policy::Flush => tx.flush_libraries(),
            Policy::Append | Policy::Replace => check(tx, &libraries, policy)?,
        }
        libraries.into_iter().for_each(|library| tx.put_library(library));
        Ok::<(), CommandError>(())
    })??;
    ctx.reply.ok();
    Ok(())
}

/// Whether they fit to the libraries that will stay.
fn check(tx: &mut Tx<'_>, libraries: &[Arc<Library>], policy: Policy) -> CommandResult {
    for library in libraries {
        if policy == Policy::Append && tx.library(&library.name).is_some() {
            let name = String::from_utf8_lossy(&library.name);
            return Err(CommandError::err(format_args!("Library {name} already exists")));
        }
    }
    let replaced: HashSet<&[u8]> = libraries.iter().map(|library| &*library.name).collect();
    for library in libraries {
        for function in &library.body.functions {
            let owner = tx.library_with_function(&function.name);
            if owner.is_some_and(|(owner, _)| !replaced.contains(&*owner.name)) {
                return Err(function_exists(&function.name));
            }
        }
    }
    Ok(())
}
