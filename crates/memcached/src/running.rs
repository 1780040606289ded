//! A request being run: its way to the data, as a command of Redis.

use ladon_engine::{Key, Tx};
use ladon_kernel::client::session::Session as Client;
use ladon_kernel::ctx::Ctx;
use ladon_kernel::request::on_behalf::{self, Behalf, Done};
use ladon_kernel::request::outcome::Flow;
use ladon_kernel::thread_parts::ThreadParts;
use ladon_record::{DbId, Lsn};

/// Why a request has no reply of its own.
pub(crate) enum Ended {
    /// It was refused: an error in the words of Redis.
    Refused(String),
    /// The client has to log in first.
    NotLoggedIn,
    /// It runs again, or the connection ends.
    Later(Flow),
}

/// A request being run.
pub(crate) struct Running<'a, 't> {
    pub(crate) thread: &'a mut ThreadParts<'t>,
    pub(crate) client: &'a mut Client,
    /// What the reply depends on.
    pub(crate) depends: Lsn,
}

/// A key that is locked.
pub(crate) struct At<'a, 't, 'k> {
    pub(crate) tx: &'a mut Tx<'t>,
    pub(crate) db: DbId,
    pub(crate) key: Key<'k>,
    pub(crate) now_ms: u64,
    /// From which size on values are frozen.
    pub(crate) large: ladon_kernel::long::large::Large,
    /// Bytes of a value at most.
    pub(crate) value_bytes_max: u64,
}

impl Running<'_, '_> {
    /// Runs something as a command whose only key is the first argument.
    pub(crate) fn on_key<'k, R>(
        &mut self,
        args: &[&'k [u8]],
        run: impl FnOnce(&mut At<'_, '_, 'k>) -> R,
    ) -> Result<R, Ended> {
        let bytes = args[1];
        let hash = self.thread.node.keyspace.hash(bytes);
        let value_bytes_max = self.thread.node.settings.proto_max_bulk_len();
        self.run(args, Some(hash), |ctx| {
            let (db, now_ms, large) = (ctx.db(), ctx.now_ms, ctx.large());
            let key = Key { bytes, hash };
            run(&mut At { tx: ctx.tx(), db, key, now_ms, large, value_bytes_max })
        })
    }

    /// Runs something as a command.
    pub(crate) fn run<R>(
        &mut self,
        args: &[&[u8]],
        key: Option<ladon_record::KeyHash>,
        run: impl FnOnce(&mut Ctx<'_>) -> R,
    ) -> Result<R, Ended> {
        let Some(id) = self.thread.node.table.find_with_subcommand(args) else {
            return Err(Ended::Refused("ERR unknown command".to_owned()));
        };
        match on_behalf::execute(self.thread, self.client, Behalf { id, args, key }, run) {
            Done::Ran(result, depends) => {
                self.depends = self.depends.max(depends);
                Ok(result)
            }
            Done::Refused(text) => Err(Ended::Refused(text)),
            Done::NotLoggedIn => Err(Ended::NotLoggedIn),
            Done::Later(flow) => Err(Ended::Later(flow)),
        }
    }
}

/// An error of Redis in memcached's words.
pub(crate) fn in_words_of_memcached(text: &str) -> String {
    match text {
        _ if text.starts_with("OOM ") => "SERVER_ERROR out of memory storing object".to_owned(),
        _ => format!("SERVER_ERROR {}", text.strip_prefix("ERR ").unwrap_or(text)),
    }
}
