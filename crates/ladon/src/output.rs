//! Standard output of the tools: buffered; a reader that closes the pipe is not an error.

use crate::exit::Exit;
use std::io::{self, BufWriter, Write};

/// Runs `print` with the standard output; gives its result, or how a failed write ends the tool.
pub fn with_stdout<R>(print: impl FnOnce(&mut dyn Write) -> io::Result<R>) -> Result<R, Exit> {
    let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    let printed = print(&mut out).and_then(|result| out.flush().map(|()| result));
    printed.map_err(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => Exit::Ok,
        _ => {
            eprintln!("ladon: cannot write the output: {error}");
            Exit::Refused
        }
    })
}
