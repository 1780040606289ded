//! Lists against a plain deque, through every representation.

use super::*;
use crate::types::Limits;
use crate::types::collection::{Collection, Env};
use ladon_record::KeyHasher;
use proptest::prelude::*;
use std::collections::VecDeque;
use std::ops::ControlFlow::{self, Continue};
use std::sync::atomic::Ordering::Relaxed;

/// Small limits, so that short runs cross them: three elements, or `limits_of_bytes`.
fn few() -> ListLimits {
    ListLimits::of_setting(3)
}

#[derive(Clone, Debug)]
enum Do {
    Push(bool, Vec<Vec<u8>>),
    Pop(bool, usize),
    Set(usize, Vec<u8>),
    Insert(usize, Vec<u8>),
    Remove(usize, usize),
    RemoveEach(u64),
    Trim(usize, usize),
    Depth(usize),
    Reload,
    Snapshot,
}

fn element() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => (-20i64..200).prop_map(|int| int.to_string().into_bytes()),
        1 => any::<i64>().prop_map(|int| int.to_string().into_bytes()),
        1 => any::<i32>().prop_map(|int| int.to_string().into_bytes()),
        4 => prop::collection::vec(any::<u8>(), 0..20),
        // Of several like these a chunk is one that compresses.
        4 => (0..4u8, 60usize..300).prop_map(|(n, len)| vec![n; len]),
        1 => (0..4u8).prop_map(|n| vec![n; if cfg!(miri) { 300 } else { 5000 }]),
    ]
}

fn action() -> impl Strategy<Value = Do> {
    let end = any::<bool>;
    prop_oneof![
        8 => (end(), prop::collection::vec(element(), 1..6)).prop_map(|(e, v)| Do::Push(e, v)),
        6 => (end(), 1usize..4).prop_map(|(e, n)| Do::Pop(e, n)),
        3 => (any::<usize>(), element()).prop_map(|(i, v)| Do::Set(i, v)),
        5 => (any::<usize>(), element()).prop_map(|(i, v)| Do::Insert(i, v)),
        2 => (any::<usize>(), 0usize..6).prop_map(|(i, n)| Do::Remove(i, n)),
        1 => any::<u64>().prop_map(Do::RemoveEach),
        1 => (0usize..4, 0usize..4).prop_map(|(a, b)| Do::Trim(a, b)),
        1 => (0usize..4).prop_map(Do::Depth),
        1 => Just(Do::Reload),
        1 => Just(Do::Snapshot),
    ]
}

fn end_of(front: bool) -> End {
    if front { End::Front } else { End::Back }
}

fn contents(list: &ListValue) -> VecDeque<Vec<u8>> {
    let mut all = VecDeque::new();
    list.for_each(|element| all.push_back(element.to_vec()));
    all
}

fn steps(list: &VecDeque<Vec<u8>>, action: &Do) -> Vec<Step<'static>> {
    fn leak(bytes: &[u8]) -> &'static [u8] {
        // A few kilobytes for the length of a test.
        Box::leak(bytes.to_vec().into_boxed_slice())
    }
    let len = list.len();
    match action {
        Do::Push(front, elements) => {
            vec![Step::Push(end_of(*front), elements.iter().map(|e| leak(e)).collect())]
        }
        Do::Pop(front, count) => vec![Step::Pop(end_of(*front), (*count).min(len))],
        Do::Set(..) if len == 0 => vec![],
        Do::Set(index, element) => vec![Step::Set(index % len, leak(element))],
        Do::Insert(index, element) => vec![Step::Insert(index % (len + 1), leak(element))],
        Do::Remove(index, count) => {
            let index = index % (len + 1);
            vec![Step::Remove(index, (*count).min(len - index))]
        }
        Do::RemoveEach(bits) => {
            vec![Step::RemoveEach((0..len).filter(|i| bits >> (i % 64) & 1 == 1).collect())]
        }
        Do::Trim(front, back) => {
            let front = (*front).min(len);
            vec![Step::Pop(End::Front, front), Step::Pop(End::Back, (*back).min(len - front))]
        }
        Do::Depth(_) | Do::Reload | Do::Snapshot => vec![],
    }
}

