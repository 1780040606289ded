//! What is noted of requests for others: lines for watchers (`watch`), and counts by the prefix of keys
//! (`stats detail`).

use crate::item::{Stored, Storing};
use crate::output::Output;
use crate::running::{Ended, Running};
use ladon_kernel::client::item_watchers::{Watched, Watcher, as_in_a_uri};
use ladon_kernel::long::long_reply::LongReply;
use ladon_kernel::long::slices::{Keeping, Room, Slices};
use ladon_kernel::shared::Shared;
use ladon_kernel::statistics::key_prefixes::Counted;
use ladon_memcache::Mode;
use ladon_record::Lsn;
use ladon_resp::{Proto, Reply};
use std::sync::Arc;

/// Why a value was not stored, or that it was.
fn status_of(stored: Stored) -> &'static str {
    match stored {
        Stored::Done { .. } => "stored",
        Stored::Unmet => "not_stored",
        Stored::Exists => "exists",
        Stored::NotFound => "not_found",
        Stored::TooLarge => "too_large",
        Stored::WrongType => "wrong_type",
    }
}

impl Running<'_, '_> {
    /// A request has read an item of so many bytes, or has not found it.
    #[inline]
    pub(crate) fn has_fetched(&self, key: &[u8], found: Option<usize>) {
        let node = self.thread.node;
        if node.key_prefixes.is_on() {
            node.key_prefixes.count(key, Counted::Get(found.is_some()));
        }
        if node.item_watchers.any(Watched::FETCHERS) {
            self.show_look(key, found);
        }
    }

    /// Shows a look at an item to those who watch.
    #[cold]
    pub(crate) fn show_look(&self, key: &[u8], found: Option<usize>) {
        let (status, class) = match found {
            Some(_) => ("found", 1),
            None => ("not_found", 0),
        };
        let rest = format!(" status={status} clsid={class}");
        self.tell(Watched::FETCHERS, "item_get", key, &rest, found.unwrap_or(0));
    }

    /// A request has stored a value, or tried to.
    #[inline]
    pub(crate) fn has_stored(&self, storing: Storing<'_>, stored: Stored) {
        let node = self.thread.node;
        if node.key_prefixes.is_on() {
            node.key_prefixes.count(storing.key, Counted::Set);
        }
        if node.item_watchers.any(Watched::MUTATIONS) {
            let command = match storing.mode {
                Mode::Set if storing.has_cas => "cas",
                Mode::Set => "set",
                Mode::Add => "add",
                Mode::Replace => "replace",
                Mode::Append => "append",
                Mode::Prepend => "prepend",
            };
            let (status, exptime) = (status_of(stored), storing.exptime);
            let rest = format!(" status={status} cmd={command} ttl={exptime} clsid=1");
            self.tell(Watched::MUTATIONS, "item_store", storing.key, &rest, storing.bytes);
        }
    }

    /// A request wants an item to be gone.
    #[inline]
    pub(crate) fn note_delete(&self, key: &[u8]) {
        let node = self.thread.node;
        if node.key_prefixes.is_on() {
            node.key_prefixes.count(key, Counted::Delete);
        }
    }

    #[cold]
    fn tell(&self, watched: Watched, kind: &str, key: &[u8], rest: &str, bytes: usize) {
        let (key, fd) = (as_in_a_uri(key), self.client.info.fd);
        let what = format!("type={kind} key={key}{rest} cfd={fd} size={bytes}");
        self.thread.node.tell_watchers(watched, &what, self.depends);
    }
}

/// `watch`: from now on the connection gets lines, and nothing else.
pub(crate) fn watch(
    running: &mut Running<'_, '_>,
    watched: u8,
    out: &mut Output<'_>,
) -> Result<(), Ended> {
    let thread = running.thread.local.thread;
    let watching = running.run(&[b"monitor"], None, |ctx| Watching {
        watcher: ctx.node.item_watchers.add(thread, Watched(watched)),
        shared: Arc::clone(ctx.node.shared()),
        depends: Lsn::ZERO,
        is_begun: false,
    })?;
    out.go_on_with(LongReply::of_another_protocol(Box::new(watching), running.thread.now_ms));
    Ok(())
}

/// A reply without an end: the lines for a watcher.
struct Watching {
    watcher: Arc<Watcher>,
    shared: Arc<Shared>,
    depends: Lsn,
    is_begun: bool,
}

impl Slices for Watching {
    fn write(&mut self, reply: &mut Reply<'_>, _: &mut Room) -> bool {
        if !std::mem::replace(&mut self.is_begun, true) {
            reply.raw(b"OK\r\n");
        }
        let (lines, depends) = self.watcher.take();
        self.depends = depends;
        reply.raw(&lines);
        true
    }

    fn is_ready(&self) -> bool {
        !self.is_begun || self.watcher.has_lines()
    }

    fn is_endless(&self) -> bool {
        true
    }

    fn depends(&self) -> Lsn {
        self.depends
    }

    // Lines that nobody takes are dropped, and hold up nothing.
    fn keep(&mut self, _: Proto, _: usize) -> Keeping {
        Keeping::Own(None)
    }

    fn memory(&self) -> usize {
        self.watcher.bytes()
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.shared.item_watchers.remove(&self.watcher);
    }
}
