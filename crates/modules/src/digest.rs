//! What `lua/digest.lua` and `lua/crypto.lua` are built on: secure sums, HMAC, PBKDF2, AES, base64.

use crate::base64::{self, Style};
use crate::blocking::run_blocking;
use crate::cipher::{Cipher, Mode};
use crate::hashes;
use crate::stack::{Function, State, check_bytes, own, owned, push_bytes, raise, set_function};
use hmac::{Hmac, KeyInit, Mac};
use md5::Md5;
use mlua::ffi::*;
use sha1::Sha1;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};
use std::ffi::{CStr, c_int};

const FUNCTIONS: &[(&CStr, Function)] = &[
    (c"sink_new", sink_new),
    (c"sink_update", sink_update),
    (c"sink_result", sink_result),
    (c"cipher_new", cipher_new),
    (c"cipher_update", cipher_update),
    (c"cipher_result", cipher_result),
    (c"pbkdf2", pbkdf2_sha256),
    (c"urandom", urandom),
    (c"base64_encode", base64_encode),
    (c"base64_decode", base64_decode),
];

/// Bytes at most that a program gets from the system's chance at once.
const RANDOM_BYTES_MAX: usize = 64 << 20;

/// Pushes the natives of both modules.
pub(crate) unsafe fn push_natives(state: State) {
    // SAFETY: As for `stack`.
    unsafe {
        lua_createtable(state, 0, 24);
        for (name, function) in FUNCTIONS.iter().chain(hashes::FUNCTIONS) {
            set_function(state, name, *function);
        }
    }
}

/// Pushes `digest`.
pub(crate) unsafe fn open(state: State) {
    // SAFETY: As for `stack`.
    unsafe {
        push_natives(state);
        let source = include_str!("../lua/digest.lua");
        crate::stack::run_chunk(state, source, c"@builtin/digest.lua");
    }
}

/// Pushes `crypto`.
pub(crate) unsafe fn open_crypto(state: State) {
    // SAFETY: As for `stack`.
    unsafe {
        push_natives(state);
        let source = include_str!("../lua/crypto.lua");
        crate::stack::run_chunk(state, source, c"@builtin/crypto.lua");
    }
}

/// A sum that takes a text in parts.
trait Sink {
    fn update(&mut self, bytes: &[u8]);
    fn result(self: Box<Self>) -> Vec<u8>;
}

struct Plain<D>(D);

impl<D: Digest> Sink for Plain<D> {
    fn update(&mut self, bytes: &[u8]) {
        Digest::update(&mut self.0, bytes);
    }

    fn result(self: Box<Self>) -> Vec<u8> {
        self.0.finalize().to_vec()
    }
}

struct Keyed<M>(M);

impl<M: Mac> Sink for Keyed<M> {
    fn update(&mut self, bytes: &[u8]) {
        Mac::update(&mut self.0, bytes);
    }

    fn result(self: Box<Self>) -> Vec<u8> {
        self.0.finalize().into_bytes().to_vec()
    }
}

type AnySink = Option<Box<dyn Sink>>;

fn plain_sink(name: &[u8]) -> AnySink {
    Some(match name {
        b"md5" => Box::new(Plain(Md5::new())),
        b"sha1" => Box::new(Plain(Sha1::new())),
        b"sha224" => Box::new(Plain(Sha224::new())),
        b"sha256" => Box::new(Plain(Sha256::new())),
        b"sha384" => Box::new(Plain(Sha384::new())),
        b"sha512" => Box::new(Plain(Sha512::new())),
        _ => return None,
    })
}

fn keyed_sink(name: &[u8], key: &[u8]) -> AnySink {
    Some(match name {
        b"md5" => Box::new(Keyed(Hmac::<Md5>::new_from_slice(key).ok()?)),
        b"sha1" => Box::new(Keyed(Hmac::<Sha1>::new_from_slice(key).ok()?)),
        b"sha224" => Box::new(Keyed(Hmac::<Sha224>::new_from_slice(key).ok()?)),
        b"sha256" => Box::new(Keyed(Hmac::<Sha256>::new_from_slice(key).ok()?)),
        b"sha384" => Box::new(Keyed(Hmac::<Sha384>::new_from_slice(key).ok()?)),
        b"sha512" => Box::new(Keyed(Hmac::<Sha512>::new_from_slice(key).ok()?)),
        _ => return None,
    })
}

/// `sink_new(name [, key]) -> object`; nil if there is no such sum.
unsafe extern "C-unwind" fn sink_new(state: State) -> c_int {
    // SAFETY: As for `stack`; the sum belongs to the userdata.
    unsafe {
        let name = check_bytes(state, 1);
        let key = (lua_gettop(state) > 1).then(|| check_bytes(state, 2));
        let place = own::<AnySink>(state);
        *place = match key {
            Some(key) => keyed_sink(name, key),
            None => plain_sink(name),
        };
        if (*place).is_none() {
            lua_pushnil(state);
        }
        1
    }
}

/// `sink_update(object, text)`.
unsafe extern "C-unwind" fn sink_update(state: State) -> c_int {
    // SAFETY: As for `stack`.
    unsafe {
        let bytes = check_bytes(state, 2);
        match owned::<AnySink>(state, 1).and_then(|sink| (*sink).as_mut()) {
            Some(sink) => sink.update(bytes),
            None => raise(state, b"crypto: no sum is being made"),
        }
        0
    }
}

