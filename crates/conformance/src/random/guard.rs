//! Requests that are not sent, because both servers would obey: endless waits, replies and strings
//! of gigabytes, expiry in the middle of a round, and choices that the servers make differently.

const MONTHS_AWAY: i64 = 100_000;
const YEAR_2100: i64 = 4_102_444_800;
/// The longest string that a request may make, in bytes. 512 MB are refused, which is to be seen.
const STRING_MAX: u64 = 5_000;
const STRING_REFUSED: u64 = 512 << 20;
/// The most elements that a negative count may ask for.
const DRAWS_MAX: i64 = 1_000;
const WAIT_MAX: f64 = 0.05;
/// Longer than any round, in seconds.
const ENDLESS: f64 = 1_000.0;

/// Whether `words` may be sent. `changed`: it differs from what the grammar made. `is_crowd`: they
/// may wait for another connection, but not for the clock.
pub fn may_be_sent(words: &[Vec<u8>], changed: bool, is_crowd: bool) -> bool {
    let text = |at: usize| words.get(at).map(|it| String::from_utf8_lossy(it).to_ascii_uppercase());
    let number = |at: usize| text(at).and_then(|it| it.trim().parse::<i64>().ok());
    let Some(command) = text(0) else { return false };
    if !names_are_ordered(words, &command, changed) {
        return false;
    }
    match command.as_str() {
        "BLPOP" | "BRPOP" | "BLMOVE" | "BRPOPLPUSH" | "BZPOPMIN" | "BZPOPMAX" if is_crowd => {
            wait_is_endless(words.last())
        }
        "BLMPOP" | "BZMPOP" if is_crowd => wait_is_endless(words.get(1)),
        "XREAD" | "XREADGROUP" if is_crowd => block_is_endless(words),
        "BLPOP" | "BRPOP" | "BLMOVE" | "BRPOPLPUSH" | "BZPOPMIN" | "BZPOPMAX" => {
            wait_is_short(words.last())
        }
        "XREAD" | "XREADGROUP" => block_is_short(words),
        // The clock names the entry, unless none is added.
        "XADD" => words.get(2..).is_none_or(|rest| {
            !rest.iter().any(|it| it == b"*") || !changed && words[1] == b"absent"
        }),
        "BLMPOP" | "BZMPOP" => wait_is_short(words.get(1)),
        // A client of RESP2 that has subscribed takes few commands.
        "SUBSCRIBE" | "PSUBSCRIBE" | "SSUBSCRIBE" => is_crowd,
        // Which member it is, is the server's affair, unless it is all of them.
        "SPOP" => !changed,
        "SRANDMEMBER" | "HRANDFIELD" | "ZRANDMEMBER" => {
            number(2).is_none_or(|it| it >= -DRAWS_MAX || it == i64::MIN)
        }
        "SETRANGE" => number(2).is_none_or(|it| string_is_short(it, 1)),
        "SETBIT" => number(2).is_none_or(|it| string_is_short(it, 8)),
        "BITFIELD" => words.iter().all(|word| {
            let text = String::from_utf8_lossy(word);
            let (text, unit) = match text.strip_prefix('#') {
                Some(rest) => (rest.to_string(), 1),
                None => (text.into_owned(), 8),
            };
            // Values and positions look alike, so only the grammar's own may be large.
            !changed || text.trim().parse::<i64>().map_or(true, |it| string_is_short(it, unit))
        }),
        "EXPIRE" | "PEXPIRE" | "SETEX" | "PSETEX" | "HEXPIRE" | "HPEXPIRE" | "SET" | "GETEX"
        | "HGETEX" | "HSETEX" => expiry_is_far(words, &command),
        "DEBUG" | "CLIENT" | "CONFIG" | "SHUTDOWN" | "QUIT" | "MONITOR" | "WAIT" => !changed,
        // It would convert what other commands read.
        "SORT" | "SORT_RO" => !changed || words.get(1).is_some_and(|it| it.starts_with(b"v")),
        "COMMAND" => words.len() > 1,
        // MULTI and what ends it say how the replies that follow are compared.
        _ => true,
    }
}

/// A range between two names is defined only if all scores are equal. The grammar keeps `y1` and
/// `y2` so, and requests ranges by name only there.
fn names_are_ordered(words: &[Vec<u8>], command: &str, changed: bool) -> bool {
    let even = |word: &Vec<u8>| matches!(word.as_slice(), b"y1" | b"y2");
    let uneven = |word: &Vec<u8>| matches!(word.as_slice(), b"z1" | b"z2" | b"z3");
    let by_name =
        command.contains("LEX") || words.iter().any(|it| it.eq_ignore_ascii_case(b"BYLEX"));
    if by_name {
        let source = if command == "ZRANGESTORE" { 2 } else { 1 };
        return !words.iter().skip(source).any(uneven);
    }
    !(changed && words.iter().skip(1).any(even))
}

