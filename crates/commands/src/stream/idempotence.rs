//! Idempotent producers: who sends an entry of XADD, and XCFGSET, as in Redis 8.6.

use ladon_engine::types::stream::{Idempotence, Memory, Stream};
use ladon_kernel::command::args::{self, is};
use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_kernel::ctx::Ctx;
use ladon_resp::Reply;
use ladon_settings::Settings;
use std::borrow::Cow;
use xxhash_rust::xxh3::Xxh3;

/// Who sends an entry.
#[derive(Clone, Copy)]
pub(super) struct Sender<'a> {
    producer: &'a [u8],
    /// `None`: what the entry's fields and values give.
    id: Option<&'a [u8]>,
}

impl<'a> Sender<'a> {
    /// Number of words after the option's name; `None` if this is no such option.
    pub(super) fn words(option: &[u8]) -> Option<usize> {
        match option {
            _ if is(option, "idmpauto") => Some(1),
            _ if is(option, "idmp") => Some(2),
            _ => None,
        }
    }

    /// From the option's words.
    pub(super) fn new(words: &[&'a [u8]]) -> Result<Sender<'a>, CommandError> {
        let (producer, id) = (words[0], words.get(1).copied());
        if producer.is_empty() {
            return Err(CommandError::text(match id {
                Some(_) => "ERR IDMP requires a non-empty producer ID",
                None => "ERR IDMPAUTO requires a non-empty producer ID",
            }));
        }
        if id.is_some_and(<[u8]>::is_empty) {
            return Err(CommandError::text("ERR IDMP requires a non-empty idempotent ID"));
        }
        Ok(Sender { producer, id })
    }

    pub(super) fn producer(&self) -> &'a [u8] {
        self.producer
    }

    /// The idempotent id of an entry of these fields and values.
    pub(super) fn id(&self, words: &[&[u8]]) -> Cow<'a, [u8]> {
        match self.id {
            Some(id) => Cow::Borrowed(id),
            None => Cow::Owned(automatic_id(words).to_vec()),
        }
    }
}

/// The idempotent id of an entry whose producer gives it none (`IDMPAUTO`): a hash of fields and
/// values that does not depend on their order. It is in the log: it never changes.
pub fn automatic_id(words: &[&[u8]]) -> [u8; 16] {
    let of_pair = |pair: &[&[u8]]| {
        let mut hash = Xxh3::new();
        hash.update(&(pair[0].len() as u64).to_le_bytes());
        pair.iter().for_each(|word| hash.update(word));
        hash.digest128()
    };
    words.chunks_exact(2).map(of_pair).fold(0, u128::wrapping_add).to_le_bytes()
}

/// How much a stream remembers that was told nothing else.
pub(super) fn default_memory(settings: &Settings) -> Memory {
    let (duration_s, ids_max) = (settings.stream_idmp_duration(), settings.stream_idmp_maxsize());
    Memory { duration_s, ids_max }
}

/// XCFGSET.
pub(super) fn configure(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (mut duration_s, mut ids_max) = (None, None);
    let mut words = &args[2..];
    if words.is_empty() {
        return Err(CommandError::text(
            "ERR At least one parameter (IDMP-DURATION or IDMP-MAXSIZE) is required",
        ));
    }
    while let [word, value, rest @ ..] = words {
        if is(word, "idmp-duration") {
            let value = u64::try_from(args::integer(value)?).ok();
            let value = value.filter(|value| Memory::DURATION_S.contains(value));
            duration_s = Some(value.ok_or(CommandError::text(
                "ERR IDMP-DURATION must be between 1 and 86400 seconds",
            ))?);
        } else if is(word, "idmp-maxsize") {
            let value = usize::try_from(args::integer(value)?).ok();
            let value = value.filter(|value| Memory::IDS_MAX.contains(value));
            ids_max = Some(value.ok_or(CommandError::text(
                "ERR IDMP-MAXSIZE must be between 1 and 10000 entries",
            ))?);
        } else {
            return Err(CommandError::Syntax);
        }
        words = rest;
    }
    if !words.is_empty() {
        return Err(CommandError::Syntax);
    }
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let default = default_memory(&ctx.node.settings);
    let set = ctx.tx().stream_change(db, key, |stream| {
        let now = stream.idempotence().map_or(default, Idempotence::memory);
        stream.set_memory(Memory {
            duration_s: duration_s.unwrap_or(now.duration_s),
            ids_max: ids_max.unwrap_or(now.ids_max),
        });
    })?;
    set.ok_or(CommandError::NoSuchKey)?;
    ctx.reply.ok();
    Ok(())
}

/// Number of facts that `describe` adds. As long as nobody uses them, the reply is that of
/// Redis 7.2.
pub(super) fn facts(stream: &Stream) -> usize {
    if stream.idempotence().is_some() { 6 } else { 0 }
}

/// What XINFO STREAM says of it.
pub(super) fn describe(reply: &mut Reply<'_>, stream: &Stream) {
    let Some(idempotence) = stream.idempotence() else { return };
    let memory = idempotence.memory();
    let facts = [
        ("idmp-duration", memory.duration_s),
        ("idmp-maxsize", memory.ids_max as u64),
        ("pids-tracked", idempotence.producers() as u64),
        ("iids-tracked", idempotence.ids() as u64),
        ("iids-added", idempotence.added()),
        ("iids-duplicates", idempotence.duplicates()),
    ];
    for (name, value) in facts {
        reply.bulk(name);
        reply.integer(value as i64);
    }
}
