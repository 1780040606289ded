//! `PFDEBUG`.

use crate::shared::hyperloglog::{self, Encoding, HEADER_BYTES, REGISTERS, dense, sparse};
use ladon_engine::types::string;
use ladon_kernel::command::args::is;
use ladon_kernel::command::error::{CommandError, CommandResult, shown_up_to};
use ladon_kernel::ctx::Ctx;
use std::fmt::Write;

pub(super) fn pfdebug(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (db, key) = (ctx.db(), ctx.key(args[2]));
    let (tx, reply) = ctx.tx_and_reply();
    let Some(entry) = tx.get(db, key) else {
        return Err(CommandError::text("ERR The specified key does not exist"));
    };
    let mut bytes = string::bytes(entry.value()).ok_or(CommandError::WrongType)?.into_owned();
    let encoding = hyperloglog::encoding(&bytes)?;
    let name = args[1];
    let known = ["getreg", "decode", "encoding", "todense"].into_iter().find(|word| is(name, word));
    let Some(subcommand) = known else {
        let name = shown_up_to(name, usize::MAX);
        let text = format_args!("Unknown PFDEBUG subcommand '{name}'");
        return Err(CommandError::err(text));
    };
    match (subcommand, encoding) {
        ("encoding", Encoding::Dense) => reply.simple("dense"),
        ("encoding", Encoding::Sparse) => reply.simple("sparse"),
        ("decode", Encoding::Dense) => {
            return Err(CommandError::text("ERR HLL encoding is not sparse"));
        }
        ("decode", Encoding::Sparse) => reply.bulk(decoded(&bytes[HEADER_BYTES..]).as_bytes()),
        (subcommand, encoding) => {
            // As in Redis, looking at the registers makes them dense too.
            let is_sparse = encoding == Encoding::Sparse;
            if is_sparse {
                hyperloglog::make_dense(&mut bytes)?;
                tx.replace_string(db, key, &bytes)?;
            }
            if subcommand == "todense" {
                reply.integer(i64::from(is_sparse));
                return Ok(());
            }
            reply.array(REGISTERS);
            for index in 0..REGISTERS {
                reply.integer(i64::from(dense::get(&bytes[HEADER_BYTES..], index)));
            }
        }
    }
    Ok(())
}

fn decoded(runs: &[u8]) -> String {
    let mut text = String::new();
    for run in sparse::runs(runs) {
        let space = if text.is_empty() { "" } else { " " };
        let (value, length) = (run.value, run.length);
        // A string takes whatever is written to it.
        let _ = match value {
            0 if run.is_long() => write!(text, "{space}Z:{length}"),
            0 => write!(text, "{space}z:{length}"),
            _ => write!(text, "{space}v:{value},{length}"),
        };
    }
    text
}
