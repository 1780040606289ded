//! Streams against plain maps.

use super::*;
use crate::types::Limits;
use crate::types::collection::{Collection, Env};
use ladon_record::KeyHasher;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering::Relaxed;

/// Consumer of a released entry.
const NOBODY: u8 = 0;

/// A pending entry: consumer, when, how often.
type ModelPending = BTreeMap<StreamId, (u8, u64, u64)>;

#[derive(Clone, Debug, Default, PartialEq)]
struct ModelGroup {
    last: StreamId,
    read: Option<u64>,
    pending: ModelPending,
    consumers: BTreeMap<u8, (u64, Option<u64>)>,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Model {
    entries: BTreeMap<StreamId, Vec<Vec<u8>>>,
    last: StreamId,
    deleted: StreamId,
    added: u64,
    groups: BTreeMap<u8, ModelGroup>,
    idempotence: Option<ModelIdempotence>,
}

/// What is remembered: producer, idempotent id, entry.
type ModelSent = (Vec<u8>, Vec<u8>, StreamId);

#[derive(Clone, Debug, PartialEq)]
struct ModelIdempotence {
    memory: Memory,
    sent: Vec<ModelSent>,
    added: u64,
    duplicates: u64,
}

impl ModelIdempotence {
    fn of(idempotence: &Idempotence) -> ModelIdempotence {
        let owned =
            |(producer, id, entry): (&[u8], &[u8], _)| (producer.to_vec(), id.to_vec(), entry);
        let model = ModelIdempotence {
            memory: idempotence.memory(),
            sent: idempotence.iter().map(owned).collect(),
            added: idempotence.added(),
            duplicates: idempotence.duplicates(),
        };
        let producers: BTreeSet<_> = model.sent.iter().map(|sent| &sent.0).collect();
        assert_eq!(idempotence.producers(), producers.len());
        assert_eq!(idempotence.ids(), model.sent.len());
        model
    }

    fn remember(&mut self, producer: &[u8], id: &[u8], entry: StreamId) {
        let of_it = self.sent.iter().filter(|sent| sent.0 == producer).count();
        if of_it == self.memory.ids_max {
            let oldest = self.sent.iter().position(|sent| sent.0 == producer);
            self.sent.remove(oldest.expect("there are some"));
        }
        self.sent.push((producer.to_vec(), id.to_vec(), entry));
        self.added += 1;
    }
}

impl Model {
    fn of(stream: &Stream) -> Model {
        let mut model = Model {
            last: stream.last_id(),
            deleted: stream.max_deleted_id(),
            added: stream.entries_added(),
            ..Model::default()
        };
        model.idempotence = stream.idempotence().map(ModelIdempotence::of);
        let _ = stream.walk::<()>(StreamId::MIN, StreamId::MAX, |entry| {
            model.entries.insert(entry.id, entry.words());
            Continue(())
        });
        for (name, group) in stream.groups() {
            let pending = group.pending_from(StreamId::MIN).map(|(id, pending)| {
                let consumer =
                    group.consumer_of(pending).map_or(NOBODY, |consumer| consumer.name()[0]);
                (*id, (consumer, pending.delivered_ms, pending.count))
            });
            let consumers = group.consumers().map(|consumer| {
                let own = group.pending_with(consumer, StreamId::MIN).count();
                assert_eq!(own, consumer.pending());
                (consumer.name()[0], (consumer.seen_ms, consumer.active_ms))
            });
            let group = ModelGroup {
                last: group.last_id,
                read: group.entries_read,
                pending: pending.collect(),
                consumers: consumers.collect(),
            };
            model.groups.insert(name[0], group);
        }
        model
    }

    fn add(&mut self, id: StreamId, words: Vec<Vec<u8>>) {
        self.entries.insert(id, words);
        self.last = id;
        self.added += 1;
    }

