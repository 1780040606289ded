use super::*;
use crate::collation::Collation;
use crate::field_type::FieldType;
use crate::key_part::Part;
use ladon_msgpack::write;

fn part(field: u32, kind: FieldType) -> Part {
    let (path, collation) = (crate::path::Path::default(), Collation::None);
    Part { field, path, kind, is_nullable: false, exclude_null: false, collation }
}

#[track_caller]
fn check_key(kinds: &[FieldType], text: &str) {
    let parts: Vec<Part> = (0..).zip(kinds).map(|(at, kind)| part(at, *kind)).collect();
    let key = encode_key(&parts, text.as_bytes()).expect("a key");
    let mut back = Vec::new();
    write_key(&parts, &key, &mut back);
    assert_eq!(String::from_utf8_lossy(&back), text);
}

#[test]
fn keys_and_their_texts() {
    use FieldType::{Integer, String, Unsigned, Uuid};
    check_key(&[Unsigned], "18446744073709551615");
    check_key(&[Integer], "-9223372036854775808");
    check_key(&[String], "any: text \\ as it is");
    check_key(&[String], "");
    check_key(&[Uuid], "64d22e4d-ac92-4a23-899a-e5934af5479f");
    check_key(&[String, Unsigned], "eu\\:west\\\\1:7");
    check_key(&[String, String], "a:b:c\\d");
    check_key(&[Unsigned, String], "7:");
}

#[test]
fn a_key_has_one_text() {
    use FieldType::{Integer, String, Unsigned, Uuid};
    let refused = |kinds: &[FieldType], text: &str| {
        let parts: Vec<Part> = (0..).zip(kinds).map(|(at, kind)| part(at, *kind)).collect();
        let error = encode_key(&parts, text.as_bytes()).expect_err("no key");
        error.to_string()
    };
    for text in ["007", "+7", "-7", "7 ", "", "x", "1e3", "18446744073709551616"] {
        refused(&[Unsigned], text);
    }
    for text in ["-0", "--1", "-", "-9223372036854775809"] {
        refused(&[Integer], text);
    }
    refused(&[Uuid], "64D22E4D-AC92-4A23-899A-E5934AF5479F");
    refused(&[Uuid], "64d22e4dac924a23899ae5934af5479f");
    assert_eq!(refused(&[String, Unsigned], "a\\b:7"), TextError::Escape.to_string());
    assert_eq!(
        refused(&[String, Unsigned], "a"),
        "the key has 1 parts, and the primary key has 2, joined by ':'"
    );
    assert_eq!(refused(&[Unsigned], "x"), "'x' is no value of type unsigned");
    assert!(refused(&[Unsigned], "07").contains("which is '7'"));
}

#[track_caller]
fn check_value(kind: FieldType, text: &str, back: &str) {
    let mut value = Vec::new();
    encode_value(kind, text.as_bytes(), &mut value).expect("a value");
    let mut out = Vec::new();
    assert!(write_value(&value, &mut out));
    assert_eq!(String::from_utf8_lossy(&out), back, "{text}");
}

#[test]
fn values_and_their_texts() {
    use FieldType::{Any, Boolean, Decimal, Double, Integer, Number, String, Unsigned, Uuid};
    for (kind, text, back) in [
        (Unsigned, "007", "7"),
        (Integer, "-5", "-5"),
        (Integer, "18446744073709551615", "18446744073709551615"),
        (Number, "5", "5"),
        (Number, "5.50", "5.5"),
        (Double, "3", "3"),
        (Double, "0.1", "0.1"),
        (Double, "1e300", "1e300"),
        (Double, "-1e-9", "-1e-9"),
        (Double, "inf", "inf"),
        (Decimal, "1.10", "1.10"),
        (Decimal, "-.5", "-0.5"),
        (Decimal, "12e2", "1200"),
        (String, "\u{e9}\0", "\u{e9}\0"),
        (Any, "5", "5"),
        (Boolean, "true", "true"),
        (Uuid, "64D22E4D-AC92-4A23-899A-E5934AF5479F", "64d22e4d-ac92-4a23-899a-e5934af5479f"),
    ] {
        check_value(kind, text, back);
    }
    for (kind, text) in [
        (Unsigned, "-1"),
        (Unsigned, "1.0"),
        (Integer, ""),
        (Double, "nan"),
        (Number, "x"),
        (Decimal, "."),
        (Decimal, "1e-60"),
        (Decimal, "1e60"),
        (Boolean, "1"),
        (FieldType::Map, "{}"),
        (FieldType::Datetime, "2024-01-01T00:00:00Z"),
    ] {
        encode_value(kind, text.as_bytes(), &mut Vec::new()).expect_err(text);
    }
}

