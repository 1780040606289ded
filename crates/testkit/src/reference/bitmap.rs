//! The meaning of the bitmap commands.

use super::{Call, Datum, State, integer, number};
use ladon_resp::client::Value;

/// Applies the call; `None` if a key holds another type.
pub(super) fn apply(state: &mut State, call: &Call) -> Option<Value> {
    let key = &call[1];
    Some(match call[0].as_slice() {
        b"SETBIT" => {
            let (at, bit) = (integer::<usize>(&call[2]), call[3] == b"1");
            let bytes = bytes(state, key, at / 8 + 1)?;
            let mask = 0x80 >> (at % 8);
            let old = bytes[at / 8] & mask != 0;
            bytes[at / 8] = if bit { bytes[at / 8] | mask } else { bytes[at / 8] & !mask };
            number(usize::from(old))
        }
        b"BITCOUNT" => match state.get(key) {
            None => number(0),
            Some(Datum::Text(bytes)) => {
                number(bytes.iter().map(|byte| byte.count_ones() as usize).sum())
            }
            Some(_) => return None,
        },
        // BITPOS key 1
        b"BITPOS" => match state.get(key) {
            None => Value::Integer(-1),
            Some(Datum::Text(bytes)) => match bytes.iter().position(|&byte| byte != 0) {
                None => Value::Integer(-1),
                Some(at) => number(at * 8 + bytes[at].leading_zeros() as usize),
            },
            Some(_) => return None,
        },
        // BITOP OR to from..., or XOR
        b"BITOP" => {
            let mut result: Vec<u8> = Vec::new();
            for key in &call[3..] {
                match state.get(key) {
                    None => {}
                    Some(Datum::Text(bytes)) => {
                        result.resize(result.len().max(bytes.len()), 0);
                        let combine = |byte: u8, other: u8| {
                            if call[1] == b"XOR" { byte ^ other } else { byte | other }
                        };
                        for (byte, other) in result.iter_mut().zip(bytes) {
                            *byte = combine(*byte, *other);
                        }
                    }
                    Some(_) => return None,
                }
            }
            let length = result.len();
            state.remove(&call[2]);
            if length > 0 {
                state.insert(call[2].clone(), Datum::Text(result));
            }
            number(length)
        }
        // BITFIELD key INCRBY u4 offset by, maybe with GET u4 offset behind it: it wraps.
        b"BITFIELD" => {
            let width: usize = integer(&call[3][1..]);
            let (at, by): (usize, i64) = (integer(&call[4]), integer(&call[5]));
            let bytes = bytes(state, key, (at + width - 1) / 8 + 1)?;
            let is_set = |bytes: &[u8], at: usize| bytes[at / 8] & (0x80 >> (at % 8)) != 0;
            let bits = at..at + width;
            let old = bits.clone().fold(0, |sum, at| sum * 2 + i64::from(is_set(bytes, at)));
            let new = (old + by).rem_euclid(1 << width);
            for (place, at) in bits.rev().enumerate() {
                let (byte, mask) = (&mut bytes[at / 8], 0x80 >> (at % 8));
                *byte = if new & (1 << place) != 0 { *byte | mask } else { *byte & !mask };
            }
            Value::Array(vec![Value::Integer(new); if call.len() > 6 { 2 } else { 1 }])
        }
        other => unreachable!("{} is not modelled", other.escape_ascii()),
    })
}

fn bytes<'s>(state: &'s mut State, key: &[u8], length: usize) -> Option<&'s mut Vec<u8>> {
    match state.entry(key.to_vec()).or_insert_with(|| Datum::Text(Vec::new())) {
        Datum::Text(bytes) => {
            bytes.resize(bytes.len().max(length), 0);
            Some(bytes)
        }
        _ => None,
    }
}
