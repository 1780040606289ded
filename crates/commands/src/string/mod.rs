//! Strings and counters.

mod bounded_counter;
mod compare;
mod counter;
mod edit;
mod expiry;
mod get;
mod lcs;
mod set;
mod several_keys;

use ladon_engine::ValueRef;
use ladon_kernel::command::error::CommandError;
use ladon_kernel::command::flags::Flags;
use ladon_kernel::command::spec::Code;

pub(crate) const COMMANDS: &[Code] = &[
    Code::on_keys("get", get::get),
    Code::on_keys("set", set::set)
        .with(Flags::QUICK.or(Flags::TAKES_OVER))
        .with_key_flags(set::key_flags),
    Code::on_keys("incr", counter::incr),
    Code::on_keys("decr", counter::decr),
    Code::on_keys("incrby", counter::incrby),
    Code::on_keys("decrby", counter::decrby),
    Code::on_keys("incrbyfloat", counter::incrbyfloat),
    Code::on_keys("increx", bounded_counter::increx),
    Code::on_keys("mget", several_keys::mget),
    Code::on_keys("mset", several_keys::mset).with(Flags::TAKES_OVER),
    Code::on_keys("msetnx", several_keys::msetnx).with(Flags::TAKES_OVER),
    Code::on_keys("setex", set::setex).with(Flags::QUICK.or(Flags::TAKES_OVER)),
    Code::on_keys("psetex", set::psetex).with(Flags::QUICK.or(Flags::TAKES_OVER)),
    Code::on_keys("setnx", set::setnx).with(Flags::TAKES_OVER),
    Code::on_keys("msetex", several_keys::msetex),
    Code::on_keys("delex", compare::delex),
    Code::on_keys("delifeq", compare::delifeq),
    Code::on_keys("digest", compare::digest),
    Code::on_keys("getset", set::getset).with(Flags::TAKES_OVER),
    Code::on_keys("getdel", get::getdel),
    Code::on_keys("getex", get::getex),
    Code::on_keys("strlen", get::strlen),
    Code::on_keys("getrange", get::getrange),
    Code::on_keys("substr", get::getrange),
    Code::on_keys("append", edit::append),
    Code::on_keys("setrange", edit::setrange),
    Code::on_keys("lcs", lcs::lcs),
];

/// A string's length, bytes.
fn length(value: ValueRef<'_>) -> Result<usize, CommandError> {
    ladon_engine::types::string::bytes(value).map(|b| b.len()).ok_or(CommandError::WrongType)
}
