//! `ladon console`: a shell for Lua in a program, this one's or Tarantool's. In a terminal it reads
//! lines with history, and the tabulator completes names; from a pipe it runs a statement a line.

mod connection;

use crate::exit::Exit;
use crate::output;
use crate::terminal::{Line, Terminal};
use clap::{Arg, ArgMatches, Command};
use connection::{Connection, ConsoleError};
use rustyline::completion::Completer;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::Validator;
use rustyline::{Context, Helper};
use std::cell::RefCell;
use std::io::{self, IsTerminal as _};
use std::rc::Rc;

/// The command line.
pub fn command() -> Command {
    Command::new("console")
        .about("Run Lua in a program, by its console or over IPROTO")
        .after_help(
            "ADDRESS is what the program gave to console.listen, or its port of IPROTO, where users \
             need the right to execute everything. \\help lists the console's commands, \\quit ends.",
        )
        .arg(
            Arg::new("address")
                .value_name("ADDRESS")
                .default_value("127.0.0.1:3301")
                .help("HOST:PORT, or the path of a unix socket"),
        )
        .args(crate::space::login_arguments())
}

/// Runs `ladon console`.
pub fn run(matches: &ArgMatches) -> Exit {
    let address = matches.get_one::<String>("address").cloned().unwrap_or_default();
    let connection = match Connection::open(matches, &address) {
        Ok(connection) => Rc::new(RefCell::new(connection)),
        Err(error) => return refused(&error.to_string()),
    };
    if !io::stdin().is_terminal() {
        let mut lines = io::stdin().lines();
        return read_statements(&connection, |_| match lines.next() {
            Some(Ok(line)) => Ok(Line::Text(line)),
            Some(Err(error)) => Err(format!("cannot read the input: {error}")),
            None => Ok(Line::End),
        });
    }
    let names = Names { of: Rc::clone(&connection) };
    let mut terminal = match Terminal::open("console_history", Some(names)) {
        Ok(terminal) => terminal,
        Err(why) => return refused(&why),
    };
    println!("connected to {address}; \\help helps, \\quit ends");
    let exit = read_statements(&connection, |is_first| {
        terminal.read_line(&match is_first {
            true => format!("{address}> "),
            false => format!("{:1$}> ", "", address.len()),
        })
    });
    terminal.keep_history();
    exit
}

fn refused(why: &str) -> Exit {
    eprintln!("ladon: {why}");
    Exit::Refused
}

/// Runs one statement after the other; `next` is asked for a line, the first of a statement or not.
fn read_statements(
    connection: &RefCell<Connection>,
    mut next: impl FnMut(bool) -> Result<Line, String>,
) -> Exit {
    let mut statement = String::new();
    loop {
        match next(statement.is_empty()) {
            Ok(Line::Text(line)) => statement.push_str(&line),
            Ok(Line::Interrupted) => statement.clear(),
            Ok(Line::End) if statement.is_empty() => return Exit::Ok,
            // The answer says what is missing.
            Ok(Line::End) => {}
            Err(why) => return refused(&why),
        }
        let text = statement.trim();
        if text.is_empty() {
            statement.clear();
            continue;
        }
        if ladon_app::is_unfinished(text.as_bytes()) {
            statement.push('\n');
            continue;
        }
        if matches!(text, "\\quit" | "\\q") {
            return Exit::Ok;
        }
        let answer = connection.borrow_mut().run(text);
        statement.clear();
        match answer {
            Ok(text) => {
                if let Err(exit) = output::with_stdout(|out| writeln!(out, "{text}")) {
                    return exit;
                }
            }
            Err(ConsoleError::Refused(why)) => eprintln!("{why}"),
            Err(error) => return refused(&error.to_string()),
        }
    }
}

/// Completes names of the program.
struct Names {
    of: Rc<RefCell<Connection>>,
}

impl Completer for Names {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        let before = &line[..position];
        let is_of_name = |char: char| char.is_ascii_alphanumeric() || "_.:".contains(char);
        let word = before.rsplit(|char| !is_of_name(char)).next().unwrap_or("");
        let last = word.rfind(['.', ':']).map_or(0, |at| at + 1);
        // Who cannot be asked completes nothing.
        let names = self.of.borrow_mut().names(&word[..last], &word[last..]).unwrap_or_default();
        Ok((position - (word.len() - last), names))
    }
}

impl Hinter for Names {
    type Hint = String;
}
impl Highlighter for Names {}
impl Validator for Names {}
impl Helper for Names {}
