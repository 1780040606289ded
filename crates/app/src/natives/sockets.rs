//! What `socket.lua` is built on: sockets that never hold up the thread. A fiber that cannot go on
//! waits; the loop wakes it when the socket is ready (edge-triggered, so each tries before it
//! waits).

use super::{Native, before_switch, raise_text};
use crate::blocking;
use crate::context::Context;
use crate::stack::{State, bytes, push_bytes};
use ladon_fibers::Woken;
use mlua::ffi::*;
use socket2::{Domain, SockAddr, SockRef, Socket, Type};
use std::ffi::{c_int, c_short};
use std::io::{self, ErrorKind};
use std::mem::MaybeUninit;
use std::net::{IpAddr, Shutdown, SocketAddr, ToSocketAddrs};
use std::os::fd::{BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};

pub(super) const NATIVES: &[Native] = &[
    (c"sock_listen", listen),
    (c"sock_accept", accept),
    (c"sock_connect", connect),
    (c"sock_error", error),
    (c"sock_read", read),
    (c"sock_write", write),
    (c"sock_wait", wait),
    (c"fd_wait", wait_any),
    (c"sock_shutdown", shutdown),
    (c"sock_close", close),
    (c"sock_name", name),
    (c"sock_addresses", sock_addresses),
];

/// Bytes that one read gets at most.
const READ_BYTES_MAX: usize = 1 << 20;
const BACKLOG: c_int = 1024;

/// Pushes what failed: nil, the error's number, its text.
unsafe fn push_error(state: State, error: &io::Error) -> c_int {
    // SAFETY: As promised by the caller. The text is short, and copied.
    unsafe {
        lua_pushnil(state);
        lua_pushnumber(state, f64::from(error.raw_os_error().unwrap_or(0)));
        let mut text = [0u8; 128];
        let shown = format_into(&mut text, error);
        push_bytes(state, shown);
    }
    3
}

/// The error's text without memory that an error of Lua would leave.
fn format_into<'a>(place: &'a mut [u8; 128], error: &io::Error) -> &'a [u8] {
    use std::io::Write;
    let mut rest: &mut [u8] = &mut place[..];
    // What does not fit is left out.
    let _ = write!(rest, "{error}");
    let left = rest.len();
    &place[..128 - left]
}

/// The addresses of a host and a port; of `unix/` and a path.
fn addresses(host: &str, port: &str) -> io::Result<Vec<SockAddr>> {
    if host == "unix/" {
        return Ok(vec![SockAddr::unix(port)?]);
    }
    let wrong = || io::Error::new(ErrorKind::InvalidInput, "the port is no number");
    let port: u16 = port.parse().map_err(|_| wrong())?;
    let all = match host {
        "" | "*" => vec![SocketAddr::from(([0, 0, 0, 0], port))],
        host => (host, port).to_socket_addrs()?.collect(),
    };
    Ok(all.into_iter().map(SockAddr::from).collect())
}

/// The addresses of the host and the port that are the first arguments. A name is looked up on
/// another thread, while only this fiber waits.
unsafe fn looked_up(state: State) -> io::Result<Vec<SockAddr>> {
    // SAFETY: As promised by the caller; the texts stay on the stack.
    unsafe {
        let (host, port) = address_of(state);
        let is_name =
            host != "unix/" && host.parse::<IpAddr>().is_err() && !matches!(&*host, "" | "*");
        if !is_name {
            return addresses(&host, &port);
        }
        let mut found = Err(io::Error::from(ErrorKind::NotFound));
        let context = std::ptr::from_ref(Context::of(state)).cast();
        blocking::run(state, context, &mut || found = addresses(&host, &port));
        found
    }
}

