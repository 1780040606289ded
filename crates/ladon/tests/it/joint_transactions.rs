//! Transactions of a program on keys and tuples: with writers of Redis beside them nothing is lost or seen
//! half done, and after a crash each is wholly there or not at all.

use crate::iproto::client::{Iproto, array, int};
use crate::program::{Serving, number};
use ladon_iproto::Request;
use ladon_iproto::request::Call;
use ladon_testkit::Ports;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

const TOTAL: u64 = 10_000;

/// The sum of all accounts, and how many transfers there were.
fn state(client: &mut Iproto) -> (u64, u64) {
    let state = client.call("state", &[0x90]).expect("a state");
    (number(&state[0]), number(&state[1]))
}

fn transfer(client: &mut Iproto, at: u64) -> Option<u64> {
    let arguments = array(&[int(at % 5 + 1), int(at * 3 % 5 + 1), int(1)]);
    let call = Call { name: b"transfer", arguments: &arguments };
    let done = client.try_ask(&Request::Call(call))?.expect("a transfer");
    Some(number(&done[0]))
}

/// Moves money from key to key until it is told to stop, or the server goes.
fn move_between_keys(address: &str, stop: &AtomicBool) {
    let Ok(stream) = TcpStream::connect(address) else { return };
    let mut replies = BufReader::new(stream.try_clone().expect("a handle"));
    let mut stream = stream;
    for at in 0u64.. {
        let (from, to) = (at % 5 + 1, (at + 2) % 5 + 1);
        let moved =
            format!("MULTI\r\nDECRBY account:{from} 2\r\nINCRBY account:{to} 2\r\nEXEC\r\n");
        if stop.load(Relaxed) || stream.write_all(moved.as_bytes()).is_err() {
            return;
        }
        for _ in 0..6 {
            let mut line = String::new();
            match replies.read_line(&mut line) {
                Ok(1..) => assert!(!line.starts_with('-'), "{line}"),
                _ => return,
            }
        }
        std::thread::sleep(Duration::from_micros(300));
    }
}

#[test]
fn transfers_between_keys_and_tuples_lose_nothing() {
    const ROUNDS: u64 = 4;
    let dir = tempfile::tempdir().expect("a directory");
    let redis = Ports::take(1).expect("a port");
    let address = format!("127.0.0.1:{}", redis.first());
    let (mut acknowledged, mut conflicts) = (0, 0);
    for round in 0..ROUNDS {
        let mut serving =
            Serving::start_program(dir.path(), &["--resp", &address], "joint_transfers.lua");
        let mut client = serving.client();
        let (sum, transfers) = state(&mut client);
        assert_eq!(sum, TOTAL, "after {round} rounds");
        assert!(transfers >= acknowledged, "{transfers} of {acknowledged} acknowledged");
        assert!(transfers <= acknowledged + 1, "{transfers}: one at most was in flight");
        acknowledged = transfers;
        let stop = &AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| move_between_keys(&address, stop));
            let mut watcher = serving.client();
            let looks = scope.spawn(move || {
                while !stop.load(Relaxed) {
                    let call = Call { name: b"state", arguments: &[0x90] };
                    let Some(state) = watcher.try_ask(&Request::Call(call)) else { return };
                    assert_eq!(number(&state.expect("a state")[0]), TOTAL, "seen half done");
                }
            });
            let process = &mut serving;
            let killer = scope.spawn(move || {
                std::thread::sleep(Duration::from_millis(400 + 60 * round));
                process.kill();
            });
            for at in 0.. {
                let Some(met) = transfer(&mut client, at) else { break };
                (acknowledged, conflicts) = (acknowledged + 1, conflicts + met);
            }
            stop.store(true, Relaxed);
            killer.join().expect("kills");
            looks.join().expect("the sum is always the same");
        });
    }
    assert!(acknowledged > ROUNDS && conflicts > 0, "{acknowledged} transfers, {conflicts}");
}
