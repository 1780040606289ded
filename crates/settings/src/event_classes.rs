//! The classes of keyspace events: a letter each, as in Redis.
//!
//! `K` and `E` choose the channels, by key and by event. `g` generic commands, `$` strings, `l`
//! lists, `s` sets, `h` hashes, `z` sorted sets, `x` expired, `e` evicted, `t` streams, `d`
//! modules, `m` misses, `n` new keys, and of Redis 8.2 `o` overwritten keys and `c` changes of the
//! type. `A` means all of these except `m`, `n`, `o` and `c`. `S`, `T`, `I` and `V`, of Redis 8.8,
//! choose channels for the fields of hashes: by key, by event, by key and field, by event and key.

/// What `A` means, in the order in which Redis writes them.
const ALL: &str = "g$lshzxetd";
/// The others, in that order.
const OTHERS: &str = "nKEmocSTIV";

/// The same set of letters in the order in which Redis writes them.
pub(crate) fn canonical(input: &str) -> Result<String, String> {
    if !input.chars().all(|letter| letter == 'A' || ALL.contains(letter) || OTHERS.contains(letter))
    {
        return Err("Invalid event class character. Use 'Ag$lshzxeKEtmdn'.".to_owned());
    }
    let has = |letter: &char| input.contains(*letter);
    let all = has(&'A') || ALL.chars().all(|letter| has(&letter));
    let mut letters = if all { "A".to_owned() } else { ALL.chars().filter(has).collect() };
    letters.extend(OTHERS.chars().filter(has));
    Ok(letters)
}

#[cfg(test)]
mod tests {
    use super::canonical;

    #[test]
    fn letters_read_as_redis_writes_them() {
        for (input, expected) in [
            ("", ""),
            ("KEA", "AKE"),
            ("xKEx", "xKE"),
            ("Eg$lshzxetd", "AE"),
            ("mEK$g", "g$KEm"),
            ("nmA", "Anm"),
            ("cKAo", "AKoc"),
            ("VShITAE", "AESTIV"),
        ] {
            assert_eq!(canonical(input).as_deref(), Ok(expected), "{input}");
        }
        canonical("KEy").unwrap_err();
    }
}