    fn trim(&mut self, trim: &Trim) {
        match trim.threshold {
            Threshold::Length(kept) => {
                while self.entries.len() as u64 > kept {
                    self.entries.pop_first();
                }
            }
            Threshold::Id(first) => self.entries = self.entries.split_off(&first),
        }
    }
}

const LIMITS: StreamLimits = StreamLimits { node_bytes: 300, node_entries: 7 };

fn words_of(kind: u8, number: u64) -> Vec<Vec<u8>> {
    let value = number.wrapping_mul(0x9e37_79b9) >> (number % 60);
    let mut words: Vec<Vec<u8>> = vec![b"a".to_vec(), value.to_string().into_bytes()];
    match kind % 5 {
        0 | 1 => words.extend([b"field".to_vec(), vec![b'x'; (number % 30) as usize]]),
        2 => words.extend([b"1234567".to_vec(), b"-5".to_vec()]),
        3 => words[0] = b"b".to_vec(),
        _ => {}
    }
    words
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 200 }))]

    #[test]
    fn it_does_what_maps_do_and_every_step_is_logged(
        steps in prop::collection::vec(
            (0u8..21, any::<u8>(), 0u64..40, 0u64..40),
            0..if cfg!(miri) { 15 } else { 200 },
        ),
    ) {
        let hasher = KeyHasher::new(1);
        let limits = Limits::default();
        limits.stream_node_entries.store(5, Relaxed);
        let env = Env { hasher: &hasher, limits: &limits };
        let (mut stream, mut model) = (Stream::new(), Model::default());
        // Replays the log with other limits, from a state that was saved on the way.
        let (mut replayed, mut op) = (Stream::new(), Vec::new());
        let (mut frozen, mut frozen_model) = (stream.duplicate(), model.clone());
        for (index, (what, kind, a, b)) in steps.into_iter().enumerate() {
            let now_ms = index as u64;
            let (group_name, consumer_name) = ([b'g' + kind % 2], [b'c' + kind % 3]);
            let (group, consumer) = (&group_name[..], &consumer_name[..]);
            let last = model.last;
            let ids_sent;
            let known = model.groups.get(&group[0]).cloned();
            let step = match what {
                0..=4 => {
                    let id = if a < 20 {
                        StreamId::new(last.ms, last.seq + 1 + a)
                    } else {
                        StreamId::new(last.ms + b + 1, a - 20)
                    };
                    let words = words_of(kind, a * b);
                    model.add(id, words.clone());
                    op.clear();
                    let words: Vec<&[u8]> = words.iter().map(|word| &word[..]).collect();
                    encode_add(id, &words, &mut op);
                    stream.add(LIMITS, id, &words);
                    stream.check();
                    replayed.apply_op(&op, env).expect("it was logged");
                    continue;
                }
                5 | 6 => {
                    let id = model.entries.keys().nth(a as usize).copied();
                    let Some(id) = id else { continue };
                    model.entries.remove(&id);
                    model.deleted = model.deleted.max(id);
                    Step::Remove { ids: vec![id] }
                }
                7 => {
                    let threshold = if kind.is_multiple_of(2) {
                        Threshold::Length(a)
                    } else {
                        Threshold::Id(model.entries.keys().nth(a as usize).copied().unwrap_or(last))
                    };
                    let exact = Trim { threshold, approximate: false, limit: 0 };
                    let rough = Trim { approximate: true, ..exact };
                    prop_assert!(stream.trimmed(&rough) <= stream.trimmed(&exact));
                    let limited = Trim { limit: b, ..rough };
                    let most = if b == 0 { usize::MAX } else { b as usize };
                    prop_assert!(stream.trimmed(&limited) <= most);
                    let before = model.entries.len();
                    model.trim(&exact);
                    let count = before - model.entries.len();
                    prop_assert_eq!(stream.trimmed(&exact), count);
                    Step::Trim { count }
                }
                8 => {
                    let mut set = StreamId::new(last.ms + a, last.seq);
                    if model.entries.is_empty() && kind.is_multiple_of(3) {
                        set.ms = last.ms.saturating_sub(a);
                    }
                    (model.last, model.added) = (set, model.added + b);
                    if let Some(idempotence) = &mut model.idempotence
                        && idempotence.sent.last().is_some_and(|sent| sent.2 > set)
                    {
                        idempotence.sent.clear();
                    }
                    Step::SetId { last: set, added: model.added, deleted: model.deleted }
                }
                9 => match known {
                    None => {
                        let new = ModelGroup { last, read: Some(b), ..ModelGroup::default() };
                        model.groups.insert(group[0], new);
                        Step::CreateGroup { group, last, read: Some(b) }
                    }
                    Some(_) if a == 0 => {
                        model.groups.remove(&group[0]);
                        Step::RemoveGroup { group }
                    }
                    Some(_) => {
                        let first = model.entries.keys().next().copied().unwrap_or_default();
                        let of = model.groups.get_mut(&group[0]).expect("known");
                        (of.last, of.read) = (first, None);
                        Step::SetGroup { group, last: first, read: None }
                    }
                },
                10 => {
                    let Some(of) = model.groups.get_mut(&group[0]) else { continue };
                    of.consumers.entry(consumer[0]).or_default().0 = now_ms;
                    Step::See { group, consumer, at_ms: now_ms }
                }
                11 if a < 5 => {
                    let Some(of) = model.groups.get_mut(&group[0]) else { continue };
                    if of.consumers.remove(&consumer[0]).is_none() {
                        continue;
                    }
                    of.pending.retain(|_, pending| pending.0 != consumer[0]);
                    Step::RemoveConsumer { group, consumer }
                }
                11 | 12 => {
                    let Some(of) = model.groups.get_mut(&group[0]) else { continue };
                    let Some(member) = of.consumers.get_mut(&consumer[0]) else { continue };
                    let from = (std::ops::Bound::Excluded(of.last), std::ops::Bound::Unbounded);
                    let ids: Vec<_> =
                        model.entries.range(from).take(1 + a as usize).map(|(id, _)| *id).collect();
                    let Some(&last) = ids.last() else { continue };
                    member.1 = Some(now_ms);
                    (of.last, of.read) = (last, Some(b));
                    of.pending.extend(ids.iter().map(|id| (*id, (consumer[0], now_ms, 1))));
                    Step::Deliver { group, consumer, at_ms: now_ms, last, read: Some(b) }
                }
                13 => {
                    let Some(of) = model.groups.get_mut(&group[0]) else { continue };
                    let ids: Vec<_> =
                        of.pending.keys().skip(a as usize % 4).take(b as usize).copied().collect();
                    of.pending.retain(|id, _| !ids.contains(id));
                    Step::Acknowledge { group, ids }
                }
                14 => {
                    let Some(of) = model.groups.get_mut(&group[0]) else { continue };
                    let Some(member) = of.consumers.get_mut(&consumer[0]) else { continue };
                    let Some(&id) = model.entries.keys().nth(a as usize) else { continue };
                    member.1 = Some(now_ms);
                    of.pending.insert(id, (consumer[0], b, a));
                    let claimed = vec![Claimed { id, delivered_ms: b, count: a }];
                    Step::Claim { group, consumer, at_ms: now_ms, claimed }
                }
                15 => {
                    let Some(of) = model.groups.get_mut(&group[0]) else { continue };
                    let ids = of.pending.keys().skip(a as usize % 4).take(b as usize % 3);
                    let mut ids: Vec<StreamId> = ids.copied().collect();
                    ids.extend(model.entries.keys().nth(a as usize));
                    of.pending.extend(ids.iter().map(|id| (*id, (NOBODY, 0, a))));
                    Step::Release { group, released: ids.into_iter().map(|id| (id, a)).collect() }
                }
                17 if model.idempotence.is_none() || a < 10 => {
                    let memory = Memory { duration_s: 1 + a, ids_max: 1 + b as usize % 5 };
                    let counts = model.idempotence.map_or((0, 0), |it| (it.added, it.duplicates));
                    let (added, duplicates) = counts;
                    let sent = Vec::new();
                    model.idempotence = Some(ModelIdempotence { memory, sent, added, duplicates });
                    Step::SetMemory(memory)
                }
                17 => {
                    let Some(idempotence) = &mut model.idempotence else { continue };
                    idempotence.duplicates += 1;
                    Step::Duplicate
                }
                18 | 19 => {
                    let Some(idempotence) = &mut model.idempotence else { continue };
                    if idempotence.sent.last().is_some_and(|sent| sent.2 >= last) {
                        continue;
                    }
                    let known = idempotence.sent.iter();
                    if known.clone().any(|sent| sent.0 == consumer && sent.1 == [a as u8]) {
                        continue;
                    }
                    idempotence.remember(consumer, &[a as u8], last);
                    ids_sent = [a as u8];
                    Step::Remember { producer: consumer, id: &ids_sent }
                }
                20 => {
                    let Some(idempotence) = &mut model.idempotence else { continue };
                    let count = idempotence.sent.len().min(a as usize % 4);
                    idempotence.sent.drain(..count);
                    Step::Forget { count }
                }
                _ => {
                    let Some(of) = model.groups.get_mut(&group[0]) else { continue };
                    if !of.consumers.contains_key(&consumer[0]) {
                        continue;
                    }
                    let own = of.pending.iter_mut().filter(|(_, pending)| pending.0 == consumer[0]);
                    for (id, pending) in own.take(b as usize) {
                        if model.entries.contains_key(id) {
                            (pending.1, pending.2) = (now_ms, pending.2 + 1);
                        }
                    }
                    let first = StreamId::MIN;
                    Step::Redeliver { group, consumer, at_ms: now_ms, first, count: b }
                }
            };
            stream.apply(&step, env).expect("it fits");
            if kind.is_multiple_of(4) {
                stream.index_by_time(group);
            }
            stream.check();
            check_times(&stream, &model, group, b);
            check_sent(&stream, &model, &hasher);
            op.clear();
            step.encode(&mut op);
            let mut input = &op[..];
            prop_assert_eq!(Step::take(&mut input), Some(step));
            prop_assert!(input.is_empty());
            prop_assert!(Stream::show_op(&op).is_some());
            replayed.apply_op(&op, env).expect("it was logged");
            if kind.is_multiple_of(16) {
                prop_assert_eq!(Model::of(&frozen), frozen_model);
                (frozen, frozen_model) = (stream.duplicate(), model.clone());
                let mut body = Vec::new();
                stream.encode(&mut body);
                replayed = Stream::decode(&body, env).expect("it was encoded");
                replayed.check();
                prop_assert!(Stream::show_body(&body).is_some());
            }
        }
        prop_assert_eq!(Model::of(&stream), model.clone());
        prop_assert_eq!(Model::of(&replayed), model.clone());
        prop_assert_eq!(Model::of(&frozen), frozen_model);
        prop_assert_eq!(stream.len(), model.entries.len());
        prop_assert_eq!(stream.last_entry_id(), model.entries.keys().next_back().copied());
        check_ranges(&stream, &model);
    }
}

