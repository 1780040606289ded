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

mod host;
mod options;

use crate::cli;
use crate::exit::Exit;
use clap::{Arg, ArgMatches, Command, value_parser};
use host::ProgramHost;
use ladon_app::{Inbox, Program, Vm, VmOptions};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

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
        .required(true)
        .help("The program, - for the standard input, and its arguments");
    Command::new("tarantool")
        .about("Run a Lua program written for Tarantool; box.cfg starts the server")
        .after_help(
            "Settings come in front of FILE: with --resp 127.0.0.1:6379, Redis' clients reach the \
             same data. What box.cfg sets wins.",
        )
        .arg(program)
}

/// Runs a program to its end. Returns its exit code.
pub fn run(matches: &ArgMatches) -> std::process::ExitCode {
    let mut words = matches.get_many::<OsString>("program").into_iter().flatten().cloned();
    let file = words.next().map(PathBuf::from).unwrap_or_default();
    let arguments = words.map(|word| word.to_string_lossy().into_owned()).collect();
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
    let thread = std::thread::Builder::new().name("ladon-app".into()).stack_size(STACK_BYTES);
    let started = thread.spawn(move || {
        let mut vm = Vm::new(Box::new(host), inbox, &VmOptions::default())?;
        let code = vm.run(Program { file, arguments });
        // Fibers that wait are still on their stacks: the process ends with them.
        std::mem::forget(vm);
        Ok::<i32, String>(code)
    });
    let ended = started.map_err(|error| format!("cannot start the program's thread: {error}"));
    let code = ended.and_then(|it| it.join().map_err(|_| "the program's thread failed".to_owned())?);
    let stopped = server.stop();
    match (code, stopped) {
        (Ok(code), Ok(())) => std::process::ExitCode::from(code as u8),
        (Err(text), _) | (_, Err(text)) => {
            eprintln!("ladon: {text}");
            Exit::Failed.into()
        }
    }
}
