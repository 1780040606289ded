//! The loops against one that looks at a bit at a time.

use super::*;
use proptest::prelude::*;

fn bit(bytes: &[u8], at: u64) -> bool {
    bytes.get((at / 8) as usize).is_some_and(|byte| byte & 0x80 >> (at % 8) != 0)
}

/// Mostly long runs, to reach the code that skips blocks.
fn strings() -> impl Strategy<Value = Vec<u8>> {
    let run = (prop_oneof![Just(0u8), Just(0xff), any::<u8>()], 1usize..90);
    prop::collection::vec(run, 1..5).prop_map(|runs| {
        runs.into_iter().flat_map(|(byte, length)| std::iter::repeat_n(byte, length)).collect()
    })
}

proptest! {
    #[test]
    fn counts_and_positions(bytes in strings(), ends in any::<(u64, u64)>(), wanted: bool) {
        let bits = bytes.len() as u64 * 8;
        let (a, b) = (ends.0 % bits, ends.1 % bits);
        let (first, last) = (a.min(b), a.max(b));
        let ones = (first..=last).filter(|&at| bit(&bytes, at)).count() as u64;
        prop_assert_eq!(count_ones(&bytes, first, last), ones);
        let found = (first..=last).find(|&at| bit(&bytes, at) == wanted);
        prop_assert_eq!(find(&bytes, first, last, wanted), found);
        // What a processor without vectors would count.
        let all = (0..bits).filter(|&at| bit(&bytes, at)).count() as u64;
        prop_assert_eq!(count::portable(&bytes), all);
    }

    #[test]
    fn combinations(
        sources in prop::collection::vec(strings(), 1..5),
        long in any::<bool>(),
    ) {
        // Beyond a block, too.
        let sources: Vec<Vec<u8>> = sources
            .into_iter()
            .map(|source| if long { source.repeat(60) } else { source })
            .collect();
        let sources: Vec<&[u8]> = sources.iter().map(Vec::as_slice).collect();
        check(Operation::And, &sources, |first, others| first && others.iter().all(|&on| on));
        check(Operation::Or, &sources, |first, others| first || others.iter().any(|&on| on));
        check(Operation::Xor, &sources, |first, others| {
            others.iter().fold(first, |odd, on| odd ^ on)
        });
        check(Operation::Not, &sources[..1], |first, _| !first);
        check(Operation::Diff, &sources, |first, others| first && !others.contains(&true));
        check(Operation::Diff1, &sources, |first, others| !first && others.contains(&true));
        check(Operation::AndOr, &sources, |first, others| first && others.contains(&true));
        check(Operation::One, &sources, |first, others| {
            usize::from(first) + others.iter().filter(|&&on| on).count() == 1
        });
    }
}

fn check(operation: Operation, sources: &[&[u8]], expected: fn(bool, &[bool]) -> bool) {
    let result = combine(operation, sources);
    assert_eq!(result.len(), sources.iter().map(|source| source.len()).max().unwrap());
    for at in 0..result.len() as u64 * 8 {
        let bits: Vec<bool> = sources.iter().map(|source| bit(source, at)).collect();
        assert_eq!(bit(&result, at), expected(bits[0], &bits[1..]), "{operation:?} bit {at}");
    }
}
