//! What `lua/fio.lua` is built on: the system's calls about files. Each answers nil and the error's
//! number if it fails. All but those about the process itself may wait, so they run by
//! [`run_blocking`].

use crate::blocking::run_blocking;
use crate::stack::{Function, State, check_bytes, own, push_bytes, push_functions, run_chunk};
use mlua::ffi::*;
use std::ffi::{CStr, OsStr, c_int, c_long};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// Bytes that one call reads at most; `fio.lua` asks again.
const READ_BYTES_MAX: usize = 64 << 20;

const FUNCTIONS: &[(&CStr, Function)] = &[
    (c"open", open_file),
    (c"close", close),
    (c"read", read),
    (c"read_into", read_into),
    (c"write", write),
    (c"write_from", write_from),
    (c"seek", seek),
    (c"truncate", truncate),
    (c"ftruncate", ftruncate),
    (c"fsync", fsync),
    (c"fdatasync", fdatasync),
    (c"rename", rename),
    (c"link", link),
    (c"symlink", symlink),
    (c"unlink", unlink),
    (c"mkdir", mkdir),
    (c"rmdir", rmdir),
    (c"chmod", chmod),
    (c"chown", chown),
    (c"utime", utime),
    (c"readlink", readlink),
    (c"listdir", listdir),
    (c"glob", glob),
    (c"tempdir", tempdir),
    (c"copyfile", copyfile),
    (c"stat", stat),
    (c"fstat", fstat),
    (c"sync", sync),
    (c"umask", umask),
    (c"cwd", cwd),
    (c"chdir", chdir),
];

/// Pushes the module.
pub(crate) unsafe fn open(state: State) {
    // SAFETY: As for `stack`.
    unsafe {
        push_functions(state, FUNCTIONS);
        run_chunk(state, include_str!("../lua/fio.lua"), c"@builtin/fio.lua");
    }
}

/// The path at `index`, up to a zero byte. It stays where it is while it is on the stack.
unsafe fn path<'a>(state: State, index: c_int) -> &'a CStr {
    // SAFETY: As for `stack`; Lua puts a zero behind each string.
    unsafe {
        check_bytes(state, index);
        CStr::from_ptr(lua_tolstring(state, index, std::ptr::null_mut()))
    }
}

fn as_path(path: &CStr) -> &Path {
    Path::new(OsStr::from_bytes(path.to_bytes()))
}

unsafe fn int(state: State, index: c_int) -> i64 {
    // SAFETY: As for `stack`.
    unsafe { lua_tonumber(state, index) as i64 }
}

unsafe fn push_failed(state: State, error: &io::Error) -> c_int {
    // SAFETY: As for `stack`.
    unsafe {
        lua_pushnil(state);
        lua_pushnumber(state, error.raw_os_error().unwrap_or(libc::EIO).into());
    }
    2
}

unsafe fn push_number(state: State, done: io::Result<i64>) -> c_int {
    // SAFETY: As for `stack`. An error of the system owns no memory.
    unsafe {
        match done {
            Ok(number) => {
                lua_pushnumber(state, number as f64);
                1
            }
            Err(error) => push_failed(state, &error),
        }
    }
}

fn checked(result: i64) -> io::Result<i64> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Runs a call of the system that answers a number, -1 if it fails.
unsafe fn call(state: State, run: impl FnOnce() -> i64 + Send) -> c_int {
    // SAFETY: As for `stack`.
    unsafe {
        let done = run_blocking(state, || checked(run()));
        push_number(state, done)
    }
}

/// Functions that are one call of the system.
macro_rules! calls {
    ($($name:ident: |$state:ident| $($local:ident = $value:expr),* => $run:expr;)*) => {$(
        unsafe extern "C-unwind" fn $name($state: State) -> c_int {
            // SAFETY: As for `stack`; paths end with a zero and stay on the stack.
            unsafe {
                $(let $local = $value;)*
                call($state, move || i64::from($run))
            }
        }
    )*};
}

