//! The properties of a command, by which the checks before it decide.

/// Properties of a command, as a set of bits; Redis' names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u32);

#[allow(missing_docs, reason = "the names are COMMAND's")]
impl Flags {
    pub const NONE: Flags = Flags(0);
    pub const WRITE: Flags = Flags(1);
    pub const READONLY: Flags = Flags(1 << 1);
    pub const DENYOOM: Flags = Flags(1 << 2);
    pub const ADMIN: Flags = Flags(1 << 3);
    pub const NOSCRIPT: Flags = Flags(1 << 4);
    pub const BLOCKING: Flags = Flags(1 << 5);
    pub const LOADING: Flags = Flags(1 << 6);
    pub const STALE: Flags = Flags(1 << 7);
    pub const SKIP_MONITOR: Flags = Flags(1 << 8);
    pub const SKIP_SLOWLOG: Flags = Flags(1 << 9);
    pub const FAST: Flags = Flags(1 << 10);
    pub const NO_AUTH: Flags = Flags(1 << 11);
    /// No write, but goes to replicas in Redis, or may: waits while writes are paused, and read-only
    /// scripts cannot call it. Not shown.
    pub const MAY_REPLICATE: Flags = Flags(1 << 12);
    pub const NO_MULTI: Flags = Flags(1 << 13);
    pub const MOVABLEKEYS: Flags = Flags(1 << 14);
    pub const ALLOW_BUSY: Flags = Flags(1 << 15);
    pub const NO_ASYNC_LOADING: Flags = Flags(1 << 16);
    pub const PUBSUB: Flags = Flags(1 << 17);
    pub const NO_MANDATORY_KEYS: Flags = Flags(1 << 18);
    /// Runs beside a long script only with the argument `NOSAVE`. Not shown.
    pub const BUSY_UNLESS_NOSAVE: Flags = Flags(1 << 24);
    /// With one key, takes over the memory of a long value instead of a copy. Not shown.
    pub const TAKES_OVER: Flags = Flags(1 << 25);
    /// Runs a script, whose commands may do anything. Not shown.
    pub const RUNS_SCRIPT: Flags = Flags(1 << 26);
    /// Allowed over RESP2 while the connection has subscriptions.
    pub const WHILE_SUBSCRIBED: Flags = Flags(1 << 27);
    /// Runs what was queued: `EXEC`.
    pub const RUNS_QUEUE: Flags = Flags(1 << 28);
    /// About as quick as the commands that Redis calls fast: timed together with its batch.
    pub const QUICK: Flags = Flags(1 << 29);
    /// Runs at once inside MULTI instead of being queued.
    pub const NOT_QUEUED: Flags = Flags(1 << 30);
    /// Runs while clients are paused.
    pub const NOT_PAUSED: Flags = Flags(1 << 31);

    /// Both sets together.
    pub const fn or(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }

    /// This set without those of the other.
    pub const fn without(self, other: Flags) -> Flags {
        Flags(self.0 & !other.0)
    }

    /// Whether every bit of `other` is here.
    pub const fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    /// As `COMMAND INFO` gives them, in Redis' order.
    const NAMES: [(Flags, &str); 18] = [
        (Flags::WRITE, "write"),
        (Flags::READONLY, "readonly"),
        (Flags::DENYOOM, "denyoom"),
        (Flags::ADMIN, "admin"),
        (Flags::PUBSUB, "pubsub"),
        (Flags::NOSCRIPT, "noscript"),
        (Flags::BLOCKING, "blocking"),
        (Flags::LOADING, "loading"),
        (Flags::STALE, "stale"),
        (Flags::SKIP_MONITOR, "skip_monitor"),
        (Flags::SKIP_SLOWLOG, "skip_slowlog"),
        (Flags::FAST, "fast"),
        (Flags::NO_AUTH, "no_auth"),
        (Flags::NO_ASYNC_LOADING, "no_async_loading"),
        (Flags::NO_MULTI, "no_multi"),
        (Flags::NO_MANDATORY_KEYS, "no_mandatory_keys"),
        (Flags::MOVABLEKEYS, "movablekeys"),
        (Flags::ALLOW_BUSY, "allow_busy"),
    ];

    /// The flags of these names.
    ///
    /// # Panics
    /// When there is no such flag.
    pub(crate) fn of(names: &[&str]) -> Flags {
        let flag = |name: &str| {
            let known = Flags::NAMES.iter().find(|(_, known)| *known == name);
            known.unwrap_or_else(|| panic!("no flag is called {name}")).0
        };
        names.iter().fold(Flags::NONE, |flags, name| flags.or(flag(name)))
    }

    /// Their names.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        Flags::NAMES.into_iter().filter(move |(flag, _)| self.has(*flag)).map(|(_, name)| name)
    }
}
