//! Sorted sets.

mod add;
mod algebra;
mod blocking;
mod bounds;
mod look;
mod pop;
mod random;
mod range;
mod remove;
mod scan;
mod show;

use crate::kernel::spec::{CommandSpec, Flags, KeySpec, Part};

const READ: Flags = Flags::READONLY;
const READ_FAST: Flags = READ.or(Flags::FAST);
const WRITE: Flags = Flags::WRITE;
const WRITE_FAST: Flags = WRITE.or(Flags::FAST);
const ADD: Flags = WRITE_FAST.or(Flags::DENYOOM);
const BLOCKING_FAST: Flags = WRITE_FAST.or(Flags::BLOCKING);
const BLOCKING_COUNTED: Flags = WRITE_COUNTED.or(Flags::BLOCKING);
const STORE: Flags = WRITE.or(Flags::DENYOOM);
const READ_COUNTED: Flags = READ.or(Flags::MOVABLEKEYS);
const WRITE_COUNTED: Flags = WRITE.or(Flags::MOVABLEKEYS);
const STORE_COUNTED: Flags = STORE.or(Flags::MOVABLEKEYS);

const ONE: KeySpec = KeySpec::FIRST;
const TWO: KeySpec = KeySpec::Range { first: 1, last: 2, step: 1 };
/// All but the timeout.
const ALL_BUT_LAST: KeySpec = KeySpec::Range { first: 1, last: -2, step: 1 };
const COUNTED: KeySpec = KeySpec::Counted { count_at: 1 };
const TIMEOUT_AND_COUNTED: KeySpec = KeySpec::Counted { count_at: 2 };
const TO_AND_COUNTED: KeySpec = KeySpec::FirstAndCounted { count_at: 2 };

pub(crate) const COMMANDS: &[CommandSpec] = &[
    CommandSpec::on_keys("zadd", -4, ADD, ONE, add::zadd).at(Part::Element(3)),
    CommandSpec::on_keys("zincrby", 4, ADD, ONE, add::zincrby).at(Part::Element(3)),
    CommandSpec::on_keys("zrem", -3, WRITE_FAST, ONE, remove::zrem).at(Part::Element(2)),
    CommandSpec::on_keys("zremrangebyrank", 4, WRITE, ONE, remove::zremrangebyrank),
    CommandSpec::on_keys("zremrangebyscore", 4, WRITE, ONE, remove::zremrangebyscore),
    CommandSpec::on_keys("zremrangebylex", 4, WRITE, ONE, remove::zremrangebylex),
    CommandSpec::on_keys("zcard", 2, READ_FAST, ONE, look::zcard).at(Part::Whole),
    CommandSpec::on_keys("zscore", 3, READ_FAST, ONE, look::zscore).at(Part::Element(2)),
    CommandSpec::on_keys("zmscore", -3, READ_FAST, ONE, look::zmscore).at(Part::Element(2)),
    CommandSpec::on_keys("zrank", -3, READ_FAST, ONE, look::zrank).at(Part::Element(2)),
    CommandSpec::on_keys("zrevrank", -3, READ_FAST, ONE, look::zrevrank).at(Part::Element(2)),
    CommandSpec::on_keys("zcount", 4, READ_FAST, ONE, look::zcount),
    CommandSpec::on_keys("zlexcount", 4, READ_FAST, ONE, look::zlexcount),
    CommandSpec::on_keys("zrange", -4, READ, ONE, range::zrange),
    CommandSpec::on_keys("zrevrange", -4, READ, ONE, range::zrevrange),
    CommandSpec::on_keys("zrangebyscore", -4, READ, ONE, range::zrangebyscore),
    CommandSpec::on_keys("zrevrangebyscore", -4, READ, ONE, range::zrevrangebyscore),
    CommandSpec::on_keys("zrangebylex", -4, READ, ONE, range::zrangebylex),
    CommandSpec::on_keys("zrevrangebylex", -4, READ, ONE, range::zrevrangebylex),
    CommandSpec::on_keys("zrangestore", -5, STORE, TWO, range::zrangestore),
    CommandSpec::on_keys("zpopmin", -2, WRITE_FAST, ONE, pop::zpopmin),
    CommandSpec::on_keys("zpopmax", -2, WRITE_FAST, ONE, pop::zpopmax),
    CommandSpec::on_keys("zmpop", -4, WRITE_COUNTED, COUNTED, pop::zmpop),
    CommandSpec::on_keys("bzpopmin", -3, BLOCKING_FAST, ALL_BUT_LAST, blocking::bzpopmin),
    CommandSpec::on_keys("bzpopmax", -3, BLOCKING_FAST, ALL_BUT_LAST, blocking::bzpopmax),
    CommandSpec::on_keys("bzmpop", -5, BLOCKING_COUNTED, TIMEOUT_AND_COUNTED, blocking::bzmpop),
    CommandSpec::on_keys("zrandmember", -2, READ, ONE, random::zrandmember),
    CommandSpec::on_keys("zscan", -3, READ, ONE, scan::zscan),
    CommandSpec::on_keys("zunion", -3, READ_COUNTED, COUNTED, algebra::zunion),
    CommandSpec::on_keys("zinter", -3, READ_COUNTED, COUNTED, algebra::zinter),
    CommandSpec::on_keys("zdiff", -3, READ_COUNTED, COUNTED, algebra::zdiff),
    CommandSpec::on_keys("zintercard", -3, READ_COUNTED, COUNTED, algebra::zintercard),
    CommandSpec::on_keys("zunionstore", -4, STORE_COUNTED, TO_AND_COUNTED, algebra::zunionstore),
    CommandSpec::on_keys("zinterstore", -4, STORE_COUNTED, TO_AND_COUNTED, algebra::zinterstore),
    CommandSpec::on_keys("zdiffstore", -4, STORE_COUNTED, TO_AND_COUNTED, algebra::zdiffstore),
];
