//! `DEBUG DIGEST` and `DEBUG DIGEST-VALUE`: forty hexadecimal digits that depend on the data alone,
//! not on its order in memory, its encoding or the server.

use ladon_engine::{EntryRef, Locks, ValueRef, types};
use ladon_kernel::command::error::CommandResult;
use ladon_kernel::ctx::Ctx;
use ladon_record::{KeyHasher, ValueKind};
use std::ops::AddAssign;
use std::sync::LazyLock;

/// Sums of digests do not depend on the order of their parts.
#[derive(Clone, Copy, Default)]
struct Digest([u64; 3]);

impl AddAssign for Digest {
    fn add_assign(&mut self, other: Digest) {
        for (lane, other) in self.0.iter_mut().zip(other.0) {
            *lane = lane.wrapping_add(other);
        }
    }
}

impl Digest {
    /// Digest of bytes; `label` distinguishes equal bytes with different meanings.
    fn of(label: u8, bytes: &[u8]) -> Digest {
        static HASHERS: LazyLock<[KeyHasher; 3]> =
            LazyLock::new(|| [KeyHasher::new(1), KeyHasher::new(2), KeyHasher::new(3)]);
        let mut labelled = Vec::with_capacity(bytes.len() + 1);
        labelled.push(label);
        labelled.extend_from_slice(bytes);
        Digest(std::array::from_fn(|lane| HASHERS[lane].hash(&labelled).0))
    }

    /// Digest of the parts in order.
    fn of_parts(label: u8, parts: &[Digest]) -> Digest {
        let bytes: Vec<u8> =
            parts.iter().flat_map(|part| part.0).flat_map(u64::to_le_bytes).collect();
        Digest::of(label, &bytes)
    }

    fn hex(self) -> String {
        let [a, b, c] = self.0;
        format!("{a:016x}{b:016x}{:08x}", c as u32)
    }
}

/// Labels.
const KEY: u8 = 0;
const STRING: u8 = 1;
const ELEMENT: u8 = 3;
const EXPIRES: u8 = 4;
/// Added to the type's number.
const COLLECTION: u8 = 64;

/// Digest of a value and of whether it expires, but not of when.
fn value_digest(entry: EntryRef<'_>) -> Digest {
    let value = entry.value();
    let mut digest = match value {
        ValueRef::Object(object) if types::kind_of(value) != ValueKind::String => {
            let (mut sum, mut sequence) = (Digest::default(), Vec::new());
            object.for_each(|parts| {
                let parts: Vec<Digest> =
                    parts.iter().map(|part| Digest::of(ELEMENT, part)).collect();
                let element = Digest::of_parts(ELEMENT, &parts);
                if object.is_ordered() {
                    sequence.push(element);
                } else {
                    sum += element;
                }
            });
            sequence.push(sum);
            Digest::of_parts(COLLECTION + object.kind() as u8, &sequence)
        }
        _ => {
            let mut bytes = Vec::new();
            types::encode_body(value, &mut bytes);
            Digest::of(STRING, &bytes)
        }
    };
    if entry.expire_at() != 0 {
        digest += Digest::of(EXPIRES, b"");
    }
    digest
}

pub(super) fn all(ctx: &mut Ctx<'_>, _args: &[&[u8]]) -> CommandResult {
    let databases = ctx.keyspace().databases();
    let digest = ctx.on(Locks::All, |tx| {
        let mut digest = Digest::default();
        for number in 0..databases {
            let db = tx.keyspace().select(number);
            tx.for_each(db, |entry| {
                let mut key = number.to_le_bytes().to_vec();
                key.extend_from_slice(entry.key());
                digest += Digest::of_parts(KEY, &[Digest::of(KEY, &key), value_digest(entry)]);
            });
        }
        digest
    })?;
    // A status, as in Redis.
    ctx.reply.simple(&digest.hex());
    Ok(())
}

pub(super) fn values(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    ctx.reply.array(args.len() - 2);
    let number = ctx.session.db;
    for name in &args[2..] {
        let key = ctx.key(name);
        let digest = ctx.on(Locks::One(key.hash), |tx| {
            let db = tx.keyspace().select(number);
            tx.peek(db, key).map(value_digest)
        })?;
        ctx.reply.simple(&digest.unwrap_or_default().hex());
    }
    Ok(())
}
