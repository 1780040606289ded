//! Sorting.

use crate::doc::{CommandDoc, Group, KeySpec};

const GENERIC: CommandDoc = CommandDoc::in_group(Group::Generic);
const SOURCE: KeySpec = KeySpec::range(&["RO", "access"], 1, (0, 1, 0));
const PATTERNS: KeySpec =
    KeySpec::unknown(&["RO", "access"]).noted("of BY and GET: they follow from the elements");
const TARGET: KeySpec =
    KeySpec::unknown(&["OW", "update"]).noted("of STORE, which may stand anywhere");
const COMPLEXITY: &str =
    "O(N+M*log(M)) with N elements to sort and M to answer, O(N) without sorting";

pub(crate) static COMMANDS: &[CommandDoc] = &[
    CommandDoc {
        name: "sort",
        summary: "Sorts a list, a set or a sorted set; answers or stores the result.",
        since: "1.0.0",
        syntax: "key#0 [BY by-pattern{pattern}#1:pattern] [LIMIT limit(offset:integer count:integer)] [GET get-pattern{pattern}#1:pattern +...] [order(ASC|DESC)] [ALPHA{sorting}] [STORE destination#2]",
        complexity: COMPLEXITY,
        arity: -2,
        flags: &["write", "denyoom", "movablekeys"],
        keys: (1, 1, 1),
        key_specs: &[SOURCE, PATTERNS, TARGET],
        acl_categories: &["write", "set", "sortedset", "list", "slow", "dangerous"],
        ..GENERIC
    },
    CommandDoc {
        name: "sort_ro",
        summary: "Sorts a list, a set or a sorted set and answers the result.",
        since: "7.0.0",
        syntax: "key#0 [BY by-pattern{pattern}#1:pattern] [LIMIT limit(offset:integer count:integer)] [GET get-pattern{pattern}#1:pattern +...] [order(ASC|DESC)] [ALPHA{sorting}]",
        complexity: COMPLEXITY,
        arity: -2,
        flags: &["readonly", "movablekeys"],
        keys: (1, 1, 1),
        key_specs: &[SOURCE, PATTERNS],
        acl_categories: &["read", "set", "sortedset", "list", "slow", "dangerous"],
        ..GENERIC
    },
];
