//! Where a command's keys are.

use ladon_command_docs as docs;
use ladon_commands::{KeySpec, families};

#[test]
fn counted_keys_begin_where_the_documentation_says() {
    for (_, entry) in families::table().iter() {
        let KeySpec::Counted { count_at } = entry.spec.keys else { continue };
        let specs = docs::find(&entry.full_name).expect("a documented command").key_specs;
        let begins = specs.iter().any(|spec| {
            spec.begin_search == docs::BeginSearch::Index(i32::from(count_at))
                && matches!(spec.find_keys, docs::FindKeys::KeyNumber { first_key: 1, .. })
        });
        assert!(begins, "{}", entry.full_name);
    }
}

#[test]
fn one_key_is_the_one_at_position_1() {
    for (_, entry) in families::table().iter() {
        let keys = entry.spec.keys;
        for count in (2..9).filter(|&count| entry.spec.accepts(count)) {
            let mut args = vec![&b"1"[..]; count];
            if matches!(keys, KeySpec::FirstAndOption(_)) && count > 3 {
                // By their number alone, they may be these.
                args[count - 2] = b"store";
            }
            let positions: Vec<usize> = keys.positions(&args).collect();
            assert_eq!(keys.is_one(count), positions == [1], "{}, {count}", entry.full_name);
        }
    }
}
