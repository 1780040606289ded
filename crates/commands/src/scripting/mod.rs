//! Scripts: `EVAL` and its relatives, and `SCRIPT`; and functions (`functions/`).
//! `ladon_kernel::scripts::runner` runs scripts and functions as one transaction each.

mod eval;
mod functions;
mod script;

use crate::shared::help::HELP;
use ladon_kernel::command::flags::Flags;
use ladon_kernel::command::spec::{Code, HandlerFn, LockNeed};

pub(crate) const COMMANDS: &[Code] = &[
    runs_script("eval", eval::eval)
        .with(Flags::RUNS_SCRIPT.or(Flags::MAY_REPLICATE))
        .declared_by(eval::declared_in_body),
    runs_script("eval_ro", eval::eval_ro).with(Flags::RUNS_SCRIPT),
    runs_script("evalsha", eval::evalsha)
        .with(Flags::RUNS_SCRIPT.or(Flags::MAY_REPLICATE))
        .declared_by(eval::declared_by_digest),
    runs_script("evalsha_ro", eval::evalsha_ro).with(Flags::RUNS_SCRIPT),
    functions::FCALL,
    functions::FCALL_RO,
    functions::FCALL_OF,
    functions::FCALL_RO_OF,
    functions::FUNCTION,
    Code::container(
        "script",
        &[
            Code::with_locks("debug", LockNeed::None, script::debug),
            Code::with_locks("exists", LockNeed::None, script::exists),
            Code::with_locks("flush", LockNeed::None, script::flush),
            Code::with_locks("kill", LockNeed::None, script::kill),
            Code::with_locks("load", LockNeed::None, script::load),
            HELP,
        ],
    ),
];

/// A command that takes locks as its script asks for them; inside `EXEC`, it has all.
const fn runs_script(name: &'static str, handler: HandlerFn) -> Code {
    Code::with_locks(name, LockNeed::Own, handler)
}
