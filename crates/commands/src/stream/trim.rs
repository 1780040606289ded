//! Trimming, and setting a stream's counters: XTRIM, XSETID. The options that XTRIM and XADD share.

use super::delete;
use super::id::{self, NewId};
use super::idempotence::Sender;
use ladon_engine::EventClass;
use ladon_engine::types::stream::{References, Step, StreamId, Threshold, Trim};
use ladon_kernel::command::args::{self, is};
use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_kernel::ctx::Ctx;

/// Maximum number of entries that `~` removes if the command does not say, as a number of nodes.
const NODES_MAX: u64 = 100;
/// The same where nodes may have any number of entries.
const DEFAULT_LIMIT: u64 = 10_000;
const LIMIT_MAX: u64 = 1_000_000;

/// The options of XADD and XTRIM.
pub(super) struct Options<'a> {
    pub(super) trim: Option<Trim>,
    /// What happens to references to what is trimmed.
    pub(super) references: References,
    /// Position of the id, for XADD.
    pub(super) id_at: usize,
    pub(super) id: NewId,
    pub(super) may_create: bool,
    /// Who sends the entry, if XADD says it.
    pub(super) sender: Option<Sender<'a>>,
}

impl Options<'_> {
    /// What `XADD key *` means.
    pub(super) const DEFAULT: Self = Options {
        trim: None,
        references: References::Keep,
        id_at: 2,
        id: NewId::Automatic,
        may_create: true,
        sender: None,
    };
}

/// Reads the options, and for XADD the id that follows them. `node_entries` is the maximum number
/// of entries of a node.
pub(super) fn options<'a>(
    args: &[&'a [u8]],
    is_add: bool,
    node_entries: usize,
) -> Result<Options<'a>, CommandError> {
    let mut options = Options { id_at: args.len(), ..Options::DEFAULT };
    let mut references = None;
    let (mut threshold, mut approximate, mut limit) = (None, false, None);
    let mut at = 2;
    while let Some(word) = args.get(at) {
        let more = &args[at + 1..];
        if is_add && *word == b"*" {
            break;
        }
        // No option begins with a digit: this is an id, which need not be compared with them.
        if is_add && word.first().is_some_and(u8::is_ascii_digit) {
            options.id = id::new(word)?;
            break;
        }
        // The usual spelling is quick to compare.
        let is_length = *word == b"MAXLEN" || is(word, "maxlen");
        if (is_length || is(word, "minid")) && !more.is_empty() {
            if threshold.is_some() {
                return Err(CommandError::text(
                    "ERR syntax error, MAXLEN and MINID options at the same time are not compatible",
                ));
            }
            let operator = usize::from(more.len() >= 2 && matches!(more[0], b"~" | b"="));
            approximate = operator == 1 && more[0] == b"~";
            threshold = Some(read_threshold(more[operator], is_length)?);
            at += 2 + operator;
        } else if is(word, "limit") && !more.is_empty() {
            let value = u64::try_from(args::integer(more[0])?)
                .map_err(|_| CommandError::text("ERR The LIMIT argument must be >= 0."))?;
            limit = Some(value);
            at += 2;
        } else if references.is_none() && delete::references(word).is_some() {
            references = delete::references(word);
            at += 1;
        } else if is_add && is(word, "nomkstream") {
            options.may_create = false;
            at += 1;
        } else if is_add
            && let Some(words) = Sender::words(word).and_then(|count| more.get(..count))
        {
            if options.sender.is_some() {
                return Err(CommandError::text("ERR IDMP/IDMPAUTO specified multiple times"));
            }
            options.sender = Some(Sender::new(words)?);
            at += 1 + words.len();
        } else if is_add {
            options.id = id::new(word)?;
            break;
        } else {
            return Err(CommandError::Syntax);
        }
    }
    options.id_at = at;
    if options.sender.is_some() && options.id != NewId::Automatic {
        return Err(CommandError::text(
            "ERR IDMP/IDMPAUTO can be used only with auto-generated IDs",
        ));
    }
    options.references = references.unwrap_or(References::Keep);
    options.trim = trim_of(threshold, approximate, limit, node_entries)?;
    if options.trim.is_none() && !is_add {
        return Err(CommandError::text(
            "ERR syntax error, XTRIM must be called with a trimming strategy",
        ));
    }
    if options.trim.is_none() && limit.is_some() {
        return Err(LIMIT_WITHOUT_TILDE);
    }
    Ok(options)
}