fn check_times(stream: &Stream, model: &Model, group: &[u8], until_ms: u64) {
    let (Some(found), Some(known)) = (stream.group(group), model.groups.get(&group[0])) else {
        return;
    };
    let mut times: Vec<_> = known.pending.iter().map(|(id, pending)| (pending.1, *id)).collect();
    times.sort_unstable();
    assert_eq!(found.oldest_delivery(), times.first().map(|(at_ms, _)| *at_ms));
    let old = times.iter().filter(|(at_ms, _)| *at_ms <= until_ms).map(|(_, id)| *id);
    assert_eq!(found.delivered_until(until_ms, 3), old.take(3).collect::<Vec<_>>());
}

fn check_sent(stream: &Stream, model: &Model, hasher: &KeyHasher) {
    let (Some(found), Some(known)) = (stream.idempotence(), &model.idempotence) else { return };
    for producer in [b"c", b"d", b"e"] {
        for id in 0..40 {
            let sent = known.sent.iter().find(|sent| sent.0 == producer && sent.1 == [id]);
            assert_eq!(found.entry(hasher, producer, &[id]), sent.map(|sent| sent.2));
        }
    }
    let duration_ms = known.memory.duration_s * 1000;
    for now_ms in [0, 5_000, 20_000] {
        let due = known.sent.iter().filter(|sent| sent.2.ms + duration_ms <= now_ms).count();
        assert_eq!(found.due(now_ms, 3), due.min(3));
    }
    let next = known.sent.first().map_or(0, |sent| sent.2.ms + duration_ms);
    assert_eq!(found.next_expiry(), next);
}

