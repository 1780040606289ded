//! Commands on keys of any type, and on whole databases.

mod database;
mod dump;
mod existence;
mod expire;
mod migrate;
mod object;
mod random;
mod read;
mod relocate;
mod restore;
mod scan;
mod ttl;
mod tuple;
mod tuple_list;
pub(crate) mod wait;

use crate::shared::databases;
use ladon_kernel::command::accessed::Databases;
use ladon_kernel::command::flags::Flags;
use ladon_kernel::command::spec::{Code, KeyPositions, LockNeed};

pub(crate) const COMMANDS: &[Code] = &[
    Code::on_keys("del", existence::del).on_tuples(tuple::del),
    Code::on_keys("unlink", existence::del).on_tuples(tuple::del),
    Code::on_keys("exists", existence::exists).on_tuples(tuple::exists),
    Code::on_keys("touch", existence::touch).on_tuples(tuple::exists),
    Code::on_keys("type", existence::type_of).on_tuples(tuple::type_of),
    Code::on_keys("ladon.read", read::read).on_tuples(read::read_tuple),
    Code::on_keys("expire", expire::expire),
    Code::on_keys("pexpire", expire::pexpire),
    Code::on_keys("expireat", expire::expireat),
    Code::on_keys("pexpireat", expire::pexpireat),
    Code::on_keys("persist", expire::persist).on_tuples(tuple::persist),
    Code::on_keys("ttl", ttl::ttl).on_tuples(tuple::ttl),
    Code::on_keys("pttl", ttl::pttl).on_tuples(tuple::ttl),
    Code::on_keys("expiretime", ttl::expiretime).on_tuples(tuple::ttl),
    Code::on_keys("pexpiretime", ttl::pexpiretime).on_tuples(tuple::ttl),
    Code::on_keys("rename", relocate::rename).on_tuples(tuple::rename),
    Code::on_keys("renamenx", relocate::renamenx).on_tuples(tuple::renamenx),
    Code::on_keys("copy", relocate::copy)
        .beside_mounts(tuple::copy)
        .on_databases(Databases::SelectedAndNamed(databases::behind_db)),
    Code::on_keys("move", relocate::move_key)
        .beside_mounts(tuple::move_key)
        .on_databases(Databases::SelectedAndNamed(|args| databases::at(args, &[2]))),
    Code::on_keys("dump", dump::dump),
    Code::on_keys("restore", restore::restore).with(Flags::TAKES_OVER),
    Code::on_keys("migrate", migrate::migrate)
        .with_keys(KeyPositions::Found(migrate::keys))
        .with_key_flags(|_| &["RW", "access", "delete"]),
    Code::container("object", object::SUBCOMMANDS),
    Code::with_locks("keys", LockNeed::All, scan::keys).beside_mounts(tuple_list::keys),
    Code::with_locks("scan", LockNeed::Own, scan::scan).beside_mounts(tuple_list::scan),
    Code::with_locks("randomkey", LockNeed::Own, random::randomkey)
        .beside_mounts(tuple_list::randomkey),
    Code::with_locks("dbsize", LockNeed::All, database::dbsize).beside_mounts(tuple_list::dbsize),
    Code::with_locks("flushdb", LockNeed::All, database::flushdb),
    Code::with_locks("flushall", LockNeed::All, database::flushall).on_databases(Databases::Each),
    Code::with_locks("swapdb", LockNeed::All, database::swapdb)
        .beside_mounts(tuple::swapdb)
        .on_databases(Databases::Named(|args| databases::at(args, &[1, 2]))),
];
