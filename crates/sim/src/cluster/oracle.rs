//! What clients may have seen, given the lists that the cluster has in the end.
//!
//! A list only grows, so its end says in which order everything was appended, and each reply says how
//! long the list was at least. With that, whether the history of a list is linearizable needs no search.

use super::client::{Asked, Operation, Outcome};
use std::collections::BTreeMap;

/// The lists that the cluster has in the end.
pub(super) type Lists = BTreeMap<String, Vec<String>>;

/// What no order of the requests explains, if anything. `last_reign`: the one that all ended in;
/// `waits_hold`: what a wait says is on enough disks, as no disk was lost for good.
pub(super) fn trouble(
    history: &[Operation],
    lists: &Lists,
    last_reign: Option<u64>,
    waits_hold: bool,
) -> Option<String> {
    let judge = Judge { history, lists, last_reign, waits_hold };
    judge.twice().or_else(|| judge.each()).or_else(|| judge.order()).or_else(|| judge.holes())
}

struct Judge<'a> {
    history: &'a [Operation],
    lists: &'a Lists,
    last_reign: Option<u64>,
    waits_hold: bool,
}

fn told(what: &str, operation: &Operation) -> Option<String> {
    Some(format!("{what}: {}", operation.show()))
}

/// The list of an operation.
fn list_of(operation: &Operation) -> Option<&str> {
    match &operation.asked {
        Asked::Append { list, .. } | Asked::Read { list } => Some(list),
        _ => None,
    }
}