fn model(list: &mut VecDeque<Vec<u8>>, step: &Step<'_>) {
    match step {
        Step::Push(End::Front, elements) => {
            elements.iter().for_each(|e| list.push_front(e.to_vec()));
        }
        Step::Push(End::Back, elements) => elements.iter().for_each(|e| list.push_back(e.to_vec())),
        Step::Pop(End::Front, count) => drop(list.drain(..count)),
        Step::Pop(End::Back, count) => list.truncate(list.len() - count),
        Step::Set(index, element) => list[*index] = element.to_vec(),
        Step::Insert(index, element) => list.insert(*index, element.to_vec()),
        Step::Remove(index, count) => drop(list.drain(index..&(index + count))),
        Step::RemoveEach(indexes) => indexes.iter().rev().for_each(|&i| drop(list.remove(i))),
    }
}

fn setting() -> impl Strategy<Value = i64> {
    prop_oneof![1i64..9, Just(-1), Just(-2)]
}

/// Runs with what a list needs to know where the settings are these.
fn with_env<R>(setting: i64, depth: usize, run: impl FnOnce(Env<'_>) -> R) -> R {
    let limits = Limits::default();
    limits.list_size.store(setting, Relaxed);
    limits.list_depth.store(depth, Relaxed);
    run(Env { hasher: &KeyHasher::new(1), limits: &limits })
}

fn agrees(list: &ListValue, plain: &VecDeque<Vec<u8>>) {
    assert_eq!(list.len(), plain.len());
    assert_eq!(&contents(list), plain);
    let mut back = VecDeque::new();
    let _: ControlFlow<()> = list.search(End::Back, |index, element| {
        back.push_front(element.to_vec());
        assert_eq!(index, plain.len() - back.len());
        Continue(())
    });
    assert_eq!(&back, plain);
    for index in 0..plain.len() {
        assert_eq!(list.get(index, |element| element.to_vec()).as_ref(), plain.get(index));
        let needle = Needle::new(&plain[index]);
        assert_eq!(list.get(index, |element| needle.is(element)), Some(true));
        let first = plain.iter().position(|element| element == &plain[index]);
        assert_eq!(list.position(needle), first);
    }
    assert_eq!(list.get(plain.len(), |_| ()), None);
    let mut ranged = Vec::new();
    let middle = plain.len() / 3..plain.len() - plain.len() / 3;
    list.range(middle.clone(), |element| ranged.push(element.to_vec()));
    assert!(plain.range(middle).eq(ranged.iter()));
    if let Repr::Chunked(chunks) = &list.0 {
        let counted: usize = chunks.links().iter().map(Link::count).sum();
        assert_eq!(counted, plain.len());
        assert_eq!(chunks.bytes(), chunks.bytes_by_walking());
        assert!(chunks.links().iter().all(|link| link.count() != 0));
        assert!(chunks.compressed().0, "the chunks at the ends are plain");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 400 }))]

    #[test]
    fn a_list_is_what_a_deque_is(
        setting in setting(),
        mut depth in 0usize..4,
        actions in prop::collection::vec(action(), 0..if cfg!(miri) { 16 } else { 80 }),
    ) {
        let mut list = ListValue::new();
        let mut plain = VecDeque::new();
        let mut snapshots = Vec::new();
        for action in &actions {
            for step in steps(&plain, action) {
                let mut op = Vec::new();
                step.encode(&mut op);
                prop_assert_eq!(Step::decode_all(&op), Some(vec![step.clone()]));
                for cut in (0..op.len()).step_by(if cfg!(miri) { 29 } else { 1 }) {
                    prop_assert!(Step::decode_all(&op[..cut]).is_none_or(|steps| steps.is_empty()));
                }
                prop_assert_eq!(with_env(setting, depth, |env| list.apply_op(&op, env)), Some(()));
                model(&mut plain, &step);
            }
            match action {
                Do::Depth(new) => depth = *new,
                Do::Reload if !plain.is_empty() => {
                    let mut body = Vec::new();
                    list.encode(&mut body);
                    list = with_env(setting, depth, |env| ListValue::decode(&body, env))
                        .expect("it decodes");
                }
                Do::Snapshot => snapshots.push((list.duplicate(), plain.clone())),
                _ => {}
            }
            agrees(&list, &plain);
        }
        for (snapshot, plain) in &snapshots {
            agrees(snapshot, plain);
        }
    }

    #[test]
    fn ends_are_a_deque(
        ends in prop::collection::vec(
            (any::<bool>(), any::<bool>()),
            0..if cfg!(miri) { 150 } else { 2000 },
        ),
    ) {
        let mut list = ListValue::new();
        let mut plain = VecDeque::new();
        for (serial, (push, front)) in ends.into_iter().enumerate() {
            let end = end_of(front);
            if push || serial % 3 == 0 {
                let element = format!("element-{serial}").into_bytes();
                list.expect(end, ListLimits::of_setting(-1), element.len(), 1);
                list.push(end, ListLimits::of_setting(-1), &element);
                if front { plain.push_front(element) } else { plain.push_back(element) }
            } else {
                let popped = list.pop(end, |element| element.to_vec());
                list.settle(ListLimits::of_setting(-1));
                prop_assert_eq!(popped, if front { plain.pop_front() } else { plain.pop_back() });
            }
        }
        agrees(&list, &plain);
    }
}