fn check_ranges(stream: &Stream, model: &Model) {
    let mut bounds: Vec<StreamId> = model.entries.keys().step_by(3).copied().collect();
    bounds.extend([StreamId::MIN, StreamId::MAX]);
    bounds.extend(model.entries.keys().step_by(5).filter_map(|id| id.next()));
    for &first in &bounds {
        assert_eq!(stream.contains(first), model.entries.contains_key(&first));
        assert_eq!(
            stream.get(first).map(|entry| entry.words()).as_ref(),
            model.entries.get(&first)
        );
        for &last in &bounds {
            let expected: Vec<StreamId> = match first <= last {
                true => model.entries.range(first..=last).map(|(id, _)| *id).collect(),
                false => Vec::new(),
            };
            let mut found = Vec::new();
            let _ = stream.walk::<()>(first, last, |entry| {
                found.push(entry.id);
                Continue(())
            });
            assert_eq!(found, expected, "{first:?} {last:?}");
            found.clear();
            let _ = stream.walk_reversed::<()>(first, last, |entry| {
                found.push(entry.id);
                Continue(())
            });
            found.reverse();
            assert_eq!(found, expected, "{first:?} {last:?} reversed");
            assert_eq!(stream.count(first, last, usize::MAX), expected.len());
            assert_eq!(stream.count(first, last, 4), expected.len().min(4));
        }
    }
}