#[test]
fn what_is_only_read() {
    let shown = |value: &[u8]| {
        let mut out = Vec::new();
        assert!(write_value(value, &mut out));
        String::from_utf8(out).expect("text")
    };
    let mut array = Vec::new();
    write::array(&mut array, 2);
    write::map(&mut array, 1);
    write::str(&mut array, b"a");
    write::nil(&mut array);
    write::str(&mut array, "x".repeat(2_000).as_bytes());
    assert_eq!(shown(&array), format!("[{{\"a\": null}}, \"{}\"]", "x".repeat(2_000)));
    let date = |seconds: i64, rest: &[u8]| {
        let mut value = Vec::new();
        write::ext(&mut value, 4, &[&seconds.to_le_bytes()[..], rest].concat());
        shown(&value)
    };
    assert_eq!(date(0, &[]), "1970-01-01T00:00:00Z");
    assert_eq!(date(951_782_399, &[]), "2000-02-28T23:59:59Z");
    assert_eq!(date(951_782_400, &[]), "2000-02-29T00:00:00Z");
    assert_eq!(date(-1, &[]), "1969-12-31T23:59:59Z");
    let rest = [&500_000_000i32.to_le_bytes()[..], &90i16.to_le_bytes(), &[0, 0]].concat();
    assert_eq!(date(0, &rest), "1970-01-01T01:30:00.500+0130");
    assert!(!write_value(&[0xc0], &mut Vec::new()));
}

#[test]
fn sums_stay_within_their_type() {
    use FieldType::{Decimal, Double, Integer, Number, String, Unsigned};
    let add = |kind, value: &str, by| {
        let mut encoded = Vec::new();
        encode_value(kind, value.as_bytes(), &mut encoded).expect("a value");
        add_integer(kind, Some(&encoded), by, &mut Vec::new())
    };
    assert_eq!(add(Unsigned, "5", -5), Ok(0));
    assert_eq!(add(Unsigned, "5", -6), Err(SumError::Overflow));
    assert_eq!(add(Integer, "5", -6), Ok(-1));
    assert_eq!(add(Integer, "9223372036854775807", 1), Err(SumError::Overflow));
    assert_eq!(add(Integer, "18446744073709551615", -1), Err(SumError::Overflow));
    assert_eq!(add(Number, "1.5", 1), Err(SumError::NotInteger));
    assert_eq!(add(String, "5", 1), Err(SumError::Type("string")));
    assert_eq!(add_integer(Unsigned, None, 3, &mut Vec::new()), Ok(3));
    let add = |kind, value: &str, by: &str| {
        let (mut encoded, mut out, mut text) = (Vec::new(), Vec::new(), Vec::new());
        encode_value(kind, value.as_bytes(), &mut encoded).expect("a value");
        add_float(kind, Some(&encoded), by.as_bytes(), &mut out)?;
        write_value(&out, &mut text);
        Ok(std::string::String::from_utf8(text).expect("text"))
    };
    assert_eq!(add(Double, "1.5", "2"), Ok("3.5".to_owned()));
    assert_eq!(add(Number, "1", "0.5"), Ok("1.5".to_owned()));
    assert_eq!(add(Decimal, "0.10", "0.2"), Ok("0.30".to_owned()));
    assert_eq!(add(Double, "1.7e308", "1.7e308"), Err(SumError::Overflow));
    assert_eq!(add(Unsigned, "1", "1"), Err(SumError::Type("unsigned")));
    assert!(matches!(add(Double, "1", "x"), Err(SumError::Text(_))));
}
