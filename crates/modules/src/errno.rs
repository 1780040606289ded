//! `errno`: the number of the last error of the system, and what the numbers are called.

use crate::stack::{State, run_chunk, set_number};
use mlua::ffi::*;
use std::ffi::CStr;

macro_rules! codes {
    ($($name:ident)*) => {
        &[$((
            match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => panic!("a name without zeros"),
            },
            libc::$name,
        )),*]
    };
}

const CODES: &[(&CStr, i32)] = codes! {
    E2BIG EACCES EADDRINUSE EADDRNOTAVAIL EAFNOSUPPORT EAGAIN EALREADY EBADF EBADMSG EBUSY
    ECANCELED ECHILD ECONNABORTED ECONNREFUSED ECONNRESET EDEADLK EDESTADDRREQ EDOM EDQUOT
    EEXIST EFAULT EFBIG EHOSTUNREACH EIDRM EILSEQ EINPROGRESS EINTR EINVAL EIO EISCONN EISDIR
    ELOOP EMFILE EMLINK EMSGSIZE EMULTIHOP ENAMETOOLONG ENETDOWN ENETRESET ENETUNREACH ENFILE
    ENOBUFS ENODATA ENODEV ENOENT ENOEXEC ENOLCK ENOLINK ENOMEM ENOMSG ENOPROTOOPT ENOSPC ENOSR
    ENOSTR ENOSYS ENOTCONN ENOTDIR ENOTEMPTY ENOTSOCK ENOTSUP ENOTTY ENXIO EOPNOTSUPP EOVERFLOW
    EPERM EPIPE EPROTO EPROTONOSUPPORT EPROTOTYPE ERANGE EROFS ESPIPE ESRCH ESTALE ETIME
    ETIMEDOUT ETXTBSY EWOULDBLOCK EXDEV
};

/// Pushes the module.
pub(crate) unsafe fn open(state: State) {
    // SAFETY: As for `stack`.
    unsafe {
        lua_createtable(state, 0, CODES.len() as i32);
        for (name, code) in CODES {
            set_number(state, name, f64::from(*code));
        }
        run_chunk(state, include_str!("../lua/errno.lua"), c"@builtin/errno.lua");
    }
}