/// A socket at the first address where it can be made to do what it is for; else the last error.
fn at_first(
    found: io::Result<Vec<SockAddr>>,
    begin: impl Fn(&Socket, &SockAddr) -> io::Result<()>,
) -> io::Result<Socket> {
    let mut last = io::Error::from(ErrorKind::AddrNotAvailable);
    for address in found? {
        let socket = Socket::new(address.domain(), Type::STREAM, None)?;
        match begin(&socket, &address) {
            Ok(()) => return Ok(socket),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// The two texts that a socket's address has.
unsafe fn address_of<'a>(state: State) -> (std::borrow::Cow<'a, str>, std::borrow::Cow<'a, str>) {
    // SAFETY: As promised by the caller; the texts stay on the stack.
    unsafe {
        let host = String::from_utf8_lossy(bytes(state, 1).unwrap_or_default());
        (host, String::from_utf8_lossy(bytes(state, 2).unwrap_or_default()))
    }
}

/// A socket of the loop's from now on; pushes its number.
unsafe fn adopt(state: State, made: io::Result<Socket>) -> c_int {
    // SAFETY: As promised by the caller.
    unsafe {
        let context = Context::of(state);
        let done = made.and_then(|socket| {
            socket.set_nonblocking(true)?;
            let fd = OwnedFd::from(socket).into_raw_fd();
            context.poller.add(fd).inspect_err(|_| drop(OwnedFd::from_raw_fd(fd)))?;
            Ok(fd)
        });
        match done {
            Ok(fd) => {
                lua_pushnumber(state, f64::from(fd));
                1
            }
            Err(error) => push_error(state, &error),
        }
    }
}

/// `sock_listen(host, port) -> fd`.
unsafe extern "C-unwind" fn listen(state: State) -> c_int {
    fn made(found: io::Result<Vec<SockAddr>>) -> io::Result<Socket> {
        at_first(found, |socket, address| {
            if address.domain() != Domain::UNIX {
                socket.set_reuse_address(true)?;
            }
            socket.bind(address)?;
            socket.listen(BACKLOG)
        })
    }
    // SAFETY: As for all functions that Lua calls.
    unsafe {
        let done = made(looked_up(state));
        adopt(state, done)
    }
}

/// `sock_connect(host, port) -> fd` of a socket that may still be connecting.
unsafe extern "C-unwind" fn connect(state: State) -> c_int {
    fn made(found: io::Result<Vec<SockAddr>>) -> io::Result<Socket> {
        at_first(found, |socket, address| {
            socket.set_nonblocking(true)?;
            if address.domain() != Domain::UNIX {
                socket.set_tcp_nodelay(true)?;
            }
            match socket.connect(address) {
                Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => Ok(()),
                done => done,
            }
        })
    }
    // SAFETY: As for all functions that Lua calls.
    unsafe {
        let done = made(looked_up(state));
        adopt(state, done)
    }
}

/// `sock_addresses(host, port) -> host, port, host, port ...` of a name, or nil and what failed.
unsafe extern "C-unwind" fn sock_addresses(state: State) -> c_int {
    /// What is beyond is left out.
    const ADDRESSES_MAX: usize = 32;
    // SAFETY: As for all functions that Lua calls.
    unsafe {
        let mut addresses = [None; ADDRESSES_MAX];
        match looked_up(state) {
            Ok(found) => {
                let found = found.iter().filter_map(SockAddr::as_socket);
                addresses.iter_mut().zip(found).for_each(|(place, one)| *place = Some(one));
            }
            Err(error) => return push_error(state, &error),
        }
        luaL_checkstack(state, 2 * ADDRESSES_MAX as c_int, c"getaddrinfo".as_ptr());
        let mut pushed = 0;
        for address in addresses.iter().flatten() {
            push_address(state, address);
            pushed += 2;
        }
        pushed
    }
}

/// Pushes an address as a text, and its port.
unsafe fn push_address(state: State, address: &SocketAddr) {
    // SAFETY: As promised by the caller.
    unsafe {
        let mut text = [0u8; 64];
        let mut rest: &mut [u8] = &mut text[..];
        // 39 digits and colons at most.
        let _ = std::io::Write::write_fmt(&mut rest, format_args!("{}", address.ip()));
        let left = rest.len();
        push_bytes(state, &text[..64 - left]);
        lua_pushnumber(state, f64::from(address.port()));
    }
}

/// Runs something on the socket that is the first argument.
unsafe fn with<T>(state: State, run: impl FnOnce(SockRef<'_>) -> io::Result<T>) -> io::Result<T> {
    // SAFETY: As promised by the caller. `socket.lua` closes a socket once, and uses it no more.
    unsafe {
        let fd = lua_tonumber(state, 1) as RawFd;
        if fd < 0 || !Context::of(state).poller.has(fd) {
            return Err(io::Error::from_raw_os_error(libc::EBADF));
        }
        let borrowed = BorrowedFd::borrow_raw(fd);
        run(SockRef::from(&borrowed))
    }
}

/// `sock_accept(fd) -> fd, or nil and what failed`.
unsafe extern "C-unwind" fn accept(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls.
    unsafe {
        let accepted = with(state, |socket| {
            let (socket, address) = socket.accept()?;
            if address.domain() != Domain::UNIX {
                socket.set_tcp_nodelay(true)?;
            }
            Ok(socket)
        });
        adopt(state, accepted)
    }
}

/// `sock_error(fd) -> number`: what became of a connection; 0 for all is well.
unsafe extern "C-unwind" fn error(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls.
    unsafe {
        let number = match with(state, |socket| socket.take_error()) {
            Ok(error) => error.and_then(|error| error.raw_os_error()).unwrap_or(0),
            Err(error) => error.raw_os_error().unwrap_or(0),
        };
        lua_pushnumber(state, f64::from(number));
    }
    1
}

/// `sock_read(fd, most) -> text`, empty at the end; nil and what failed.
unsafe extern "C-unwind" fn read(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls. What was read is initialized.
    unsafe {
        let context = Context::of(state);
        let most = (lua_tonumber(state, 2).max(1.0) as usize).min(READ_BYTES_MAX);
        let mut buffer = context.take_buffer();
        buffer.reserve(most);
        let place: &mut [MaybeUninit<u8>] = &mut buffer.spare_capacity_mut()[..most];
        let done = with(state, |socket| socket.recv(place));
        match done {
            Ok(count) => {
                buffer.set_len(count);
                push_bytes(state, &buffer);
                context.give_buffer(buffer);
                1
            }
            Err(error) => {
                context.give_buffer(buffer);
                push_error(state, &error)
            }
        }
    }
}

/// `sock_write(fd, text, position) -> count`, from the position on (from 1); nil and what failed.
unsafe extern "C-unwind" fn write(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls.
    unsafe {
        let text = bytes(state, 2).unwrap_or_default();
        let start = (lua_tonumber(state, 3).max(1.0) as usize - 1).min(text.len());
        let sent = with(state, |socket| socket.send_with_flags(&text[start..], libc::MSG_NOSIGNAL));
        match sent {
            Ok(count) => {
                lua_pushnumber(state, count as f64);
                1
            }
            Err(error) => push_error(state, &error),
        }
    }
}

/// `sock_wait(fd, for writing, seconds or nil) -> boolean`: whether the socket may be ready.
unsafe extern "C-unwind" fn wait(state: State) -> c_int {
    const SECONDS_MAX: f64 = 1e9;
    // SAFETY: As for all functions that Lua calls.
    unsafe {
        let context = Context::of(state);
        before_switch(state);
        let fd = lua_tonumber(state, 1) as RawFd;
        let writes = lua_toboolean(state, 2) != 0;
        let deadline = (lua_type(state, 3) == LUA_TNUMBER).then(|| {
            let seconds = lua_tonumber(state, 3).clamp(0.0, SECONDS_MAX);
            context.now_ns() + (seconds * 1e9) as u64
        });
        let current = context.scheduler.current();
        if !context.poller.waits(fd, writes, current) {
            return raise_text(state, "another fiber waits for this socket already".to_owned());
        }
        let woken = context.scheduler.wait(deadline);
        context.poller.waits_no_more(fd, writes, current);
        lua_pushboolean(state, c_int::from(woken == Woken::Called));
    }
    1
}

/// Which of these ways a descriptor is ready for now: 1 to read, 2 to write. One that is none is
/// ready for all, so that its error is found.
fn ready_now(fd: RawFd, ways: u8) -> u8 {
    let asked = |way: u8, event: c_short| if ways & way != 0 { event } else { 0 };
    let events = asked(1, libc::POLLIN) | asked(2, libc::POLLOUT);
    let mut polled = libc::pollfd { fd, events, revents: 0 };
    // SAFETY: One descriptor, which the system checks.
    let count = unsafe { libc::poll(&raw mut polled, 1, 0) };
    if count < 1 {
        return 0;
    }
    if polled.revents & (libc::POLLERR | libc::POLLHUP | libc::POLLNVAL) != 0 {
        return ways;
    }
    let is_ready = |way, event| if polled.revents & event != 0 { way } else { 0 };
    is_ready(1, libc::POLLIN) | is_ready(2, libc::POLLOUT)
}

/// `fd_wait(fd, ways, seconds or nil) -> ways`: which ways any descriptor is ready for: 1 to read, 2
/// to write.
unsafe extern "C-unwind" fn wait_any(state: State) -> c_int {
    const SECONDS_MAX: f64 = 1e9;
    // SAFETY: As for all functions that Lua calls.
    unsafe {
        let context = Context::of(state);
        before_switch(state);
        let (fd, ways) = (lua_tonumber(state, 1) as RawFd, lua_tonumber(state, 2) as u8 & 3);
        let seconds = (lua_type(state, 3) == LUA_TNUMBER).then(|| lua_tonumber(state, 3));
        let mut ready = ready_now(fd, ways);
        if ready == 0 && seconds != Some(0.0) {
            let deadline = seconds
                .map(|seconds| context.now_ns() + (seconds.clamp(0.0, SECONDS_MAX) * 1e9) as u64);
            let current = context.scheduler.current();
            match context.poller.waits_for_any(fd, [ways & 1 != 0, ways & 2 != 0], current) {
                Ok(true) => {
                    context.scheduler.wait(deadline);
                    context.poller.waits_for_none(fd, current);
                    ready = ready_now(fd, ways);
                }
                Ok(false) => {
                    let text = "another fiber waits for this descriptor already";
                    return raise_text(state, text.to_owned());
                }
                Err(_) => ready = ways,
            }
        }
        lua_pushnumber(state, ready.into());
    }
    1
}

/// `sock_shutdown(fd, how)`: 0 reads, 1 writes, 2 both.
unsafe extern "C-unwind" fn shutdown(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls.
    unsafe {
        let how = match lua_tonumber(state, 2) as c_int {
            0 => Shutdown::Read,
            1 => Shutdown::Write,
            _ => Shutdown::Both,
        };
        match with(state, |socket| socket.shutdown(how)) {
            Ok(()) => {
                lua_pushboolean(state, 1);
                1
            }
            Err(error) => push_error(state, &error),
        }
    }
}

/// `sock_close(fd)`. Who waits for it is woken.
unsafe extern "C-unwind" fn close(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls. The number is the socket's, and nobody else's.
    unsafe {
        let context = Context::of(state);
        let fd = lua_tonumber(state, 1) as RawFd;
        if let Some(waiting) = context.poller.remove(fd) {
            for fiber in waiting.into_iter().flatten() {
                context.scheduler.wake(fiber);
            }
            drop(OwnedFd::from_raw_fd(fd));
        }
    }
    0
}

/// `sock_name(fd, of the peer) -> host, port`; of a unix socket `unix/` and its path.
unsafe extern "C-unwind" fn name(state: State) -> c_int {
    // SAFETY: As for all functions that Lua calls.
    unsafe {
        let of_peer = lua_toboolean(state, 2) != 0;
        let address = with(state, |socket| match of_peer {
            true => socket.peer_addr(),
            false => socket.local_addr(),
        });
        let Ok(address) = address else { return 0 };
        if let Some(address) = address.as_socket() {
            push_address(state, &address);
            return 2;
        }
        push_bytes(state, b"unix/");
        match address.as_pathname() {
            Some(path) => push_bytes(state, path.as_os_str().as_encoded_bytes()),
            None => push_bytes(state, b""),
        }
        2
    }
}
