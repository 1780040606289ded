//! A connection to the console of a program.
//!
//! ```text
//!   console.listen:   a greeting of 128 bytes, "... (Lua console)"; a statement and the delimiter and
//!                     a line's end; the answer, which ends with a line "..." (YAML) or ";" (Lua)
//!   IPROTO:           EVAL of `console.eval`
//! ```

use crate::space;
use crate::space::client::{Client, ClientError, Stream};
use clap::ArgMatches;
use ladon_iproto::greeting::GREETING_BYTES;
use std::io;
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;
use thiserror::Error;

/// An answer that is longer is not for a terminal.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// What ends a statement, so that it may have several lines.
const DELIMITER: &str = "$EOF$";

/// An answer in Lua ends where nothing follows for so long.
const QUIET: Duration = Duration::from_millis(20);

/// Names in a value that begin with a text: `NAMES(path, beginning)` gives them, a line each.
const NAMES: &str = r"
    local path, beginning = ...
    local value = _G
    for name in path:gmatch('[^.:]+') do
        value = value[name]
    end
    local found, seen, depth = {}, {}, 0
    while type(value) == 'table' and depth < 8 do
        for name in pairs(value) do
            if type(name) == 'string' and name:sub(1, #beginning) == beginning
                and name:match('^[%a_][%w_]*$') and not seen[name] then
                seen[name] = true
                table.insert(found, name)
            end
        end
        local mt = getmetatable(value)
        value = type(mt) == 'table' and rawget(mt, '__index') or nil
        depth = depth + 1
    end
    table.sort(found)
    return table.concat(found, '\n')";

/// Why there is no answer.
#[derive(Debug, Error)]
pub enum ConsoleError {
    #[error("nothing listens at {0}: {1}")]
    Connect(String, io::Error),
    #[error("{0} is neither a console nor IPROTO")]
    Stranger(String),
    #[error("the connection ended: {0}")]
    Ended(#[from] io::Error),
    #[error("the answer has over {} MiB", ANSWER_BYTES_MAX >> 20)]
    TooLong,
    #[error("{0}")]
    Client(ClientError),
    /// The connection goes on.
    #[error("{0}")]
    Refused(String),
}

impl From<ClientError> for ConsoleError {
    fn from(error: ClientError) -> ConsoleError {
        match error {
            ClientError::Refused(why) => ConsoleError::Refused(why),
            error => ConsoleError::Client(error),
        }
    }
}

/// A connection.
pub enum Connection {
    Console(Console),
    Iproto(Client),
}

impl Connection {
    /// Connects, and finds out who is there.
    ///
    /// # Errors
    /// Who is there is neither, or refuses the login.
    pub fn open(matches: &ArgMatches, address: &str) -> Result<Connection, ConsoleError> {
        let failed = |error| ConsoleError::Connect(address.to_owned(), error);
        let mut stream: Box<dyn Stream> = match address.strip_prefix("unix/:") {
            Some(path) => Box::new(UnixStream::connect(path).map_err(failed)?),
            None if address.contains('/') => {
                Box::new(UnixStream::connect(address).map_err(failed)?)
            }
            None => Box::new(TcpStream::connect(place(address)).map_err(failed)?),
        };
        let mut greeting = [0; GREETING_BYTES];
        stream.set_timeout(Some(Duration::from_secs(5)))?;
        let is_greeted = stream.read_exact(&mut greeting).is_ok();
        stream.set_timeout(None)?;
        if is_greeted && String::from_utf8_lossy(&greeting).contains("(Lua console)") {
            let mut console = Console { stream, unread: Vec::new(), searched: 0, is_lua: false };
            let set = format!("require('console').delimiter('{DELIMITER}')\n");
            console.stream.write_all(set.as_bytes())?;
            console.answer()?;
            return Ok(Connection::Console(console));
        }
        if let Some(client) = Client::greeted(stream, &greeting).filter(|_| is_greeted) {
            return Ok(Connection::Iproto(space::log_in_over(matches, || Ok(client))?));
        }
        Err(ConsoleError::Stranger(address.to_owned()))
    }

    /// Runs a statement, and returns its answer.
    ///
    /// # Errors
    /// There is none.
    pub fn run(&mut self, text: &str) -> Result<String, ConsoleError> {
        match self {
            Connection::Console(console) => console.run(text),
            Connection::Iproto(client) => {
                let text = client.eval("return require('console').eval(...)", &[text])?;
                Ok(text.trim_end().to_owned())
            }
        }
    }

    /// Names in the value at a path, such as `box.space.`, that begin with a text.
    ///
    /// # Errors
    /// As [`Connection::run`].
    pub fn names(&mut self, path: &str, beginning: &str) -> Result<Vec<String>, ConsoleError> {
        let path = path.trim_end_matches(['.', ':']);
        let text = match self {
            Connection::Iproto(client) => client.eval(NAMES, &[path, beginning])?,
            // Its answer would be Lua.
            Connection::Console(console) if console.is_lua => return Ok(Vec::new()),
            Connection::Console(console) => {
                console.run(&format!("(function(...) {NAMES} end)('{path}', '{beginning}')"))?
            }
        };
        let is_name = |line: &&str| line.chars().all(|it| it.is_ascii_alphanumeric() || it == '_');
        let lines = text.lines().map(|line| line.trim_start_matches(['-', ' ', '|']).trim());
        Ok(lines.filter(|line| !line.is_empty()).filter(is_name).map(str::to_owned).collect())
    }
}

fn place(address: &str) -> String {
    match address.parse::<u16>() {
        Ok(port) => format!("127.0.0.1:{port}"),
        Err(_) => address.to_owned(),
    }
}

/// A console that a program listens with.
pub struct Console {
    stream: Box<dyn Stream>,
    unread: Vec<u8>,
    /// Bytes of `unread` that no end of an answer begins in.
    searched: usize,
    /// Answers are Lua, not YAML.
    is_lua: bool,
}

impl Console {
    fn run(&mut self, text: &str) -> Result<String, ConsoleError> {
        self.stream.write_all(format!("{text}{DELIMITER}\n").as_bytes())?;
        let format = text.strip_prefix("\\set output ").or(text.strip_prefix("\\s o "));
        let was_lua = self.is_lua;
        if let Some(format) = format {
            // The answer is in the new format already; a refusal is in the old one.
            self.is_lua = format.trim().starts_with("lua");
        }
        let answer = self.answer();
        if let Ok(answer) = &answer
            && answer.contains("error")
            && format.is_some()
        {
            self.is_lua = was_lua;
        }
        answer
    }

    /// The next answer, with what is pushed before it.
    fn answer(&mut self) -> Result<String, ConsoleError> {
        let mut found = Vec::new();
        loop {
            if let Some(document) = self.document() {
                let is_pushed = document.starts_with(b"%TAG") || document.starts_with(b"-- Push");
                found.extend(document);
                if !is_pushed {
                    return Ok(String::from_utf8_lossy(&found).trim_end().to_owned());
                }
            } else if !self.receive(None)? {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
            }
        }
    }

    /// A whole document, if it has come.
    fn document(&mut self) -> Option<Vec<u8>> {
        const YAML_END: &[u8] = b"\n...\n";
        let rest = &self.unread[self.searched..];
        if let Some(at) = rest.windows(YAML_END.len()).position(|part| part == YAML_END) {
            let end = std::mem::take(&mut self.searched) + at + YAML_END.len();
            return Some(self.unread.drain(..end).collect());
        }
        self.searched = self.unread.len().saturating_sub(YAML_END.len() - 1);
        // What is in a text may look like the end.
        while self.is_lua && self.unread.ends_with(b";") {
            match self.receive(Some(QUIET)) {
                Ok(true) => {}
                Ok(false) | Err(_) => {
                    self.searched = 0;
                    return Some(std::mem::take(&mut self.unread));
                }
            }
        }
        None
    }

    /// Reads what comes. Returns whether something has.
    fn receive(&mut self, timeout: Option<Duration>) -> Result<bool, ConsoleError> {
        let mut part = [0; 64 << 10];
        self.stream.set_timeout(timeout)?;
        let count = match self.stream.read(&mut part) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            Err(error) => return Err(error.into()),
        };
        self.unread.extend_from_slice(&part[..count]);
        match self.unread.len() > ANSWER_BYTES_MAX {
            true => Err(ConsoleError::TooLong),
            false => Ok(count > 0),
        }
    }
}