#[test]
fn the_encoding_changes_where_redis_changes_it() {
    let kib8 = ListLimits::of_setting(-2);
    let push = |list: &mut ListValue, limits, element: &[u8]| {
        list.expect(End::Back, limits, element.len(), 1);
        list.push(End::Back, limits, element);
    };
    let mut list = ListValue::new();
    // 7 bytes of frame, 100 entries of 12, and room up to 8192.
    (0..100).for_each(|n| push(&mut list, kib8, format!("elem-{n:05}").as_bytes()));
    assert_eq!(list.listpack_bytes(), 7 + 100 * 12);
    push(&mut list, kib8, &[b'x'; 8192 - 1207]);
    assert_eq!(list.encoding(), "listpack");
    push(&mut list, kib8, b"x");
    assert_eq!((list.encoding(), list.chunks()), ("quicklist", 2));
    list.remove(100, 2);
    list.settle(kib8);
    assert_eq!(list.encoding(), "listpack");
    let mut list = ListValue::new();
    (0..4).for_each(|_| push(&mut list, few(), b"x"));
    assert_eq!((list.encoding(), list.chunks()), ("quicklist", 2));
    list.pop(End::Back, |_| ());
    list.pop(End::Back, |_| ());
    list.settle(few());
    assert_eq!((list.encoding(), list.len()), ("quicklist", 2));
    list.pop(End::Back, |_| ());
    list.settle(few());
    assert_eq!((list.encoding(), list.len()), ("listpack", 1));
}

#[test]
fn steps_that_do_not_fit_are_refused() {
    let limits = few();
    let mut list = ListValue::new();
    list.push(End::Back, limits, b"a");
    let refused = [
        Step::Pop(End::Front, 2),
        Step::Pop(End::Back, 2),
        Step::Set(1, b"x"),
        Step::Insert(2, b"x"),
        Step::Remove(0, 2),
        Step::Remove(usize::MAX, 2),
        Step::RemoveEach(vec![0, 1]),
    ];
    for step in refused {
        assert_eq!(list.apply(&step, limits), None, "{step:?}");
    }
    with_env(3, 0, |env| {
        assert_eq!(list.apply_op(&[9], env), None);
        assert!(ListValue::decode(&[], env).is_none());
        assert!(ListValue::decode(&[5, b'a'], env).is_none());
    });
}

