//! Commands on keys of any type, and on whole databases.

mod database;
mod expire;
mod look;
mod object;
mod random;
mod relocate;
mod scan;
mod ttl;
pub(crate) mod wait;

use crate::kernel::spec::{CommandSpec, Flags, KeySpec, LockNeed};

const READ: Flags = Flags::READONLY;
const READ_FAST: Flags = READ.or(Flags::FAST);
const WRITE: Flags = Flags::WRITE;
const WRITE_FAST: Flags = WRITE.or(Flags::FAST);
const TWO: KeySpec = KeySpec::Range { first: 1, last: 2, step: 1 };

pub(crate) const COMMANDS: &[CommandSpec] = &[
    CommandSpec::on_keys("del", -2, WRITE, KeySpec::ALL, look::del),
    CommandSpec::on_keys("unlink", -2, WRITE_FAST, KeySpec::ALL, look::del),
    CommandSpec::on_keys("exists", -2, READ_FAST, KeySpec::ALL, look::exists),
    CommandSpec::on_keys("touch", -2, READ_FAST, KeySpec::ALL, look::touch),
    CommandSpec::on_keys("type", 2, READ_FAST, KeySpec::FIRST, look::type_of),
    CommandSpec::on_keys("expire", -3, WRITE_FAST, KeySpec::FIRST, expire::expire),
    CommandSpec::on_keys("pexpire", -3, WRITE_FAST, KeySpec::FIRST, expire::pexpire),
    CommandSpec::on_keys("expireat", -3, WRITE_FAST, KeySpec::FIRST, expire::expireat),
    CommandSpec::on_keys("pexpireat", -3, WRITE_FAST, KeySpec::FIRST, expire::pexpireat),
    CommandSpec::on_keys("persist", 2, WRITE_FAST, KeySpec::FIRST, expire::persist),
    CommandSpec::on_keys("ttl", 2, READ_FAST, KeySpec::FIRST, ttl::ttl),
    CommandSpec::on_keys("pttl", 2, READ_FAST, KeySpec::FIRST, ttl::pttl),
    CommandSpec::on_keys("expiretime", 2, READ_FAST, KeySpec::FIRST, ttl::expiretime),
    CommandSpec::on_keys("pexpiretime", 2, READ_FAST, KeySpec::FIRST, ttl::pexpiretime),
    CommandSpec::on_keys("rename", 3, WRITE, TWO, relocate::rename),
    CommandSpec::on_keys("renamenx", 3, WRITE_FAST, TWO, relocate::renamenx),
    CommandSpec::on_keys("copy", -3, WRITE.or(Flags::DENYOOM), TWO, relocate::copy),
    CommandSpec::on_keys("move", 3, WRITE_FAST, KeySpec::FIRST, relocate::move_key),
    CommandSpec::container("object", object::SUBCOMMANDS),
    CommandSpec::without_keys("keys", 2, READ, LockNeed::All, scan::keys),
    CommandSpec::without_keys("scan", -2, READ, LockNeed::Own, scan::scan),
    CommandSpec::without_keys("randomkey", 1, READ, LockNeed::Own, random::randomkey),
    CommandSpec::without_keys("dbsize", 1, READ_FAST, LockNeed::All, database::dbsize),
    CommandSpec::without_keys("flushdb", -1, WRITE, LockNeed::All, database::flushdb),
    CommandSpec::without_keys("flushall", -1, WRITE, LockNeed::All, database::flushall),
    CommandSpec::without_keys("swapdb", 3, WRITE_FAST, LockNeed::All, database::swapdb),
];
