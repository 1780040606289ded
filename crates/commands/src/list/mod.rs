//! Lists.

mod blocking;
mod edit;
mod ends;
mod position;
mod read;
mod relocate;
mod relocate_many;
mod shared;

use ladon_kernel::command::spec::{Code, Part};

pub(crate) const COMMANDS: &[Code] = &[
    Code::on_keys("lpush", ends::lpush).at(Part::Whole),
    Code::on_keys("rpush", ends::rpush).at(Part::Whole),
    Code::on_keys("lpushx", ends::lpushx).at(Part::Whole),
    Code::on_keys("rpushx", ends::rpushx).at(Part::Whole),
    Code::on_keys("lpop", ends::lpop).at(Part::Whole),
    Code::on_keys("rpop", ends::rpop).at(Part::Whole),
    Code::on_keys("llen", read::llen).at(Part::Whole),
    Code::on_keys("lrange", read::lrange).at(Part::Whole),
    Code::on_keys("lindex", read::lindex).at(Part::Whole),
    Code::on_keys("lpos", position::lpos),
    Code::on_keys("lset", edit::lset),
    Code::on_keys("linsert", edit::linsert),
    Code::on_keys("lrem", edit::lrem),
    Code::on_keys("ltrim", edit::ltrim),
    Code::on_keys("lmove", relocate::lmove),
    Code::on_keys("rpoplpush", relocate::rpoplpush),
    Code::on_keys("lmovem", relocate_many::lmovem),
    Code::on_keys("blmovem", relocate_many::blmovem),
    Code::on_keys("lmpop", ends::lmpop),
    Code::on_keys("blpop", blocking::blpop),
    Code::on_keys("brpop", blocking::brpop),
    Code::on_keys("blmove", blocking::blmove),
    Code::on_keys("brpoplpush", blocking::brpoplpush),
    Code::on_keys("blmpop", blocking::blmpop),
];
