//! Which commands a user may run, so that a page can show it before anybody tries.

use ladon_identity::{CommandTable, Request, RequestDatabases, User};

/// The commands that pages have buttons for.
const SHOWN: &[&str] = &[
    "bgsave",
    "client|kill",
    "client|list",
    "config|get",
    "config|resetstat",
    "config|set",
    "copy",
    "del",
    "eval",
    "expire",
    "get",
    "hdel",
    "hotkeys|get",
    "hotkeys|start",
    "hset",
    "info",
    "ladon.space|delete",
    "ladon.space|insert",
    "ladon.space|list",
    "ladon.space|replace",
    "lrem",
    "lset",
    "memory|usage",
    "persist",
    "pexpire",
    "psubscribe",
    "publish",
    "rename",
    "renamenx",
    "rpush",
    "sadd",
    "scan",
    "set",
    "slowlog|get",
    "slowlog|reset",
    "srem",
    "subscribe",
    "unlink",
    "xadd",
    "xdel",
    "zadd",
    "zrem",
];

/// Whether the user may run a command, on keys or channels that its patterns allow.
pub(super) fn may(user: &User, table: &CommandTable, name: &str) -> bool {
    let Some(command) = table.find(name.as_bytes()) else { return false };
    let databases = RequestDatabases::These(&[]);
    let request = Request { command, argument: None, keys: &[], channels: &[], databases };
    user.check(table, &request).is_ok()
}

/// Those of [`SHOWN`] that the user may run.
pub(super) fn of(user: &User, table: &CommandTable) -> Vec<&'static str> {
    SHOWN.iter().copied().filter(|name| may(user, table, name)).collect()
}
