//! Bitmaps.

use crate::doc::{CommandDoc, Group, KeySpec};

const BITMAP: CommandDoc = CommandDoc::in_group(Group::Bitmap);
const READ: KeySpec = KeySpec::range(&["RO", "access"], 1, (0, 1, 0));

pub(crate) static COMMANDS: &[CommandDoc] = &[
    CommandDoc {
        name: "bitcount",
        summary: "Counts the bits that are set in a string or in a range of it.",
        since: "2.6.0",
        syntax: "key#0 [range(start:integer end:integer [unit@7.0.0(BYTE|BIT)])]",
        complexity: "O(N), N being the number of bytes looked at",
        arity: -2,
        flags: &["readonly"],
        keys: (1, 1, 1),
        key_specs: &[READ],
        acl_categories: &["read", "bitmap", "slow"],
        history: &[("7.0.0", "BYTE and BIT were added.")],
        ..BITMAP
    },
    CommandDoc {
        name: "bitfield",
        summary: "Reads, writes and counts with integers of any width at any bit of a string.",
        since: "3.2.0",
        syntax: "key#0 [operation(GET get-block(encoding offset:integer)|write([OVERFLOW overflow-block(WRAP|SAT|FAIL)] write-operation(SET set-block(encoding offset:integer value:integer)|INCRBY incrby-block(encoding offset:integer increment:integer)))) ...]",
        complexity: "O(1) for each of them",
        arity: -2,
        flags: &["write", "denyoom"],
        keys: (1, 1, 1),
        key_specs: &[KeySpec::range(&["RW", "access", "update", "variable_flags"], 1, (0, 1, 0))
            .noted("with GET alone, nothing is written")],
        acl_categories: &["write", "bitmap", "slow"],
        ..BITMAP
    },
    CommandDoc {
        name: "bitfield_ro",
        summary: "Reads integers of any width at any bit of a string.",
        since: "6.0.0",
        syntax: "key#0 [GET get-block(encoding offset:integer) +...]",
        complexity: "O(1) for each of them",
        arity: -2,
        flags: &["readonly", "fast"],
        keys: (1, 1, 1),
        key_specs: &[READ],
        acl_categories: &["read", "bitmap", "fast"],
        ..BITMAP
    },
    CommandDoc {
        name: "bitop",
        summary: "Combines strings bit by bit and stores the result.",
        since: "2.6.0",
        syntax: "operation(AND|OR|XOR|NOT|DIFF@8.2.0|DIFF1@8.2.0|ANDOR@8.2.0|ONE@8.2.0) destkey#0 key#1 ...",
        complexity: "O(N), N being the length of the longest string",
        arity: -4,
        flags: &["write", "denyoom"],
        keys: (2, -1, 1),
        key_specs: &[
            KeySpec::range(&["OW", "update"], 2, (0, 1, 0)),
            KeySpec::range(&["RO", "access"], 3, (-1, 1, 0)),
        ],
        acl_categories: &["write", "bitmap", "slow"],
        history: &[("8.2.0", "DIFF, DIFF1, ANDOR and ONE were added.")],
        ..BITMAP
    },
    CommandDoc {
        name: "bitpos",
        summary: "Finds the first bit of a string, or of a range of it, that is set or is not.",
        since: "2.8.7",
        syntax: "key#0 bit:integer [range(start:integer [end-unit-block(end:integer [unit@7.0.0(BYTE|BIT)])])]",
        complexity: "O(N), N being the number of bytes looked at",
        arity: -3,
        flags: &["readonly"],
        keys: (1, 1, 1),
        key_specs: &[READ],
        acl_categories: &["read", "bitmap", "slow"],
        history: &[("7.0.0", "BYTE and BIT were added.")],
        ..BITMAP
    },
    CommandDoc {
        name: "getbit",
        summary: "Reads one bit of a string.",
        since: "2.2.0",
        syntax: "key#0 offset:integer",
        arity: 3,
        flags: &["readonly", "fast"],
        keys: (1, 1, 1),
        key_specs: &[READ],
        acl_categories: &["read", "bitmap", "fast"],
        ..BITMAP
    },
    CommandDoc {
        name: "setbit",
        summary: "Sets or clears one bit of a string, which grows if need be; answers the old one.",
        since: "2.2.0",
        syntax: "key#0 offset:integer value:integer",
        arity: 4,
        flags: &["write", "denyoom"],
        keys: (1, 1, 1),
        key_specs: &[KeySpec::range(&["RW", "access", "update"], 1, (0, 1, 0))],
        acl_categories: &["write", "bitmap", "slow"],
        ..BITMAP
    },
];
