//! The gate: how far a change must have got before a reply that shows it may leave.

use std::fmt;
use std::str::FromStr;

/// How far a change must have got before a reply that depends on it may leave the server.
///
/// The order is the order of strictness.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Gate {
    /// In memory. The log follows in the background.
    None = 0,
    /// Handed to the operating system: a crash of the process takes nothing back.
    Write = 1,
    /// As `Write`, and on the disk within about a second.
    #[default]
    EverySec = 2,
    /// On the disk: a crash of the machine takes nothing back.
    Fsync = 3,
    /// On the disks of most of the group's members: what replaces this node has it.
    Quorum = 4,
}

impl Gate {
    /// Every gate, laxest first.
    pub const ALL: [Gate; 5] = [Gate::None, Gate::Write, Gate::EverySec, Gate::Fsync, Gate::Quorum];

    /// The name in settings and on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Gate::None => "none",
            Gate::Write => "write",
            Gate::EverySec => "everysec",
            Gate::Fsync => "fsync",
            Gate::Quorum => "quorum",
        }
    }

    /// The inverse of `gate as u8`.
    pub const fn from_u8(byte: u8) -> Option<Gate> {
        match byte {
            0 => Some(Gate::None),
            1 => Some(Gate::Write),
            2 => Some(Gate::EverySec),
            3 => Some(Gate::Fsync),
            4 => Some(Gate::Quorum),
            _ => None,
        }
    }
}

impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Gate {
    type Err = String;

    fn from_str(s: &str) -> Result<Gate, String> {
        Gate::ALL.into_iter().find(|gate| gate.name().eq_ignore_ascii_case(s)).ok_or_else(|| {
            format!("'{s}' is not a gate; use none, write, everysec, fsync or quorum")
        })
    }
}
