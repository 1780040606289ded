//! HyperLogLogs against registers in a plain array, and against bytes that redis-server 7.0.15
//! made.

use super::sparse::Cursor;
use super::*;
use proptest::prelude::*;

const SPARSE_BYTES_MAX: usize = 3000;

fn add(bytes: &mut Vec<u8>, element: &[u8], sparse_bytes_max: usize) -> Result<bool, Invalid> {
    raise(bytes, position(element), sparse_bytes_max, &mut Cursor::start())
}

fn fnv(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

/// `PFADD h element-0 element-1 ...`, with a `PFCOUNT` after each of these numbers of elements.
#[test]
fn bytes_and_counts_are_those_of_redis() {
    let mut bytes = empty();
    invalidate(&mut bytes);
    let mut number = 0;
    for (elements, length, hash, cardinality) in [
        (0, 18, 0x524b_c36d_036c_0579, 0),
        (1, 21, 0x301d_e892_4104_c45d, 1),
        (2, 24, 0x0de8_b7d5_92ce_2024, 2),
        (3, 27, 0xf90e_0674_33f6_0f4f, 3),
        (10, 48, 0x4c21_8268_c081_e84e, 10),
        (50, 158, 0x1a24_2e48_0308_2777, 50),
        (100, 287, 0x5cb3_00bc_5520_bd2b, 100),
        (300, 692, 0xdcd3_f87e_592c_2476, 299),
        (700, 1355, 0x2556_d907_c364_aeee, 690),
        (1000, 1870, 0xd1b2_4017_d4a8_59ff, 994),
        (1500, 2685, 0xc987_eb75_3263_df20, 1495),
        (2000, 12304, 0x7a8e_a55c_c093_c637, 2002),
        (5000, 12304, 0xb12b_cda3_d2c0_6f93, 4972),
        (20000, 12304, 0x3537_7852_840f_d5fb, 19902),
    ] {
        while number < elements {
            if add(&mut bytes, format!("element-{number}").as_bytes(), SPARSE_BYTES_MAX).unwrap() {
                invalidate(&mut bytes);
            }
            number += 1;
        }
        assert_eq!((bytes.len(), fnv(&bytes)), (length, hash), "after {elements} elements");
        assert_eq!(count(&bytes), Ok(cardinality));
        cache(&mut bytes, cardinality);
        assert_eq!(cached(&bytes), Some(cardinality));
    }
}

#[test]
fn an_element_raises_the_register_that_redis_raises() {
    for (element, index, count) in [
        ("", 5938, 2),
        ("a", 12711, 2),
        ("abc", 9474, 1),
        ("12345678", 10579, 3),
        ("123456789", 9293, 2),
        ("a longer element with 30 bytes", 8565, 2),
    ] {
        assert_eq!(position(element.as_bytes()), Position { index, count }, "{element:?}");
    }
}

fn register(bytes: &[u8], index: usize) -> u8 {
    if encoding(bytes) == Ok(Encoding::Dense) {
        return dense::get(&bytes[HEADER_BYTES..], index);
    }
    let mut first = 0;
    let run = sparse::runs(&bytes[HEADER_BYTES..]).find(|run| {
        first += run.length;
        index < first
    });
    run.expect("a run for each register").value
}

/// Few registers, close together, so that runs meet.
fn positions() -> impl Strategy<Value = Vec<Position>> {
    let index = prop_oneof![0..40usize, 16_340..REGISTERS, 0..REGISTERS];
    let position =
        (index, prop_oneof![1..5u8, 1..=51u8]).prop_map(|(index, count)| Position { index, count });
    prop::collection::vec(position, 0..300)
}

proptest! {
    #[test]
    fn registers_are_maxima(
        positions in positions(),
        sparse_bytes_max in prop_oneof![Just(3000usize), 0..300usize],
    ) {
        let mut bytes = empty();
        let mut model = vec![0u8; REGISTERS];
        for &position in &positions {
            let raised = raise(&mut bytes, position, sparse_bytes_max, &mut Cursor::start());
            let register = &mut model[position.index];
            prop_assert_eq!(raised, Ok(position.count > *register));
            *register = position.count.max(*register);
        }
        let is_high = positions.iter().any(|position| position.count > 32);
        if encoding(&bytes) == Ok(Encoding::Sparse) {
            prop_assert!(!is_high && bytes.len() <= sparse_bytes_max.max(18));
        }
        for (index, &count) in model.iter().enumerate() {
            prop_assert_eq!(register(&bytes, index), count, "register {}", index);
        }
        let mut merged = Registers::new();
        merged.merge(&bytes).unwrap();
        prop_assert_eq!(&merged.as_bytes()[..], &model[..]);
        prop_assert_eq!(count(&bytes), Ok(estimate(&merged.histogram())));
        // Both encodings count the same.
        let before = count(&bytes);
        if encoding(&bytes) == Ok(Encoding::Sparse) {
            make_dense(&mut bytes).unwrap();
            prop_assert_eq!(bytes.len(), dense::BYTES);
        }
        prop_assert_eq!(count(&bytes), before);
    }

    /// A cursor that is carried along makes the same bytes as searching from the beginning.
    #[test]
    fn ascending_registers_need_no_search(
        first in positions(),
        second in positions(),
    ) {
        let mut bytes = empty();
        for position in first.into_iter().filter(|position| position.count <= 32) {
            raise(&mut bytes, position, 1 << 20, &mut Cursor::start()).unwrap();
        }
        let mut second: Vec<Position> =
            second.into_iter().filter(|position| position.count <= 32).collect();
        second.sort_by_key(|position| position.index);
        second.dedup_by_key(|position| position.index);
        let (mut searched, mut carried, mut cursor) = (bytes.clone(), bytes, Cursor::start());
        for position in second {
            let from_start = raise(&mut searched, position, 1 << 20, &mut Cursor::start());
            prop_assert_eq!(raise(&mut carried, position, 1 << 20, &mut cursor), from_start);
            prop_assert_eq!(&carried, &searched);
        }
    }

    /// Whatever a client has written into the string.
    #[test]
    fn any_bytes_are_refused_or_counted(
        runs in prop::collection::vec(any::<u8>(), 0..60),
        is_whole: bool,
        positions in positions(),
    ) {
        let mut bytes = header(Encoding::Sparse).to_vec();
        bytes.extend_from_slice(&runs);
        if is_whole {
            // Fills up what is missing, so that the rest is looked at more often.
            let total: usize = sparse::runs(&runs).map(|run| run.length).sum();
            bytes.resize(bytes.len() + REGISTERS.saturating_sub(total), 0);
        }
        for position in positions {
            let before = bytes.clone();
            if raise(&mut bytes, position, 3000, &mut Cursor::start()).is_err() {
                prop_assert_eq!(&bytes, &before);
            }
        }
        let counted = count(&bytes);
        let merged = Registers::new().merge(&bytes);
        prop_assert_eq!(counted.is_ok(), merged.is_ok());
    }
}
