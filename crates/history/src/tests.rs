//! Histories that must be explained and histories that must be refused, and all small ones beside
//! the definition.

use super::*;
use ladon_testkit::Random;

#[derive(Clone, Copy, Debug)]
enum Cell {
    Set(u8),
    Get,
    /// Adds one, and tells the sum.
    Add,
    /// Takes another value if it has the first.
    Swap(u8, u8),
}

impl Call for Cell {
    type State = u8;
    type Answer = u8;

    fn run(&self, state: &mut u8) -> u8 {
        match *self {
            Cell::Set(value) => {
                *state = value;
                0
            }
            Cell::Get => *state,
            Cell::Add => {
                *state = state.wrapping_add(1);
                *state
            }
            Cell::Swap(from, to) => {
                let was = *state;
                if was == from {
                    *state = to;
                }
                was
            }
        }
    }
}

use Cell::{Add, Get, Set, Swap};

fn known(call: Cell, began: u64, ended: u64, answer: u8) -> Operation<Cell> {
    Operation { call, began, ended: Some((ended, answer)) }
}

fn unknown(call: Cell, began: u64) -> Operation<Cell> {
    Operation { call, began, ended: None }
}

fn check(operations: &[Operation<Cell>]) -> bool {
    let verdict = judge(&0, operations, 1_000_000);
    assert!(!matches!(verdict, Verdict::Undecided));
    verdict.is_linearizable()
}

#[test]
fn operations_that_overlap_may_happen_in_any_order() {
    assert!(check(&[known(Set(1), 0, 9, 0), known(Get, 1, 2, 0), known(Get, 3, 4, 1)]));
    assert!(!check(&[known(Set(1), 0, 9, 0), known(Get, 1, 2, 1), known(Get, 3, 4, 0)]));
}

#[test]
fn a_stale_read_is_refused() {
    assert!(!check(&[known(Set(1), 0, 1, 0), known(Set(2), 2, 3, 0), known(Get, 4, 5, 1)]));
    assert!(check(&[known(Set(1), 0, 1, 0), known(Set(2), 2, 4, 0), known(Get, 4, 5, 1)]));
}

#[test]
fn a_lost_update_is_refused() {
    assert!(!check(&[known(Add, 0, 2, 1), known(Add, 1, 3, 1)]));
    assert!(!check(&[known(Add, 0, 2, 1), known(Get, 3, 4, 0)]));
    assert!(!check(&[known(Swap(0, 1), 0, 9, 0), known(Swap(0, 2), 0, 9, 0)]));
    assert!(check(&[known(Swap(0, 1), 0, 9, 0), known(Swap(0, 2), 0, 9, 1)]));
}

/// What was refused for certain is left out of the history, so that nobody may have seen it.
#[test]
fn an_aborted_read_is_refused() {
    assert!(!check(&[known(Set(1), 0, 1, 0), known(Get, 2, 3, 7)]));
}

#[test]
fn what_has_no_answer_may_have_happened_late_or_never() {
    assert!(check(&[unknown(Set(7), 0), known(Get, 1, 2, 0), known(Get, 3, 4, 7)]));
    assert!(check(&[unknown(Set(7), 0), known(Get, 1, 2, 0), known(Get, 3, 4, 0)]));
    assert!(!check(&[unknown(Set(7), 3), known(Get, 1, 2, 7)]), "not before it was sent");
    assert!(
        !check(&[unknown(Set(7), 0), known(Get, 1, 2, 7), known(Get, 3, 4, 0)]),
        "what was shown is not taken back"
    );
    assert!(
        !check(&[
            unknown(Add, 0),
            known(Get, 1, 2, 1),
            known(Set(0), 3, 4, 0),
            known(Get, 5, 6, 1)
        ]),
        "once only"
    );
}

#[test]
fn a_refusal_says_where() {
    let history =
        [known(Set(1), 0, 1, 0), known(Get, 2, 3, 1), known(Get, 4, 5, 9), known(Set(3), 6, 7, 0)];
    let Verdict::Refused(refusal) = judge(&0, &history, 1000) else { panic!("explained") };
    assert_eq!((refusal.explained, refusal.stuck, refusal.state), ((2, 4), 2, 1));
}