/// `sink_result(object) -> bytes`; the object is of no more use.
unsafe extern "C-unwind" fn sink_result(state: State) -> c_int {
    // SAFETY: As for `stack`; the bytes belong to a userdata.
    unsafe {
        let Some(sink) = owned::<AnySink>(state, 1).filter(|sink| (**sink).is_some()) else {
            raise(state, b"crypto: no sum is being made");
        };
        let out = own::<Vec<u8>>(state);
        if let Some(sink) = (*sink).take() {
            *out = sink.result();
        }
        push_bytes(state, &*out);
        1
    }
}

/// `cipher_new(mode, encrypts, key, iv) -> object`; nil if a length is wrong.
unsafe extern "C-unwind" fn cipher_new(state: State) -> c_int {
    // SAFETY: As for `stack`; the cipher belongs to the userdata.
    unsafe {
        let Some(mode) = Mode::named(check_bytes(state, 1)) else {
            raise(state, b"crypto: no such mode");
        };
        let (key, iv) = (check_bytes(state, 3), check_bytes(state, 4));
        let place = own::<Option<Cipher>>(state);
        *place = Cipher::new(mode, lua_toboolean(state, 2) != 0, key, iv);
        if (*place).is_none() {
            lua_pushnil(state);
        }
        1
    }
}

/// `cipher_update(object, text) -> bytes`.
unsafe extern "C-unwind" fn cipher_update(state: State) -> c_int {
    // SAFETY: As for `stack`; the bytes belong to a userdata.
    unsafe {
        let bytes = check_bytes(state, 2);
        let cipher = owned::<Option<Cipher>>(state, 1);
        let out = own::<Vec<u8>>(state);
        match cipher.and_then(|cipher| (*cipher).as_mut()) {
            Some(cipher) => cipher.update(bytes, &mut *out),
            None => raise(state, b"crypto: wrong object"),
        }
        push_bytes(state, &*out);
        1
    }
}

/// `cipher_result(object) -> bytes`; nil and a message if the text does not end as it has to.
unsafe extern "C-unwind" fn cipher_result(state: State) -> c_int {
    // SAFETY: As for `stack`; the bytes belong to a userdata.
    unsafe {
        let cipher = owned::<Option<Cipher>>(state, 1);
        let out = own::<Vec<u8>>(state);
        let done = match cipher.and_then(|cipher| (*cipher).as_mut()) {
            Some(cipher) => cipher.finish(&mut *out),
            None => raise(state, b"crypto: wrong object"),
        };
        match done {
            Ok(()) => {
                push_bytes(state, &*out);
                1
            }
            Err(text) => {
                lua_pushnil(state);
                push_bytes(state, text.as_bytes());
                2
            }
        }
    }
}

/// `pbkdf2(password, salt, iterations, bytes) -> key`, by HMAC of SHA-256 (RFC 8018).
unsafe extern "C-unwind" fn pbkdf2_sha256(state: State) -> c_int {
    /// What `digest.lua` allows.
    const KEY_BYTES_MAX: usize = 128;
    // SAFETY: As for `stack`; password and salt stay on the stack.
    unsafe {
        let (password, salt) = (check_bytes(state, 1), check_bytes(state, 2));
        let iterations = lua_tonumber(state, 3).max(1.0) as u32;
        let count = (lua_tonumber(state, 4).max(0.0) as usize).min(KEY_BYTES_MAX);
        let mut key = [0; KEY_BYTES_MAX];
        let room = &mut key[..count];
        run_blocking(state, || {
            pbkdf2::pbkdf2::<Hmac<Sha256>>(password, salt, iterations, room)
                .expect("HMAC takes keys of any length");
        });
        push_bytes(state, &key[..count]);
        1
    }
}

/// `urandom(count) -> bytes`.
unsafe extern "C-unwind" fn urandom(state: State) -> c_int {
    // SAFETY: As for `stack`; the bytes belong to the userdata.
    unsafe {
        let count = lua_tonumber(state, 1);
        if !(0.0..=RANDOM_BYTES_MAX as f64).contains(&count) {
            raise(state, b"digest.urandom: more than 64 MiB at once");
        }
        let room = &mut *own::<Vec<u8>>(state);
        room.resize(count as usize, 0);
        if getrandom::fill(room).is_err() {
            raise(state, b"the system has no random bytes");
        }
        push_bytes(state, room);
        1
    }
}

/// `base64_encode(text, pads, wraps, url safe) -> text`.
unsafe extern "C-unwind" fn base64_encode(state: State) -> c_int {
    // SAFETY: As for `stack`; the text belongs to the userdata.
    unsafe {
        let is = |index| lua_toboolean(state, index) != 0;
        let style = Style { pads: is(2), wraps: is(3), url_safe: is(4) };
        let bytes = check_bytes(state, 1);
        let out = &mut *own::<Vec<u8>>(state);
        base64::encode(bytes, style, out);
        push_bytes(state, out);
        *out = Vec::new();
        1
    }
}

/// `base64_decode(text) -> bytes`.
unsafe extern "C-unwind" fn base64_decode(state: State) -> c_int {
    // SAFETY: As for `stack`; the bytes belong to the userdata.
    unsafe {
        let text = check_bytes(state, 1);
        let out = &mut *own::<Vec<u8>>(state);
        base64::decode(text, out);
        push_bytes(state, out);
        *out = Vec::new();
        1
    }
}
