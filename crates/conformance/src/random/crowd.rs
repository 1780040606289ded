//! Plays a round on several connections at once: subscribers, clients that wait for a key, clients
//! that watch what others change.
//!
//! ```text
//!  request --> its connection at both servers
//!  twice PING on the connection that only we use: now the reference has written all it will
//!  the reference's frames, connection by connection: so many are read from Ladon, and compared
//! ```
//!
//! A connection without a reply waits for a key, and gets no request before that has ended. Waits
//! are without end, so that no clock decides what is seen.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use super::duel::{Difference, Duel, Outcome, Pair};
use super::generate::{Request, Round};
use super::judge::Check;
use crate::connection::Connection;
use crate::reply::Reply;

/// How long Ladon may take for a frame that the reference has sent.
const PATIENCE: Duration = Duration::from_secs(2);
/// What Ladon sends besides comes in this time, usually.
const UNASKED: Duration = Duration::from_millis(2);

/// The same where threads tell one another first.
const IN_TURN: Duration = Duration::from_millis(8);

/// How often a server is asked whether a client waits by now, or not any more.
const TRIES: usize = 1_000;

/// One client, at both servers.
struct Member {
    pair: Pair,
    /// The client's number at each of them.
    ids: [String; 2],
    /// What it has got no reply to.
    waits: Option<Request>,
    transaction: Vec<Request>,
}

struct Crowd<'a> {
    duel: &'a mut Duel,
    members: Vec<Member>,
    control: &'a mut Pair,
    /// An `XREAD` was answered that had waited.
    has_reread: bool,
    /// Whether a request has swapped databases, which invalidates everything here.
    has_swapped: bool,
    /// The last command.
    last: Vec<u8>,
}

/// The first difference of the round's requests. `control` has prepared the servers.
pub(super) fn play(duel: &mut Duel, control: &mut Pair, round: &Round) -> io::Result<Outcome> {
    let members = (0..round.connections).map(|_| member(duel, round)).collect::<io::Result<_>>()?;
    let mut crowd =
        Crowd { duel, members, control, has_reread: false, has_swapped: false, last: Vec::new() };
    for (at, request) in round.requests.iter().enumerate() {
        let who = crowd.next(request.connection)?;
        let who = match who {
            Ok(who) => who,
            Err(other) => return Ok(other),
        };
        match crowd.step(who, request) {
            Outcome::Same => {}
            Outcome::Diverged => return Ok(Outcome::Diverged),
            Outcome::Differs(found) => return Ok(Outcome::Differs(Difference { at, ..found })),
        }
    }
    let at = round.requests.len().saturating_sub(1);
    let ended = match crowd.end() {
        Outcome::Differs(found) => Outcome::Differs(Difference { at, ..found }),
        other => other,
    };
    Ok(ended)
}

fn member(duel: &Duel, round: &Round) -> io::Result<Member> {
    let mut pair = duel.pair(round.protocol)?;
    let id = pair.ask(&[Request::new(Check::Kind, &[b"CLIENT", b"ID"])]).remove(0);
    Ok(Member { pair, ids: [id.0.text(), id.1.text()], waits: None, transaction: Vec::new() })
}

