//! Where a command's keys are.

use ladon_commands::{KeyPositions, families};

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
            assert_eq!(keys.is_one(count), positions == [1], "{}, {count}", entry.full_name);
        }
    }
}
