//! The order in which fibers run.

use super::*;
use std::cell::Cell;
use std::rc::Rc;

/// A scheduler, and what its fibers have said.
#[derive(Clone)]
struct Said {
    scheduler: Rc<Scheduler>,
    words: Rc<RefCell<Vec<String>>>,
}

impl Said {
    fn new() -> Said {
        Said { scheduler: Rc::new(Scheduler::new(1_000_000)), words: Rc::default() }
    }

    fn say(&self, word: impl Into<String>) {
        self.words.borrow_mut().push(word.into());
    }

    fn start(&self, body: impl FnOnce(&Said) + 'static) -> FiberId {
        let of = self.clone();
        self.scheduler.start(Box::new(move || body(&of))).unwrap()
    }

    fn queue(&self, body: impl FnOnce(&Said) + 'static) -> FiberId {
        let of = self.clone();
        self.scheduler.queue(Box::new(move || body(&of))).unwrap()
    }

    fn all(&self) -> String {
        self.words.borrow().join(" ")
    }
}

#[test]
fn a_fiber_that_is_started_runs_until_it_waits() {
    let said = Said::new();
    let first = said.start(|of| {
        of.say("a");
        of.start(|of| {
            of.say("b");
            of.scheduler.give_way();
            of.say("d");
        });
        of.say("c");
        assert_eq!(of.scheduler.wait(None), Woken::Called);
        of.say("e");
    });
    assert_eq!(said.all(), "a b c");
    assert_eq!(said.scheduler.turn(0, usize::MAX), None);
    assert_eq!(said.all(), "a b c d");
    assert!(said.scheduler.wake(first));
    assert!(!said.scheduler.wake(first), "it is ready, and waits no more");
    said.scheduler.turn(0, usize::MAX);
    assert_eq!(said.all(), "a b c d e");
    assert!(said.scheduler.is_empty());
    assert!(!said.scheduler.wake(first), "it is over");
}

#[test]
fn what_is_ready_runs_in_order_and_once_a_turn() {
    let said = Said::new();
    for name in ["x", "y"] {
        said.queue(move |of| {
            for round in 0..3 {
                of.say(format!("{name}{round}"));
                of.scheduler.give_way();
            }
        });
    }
    assert_eq!(said.all(), "");
    assert_eq!(said.scheduler.turn(0, usize::MAX), Some(0));
    assert_eq!(said.all(), "x0 y0");
    while said.scheduler.turn(0, 1).is_some() {}
    assert_eq!(said.all(), "x0 y0 x1 y1 x2 y2");
}

#[test]
fn time_wakes_in_its_order() {
    let said = Said::new();
    for (name, at) in [("late", 30), ("soon", 10), ("middle", 20)] {
        said.start(move |of| {
            assert_eq!(of.scheduler.wait(Some(at)), Woken::InTime);
            of.say(name);
        });
    }
    let called = said.start(|of| {
        assert_eq!(of.scheduler.wait(Some(15)), Woken::Called);
        of.say("called");
    });
    assert_eq!(said.scheduler.turn(0, usize::MAX), Some(10));
    said.scheduler.wake(called);
    assert_eq!(said.scheduler.turn(10, usize::MAX), Some(20));
    assert_eq!(said.scheduler.turn(100, usize::MAX), None);
    assert_eq!(said.all(), "called soon middle late");
}

#[test]
fn stacks_are_used_again_and_there_is_a_limit() {
    let scheduler = Rc::new(Scheduler::new(3));
    let count = Rc::new(Cell::new(0));
    for _ in 0..1000 {
        let count = Rc::clone(&count);
        scheduler.start(Box::new(move || count.set(count.get() + 1))).unwrap();
    }
    assert_eq!((count.get(), scheduler.fibers.borrow().idle.len()), (1000, 1));
    for _ in 0..3 {
        let of = Rc::clone(&scheduler);
        let waits = move || {
            of.wait(None);
        };
        scheduler.start(Box::new(waits)).unwrap();
    }
    assert!(matches!(scheduler.start(Box::new(|| ())), Err(StartError::TooMany(3))));
}

#[test]
fn many_wait_at_once_with_their_own_stacks() {
    let said = Said::new();
    let sum = Rc::new(Cell::new(0));
    let ids: Vec<FiberId> = (0..2000u64)
        .map(|number| {
            let sum = Rc::clone(&sum);
            said.start(move |of| {
                let kept = [number; 200];
                for round in 0..3 {
                    of.scheduler.wait(Some(round * 10 + number % 7));
                }
                sum.set(sum.get() + kept.iter().sum::<u64>() / 200);
            })
        })
        .collect();
    assert_eq!(ids.len(), said.scheduler.len());
    let mut now = 0;
    while let Some(next) = said.scheduler.turn(now, 100) {
        now = now.max(next);
    }
    assert_eq!(sum.get(), (0..2000).sum::<u64>());
}

/// A fiber that goes on under another number waits and is woken under that one.
#[test]
fn a_renewed_fiber_has_another_number() {
    let said = Said::new();
    let numbers = Rc::new(Cell::new((0, 0)));
    let seen = Rc::clone(&numbers);
    let first = said.start(move |of| {
        let before = of.scheduler.current();
        seen.set((before, of.scheduler.renew()));
        of.scheduler.wait(None);
    });
    let (before, renewed) = numbers.get();
    assert_eq!(before, first);
    assert_ne!(before, renewed);
    assert_eq!(said.scheduler.current(), 0);
    assert!(!said.scheduler.wake(before));
    assert_eq!(said.scheduler.switches(renewed), Some(1));
    assert!(said.scheduler.wake(renewed));
    said.scheduler.turn(0, 100);
    assert!(said.scheduler.is_empty());
}
