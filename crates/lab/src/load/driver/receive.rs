//! Reads what comes, finds whose reply it is, and judges it.

use std::io;
use std::time::Instant;

use super::{ANSWERED, Driver, LoadError};
use crate::load::workload::{Check, Whose, Workload};

/// Reads of one socket before the others get their turn: a reply may be larger than any buffer.
const READS_MAX: usize = 4;

impl<W: Workload> Driver<W> {
    pub(super) fn on_event(&mut self, number: usize, writable: bool) -> Result<(), LoadError> {
        let connection = &self.connections[number];
        if writable && (!connection.unsent.is_empty() || connection.stream.wants_write()) {
            self.send_rest(number)?;
        }
        self.receive(number)
    }

    /// Goes on with one of the sockets that have more; says whether there was one.
    pub(super) fn receive_rest(&mut self) -> Result<bool, LoadError> {
        let Some(number) = self.unread.pop_front() else { return Ok(false) };
        self.receive(number)?;
        Ok(true)
    }

    /// Reads what is there, judges it, and lets users that are answered in full send their next
    /// batch.
    fn receive(&mut self, number: usize) -> Result<(), LoadError> {
        for _ in 0..READS_MAX {
            let connection = &mut self.connections[number];
            if connection.owed == 0 {
                return Ok(()); // nothing is owed; an end of the stream shows at the next read
            }
            if connection.filled == connection.received.len() {
                connection.received.resize(connection.filled * 2, 0);
            }
            let read = match connection.stream.read(&mut connection.received[connection.filled..]) {
                Ok(0) => return Err(LoadError::Closed(number)),
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.into()),
            };
            connection.filled += read;
            self.judge(number, Instant::now())?;
            if self.connections[number].owed == 0 {
                return Ok(());
            }
            // Edge-triggered: only WouldBlock proves that the socket is empty.
        }
        if !self.unread.contains(&number) {
            self.unread.push_back(number);
        }
        Ok(())
    }

    /// Judges the complete replies received so far.
    fn judge(&mut self, number: usize, now: Instant) -> Result<(), LoadError> {
        let mut at = 0;
        // Replies to one user that come together are recorded together.
        let (mut last, mut right) = (0, 0);
        loop {
            let connection = &self.connections[number];
            if at == connection.filled {
                break;
            }
            let bytes = &connection.received[at..connection.filled];
            let Some(&first) = connection.order.front() else {
                return Err(self.wrong_after_the_last(number, at));
            };
            let (user_number, slot) = match self.workload.whose(bytes) {
                Whose::Next => (first as usize, self.users[first as usize].answered),
                Whose::Of { user, slot } if self.owes(number, user, slot) => (user, slot),
                Whose::Incomplete => break,
                Whose::Of { .. } | Whose::Nobody => {
                    return Err(self.wrong_owner(number, at));
                }
            };
            let user = &mut self.users[user_number];
            let key = user.keys[slot];
            match self.workload.check(user_number, key, bytes) {
                Check::Right(length) => at += length,
                Check::Incomplete => break,
                Check::Wrong => return Err(self.wrong(number, user_number, key, at)),
            }
            user.keys[slot] = ANSWERED;
            user.answered += 1;
            let done = user.answered == user.keys.len();
            if last != user_number && right > 0 {
                self.record(last, right, now);
                right = 0;
            }
            last = user_number;
            right += 1;
            self.connections[number].owed -= 1;
            if done {
                self.record(last, right, now);
                right = 0;
                self.finished(number, user_number, now, at)?;
            }
        }
        if right > 0 {
            self.record(last, right, now);
        }
        let connection = &mut self.connections[number];
        connection.received.copy_within(at..connection.filled, 0);
        connection.filled -= at;
        Ok(())
    }

    /// Whether connection `number` still owes user `user` the reply to request `slot` of its batch.
    fn owes(&self, number: usize, user: usize, slot: usize) -> bool {
        user % self.connections.len() == number
            && self
                .users
                .get(user)
                .is_some_and(|user| user.keys.get(slot).is_some_and(|&key| key != ANSWERED))
    }

    fn record(&mut self, user: usize, replies: u64, now: Instant) {
        let latency = now.saturating_duration_since(self.users[user].sent_at).as_nanos();
        let lane = self.workload.lane(user);
        let latency = u64::try_from(latency).unwrap_or(u64::MAX);
        self.sample.latency_ns[lane].saturating_record_n(latency, replies);
        self.sample.replies += replies;
        self.last_reply = now;
    }

    /// A user's batch is answered in full.
    fn finished(
        &mut self,
        number: usize,
        user: usize,
        now: Instant,
        at: usize,
    ) -> Result<(), LoadError> {
        let connection = &mut self.connections[number];
        if connection.order.front() == Some(&(user as u32)) {
            connection.order.pop_front();
        } else {
            connection.order.retain(|&other| other as usize != user);
        }
        self.under_way -= 1;
        if connection.order.is_empty() && at < connection.filled {
            return Err(self.wrong_after_the_last(number, at));
        }
        self.users[user].keys.clear();
        self.users[user].answered = 0;
        self.send_next(user, now)
    }

    fn wrong(&self, number: usize, user: usize, key: u32, at: usize) -> LoadError {
        let connection = &self.connections[number];
        LoadError::Wrong {
            connection: number,
            about: self.workload.about(user, key),
            expected: escaped(&self.workload.right_answer(user, key)),
            got: escaped(&connection.received[at..connection.filled]),
        }
    }

    fn wrong_after_the_last(&self, number: usize, at: usize) -> LoadError {
        let connection = &self.connections[number];
        LoadError::Wrong {
            connection: number,
            about: "what was asked last".to_owned(),
            expected: "nothing after the last reply".to_owned(),
            got: escaped(&connection.received[at..connection.filled]),
        }
    }

    fn wrong_owner(&self, number: usize, at: usize) -> LoadError {
        let connection = &self.connections[number];
        LoadError::Wrong {
            connection: number,
            about: "requests under way".to_owned(),
            expected: "a reply to one of them".to_owned(),
            got: escaped(&connection.received[at..connection.filled]),
        }
    }
}

/// Enough to see what came instead.
const SHOWN_BYTES: usize = 160;

fn escaped(bytes: &[u8]) -> String {
    let mut text = bytes[..bytes.len().min(SHOWN_BYTES)].escape_ascii().to_string();
    if bytes.len() > SHOWN_BYTES {
        text += "...";
    }
    text
}