/// Or none.
fn wait_is_endless(word: Option<&Vec<u8>>) -> bool {
    let Some(word) = word else { return true };
    let text = String::from_utf8_lossy(word).to_ascii_lowercase();
    match text.trim().parse::<f64>() {
        Ok(seconds) => seconds <= 0.0 || seconds.is_nan() || seconds >= ENDLESS,
        Err(_) => !text.contains("0x"),
    }
}

fn block_is_endless(words: &[Vec<u8>]) -> bool {
    words.windows(2).all(|pair| {
        let milliseconds = String::from_utf8_lossy(&pair[1]).trim().parse::<i64>();
        !pair[0].eq_ignore_ascii_case(b"BLOCK")
            || milliseconds.map_or(true, |it| it <= 0 || it as f64 >= ENDLESS * 1000.0)
    })
}

fn wait_is_short(word: Option<&Vec<u8>>) -> bool {
    let Some(word) = word else { return true };
    let text = String::from_utf8_lossy(word).to_ascii_lowercase();
    if text.contains("0x") {
        // Hexadecimal, which C reads and Rust does not: the grammar's own is a short one.
        return text == "0x.01";
    }
    match text.trim().parse::<f64>() {
        Ok(seconds) => !(seconds == 0.0 || (WAIT_MAX..1e15).contains(&seconds)),
        Err(_) => true,
    }
}

fn block_is_short(words: &[Vec<u8>]) -> bool {
    words.windows(2).all(|pair| {
        let milliseconds = String::from_utf8_lossy(&pair[1]).trim().parse::<i64>();
        !pair[0].eq_ignore_ascii_case(b"BLOCK")
            || milliseconds.map_or(true, |it| it < 0 || (1..50).contains(&it))
    })
}

fn string_is_short(place: i64, places_per_byte: u64) -> bool {
    let Ok(place) = u64::try_from(place) else { return true };
    let bytes = place / places_per_byte;
    bytes <= STRING_MAX || bytes >= STRING_REFUSED - 64
}

fn expiry_is_far(words: &[Vec<u8>], command: &str) -> bool {
    let far = |word: &Vec<u8>, least: i64| {
        let number = String::from_utf8_lossy(word).trim().parse::<i64>();
        number.map_or(true, |it| it <= 0 || it >= least)
    };
    let at_two = match command {
        "EXPIRE" | "SETEX" | "HEXPIRE" => Some(MONTHS_AWAY),
        "PEXPIRE" | "PSETEX" | "HPEXPIRE" => Some(MONTHS_AWAY * 1000),
        _ => None,
    };
    if let (Some(least), Some(word)) = (at_two, words.get(2)) {
        return far(word, least);
    }
    words.windows(2).all(|pair| match pair[0].to_ascii_uppercase().as_slice() {
        b"EX" => far(&pair[1], MONTHS_AWAY),
        b"PX" => far(&pair[1], MONTHS_AWAY * 1000),
        // Whether SET keeps a value that is over already is seen by DBSIZE.
        b"EXAT" => command != "SET" || far(&pair[1], YEAR_2100),
        b"PXAT" => command != "SET" || far(&pair[1], YEAR_2100 * 1000),
        _ => true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, sent: bool) {
        let words: Vec<Vec<u8>> = line.split(' ').map(|it| it.as_bytes().to_vec()).collect();
        assert_eq!(may_be_sent(&words, true, false), sent, "{line}");
    }

    #[test]
    fn what_would_hang_or_fill_memory_is_held_back() {
        check("BLPOP l 0", false);
        check("BLPOP l 60", false);
        check("blpop l 0.01", true);
        check("BLPOP l 1e400", true);
        check("BZMPOP 0 1 z MIN", false);
        check("XREAD BLOCK 0 STREAMS x $", false);
        check("XREADGROUP GROUP g c block 5000 STREAMS x >", false);
        check("XREAD BLOCK 1 STREAMS x $", true);
        check("XADD x * f v", false);
        check("XADD x 1-* f v", true);
        check("SETRANGE k 500000000 a", false);
        check("SETRANGE k 536870912 a", true);
        check("SETBIT k 4000000000 1", false);
        check("SRANDMEMBER s -1000000", false);
        check("SPOP s", false);
        check("SUBSCRIBE c", false);
        let words = |line: &str| line.split(' ').map(|it| it.into()).collect::<Vec<Vec<u8>>>();
        assert!(may_be_sent(&words("BLPOP l 0"), true, true));
        assert!(!may_be_sent(&words("BLPOP l 0.01"), true, true));
        assert!(!may_be_sent(&words("XREAD BLOCK 1 STREAMS x $"), true, true));
        check("SET k v EX 1", false);
        check("EXPIRE k 1", false);
        check("EXPIRE k -1", true);
    }
}
