//! What is written down about a denial, and said to the client.

use crate::client::line;
use crate::client::session::Session;
use crate::command::command_id::CommandId;
use crate::command::error::{CommandError, shown_whole};
use crate::node::Node;
use crate::statistics::failed_logins;
use ladon_identity::{Context, Denied, Event, Reason};

/// Writes a denial into `ACL LOG`, and returns the error's text in Redis' words: what is behind
/// the code.
#[cold]
pub fn note(
    node: &Node,
    session: &Session,
    context: Context,
    denied: Denied,
    id: CommandId,
    args: &[&[u8]],
) -> String {
    let name = &node.table.entry(id).full_name;
    let selected = session.db.to_string();
    let object = match denied {
        Denied::Command => name.as_bytes(),
        Denied::Database(0) => selected.as_bytes(),
        Denied::Database(word) | Denied::Key(word) | Denied::Channel(word) => args[word],
    };
    add(node, session, denied.into(), context, object, session.access.user.name());
    shown_whole(&denied.reason(&session.access.user, name))
}

/// Writes a login that failed into `ACL LOG` and, where they are few, into the server's log.
#[cold]
pub fn note_failed_login(node: &Node, session: &Session, command: &[u8], user: &[u8]) {
    let context = if session.multi.is_some() { Context::Multi } else { Context::TopLevel };
    add(node, session, Reason::Auth, context, command, user);
    let info = &session.info;
    failed_logins::tell(Some(user), &info.addr, info.id, node.clock.unix_ms());
}

fn add(
    node: &Node,
    session: &Session,
    reason: Reason,
    context: Context,
    object: &[u8],
    username: &[u8],
) {
    /// A name or a key as long as a client likes would stay in memory.
    const SHOWN_BYTES_MAX: usize = 1024;
    let now_ms = node.clock.unix_ms();
    let mut client = String::new();
    line::write(node, now_ms, &session.info, &mut client);
    let event = Event {
        reason,
        context,
        object: &object[..object.len().min(SHOWN_BYTES_MAX)],
        username: &username[..username.len().min(SHOWN_BYTES_MAX)],
        client: &client,
        now_ms,
    };
    let length_max = node.settings.acllog_max_len();
    node.accounts.denials.lock().add(&event, length_max);
}

/// The error of a command that was allowed when it was queued, and is not when `EXEC` comes.
pub fn changed_since_queued(denied: Denied) -> CommandError {
    let reason = match denied {
        Denied::Command => "no permission to execute the command or subcommand",
        Denied::Key(_) => "no permission to touch the specified keys",
        Denied::Channel(_) => {
            "no permission to access one of the channels used as arguments to the command"
        }
        Denied::Database(_) => "no permission to access the database",
    };
    let text = format!(
        "NOPERM ACLs rules changed between the moment the transaction was accumulated and the \
         EXEC call. This command is no longer allowed for the following reason: {reason}"
    );
    CommandError::Other(text.into())
}