calls! {
    open_file: |state| file = path(state, 1), flags = int(state, 2) as c_int,
        mode = int(state, 3) as libc::mode_t
        => libc::open(file.as_ptr(), flags | libc::O_CLOEXEC, libc::c_uint::from(mode));
    close: |state| fd = int(state, 1) as c_int => libc::close(fd);
    truncate: |state| file = path(state, 1), length = int(state, 2)
        => libc::truncate(file.as_ptr(), length);
    ftruncate: |state| fd = int(state, 1) as c_int, length = int(state, 2)
        => libc::ftruncate(fd, length);
    fsync: |state| fd = int(state, 1) as c_int => libc::fsync(fd);
    fdatasync: |state| fd = int(state, 1) as c_int => libc::fdatasync(fd);
    rename: |state| from = path(state, 1), to = path(state, 2)
        => libc::rename(from.as_ptr(), to.as_ptr());
    link: |state| from = path(state, 1), to = path(state, 2)
        => libc::link(from.as_ptr(), to.as_ptr());
    symlink: |state| from = path(state, 1), to = path(state, 2)
        => libc::symlink(from.as_ptr(), to.as_ptr());
    unlink: |state| file = path(state, 1) => libc::unlink(file.as_ptr());
    mkdir: |state| file = path(state, 1), mode = int(state, 2) as libc::mode_t
        => libc::mkdir(file.as_ptr(), mode);
    rmdir: |state| file = path(state, 1) => libc::rmdir(file.as_ptr());
    chmod: |state| file = path(state, 1), mode = int(state, 2) as libc::mode_t
        => libc::chmod(file.as_ptr(), mode);
    chown: |state| file = path(state, 1), user = int(state, 2) as libc::uid_t,
        group = int(state, 3) as libc::gid_t
        => libc::chown(file.as_ptr(), user, group);
    seek: |state| fd = int(state, 1) as c_int, offset = int(state, 2),
        whence = int(state, 3) as c_int
        => libc::lseek(fd, offset, whence);
    utime: |state| file = path(state, 1), accessed = lua_tonumber(state, 2),
        modified = lua_tonumber(state, 3)
        => {
            let times = [time_of(accessed), time_of(modified)];
            libc::utimensat(libc::AT_FDCWD, file.as_ptr(), times.as_ptr(), 0)
        };
    sync: |state| => { libc::sync(); 0 };
}

fn time_of(seconds: f64) -> libc::timespec {
    let whole = seconds.floor();
    libc::timespec { tv_sec: whole as libc::time_t, tv_nsec: ((seconds - whole) * 1e9) as c_long }
}

/// Reads at a place, or where the file is if that is negative.
unsafe fn read_at(fd: c_int, place: *mut u8, count: usize, offset: i64) -> io::Result<i64> {
    // SAFETY: As promised by the caller, there is room for so many bytes.
    unsafe {
        checked(match offset {
            0.. => libc::pread(fd, place.cast(), count, offset) as i64,
            _ => libc::read(fd, place.cast(), count) as i64,
        })
    }
}

/// `read(fd, count, offset) -> text`, empty at the end.
unsafe extern "C-unwind" fn read(state: State) -> c_int {
    // SAFETY: As for `stack`; the room belongs to the userdata.
    unsafe {
        let (fd, offset) = (int(state, 1) as c_int, int(state, 3));
        let count = (lua_tonumber(state, 2).max(0.0) as usize).min(READ_BYTES_MAX);
        let room = &mut *own::<Vec<u8>>(state);
        let done = run_blocking(state, || {
            room.resize(count, 0);
            read_at(fd, room.as_mut_ptr(), count, offset)
        });
        match done {
            Ok(count) => {
                push_bytes(state, &room[..count as usize]);
                *room = Vec::new();
                1
            }
            Err(error) => {
                *room = Vec::new();
                push_failed(state, &error)
            }
        }
    }
}

/// `read_into(fd, address, count, offset) -> count`: into memory of the program's.
unsafe extern "C-unwind" fn read_into(state: State) -> c_int {
    // SAFETY: As for `stack`. As with all of FFI, the program answers for its memory.
    unsafe {
        let (fd, place) = (int(state, 1) as c_int, int(state, 2) as usize);
        let (count, offset) = (int(state, 3).max(0) as usize, int(state, 4));
        let done = run_blocking(state, || read_at(fd, place as *mut u8, count, offset));
        push_number(state, done)
    }
}

