//! `ladon tarantool FILE`: a Lua program as Tarantool runs it, with the server inside of it.
//!
//! ```text
//!   ladon-app       the program: init.lua, its fibers, what clients call
//!      │ box.cfg
//!      └──> ladon-server, ladon-io-N ...: the server, as `ladon serve` runs it
//! ```
//!
//! The server starts when the program calls `box.cfg`, and the process ends with the program: at
//! the end of its file if it has not called `box.cfg`, else at `os.exit` or a signal.

mod arguments;
mod host;
mod options;

use crate::cli;
use crate::exit::Exit;
use crate::output;
use arguments::Asked;
use clap::{Arg, ArgMatches, Command, value_parser};
use host::{ProgramHost, ProgramServer};
use ladon_app::{Inbox, Program, TARANTOOL_VERSION, Vm, VmOptions};
use std::ffi::OsString;
use std::io::{self, IsTerminal as _};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Bytes of the stack of the program's thread; fibers have their own.
const STACK_BYTES: usize = 8 << 20;

/// The command.
pub fn command() -> Command {
    let program = Arg::new("program")
        .value_name("FILE [ARGUMENT]")
        .value_parser(value_parser!(OsString))
        .num_args(1..)
        .trailing_var_arg(true)
        .allow_hyphen_values(true)
        .help("The program, - for the standard input, and its arguments; -e, -l and -i as tarantool has them");
    Command::new("tarantool")
        .about("Run a Lua program written for Tarantool; box.cfg starts the server")
        .after_help(
            "Settings come in front of FILE: with --resp 127.0.0.1:6379, Redis' clients reach the \
             same data. What box.cfg sets wins.",
        )
        .arg(program)
}

/// What programs look for: the version of Tarantool that this is like, and then this one's.
fn version() -> String {
    format!("Tarantool {TARANTOOL_VERSION}\nLadon {}\n", env!("CARGO_PKG_VERSION"))
}

fn print(text: &str) -> std::process::ExitCode {
    let printed = output::with_stdout(|out| out.write_all(text.as_bytes()));
    printed.err().unwrap_or(Exit::Ok).into()
}

/// The program's exit code. A program that does not end once its server stops is left where it is.
fn await_end(
    ended: &Receiver<Result<i32, String>>,
    server: &ProgramServer,
    inbox: &Inbox,
) -> Result<i32, String> {
    const LOOK_EVERY: Duration = Duration::from_millis(50);
    /// How long it may go on after its server was asked to stop.
    const GRACE: Duration = Duration::from_secs(1);
    let mut stopping_since = None;
    loop {
        match ended.recv_timeout(LOOK_EVERY) {
            Ok(code) => return code,
            Err(RecvTimeoutError::Disconnected) => {
                return Err("the program's thread failed".to_owned());
            }
            Err(RecvTimeoutError::Timeout) => inbox.look(),
        }
        if server.is_stopping() {
            let since = *stopping_since.get_or_insert_with(Instant::now);
            if since.elapsed() > GRACE {
                tracing::warn!("the program does not end: it is left where it is");
                return Ok(0);
            }
        }
    }
}

/// Runs a program to its end. Returns its exit code.
pub fn run(matches: &ArgMatches) -> std::process::ExitCode {
    let words = matches.get_many::<OsString>("program").into_iter().flatten();
    let words: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
    let program = match arguments::read(&words) {
        // At a terminal, a console is what is wanted.
        Ok(Asked::Run(program)) if words.is_empty() && io::stdin().is_terminal() => {
            Program { file: None, is_interactive: true, ..program }
        }
        Ok(Asked::Run(program)) => program,
        Ok(Asked::Help) => return print(arguments::HELP),
        Ok(Asked::Version) => return print(&version()),
        Err(why) => {
            eprintln!("tarantool: {why}\n\n{}", arguments::HELP);
            return Exit::Usage.into();
        }
    };
    if let Err(error) = cli::load(matches) {
        eprintln!("{error}\nladon: these settings cannot be used; nothing was started");
        return Exit::Usage.into();
    }
    let inbox = match Inbox::new() {
        Ok(inbox) => Arc::new(inbox),
        Err(error) => {
            eprintln!("ladon: cannot wait for anything: {error}");
            return Exit::Refused.into();
        }
    };
    let (host, server) = ProgramHost::new(matches.clone(), Arc::clone(&inbox));
    let watched = Arc::clone(&inbox);
    let thread = std::thread::Builder::new().name("ladon-app".into()).stack_size(STACK_BYTES);
    let (ended, has_ended) = channel();
    let started = thread.spawn(move || {
        let run = || {
            let mut vm = Vm::new(Box::new(host), inbox, &VmOptions::default())?;
            let code = vm.run(program);
            // Fibers that wait are still on their stacks: the process ends with them.
            std::mem::forget(vm);
            Ok::<i32, String>(code)
        };
        // Whoever waited may have given up.
        let _ = ended.send(run());
    });
    let code = match started {
        Ok(_) => await_end(&has_ended, &server, &watched),
        Err(error) => Err(format!("cannot start the program's thread: {error}")),
    };
    let stopped = server.stop();
    match (code, stopped) {
        (Ok(code), Ok(())) => std::process::ExitCode::from(code as u8),
        (Err(text), _) | (_, Err(text)) => {
            eprintln!("ladon: {text}");
            Exit::Failed.into()
        }
    }
}
