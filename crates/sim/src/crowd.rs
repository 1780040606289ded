//! A crowd that publishes faster than anybody can deliver: is one of them left behind, and does
//! what is undelivered stay bounded?
//!
//! Its own small world: a node without faults, a subscriber of each thread that takes in
//! everything, and publishers of messages so large that a few of them make the others wait. Each
//! sends its next message once it has the reply to its last. What is measured depends on no clock:
//! how often another publisher was answered while one waited for its answer.

use crate::clock::SimClock;
use crate::node::SimNode;
use crate::plan::{Canary, Plan};
use crate::run::Trouble;
use ladon_kernel::pubsub::registry::CONGESTED_WEIGHT;
use ladon_net::ConnId;
use ladon_resp::client::write_request;
use ladon_sim_disk::SimDisk;
use ladon_testkit::Random;
use std::sync::Arc;

/// Bytes of a message: some ten of them are more than may be on their way.
const MESSAGE_BYTES: usize = 512 << 10;

/// Messages that are sent in all.
const MESSAGES: u64 = 150;

/// How often another publisher of the same thread may be answered while one waits: for a request
/// that came before, for one of the same turn, and for one that came just as enough was delivered.
const OVERTAKEN_MAX: u64 = 3;

/// Weight of a message to the subscriber of each of this many threads.
const fn weight_of_message(threads: usize) -> usize {
    threads * (1 + (MESSAGE_BYTES >> 10))
}

/// A run without trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crowd {
    /// How often another publisher of the same thread was answered while one waited, at most.
    pub overtaken: u64,
    /// Turns in which somebody waited and nobody was answered.
    pub congested_turns: u64,
    /// Weight of undelivered messages between turns, at most.
    pub undelivered: usize,
}

struct Publisher {
    worker: usize,
    conn: ConnId,
    /// How often it was answered.
    answered: u64,
    /// How often each of the crowd had been when it sent what it has no answer to.
    waits_since: Option<Vec<u64>>,
}

/// Runs the crowd of a seed.
///
/// # Errors
/// A publisher that others overtake again and again, or that gets no answer at all; more that is
/// undelivered than the bound and one message of a request that began below it.
pub fn run_crowd(seed: u64, canary: Canary) -> Result<Crowd, Trouble> {
    run(&mut Random::new(seed), canary).map_err(|what| Trouble { seed, what })
}

fn run(random: &mut Random, canary: Canary) -> Result<Crowd, String> {
    let plan = Plan::of_crowd(random);
    let (disk, clock) = (SimDisk::new(random.next_u64()), Arc::new(SimClock::new()));
    let mut node = SimNode::start(&disk, &clock, &plan, random, canary)?;
    let subscribers = plan.workers as u32;
    for worker in 0..plan.workers {
        let conn = node.connect(worker, 0);
        node.threads.receive(worker, conn, b"SUBSCRIBE c\r\n");
    }
    let mut crowd: Vec<Publisher> = (0..plan.clients)
        .map(|at| {
            let worker = random.below(plan.workers as u64) as usize;
            let conn = node.connect(worker, subscribers + at as u32);
            Publisher { worker, conn, answered: 0, waits_since: None }
        })
        .collect();
    let mut request = Vec::new();
    write_request(&mut request, &[&b"PUBLISH"[..], b"c", &vec![b'x'; MESSAGE_BYTES]]);
    let (mut overtaken, mut congested_turns, mut undelivered, mut sent) = (0, 0, 0, 0);
    // Far more turns than it takes.
    for _ in 0..MESSAGES * 100 {
        let answers: Vec<u64> = crowd.iter().map(|it| it.answered).collect();
        for publisher in &mut crowd {
            if publisher.waits_since.is_none() && sent < MESSAGES && random.chance(3, 4) {
                node.threads.receive(publisher.worker, publisher.conn, &request);
                publisher.waits_since = Some(answers.clone());
                sent += 1;
            }
        }
        clock.advance_us(random.below(500));
        node.threads.write();
        for worker in 0..plan.workers {
            node.threads.turn(worker, false);
            take_answers(&node, worker, &mut crowd);
            undelivered = undelivered.max(node.undelivered());
        }
        node.ran();
        overtaken = overtaken.max(note_answers(&mut crowd, &answers));
        if overtaken > OVERTAKEN_MAX {
            return Err(format!("a publisher was overtaken {overtaken} times by another"));
        }
        if undelivered > CONGESTED_WEIGHT + weight_of_message(plan.workers) {
            return Err(format!("messages of weight {undelivered} are undelivered"));
        }
        let waiting = crowd.iter().filter(|it| it.waits_since.is_some()).count();
        let nobody = crowd.iter().zip(&answers).all(|(it, before)| it.answered == *before);
        congested_turns += u64::from(waiting != 0 && nobody);
        if sent == MESSAGES && waiting == 0 {
            return Ok(Crowd { overtaken, congested_turns, undelivered });
        }
    }
    Err("a publisher got no answer".to_owned())
}

/// Counts the answers that a worker has sent, and takes in what it sent to others.
fn take_answers(node: &SimNode, worker: usize, crowd: &mut [Publisher]) {
    let sent = std::mem::take(&mut node.threads.wire(worker).sent);
    for (conn, bytes) in sent {
        let mut publishers = crowd.iter_mut();
        if let Some(publisher) = publishers.find(|it| (it.worker, it.conn) == (worker, conn)) {
            publisher.answered += bytes.iter().filter(|&&byte| byte == b'\n').count() as u64;
        }
        node.threads.worker(worker).sent(conn, bytes);
    }
}

/// Ends the waits of those that were answered. Returns how often one of those that waited in this
/// turn was overtaken by another, at most.
fn note_answers(crowd: &mut [Publisher], before: &[u64]) -> u64 {
    let answers: Vec<u64> = crowd.iter().map(|it| it.answered).collect();
    let workers: Vec<usize> = crowd.iter().map(|it| it.worker).collect();
    let mut most = 0;
    for (at, publisher) in crowd.iter_mut().enumerate() {
        let Some(since) = &publisher.waits_since else { continue };
        for (other, &worker) in workers.iter().enumerate() {
            if other != at && worker == publisher.worker {
                most = most.max(answers[other] - since[other]);
            }
        }
        if answers[at] > before[at] {
            publisher.waits_since = None;
        }
    }
    most
}
