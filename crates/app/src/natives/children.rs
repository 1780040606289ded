//! What `popen.lua` is built on: children of the process, whose pipes are sockets of the loop.

use super::Native;
use crate::blocking;
use crate::context::Context;
use crate::stack::{State, bytes};
use mlua::ffi::*;
use std::ffi::{OsStr, OsString, c_int};
use std::io;
use std::os::fd::{IntoRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

pub(super) const NATIVES: &[Native] =
    &[(c"child_spawn", spawn), (c"child_wait", wait), (c"child_kill", kill)];

/// Words of a command line, and of an environment, at most.
const WORDS_MAX: usize = 4_096;

/// What a child begins with.
struct Plan {
    words: Vec<OsString>,
    /// `name=value` each; the process' own without.
    environment: Option<Vec<OsString>>,
    streams: [How; 3],
    has_session: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum How {
    Inherit,
    DevNull,
    Close,
    Pipe,
}

/// The texts of the table at `index`; nothing of anything else.
unsafe fn texts(state: State, index: c_int) -> Vec<OsString> {
    // SAFETY: As promised by the caller; what is no text is left out.
    unsafe {
        let mut all = Vec::new();
        if lua_type(state, index) != LUA_TTABLE {
            return all;
        }
        for place in 1..=lua_objlen(state, index).min(WORDS_MAX) {
            lua_rawgeti_(state, index, place as c_int);
            if let Some(text) = bytes(state, -1) {
                all.push(OsStr::from_bytes(text).to_owned());
            }
            lua_settop(state, -2);
        }
        all
    }
}

unsafe fn how(state: State, index: c_int) -> How {
    // SAFETY: As promised by the caller.
    match unsafe { bytes(state, index) } {
        Some(b"devnull") => How::DevNull,
        Some(b"close") => How::Close,
        Some(b"pipe") => How::Pipe,
        _ => How::Inherit,
    }
}

/// Starts it. Returns its number, and our ends of its pipes.
fn start(plan: &Plan) -> io::Result<(u32, [Option<OwnedFd>; 3])> {
    let Some(first) = plan.words.first() else {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    };
    // The path as it is: no folder of `PATH` is looked into.
    let mut path = OsString::from(if first.as_bytes().contains(&b'/') { "" } else { "./" });
    path.push(first);
    let mut command = Command::new(path);
    command.arg0(first).args(&plan.words[1..]);
    if let Some(environment) = &plan.environment {
        command.env_clear();
        for pair in environment {
            let mut halves = pair.as_bytes().splitn(2, |byte| *byte == b'=');
            let name = halves.next().unwrap_or_default();
            let value = halves.next().unwrap_or_default();
            if !name.is_empty() {
                command.env(OsStr::from_bytes(name), OsStr::from_bytes(value));
            }
        }
    }
    let mut ours = [None, None, None];
    for (place, how) in plan.streams.iter().enumerate() {
        let theirs = match how {
            How::Inherit | How::Close => Stdio::inherit(),
            How::DevNull => Stdio::null(),
            How::Pipe => {
                let (our, their) = UnixStream::pair()?;
                our.set_nonblocking(true)?;
                ours[place] = Some(OwnedFd::from(our));
                Stdio::from(OwnedFd::from(their))
            }
        };
        match place {
            0 => command.stdin(theirs),
            1 => command.stdout(theirs),
            _ => command.stderr(theirs),
        };
    }
    let (streams, has_session) = (plan.streams, plan.has_session);
    // SAFETY: Between fork and exec, the closure makes calls of the system alone, which a signal's
    // handler may make too.
    unsafe {
        command.pre_exec(move || {
            if has_session && libc::setsid() < 0 {
                return Err(io::Error::last_os_error());
            }
            // Whatever a library has left open without the flag; older systems have no such call.
            let (first, last) = (3 as libc::c_uint, libc::c_uint::MAX);
            libc::syscall(libc::SYS_close_range, first, last, libc::CLOSE_RANGE_CLOEXEC);
            for (place, how) in (0..).zip(streams) {
                if how == How::Close {
                    libc::close(place);
                }
            }
            Ok(())
        });
    }
    Ok((command.spawn()?.id(), ours))
}

/// `child_spawn(words, environment or nil, stdin, stdout, stderr, own session) -> pid, fds or false`;
/// nil and the error's number if there is none.
unsafe extern "C-unwind" fn spawn(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls. The plan is dropped before an error can come.
    unsafe {
        lua_settop(state, 6);
        let context = Context::of(state);
        let plan = Plan {
            words: texts(state, 1),
            environment: (lua_type(state, 2) == LUA_TTABLE).then(|| texts(state, 2)),
            streams: [how(state, 3), how(state, 4), how(state, 5)],
            has_session: lua_toboolean(state, 6) != 0,
        };
        let mut done = Err(io::Error::from_raw_os_error(libc::EAGAIN));
        let of = std::ptr::from_ref(context).cast();
        blocking::run(state, of, &mut || done = start(&plan));
        drop(plan);
        let (pid, ours) = match done {
            Ok(started) => started,
            Err(error) => {
                lua_pushnil(state);
                lua_pushnumber(state, error.raw_os_error().unwrap_or(libc::EINVAL).into());
                return 2;
            }
        };
        let fds: [Option<RawFd>; 3] = ours.map(|fd| fd.map(IntoRawFd::into_raw_fd));
        lua_pushnumber(state, pid.into());
        for fd in fds {
            match fd {
                Some(fd) if context.poller.add(fd).is_ok() => lua_pushnumber(state, fd.into()),
                Some(fd) => {
                    libc::close(fd);
                    lua_pushboolean(state, 0);
                }
                None => lua_pushboolean(state, 0),
            }
        }
        4
    }
}

/// `child_wait(pid) -> nothing while it lives; "exited" and its code; "signaled" and the signal`. A
/// child is asked for until it has ended, and no more; a code of -1 is one that is not known.
unsafe extern "C-unwind" fn wait(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls.
    unsafe {
        let mut status = 0;
        let pid = lua_tonumber(state, 1) as libc::pid_t;
        let found = match pid {
            1.. => libc::waitpid(pid, &raw mut status, libc::WNOHANG),
            _ => -1,
        };
        if found == 0 {
            return 0;
        }
        if found < 0 {
            // Somebody else has asked for it: how it ended is not known.
            lua_pushstring_(state, c"exited".as_ptr());
            lua_pushnumber(state, -1.0);
        } else if libc::WIFSIGNALED(status) {
            lua_pushstring_(state, c"signaled".as_ptr());
            lua_pushnumber(state, libc::WTERMSIG(status).into());
        } else {
            lua_pushstring_(state, c"exited".as_ptr());
            lua_pushnumber(state, libc::WEXITSTATUS(status).into());
        }
        2
    }
}

/// `child_kill(pid, signal, whole group) -> 0, or the error's number`.
unsafe extern "C-unwind" fn kill(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls.
    unsafe {
        let (pid, signal) =
            (lua_tonumber(state, 1) as libc::pid_t, lua_tonumber(state, 2) as c_int);
        // 0 and below mean more than one process.
        let result = match (pid > 0, lua_toboolean(state, 3) != 0) {
            (false, _) => libc::ESRCH,
            (true, true) if libc::killpg(pid, signal) == 0 => 0,
            (true, false) if libc::kill(pid, signal) == 0 => 0,
            _ => io::Error::last_os_error().raw_os_error().unwrap_or(libc::EINVAL),
        };
        lua_pushnumber(state, result.into());
        1
    }
}