impl Crowd<'_> {
    /// Who takes the next request: this one, or the next one that does not wait.
    fn next(&mut self, first: usize) -> io::Result<Result<usize, Outcome>> {
        let count = self.members.len();
        let mut turns = (0..count).map(|it| (first + it) % count);
        if let Some(who) = turns.find(|&it| self.members[it].waits.is_none()) {
            return Ok(Ok(who));
        }
        let who = first % count;
        match self.release(who) {
            Outcome::Same if self.members[who].waits.is_none() => Ok(Ok(who)),
            Outcome::Same => Err(io::Error::other("a wait that CLIENT UNBLOCK does not end")),
            other => Ok(Err(other)),
        }
    }

    /// Ends a wait.
    fn release(&mut self, who: usize) -> Outcome {
        let ids = &self.members[who].ids;
        let [one, other] = ids.each_ref().map(|id| [&b"CLIENT"[..], b"UNBLOCK", id.as_bytes()]);
        self.control.reference.call(&one);
        self.control.subject.call(&other);
        self.collect(None)
    }

    fn step(&mut self, who: usize, request: &Request) -> Outcome {
        let words = |server: usize| -> Vec<Vec<u8>> {
            let id = |word: &Vec<u8>| {
                let number = word.strip_prefix(b"$client")?;
                let number: usize = std::str::from_utf8(number).ok()?.parse().ok()?;
                Some(self.members.get(number)?.ids[server].clone().into_bytes())
            };
            request.words.iter().map(|word| id(word).unwrap_or_else(|| word.clone())).collect()
        };
        let (one, other) = (words(0), words(1));
        let pair = &mut self.members[who].pair;
        pair.reference.send(&one);
        pair.subject.send(&other);
        self.collect(Some((who, request)))
    }

    /// Waits until the reference has written whatever a request causes.
    fn settle(&mut self, asked: Option<(usize, &Request)>) {
        for _ in 0..2 {
            self.control.reference.call(&["PING"]);
        }
        if let Some((who, _)) = asked.filter(|(_, request)| flushes(request)) {
            // In Redis 8 the client waits until another of the server's threads has freed the
            // values.
            let (id, mut tries) = (self.members[who].ids[0].clone(), TRIES);
            while tries > 0 && is_blocked(&mut self.control.reference, &id) {
                tries -= 1;
            }
        }
    }

    /// Reads what every connection gets because of a request, and compares.
    fn collect(&mut self, asked: Option<(usize, &Request)>) -> Outcome {
        self.settle(asked);
        if let Some((who, request)) = asked {
            self.members[who].waits = Some(request.clone());
        }
        let is_exec = asked.is_some_and(|(_, request)| ends_transaction(request));
        if let Some((who, request)) = asked {
            let queued = self.members[who].transaction.iter().filter(|_| is_exec);
            self.has_swapped |= queued.chain([request]).any(|it| it.is(b"SWAPDB"));
        }
        let by =
            asked.map_or_else(|| b"NOBODY".to_vec(), |(_, it)| it.words[0].to_ascii_uppercase());
        // Ladon also notifies of missing keys that are behind one of the wrong type.
        let misses = [&b"ZUNION"[..], b"ZINTER", b"ZDIFF"].iter().any(|it| by.starts_with(it));
        self.last = by.clone();
        let mut heard = Vec::new();
        for who in 0..self.members.len() {
            let (wanted, surplus) = self.reference_says(who);
            heard.push((wanted, surplus));
        }
        let is_served = self.members.iter().zip(&heard).enumerate().any(|(at, (member, heard))| {
            asked.is_none_or(|(who, _)| who != at)
                && member.waits.is_some()
                && heard.0.iter().any(|frame| !is_push(frame))
        });
        let joins = asked.filter(|_| is_exec).map(|(who, _)| who).filter(|&who| {
            self.members[who]
                .transaction
                .iter()
                .any(|queued| confirms(queued) || queued.is(b"CLIENT"))
        });
        for (who, (wanted, surplus)) in heard.into_iter().enumerate() {
            let is_more =
                is_served || is_exec || misses || wanted.iter().any(|it| of_keys(it).is_some());
            let got = self.subject_says(who, wanted.len() - surplus, is_more);
            let mut push = Request::new(Check::Exact, &[b"PUSHED", b"BY", &by, b"TO"]);
            let mut name = |text: &str| {
                push.words.extend(text.split(' ').map(|word| word.as_bytes().to_vec()));
            };
            name(&who.to_string());
            match (joins == Some(who), is_served, self.has_reread) {
                (true, ..) => name("WHO JOINED IN A TRANSACTION"),
                _ if joins.is_some() => name("AS ONE JOINED IN A TRANSACTION"),
                (_, true, _) => name("AS A WAIT ENDED"),
                (.., true) => name("AFTER A WAIT"),
                _ if self.has_swapped => name("AFTER SWAPDB"),
                _ => {}
            }
            match self.compare(who, push, wanted, got) {
                Outcome::Same => {}
                other => return other,
            }
        }
        if let Some((who, request)) = asked {
            let member = &mut self.members[who];
            if confirms(request) {
                member.waits = None;
            }
            // What others send must not come before it.
            let mut tries = if member.waits.is_some() { TRIES } else { 0 };
            if let Some(request) = &mut member.waits {
                request.words.push(b"(waited)".to_vec());
            }
            while tries > 0 && !is_blocked(&mut self.control.subject, &member.ids[1]) {
                tries -= 1;
            }
        }
        Outcome::Same
    }

    /// What the reference has sent to a member, and how much of that tells again of missing keys.
    fn reference_says(&mut self, who: usize) -> (Vec<Reply>, usize) {
        let pair = &mut self.members[who].pair;
        let mut wanted = Vec::new();
        while wanted.last() != Some(&Reply::Closed) && pair.reference.has_more() {
            wanted.push(pair.reference.read());
        }
        let surplus = self.duel.known.surplus(&wanted);
        (wanted, surplus)
    }

    /// What Ladon sends: at least so many frames, and `is_more` what else comes soon.
    fn subject_says(&mut self, who: usize, least: usize, is_more: bool) -> Vec<Reply> {
        let pair = &mut self.members[who].pair;
        let mut got = Vec::new();
        while got.len() < least && !matches!(got.last(), Some(Reply::Silence)) {
            got.push(pair.subject.silence(PATIENCE));
        }
        if is_more {
            std::thread::sleep(IN_TURN);
        }
        while got.last() != Some(&Reply::Closed) && pair.subject.has_more() {
            got.push(pair.subject.read());
        }
        got
    }

    fn compare(
        &mut self,
        who: usize,
        push: Request,
        wanted: Vec<Reply>,
        got: Vec<Reply>,
    ) -> Outcome {
        let (wanted, got) = (after_reply(wanted), after_reply(got));
        let member = &self.members[who];
        let (wanted, got) = match member.waits.as_ref().is_some_and(ends_transaction) {
            true => [wanted, got].map(|frames| exec_reply(&member.transaction, frames)).into(),
            false => (wanted, got),
        };
        let (wanted, got) = (together(wanted), together(got));
        if wanted.len() == got.len() && wanted.iter().any(leaves_in_exec) {
            self.members[who].waits = None;
            self.members[who].transaction.clear();
            return Outcome::Same;
        }
        let (wanted, pushed) = wanted.into_iter().partition::<Vec<_>, _>(|it| !is_push(it));
        let (mut got, pushed_here) = got.into_iter().partition::<Vec<_>, _>(|it| !is_push(it));
        if wanted.is_empty() {
            // What was waited for in vain was a push.
            got.retain(|it| *it != Reply::Silence);
        }
        let (pushed, pushed_here) = (in_order(pushed), in_order(pushed_here));
        match self.duel.differ(&push, &Reply::Array(pushed), &Reply::Array(pushed_here)) {
            Outcome::Same => {}
            other => return other,
        }
        let member = &mut self.members[who];
        if let ([wanted], [got]) = (&wanted[..], &got[..]) {
            let request = member.waits.take().unwrap_or(push);
            let has_waited = request.words.last().is_some_and(|word| word == b"(waited)");
            let mut request = request;
            if has_waited {
                request.words.extend([b"BY".to_vec(), self.last.clone()]);
            }
            self.has_reread |= has_waited && request.is(b"XREAD");
            let (wanted, got) = (member.named(0, &request, wanted), member.named(1, &request, got));
            let mut transaction = std::mem::take(&mut member.transaction);
            let outcome = self.duel.judge(&request, &wanted, &got, &mut transaction);
            self.members[who].transaction = transaction;
            return outcome;
        }
        if !wanted.is_empty() {
            member.waits = None;
        }
        // The frames of several names, in a transaction: no array says how many.
        let (wanted, got) = (sorted(&Reply::Array(wanted)), sorted(&Reply::Array(got)));
        self.duel.differ(&push, &wanted, &got)
    }

    /// Ends every wait. Nobody may get more than the reference has sent.
    fn end(&mut self) -> Outcome {
        for who in 0..self.members.len() {
            if self.members[who].waits.is_some() {
                match self.release(who) {
                    Outcome::Same => {}
                    other => return other,
                }
            }
        }
        std::thread::sleep(UNASKED);
        self.control.subject.call(&["PING"]);
        for member in &mut self.members {
            if member.pair.subject.has_more() {
                let got = member.pair.subject.read();
                let words: [&[u8]; 4] = [b"PUSHED", b"BY", &self.last, b"UNASKED"];
                let mut request = Request::new(Check::Exact, &words);
                if self.has_reread {
                    request.words.extend(["AFTER", "A", "WAIT"].map(|it| it.as_bytes().to_vec()));
                }
                match self.duel.differ(&request, &Reply::Silence, &got) {
                    Outcome::Same => {}
                    other => return other,
                }
            }
        }
        Outcome::Same
    }
}

