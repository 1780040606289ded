//! `LADON.SPACE SELECT`: a page of tuples.

use super::{json, key_of, not_found, refusal, space_id};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ladon_kernel::command::error::{CommandError, CommandResult, shown};
use ladon_kernel::ctx::Ctx;
use ladon_space::{BoxError, ErrorCode, IteratorType, Selected, Space};
use serde_json::{Value, json};

/// Tuples of a page, unless another number is asked for.
const LIMIT: u64 = 100;
const LIMIT_MAX: u64 = 1000;

/// A page ends behind the tuple that reaches this.
const PAGE_BYTES: usize = 256 << 10;

/// Tuples that may be left out in front of a page.
const OFFSET_MAX: u64 = 100_000;

/// What is asked for.
#[derive(Default)]
struct Asked<'a> {
    index: Option<&'a [u8]>,
    key: Vec<&'a [u8]>,
    iterator: Option<IteratorType>,
    after: Option<Vec<u8>>,
    limit: Option<u64>,
    offset: u64,
}

impl<'a> Asked<'a> {
    fn of(args: &[&'a [u8]]) -> Result<Asked<'a>, CommandError> {
        let mut asked = Asked::default();
        let (pairs, rest) = args.as_chunks::<2>();
        if !rest.is_empty() {
            return Err(CommandError::Syntax);
        }
        for [name, value] in pairs {
            match name.to_ascii_uppercase().as_slice() {
                b"INDEX" => asked.index = Some(value),
                b"KEY" => asked.key.push(value),
                b"ITERATOR" => asked.iterator = Some(iterator(value)?),
                b"AFTER" => asked.after = Some(position(value)?),
                b"LIMIT" => asked.limit = Some(number(value, LIMIT_MAX, "LIMIT")?),
                b"OFFSET" => asked.offset = number(value, OFFSET_MAX, "OFFSET")?,
                _ => return Err(CommandError::Syntax),
            }
        }
        Ok(asked)
    }
}

fn iterator(name: &[u8]) -> Result<IteratorType, CommandError> {
    Ok(match name.to_ascii_lowercase().as_slice() {
        b"eq" => IteratorType::Eq,
        b"req" => IteratorType::Req,
        b"all" => IteratorType::All,
        b"lt" => IteratorType::Lt,
        b"le" => IteratorType::Le,
        b"ge" => IteratorType::Ge,
        b"gt" => IteratorType::Gt,
        _ => {
            return Err(CommandError::err(format_args!(
                "the iterator '{}' is none of eq, req, all, lt, le, ge, gt",
                shown(name)
            )));
        }
    })
}

fn position(text: &[u8]) -> Result<Vec<u8>, CommandError> {
    URL_SAFE_NO_PAD
        .decode(text)
        .map_err(|_| not_found("AFTER is a position that was answered as \"after\""))
}

fn number(text: &[u8], most: u64, name: &str) -> Result<u64, CommandError> {
    let number = ladon_resp::parse_i64(text).and_then(|number| u64::try_from(number).ok());
    number
        .filter(|&number| number <= most)
        .ok_or_else(|| CommandError::err(format_args!("{name} is a number from 0 to {most}")))
}

pub(super) fn select(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let id = space_id(ctx, args[2])?;
    let asked = Asked::of(&args[3..])?;
    let page = ctx.read_space(id, |space| page(space, asked));
    let page = page.map_err(|error| refusal(&error))?;
    ctx.reply.bulk(page.to_string());
    Ok(())
}

fn page(space: &Space, asked: Asked<'_>) -> Result<Value, BoxError> {
    let index = match asked.index {
        None => space.require_index(0)?,
        Some(name) => space.index_named(name).ok_or_else(|| {
            let (name, space) = (shown(name), &space.def().name);
            let text = format!("No index '{name}' is defined in space '{space}'");
            BoxError::new(ErrorCode::NO_SUCH_INDEX_NAME, text)
        })?,
    };
    let all = if asked.key.is_empty() { IteratorType::All } else { IteratorType::Eq };
    let limit = asked.limit.unwrap_or(LIMIT);
    let selected = Selected {
        index: index.def().id,
        iterator: asked.iterator.unwrap_or(all),
        key: key_of(&index.def().parts, &asked.key)?.into(),
        offset: asked.offset,
        // One more shows whether there are others.
        limit: limit + 1,
        after: asked.after,
    };
    let mut tuples = Vec::new();
    let mut bytes = 0;
    let mut after = None;
    let mut selection = selected.of(space)?;
    let mut last = None;
    while let Some(tuple) = selection.next() {
        if tuples.len() as u64 == limit || bytes >= PAGE_BYTES {
            after = last.map(|(tuple, hint): (&ladon_space::Tuple, u64)| {
                URL_SAFE_NO_PAD.encode(index.position_at(tuple.bytes(), hint))
            });
            break;
        }
        bytes += tuple.bytes().len();
        tuples.push(json::of_tuple(space, tuple.bytes()));
        last = Some((tuple, selection.hint()));
    }
    Ok(json!({"tuples": tuples, "after": after}))
}
