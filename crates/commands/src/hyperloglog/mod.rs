//! HyperLogLogs: counts of distinct elements, in strings that have Redis' own format.

mod add;
mod count;
mod debug;
mod merge;
mod selftest;

use crate::shared::hyperloglog::Invalid;
use ladon_kernel::command::error::CommandError;
use ladon_kernel::command::flags::Flags;
use ladon_kernel::command::spec::{Code, LockNeed};

pub(crate) const COMMANDS: &[Code] = &[
    Code::on_keys("pfadd", add::pfadd),
    Code::on_keys("pfcount", count::pfcount).with(Flags::MAY_REPLICATE),
    Code::on_keys("pfmerge", merge::pfmerge),
    Code::on_keys("pfdebug", debug::pfdebug),
    Code::with_locks("pfselftest", LockNeed::None, selftest::pfselftest),
];

impl From<Invalid> for CommandError {
    fn from(invalid: Invalid) -> CommandError {
        CommandError::text(match invalid {
            Invalid::Form => "WRONGTYPE Key is not a valid HyperLogLog string value.",
            Invalid::Content => "INVALIDOBJ Corrupted HLL object detected",
        })
    }
}
