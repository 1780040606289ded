//! What a seed decides once: size, settings and how hard the world is.

use ladon_model::Gate;
use ladon_sim_disk::Random;

/// A known bug, put in on purpose to see the oracle find it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Canary {
    /// None: the server as it is.
    #[default]
    None,
    /// Replies leave without waiting at the gate.
    EarlyReply,
    /// Recovery loses the last bit that is set of a bitmap.
    BitLost,
    /// Recovery has the first element of a list that BLMOVE fills behind the last.
    MoveReordered,
    /// Recovery has what SORT stored without its last element.
    SortCutShort,
}

#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) workers: usize,
    pub(crate) clients: usize,
    /// Steps of the whole run.
    pub(crate) steps: u64,
    pub(crate) gate: Gate,
    /// Crashes of the whole machine; otherwise of the process only. At a gate that promises the
    /// disk, and for that gate only, the machine may fail.
    pub(crate) power_cuts: bool,
    pub(crate) write_errors: bool,
    pub(crate) sync_errors: bool,
    pub(crate) segment_bytes: u64,
    /// No collection is packed, and replies about all of one are made an element a turn.
    pub(crate) small_is_large: bool,
}

impl Plan {
    pub(crate) fn new(random: &mut Random) -> Plan {
        let gate = match random.below(4) {
            0 => Gate::Write,
            1 => Gate::EverySec,
            _ => Gate::Fsync,
        };
        Plan {
            workers: 1 + random.below(3) as usize,
            clients: 1 + random.below(5) as usize,
            steps: 200 + random.below(800),
            gate,
            power_cuts: gate == Gate::Fsync && random.chance(3, 4),
            write_errors: random.chance(1, 4),
            sync_errors: gate == Gate::Fsync && random.chance(1, 6),
            segment_bytes: 1024 << random.below(8),
            small_is_large: random.chance(1, 2),
        }
    }
}
