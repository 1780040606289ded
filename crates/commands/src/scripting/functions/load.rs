//! `FUNCTION LOAD`.
//!
//! Compiling and running a library may take long, so that it is done aside (`ladon_kernel::long::aside`), on
//! a virtual machine of its own. The request's second run then adds the library under all locks.
//! Inside `EXEC`, both happen at once.

use super::header::{self, Source};
use super::{exists, function_exists};
use ladon_engine::{Library, Locks, Tx};
use ladon_kernel::command::args::is;
use ladon_kernel::command::error::{CommandError, CommandResult, shown_whole};
use ladon_kernel::ctx::Ctx;
use ladon_kernel::scripts::loading::{self, Registered};
use ladon_kernel::scripts::shebang::ScriptFlags;
use ladon_platform::Clock;
use ladon_record::{FunctionFacts, LibraryBody, Lsn};
use std::sync::Arc;

pub(super) fn load(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (code, options) = args[2..].split_last().expect("its arity is checked");
    if let Some(unknown) = options.iter().find(|option| !is(option, "replace")) {
        let unknown = shown_whole(unknown);
        return Err(CommandError::err(format_args!("Unknown option given: {unknown}")));
    }
    let replace = !options.is_empty();
    let Some(computed) = ctx.take_libraries() else {
        let source = header::parse(code)?;
        ctx.on(Locks::Partition(0), |tx| may_load(tx, &source.name, replace))??;
        return match ctx.libraries_aside(one_job(code)) {
            Some(library) => add(ctx, library?, replace),
            None => Ok(()),
        };
    };
    add(ctx, computed?, replace)
}

/// The work that takes long, on a copy of the code.
fn one_job(
    code: &[u8],
) -> impl FnOnce(&dyn Clock) -> Result<Vec<Arc<Library>>, CommandError> + Send + 'static {
    let code = code.to_vec();
    move |clock| Ok(vec![make(code, clock)?])
}

fn may_load(tx: &mut Tx<'_>, name: &[u8], replace: bool) -> CommandResult {
    if !replace && tx.library(name).is_some() { Err(exists(name)) } else { Ok(()) }
}

fn add(ctx: &mut Ctx<'_>, libraries: Vec<Arc<Library>>, replace: bool) -> CommandResult {
    let Some(library) = libraries.into_iter().next() else { return Ok(()) };
    let name = library.name.clone();
    ctx.on(Locks::All, |tx| {
        // Another client may have been faster.
        may_load(tx, &library.name, replace)?;
        for function in &library.body.functions {
            if let Some((owner, _)) = tx.library_with_function(&function.name)
                && owner.name != library.name
            {
                return Err(function_exists(&function.name));
            }
        }
        tx.put_library(library);
        Ok(())
    })??;
    if ctx.local.early_load_canary {
        ctx.depends = Lsn::ZERO;
    }
    ctx.reply.bulk(&name);
    Ok(())
}

/// Runs a library's code.
pub(super) fn make(code: Vec<u8>, clock: &dyn Clock) -> Result<Arc<Library>, CommandError> {
    let Source { name, body } = header::parse(&code)?;
    let registered = loading::run(body, clock)?;
    if registered.is_empty() {
        return Err(CommandError::text("ERR No functions registered"));
    }
    let functions = registered.into_iter().map(facts).collect();
    Ok(Arc::new(Library::new(&name, LibraryBody { code, functions })))
}

fn facts(registered: Registered) -> FunctionFacts {
    let flags = registered.flags.iter().filter_map(|name| ScriptFlags::named(name));
    let flags = flags.fold(ScriptFlags::default(), ScriptFlags::or).bits();
    FunctionFacts { name: registered.name, description: registered.description, flags }
}
