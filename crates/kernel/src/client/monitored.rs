//! Lines for monitoring clients: the commands that every client had executed.

use crate::client::session::Session;
use crate::command::flags::Flags;
use crate::command::secrets;
use crate::command::spec::CommandSpec;
use crate::local::Local;
use crate::node::Node;
use ladon_record::Lsn;

/// Notes an executed command for the monitoring clients, on behalf of a client or of its script.
/// Administrative commands and passwords are not shown. [`show`] follows once it is committed.
#[cold]
pub(crate) fn note(
    node: &Node,
    local: &mut Local,
    session: &Session,
    spec: &CommandSpec,
    args: &[&[u8]],
    by_script: bool,
) {
    if spec.flags.has(Flags::SKIP_MONITOR) || spec.flags.has(Flags::ADMIN) {
        return;
    }
    push(node, local, session, args, by_script);
}

/// As `note`, for a command that runs a script, before it does.
#[cold]
pub fn note_script(node: &Node, local: &mut Local, session: &Session, args: &[&[u8]]) {
    push(node, local, session, args, false);
}

fn push(node: &Node, local: &mut Local, session: &Session, args: &[&[u8]], by_script: bool) {
    let now_us = node.clock.unix_us();
    let (unix, client) = match &session.info {
        _ if by_script => ("", "lua"),
        info => (if info.unix { "unix:" } else { "" }, &*info.addr),
    };
    let mut line = format!(
        "+{}.{:06} [{} {unix}{client}]",
        now_us / 1_000_000,
        now_us % 1_000_000,
        session.db,
    );
    for arg in secrets::shown(args) {
        line.push(' ');
        quote(arg, &mut line);
    }
    line.push_str("\r\n");
    local.monitored.push(line.into_bytes().into());
}

/// Sends the noted lines, which depend on `depends`.
#[cold]
pub(crate) fn show(node: &Node, local: &mut Local, depends: Lsn) {
    node.feed_monitors(&local.monitored, depends);
    local.monitored.clear();
}

/// Writes arbitrary bytes as a quoted string.
fn quote(bytes: &[u8], line: &mut String) {
    line.push('"');
    for &byte in bytes {
        match byte {
            b'\\' | b'"' => line.extend(['\\', char::from(byte)]),
            b'\n' => line.push_str("\\n"),
            b'\r' => line.push_str("\\r"),
            b'\t' => line.push_str("\\t"),
            0x07 => line.push_str("\\a"),
            0x08 => line.push_str("\\b"),
            0x20..=0x7e => line.push(char::from(byte)),
            _ => line.push_str(&format!("\\x{byte:02x}")),
        }
    }
    line.push('"');
}

#[cfg(test)]
mod tests {
    use super::quote;

    #[test]
    fn any_bytes_can_be_shown() {
        let mut line = String::new();
        quote(b"a\"b\\\n\r\t\x07\x08\x00\xff ", &mut line);
        assert_eq!(line, r#""a\"b\\\n\r\t\a\b\x00\xff ""#);
    }
}
