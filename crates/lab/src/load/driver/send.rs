//! Sends batches, at once or when they are due, and what the sockets did not take.

use std::cmp::Reverse;
use std::io;
use std::time::Instant;

use super::{Driver, LoadError};
use crate::load::workload::Workload;

impl<W: Workload> Driver<W> {
    /// Sends the batches of paced users whose time has come.
    pub(super) fn send_due(&mut self, now: Instant) -> Result<bool, LoadError> {
        let mut sent = false;
        while let Some(&Reverse((due, number))) = self.waiting_for_time.peek() {
            if due > now {
                break;
            }
            self.waiting_for_time.pop();
            let in_pause = |&(began, ended)| began < due && due <= ended;
            let since = if self.pause.as_ref().is_some_and(in_pause) { now } else { due };
            self.send(number, since)?;
            sent = true;
        }
        Ok(sent)
    }

    /// Sends the next batch now or, for a paced user, when it is due: at once if that is past.
    pub(super) fn send_next(&mut self, number: usize, now: Instant) -> Result<(), LoadError> {
        if !self.sending {
            return Ok(());
        }
        let Some(pace) = &mut self.users[number].pace else {
            return self.send(number, now);
        };
        while !pace.catches_up && pace.due < now {
            pace.due += pace.interval;
        }
        let due = pace.due;
        pace.due += pace.interval;
        if due <= now {
            return self.send(number, due);
        }
        self.waiting_for_time.push(Reverse((due, number)));
        Ok(())
    }

    /// Sends the next batch; its latency counts from `since`.
    fn send(&mut self, number: usize, since: Instant) -> Result<(), LoadError> {
        let place = number % self.connections.len();
        let shared = self.users.len() > self.connections.len();
        let user = &mut self.users[number];
        let connection = &mut self.connections[place];
        user.keys.clear();
        user.answered = 0;
        let bytes = self.workload.batch(number, &mut user.keys);
        if bytes.is_empty() {
            return Ok(());
        }
        self.under_way += 1;
        user.sent_at = since;
        connection.order.push_back(number as u32);
        connection.owed += user.keys.len();
        if shared {
            // Others of this turn may want to send as well; one write takes all.
            if connection.unsent.is_empty() {
                self.unflushed.push(place);
            }
            connection.unsent.extend_from_slice(bytes);
            return Ok(());
        }
        let written = match connection.stream.write(bytes) {
            Ok(written) => written,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            Err(error) => return Err(error.into()),
        };
        if written < bytes.len() {
            connection.unsent.extend_from_slice(&bytes[written..]);
            self.send_rest(place)?;
        }
        Ok(())
    }

    /// Writes what the users of shared connections left to write.
    pub(super) fn flush(&mut self) -> Result<(), LoadError> {
        while let Some(number) = self.unflushed.pop() {
            self.send_rest(number)?;
        }
        Ok(())
    }

    pub(super) fn send_rest(&mut self, number: usize) -> Result<(), LoadError> {
        let connection = &mut self.connections[number];
        let mut written = 0;
        let mut result = Ok(());
        while written < connection.unsent.len() || connection.stream.wants_write() {
            match connection.stream.write(&connection.unsent[written..]) {
                Ok(more) => written += more,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    result = Err(error.into());
                    break;
                }
            }
        }
        connection.unsent.drain(..written);
        result
    }
}
