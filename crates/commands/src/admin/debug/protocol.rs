//! `DEBUG PROTOCOL`: a reply of each type, for the tests of clients.

use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_kernel::ctx::Ctx;
use ladon_resp::Proto;

#[allow(clippy::approx_constant, reason = "the number that Redis answers")]
pub(super) fn protocol(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let reply = &mut ctx.reply;
    match args[2].to_ascii_lowercase().as_slice() {
        b"string" => reply.bulk("Hello World"),
        b"integer" => reply.integer(12345),
        b"double" => reply.double(3.141),
        b"null" => reply.null(),
        b"bignum" => reply.big_number("1234567999999999999999999999999999999"),
        b"verbatim" => reply.verbatim(*b"txt", "This is a verbatim\nstring"),
        b"true" => reply.bool(true),
        b"false" => reply.bool(false),
        b"array" => {
            reply.array(3);
            (0..3).for_each(|number| reply.integer(number));
        }
        b"set" => {
            reply.set(3);
            (0..3).for_each(|number| reply.integer(number));
        }
        b"map" => {
            reply.map(3);
            for number in 0..3 {
                reply.integer(number);
                reply.bool(number == 1);
            }
        }
        b"attrib" => {
            if reply.attribute(1) {
                reply.bulk("key-popularity");
                reply.array(2);
                reply.bulk("key:123");
                reply.integer(90);
            }
            // An attribute is not a reply of its own.
            reply.bulk("Some real reply following the attribute");
        }
        b"push" => {
            if reply.proto() == Proto::Resp2 {
                return Err(CommandError::err("RESP2 is not supported by this command"));
            }
            reply.push(2);
            reply.bulk("server-cpu-usage");
            reply.integer(42);
            // Nor is a push.
            reply.bulk("Some real reply following the push reply");
        }
        _ => {
            return Err(CommandError::err(
                "Wrong protocol type name. Please use one of the following: \
                 string|integer|double|bignum|null|array|set|map|attrib|push|verbatim|true|false",
            ));
        }
    }
    Ok(())
}