impl Member {
    /// The reply, without the number of a client that only one server gives.
    fn named(&self, server: usize, request: &Request, reply: &Reply) -> Reply {
        match reply {
            Reply::Integer(id) if request.check == Check::Client && *id > 0 => {
                Reply::Simple(format!("client, own: {}", self.ids[server] == id.to_string()))
            }
            Reply::Array(items) if request.is(b"EXEC") && items.len() == self.transaction.len() => {
                let each = self.transaction.iter().zip(items);
                Reply::Array(each.map(|(queued, it)| self.named(server, queued, it)).collect())
            }
            other => other.clone(),
        }
    }
}

/// The elements of every level in one order.
fn sorted(reply: &Reply) -> Reply {
    match reply {
        Reply::Array(items) | Reply::Push(items) => {
            let mut items: Vec<Reply> = items.iter().map(sorted).collect();
            items.sort_by_cached_key(Reply::show);
            Reply::Array(items)
        }
        other => other.clone(),
    }
}

/// Whether a server says that the client waits.
fn is_blocked(control: &mut Connection, id: &str) -> bool {
    let line = control.call(&["CLIENT", "LIST", "ID", id]).text();
    line.split(' ').filter_map(|it| it.strip_prefix("flags=")).any(|flags| flags.contains('b'))
}

