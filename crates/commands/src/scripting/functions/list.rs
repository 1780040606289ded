//! `FUNCTION LIST` and `FUNCTION DUMP`: replies about all libraries, made in slices.

use super::payload::Dump;
use ladon_engine::Library;
use ladon_kernel::command::args::is;
use ladon_kernel::command::error::{CommandError, CommandResult, shown_whole};
use ladon_kernel::ctx::Ctx;
use ladon_kernel::long::slices::{Keeping, Room, Slices};
use ladon_kernel::scripts::shebang::ScriptFlags;
use ladon_resp::{Proto, Reply};
use ladon_settings::Glob;
use std::sync::Arc;

pub(super) fn list(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (mut with_code, mut pattern) = (false, None);
    let mut rest = &args[2..];
    while let [option, after @ ..] = rest {
        rest = after;
        if !with_code && is(option, "withcode") {
            with_code = true;
        } else if pattern.is_none() && is(option, "libraryname") {
            let [given, after @ ..] = rest else {
                return Err(CommandError::text("ERR library name argument was not given"));
            };
            (pattern, rest) = (Some(*given), after);
        } else {
            return Err(CommandError::err(format_args!(
                "Unknown argument {}",
                shown_whole(option)
            )));
        }
    }
    let mut libraries = super::all(ctx)?;
    if let Some(pattern) = pattern {
        let glob = Glob::new(pattern, true);
        libraries.retain(|library| glob.matches(&library.name));
    }
    ctx.reply.array(libraries.len());
    let elements = libraries.iter().map(|library| 1 + library.body.functions.len()).sum();
    let bytes = libraries.iter().map(|library| library.bytes()).sum();
    let list = List { libraries, at: 0, next: Next::Library, with_code };
    reply(ctx, list, elements, bytes);
    Ok(())
}

pub(super) fn dump(ctx: &mut Ctx<'_>, _args: &[&[u8]]) -> CommandResult {
    let libraries = super::all(ctx)?;
    let elements = libraries.len();
    let dump = Dump::new(libraries);
    let bytes = dump.bytes();
    ctx.reply.bulk_header(bytes);
    reply(ctx, dump, elements, bytes);
    Ok(())
}

/// Writes the rest of a reply, in slices if it is long.
fn reply(ctx: &mut Ctx<'_>, mut rest: impl Slices + 'static, elements: usize, bytes: usize) {
    if ctx.large().is_total(elements, bytes) {
        ctx.reply_in_slices(rest);
        return;
    }
    while {
        let mut room = Room::new(usize::MAX, ctx.reply.position());
        rest.write(&mut ctx.reply, &mut room)
    } {}
}

/// Libraries that are being listed.
struct List {
    libraries: Vec<Arc<Library>>,
    /// The present one.
    at: usize,
    next: Next,
    with_code: bool,
}

/// What comes next of a library.
#[derive(Clone, Copy)]
enum Next {
    Library,
    Function(usize),
    /// A function's description, from this byte on.
    Description(usize, usize),
    Flags(usize),
    /// The code, from this byte on.
    Code(usize),
}

impl Slices for List {
    fn write(&mut self, reply: &mut Reply<'_>, room: &mut Room) -> bool {
        while let Some(library) = self.libraries.get(self.at) {
            if !room.take(reply) {
                return true;
            }
            let next = write_next(self.next, library, self.with_code, reply, room);
            if matches!(next, Some(Next::Library)) {
                self.at += 1;
            }
            self.next = next.unwrap_or_else(|| {
                if self.with_code {
                    reply.bulk("library_code");
                    reply.bulk_header(library.body.code.len());
                    return Next::Code(0);
                }
                self.at += 1;
                Next::Library
            });
        }
        false
    }

    /// The libraries are shared, so that they can wait here.
    fn keep(&mut self, _: Proto, _: usize) -> Keeping {
        Keeping::Own(None)
    }

    fn memory(&self) -> usize {
        self.libraries.capacity() * size_of::<Arc<Library>>()
    }
}

/// Writes what comes next of a library; returns what comes then, `None` at the end of its
/// functions.
fn write_next(
    next: Next,
    library: &Library,
    with_code: bool,
    reply: &mut Reply<'_>,
    room: &mut Room,
) -> Option<Next> {
    let functions = &library.body.functions;
    let function_at = |index: usize| (index < functions.len()).then_some(Next::Function(index));
    match next {
        Next::Library => {
            reply.map(if with_code { 4 } else { 3 });
            reply.bulk("library_name");
            reply.bulk(&library.name);
            reply.bulk("engine");
            reply.bulk("LUA");
            reply.bulk("functions");
            reply.array(functions.len());
            function_at(0)
        }
        Next::Function(index) => {
            reply.map(3);
            reply.bulk("name");
            reply.bulk(&functions[index].name);
            reply.bulk("description");
            Some(match &functions[index].description {
                Some(text) => {
                    reply.bulk_header(text.len());
                    Next::Description(index, 0)
                }
                None => {
                    reply.null();
                    Next::Flags(index)
                }
            })
        }
        Next::Description(index, from) => {
            let text = functions[index].description.as_deref().unwrap_or_default();
            let end = copy(reply, room, text, from);
            Some(end.map_or(Next::Flags(index), |from| Next::Description(index, from)))
        }
        Next::Flags(index) => {
            reply.bulk("flags");
            let flags = ScriptFlags::of_bits(functions[index].flags);
            reply.set(flags.names().count());
            flags.names().for_each(|name| reply.simple(name));
            function_at(index + 1)
        }
        Next::Code(from) => {
            let end = copy(reply, room, &library.body.code, from);
            Some(end.map_or(Next::Library, Next::Code))
        }
    }
}

/// Writes as much of a text as there is room for; returns where to continue, `None` at its end.
fn copy(reply: &mut Reply<'_>, room: &mut Room, text: &[u8], from: usize) -> Option<usize> {
    let from = from + room.copy(reply, &text[from..]);
    if from < text.len() {
        return Some(from);
    }
    reply.raw(b"\r\n");
    None
}
