//! `ladon sql`: a shell for SQL. In a terminal it reads lines with history; from a pipe or from `-c` it
//! runs statements and ends with the first error.

mod answer;
mod shell;
mod split;
mod table;

use crate::exit::Exit;
use crate::space::client::ClientError;
use crate::terminal::{Line, Terminal};
use clap::{Arg, ArgAction, ArgMatches, Command};
use shell::Shell;
use std::io::{self, BufRead as _, IsTerminal as _};

/// Statements of one text, or of a pipe, in bytes: a statement is one packet.
const STATEMENT_BYTES_MAX: usize = 16 << 20;

/// The command line.
pub fn command() -> Command {
    Command::new("sql")
        .about("Run SQL on a server that speaks IPROTO, this one or Tarantool")
        .after_help(
            "In the shell: \\d lists tables, \\d NAME describes one, \\timing shows how long a \
             statement took, \\csv switches between tables and CSV, \\q ends. A statement ends with \
             a semicolon. From a pipe and with -c, the first error ends it: exit code 3.",
        )
        .arg(
            Arg::new("address")
                .value_name("HOST:PORT")
                .default_value("127.0.0.1:3301")
                .help("Where the server listens for IPROTO"),
        )
        .arg(
            Arg::new("command")
                .short('c')
                .long("command")
                .value_name("SQL")
                .action(ArgAction::Append)
                .help("Run these statements and end; may be given several times"),
        )
        .arg(
            Arg::new("csv")
                .long("csv")
                .action(ArgAction::SetTrue)
                .help("Print rows as CSV: NULL is empty, an empty text is \"\""),
        )
        .args(crate::space::login_arguments())
}

/// Runs `ladon sql`.
pub fn run(matches: &ArgMatches) -> Exit {
    let address = matches.get_one::<String>("address").cloned().unwrap_or_default();
    let client = match crate::space::log_in(matches, &address) {
        Ok(client) => client,
        Err(error) => return refused(&error.to_string()),
    };
    let shell = Shell::new(client, matches.get_flag("csv"));
    match matches.get_many::<String>("command") {
        Some(texts) => run_texts(shell, texts.map(String::as_str)),
        None if io::stdin().is_terminal() => interactive(shell, &address),
        None => run_pipe(shell),
    }
}

fn refused(why: &str) -> Exit {
    eprintln!("ladon: {why}");
    Exit::Refused
}

fn run_texts<'t>(mut shell: Shell, texts: impl Iterator<Item = &'t str>) -> Exit {
    for text in texts {
        let mut rest = text.to_owned();
        // The last statement needs no semicolon.
        if !rest.trim_start().starts_with('\\') {
            rest.push_str("\n;");
        }
        if let Err(exit) = run_all(&mut shell, &mut rest) {
            return exit;
        }
    }
    Exit::Ok
}

fn run_pipe(mut shell: Shell) -> Exit {
    let mut pending = String::new();
    for line in io::stdin().lock().lines() {
        match line {
            Ok(line) => pending = pending + &line + "\n",
            Err(error) => return refused(&format!("cannot read the input: {error}")),
        }
        if pending.len() > STATEMENT_BYTES_MAX {
            return refused("a statement is limited to 16 MiB");
        }
        if let Err(exit) = run_all(&mut shell, &mut pending) {
            return exit;
        }
    }
    pending.push_str("\n;");
    run_all(&mut shell, &mut pending).err().unwrap_or(Exit::Ok)
}

/// Runs all statements that are complete, and takes them out of the text. The first error ends it.
fn run_all(shell: &mut Shell, text: &mut String) -> Result<(), Exit> {
    while let Some(statement) = split::take(text) {
        match shell.run(&statement) {
            Ok(true) => {}
            Ok(false) => return Err(Exit::Ok),
            Err(shell::Failed::Asked(error)) => return Err(refused(&error.to_string())),
            Err(shell::Failed::Output(exit)) => return Err(exit),
        }
    }
    Ok(())
}

fn interactive(mut shell: Shell, address: &str) -> Exit {
    let mut terminal = match Terminal::<()>::open("sql_history", None) {
        Ok(terminal) => terminal,
        Err(why) => return refused(&why),
    };
    println!("SQL on {address}. \\? helps, \\q ends.");
    let exit = read_lines(&mut shell, &mut terminal);
    terminal.keep_history();
    exit
}

fn read_lines(shell: &mut Shell, terminal: &mut Terminal) -> Exit {
    let mut pending = String::new();
    loop {
        let prompt = if pending.trim().is_empty() { "sql> " } else { "  -> " };
        let line = match terminal.read_line(prompt) {
            Ok(Line::Text(line)) => line,
            Ok(Line::Interrupted) => {
                pending.clear();
                continue;
            }
            Ok(Line::End) => return Exit::Ok,
            Err(why) => return refused(&why),
        };
        pending = pending + &line + "\n";
        while let Some(statement) = split::take(&mut pending) {
            match shell.run(&statement) {
                Ok(true) => {}
                Ok(false) => return Exit::Ok,
                // Only the connection's end ends the shell.
                Err(shell::Failed::Asked(error @ ClientError::Ended(_))) => {
                    return refused(&error.to_string());
                }
                Err(shell::Failed::Asked(error)) => eprintln!("{error}"),
                Err(shell::Failed::Output(exit)) => return exit,
            }
        }
    }
}
