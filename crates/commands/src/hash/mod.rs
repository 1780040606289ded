//! Hashes: fields in and out, questions about them, and fields that expire.

mod counter;
mod expire;
mod fields;
mod get;
mod get_and_change;
mod lengths;
mod random;
mod scan;
mod set;
mod set_expiring;
mod ttl;
mod tuple;

use ladon_kernel::command::spec::{Code, Part};

pub(crate) const COMMANDS: &[Code] = &[
    Code::on_keys("hset", set::hset).at(Part::Element(2)).on_tuples(tuple::hset),
    Code::on_keys("hmset", set::hmset).at(Part::Element(2)).on_tuples(tuple::hmset),
    Code::on_keys("hsetnx", set::hsetnx).at(Part::Element(2)).on_tuples(tuple::hsetnx),
    Code::on_keys("hget", get::hget).at(Part::Element(2)).on_tuples(tuple::hget),
    Code::on_keys("hmget", get::hmget).at(Part::Element(2)).on_tuples(tuple::hmget),
    Code::on_keys("hgetall", get::hgetall).at(Part::Whole).on_tuples(tuple::hgetall),
    Code::on_keys("hkeys", get::hkeys).at(Part::Whole).on_tuples(tuple::hkeys),
    Code::on_keys("hvals", get::hvals).at(Part::Whole).on_tuples(tuple::hvals),
    Code::on_keys("hlen", lengths::hlen).at(Part::Whole).on_tuples(tuple::hlen),
    Code::on_keys("hexists", lengths::hexists).at(Part::Element(2)).on_tuples(tuple::hexists),
    Code::on_keys("hstrlen", lengths::hstrlen).at(Part::Element(2)).on_tuples(tuple::hstrlen),
    Code::on_keys("hdel", set::hdel).at(Part::Element(2)).on_tuples(tuple::hdel),
    Code::on_keys("hincrby", counter::hincrby).at(Part::Element(2)).on_tuples(tuple::hincrby),
    Code::on_keys("hincrbyfloat", counter::hincrbyfloat)
        .at(Part::Element(2))
        .on_tuples(tuple::hincrbyfloat),
    Code::on_keys("hrandfield", random::hrandfield),
    Code::on_keys("hscan", scan::hscan).on_tuples(tuple::hscan),
    Code::on_keys("hexpire", expire::hexpire),
    Code::on_keys("hpexpire", expire::hpexpire),
    Code::on_keys("hexpireat", expire::hexpireat),
    Code::on_keys("hpexpireat", expire::hpexpireat),
    Code::on_keys("httl", ttl::httl),
    Code::on_keys("hpttl", ttl::hpttl),
    Code::on_keys("hexpiretime", ttl::hexpiretime),
    Code::on_keys("hpexpiretime", ttl::hpexpiretime),
    Code::on_keys("hpersist", ttl::hpersist),
    Code::on_keys("hgetdel", get_and_change::hgetdel),
    Code::on_keys("hgetex", get_and_change::hgetex),
    Code::on_keys("hsetex", set_expiring::hsetex),
];
