//! `FIELDS numfields field ...`, which ends the commands about single fields.

use ladon_kernel::command::args::is;
use ladon_kernel::command::error::CommandError;
use ladon_resp::parse_i64;

/// The error of HEXPIRE and its like for a malformed count.
pub(super) const NOT_POSITIVE_HERE: &str = "ERR Parameter `numFields` should be greater than 0";
/// The other commands' error.
pub(super) const NOT_POSITIVE: &str = "ERR Number of fields must be a positive integer";

/// The fields that are named.
pub(super) fn parse<'w, 'a>(
    words: &'w [&'a [u8]],
    not_positive: &'static str,
) -> Result<&'w [&'a [u8]], CommandError> {
    let [word, count, names @ ..] = words else { return Err(CommandError::Syntax) };
    if !is(word, "FIELDS") {
        return Err(CommandError::text(
            "ERR Mandatory argument FIELDS is missing or not at the right position",
        ));
    }
    let count = parse_i64(count).filter(|count| *count > 0);
    let count = count.ok_or(CommandError::text(not_positive))?;
    if count as u64 != names.len() as u64 {
        return Err(CommandError::text(
            "ERR The `numfields` parameter must match the number of arguments",
        ));
    }
    Ok(names)
}
