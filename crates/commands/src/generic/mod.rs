//! Commands on keys of any type, and on whole databases.

mod database;
mod existence;
mod expire;
mod object;
mod random;
mod relocate;
mod scan;
mod ttl;
pub(crate) mod wait;

use crate::kernel::spec::{Code, LockNeed};

pub(crate) const COMMANDS: &[Code] = &[
    Code::on_keys("del", existence::del),
    Code::on_keys("unlink", existence::del),
    Code::on_keys("exists", existence::exists),
    Code::on_keys("touch", existence::touch),
    Code::on_keys("type", existence::type_of),
    Code::on_keys("expire", expire::expire),
    Code::on_keys("pexpire", expire::pexpire),
    Code::on_keys("expireat", expire::expireat),
    Code::on_keys("pexpireat", expire::pexpireat),
    Code::on_keys("persist", expire::persist),
    Code::on_keys("ttl", ttl::ttl),
    Code::on_keys("pttl", ttl::pttl),
    Code::on_keys("expiretime", ttl::expiretime),
    Code::on_keys("pexpiretime", ttl::pexpiretime),
    Code::on_keys("rename", relocate::rename),
    Code::on_keys("renamenx", relocate::renamenx),
    Code::on_keys("copy", relocate::copy),
    Code::on_keys("move", relocate::move_key),
    Code::container("object", object::SUBCOMMANDS),
    Code::with_locks("keys", LockNeed::All, scan::keys),
    Code::with_locks("scan", LockNeed::Own, scan::scan),
    Code::with_locks("randomkey", LockNeed::Own, random::randomkey),
    Code::with_locks("dbsize", LockNeed::All, database::dbsize),
    Code::with_locks("flushdb", LockNeed::All, database::flushdb),
    Code::with_locks("flushall", LockNeed::All, database::flushall),
    Code::with_locks("swapdb", LockNeed::All, database::swapdb),
];