#[test]
fn damaged_bodies_are_refused() {
    let hasher = KeyHasher::new(1);
    let limits = Limits::default();
    let env = Env { hasher: &hasher, limits: &limits };
    let mut stream = Stream::new();
    for ms in 1..40 {
        let words = words_of(ms as u8, ms);
        let words: Vec<&[u8]> = words.iter().map(|word| &word[..]).collect();
        stream.add(LIMITS, StreamId::new(ms, 3), &words);
    }
    let (group, consumer) = (&b"g"[..], &b"c"[..]);
    for step in [
        Step::CreateGroup { group, last: StreamId::MIN, read: None },
        Step::See { group, consumer, at_ms: 5 },
        Step::Deliver { group, consumer, at_ms: 6, last: StreamId::new(9, 9), read: Some(9) },
        Step::SetMemory(Memory { duration_s: 5, ids_max: 3 }),
        Step::Remember { producer: b"p", id: b"i" },
    ] {
        stream.apply(&step, env).expect("it fits");
    }
    let mut body = Vec::new();
    stream.encode(&mut body);
    assert_eq!(Model::of(&Stream::decode(&body, env).unwrap()), Model::of(&stream));
    // What producers have sent is absent where there were none.
    let mut plain = stream.duplicate();
    plain.0.idempotence = None;
    let mut plain_body = Vec::new();
    plain.encode(&mut plain_body);
    assert!(body.starts_with(&plain_body));
    assert_eq!(Model::of(&Stream::decode(&plain_body, env).unwrap()), Model::of(&plain));
    for cut in (0..body.len()).filter(|cut| *cut != plain_body.len()) {
        assert!(Stream::decode(&body[..cut], env).is_none(), "cut at {cut}");
        assert!(Stream::show_body(&body[..cut]).is_none(), "cut at {cut}");
    }
    for at in 0..body.len() {
        for flip in [1, 0x80, 0xff] {
            let mut damaged = body.clone();
            damaged[at] ^= flip;
            if let Some(read) = Stream::decode(&damaged, env) {
                read.check();
                Model::of(&read);
            }
            let _ = Stream::show_body(&damaged);
        }
    }
}