/// What the words of a trim mean together.
fn trim_of(
    threshold: Option<Threshold>,
    approximate: bool,
    limit: Option<u64>,
    node_entries: usize,
) -> Result<Option<Trim>, CommandError> {
    let Some(threshold) = threshold else {
        if limit.is_some_and(|limit| limit != 0) {
            return Err(CommandError::text(
                "ERR syntax error, LIMIT cannot be used without specifying a trimming strategy",
            ));
        }
        return Ok(None);
    };
    let limit = match limit {
        Some(_) if !approximate => return Err(LIMIT_WITHOUT_TILDE),
        Some(limit) => limit,
        None if !approximate => 0,
        None => match NODES_MAX.saturating_mul(node_entries as u64) {
            0 => DEFAULT_LIMIT,
            limit => limit.min(LIMIT_MAX),
        },
    };
    Ok(Some(Trim { threshold, approximate, limit }))
}

fn read_threshold(text: &[u8], is_length: bool) -> Result<Threshold, CommandError> {
    if !is_length {
        return Ok(Threshold::Id(id::strict(text, 0)?));
    }
    let length = u64::try_from(args::integer(text)?)
        .map_err(|_| CommandError::text("ERR The MAXLEN argument must be >= 0."))?;
    Ok(Threshold::Length(length))
}

const LIMIT_WITHOUT_TILDE: CommandError =
    CommandError::text("ERR syntax error, LIMIT cannot be used without the special ~ option");

pub(super) fn xtrim(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let node_entries = ctx.node.settings.stream_node_max_entries();
    let options = options(args, false, node_entries)?;
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let trimmed = ctx.tx().stream_change(db, key, |stream| {
        options.trim.as_ref().map_or(0, |trim| stream.trim(trim, options.references))
    })?;
    if trimmed.is_some_and(|trimmed| trimmed != 0) {
        ctx.tx().notify(EventClass::STREAM, "xtrim", db, key);
    }
    ctx.reply.integer(trimmed.unwrap_or(0) as i64);
    Ok(())
}

pub(super) fn xsetid(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let last = id::strict(args[2], 0)?;
    let (mut added, mut deleted) = (None, StreamId::MIN);
    let mut words = &args[3..];
    while let [word, value, rest @ ..] = words {
        if is(word, "entriesadded") {
            let count = u64::try_from(args::integer(value)?)
                .map_err(|_| CommandError::text("ERR entries_added must be positive"))?;
            added = Some(count);
        } else if is(word, "maxdeletedid") {
            deleted = id::strict(value, 0)?;
            if last < deleted {
                return Err(CommandError::text(
                    "ERR The ID specified in XSETID is smaller than the provided \
                     max_deleted_entry_id",
                ));
            }
        } else {
            return Err(CommandError::Syntax);
        }
        words = rest;
    }
    if !words.is_empty() {
        return Err(CommandError::Syntax);
    }
    let (db, key) = (ctx.db(), ctx.first_key(args));
    let set = ctx.tx().stream_change(db, key, |stream| {
        if last < stream.max_deleted_id() {
            return Err(
                "ERR The ID specified in XSETID is smaller than current max_deleted_entry_id",
            );
        }
        if let Some(entry) = stream.last_entry_id() {
            if last < entry {
                return Err(
                    "ERR The ID specified in XSETID is smaller than the target stream top item",
                );
            }
            if added.is_some_and(|added| added < stream.len() as u64) {
                return Err(
                    "ERR The entries_added specified in XSETID is smaller than the target \
                            stream length",
                );
            }
        }
        let added = added.unwrap_or(stream.entries_added());
        let deleted = if deleted.is_zero() { stream.max_deleted_id() } else { deleted };
        stream.apply(Step::SetId { last, added, deleted });
        Ok(())
    })?;
    match set {
        None => return Err(CommandError::NoSuchKey),
        Some(set) => set.map_err(CommandError::text)?,
    }
    ctx.tx().notify(EventClass::STREAM, "xsetid", db, key);
    ctx.reply.ok();
    Ok(())
}
