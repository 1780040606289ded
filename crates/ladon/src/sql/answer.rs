//! What a server answers to EXECUTE, as texts.

use ladon_msgpack::{self as msgpack, Error, Value};

/// The number of a column's name in the metadata, and of changed rows in `SQL_INFO`.
const FIRST: u64 = 0;

/// An answer.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The names of the columns; none if the statement has no rows.
    pub columns: Vec<String>,
    /// Each row's values.
    pub rows: Vec<Vec<Cell>>,
    /// How many rows it changed.
    pub changed: Option<u64>,
}

/// A value as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell {
    Null,
    /// To be aligned to the right.
    Number(String),
    Text(String),
}

impl Answer {
    /// Reads the parts of a reply, each MessagePack.
    ///
    /// # Errors
    /// If they are something else.
    pub fn read(
        metadata: Option<&[u8]>,
        tuples: &[&[u8]],
        info: Option<&[u8]>,
    ) -> Result<Answer, Error> {
        let mut answer = Answer::default();
        if let Some(mut metadata) = metadata {
            for _ in 0..msgpack::read_array(&mut metadata)? {
                let name = first_of(msgpack::take(&mut metadata)?)?;
                answer.columns.push(match cell(name)? {
                    Cell::Null => String::new(),
                    Cell::Number(text) | Cell::Text(text) => text,
                });
            }
        }
        for mut tuple in tuples.iter().copied() {
            let count = msgpack::read_array(&mut tuple)?;
            let mut row = Vec::new();
            for _ in 0..count {
                row.push(cell(msgpack::take(&mut tuple)?)?);
            }
            answer.rows.push(row);
        }
        if let Some(info) = info
            && let Ok(Value::Uint(count)) = msgpack::read(&mut first_of(info)?)
        {
            answer.changed = Some(count);
        }
        Ok(answer)
    }
}

/// The value with the key 0 of a map.
fn first_of(mut map: &[u8]) -> Result<&[u8], Error> {
    let Value::Map(pairs) = msgpack::read(&mut map)? else { return Ok(&[0xc0]) };
    for _ in 0..pairs {
        let key = msgpack::read(&mut map)?;
        let value = msgpack::take(&mut map)?;
        if matches!(key, Value::Uint(FIRST)) {
            return Ok(value);
        }
    }
    Ok(&[0xc0])
}

fn cell(mut bytes: &[u8]) -> Result<Cell, Error> {
    let whole = bytes;
    Ok(match msgpack::read(&mut bytes)? {
        Value::Nil => Cell::Null,
        Value::Bool(value) => Cell::Text(if value { "TRUE" } else { "FALSE" }.to_owned()),
        Value::Uint(number) => Cell::Number(number.to_string()),
        Value::Int(number) => Cell::Number(number.to_string()),
        Value::Float(number) => Cell::Number(number.to_string()),
        Value::Double(number) => Cell::Number(number.to_string()),
        Value::Str(text) => Cell::Text(String::from_utf8_lossy(text).into_owned()),
        Value::Bin(bytes) => Cell::Text(format!("x'{}'", hex(bytes))),
        Value::Array(_) | Value::Map(_) => Cell::Text(nested(&mut { whole })?),
        _ => Cell::Text(format!("msgpack x'{}'", hex(whole))),
    })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect()
}

/// An array or a map, as JSON writes it.
fn nested(rest: &mut &[u8]) -> Result<String, Error> {
    // Deeper ones than the reader of packets lets through do not come.
    let before = *rest;
    Ok(match msgpack::read(rest)? {
        Value::Array(count) => {
            let parts: Result<Vec<String>, Error> = (0..count).map(|_| nested(rest)).collect();
            format!("[{}]", parts?.join(", "))
        }
        Value::Map(count) => {
            let mut parts = Vec::new();
            for _ in 0..count {
                let name = nested(rest)?;
                parts.push(format!("{name}: {}", nested(rest)?));
            }
            format!("{{{}}}", parts.join(", "))
        }
        Value::Nil => "null".to_owned(),
        Value::Str(text) => format!("{:?}", String::from_utf8_lossy(text)),
        _ => {
            let length = before.len() - rest.len();
            match cell(&before[..length])? {
                Cell::Null => "null".to_owned(),
                Cell::Number(text) | Cell::Text(text) => text,
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read() {
        // [{0: "A", 1: "integer"}], [1, nil, "x", [true, {"k": 2}]]
        let metadata = b"\x91\x82\x00\xa1A\x01\xa7integer";
        let row = b"\x94\x01\xc0\xa1x\x92\xc3\x81\xa1k\x02";
        let answer = Answer::read(Some(metadata), &[row], None).unwrap();
        assert_eq!(answer.columns, ["A"]);
        let text = |text: &str| Cell::Text(text.to_owned());
        let expected =
            vec![Cell::Number("1".to_owned()), Cell::Null, text("x"), text("[TRUE, {\"k\": 2}]")];
        assert_eq!(answer.rows, [expected]);
        assert_eq!(Answer::read(None, &[], Some(b"\x81\x00\x07")).unwrap().changed, Some(7));
    }
}
