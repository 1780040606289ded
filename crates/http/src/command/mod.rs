//! Commands on their way to the server, and which of them HTTP does not pass on.

pub mod json;

use std::io::Write as _;

/// Commands that change what a connection is: its user, database, protocol or mode. A connection of
/// HTTP is shared by requests that know nothing of each other.
const REFUSED: [&str; 23] = [
    "ASKING",
    "AUTH",
    "DISCARD",
    "EXEC",
    "HELLO",
    "MONITOR",
    "MULTI",
    "PSUBSCRIBE",
    "PSYNC",
    "PUNSUBSCRIBE",
    "QUIT",
    "READONLY",
    "READWRITE",
    "REPLCONF",
    "RESET",
    "SELECT",
    "SSUBSCRIBE",
    "SUBSCRIBE",
    "SUNSUBSCRIBE",
    "SYNC",
    "UNSUBSCRIBE",
    "UNWATCH",
    "WATCH",
];

/// What of `CLIENT` changes the connection.
const REFUSED_OF_CLIENT: [&str; 7] =
    ["CACHING", "CAPA", "GATE", "NO-EVICT", "NO-TOUCH", "REPLY", "TRACKING"];

/// Whether a command must not run on a shared connection; the reason in words.
fn refusal(args: &[&[u8]]) -> Option<String> {
    let is_one_of = |names: &[&str], arg: &[u8]| {
        names.iter().any(|name| name.as_bytes().eq_ignore_ascii_case(arg))
    };
    let name = args.first()?;
    let is_of_client = name.eq_ignore_ascii_case(b"CLIENT")
        && args.get(1).is_some_and(|of_client| is_one_of(&REFUSED_OF_CLIENT, of_client));
    if !is_of_client && !is_one_of(&REFUSED, name) {
        return None;
    }
    let shown: Vec<String> = args[..if is_of_client { 2 } else { 1 }]
        .iter()
        .map(|arg| String::from_utf8_lossy(arg).to_ascii_uppercase())
        .collect();
    let instead = match shown[0].as_str() {
        "MULTI" | "EXEC" | "DISCARD" | "WATCH" | "UNWATCH" => "; POST /multi-exec is a transaction",
        "SUBSCRIBE" | "PSUBSCRIBE" | "SSUBSCRIBE" => "; GET /subscribe/CHANNEL is a stream",
        "MONITOR" => "; GET /monitor is a stream",
        "AUTH" | "HELLO" => "; log in by the header Authorization",
        _ => "",
    };
    Some(format!("Command is not available over HTTP: '{}'{instead}", shown.join(" ")))
}

/// Commands as lists of arguments, which become requests of RESP a piece at a time.
#[derive(Debug, Default)]
pub struct Commands {
    /// All arguments, one after the other.
    bytes: Vec<u8>,
    /// Where each argument ends. Both lists have as many numbers as a body has short words.
    ends: Vec<u32>,
    /// How many arguments there are up to the end of each command.
    counts: Vec<u32>,
    next: Next,
}

/// What has not become a request yet.
#[derive(Debug, Default)]
struct Next {
    command: usize,
    argument: usize,
    /// Bytes of that argument that are there.
    sent: usize,
}

impl Commands {
    /// One command.
    ///
    /// # Errors
    /// In words, if it is not passed on.
    pub fn one(args: &[&[u8]]) -> Result<Commands, String> {
        let mut commands = Commands::default();
        commands.add(args);
        let last = args.len();
        commands.check(0..last)?;
        Ok(commands)
    }

    /// Adds a command of this crate's own.
    pub fn add(&mut self, args: &[&[u8]]) {
        for arg in args {
            self.extend(arg);
            self.end_argument();
        }
        self.counts.push(self.ends.len() as u32);
    }

    /// The same between `MULTI` and `EXEC`.
    #[must_use]
    pub fn in_transaction(self) -> Commands {
        let mut bytes = b"MULTI".to_vec();
        let mut ends = vec![5];
        let mut counts = vec![1];
        bytes.extend_from_slice(&self.bytes);
        ends.extend(self.ends.iter().map(|end| end + 5));
        counts.extend(self.counts.iter().map(|count| count + 1));
        let mut all = Commands { bytes, ends, counts, next: Next::default() };
        all.add(&[b"EXEC"]);
        all
    }

