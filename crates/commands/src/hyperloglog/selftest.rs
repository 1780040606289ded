//! `PFSELFTEST`: the registers keep what is written to them, both encodings agree, and the estimate
//! is as close as it should be.

use crate::shared::hyperloglog::sparse::Cursor;
use crate::shared::hyperloglog::{
    self, Encoding, HEADER_BYTES, Position, REGISTERS, dense, position,
};
use ladon_kernel::command::error::CommandResult;
use ladon_kernel::ctx::Ctx;
use ladon_kernel::long::large::Large;
use ladon_kernel::long::slices::Headed;
use ladon_kernel::rng::Rng;

pub(super) fn pfselftest(ctx: &mut Ctx<'_>, _: &[&[u8]]) -> CommandResult {
    let seed = ctx.local.rng.next_u64();
    let sparse_bytes_max = ctx.node.settings.hll_sparse_max_bytes();
    if ctx.large_aside() == Large::NEVER {
        // Inside a transaction, which has to go on.
        write(&mut ctx.reply, test(seed, sparse_bytes_max, 10_000));
        return Ok(());
    }
    ctx.reply_aside(move |_| {
        let result = test(seed, sparse_bytes_max, 1_000_000);
        Box::new(Headed::new(move |reply| write(reply, result), ()))
    });
    Ok(())
}

fn write(reply: &mut ladon_resp::Reply<'_>, result: Result<(), String>) {
    match result {
        Ok(()) => reply.ok(),
        Err(text) => reply.error(format!("TESTFAILED {text}")),
    }
}

fn test(seed: u64, sparse_bytes_max: usize, elements: u64) -> Result<(), String> {
    test_registers(seed)?;
    test_estimate(seed, sparse_bytes_max, elements)
}

/// Rounds of random registers.
const REGISTER_ROUNDS: usize = 100;

fn test_registers(seed: u64) -> Result<(), String> {
    let mut random = Rng::new(seed);
    for _ in 0..REGISTER_ROUNDS {
        let mut packed = vec![0; dense::BYTES - HEADER_BYTES];
        let counts: Vec<u8> = (0..REGISTERS).map(|_| random.next_u64() as u8 & 63).collect();
        for (index, &count) in counts.iter().enumerate() {
            dense::raise(&mut packed, Position { index, count });
        }
        for (index, &count) in counts.iter().enumerate() {
            let found = dense::get(&packed, index);
            if found != count {
                return Err(format!("Register {index} should be {count} but is {found}"));
            }
        }
    }
    Ok(())
}

fn test_estimate(seed: u64, sparse_bytes_max: usize, elements: u64) -> Result<(), String> {
    let mut packed = hyperloglog::empty();
    let mut sparse = packed.clone();
    let broken = |_| "an empty one is damaged".to_owned();
    hyperloglog::make_dense(&mut packed).map_err(broken)?;
    let error = 1.04 / (REGISTERS as f64).sqrt();
    let mut checkpoint = 1;
    for number in 1..=elements {
        let position = position(&(number ^ seed).to_le_bytes());
        dense::raise(&mut packed[HEADER_BYTES..], position);
        hyperloglog::raise(&mut sparse, position, sparse_bytes_max, &mut Cursor::start())
            .map_err(broken)?;
        if number != checkpoint {
            continue;
        }
        let is_small = checkpoint < sparse_bytes_max as u64 / 2;
        if is_small && hyperloglog::encoding(&sparse) != Ok(Encoding::Sparse) {
            return Err("sparse encoding not used".to_owned());
        }
        let estimate = hyperloglog::count(&packed).map_err(broken)?;
        if hyperloglog::count(&sparse) != Ok(estimate) {
            return Err("dense/sparse disagree".to_owned());
        }
        // Two of ten elements may fall on the same register, and the error is a whole one then.
        let allowed = match checkpoint {
            10 => 1,
            _ => (error * 6.0 * checkpoint as f64).ceil() as u64,
        };
        let difference = checkpoint.abs_diff(estimate);
        if difference > allowed {
            return Err(format!("Too big error. card:{checkpoint} abserr:{difference}"));
        }
        checkpoint *= 10;
    }
    Ok(())
}
