//! Hashes.

use crate::doc::{CommandDoc, Group, KeySpec};

const HASH: CommandDoc = CommandDoc { keys: (1, 1, 1), ..CommandDoc::in_group(Group::Hash) };

const READ_FAST: &[&str] = &["read", "hash", "fast"];
const READ_SLOW: &[&str] = &["read", "hash", "slow"];
const WRITE_FAST: &[&str] = &["write", "hash", "fast"];
const PER_FIELD: &str = "O(N), N being the number of fields given";
const WHOLE: &str = "O(N), N being the hash's size";

pub(crate) static COMMANDS: &[CommandDoc] = &[
    CommandDoc {
        name: "hdel",
        summary: "Removes fields from a hash, and the hash with the last one.",
        since: "2.0.0",
        syntax: "key#0 field ...",
        complexity: PER_FIELD,
        arity: -3,
        flags: &["write", "fast"],
        key_specs: &[KeySpec::range(&["RW", "delete"], 1, (0, 1, 0))],
        acl_categories: WRITE_FAST,
        history: &[("2.4.0", "Several fields may be given.")],
        ..HASH
    },
    CommandDoc {
        name: "hexists",
        summary: "Tells whether a hash has a field.",
        since: "2.0.0",
        syntax: "key#0 field",
        arity: 3,
        flags: &["readonly", "fast"],
        key_specs: &[KeySpec::range(&["RO"], 1, (0, 1, 0))],
        acl_categories: READ_FAST,
        ..HASH
    },
    CommandDoc {
        name: "hexpire",
        summary: "Lets fields of a hash expire after a number of seconds.",
        since: "7.4.0",
        syntax: "key#0 seconds:integer [condition(NX|XX|GT|LT)] \
                 FIELDS fields(numfields:integer field ...)",
        complexity: PER_FIELD,
        arity: -6,
        flags: &["write", "fast"],
        key_specs: &[KeySpec::range(&["RW", "update"], 1, (0, 1, 0))],
        acl_categories: WRITE_FAST,
        ..HASH
    },
    CommandDoc {
        name: "hexpireat",
        summary: "Lets fields of a hash expire at a Unix time in seconds.",
        since: "7.4.0",
        syntax: "key#0 unix-time-seconds:unix-time [condition(NX|XX|GT|LT)] \
                 FIELDS fields(numfields:integer field ...)",
        complexity: PER_FIELD,
        arity: -6,
        flags: &["write", "fast"],
        key_specs: &[KeySpec::range(&["RW", "update"], 1, (0, 1, 0))],
        acl_categories: WRITE_FAST,
        ..HASH
    },
    CommandDoc {
        name: "hexpiretime",
        summary: "Answers when fields of a hash expire, as Unix times in seconds.",
        since: "7.4.0",
        syntax: "key#0 FIELDS fields(numfields:integer field ...)",
        complexity: PER_FIELD,
        arity: -5,
        flags: &["readonly", "fast"],
        key_specs: &[KeySpec::range(&["RO", "access"], 1, (0, 1, 0))],
        acl_categories: READ_FAST,
        ..HASH
    },
    CommandDoc {
        name: "hget",
        summary: "Answers the value of a hash's field.",
        since: "2.0.0",
        syntax: "key#0 field",
        arity: 3,
        flags: &["readonly", "fast"],
        key_specs: &[KeySpec::range(&["RO", "access"], 1, (0, 1, 0))],
        acl_categories: READ_FAST,
        ..HASH
    },
    CommandDoc {
        name: "hgetall",
        summary: "Answers all fields of a hash with their values.",
        since: "2.0.0",
        syntax: "key#0",
        complexity: WHOLE,
        arity: 2,
        flags: &["readonly"],
        key_specs: &[KeySpec::range(&["RO", "access"], 1, (0, 1, 0))],
        acl_categories: READ_SLOW,
        tips: &["nondeterministic_output_order"],
        ..HASH
    },
    CommandDoc {
        name: "hgetdel",
        summary: "Answers the values of a hash's fields and removes these.",
        since: "8.0.0",
        syntax: "key#0 FIELDS fields(numfields:integer field ...)",
        complexity: PER_FIELD,
        arity: -5,
        flags: &["write", "fast"],
        key_specs: &[KeySpec::range(&["RW", "access", "delete"], 1, (0, 1, 0))],
        acl_categories: WRITE_FAST,
        ..HASH
    },
    CommandDoc {
        name: "hgetex",
        summary: "Answers the values of a hash's fields and changes when these expire.",
        since: "8.0.0",
        syntax: "key#0 [expiration(EX seconds:integer|PX milliseconds:integer|\
                 EXAT unix-time-seconds:unix-time|PXAT unix-time-milliseconds:unix-time|PERSIST)] \
                 FIELDS fields(numfields:integer field ...)",
        complexity: PER_FIELD,
        arity: -5,
        flags: &["write", "fast"],
        key_specs: &[KeySpec {
            notes: Some("RW and UPDATE because it changes the TTL"),
            ..KeySpec::range(&["RW", "access", "update"], 1, (0, 1, 0))
        }],
        acl_categories: WRITE_FAST,
        ..HASH
    },
    CommandDoc {
        name: "hincrby",
        summary: "Adds to the integer in a hash's field.",
        since: "2.0.0",
        syntax: "key#0 field increment:integer",
        arity: 4,
        flags: &["write", "denyoom", "fast"],
        key_specs: &[KeySpec::range(&["RW", "access", "update"], 1, (0, 1, 0))],
        acl_categories: WRITE_FAST,
        ..HASH
    },
    CommandDoc {
        name: "hincrbyfloat",
        summary: "Adds to the number in a hash's field.",
        since: "2.6.0",
        syntax: "key#0 field increment:double",
        arity: 4,
        flags: &["write", "denyoom", "fast"],
        key_specs: &[KeySpec::range(&["RW", "access", "update"], 1, (0, 1, 0))],
        acl_categories: WRITE_FAST,
        ..HASH
    },
    CommandDoc {
        name: "hkeys",
        summary: "Answers the names of all fields of a hash.",
        since: "2.0.0",
        syntax: "key#0",
        complexity: WHOLE,
        arity: 2,
        flags: &["readonly"],
        key_specs: &[KeySpec::range(&["RO", "access"], 1, (0, 1, 0))],
        acl_categories: READ_SLOW,
        tips: &["nondeterministic_output_order"],
        ..HASH
    },
    CommandDoc {
        name: "hlen",
        summary: "Counts a hash's fields.",
        since: "2.0.0",
        syntax: "key#0",
        arity: 2,
        flags: &["readonly", "fast"],
        key_specs: &[KeySpec::range(&["RO"], 1, (0, 1, 0))],
        acl_categories: READ_FAST,
        ..HASH
    },
    CommandDoc {
        name: "hmget",
        summary: "Answers the values of several fields of a hash.",
        since: "2.0.0",
        syntax: "key#0 field ...",
        complexity: "O(N), N being the number of fields asked for",
        arity: -3,
        flags: &["readonly", "fast"],
        key_specs: &[KeySpec::range(&["RO", "access"], 1, (0, 1, 0))],
        acl_categories: READ_FAST,
        ..HASH
    },
    CommandDoc {
        name: "hmset",
        summary: "Sets several fields of a hash.",
        since: "2.0.0",
        syntax: "key#0 data(field value) ...",
        complexity: PER_FIELD,
        doc_flags: &["deprecated"],
        deprecated: Some(("4.0.0", "`HSET` with several fields and values")),
        arity: -4,
        flags: &["write", "denyoom", "fast"],
        key_specs: &[KeySpec::range(&["RW", "update"], 1, (0, 1, 0))],
        acl_categories: WRITE_FAST,
        ..HASH
    },
    CommandDoc {
        name: "hpersist",
        summary: "Lets fields of a hash never expire.",
        since: "7.4.0",
        syntax: "key#0 FIELDS fields(numfields:integer field ...)",
        complexity: PER_FIELD,
        arity: -5,
        flags: &["write", "fast"],
        key_specs: &[KeySpec::range(&["RW", "update"], 1, (0, 1, 0))],
        acl_categories: WRITE_FAST,
        ..HASH
    },
    CommandDoc {
        name: "hpexpire",
        summary: "Lets fields of a hash expire after a number of milliseconds.",
        since: "7.4.0",
        syntax: "key#0 milliseconds:integer [condition(NX|XX|GT|LT)] \
                 FIELDS fields(numfields:integer field ...)",
        complexity: PER_FIELD,
        arity: -6,
        flags: &["write", "fast"],
        key_specs: &[KeySpec::range(&["RW", "update"], 1, (0, 1, 0))],
        acl_categories: WRITE_FAST,
        ..HASH
    },
    CommandDoc {
        name: "hpexpireat",
        summary: "Lets fields of a hash expire at a Unix time in milliseconds.",
        since: "7.4.0",
        syntax: "key#0 unix-time-milliseconds:unix-time [condition(NX|XX|GT|LT)] \
                 FIELDS fields(numfields:integer field ...)",
        complexity: PER_FIELD,
        arity: -6,
        flags: &["write", "fast"],
        key_specs: &[KeySpec::range(&["RW", "update"], 1, (0, 1, 0))],
        acl_categories: WRITE_FAST,
        ..HASH
    },
    CommandDoc {
        name: "hpexpiretime",
        summary: "Answers when fields of a hash expire, as Unix times in milliseconds.",
        since: "7.4.0",
        syntax: "key#0 FIELDS fields(numfields:integer field ...)",
        complexity: PER_FIELD,
        arity: -5,
        flags: &["readonly", "fast"],
        key_specs: &[KeySpec::range(&["RO", "access"], 1, (0, 1, 0))],
        acl_categories: READ_FAST,
        ..HASH
    },
    CommandDoc {
        name: "hpttl",
        summary: "Answers in how many milliseconds fields of a hash expire.",
        since: "7.4.0",
        syntax: "key#0 FIELDS fields(numfields:integer field ...)",
        complexity: PER_FIELD,
        arity: -5,
        flags: &["readonly", "fast"],
        key_specs: &[KeySpec::range(&["RO", "access"], 1, (0, 1, 0))],
        acl_categories: READ_FAST,
        tips: &["nondeterministic_output"],
        ..HASH
    },
    CommandDoc {
        name: "hrandfield",
        summary: "Answers fields of a hash at random.",
        since: "6.2.0",
        syntax: "key#0 [options(count:integer [WITHVALUES])]",
        complexity: "O(N), N being the number of fields answered",
        arity: -2,
        flags: &["readonly"],
        key_specs: &[KeySpec::range(&["RO", "access"], 1, (0, 1, 0))],
        acl_categories: READ_SLOW,
        tips: &["nondeterministic_output"],
        ..HASH
    },
    CommandDoc {
        name: "hscan",
        summary: "Walks through a hash's fields in steps.",
        since: "2.8.0",
        syntax: "key#0 cursor:integer [MATCH pattern:pattern] [COUNT count:integer] \
                 [NOVALUES]",
        complexity: "O(1) per call, O(N) for a whole iteration over N elements",
        arity: -3,
        flags: &["readonly"],
        key_specs: &[KeySpec::range(&["RO", "access"], 1, (0, 1, 0))],
        acl_categories: READ_SLOW,
        tips: &["nondeterministic_output"],
        ..HASH
    },
    CommandDoc {
        name: "hset",
        summary: "Sets fields of a hash, which is created if need be.",
        since: "2.0.0",
        syntax: "key#0 data(field value) ...",
        complexity: PER_FIELD,
        arity: -4,
        flags: &["write", "denyoom", "fast"],
        key_specs: &[KeySpec::range(&["RW", "update"], 1, (0, 1, 0))],
        acl_categories: WRITE_FAST,
        history: &[("4.0.0", "Several fields may be given.")],
        ..HASH
    },
    CommandDoc {
        name: "hsetex",
        summary: "Sets fields of a hash and when these expire.",
        since: "8.0.0",
        syntax: "key#0 [condition(FNX|FXX)] [expiration(EX seconds:integer|PX milliseconds:integer|\
                 EXAT unix-time-seconds:unix-time|PXAT unix-time-milliseconds:unix-time|KEEPTTL)] \
                 FIELDS fields(numfields:integer data(field value) ...)",
        complexity: PER_FIELD,
        arity: -6,
        flags: &["write", "denyoom", "fast"],
        key_specs: &[KeySpec::range(&["RW", "update"], 1, (0, 1, 0))],
        acl_categories: WRITE_FAST,
        ..HASH
    },
    CommandDoc {
        name: "hsetnx",
        summary: "Sets a field of a hash unless it is there.",
        since: "2.0.0",
        syntax: "key#0 field value",
        arity: 4,
        flags: &["write", "denyoom", "fast"],
        key_specs: &[KeySpec::range(&["RW", "insert"], 1, (0, 1, 0))],
        acl_categories: WRITE_FAST,
        ..HASH
    },
    CommandDoc {
        name: "hstrlen",
        summary: "Answers the length of the value of a hash's field.",
        since: "3.2.0",
        syntax: "key#0 field",
        arity: 3,
        flags: &["readonly", "fast"],
        key_specs: &[KeySpec::range(&["RO"], 1, (0, 1, 0))],
        acl_categories: READ_FAST,
        ..HASH
    },
    CommandDoc {
        name: "httl",
        summary: "Answers in how many seconds fields of a hash expire.",
        since: "7.4.0",
        syntax: "key#0 FIELDS fields(numfields:integer field ...)",
        complexity: PER_FIELD,
        arity: -5,
        flags: &["readonly", "fast"],
        key_specs: &[KeySpec::range(&["RO", "access"], 1, (0, 1, 0))],
        acl_categories: READ_FAST,
        tips: &["nondeterministic_output"],
        ..HASH
    },
    CommandDoc {
        name: "hvals",
        summary: "Answers the values of all fields of a hash.",
        since: "2.0.0",
        syntax: "key#0",
        complexity: WHOLE,
        arity: 2,
        flags: &["readonly"],
        key_specs: &[KeySpec::range(&["RO", "access"], 1, (0, 1, 0))],
        acl_categories: READ_SLOW,
        tips: &["nondeterministic_output_order"],
        ..HASH
    },
];