    /// How many commands.
    pub fn len(&self) -> usize {
        self.counts.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// Memory that they hold.
    pub fn bytes(&self) -> usize {
        let numbers = self.ends.capacity() + self.counts.capacity();
        self.bytes.capacity() + numbers * size_of::<u32>()
    }

    pub(crate) fn extend(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    pub(crate) fn argument_bytes(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn argument_from(&self, start: usize) -> &[u8] {
        &self.bytes[start..]
    }

    pub(crate) fn end_argument(&mut self) {
        // `check` refuses what does not fit.
        self.ends.push(self.bytes.len() as u32);
    }

    /// The arguments since the last command are one.
    pub(crate) fn end_command(&mut self) -> Result<(), String> {
        let first = self.counts.last().copied().unwrap_or(0) as usize;
        self.check(first..self.ends.len())?;
        self.counts.push(self.ends.len() as u32);
        Ok(())
    }

    fn check(&self, of: std::ops::Range<usize>) -> Result<(), String> {
        if u32::try_from(self.bytes.len().max(self.ends.len())).is_err() {
            return Err("the arguments have over 4 GiB".to_owned());
        }
        let first_two: Vec<&[u8]> = of.take(2).map(|index| self.argument(index)).collect();
        refusal(&first_two).map_or(Ok(()), Err)
    }

    fn argument(&self, index: usize) -> &[u8] {
        let start = if index == 0 { 0 } else { self.ends[index - 1] as usize };
        &self.bytes[start..self.ends[index] as usize]
    }

    /// Appends requests of RESP until there are `until` bytes in `out` or nothing is left. Returns
    /// whether something is left.
    pub fn write(&mut self, out: &mut Vec<u8>, until: usize) -> bool {
        while let Some(&last) = self.counts.get(self.next.command) {
            let last = last as usize;
            if out.len() >= until {
                return true;
            }
            let Next { command, argument, sent } = self.next;
            let first = if command == 0 { 0 } else { self.counts[command - 1] as usize };
            if argument == first && sent == 0 {
                write_head(out, b'*', last - first);
            }
            let bytes = self.argument(argument);
            if sent == 0 {
                write_head(out, b'$', bytes.len());
            }
            let end = bytes.len().min(sent + until.saturating_sub(out.len()).max(1));
            out.extend_from_slice(&bytes[sent..end]);
            if end < bytes.len() {
                self.next.sent = end;
                continue;
            }
            out.extend_from_slice(b"\r\n");
            self.next.sent = 0;
            self.next.argument += 1;
            if self.next.argument == last {
                self.next.command += 1;
            }
        }
        false
    }

    #[cfg(test)]
    pub(crate) fn lists(&self) -> Vec<Vec<Vec<u8>>> {
        let mut first = 0;
        let command = |&last: &u32| {
            let last = last as usize;
            let list = (first..last).map(|index| self.argument(index).to_vec()).collect();
            first = last;
            list
        };
        self.counts.iter().map(command).collect()
    }
}

/// Writes `*N` or `$N` with the line's end.
pub(crate) fn write_head(out: &mut Vec<u8>, kind: u8, count: usize) {
    out.push(kind);
    out.extend_from_slice(itoa::Buffer::new().format(count).as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// Writes one request of RESP.
pub(crate) fn write_request(out: &mut Vec<u8>, args: &[&[u8]]) {
    write_head(out, b'*', args.len());
    for arg in args {
        write_head(out, b'$', arg.len());
        out.extend_from_slice(arg);
        out.extend_from_slice(b"\r\n");
    }
}

/// A number as an argument.
pub(crate) fn number(value: impl std::fmt::Display) -> Vec<u8> {
    let mut text = Vec::new();
    // A vector takes everything.
    let _ = write!(text, "{value}");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_become_requests_in_pieces_of_any_size() {
        let mut all = Vec::new();
        write_request(&mut all, &[b"SET", b"k", b"", b"a longer value"]);
        write_request(&mut all, &[b"GET", b"k"]);
        for piece in 1..all.len() + 2 {
            let mut commands = Commands::default();
            commands.add(&[b"SET", b"k", b"", b"a longer value"]);
            commands.add(&[b"GET", b"k"]);
            let mut found = Vec::new();
            loop {
                let mut out = Vec::new();
                let more = commands.write(&mut out, piece);
                assert!(out.len() <= piece + 24, "{} of {piece}", out.len());
                found.extend(out);
                if !more {
                    break;
                }
            }
            assert_eq!(found, all, "by {piece}");
        }
    }

    #[test]
    fn what_changes_the_connection_is_refused() {
        for args in [&["select", "1"][..], &["CLIENT", "reply", "OFF"], &["Multi"], &["quit"]] {
            let args: Vec<&[u8]> = args.iter().map(|arg| arg.as_bytes()).collect();
            let error = Commands::one(&args).expect_err("refused");
            assert!(error.contains("not available"), "{error}");
        }
        assert!(Commands::one(&[b"CLIENT", b"LIST"]).is_ok());
        assert!(Commands::one(&[b"SET", b"select", b"1"]).is_ok());
    }
}
