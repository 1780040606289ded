//! `lru_crawler metadump`, `mgdump` and `stats cachedump`: a line for each item, a few at a time.

use crate::expiry::seconds_left;
use crate::item::string_of;
use crate::output::Output;
use crate::running::{Ended, Running};
use crate::stats::CLASS;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use ladon_engine::types::string;
use ladon_engine::{AccessNow, EntryRef, Keyspace, Locks, PARTITIONS, Scratch};
use ladon_kernel::client::item_watchers::as_in_a_uri;
use ladon_kernel::long::long_reply::LongReply;
use ladon_kernel::long::slices::{Room, Slices};
use ladon_kernel::shared::Shared;
use ladon_memcache::KEY_BYTES_MAX;
use ladon_memcache::request::DumpForm;
use ladon_record::{DbId, KeyHash, Lsn};
use ladon_resp::Reply;
use std::sync::Arc;

/// Appends the list of all items.
pub(crate) fn dump(
    running: &mut Running<'_, '_>,
    form: DumpForm,
    is_empty: bool,
    out: &mut Output<'_>,
) -> Result<(), Ended> {
    let dump = running.run(&[b"scan", b"0"], None, |ctx| Dump {
        keyspace: Arc::clone(&ctx.node.keyspace),
        shared: Arc::clone(ctx.node.shared()),
        scratch: Scratch::default(),
        db: ctx.db(),
        form,
        partition: if is_empty { PARTITIONS } else { 0 },
        from: KeyHash(0),
        depends: Lsn::ZERO,
        is_ended: false,
        left: match form {
            DumpForm::Class(0) => (u64::MAX, CLASS_BYTES_MAX),
            DumpForm::Class(limit) => (limit, CLASS_BYTES_MAX),
            _ => (u64::MAX, usize::MAX),
        },
    })?;
    out.go_on_with(LongReply::of_another_protocol(Box::new(dump), running.thread.now_ms));
    Ok(())
}

/// The list of all items, a few at a time.
struct Dump {
    keyspace: Arc<Keyspace>,
    shared: Arc<Shared>,
    scratch: Scratch,
    db: DbId,
    form: DumpForm,
    partition: usize,
    from: KeyHash,
    depends: Lsn,
    is_ended: bool,
    /// Lines and bytes that may still be written.
    left: (u64, usize),
}

/// What `stats cachedump` shows at most, as in memcached.
const CLASS_BYTES_MAX: usize = 2 << 20;

/// Buckets of the table that are looked at under one lock.
const BUCKETS_AT_ONCE: usize = 32;

impl Slices for Dump {
    fn write(&mut self, reply: &mut Reply<'_>, room: &mut Room) -> bool {
        let now_ms = self.shared.clock.unix_ms();
        // What has expired is hidden, and removed by others.
        self.scratch.read_only = true;
        while self.partition < PARTITIONS && self.left != (0, 0) {
            if !room.take(reply) {
                return true;
            }
            let is_busy = |partition| self.shared.scripts.running.is_held(partition);
            let locks = Locks::Partition(self.partition);
            let Some(mut tx) =
                self.keyspace.begin_or_busy(locks, &mut self.scratch, now_ms, is_busy)
            else {
                return true;
            };
            let rules = self.keyspace.access_rules().at(now_ms);
            let mut lines = Vec::new();
            let next = tx.scan(self.db, self.partition, self.from, BUCKETS_AT_ONCE, |entry| {
                match self.form {
                    DumpForm::Facts => write_facts(entry, rules, now_ms, &mut lines),
                    DumpForm::Requests => write_request(entry, &mut lines),
                    DumpForm::Class(_) => write_item(entry, &mut self.left, &mut lines),
                }
            });
            let (depends, _) = tx.commit(|_| Lsn::ZERO);
            self.depends = self.depends.max(depends);
            reply.raw(&lines);
            match next {
                Some(next) => self.from = next,
                None => {
                    self.partition += 1;
                    let bits = PARTITIONS.trailing_zeros();
                    self.from = KeyHash((self.partition as u64) << (64 - bits));
                }
            }
        }
        if !std::mem::replace(&mut self.is_ended, true) {
            reply.raw(match self.form {
                DumpForm::Facts | DumpForm::Class(_) => b"END\r\n" as &[u8],
                DumpForm::Requests => b"EN\r\n",
            });
        }
        false
    }

    fn depends(&self) -> Lsn {
        self.depends
    }
}

fn write_facts(entry: EntryRef<'_>, rules: AccessNow, now_ms: u64, lines: &mut Vec<u8>) {
    let left = match seconds_left(entry.expire_at(), now_ms) {
        -1 => -1,
        left => (now_ms / 1000) as i64 + left,
    };
    let idle_seconds = u64::from(rules.idle_seconds(entry.access()));
    let used = (now_ms / 1000).saturating_sub(idle_seconds);
    let (cas, bytes) = (entry.item().cas, entry.bytes());
    let key = as_in_a_uri(entry.key());
    let facts = format!("key={key} exp={left} la={used} cas={cas} cls={CLASS} size={bytes}\n");
    lines.extend_from_slice(facts.as_bytes());
}

/// The line of `stats cachedump`, if there is room for one more of those that may be `left`.
fn write_item(entry: EntryRef<'_>, left: &mut (u64, usize), lines: &mut Vec<u8>) {
    let Some(bytes) = string::bytes(entry.value()).map(|bytes| bytes.len()) else { return };
    let (lines_left, bytes_left) = *left;
    let exp = entry.expire_at() / 1000;
    let facts = format!(" [{bytes} b; {exp} s]\r\n");
    let line = [b"ITEM ", entry.key(), facts.as_bytes()].concat();
    *left = match bytes_left.checked_sub(line.len()) {
        Some(bytes_left) if lines_left != 0 => {
            lines.extend_from_slice(&line);
            (lines_left - 1, bytes_left)
        }
        _ => (0, 0),
    };
}

/// The request that reads the item, if there can be one.
fn write_request(entry: EntryRef<'_>, lines: &mut Vec<u8>) {
    if string_of(entry).is_err() {
        return;
    }
    let key = entry.key();
    let is_a_word = !key.is_empty() && key.iter().all(|byte| (0x21..0x7f).contains(byte));
    let (key, end): (&[u8], &[u8]) = match is_a_word {
        true => (key, b"\r\n"),
        false => (&BASE64.encode(key).into_bytes(), b" b\r\n"),
    };
    if !key.is_empty() && key.len() <= KEY_BYTES_MAX {
        for part in [b"mg ", key, end] {
            lines.extend_from_slice(part);
        }
    }
}
