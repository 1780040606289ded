//! The databases that arguments name, as rights ask for them.

use ladon_kernel::command::args::is;
use ladon_resp::parse_i64;
use smallvec::SmallVec;

/// Databases, each with the position of the argument that names it.
pub(crate) type Named = SmallVec<[(usize, u32); 2]>;

/// Those at these positions. One that is no database's number is left to the command, which refuses
/// it.
pub(crate) fn at(args: &[&[u8]], positions: &[usize]) -> Named {
    let number = |at: usize| u32::try_from(parse_i64(args.get(at)?)?).ok();
    positions.iter().filter_map(|&at| Some((at, number(at)?))).collect()
}

/// The ones behind the word `DB`: `COPY` takes the last of several.
pub(crate) fn behind_db(args: &[&[u8]]) -> Named {
    let words = args.iter().enumerate().skip(3).filter(|(_, word)| is(word, "db"));
    words.flat_map(|(word, _)| at(args, &[word + 1])).collect()
}
