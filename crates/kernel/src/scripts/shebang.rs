//! The first line of a script, `#!lua name=... flags=...`: which properties it declares.

use crate::command::error::{CommandError, shown};

/// Properties that a script or a function declares, as a set of bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScriptFlags(u8);

impl ScriptFlags {
    /// It changes nothing.
    pub const NO_WRITES: ScriptFlags = ScriptFlags(1);
    /// It may run while memory is short.
    pub const ALLOW_OOM: ScriptFlags = ScriptFlags(1 << 1);
    /// It may run on a replica with old data.
    pub const ALLOW_STALE: ScriptFlags = ScriptFlags(1 << 2);
    /// It must not run in a cluster.
    pub const NO_CLUSTER: ScriptFlags = ScriptFlags(1 << 3);
    /// Its keys may belong to different slots.
    pub const ALLOW_CROSS_SLOT_KEYS: ScriptFlags = ScriptFlags(1 << 4);
    /// It declares nothing, as scripts did before there were flags.
    pub const UNDECLARED: ScriptFlags = ScriptFlags(1 << 5);

    const NAMES: [(ScriptFlags, &str); 5] = [
        (ScriptFlags::NO_WRITES, "no-writes"),
        (ScriptFlags::ALLOW_OOM, "allow-oom"),
        (ScriptFlags::ALLOW_STALE, "allow-stale"),
        (ScriptFlags::NO_CLUSTER, "no-cluster"),
        (ScriptFlags::ALLOW_CROSS_SLOT_KEYS, "allow-cross-slot-keys"),
    ];

    /// The flags of these bits, as a library has them; what is unknown is left out.
    pub fn of_bits(bits: u64) -> ScriptFlags {
        let known = ScriptFlags::NAMES.iter().fold(0, |all, (flag, _)| all | flag.0);
        ScriptFlags(bits as u8 & known)
    }

    /// The bits.
    pub fn bits(self) -> u64 {
        self.0.into()
    }

    /// The flag of this name.
    pub fn named(name: &[u8]) -> Option<ScriptFlags> {
        let known = ScriptFlags::NAMES.iter().find(|(_, known)| known.as_bytes() == name);
        known.map(|&(flag, _)| flag)
    }

    /// The names of the flags.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        ScriptFlags::NAMES
            .into_iter()
            .filter(move |&(flag, _)| self.has(flag))
            .map(|(_, name)| name)
    }

    /// Both sets together.
    pub const fn or(self, other: ScriptFlags) -> ScriptFlags {
        ScriptFlags(self.0 | other.0)
    }

    /// Whether every bit of `other` is here.
    pub const fn has(self, other: ScriptFlags) -> bool {
        self.0 & other.0 == other.0
    }
}

/// A script's flags, and what follows its first line.
pub fn parse(body: &[u8]) -> Result<(ScriptFlags, &[u8]), CommandError> {
    if !body.starts_with(b"#!") {
        return Ok((ScriptFlags::UNDECLARED, body));
    }
    let Some(end) = body.iter().position(|&byte| byte == b'\n') else {
        return Err(CommandError::err("Invalid script shebang"));
    };
    // The line's end stays, so that errors name the right line.
    let (line, rest) = body.split_at(end);
    let mut words = line.split(|&byte| byte == b' ').filter(|word| !word.is_empty());
    let engine = words.next().unwrap_or_default();
    if engine != b"#!lua" {
        let engine = shown(engine);
        return Err(CommandError::err(format_args!(
            "Unexpected engine in script shebang: {engine}"
        )));
    }
    let mut flags = ScriptFlags::default();
    for word in words {
        let Some(names) = word.strip_prefix(b"flags=") else {
            let word = shown(word);
            return Err(CommandError::err(format_args!("Unknown lua shebang option: {word}")));
        };
        for name in names.split(|&byte| byte == b',').filter(|name| !name.is_empty()) {
            let Some(flag) = ScriptFlags::named(name) else {
                let name = shown(name);
                return Err(CommandError::err(format_args!(
                    "Unexpected flag in script shebang: {name}"
                )));
            };
            flags = flags.or(flag);
        }
    }
    Ok((flags, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_first_line_declares_flags() {
        let flags = |body: &[u8]| parse(body).map(|(flags, rest)| (flags, rest.to_vec()));
        assert_eq!(flags(b"return 1"), Ok((ScriptFlags::UNDECLARED, b"return 1".to_vec())));
        assert_eq!(flags(b"#!lua\nx"), Ok((ScriptFlags::default(), b"\nx".to_vec())));
        let both = ScriptFlags::NO_WRITES.or(ScriptFlags::ALLOW_OOM);
        assert_eq!(flags(b"#!lua flags=no-writes,allow-oom\n"), Ok((both, b"\n".to_vec())));
        for body in ["#!lua", "#!js\n", "#!lua foo=1\n", "#!lua flags=never\n"] {
            assert!(flags(body.as_bytes()).is_err(), "{body}");
        }
    }
}
