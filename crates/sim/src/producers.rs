//! Idempotent producers (`XADD ... IDMP`, `IDMPAUTO`): what they send again is in the stream once.
//!
//! A producer outlives its connections and the node's crashes. What it got no answer for, it sends
//! again, on the next connection or while the first attempt is on its way; at times also what was
//! answered. The reference remembers what a stream remembers, so the oracle's order has to explain
//! that each message was added once, that a repetition got the first one's id, and that a crash
//! kept both the entry and the memory of it, or neither.
//!
//! A producer has at most [`WINDOW`] messages without an answer. The streams remember more, so no
//! message may ever be in a stream twice ([`twice`]).

use crate::oracle_commands::{Call, Datum, State};
use ladon_resp::client::Value;
use ladon_testkit::Random;
use ladon_testkit::reference::stream::{IDS_MAX, Id};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

/// Messages of a producer without an answer, at most.
const WINDOW: usize = 3;

// The last that was answered may be sent again after all of these.
const _: () = assert!(WINDOW < IDS_MAX);

/// A producer, and its connection's way to it.
pub(crate) type Shared = Rc<RefCell<Producer>>;

/// One that sends until it knows that each message has arrived.
pub(crate) struct Producer {
    random: Random,
    name: String,
    /// Messages so far.
    serial: u64,
    /// What is without an answer, in the order in which it was sent first.
    unanswered: Vec<Message>,
    /// The last that was answered.
    answered: Option<Call>,
    /// How often something was sent again.
    pub(crate) sent_again: u64,
}

struct Message {
    call: Call,
    /// No attempt is on its way.
    is_lost: bool,
}

impl Producer {
    pub(crate) fn new(seed: u64, number: usize) -> Shared {
        Rc::new(RefCell::new(Producer {
            random: Random::new(seed ^ number as u64),
            name: format!("p{number}"),
            serial: 0,
            unanswered: Vec::new(),
            answered: None,
            sent_again: 0,
        }))
    }

    /// Its connection is gone, and with it all answers.
    pub(crate) fn reconnects(&mut self) {
        self.unanswered.iter_mut().for_each(|message| message.is_lost = true);
    }

    /// What it sends now, if anything.
    pub(crate) fn call(&mut self) -> Option<Call> {
        if !self.random.chance(1, 3) {
            return None;
        }
        if let Some(message) = self.unanswered.iter_mut().find(|message| message.is_lost) {
            message.is_lost = false;
            self.sent_again += 1;
            return Some(message.call.clone());
        }
        if self.random.chance(1, 5) {
            // It lost its patience, or the answer.
            let on_its_way = self.unanswered.last().map(|message| &message.call);
            let again = on_its_way.or(self.answered.as_ref()).cloned();
            self.sent_again += u64::from(again.is_some());
            return again;
        }
        if self.unanswered.len() >= WINDOW {
            return None;
        }
        self.serial += 1;
        let call = self.message();
        self.unanswered.push(Message { call: call.clone(), is_lost: false });
        Some(call)
    }

    fn message(&mut self) -> Call {
        let key = format!("y{}", self.random.below(2));
        let (number, value) = (self.serial.to_string(), format!("{}:{}", self.name, self.serial));
        let mut words = vec!["XADD", &key];
        if self.random.chance(1, 6) {
            words.extend(["MAXLEN", "4"]);
        }
        match self.random.chance(1, 2) {
            true => words.extend(["IDMP", &self.name, &number]),
            false => words.extend(["IDMPAUTO", &self.name]),
        }
        words.extend(["*", "f", &value]);
        words.into_iter().map(|word| word.as_bytes().to_vec()).collect()
    }

    /// Takes in the reply to one of its calls.
    pub(crate) fn learns(&mut self, call: &Call, reply: &Value) {
        if let Value::Bulk(_) = reply {
            if self.unanswered.iter().any(|message| message.call == *call) {
                self.unanswered.retain(|message| message.call != *call);
                self.answered = Some(call.clone());
            }
        } else if let Some(it) = self.unanswered.iter_mut().find(|it| it.call == *call) {
            // It was refused.
            it.is_lost = true;
        }
    }
}

/// Whether a call is a producer's.
pub(crate) fn is_sent(call: &Call) -> bool {
    call[0] == b"XADD" && option(call).is_some()
}

/// The position of `IDMP` or `IDMPAUTO`.
fn option(call: &Call) -> Option<usize> {
    let options = &call[..call.len() - 3];
    options.iter().position(|word| matches!(word.as_slice(), b"IDMP" | b"IDMPAUTO"))
}

/// Writes the idempotent id that the node computes into the call, for an oracle that does not.
pub(crate) fn name_id(call: &mut Call) {
    if call[0] == b"XADD"
        && let Some(at) = option(call)
        && call[at] == b"IDMPAUTO"
    {
        let words: Vec<&[u8]> = call[at + 3..].iter().map(Vec::as_slice).collect();
        let id = ladon_commands::automatic_id(&words).to_vec();
        call[at] = b"IDMP".to_vec();
        call.insert(at + 2, id);
    }
}

/// The id under which the stream remembers what a call has sent, though the entry may be trimmed
/// away since. The call's idempotent id is named already.
pub(crate) fn remembered(data: &State, call: &Call) -> Option<Id> {
    let at = option(call).filter(|_| call[0] == b"XADD")?;
    let Some(Datum::Stream(stream)) = data.keys.get(&call[1]) else { return None };
    stream.sent.find(&call[at + 1], &call[at + 2])
}

