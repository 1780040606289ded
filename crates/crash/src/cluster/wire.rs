//! Actions as requests, and replies as answers.

use super::things::{Action, Answer, Kind};
use ladon_resp::client::Value;

/// Swaps a value for another; tells the one that was there.
const SWAP: &str = "local was = redis.call('GET', KEYS[1]) \
                    if (was or '') == ARGV[1] then redis.call('SET', KEYS[1], ARGV[2]) end \
                    return was";

/// What a reply says of its request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It was done, and this is the answer.
    Known(Answer),
    /// It was not done, and never will be.
    Refused(String),
    /// Nobody knows.
    Unknown(String),
}

/// Errors that say that nothing was done.
const REFUSALS: [&str; 7] =
    ["READONLY", "NOQUORUM", "CLUSTERDOWN", "LOADING", "EXECABORT", "MASTERDOWN", "MISCONF Errors"];
/// Errors that leave it open.
const OPEN: [&str; 2] = ["UNKNOWNOUTCOME", "MISCONF It is not known"];

/// What an error of this text means. `None`: no such error is expected.
pub(crate) fn of_error(text: &str) -> Option<Outcome> {
    let begins = |list: &[&str]| list.iter().any(|begin| text.starts_with(begin));
    match text {
        _ if begins(&REFUSALS) => Some(Outcome::Refused(text.to_owned())),
        _ if begins(&OPEN) => Some(Outcome::Unknown(text.to_owned())),
        _ => None,
    }
}

/// The requests of an action; the last one's reply has its answer.
pub(crate) fn requests(action: &Action, key: &str) -> Vec<Vec<String>> {
    let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
    let one = |list: &[&str]| vec![words(list)];
    let number = |value: &u64| value.to_string();
    let (left, right) = (format!("{key}:left"), format!("{key}:right"));
    match action {
        Action::Get => one(&["GET", key]),
        Action::Set(value) => one(&["SET", key, &number(value)]),
        Action::Exchange(value) => one(&["SET", key, &number(value), "GET"]),
        Action::Swap(from, to) => {
            let from = from.map_or(String::new(), |from| from.to_string());
            one(&["EVAL", SWAP, "1", key, &from, &number(to)])
        }
        Action::Delete => one(&["DEL", key]),
        Action::Watched(_) => vec![words(&["WATCH", key]), words(&["GET", key])],
        Action::Count => one(&["INCR", key]),
        Action::Add(member) => one(&["SADD", key, &number(member)]),
        Action::Remove(member) => one(&["SREM", key, &number(member)]),
        Action::Members => one(&["SMEMBERS", key]),
        Action::Push(value) => one(&["RPUSH", key, &number(value)]),
        Action::Pop => one(&["LPOP", key]),
        Action::Range => one(&["LRANGE", key, "0", "-1"]),
        Action::WriteBoth(value) => vec![
            words(&["MULTI"]),
            words(&["SET", &left, &number(value)]),
            words(&["SET", &right, &number(value)]),
            words(&["EXEC"]),
        ],
        Action::ReadBoth => one(&["MGET", &left, &right]),
    }
}

/// The second half of [`Action::Watched`].
pub(crate) fn write_watched(key: &str, value: u64) -> Vec<Vec<String>> {
    let set = vec!["SET".to_owned(), key.to_owned(), value.to_string()];
    vec![vec!["MULTI".to_owned()], set, vec!["EXEC".to_owned()]]
}

fn number(value: &Value) -> Option<Option<u64>> {
    match value {
        Value::Null => Some(None),
        other => std::str::from_utf8(other.as_bytes()?).ok()?.parse().ok().map(Some),
    }
}

fn numbers<T: FromIterator<u64>>(value: &Value) -> Option<T> {
    let Value::Array(values) = value else { return None };
    values.iter().map(|value| number(value).flatten()).collect()
}

/// What the last reply says of the action on a thing of this kind.
///
/// # Errors
/// A reply that no such request gets.
pub(crate) fn outcome(kind: Kind, action: &Action, reply: &Value) -> Result<Outcome, String> {
    let strange = || format!("{action:?} is answered {reply:?}");
    if let Value::Error(text) = reply {
        return of_error(&String::from_utf8_lossy(text)).ok_or_else(strange);
    }
    let answer = match (kind, action, reply) {
        (_, Action::Set(_), Value::Simple(ok)) if ok == b"OK" => Some(Answer::Done),
        (
            _,
            Action::Count | Action::Delete | Action::Add(_) | Action::Remove(_) | Action::Push(_),
            Value::Integer(number),
        ) => Some(Answer::Number(*number)),
        (
            _,
            Action::Get | Action::Exchange(_) | Action::Swap(..) | Action::Pop | Action::Watched(_),
            value,
        ) => number(value).map(Answer::Text),
        (_, Action::Members, value) => numbers(value).map(Answer::Set),
        (_, Action::Range, value) => numbers(value).map(Answer::List),
        (_, Action::WriteBoth(_), Value::Array(replies)) => {
            let done = Value::Simple("OK".into());
            (*replies == [done.clone(), done]).then_some(Answer::Done)
        }
        (_, Action::ReadBoth, Value::Array(both)) => match &both[..] {
            [left, right] => {
                number(left).and_then(|left| Some(Answer::Pair([left, number(right)?])))
            }
            _ => None,
        },
        _ => None,
    };
    answer.map(Outcome::Known).ok_or_else(strange)
}