/// Writes all of it.
unsafe fn write_all(fd: c_int, mut bytes: &[u8], mut offset: i64) -> io::Result<i64> {
    let total = bytes.len() as i64;
    while !bytes.is_empty() {
        // SAFETY: The bytes are there.
        let count = unsafe {
            match offset {
                0.. => libc::pwrite(fd, bytes.as_ptr().cast(), bytes.len(), offset),
                _ => libc::write(fd, bytes.as_ptr().cast(), bytes.len()),
            }
        };
        match checked(count as i64) {
            Ok(count) => {
                bytes = &bytes[count as usize..];
                offset += if offset < 0 { 0 } else { count };
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(total)
}

/// `write(fd, text, offset) -> count`.
unsafe extern "C-unwind" fn write(state: State) -> c_int {
    // SAFETY: As for `stack`; the text stays on the stack.
    unsafe {
        let (fd, text, offset) = (int(state, 1) as c_int, check_bytes(state, 2), int(state, 3));
        let done = run_blocking(state, || write_all(fd, text, offset));
        push_number(state, done)
    }
}

/// `write_from(fd, address, count, offset) -> count`: from memory of the program's.
unsafe extern "C-unwind" fn write_from(state: State) -> c_int {
    // SAFETY: As for `stack`. As with all of FFI, the program answers for its memory.
    unsafe {
        let (fd, place) = (int(state, 1) as c_int, int(state, 2) as usize);
        let (count, offset) = (int(state, 3).max(0) as usize, int(state, 4));
        let done = run_blocking(state, || {
            let bytes = std::slice::from_raw_parts(place as *const u8, count);
            write_all(fd, bytes, offset)
        });
        push_number(state, done)
    }
}

/// `readlink(path) -> path`.
unsafe extern "C-unwind" fn readlink(state: State) -> c_int {
    // SAFETY: As for `stack`; the target belongs to the userdata.
    unsafe {
        let file = path(state, 1);
        let target = &mut *own::<Vec<u8>>(state);
        let done = run_blocking(state, || {
            *target = std::fs::read_link(as_path(file))?.into_os_string().into_encoded_bytes();
            Ok(())
        });
        push_text(state, target, done)
    }
}

unsafe fn push_text(state: State, text: &mut Vec<u8>, done: io::Result<()>) -> c_int {
    // SAFETY: As for `stack`. An error of the system owns no memory.
    unsafe {
        match done {
            Ok(()) => {
                push_bytes(state, text);
                *text = Vec::new();
                1
            }
            Err(error) => push_failed(state, &error),
        }
    }
}

unsafe fn push_list(state: State, list: &mut Vec<Vec<u8>>, done: io::Result<()>) -> c_int {
    // SAFETY: As for `stack`. An error of the system owns no memory.
    unsafe {
        if let Err(error) = done {
            return push_failed(state, &error);
        }
        lua_createtable(state, list.len() as c_int, 0);
        for (place, name) in (1..).zip(&*list) {
            push_bytes(state, name);
            lua_rawseti_(state, -2, place);
        }
        *list = Vec::new();
        1
    }
}

/// `listdir(path) -> names`, without `.` and `..`.
unsafe extern "C-unwind" fn listdir(state: State) -> c_int {
    // SAFETY: As for `stack`; the names belong to the userdata.
    unsafe {
        let folder = path(state, 1);
        let names = &mut *own::<Vec<Vec<u8>>>(state);
        let done = run_blocking(state, || {
            for entry in std::fs::read_dir(as_path(folder))? {
                names.push(entry?.file_name().into_encoded_bytes());
            }
            Ok(())
        });
        push_list(state, names, done)
    }
}

/// `glob(pattern) -> paths` (`glob(3)`); an empty table if there is none.
unsafe extern "C-unwind" fn glob(state: State) -> c_int {
    // SAFETY: As for `stack`; the paths belong to the userdata. What `glob` has filled in is freed.
    unsafe {
        let pattern = path(state, 1);
        let paths = &mut *own::<Vec<Vec<u8>>>(state);
        let done = run_blocking(state, || {
            let mut found: libc::glob_t = std::mem::zeroed();
            let result = libc::glob(pattern.as_ptr(), libc::GLOB_NOESCAPE, None, &raw mut found);
            for place in 0..if result == 0 { found.gl_pathc as usize } else { 0 } {
                let found = CStr::from_ptr(*found.gl_pathv.add(place));
                paths.push(found.to_bytes().to_vec());
            }
            libc::globfree(&raw mut found);
            match result {
                0 | libc::GLOB_NOMATCH => Ok(()),
                libc::GLOB_NOSPACE => Err(io::Error::from_raw_os_error(libc::ENOMEM)),
                _ => Err(io::Error::last_os_error()),
            }
        });
        push_list(state, paths, done)
    }
}

/// `tempdir() -> path`: a new folder of its own, in `TMPDIR` or `/tmp`.
unsafe extern "C-unwind" fn tempdir(state: State) -> c_int {
    // SAFETY: As for `stack`; the path belongs to the userdata, and ends with a zero.
    unsafe {
        let made = &mut *own::<Vec<u8>>(state);
        let done = run_blocking(state, || {
            let mut template =
                std::env::temp_dir().join("XXXXXX").into_os_string().into_encoded_bytes();
            template.push(0);
            if libc::mkdtemp(template.as_mut_ptr().cast()).is_null() {
                return Err(io::Error::last_os_error());
            }
            template.pop();
            *made = template;
            Ok(())
        });
        push_text(state, made, done)
    }
}

/// `copyfile(from, to) -> bytes`, with the file's rights.
unsafe extern "C-unwind" fn copyfile(state: State) -> c_int {
    // SAFETY: As for `stack`; the paths stay on the stack.
    unsafe {
        let (from, to) = (path(state, 1), path(state, 2));
        let done = run_blocking(state, || {
            std::fs::copy(as_path(from), as_path(to)).map(|count| count as i64)
        });
        push_number(state, done)
    }
}

/// `stat(path, follows a link) -> table`.
unsafe extern "C-unwind" fn stat(state: State) -> c_int {
    // SAFETY: As for `stack`; zeros are a valid value of it.
    unsafe {
        let (file, follows) = (path(state, 1), lua_toboolean(state, 2) != 0);
        let done = run_blocking(state, || {
            let mut found: libc::stat = std::mem::zeroed();
            let flags = if follows { 0 } else { libc::AT_SYMLINK_NOFOLLOW };
            checked(libc::fstatat(libc::AT_FDCWD, file.as_ptr(), &raw mut found, flags).into())
                .map(|_| found)
        });
        push_stat(state, done)
    }
}

/// `fstat(fd) -> table`.
unsafe extern "C-unwind" fn fstat(state: State) -> c_int {
    // SAFETY: As for `stack`; zeros are a valid value of it.
    unsafe {
        let fd = int(state, 1) as c_int;
        let done = run_blocking(state, || {
            let mut found: libc::stat = std::mem::zeroed();
            checked(libc::fstat(fd, &raw mut found).into()).map(|_| found)
        });
        push_stat(state, done)
    }
}

unsafe fn push_stat(state: State, done: io::Result<libc::stat>) -> c_int {
    // SAFETY: As for `stack`. An error of the system owns no memory.
    unsafe {
        let found = match done {
            Ok(found) => found,
            Err(error) => return push_failed(state, &error),
        };
        let time = |seconds: i64, nanoseconds: i64| seconds as f64 + nanoseconds as f64 / 1e9;
        let fields = [
            (c"dev", found.st_dev as f64),
            (c"inode", found.st_ino as f64),
            (c"mode", f64::from(found.st_mode)),
            (c"nlink", found.st_nlink as f64),
            (c"uid", f64::from(found.st_uid)),
            (c"gid", f64::from(found.st_gid)),
            (c"rdev", found.st_rdev as f64),
            (c"size", found.st_size as f64),
            (c"blksize", found.st_blksize as f64),
            (c"blocks", found.st_blocks as f64),
            (c"ctime", time(found.st_ctime, found.st_ctime_nsec)),
            (c"mtime", time(found.st_mtime, found.st_mtime_nsec)),
            (c"atime", time(found.st_atime, found.st_atime_nsec)),
        ];
        lua_createtable(state, 0, fields.len() as c_int);
        for (name, value) in fields {
            lua_pushnumber(state, value);
            lua_setfield(state, -2, name.as_ptr());
        }
        1
    }
}

/// `umask(mask) -> the mask before`.
unsafe extern "C-unwind" fn umask(state: State) -> c_int {
    // SAFETY: As for `stack`.
    unsafe {
        lua_pushnumber(state, libc::umask(int(state, 1) as libc::mode_t).into());
        1
    }
}

/// `cwd() -> path` of the folder that the process works in.
unsafe extern "C-unwind" fn cwd(state: State) -> c_int {
    // SAFETY: As for `stack`; the path belongs to the userdata.
    unsafe {
        let found = &mut *own::<Vec<u8>>(state);
        let done = std::env::current_dir()
            .map(|folder| *found = folder.into_os_string().into_encoded_bytes());
        push_text(state, found, done)
    }
}

/// `chdir(path) -> 0`.
unsafe extern "C-unwind" fn chdir(state: State) -> c_int {
    // SAFETY: As for `stack`; the path ends with a zero.
    unsafe {
        let done = checked(libc::chdir(path(state, 1).as_ptr()).into());
        push_number(state, done)
    }
}
