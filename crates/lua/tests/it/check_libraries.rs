//! What the fuzz targets `cjson`, `cmsgpack` and `struct_format` check; the ordinary tests replay
//! the kept corpora through the same code.

use super::host::{TestHost, reply_of};
use ladon_lua::{Vm, VmOptions};
use ladon_resp::Proto;
use std::cell::RefCell;

/// Any bytes as JSON. What is decoded and can be encoded comes back as it was encoded.
pub fn cjson(data: &[u8]) {
    run(
        "local ok, v = pcall(cjson.decode, ARGV[1]) if not ok then return 'refused' end \
         local can, s = pcall(cjson.encode, v) if not can then return 'refused' end \
         return #cjson.encode(cjson.decode(s)) == #s and 'well' or s",
        &[data],
    );
}

/// Any bytes as MessagePack. What is unpacked and packed comes back as it was packed, but for what
/// is nested too deep: it becomes nil, which is no key, and within an array nothing.
pub fn cmsgpack(data: &[u8]) {
    run(
        "local ok, v = pcall(function() return {cmsgpack.unpack(ARGV[1])} end) \
         if not ok then return 'refused' end \
         local can, s = pcall(function() return cmsgpack.pack(cmsgpack.unpack(cmsgpack.pack(v))) end) \
         if not can then return 'refused' end \
         pcall(cmsgpack.unpack_one, ARGV[1], #ARGV[1] / 2) pcall(cmsgpack.unpack_limit, ARGV[1], 2) \
         return #cmsgpack.pack(cmsgpack.unpack(s)) == #s and 'well' or s",
        &[data],
    );
}

/// Any bytes as a format, and what follows the first zero byte as data. What is packed of what was
/// unpacked has as many values, unless a string was taken for a size.
pub fn struct_format(data: &[u8]) {
    let end = data.iter().position(|&byte| byte == 0).unwrap_or(data.len());
    let (format, data) = (&data[..end], data.get(end + 1..).unwrap_or_default());
    run(
        "local f, d = ARGV[1], ARGV[2] pcall(struct.size, f) pcall(struct.pack, f, 1, 'x', 2, 'yz', -3) \
         local ok, v = pcall(function() return {struct.unpack(f, d)} end) \
         if not ok then return 'refused' end \
         local can, s = pcall(struct.pack, f, unpack(v)) if not can then return 'refused' end \
         local again, w = pcall(function() return {struct.unpack(f, s)} end) \
         return (not again or #w == #v) and 'well' or s",
        &[format, data],
    );
}

fn run(body: &str, args: &[&[u8]]) {
    const REPLIES: [&str; 2] = ["$4\r\nwell\r\n", "$7\r\nrefused\r\n"];
    thread_local! {
        static VM: RefCell<Vm> = RefCell::new(Vm::new(VmOptions {
            memory_bytes_max: 16 << 20,
            ..VmOptions::default()
        }));
    }
    let reply = VM.with_borrow_mut(|vm| {
        let mut host = TestHost::default();
        let reply = reply_of(vm, &mut host, body, (&[], args), Proto::Resp2);
        assert!(vm.memory_bytes() < 16 << 20, "{}", vm.memory_bytes());
        reply.unwrap_or_default()
    });
    assert!(REPLIES.contains(&reply.as_str()), "{reply:?} of {args:?}");
}
