//! What `SORT key ALPHA` means, with and without `STORE destination`.

use super::{Call, Datum, State, number};
use ladon_resp::client::Value;

/// Applies the call; `None` if the key holds another type.
pub(super) fn apply(state: &mut State, call: &Call) -> Option<Value> {
    let mut elements: Vec<Vec<u8>> = match state.get(&call[1]) {
        None => Vec::new(),
        Some(Datum::List(list)) => list.iter().cloned().collect(),
        Some(Datum::Set(set)) => set.keys().cloned().collect(),
        Some(Datum::Sorted(scores)) => scores.keys().cloned().collect(),
        Some(Datum::Text(_) | Datum::Hash(_) | Datum::Stream(_)) => return None,
    };
    elements.sort();
    if call.len() == 3 {
        return Some(Value::Array(elements.into_iter().map(Value::Bulk).collect()));
    }
    let count = elements.len();
    if elements.is_empty() {
        state.remove(&call[4]);
    } else {
        state.insert(call[4].clone(), Datum::List(elements.into()));
    }
    Some(number(count))
}
