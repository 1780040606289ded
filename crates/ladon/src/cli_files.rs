//! What the command line gives to others: completions for shells, and the manual's pages.

use crate::cli;
use crate::exit::Exit;
use crate::output::with_stdout;
use clap::{Arg, ArgMatches, Command, value_parser};
use clap_complete::Shell;
use std::path::PathBuf;

/// `ladon completions`.
pub fn completions_command() -> Command {
    Command::new("completions").about("Print the completions of this command for a shell").arg(
        Arg::new("shell").required(true).value_parser(value_parser!(Shell)).help("Which shell"),
    )
}

/// `ladon man`.
pub fn man_command() -> Command {
    let folder = Arg::new("dir").value_name("DIR").required(true);
    let folder = folder.value_parser(value_parser!(PathBuf)).help("Where the files go");
    Command::new("man").about("Write the manual's pages to a folder").arg(folder)
}

/// Prints the completions for a shell.
pub fn completions(matches: &ArgMatches) -> Exit {
    let Some(&shell) = matches.get_one::<Shell>("shell") else { return Exit::Usage };
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut cli::command(), "ladon", &mut text);
    with_stdout(|out| out.write_all(&text)).err().unwrap_or(Exit::Ok)
}

/// Writes `ladon.1`, and a page for each subcommand.
pub fn man(matches: &ArgMatches) -> Exit {
    let Some(folder) = matches.get_one::<PathBuf>("dir") else { return Exit::Usage };
    match clap_mangen::generate_to(cli::command(), folder) {
        Ok(()) => Exit::Ok,
        Err(error) => {
            eprintln!("ladon: cannot write to {}: {error}", folder.display());
            Exit::Refused
        }
    }
}