/// What is in a stream twice, if anything. No two messages are alike.
pub(crate) fn twice(data: &State) -> Option<String> {
    data.keys.iter().find_map(|(key, datum)| {
        let Datum::Stream(stream) = datum else { return None };
        let mut seen = BTreeSet::new();
        let again = stream.entries.iter().find(|(_, words)| !seen.insert(*words));
        again.map(|(id, words)| {
            let (key, words) = (key.escape_ascii(), words.concat());
            format!("{} is in {key} twice, the second time at {id:?}", words.escape_ascii())
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::Operation;
    use crate::oracle::{Verdict, judge};
    use crate::streams::resolve;

    /// Each: number of the message, begin, end and the id that was answered.
    type Attempt = (u64, u64, Option<(u64, &'static str)>);

    /// Whether attempts of a producer explain the data that the calls `kept` lead to; all of it is
    /// on the disk.
    fn explains(option: &str, attempts: &[Attempt], kept: &[(u64, &str)]) -> bool {
        let call = |number: u64, id: &str| -> Call {
            let value = format!("p0:{number}");
            let (mut words, number) = (vec!["XADD", "y0", option, "p0"], number.to_string());
            if option == "IDMP" {
                words.push(&number);
            }
            words.extend([id, "f", &value]);
            words.into_iter().map(|word| word.as_bytes().to_vec()).collect()
        };
        let mut after = State::new();
        for (number, id) in kept {
            let mut call = call(*number, id);
            name_id(&mut call);
            crate::oracle_commands::apply(&mut after, &call);
        }
        let duplicates = attempts.iter().filter(|(.., end)| end.is_some()).count();
        if let Some(Datum::Stream(stream)) = after.keys.get_mut(&b"y0"[..]) {
            stream.sent.duplicates = duplicates.saturating_sub(kept.len()) as u64;
        }
        let mut history: Vec<Operation> = attempts
            .iter()
            .map(|(number, begin, end)| Operation {
                end: end.map(|(at, id)| (at, Value::Bulk(id.into()))),
                ..Operation::new(vec![call(*number, "*")], *begin)
            })
            .collect();
        resolve(&mut history, &after);
        judge(&history, &[], &State::new(), &after) == Verdict::Explained
    }

    #[test]
    fn a_repetition_gets_the_id_of_the_first() {
        for option in ["IDMP", "IDMPAUTO"] {
            let twice = |second| [(1, 1, Some((2, "5-0"))), (1, 3, Some((4, second)))];
            assert!(explains(option, &twice("5-0"), &[(1, "5-0")]));
            assert!(!explains(option, &twice("7-0"), &[(1, "5-0")]));
            assert!(!explains(option, &twice("7-0"), &[(1, "7-0")]));
            let both = [(1, 1, Some((2, "5-0"))), (2, 3, Some((4, "7-0")))];
            assert!(explains(option, &both, &[(1, "5-0"), (2, "7-0")]));
            assert!(!explains(option, &both, &[(1, "5-0")]), "what was answered is there");
        }
    }

    #[test]
    fn what_had_no_answer_is_there_once_or_not() {
        let attempt = [(1, 1, None)];
        assert!(explains("IDMP", &attempt, &[(1, "5-0")]));
        assert!(explains("IDMP", &attempt, &[]));
    }

    #[test]
    fn what_had_no_answer_may_be_trimmed_away() {
        let words = |text: &str| text.split(' ').map(|it| it.as_bytes().to_vec()).collect::<Call>();
        let mut after = State::new();
        crate::oracle_commands::apply(&mut after, &words("XADD y0 IDMP p0 1 5-0 f p0:1"));
        let trims = "XADD y0 MAXLEN 1 IDMP p0 2 5-1 f p0:2";
        crate::oracle_commands::apply(&mut after, &words(trims));
        let mut history = [
            Operation::new(vec![words("XADD y0 IDMP p0 1 * f p0:1")], 1),
            Operation::new(vec![words(trims)], 1),
        ];
        resolve(&mut history, &after);
        assert_eq!(judge(&history, &[], &State::new(), &after), Verdict::Explained);
    }

    #[test]
    fn an_entry_without_its_memory_is_not_explained() {
        let words = |text: &str| text.split(' ').map(|it| it.as_bytes().to_vec()).collect::<Call>();
        let mut after = State::new();
        crate::oracle_commands::apply(&mut after, &words("XADD y0 5-0 f p0:1"));
        let sent = words("XADD y0 IDMP p0 1 * f p0:1");
        let end = Some((2, Value::Bulk(b"5-0".to_vec())));
        let mut history = [Operation { end, ..Operation::new(vec![sent], 1) }];
        resolve(&mut history, &after);
        assert_eq!(judge(&history, &[], &State::new(), &after), Verdict::Unexplained);
    }

    #[test]
    fn what_is_there_twice_is_seen() {
        let add = |data: &mut State, call: &str| {
            let call = call.split(' ').map(|it| it.as_bytes().to_vec()).collect();
            crate::oracle_commands::apply(data, &call);
        };
        let mut data = State::new();
        add(&mut data, "XADD y0 1-0 f a");
        add(&mut data, "XADD y0 2-0 f b");
        add(&mut data, "XADD y1 2-0 f a");
        assert_eq!(twice(&data), None);
        add(&mut data, "XADD y0 3-0 f a");
        assert!(twice(&data).is_some_and(|what| what.contains("(3, 0)")));
    }
}
