//! Hashes: fields in and out, questions about them, and fields that expire.

mod counter;
mod expire;
mod expiry_options;
mod fields;
mod get;
mod get_and_change;
mod look;
mod random;
mod scan;
mod set;
mod set_expiring;
mod ttl;

use crate::kernel::spec::{CommandSpec, Flags, KeySpec, Part};

const READ: Flags = Flags::READONLY;
const READ_FAST: Flags = READ.or(Flags::FAST);
const WRITE_FAST: Flags = Flags::WRITE.or(Flags::FAST);
const STORE_FAST: Flags = WRITE_FAST.or(Flags::DENYOOM);
const KEY: KeySpec = KeySpec::FIRST;

pub(crate) const COMMANDS: &[CommandSpec] = &[
    CommandSpec::on_keys("hset", -4, STORE_FAST, KEY, set::hset).at(Part::Element(2)),
    CommandSpec::on_keys("hmset", -4, STORE_FAST, KEY, set::hmset).at(Part::Element(2)),
    CommandSpec::on_keys("hsetnx", 4, STORE_FAST, KEY, set::hsetnx).at(Part::Element(2)),
    CommandSpec::on_keys("hget", 3, READ_FAST, KEY, get::hget).at(Part::Element(2)),
    CommandSpec::on_keys("hmget", -3, READ_FAST, KEY, get::hmget).at(Part::Element(2)),
    CommandSpec::on_keys("hgetall", 2, READ, KEY, get::hgetall).at(Part::Whole),
    CommandSpec::on_keys("hkeys", 2, READ, KEY, get::hkeys).at(Part::Whole),
    CommandSpec::on_keys("hvals", 2, READ, KEY, get::hvals).at(Part::Whole),
    CommandSpec::on_keys("hlen", 2, READ_FAST, KEY, look::hlen).at(Part::Whole),
    CommandSpec::on_keys("hexists", 3, READ_FAST, KEY, look::hexists).at(Part::Element(2)),
    CommandSpec::on_keys("hstrlen", 3, READ_FAST, KEY, look::hstrlen).at(Part::Element(2)),
    CommandSpec::on_keys("hdel", -3, WRITE_FAST, KEY, set::hdel).at(Part::Element(2)),
    CommandSpec::on_keys("hincrby", 4, STORE_FAST, KEY, counter::hincrby).at(Part::Element(2)),
    CommandSpec::on_keys("hincrbyfloat", 4, STORE_FAST, KEY, counter::hincrbyfloat)
        .at(Part::Element(2)),
    CommandSpec::on_keys("hrandfield", -2, READ, KEY, random::hrandfield),
    CommandSpec::on_keys("hscan", -3, READ, KEY, scan::hscan),
    CommandSpec::on_keys("hexpire", -6, WRITE_FAST, KEY, expire::hexpire),
    CommandSpec::on_keys("hpexpire", -6, WRITE_FAST, KEY, expire::hpexpire),
    CommandSpec::on_keys("hexpireat", -6, WRITE_FAST, KEY, expire::hexpireat),
    CommandSpec::on_keys("hpexpireat", -6, WRITE_FAST, KEY, expire::hpexpireat),
    CommandSpec::on_keys("httl", -5, READ_FAST, KEY, ttl::httl),
    CommandSpec::on_keys("hpttl", -5, READ_FAST, KEY, ttl::hpttl),
    CommandSpec::on_keys("hexpiretime", -5, READ_FAST, KEY, ttl::hexpiretime),
    CommandSpec::on_keys("hpexpiretime", -5, READ_FAST, KEY, ttl::hpexpiretime),
    CommandSpec::on_keys("hpersist", -5, WRITE_FAST, KEY, ttl::hpersist),
    CommandSpec::on_keys("hgetdel", -5, WRITE_FAST, KEY, get_and_change::hgetdel),
    CommandSpec::on_keys("hgetex", -5, WRITE_FAST, KEY, get_and_change::hgetex),
    CommandSpec::on_keys("hsetex", -6, STORE_FAST, KEY, set_expiring::hsetex),
];