#[test]
fn a_hundred_short_elements_take_little_more_than_a_listpack() {
    let limits = ListLimits::of_setting(-2);
    for front in [false, true] {
        let mut list = ListValue::new();
        for n in 0..100 {
            list.expect(end_of(front), limits, 10, 1);
            list.push(end_of(front), limits, format!("elem-{n:05}").as_bytes());
        }
        assert!(list.bytes() <= 1207 * 9 / 8, "{}", list.bytes());
    }
}

/// A list of chunks of five similar elements each, and which of its inner chunks are compressed.
fn long(depth: usize, chunks: usize) -> (ListValue, ListLimits) {
    let limits = ListLimits::of_setting(5).with_depth(depth);
    let mut list = ListValue::new();
    for number in 0..5 * chunks {
        let element = format!("a job that waits to be done, with the number {number:05}");
        list.expect(End::Back, limits, element.len(), 1);
        list.push(End::Back, limits, element.as_bytes());
    }
    (list, limits)
}

fn compressed(list: &ListValue) -> usize {
    let Repr::Chunked(chunks) = &list.0 else { return 0 };
    let (ends_are_plain, inner) = chunks.compressed();
    assert!(ends_are_plain);
    assert!(inner.iter().all(|&compressed| compressed), "{inner:?}");
    inner.len()
}

#[test]
fn all_but_the_ends_are_compressed_whatever_happens() {
    let plain = long(0, 40).0;
    assert_eq!((compressed(&plain), plain.compress_depth()), (0, 0));
    for depth in 1..4 {
        let (mut list, limits) = long(depth, 40);
        assert_eq!((compressed(&list), list.compress_depth()), (40 - 2 * depth, depth));
        assert!(list.bytes() < plain.bytes() * 3 / 4, "{} {}", list.bytes(), plain.bytes());
        assert_eq!(list.listpack_bytes(), plain.listpack_bytes());
        assert_eq!(contents(&list), contents(&plain));
        // Reading leaves everything as it is.
        assert_eq!(compressed(&list), 40 - 2 * depth);
        let frozen = list.duplicate();

        list.set(100, limits, b"a job that waits to be done, with another number");
        assert_eq!(compressed(&list), 40 - 2 * depth);
        list.insert(102, limits, b"a job that waits to be done, between two others");
        compressed(&list);
        list.remove(50, 17);
        compressed(&list);
        list.remove_each(&[0, 1, 2, 3, 4, 20, 60, 61, 62, 100]);
        compressed(&list);
        for end in [End::Front, End::Back] {
            list.pop(end, |_| ());
            list.push(end, limits, b"a job that waits to be done, at an end");
            compressed(&list);
        }
        list.remove(0, list.len() - 12);
        compressed(&list);
        list.remove(0, list.len() - 1);
        list.settle(limits);
        assert_eq!(list.encoding(), "listpack");

        assert_eq!(compressed(&frozen), 40 - 2 * depth);
        assert_eq!(contents(&frozen), contents(&plain));
    }
}

#[test]
fn a_list_keeps_the_depth_that_it_began_with() {
    let (mut list, limits) = long(1, 20);
    list.push(End::Back, limits.with_depth(0), b"a job that waits to be done, after the change");
    assert_eq!((list.compress_depth(), compressed(&list)), (1, 19));
    list.remove(0, list.len() - 1);
    list.settle(limits);
    for number in 0..30 {
        let element = format!("a job that waits to be done, with the number {number:05}");
        list.expect(End::Back, limits.with_depth(0), element.len(), 1);
        list.push(End::Back, limits.with_depth(0), element.as_bytes());
    }
    assert_eq!((list.compress_depth(), compressed(&list)), (0, 0));
}
