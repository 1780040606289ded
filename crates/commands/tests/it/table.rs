//! The table of all commands: how a name is found, and which commands are timed with their batch.

use ladon_commands::families;
use ladon_kernel::statistics::timing::is_quick;

#[test]
fn every_command_is_found_by_its_name() {
    let table = families::table();
    for (id, entry) in table.iter() {
        assert_eq!(table.find_full(entry.full_name.to_uppercase().as_bytes()), Some(id));
    }
    assert_eq!(table.find(b"nosuchcommand"), None);
    assert_eq!(table.find(b""), None);
    // Bytes that differ from a letter in more than its case.
    for name in [&b"\x07et"[..], b"GE", b"GETX", b"\x13ET", b"Z\x01DD", b"incrbyfloats"] {
        assert_eq!(table.find(name), None, "{name:?}");
    }
}

#[test]
fn what_runs_most_is_timed_with_its_batch() {
    let table = families::table();
    for (name, args, quick) in [
        ("get", &[&b"get"[..], b"k"][..], true),
        ("set", &[b"set", b"k", b"v"], true),
        ("set", &[b"set", b"k", &[0; 20_000]], false),
        ("dbsize", &[b"dbsize"], true),
        ("hset", &[b"hset", b"k", b"f", b"v"], true),
        ("hset", &[b"hset", b"k", &[0; 20_000], b"v"], false),
        ("del", &[b"del", b"k"], false),
    ] {
        let spec = table.spec(table.find(name.as_bytes()).unwrap());
        assert_eq!(is_quick(spec, args), quick, "{name}");
    }
}