/// The keys that a frame invalidates.
fn of_keys(frame: &Reply) -> Option<Vec<Reply>> {
    match (is_message(frame), frame.elements().pop()) {
        (true, Some(Reply::Array(keys))) => Some(keys),
        _ => None,
    }
}

fn ends_transaction(request: &Request) -> bool {
    request.is(b"EXEC")
}

/// The frames after EXEC, with one element of its reply for each request of the transaction:
/// SUBSCRIBE of several names confirms each of them, which the array's length does not count.
fn exec_reply(transaction: &[Request], frames: Vec<Reply>) -> Vec<Reply> {
    let is_reply = |frame: &Reply| matches!(frame, Reply::Array(_)) && !is_push(frame);
    let names = |request: &Request| if confirms(request) { request.words.len() - 1 } else { 1 };
    let Some(at) = frames.iter().position(is_reply) else { return frames };
    if transaction.iter().all(|request| names(request) == 1) {
        return frames;
    }
    let mut elements: VecDeque<Reply> = frames[at].elements().into();
    let (others, rest): (Vec<_>, Vec<_>) = frames[at + 1..].iter().cloned().partition(is_message);
    elements.extend(rest);
    if transaction.iter().map(names).sum::<usize>() != elements.len() {
        return frames;
    }
    let each = transaction.iter().map(|request| match names(request) {
        1 => elements.pop_front().unwrap_or(Reply::Null),
        count => Reply::Array(elements.drain(..count).collect()),
    });
    let reply = Reply::Array(each.collect());
    frames[..at].iter().cloned().chain([reply]).chain(others).collect()
}

/// The frames with all invalidations of keys in one, at the end, each key once.
fn together(frames: Vec<Reply>) -> Vec<Reply> {
    if frames.iter().filter(|frame| of_keys(frame).is_some()).count() < 2 {
        return frames;
    }
    let (several, mut frames): (Vec<_>, Vec<_>) =
        frames.into_iter().partition(|frame| of_keys(frame).is_some());
    let mut keys: Vec<Reply> = several.iter().filter_map(of_keys).flatten().collect();
    keys.sort_by_cached_key(Reply::show);
    keys.dedup();
    let mut one = several[0].clone();
    if let Reply::Push(items) | Reply::Array(items) = &mut one {
        items.pop();
        items.push(Reply::Array(keys));
    }
    frames.push(one);
    frames
}

