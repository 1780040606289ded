//! Where a command's keys are.

use ladon_commands::families;
use ladon_kernel::command::flags::Flags;
use ladon_kernel::command::spec::{KeyPositions, LockNeed};

#[test]
fn one_key_is_the_one_at_position_1() {
    for (_, entry) in families::table().iter() {
        let keys = entry.spec.keys;
        for count in (2..9).filter(|&count| entry.spec.accepts(count)) {
            let mut args = vec![&b"1"[..]; count];
            if matches!(keys, KeyPositions::FirstAndOption(_)) && count > 3 {
                // By their number alone, they may be these.
                args[count - 2] = b"store";
            }
            let positions: Vec<usize> = keys.positions(&args).collect();
            // An option that is only allowed later is ruled out by the command's own function.
            let is_ruled_out = matches!(keys, KeyPositions::FirstAndOption(_)) && count > 3;
            let is_one = keys.is_one(count) || is_ruled_out && positions == [1];
            assert_eq!(is_one, positions == [1], "{}, {count}", entry.full_name);
        }
    }
}

/// What a tracked client reads is noted within the transaction of the reading command.
#[test]
fn commands_that_read_keys_hold_their_locks() {
    let mut count = 0;
    for (_, entry) in families::table().iter() {
        let spec = entry.spec;
        let reads = spec.flags.has(Flags::READONLY) && !spec.flags.has(Flags::NOSCRIPT);
        if reads && !matches!(spec.keys, KeyPositions::None) {
            count += 1;
            let holds =
                matches!(spec.locks, LockNeed::Keys | LockNeed::KeysUnless(_) | LockNeed::All);
            assert!(holds, "{}: {:?}", entry.full_name, spec.locks);
        }
    }
    assert!(count > 50, "{count} commands read keys");
}
