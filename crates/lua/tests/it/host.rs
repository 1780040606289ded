//! A host for tests, and what is asked of it.

use ladon_lua::{Ended, Host, LogLevel, Stop, Vm, VmOptions, sha1_hex};
use ladon_resp::Proto;

/// Knows `raw BYTES`, which replies these bytes, `echo WORD...`, which replies its words as an
/// array, `stop`, and `proto`, which replies the protocol's number.
#[derive(Default)]
pub struct TestHost {
    pub proto: Option<Proto>,
    pub logged: Vec<(LogLevel, Vec<u8>)>,
    /// As many ticks are allowed; no bound if absent.
    pub ticks_left: Option<usize>,
    pub calls: usize,
}

impl Host for TestHost {
    fn call(&mut self, arguments: &[&[u8]], reply: &mut Vec<u8>) -> Result<(), Stop> {
        self.calls += 1;
        match arguments {
            [b"raw", bytes] => reply.extend_from_slice(bytes),
            [b"stop"] => return Err(Stop),
            [b"proto"] => {
                let number = if self.proto == Some(Proto::Resp3) { 3 } else { 2 };
                reply.extend_from_slice(format!(":{number}\r\n").as_bytes());
            }
            [b"echo", words @ ..] => {
                reply.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
                for word in words {
                    reply.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
                    reply.extend_from_slice(word);
                    reply.extend_from_slice(b"\r\n");
                }
            }
            _ => reply.extend_from_slice(b"-ERR unknown command\r\n"),
        }
        Ok(())
    }

    fn set_resp(&mut self, proto: Proto) {
        self.proto = Some(proto);
    }

    fn log(&mut self, level: LogLevel, text: &[u8]) {
        self.logged.push((level, text.to_vec()));
    }

    fn may_run(&mut self, arguments: &[&[u8]]) -> Result<bool, String> {
        match arguments[0] {
            b"echo" => Ok(true),
            b"stop" => Ok(false),
            _ => Err("ERR Invalid command passed to redis.acl_check_cmd()".to_owned()),
        }
    }

    fn tick(&mut self) -> Result<(), Stop> {
        match &mut self.ticks_left {
            None => Ok(()),
            Some(0) => Err(Stop),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
        }
    }
}

pub fn vm() -> Vm {
    Vm::new(VmOptions::default())
}

/// What a script replies, with its own name as `SHA`.
pub fn reply_of(
    vm: &mut Vm,
    host: &mut TestHost,
    body: &str,
    words: (&[&[u8]], &[&[u8]]),
    proto: Proto,
) -> Option<String> {
    let sha = sha1_hex(body.as_bytes());
    let script = match vm.load(&sha, body.as_bytes()) {
        Ok(script) => script,
        Err(text) => return Some(format!("-{text}")),
    };
    let mut out = Vec::new();
    let ended = vm.run(&script, words.0, words.1, proto, host, &mut out);
    vm.unload(&script);
    if ended == Ended::Stopped {
        assert!(out.is_empty(), "a script that was stopped has no reply");
        return None;
    }
    let text: String = out.iter().map(|&byte| char::from(byte)).collect();
    Some(text.replace(std::str::from_utf8(&sha).unwrap(), "SHA"))
}

/// What a script replies to a client with RESP2, in a machine of its own.
pub fn eval(body: &str) -> String {
    reply_of(&mut vm(), &mut TestHost::default(), body, (&[], &[]), Proto::Resp2).unwrap()
}

/// As [`eval`], with RESP3.
pub fn eval3(body: &str) -> String {
    reply_of(&mut vm(), &mut TestHost::default(), body, (&[], &[]), Proto::Resp3).unwrap()
}

/// Compares many scripts' replies; `\r\n` is written as `|`.
pub fn check(cases: &[(&str, &str)], eval: impl Fn(&str) -> String) {
    for (body, expected) in cases {
        assert_eq!(eval(body).replace("\r\n", "|"), *expected, "{body}");
    }
}