/// The frames with the messages that a command causes for its own client behind its reply, where
/// 7.2 sends them. 7.0 puts them among the elements of the reply (`EXEC`, `MGET`), so that its last
/// ones are frames of their own.
fn after_reply(frames: Vec<Reply>) -> Vec<Reply> {
    let is_mixed = |frame: &Reply| match frame {
        Reply::Array(elements) => elements.iter().any(is_message),
        _ => false,
    };
    let Some(at) = frames.iter().position(is_mixed) else {
        return frames;
    };
    let (mut ordered, mut rest) = (frames, VecDeque::new());
    rest.extend(ordered.drain(at..));
    let Some(Reply::Array(elements)) = rest.pop_front() else { unreachable!("it has elements") };
    let length = elements.len();
    elements.into_iter().rev().for_each(|element| rest.push_front(element));
    let (mut reply, mut messages) = (Vec::new(), Vec::new());
    while reply.len() < length {
        match rest.pop_front() {
            Some(message) if is_message(&message) => messages.push(message),
            Some(element) => reply.push(element),
            None => break,
        }
    }
    ordered.push(Reply::Array(reply));
    ordered.extend(messages);
    ordered.extend(after_reply(rest.into()));
    ordered
}

/// Whether it is what EXEC says of UNSUBSCRIBE without names, which names them in any order.
fn leaves_in_exec(reply: &Reply) -> bool {
    let leaves =
        |it: &Reply| it.elements().first().is_some_and(|kind| kind.text().ends_with("unsubscribe"));
    matches!(reply, Reply::Array(items) if items.iter().any(leaves))
}

/// Whether the reply consists of frames that look like messages.
fn confirms(request: &Request) -> bool {
    request.words[0].to_ascii_lowercase().ends_with(b"subscribe")
}

/// Whether it empties a database, or all.
fn flushes(request: &Request) -> bool {
    request.words[0].to_ascii_lowercase().starts_with(b"flush")
}

/// Whether it is a frame that nobody asked for.
fn is_message(frame: &Reply) -> bool {
    const KINDS: [&str; 4] = ["message", "pmessage", "smessage", "invalidate"];
    let kind = frame.elements().first().map(Reply::text).unwrap_or_default();
    is_push(frame) && KINDS.contains(&kind.as_str())
}

fn is_push(frame: &Reply) -> bool {
    const KINDS: [&str; 10] = [
        "message",
        "pmessage",
        "smessage",
        "subscribe",
        "psubscribe",
        "ssubscribe",
        "unsubscribe",
        "punsubscribe",
        "sunsubscribe",
        "invalidate",
    ];
    match frame {
        Reply::Push(_) => true,
        Reply::Array(items) => {
            matches!(items.first(), Some(Reply::Bulk(kind)) if KINDS.iter().any(|it| it.as_bytes() == kind))
        }
        _ => false,
    }
}

/// The messages, channel by channel: each channel has an order of its own. UNSUBSCRIBE of
/// everything names channels in any order, invalidations name keys in any.
fn in_order(mut pushed: Vec<Reply>) -> Vec<Reply> {
    for frame in &mut pushed {
        if let Reply::Push(items) | Reply::Array(items) = frame
            && let Some(Reply::Array(keys)) = items.last_mut()
        {
            keys.sort_by_cached_key(Reply::show);
        }
    }
    let key = |frame: &Reply| {
        let items = frame.elements();
        let kind = items.first().map(Reply::text).unwrap_or_default();
        let is_key = matches!(items.last(), Some(Reply::Array(_)));
        let names = match kind.as_str() {
            "pmessage" => 3,
            _ if is_key => items.len(),
            _ => 2,
        };
        items.iter().take(names).map(Reply::show).collect::<Vec<_>>()
    };
    let mut counts: Vec<Reply> = Vec::new();
    for frame in &mut pushed {
        if let Reply::Push(items) | Reply::Array(items) = frame
            && items.first().is_some_and(|it| it.text().ends_with("unsubscribe"))
        {
            counts.extend(items.pop());
        }
    }
    counts.sort_by_cached_key(Reply::show);
    pushed.sort_by_cached_key(key);
    pushed.extend(counts);
    pushed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(channel: &str, text: &str) -> Reply {
        Reply::Push(["message", channel, text].map(|it| Reply::Bulk(it.into())).to_vec())
    }

    #[test]
    fn every_channel_has_its_order() {
        let (a, b, c) = (message("x", "2"), message("x", "1"), message("y", "1"));
        let orders = |frames: [&Reply; 3]| in_order(frames.map(Clone::clone).to_vec());
        assert_eq!(orders([&a, &b, &c]), orders([&c, &a, &b]));
        assert_ne!(orders([&a, &b, &c]), orders([&b, &a, &c]));
    }
}