impl Judge<'_> {
    fn list(&self, name: &str) -> &[String] {
        self.lists.get(name).map_or(&[], Vec::as_slice)
    }

    /// Where the value of an append is in the end.
    fn place(&self, operation: &Operation) -> Option<u64> {
        let Asked::Append { list, value } = &operation.asked else { return None };
        self.list(list).iter().position(|it| it == value).map(|at| at as u64)
    }

    fn twice(&self) -> Option<String> {
        self.lists.iter().find_map(|(name, list)| {
            let mut sorted: Vec<&String> = list.iter().collect();
            sorted.sort();
            let twice = sorted.windows(2).find(|pair| pair[0] == pair[1])?;
            Some(format!("{} is in {name} twice: {list:?}", twice[0]))
        })
    }

    /// What is wrong with one operation alone.
    fn each(&self) -> Option<String> {
        self.history.iter().find_map(|operation| self.one(operation))
    }

    fn one(&self, operation: &Operation) -> Option<String> {
        let (_, outcome) = operation.end.as_ref()?;
        let is_quorum = list_of(operation).is_some_and(|list| list.starts_with('q'));
        match outcome {
            Outcome::Pair(first, second) if first != second => {
                told("half of a transaction was shown", operation)
            }
            Outcome::Refused(_) if self.place(operation).is_some() => {
                told("it was refused and done", operation)
            }
            Outcome::Length(length) => match self.place(operation) {
                Some(at) if at + 1 != *length => told("it is elsewhere in the end", operation),
                None if is_quorum => told("it was acknowledged and is lost", operation),
                None if operation.is_firm && self.waits_hold => {
                    told("a wait has confirmed it and it is lost", operation)
                }
                None if operation.reign.1.is_some() && operation.reign.1 == self.last_reign => {
                    told("it is lost without a change of leader", operation)
                }
                _ => None,
            },
            Outcome::List(shown) if is_quorum || operation.by_follower => {
                let list = self.list(list_of(operation)?);
                let is_kept = list.get(..shown.len()) == Some(&shown[..]);
                (!is_kept).then(|| told("what it has shown was taken back", operation))?
            }
            _ => None,
        }
    }

    /// How long the list was when the operation took place, and has to be ever after.
    fn length(&self, operation: &Operation) -> Option<u64> {
        match &operation.end.as_ref()?.1 {
            Outcome::Length(length) => Some(*length),
            Outcome::List(shown) => Some(shown.len() as u64),
            _ => None,
        }
    }

    /// At the gate quorum, nobody sees less than somebody has seen before.
    fn order(&self) -> Option<String> {
        self.lists.keys().filter(|name| name.starts_with('q')).find_map(|name| {
            let on_list = |it: &&Operation| list_of(it) == Some(name);
            let operations: Vec<&Operation> = self.history.iter().filter(on_list).collect();
            // Replies, in the order of time.
            let mut replies: Vec<(u64, u64)> = operations
                .iter()
                .filter_map(|it| Some((it.end.as_ref()?.0, self.length(it)?)))
                .collect();
            replies.sort_unstable();
            let (mut next, mut known) = (0, 0);
            // They are in the order in which they were sent.
            for operation in operations {
                while next < replies.len() && replies[next].0 < operation.begin {
                    known = known.max(replies[next].1);
                    next += 1;
                }
                let length = match self.place(operation) {
                    Some(at) => Some(at),
                    None => self.length(operation),
                };
                if length.is_some_and(|length| length < known) {
                    let what = format!("{known} elements were known before");
                    return told(&what, operation);
                }
            }
            None
        })
    }

    /// At laxer gates, what is lost of a reign is its end.
    fn holes(&self) -> Option<String> {
        let is_lax = |it: &&Operation| {
            it.reign.0.is_some()
                && it.reign.0 == it.reign.1
                && matches!(it.end, Some((_, Outcome::Length(_))))
        };
        let lax: Vec<&Operation> = self.history.iter().filter(is_lax).collect();
        let lost = lax.iter().filter(|it| self.place(it).is_none());
        lost.copied().find_map(|lost| {
            let (end, Outcome::Length(length)) = lost.end.as_ref()? else { return None };
            let is_later = |it: &&&Operation| {
                let same_list = list_of(it) == list_of(lost) && self.length(it) > Some(*length);
                it.reign.0 == lost.reign.0 && (same_list || it.begin > *end)
            };
            let mut later = lax.iter().filter(is_later);
            let kept = later.find(|it| self.place(it).is_some())?;
            told(&format!("it is lost and {} is not", kept.show()), lost)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ladon_record::Gate;

    fn operation(
        list: &str,
        value: Option<&str>,
        times: (u64, u64),
        outcome: Outcome,
    ) -> Operation {
        let list = list.to_owned();
        let asked = match value {
            Some(value) => Asked::Append { list, value: value.to_owned() },
            None => Asked::Read { list },
        };
        Operation {
            client: 0,
            connection: 0,
            place: 0,
            gate: Gate::Quorum,
            asked,
            begin: times.0,
            end: Some((times.1, outcome)),
            reign: (Some(1), Some(1)),
            by_follower: false,
            is_firm: false,
        }
    }

    fn found(history: &[Operation], end: &[&str]) -> Option<String> {
        let list: Vec<String> = end.iter().map(|&it| it.to_owned()).collect();
        let lists = ["q", "w"].map(|name| (name.to_owned(), list.clone())).into();
        trouble(history, &lists, Some(2), true)
    }

    fn list(values: &[&str]) -> Outcome {
        Outcome::List(values.iter().map(|&it| it.to_owned()).collect())
    }

    #[test]
    fn what_is_acknowledged_at_quorum_is_kept_where_it_was() {
        let history = [operation("q", Some("a"), (0, 1), Outcome::Length(1))];
        assert_eq!(found(&history, &["a"]), None);
        assert!(found(&history, &[]).is_some());
        assert!(found(&history, &["b", "a"]).is_some());
        assert!(found(&history, &["a", "a"]).is_some());
    }

    #[test]
    fn nobody_sees_less_than_was_seen_before() {
        let append = operation("q", Some("a"), (0, 1), Outcome::Length(1));
        let stale = |begin| [append.clone(), operation("q", None, (begin, 9), list(&[]))];
        assert!(found(&stale(2), &["a"]).is_some());
        assert_eq!(found(&stale(1), &["a"]), None, "they overlap");
    }

    #[test]
    fn what_was_shown_at_quorum_stays() {
        let shown = [operation("q", None, (0, 1), list(&["a"]))];
        assert_eq!(found(&shown, &["a", "b"]), None);
        assert!(found(&shown, &["b"]).is_some());
    }

    #[test]
    fn only_the_end_of_a_reign_is_lost_at_laxer_gates() {
        let history = [
            operation("w", Some("a"), (0, 1), Outcome::Length(1)),
            operation("w", Some("b"), (2, 3), Outcome::Length(2)),
        ];
        assert_eq!(found(&history, &["a"]), None);
        assert_eq!(found(&history, &[]), None);
        assert!(found(&history, &["b"]).is_some());
        let of_last = history.map(|it| Operation { reign: (Some(2), Some(2)), ..it });
        assert!(found(&of_last, &["a"]).is_some());
    }

    #[test]
    fn what_was_refused_is_not_done() {
        let refused = Outcome::Refused("READONLY".to_owned());
        let history = [operation("w", Some("a"), (0, 1), refused)];
        assert!(found(&history, &["a"]).is_some());
    }
}