#[test]
fn a_search_that_is_too_long_is_undecided() {
    let mut history: Vec<_> = (0..40).map(|at| unknown(Set(at), 0)).collect();
    history.push(known(Get, 1, 2, 99));
    assert!(matches!(judge(&0, &history, 1000), Verdict::Undecided));
}

/// The definition itself: some order of a subset that has all known operations.
fn is_linearizable(operations: &[Operation<Cell>], done: u32, state: u8) -> bool {
    let open = |&at: &usize| done & 1 << at == 0;
    let all = || (0..operations.len()).filter(open);
    if all().all(|at| operations[at].ended.is_none()) {
        return true;
    }
    all().any(|at| {
        let mut next = state;
        let answer = operations[at].call.run(&mut next);
        let fits = operations[at].ended.as_ref().is_none_or(|(_, seen)| *seen == answer);
        let is_first = all().all(|other| {
            operations[other].ended.as_ref().is_none_or(|(end, _)| *end >= operations[at].began)
        });
        fits && is_first && is_linearizable(operations, done | 1 << at, next)
    })
}

fn draw(random: &mut Random) -> Operation<Cell> {
    let small = |random: &mut Random| random.below(3) as u8;
    let call = match random.below(5) {
        0 | 1 => Get,
        2 => Set(small(random)),
        3 => Add,
        _ => Swap(small(random), small(random)),
    };
    let began = random.below(12);
    let answer = match call {
        Set(_) => 0,
        _ => small(random),
    };
    let end = (began + random.below(8), answer);
    Operation { call, began, ended: random.chance(4, 5).then_some(end) }
}

#[test]
fn small_histories_are_judged_as_the_definition_says() {
    let mut random = Random::new(1);
    let mut judged = [0, 0];
    for _ in 0..20_000 {
        let count = 1 + random.below(7);
        let history: Vec<_> = (0..count).map(|_| draw(&mut random)).collect();
        let is_so = check(&history);
        assert_eq!(is_so, is_linearizable(&history, 0, 0), "{history:?}");
        judged[usize::from(is_so)] += 1;
    }
    assert!(judged.iter().all(|&count| count > 2000), "{judged:?}");
}

/// Runs calls of `clients` one after another at the moments at which they happen.
fn honest(random: &mut Random, count: usize, clients: u64) -> Vec<Operation<Cell>> {
    let (mut state, mut free) = (0, vec![0; clients as usize]);
    let mut history = Vec::new();
    for moment in 0..count as u64 {
        let client = random.below(clients) as usize;
        let Operation { call, .. } = draw(random);
        let at = 10 * (moment + 1);
        let began = at.saturating_sub(random.below(60)).max(free[client]);
        let answered = random.chance(19, 20);
        let happens = answered || random.chance(1, 2);
        let answer = if happens { call.run(&mut state) } else { 0 };
        let end = at + random.below(60);
        free[client] = end + 1;
        if began <= at {
            history.push(Operation { call, began, ended: answered.then_some((end, answer)) });
        } else if happens {
            // The client was not free: it is as if it had none.
            history.push(Operation { call, began: at, ended: answered.then_some((at, answer)) });
        }
    }
    history
}

#[test]
fn long_honest_histories_are_explained_and_a_lie_in_them_is_found() {
    let mut refused = 0;
    for seed in 0..20 {
        let mut random = Random::new(seed);
        let mut history = honest(&mut random, 2000, 8);
        assert!(judge(&0, &history, 1_000_000).is_linearizable(), "seed {seed}");
        let reads = (0..history.len()).filter(|&at| matches!(history[at].call, Get));
        let known: Vec<usize> = reads.filter(|&at| history[at].ended.is_some()).collect();
        let at = random.pick(&known);
        if let Some((_, answer)) = &mut history[at].ended {
            *answer = 200;
        }
        refused += usize::from(!judge(&0, &history, 100_000).is_linearizable());
    }
    assert_eq!(refused, 20);
}
