//! Streams.

mod add;
mod claim;
mod delete;
mod group;
mod id;
mod idempotence;
mod info;
mod pending;
mod range;
mod read;
mod read_group;
mod release;
mod reply;
mod shared;
mod streams_option;
mod trim;

pub use idempotence::automatic_id;

use crate::shared::help::HELP;
use ladon_kernel::command::spec::{Code, KeyPositions, Part};

pub(crate) const COMMANDS: &[Code] = &[
    Code::on_keys("xadd", add::xadd).at(Part::Whole),
    Code::on_keys("xlen", range::xlen).at(Part::Whole),
    Code::on_keys("xrange", range::xrange).at(Part::Whole),
    Code::on_keys("xrevrange", range::xrevrange).at(Part::Whole),
    Code::on_keys("xdel", delete::xdel).at(Part::Whole),
    Code::on_keys("xdelex", delete::xdelex).at(Part::Whole),
    Code::on_keys("xtrim", trim::xtrim).at(Part::Whole),
    Code::on_keys("xsetid", trim::xsetid),
    Code::on_keys("xcfgset", idempotence::configure),
    Code::on_keys("xread", read::xread)
        .with_keys(KeyPositions::Found(streams_option::keys_of_xread)),
    Code::on_keys("xreadgroup", read_group::xreadgroup)
        .with_keys(KeyPositions::Found(streams_option::keys_of_xreadgroup)),
    Code::container(
        "xgroup",
        &[
            Code::on_keys("create", group::create),
            Code::on_keys("setid", group::set_id),
            Code::on_keys("destroy", group::destroy),
            Code::on_keys("createconsumer", group::create_consumer),
            Code::on_keys("delconsumer", group::delete_consumer),
            HELP,
        ],
    ),
    Code::on_keys("xack", group::xack).at(Part::Whole),
    Code::on_keys("xackdel", delete::xackdel).at(Part::Whole),
    Code::on_keys("xnack", release::xnack).at(Part::Whole),
    Code::on_keys("xpending", pending::xpending),
    Code::on_keys("xclaim", claim::xclaim),
    Code::on_keys("xautoclaim", claim::xautoclaim),
    Code::container(
        "xinfo",
        &[
            Code::on_keys("stream", info::stream),
            Code::on_keys("groups", info::groups),
            Code::on_keys("consumers", info::consumers),
            HELP,
        ],
    ),
];
