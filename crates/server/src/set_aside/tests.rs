use super::*;

const SLICE: (State, bool) = (State::Ready, true);
const BEHIND: (State, bool) = (State::Behind, false);

fn push(others: &mut SetAside, packet: &[u8], stream: u64, again: (State, bool)) {
    others.push(packet, Order::of_stream(stream), again, (Unfinished::default(), None));
}

fn take(others: &mut SetAside, may_slice: bool) -> Option<Waiting> {
    let taken = others.take(may_slice);
    assert!(!others.is_over(), "what is taken out is not done");
    taken
}

#[test]
fn a_stream_waits_for_its_own_and_runs_in_order() {
    let mut others = SetAside::default();
    push(&mut others, b"commit", 7, SLICE);
    assert!(others.holds(Order::of_stream(7)));
    assert!(!others.holds(Order::of_stream(8)) && !others.holds(Order::of_stream(0)));
    push(&mut others, b"begin", 7, BEHIND);
    push(&mut others, b"replace", 7, BEHIND);

    let commit = take(&mut others, true).expect("it may run");
    others.put_back(commit, SLICE);
    assert!(take(&mut others, false).is_none(), "no slice now, and the others wait");
    for expected in [&b"commit"[..], b"begin", b"replace"] {
        assert!(others.holds(Order::of_stream(7)));
        others.holds_input = true;
        let request = take(&mut others, true).expect("it may run");
        assert_eq!(&*request.packet, expected);
        assert!(take(&mut others, true).is_none(), "one after the other");
        others.done(&request);
        assert!(!others.holds_input, "the input looks again");
    }
    assert!(others.is_over() && others.bytes() == 0);
}

#[test]
fn slices_of_several_have_turns() {
    let mut others = SetAside::default();
    for stream in 1..=3 {
        push(&mut others, &[stream as u8], stream, SLICE);
    }
    let mut order = Vec::new();
    for _ in 0..7 {
        let request = take(&mut others, true).expect("it may run");
        order.push(request.packet[0]);
        others.put_back(request, SLICE);
    }
    assert_eq!(order, [1, 2, 3, 1, 2, 3, 1]);
}

#[test]
fn who_waits_runs_when_that_is_over() {
    let mut others = SetAside::default();
    push(&mut others, b"write", 1, (State::AwaitsWrite, false));
    push(&mut others, b"behind", 1, BEHIND);
    push(&mut others, b"count", 2, (State::AwaitsReply, false));
    others.reply_begins(Order::of_stream(3));
    assert!(others.holds(Order::of_stream(3)), "behind the long reply");
    push(&mut others, b"after", 3, BEHIND);
    assert!(!others.is_ready());
    let mut runs = |woken: fn(&mut SetAside), expected: &[&[u8]]| {
        woken(&mut others);
        for expected in expected {
            let request = take(&mut others, true).expect("it may run");
            assert_eq!(&&*request.packet, expected);
            others.done(&request);
        }
        assert!(!others.is_ready());
    };
    runs(SetAside::write_again, &[b"write", b"behind"]);
    runs(SetAside::reply_is_made, &[b"count", b"after"]);
    assert!(others.is_over());
}

#[test]
fn it_is_bounded() {
    let mut others = SetAside::default();
    assert!(others.has_room(100, 100) && !others.has_room(101, 100));
    push(&mut others, &[0; 60], 1, SLICE);
    assert!(others.has_room(40, 100) && !others.has_room(41, 100));
    for _ in 1..REQUESTS_MAX {
        push(&mut others, &[0], 1, BEHIND);
    }
    assert!(!others.has_room(1, usize::MAX));
}