#[test]
fn steps_that_do_not_fit_are_refused() {
    let hasher = KeyHasher::new(1);
    let limits = Limits::default();
    let env = Env { hasher: &hasher, limits: &limits };
    let mut stream = Stream::new();
    stream.add(LIMITS, StreamId::new(5, 0), &[b"a", b"1"]);
    let (group, consumer) = (&b"g"[..], &b"c"[..]);
    let create = Step::CreateGroup { group, last: StreamId::MIN, read: None };
    stream.apply(&create, env).unwrap();
    let remember = Step::Remember { producer: b"p", id: b"i" };
    for step in [remember.clone(), Step::Duplicate, Step::Forget { count: 1 }] {
        assert_eq!(stream.apply(&step, env), None, "{step:?} without a memory");
    }
    let memory = Memory { duration_s: 1, ids_max: 1 };
    stream.apply(&Step::SetMemory(memory), env).unwrap();
    stream.apply(&remember, env).unwrap();
    let words = || vec![&b"a"[..], b"1"];
    let none = StreamId::MIN;
    for step in [
        Step::Add { id: StreamId::new(5, 0), words: words() },
        Step::Remove { ids: vec![StreamId::new(4, 0)] },
        Step::SetId { last: StreamId::new(4, 0), added: 1, deleted: none },
        create.clone(),
        Step::SetGroup { group: b"x", last: none, read: None },
        Step::RemoveGroup { group: b"x" },
        Step::RemoveConsumer { group, consumer },
        Step::Deliver { group, consumer, at_ms: 0, last: none, read: None },
        Step::Deliver { group, consumer, at_ms: 0, last: StreamId::MAX, read: None },
        Step::Redeliver { group, consumer, at_ms: 0, first: none, count: 1 },
        Step::Acknowledge { group, ids: vec![none] },
        Step::Claim { group, consumer, at_ms: 0, claimed: Vec::new() },
        remember,
        Step::SetMemory(Memory { duration_s: 0, ..memory }),
        Step::SetMemory(Memory { duration_s: 86_401, ..memory }),
        Step::SetMemory(Memory { ids_max: 0, ..memory }),
        Step::SetMemory(Memory { ids_max: 10_001, ..memory }),
    ] {
        assert_eq!(stream.apply(&step, env), None, "{step:?}");
    }
    for op in [
        &[][..],
        &[0],
        &[1, 5, 0, 1],
        &[1, 5, 0, 3, 0, 0, 0],
        &[2, 200],
        &[15],
        &[15, 1],
        &[16, 0],
        &[18],
        &[19],
        &[14, 0],
        &[13, 0, 0],
    ] {
        assert_eq!(Step::take(&mut &op[..]), None, "{op:?}");
    }
}

#[test]
fn searches_find_entries_anywhere_in_a_long_node() {
    let limits = StreamLimits::new(0, 0);
    let mut stream = Stream::new();
    let mut model = BTreeSet::new();
    for round in 0..4u64 {
        for number in 1..=21 {
            let id = StreamId::new(1000 * round + 2 * number, number % 2);
            stream.add(limits, id, &[b"field", b"value"]);
            model.insert(id);
            check_searches(&stream, &model);
        }
        for at in [20, 9, 0] {
            let id = model.iter().copied().nth(at).expect("an entry");
            assert!(stream.remove(id) && model.remove(&id));
            check_searches(&stream, &model);
        }
        stream.remove_first(5);
        let kept_from = *model.iter().nth(5).expect("an entry");
        model = model.split_off(&kept_from);
        check_searches(&stream, &model);
    }
    assert_eq!(stream.nodes(), 1);
}

