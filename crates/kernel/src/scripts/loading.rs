//! Runs the code of a library of functions.

use crate::command::error::CommandError;
use ladon_lua::{Host, Library, LogLevel, Stop, Vm, VmOptions};
use ladon_platform::Clock;
use ladon_resp::Proto;

/// How long a library may take: Redis' limit.
const LOAD_NS_MAX: u64 = 500_000_000;

/// What a library says about a function.
#[derive(Debug)]
pub struct Registered {
    /// Its name.
    pub name: Vec<u8>,
    /// Its description, if it has one.
    pub description: Option<Vec<u8>>,
    /// The names of its flags.
    pub flags: Vec<Vec<u8>>,
}

/// Runs a library on a machine of its own. `body` is its code from the end of the first line on.
pub fn run(body: &[u8], clock: &dyn Clock) -> Result<Vec<Registered>, CommandError> {
    let mut vm = Vm::new(VmOptions::default());
    let library = load(&mut vm, body, clock)?;
    let registered = library.functions.into_iter().map(|function| Registered {
        name: function.name,
        description: function.description,
        flags: function.flags,
    });
    Ok(registered.collect())
}

/// Loads a library.
pub(super) fn load(vm: &mut Vm, body: &[u8], clock: &dyn Clock) -> Result<Library, CommandError> {
    let until_ns = clock.monotonic_ns().saturating_add(LOAD_NS_MAX);
    let library = vm.load_library(body, &mut LoadHost { clock, until_ns });
    library.map_err(|text| CommandError::Other(text.into()))
}

/// The surroundings of code that is being loaded: it has no commands.
struct LoadHost<'a> {
    clock: &'a dyn Clock,
    until_ns: u64,
}

impl Host for LoadHost<'_> {
    fn call(&mut self, _: &[&[u8]], reply: &mut Vec<u8>) -> Result<(), Stop> {
        reply.extend_from_slice(b"-ERR commands cannot be called while a library is loaded\r\n");
        Ok(())
    }

    fn set_resp(&mut self, _: Proto) {}

    fn log(&mut self, level: LogLevel, text: &[u8]) {
        super::log(level, text);
    }

    fn may_run(&mut self, _: &[&[u8]]) -> Result<bool, String> {
        Err("ERR commands cannot be called while a library is loaded".to_owned())
    }

    fn tick(&mut self) -> Result<(), Stop> {
        if self.clock.monotonic_ns() > self.until_ns { Err(Stop) } else { Ok(()) }
    }
}
