//! One statement after the other, and the commands of the shell.

use super::answer::Answer;
use super::table;
use crate::exit::Exit;
use crate::output;
use crate::space::client::{Client, ClientError};
use std::time::Instant;

const HELP: &str = "\
\\d         tables and views
\\d NAME    a table's columns and indexes; the name as it was written in quotes
\\timing    show how long statements take, or no longer
\\csv       print CSV, or tables again
\\q         end
Statements end with a semicolon.
";

/// Spaces of users begin with this number.
const TABLES: &str = "SELECT \"name\" AS \"table\", \"engine\", \"field_count\" AS \"columns\" \
                      FROM \"_vspace\" WHERE \"id\" >= 512 ORDER BY \"name\"";

/// Why a statement has printed nothing.
pub enum Failed {
    Asked(ClientError),
    Output(Exit),
}

impl From<ClientError> for Failed {
    fn from(error: ClientError) -> Failed {
        Failed::Asked(error)
    }
}

/// A shell with its connection.
pub struct Shell {
    client: Client,
    is_csv: bool,
    is_timed: bool,
}

impl Shell {
    pub fn new(client: Client, is_csv: bool) -> Shell {
        Shell { client, is_csv, is_timed: false }
    }

    /// Runs a statement or a command. Says whether to go on.
    pub fn run(&mut self, text: &str) -> Result<bool, Failed> {
        if let Some(command) = text.strip_prefix('\\') {
            return self.command(command);
        }
        self.ask(text)?;
        Ok(true)
    }

    fn command(&mut self, text: &str) -> Result<bool, Failed> {
        let (word, argument) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let argument = argument.trim().trim_end_matches(';').trim();
        match word {
            "q" => return Ok(false),
            "d" if argument.is_empty() => self.ask(TABLES)?,
            "d" => self.describe(argument)?,
            "timing" => {
                self.is_timed = !self.is_timed;
                say(if self.is_timed { "Timing is on.\n" } else { "Timing is off.\n" })?;
            }
            "csv" => {
                self.is_csv = !self.is_csv;
                say(if self.is_csv { "Rows are CSV.\n" } else { "Rows are tables.\n" })?;
            }
            "?" => say(HELP)?,
            _ => {
                let why = format!("there is no command \\{word}; \\? lists them");
                return Err(ClientError::Refused(why).into());
            }
        }
        Ok(true)
    }

    fn describe(&mut self, name: &str) -> Result<(), Failed> {
        let plain = name.strip_prefix('"').and_then(|name| name.strip_suffix('"'));
        let name = plain.map_or_else(|| name.to_uppercase(), |name| name.replace("\"\"", "\""));
        let quoted = format!("\"{}\"", name.replace('"', "\"\""));
        let columns = self.execute(&format!("PRAGMA table_info({quoted})"))?;
        if columns.rows.is_empty() {
            let why = format!("there is no table '{name}'; \\d lists them");
            return Err(ClientError::Refused(why).into());
        }
        self.print(&columns)?;
        self.ask(&format!("PRAGMA index_list({quoted})"))
    }

    fn ask(&mut self, statement: &str) -> Result<(), Failed> {
        let begun = Instant::now();
        let answer = self.execute(statement)?;
        let took = begun.elapsed();
        self.print(&answer)?;
        if self.is_timed {
            say(&format!("Time: {:.3} ms\n", took.as_secs_f64() * 1e3))?;
        }
        Ok(())
    }

    fn execute(&mut self, statement: &str) -> Result<Answer, ClientError> {
        self.client.execute(statement, |reply| {
            Answer::read(reply.metadata, &reply.tuples(), reply.sql_info)
        })
    }

    fn print(&self, answer: &Answer) -> Result<(), Failed> {
        let printed = output::with_stdout(|out| match self.is_csv {
            true => table::print_csv(answer, out),
            false => table::print(answer, out),
        });
        printed.map_err(Failed::Output)
    }
}

fn say(text: &str) -> Result<(), Failed> {
    output::with_stdout(|out| out.write_all(text.as_bytes())).map_err(Failed::Output)
}
