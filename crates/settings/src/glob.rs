//! Redis' glob patterns, byte for byte: `KEYS`, `SCAN MATCH`, `CONFIG GET` and their like.
//!
//! `*` any run, `?` any byte, `[a-c]`, `[^x]`, `\x` the byte itself. Redis' corner cases are part
//! of the contract: a class without its `]` ends with the pattern, a range may be written
//! backwards, and the empty string matches the empty pattern only (not even `*`: the commands
//! that take "everything" check for a lone `*` themselves).

/// Redis gives up on a pattern that nests deeper, and so says no; one with a star more never
/// matches here either.
const STARS_MAX: usize = 1000;

/// Whether `string` as a whole matches `pattern`; `nocase` folds ASCII case.
///
/// Takes at most `pattern.len() * string.len()` steps, whatever the pattern: it backtracks only to
/// the last `*`. That suffices, since an earlier one could not match anything that the last cannot.
pub fn glob_match(pattern: &[u8], string: &[u8], nocase: bool) -> bool {
    if string.is_empty() {
        return pattern.is_empty();
    }
    let (mut p, mut s) = (0, 0);
    // Where to continue after the last star, and the byte of the string that it reaches.
    let mut star: Option<(usize, usize)> = None;
    // Number of stars passed, counting runs once: the depth of Redis' recursion.
    let mut stars = 0;
    while s < string.len() {
        if pattern.get(p) == Some(&b'*') {
            while pattern.get(p) == Some(&b'*') {
                p += 1;
            }
            if p == pattern.len() {
                return true;
            }
            stars += 1;
            if stars > STARS_MAX {
                return false;
            }
            star = Some((p, s));
            continue;
        }
        let step = match pattern.get(p) {
            Some(_) => match_one(&pattern[p..], string[s], nocase),
            None => None,
        };
        match (step, &mut star) {
            (Some(taken), _) => {
                p += taken;
                s += 1;
            }
            (None, Some((after, reach))) => {
                *reach += 1;
                (p, s) = (*after, *reach);
            }
            (None, None) => return false,
        }
    }
    pattern[p..].iter().all(|&byte| byte == b'*')
}

/// Matches one byte with the head of a pattern that is not `*`; returns the head's length.
fn match_one(pattern: &[u8], byte: u8, nocase: bool) -> Option<usize> {
    let same = |a: u8, b: u8| a == b || nocase && a.eq_ignore_ascii_case(&b);
    match *pattern {
        [b'?', ..] => Some(1),
        [b'[', ..] => match_class(pattern, byte, nocase),
        [b'\\', escaped, ..] => same(escaped, byte).then_some(2),
        [literal, ..] => same(literal, byte).then_some(1),
        [] => None,
    }
}

fn match_class(pattern: &[u8], byte: u8, nocase: bool) -> Option<usize> {
    let fold = |b: u8| if nocase { b.to_ascii_lowercase() } else { b };
    let mut at = 1;
    let negated = pattern.get(at) == Some(&b'^');
    if negated {
        at += 1;
    }
    let mut found = false;
    loop {
        match pattern[at..] {
            // Redis compares an escaped byte of a class exactly, also where case does not count.
            [b'\\', escaped, ..] => {
                found |= escaped == byte;
                at += 2;
            }
            [b']', ..] => {
                at += 1;
                break;
            }
            [] => break,
            [first, b'-', last, ..] => {
                let (low, high) = (first.min(last), first.max(last));
                found |= (fold(low)..=fold(high)).contains(&fold(byte));
                at += 3;
            }
            [literal, ..] => {
                found |= fold(literal) == fold(byte);
                at += 1;
            }
        }
    }
    (found != negated).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::glob_match;

    #[track_caller]
    fn check(pattern: &str, string: &str, expected: bool) {
        assert_eq!(glob_match(pattern.as_bytes(), string.as_bytes(), false), expected);
    }

    #[test]
    fn more_than_a_thousand_stars_match_nothing_as_in_redis() {
        let string = "a".repeat(5000);
        check(&"*?".repeat(1000), &string, true);
        check(&"*?".repeat(1001), &string, false);
        check(&("*?".repeat(1000) + "**"), &string, true);
        check(&"*?".repeat(50_000), &"a".repeat(50_000), false);
        check(&"*".repeat(5000), &string, true);
        check(&"[*]".repeat(5000), &"*".repeat(5000), true);
    }

    #[test]
    fn patterns_match_as_in_redis() {
        check("*", "x", true);
        check("", "", true);
        check("*", "", false);
        check("", "x", false);
        check("h?llo", "hello", true);
        check("h?llo", "hllo", false);
        check("h*llo", "heeeello", true);
        check("h[ae]llo", "hallo", true);
        check("h[ae]llo", "hillo", false);
        check("h[^e]llo", "hbllo", true);
        check("h[^e]llo", "hello", false);
        check("h[a-c]llo", "hbllo", true);
        check("h[c-a]llo", "hbllo", true);
        check("a*b*c", "aXbYbZc", true);
        check("a*b*c", "aXbYbZ", false);
        check("*a", "ba", true);
        check("a***", "a", true);
        check("\\*", "*", true);
        check("\\*", "x", false);
        check("\\", "\\", true);
        check("[", "x", false);
        check("[x", "x", true);
        check("[^", "x", true);
        check("[]x", "x", false);
        check("[\\]]", "]", true);
        check("[a-]", "-", false);
        check("a?", "a", false);
    }

    #[test]
    fn case_folds_only_where_redis_folds_it() {
        assert!(glob_match(b"MaX*", b"maxmemory", true));
        assert!(glob_match(b"[A-C]", b"b", true));
        assert!(!glob_match(b"[\\B]", b"b", true));
    }

    #[test]
    fn hostile_patterns_take_no_exponential_time() {
        let pattern = "a*".repeat(200) + "b";
        assert!(!glob_match(pattern.as_bytes(), "a".repeat(5000).as_bytes(), false));
    }
}
