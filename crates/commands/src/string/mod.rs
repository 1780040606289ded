//! Strings and counters.

mod counter;
mod edit;
mod expiry;
mod get;
mod lcs;
mod many;
mod set;

use crate::kernel::error::CommandError;
use crate::kernel::spec::{CommandSpec, Flags, KeySpec};
use ladon_engine::ValueRef;

const READ: Flags = Flags::READONLY;
const READ_FAST: Flags = READ.or(Flags::FAST);
const WRITE: Flags = Flags::WRITE.or(Flags::DENYOOM);
/// Not fast in Redis' sense, but quick enough to be timed with its batch.
const WRITE_QUICK: Flags = WRITE.or(Flags::QUICK);
const WRITE_FAST: Flags = WRITE.or(Flags::FAST);
/// For what can only make the data smaller.
const SHRINK_FAST: Flags = Flags::WRITE.or(Flags::FAST);
/// Keys and values in turn.
const PAIRS: KeySpec = KeySpec::Range { first: 1, last: -1, step: 2 };
const TWO: KeySpec = KeySpec::Range { first: 1, last: 2, step: 1 };

pub(crate) const COMMANDS: &[CommandSpec] = &[
    CommandSpec::on_keys("get", 2, READ_FAST, KeySpec::FIRST, get::get),
    CommandSpec::on_keys("set", -3, WRITE_QUICK, KeySpec::FIRST, set::set),
    CommandSpec::on_keys("incr", 2, WRITE_FAST, KeySpec::FIRST, counter::incr),
    CommandSpec::on_keys("decr", 2, WRITE_FAST, KeySpec::FIRST, counter::decr),
    CommandSpec::on_keys("incrby", 3, WRITE_FAST, KeySpec::FIRST, counter::incrby),
    CommandSpec::on_keys("decrby", 3, WRITE_FAST, KeySpec::FIRST, counter::decrby),
    CommandSpec::on_keys("incrbyfloat", 3, WRITE_FAST, KeySpec::FIRST, counter::incrbyfloat),
    CommandSpec::on_keys("mget", -2, READ_FAST, KeySpec::ALL, many::mget),
    CommandSpec::on_keys("mset", -3, WRITE, PAIRS, many::mset),
    CommandSpec::on_keys("msetnx", -3, WRITE, PAIRS, many::msetnx),
    CommandSpec::on_keys("setex", 4, WRITE_QUICK, KeySpec::FIRST, set::setex),
    CommandSpec::on_keys("psetex", 4, WRITE_QUICK, KeySpec::FIRST, set::psetex),
    CommandSpec::on_keys("setnx", 3, WRITE_FAST, KeySpec::FIRST, set::setnx),
    CommandSpec::on_keys("getset", 3, WRITE_FAST, KeySpec::FIRST, set::getset),
    CommandSpec::on_keys("getdel", 2, SHRINK_FAST, KeySpec::FIRST, get::getdel),
    CommandSpec::on_keys("getex", -2, SHRINK_FAST, KeySpec::FIRST, get::getex),
    CommandSpec::on_keys("strlen", 2, READ_FAST, KeySpec::FIRST, get::strlen),
    CommandSpec::on_keys("getrange", 4, READ, KeySpec::FIRST, get::getrange),
    CommandSpec::on_keys("substr", 4, READ, KeySpec::FIRST, get::getrange),
    CommandSpec::on_keys("append", 3, WRITE_FAST, KeySpec::FIRST, edit::append),
    CommandSpec::on_keys("setrange", 4, WRITE, KeySpec::FIRST, edit::setrange),
    CommandSpec::on_keys("lcs", -3, READ, TWO, lcs::lcs),
];

/// A string's length, bytes.
fn length(value: ValueRef<'_>) -> Result<usize, CommandError> {
    ladon_engine::types::string::bytes(value).map(|b| b.len()).ok_or(CommandError::WrongType)
}
