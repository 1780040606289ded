//! One parcel: connect, log in, send the values, read what the target says.

use crate::connection::{Answer, Connection, is_timeout};
use crate::idle::Idle;
use crate::sent_value::SentValue;
use ladon_kernel::long::parcel::{Answered, Delivery, Parcel, ParcelValue, Undelivered};
use ladon_platform::Clock;
use ladon_rdb::Fault;
use std::io;

/// So many values may be on their way without an answer: what a target says about them fits into the
/// buffers of a socket, so that it never has to stop reading.
const UNANSWERED_MAX: usize = 64;

/// Delivers a parcel. A connection that was idle may be closed by now: what fails on it before the
/// first answer is tried again on a new one.
pub(crate) fn deliver(parcel: &Parcel, clock: &dyn Clock, idle: &Idle) -> Delivery {
    if let Some(connection) = idle.take(parcel) {
        let mut run = Run::new(parcel, connection);
        if run.all(clock) || run.has_answer || run.timed_out {
            return run.end(idle);
        }
    }
    let connection = match Connection::open(&parcel.host, parcel.port, parcel.patience) {
        Ok(connection) => connection,
        Err(error) => {
            let failure = Some(unreached(&error));
            return Delivery { failure, ..Delivery::default() };
        }
    };
    let mut run = Run::new(parcel, connection);
    let is_in = run.log_in();
    if is_in {
        run.all(clock);
    }
    run.end(idle)
}

/// As Redis, which notices at its first write that a connection was refused.
fn unreached(error: &io::Error) -> Undelivered {
    use io::ErrorKind::{ConnectionRefused, ConnectionReset, HostUnreachable};
    match error.kind() {
        ConnectionRefused | ConnectionReset | HostUnreachable => Undelivered::Writing,
        _ => Undelivered::Connecting,
    }
}

/// A parcel on a connection.
struct Run<'p> {
    parcel: &'p Parcel,
    connection: Connection,
    delivery: Delivery,
    /// How many values are on their way.
    unanswered: usize,
    /// The target has answered at least once.
    has_answer: bool,
    timed_out: bool,
    /// The connection may be used again.
    is_usable: bool,
}

impl<'p> Run<'p> {
    fn new(parcel: &'p Parcel, mut connection: Connection) -> Run<'p> {
        connection.patience = parcel.patience;
        let delivery = Delivery::default();
        Run {
            parcel,
            connection,
            delivery,
            unanswered: 0,
            has_answer: false,
            timed_out: false,
            is_usable: true,
        }
    }

    fn end(self, idle: &Idle) -> Delivery {
        if self.is_usable && self.connection.is_at_rest() {
            idle.put(self.parcel, self.connection);
        }
        self.delivery
    }

    /// Logs in, if the parcel says as whom. Nothing else is sent to who refuses that.
    fn log_in(&mut self) -> bool {
        let Some(login) = &self.parcel.login else { return true };
        let asked = match &login.user {
            Some(user) => self.ask(&[b"AUTH", user, &login.password]),
            None => self.ask(&[b"AUTH", &login.password]),
        };
        self.is_usable &= asked;
        asked
    }

    /// Sends a request and reads the answer; returns whether it is `OK`.
    fn ask(&mut self, words: &[&[u8]]) -> bool {
        let sent = self.connection.request(words).and_then(|()| self.connection.flush());
        if let Err(error) = sent {
            return self.fails(Undelivered::Writing, &error);
        }
        match self.connection.answer() {
            Ok(Answer::Ok) => {
                self.has_answer = true;
                true
            }
            Ok(Answer::Error(text)) => {
                self.has_answer = true;
                self.note(Undelivered::Refused(text));
                false
            }
            Err(error) => self.fails(Undelivered::Reading, &error),
        }
    }

    /// Sends all values. A database that is not there must not be mistaken for another, so it is
    /// selected first.
    fn all(&mut self, clock: &dyn Clock) -> bool {
        let database = self.parcel.database;
        if self.connection.database != Some(database) {
            self.connection.database = None;
            if !self.ask(&[b"SELECT", database.to_string().as_bytes()]) {
                return false;
            }
            self.connection.database = Some(database);
        }
        self.parcel.values.iter().all(|value| self.value(value, clock.unix_ms()))
            && self.read_until(0)
    }

    /// Sends a value, unless it has expired: then it is gone on both sides.
    fn value(&mut self, value: &ParcelValue, now_ms: u64) -> bool {
        let ttl = match value.expire_at {
            0 => 0,
            at if at <= now_ms => {
                // In its place among the answers.
                let is_answered = self.read_until(0);
                self.answered(true);
                return is_answered;
            }
            at => at - now_ms,
        };
        let sent = SentValue::of(value.value.as_ref());
        let sent = match sent {
            Ok(sent) => sent,
            Err(fault) => {
                let is_answered = self.read_until(0);
                self.answered(false);
                self.note(Undelivered::Unwritable(fault.to_string()));
                return is_answered;
            }
        };
        if let Err(fault) = self.restore(&value.key, ttl, &sent) {
            return match fault {
                Fault::Io(error) => self.fails(Undelivered::Writing, &error),
                fault => self.fails(Undelivered::Writing, &io::Error::other(fault.to_string())),
            };
        }
        self.unanswered += 1;
        self.unanswered < UNANSWERED_MAX || self.read_until(UNANSWERED_MAX / 2)
    }

    fn restore(&mut self, key: &[u8], ttl: u64, value: &SentValue<'_>) -> Result<(), Fault> {
        let connection = &mut self.connection;
        connection.begin_request(if self.parcel.replaces { 5 } else { 4 });
        connection.word(b"RESTORE")?;
        connection.word(key)?;
        connection.word(ttl.to_string().as_bytes())?;
        value.send(connection)?;
        if self.parcel.replaces {
            connection.word(b"REPLACE")?;
        }
        Ok(())
    }

    /// Reads answers until only so many are owed.
    fn read_until(&mut self, owed: usize) -> bool {
        if self.unanswered > owed
            && let Err(error) = self.connection.flush()
        {
            return self.fails(Undelivered::Writing, &error);
        }
        while self.unanswered > owed {
            match self.connection.answer() {
                Ok(answer) => {
                    self.has_answer = true;
                    self.unanswered -= 1;
                    self.answered(answer == Answer::Ok);
                    if let Answer::Error(text) = answer {
                        self.note(Undelivered::Refused(text));
                    }
                }
                Err(error) => return self.fails(Undelivered::Reading, &error),
            }
        }
        true
    }

    /// The next value has its answer.
    fn answered(&mut self, is_taken: bool) {
        let answers = &mut self.delivery.answers;
        let expire_at = self.parcel.values[answers.len()].expire_at;
        answers.push(Answered { is_taken, expire_at });
    }

    /// The connection is of no use any more.
    fn fails(&mut self, what: Undelivered, error: &io::Error) -> bool {
        self.is_usable = false;
        self.timed_out = is_timeout(error);
        self.note(what);
        false
    }

    /// The first failure is what the client is told.
    fn note(&mut self, failure: Undelivered) {
        self.delivery.failure.get_or_insert(failure);
    }
}