/// Looks for each entry, and for ids around each.
fn check_searches(stream: &Stream, model: &BTreeSet<StreamId>) {
    stream.check();
    let near = model.iter().flat_map(|id| [id.previous(), Some(*id), id.next()]).flatten();
    for id in near.chain([StreamId::MIN, StreamId::MAX]) {
        let is_there = model.contains(&id);
        assert_eq!(stream.contains(id), is_there);
        assert_eq!(stream.get(id).map(|entry| entry.id), is_there.then_some(id));
        let mut walked = Vec::new();
        let _ = stream.walk::<()>(id, StreamId::MAX, |entry| {
            walked.push(entry.id);
            Continue(())
        });
        assert!(walked.iter().eq(model.range(id..)), "from {id:?}");
    }
}

#[test]
fn repeated_fields_cost_nearly_nothing() {
    let limits = StreamLimits { node_bytes: 4096, node_entries: 100 };
    let mut stream = Stream::new();
    for number in 0..100_000u64 {
        let id = StreamId::new(1_700_000_000_000 + number, 0);
        let value = number.to_string();
        let words: [&[u8]; 6] =
            [b"temperature", value.as_bytes(), b"humidity", value.as_bytes(), b"station", b"x1"];
        stream.add(limits, id, &words);
    }
    assert!(stream.bytes() < 100_000 * 20, "{}", stream.bytes());
}

/// What format 1 holds, byte for byte: these never change.
#[test]
fn bodies_and_ops_of_format_1_read() {
    let hasher = KeyHasher::new(1);
    let limits = Limits::default();
    let env = Env { hasher: &hasher, limits: &limits };
    let op = b"\x01\x05\x01\x02\x01f\x01v\
        \x05\x01g\x00\x00\x01\
        \x0f\x64\x02\
        \x10\x01p\x03one\
        \x01\x06\x00\x02\x01f\x01w\
        \x10\x01q\x03two\
        \x11\
        \x01\x07\x00\x02\x01f\x01x\
        \x10\x01p\x03six\
        \x12\x01";
    let mut stream = Stream::new();
    stream.apply_op(op, env).expect("format 1");
    stream.check();
    let sent = vec![
        (b"q".to_vec(), b"two".to_vec(), StreamId::new(6, 0)),
        (b"p".to_vec(), b"six".to_vec(), StreamId::new(7, 0)),
    ];
    let memory = Memory { duration_s: 100, ids_max: 2 };
    let expected = ModelIdempotence { memory, sent, added: 3, duplicates: 1 };
    assert_eq!(Model::of(&stream).idempotence, Some(expected));
    let older = b"\x07\x00\x03\x00\x00\
        \x01\x05\x01\x00\x12\x01\x02f\x01\x00\x00\x02v\x01\x01\x00\x02w\x01\x02\x00\x02x\
        \x01\x01g\x00\x00\x01\x00\x00";
    let sent = b"\x64\x02\x03\x01\x02\x01p\x01\x07\x00\x03six\x01q\x01\x06\x00\x03two";
    let newer = [&older[..], sent].concat();
    let mut body = Vec::new();
    stream.encode(&mut body);
    assert_eq!(body.escape_ascii().to_string(), newer.escape_ascii().to_string());
    assert_eq!(Model::of(&Stream::decode(&newer, env).unwrap()), Model::of(&stream));
    // Before there were idempotent producers, a body ended here.
    stream.0.idempotence = None;
    assert_eq!(Model::of(&Stream::decode(older, env).unwrap()), Model::of(&stream));
}
