//! Sorted sets.

mod add;
mod algebra;
mod blocking;
mod bounds;
mod count_score_rank;
mod pop;
mod random;
mod range;
mod remove;
mod scan;
mod show;

use ladon_engine::{EventClass, Key, Tx};
use ladon_kernel::command::spec::{Code, Part};
use ladon_record::DbId;

pub(crate) const COMMANDS: &[Code] = &[
    Code::on_keys("zadd", add::zadd).at(Part::Element(3)),
    Code::on_keys("zincrby", add::zincrby).at(Part::Element(3)),
    Code::on_keys("zrem", remove::zrem).at(Part::Element(2)),
    Code::on_keys("zremrangebyrank", remove::zremrangebyrank),
    Code::on_keys("zremrangebyscore", remove::zremrangebyscore),
    Code::on_keys("zremrangebylex", remove::zremrangebylex),
    Code::on_keys("zcard", count_score_rank::zcard).at(Part::Whole),
    Code::on_keys("zscore", count_score_rank::zscore).at(Part::Element(2)),
    Code::on_keys("zmscore", count_score_rank::zmscore).at(Part::Element(2)),
    Code::on_keys("zrank", count_score_rank::zrank).at(Part::Element(2)),
    Code::on_keys("zrevrank", count_score_rank::zrevrank).at(Part::Element(2)),
    Code::on_keys("zcount", count_score_rank::zcount),
    Code::on_keys("zlexcount", count_score_rank::zlexcount),
    Code::on_keys("zrange", range::zrange),
    Code::on_keys("zrevrange", range::zrevrange),
    Code::on_keys("zrangebyscore", range::zrangebyscore),
    Code::on_keys("zrevrangebyscore", range::zrevrangebyscore),
    Code::on_keys("zrangebylex", range::zrangebylex),
    Code::on_keys("zrevrangebylex", range::zrevrangebylex),
    Code::on_keys("zrangestore", range::zrangestore),
    Code::on_keys("zpopmin", pop::zpopmin),
    Code::on_keys("zpopmax", pop::zpopmax),
    Code::on_keys("zmpop", pop::zmpop),
    Code::on_keys("bzpopmin", blocking::bzpopmin),
    Code::on_keys("bzpopmax", blocking::bzpopmax),
    Code::on_keys("bzmpop", blocking::bzmpop),
    Code::on_keys("zrandmember", random::zrandmember),
    Code::on_keys("zscan", scan::zscan),
    Code::on_keys("zunion", algebra::zunion),
    Code::on_keys("zinter", algebra::zinter),
    Code::on_keys("zdiff", algebra::zdiff),
    Code::on_keys("zintercard", algebra::zintercard),
    Code::on_keys("zunionstore", algebra::zunionstore),
    Code::on_keys("zinterstore", algebra::zinterstore),
    Code::on_keys("zdiffstore", algebra::zdiffstore),
];

/// Notes the event of a result with `count` members that was stored.
fn notify_store(tx: &mut Tx<'_>, event: &'static str, db: DbId, key: Key<'_>, count: usize) {
    if count > 0 {
        tx.notify(EventClass::SORTED_SET, event, db, key);
    }
}
