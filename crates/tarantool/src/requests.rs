//! The facts of every request: what it does, and how much of it works. From this table come the
//! batch's plans and `docs/compat/iproto.md`.

use ladon_iproto::request_type as types;
use std::fmt::Write;

/// What is known of a request by its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestFacts {
    request_type: u32,
    /// It may change data.
    pub writes: bool,
    /// It takes no longer than a usual request.
    pub is_quick: bool,
    /// It is about data, or about who may do what with it.
    pub(crate) needs_data: bool,
    status: Status,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    Works,
    /// What is missing.
    Partly(&'static str),
    Absent(&'static str),
}

const READS: (bool, bool) = (false, false);
const IS_QUICK: (bool, bool) = (false, true);
const WRITES: (bool, bool) = (true, true);

/// Requests of clients; the rest is of replicas.
const REQUESTS: &[RequestFacts] = &[
    facts(types::PING, IS_QUICK, Status::Works),
    facts(types::ID, IS_QUICK, Status::Works),
    facts(types::AUTH, READS, Status::Works),
    facts(types::SELECT, READS, Status::Works),
    facts(types::INSERT, WRITES, Status::Works),
    facts(types::REPLACE, WRITES, Status::Works),
    facts(types::UPDATE, WRITES, Status::Works),
    facts(types::DELETE, WRITES, Status::Works),
    facts(types::UPSERT, WRITES, Status::Works),
    // A statement, perhaps.
    facts(types::CALL, (true, false), Status::Partly(CALLS)),
    facts(types::CALL_16, (true, false), Status::Partly(CALLS)),
    facts(types::NOP, IS_QUICK, Status::Works),
    facts(types::BEGIN, IS_QUICK, Status::Works),
    facts(types::COMMIT, (true, false), Status::Works),
    facts(types::ROLLBACK, IS_QUICK, Status::Works),
    facts(types::WATCH, IS_QUICK, Status::Works),
    facts(types::UNWATCH, IS_QUICK, Status::Works),
    facts(types::WATCH_ONCE, IS_QUICK, Status::Works),
    facts(types::EVAL, READS, Status::Partly("it is a program that evaluates: `ladon tarantool`")),
    // A statement that writes, perhaps.
    facts(types::EXECUTE, (true, false), Status::Partly(SQL)),
    facts(types::PREPARE, READS, Status::Works),
];

const CALLS: &str = "without a program (`ladon tarantool`), functions other than persistent ones, `box.info`, `box.space.NAME:METHOD` and `box.space.NAME.index.NAME:METHOD`, \
     where `METHOD` is `select`, `get`, `insert`, `replace`, `put`, `update`, `upsert`, `delete`, `count`, \
     `len`, `bsize`, `min`, `max` or `random`";

const SQL: &str = "see [SQL](sql.md)";

const fn facts(
    request_type: u32,
    (writes, is_quick): (bool, bool),
    status: Status,
) -> RequestFacts {
    let needs_data = !matches!(request_type, types::PING | types::ID | types::NOP);
    RequestFacts { request_type, writes, is_quick, needs_data, status }
}

/// Places in [`REQUESTS`] by the request's type, and one behind its end for those that are not there.
static PLACES: [u8; 128] = {
    let mut places = [REQUESTS.len() as u8; 128];
    let mut at = 0;
    while at < REQUESTS.len() {
        places[REQUESTS[at].request_type as usize] = at as u8;
        at += 1;
    }
    places
};

/// The facts of a request of this type.
#[inline]
pub(crate) fn facts_of(request_type: u32) -> RequestFacts {
    let place = PLACES.get(request_type as usize).copied();
    let known = place.and_then(|place| REQUESTS.get(usize::from(place)));
    known.copied().unwrap_or(facts(request_type, IS_QUICK, Status::Absent("")))
}

const INTRODUCTION: &str = "\
# Tarantool's requests in Ladon

<!-- Made from the table of requests; `./fix` brings it up to date. -->

Every request of IPROTO that Tarantool 2.11 takes from clients (and `WATCH_ONCE` of 3.x), with what Ladon makes of
it: **works**, **partly** (with what is missing), or absent. What is absent is answered with an error.

| request | | what is missing |
|---|---|---|
";

const SPACES: &str = "
## Spaces

Spaces, indexes, users and rights are made as connectors can make them: by tuples of the system spaces.

- **Indexes**: `TREE`, `HASH`, `BITSET` and `RTREE`. A functional index (`TREE`) is one whose option `func` names a function of
  `_func` in Lua with a body, deterministic and sandboxed; `_func_index` stays empty.
- **`BITSET` and `RTREE`** select with every iterator that Tarantool has for them; the order is not Tarantool's. A selection by
  bits reads the index's nodes from the smallest value on that may have the bits. A coordinate that is NaN fits every
  key but that of `EQ`. Tuples that are equally near come in the order of their bytes.
- **`UPDATE` and `UPSERT`** take field numbers, names and JSON paths, as Tarantool 2.11 does. The operations of one request pass
  64 MiB of nested values at most, which takes thousands of them in values of a megabyte.
- **Messages** show tuples and keys as Tarantool 2.11 does, cut after some 500 bytes; a datetime's time zone by its offset.
- **Multikey indexes** (`TREE`, a path with `[*]`): a tuple has at most 65,536 keys in all multikey indexes of its space
  together; more are refused with Tarantool's error 218, which Tarantool 2.11 gives from some 8,000 elements on.
- **Collations**: those of `_collation`, by ICU4X, but `haw`, `kl`, `lkt`, `nso`, `se`, `tn`, `zh__big5han` and `zh__gb2312han`,
  which are refused by name. Locales follow a newer CLDR than an older ICU does (`kok`, `lv` and `mr` differ from ICU 72). Strings
  whose combining marks are not in the canonical order are taken as if they were.
- **Defaults** of fields take the place of nil and of absent fields in `INSERT`, `REPLACE` and `UPSERT`, as in Tarantool 3.
  Absent: those by functions.
- **Foreign keys** of fields and of spaces, as in Tarantool 2.11, but to system spaces. A write locks the spaces that keys
  bind to its own as well. A key is checked after the statement, so where a tuple breaks uniqueness too, that is named.
- **Definitions** that take long, of one space, come one after the other; Tarantool refuses the second. A client that
  closes its side of the connection before such a one is there does not get it; in Tarantool it comes all the same.
- **Definitions** of system spaces are fixed. Absent, and refused by name: constraints by functions, triggers.
  What takes long for a large space is prepared while that is read and written: an index, another order of the primary
  one, and the check of its tuples for a stricter format or a foreign key.
- **MessagePack** nests at most 128 levels in a request; more is refused with Tarantool's error 20.
- **Sequences** fill in a field of the primary key, in place of nil. Absent: a path inside of the field. `_sequence_data`
  shows every number at once that was used, also by a value that was given; Tarantool keeps those that filled in a field in
  memory, and shows them once it has written a snapshot and restarted. Such a number is data of its sequence: it can be
  deleted, and has to be before the sequence is dropped. A number is used up also if its statement fails.
- **Transactions** over streams are serializable, whatever isolation level is asked for. A conflict shows at the commit, and
  only where a result would differ from what was shown. Where many statements have to run again, writers of their spaces may
  wait for the commit. Refused in one: definitions. A transaction whose time is over gives back what it holds at once. A
  connection has 1,000 of them at most. What they write, and what others replace that they still
  see, is bounded by `client-transaction-memory`, and by `transaction-memory` for all connections:
  beyond it, writes in them get `ER_MEMORY_ISSUE`, and those opened first end with
  `ER_TRANSACTION_TIMEOUT`.
- **Long replies** are made in slices, from a copy that shares memory with the space. So are counts that have to look at
  many tuples (over `BITSET` and `RTREE` indexes).
- **Order**: within a stream, requests run and replies come one after the other. What takes long in one stream, or in none
  (a commit, a count, a selection, a definition), lets requests of other streams and of none pass, and so does a write that
  waits for the log or for another's commit. But outside of streams, reads and writes do not overtake a write that waits,
  nor a truncation; definitions do not overtake each other; and `AUTH` waits for all that was asked before it, and is waited for.
  128 requests of a connection may be passed or wait behind those in their stream, and 128 KiB of them; then the connection
  waits. The bytes of one reply come in a row, so what comes during a long one follows it. At gate `fsync`, a reply outside
  of streams that shows nothing which is still to be synced leaves before those that wait for the disk.
- **`_session_settings`** has the settings of SQL, of each session its own: they can be read and updated;
  `sql_full_metadata` is obeyed, the others change nothing. `error_marshaling_enabled` makes errors values in answers of functions, as does
  the feature of that name in ID. Absent: `graceful_shutdown_required`.
- **Arguments of `CALL`** are taken as Tarantool's Lua takes them: whole numbers become integers, an offset and a limit are
  cut to 32 bits, and of a table with names the values under 1, 2 and so on are the parts of a key. `bin` stays `bin`, as in
  Tarantool 3. `pairs` checks its arguments; what it returns cannot leave the server, as in Tarantool.
- **`CALL \"box.info\"`** has `version`, `package`, `id`, `ro`, `ro_reason`, `uuid`, `lsn`, `signature`, `vclock`, `status`,
  `uptime`, `pid`, `cluster`, `election`, `replication_anon`, in a cluster `replication` and `synchro`, and nothing of
  memory. A cluster's log has one position, whoever wrote: it stands under 1 in each `vclock`. Watchers of `box.status` and
  `box.election` are told when they begin to watch, and not of later changes; those of a key that a program broadcasts
  (`box.broadcast`), of each value that is the last one when they ask.
- **While the data is being loaded**, clients are greeted, and `PING` and `ID` are answered; all else gets `ER_LOADING`
  (116), as while Tarantool bootstraps. The connection goes on once the data is there.
- **Users**: `chap-sha1` and `pap-sha256`. `--iproto-admin-password` sets the password of `admin`. Rights are Tarantool's:
  who may read, write and call, who may define and grant what, and what is not dropped while something is left of it. Stricter:
  who alters a space needs the right to it also of the owner that it had, a user is not dropped while others have rights to it,
  and a session whose user was dropped has no user, whoever gets the number. There may be more than 32 users and roles.
- **System spaces** whose tuples would define what there is not are read-only: `_collation`, `_trigger`, `_fk_constraint`,
  `_ck_constraint`, `_func_index`, `_cluster`. A function of `_func` with a body in Lua is called as it is; one without a body where there is a program (`ladon tarantool`).

## Connectors

`scripts/connectors.sh` runs real work of these connectors on Ladon, with a `kill -9` under load, and the
suites of the first four beside a real `tarantool`: go-tarantool 3.0.2 (the suites of 2.3.2 and 1.12.2 too),
tarantool-python 1.3.0, asynctnt 2.4.0,
tarantool-driver 3.1.0 for Node, and for Java connector 1.9.4 and cartridge-driver 0.13.0. The suites' programs
run by `ladon tarantool`, as they are. Of the tests that run, these pass: go-tarantool 266 of 273 (its types 488 of 488, its
pool 98 of 100), 2.3.2 195 of 201, 1.12.2 152 of 158, tarantool-python 213 of 215, asynctnt 236 of 260, tarantool-driver all
that pass with Tarantool 2.6. The others fail with 2.6 as well, want a server without the features of 3.x or one that
listens before it has its data, or replace `box.info`. The pools of go-tarantool and tarantool-python ask `box.info` which members are writable: the leader, or a
server of its own.
";

/// The text of `docs/compat/iproto.md`.
pub fn compat_document() -> String {
    let mut text = INTRODUCTION.to_owned();
    for facts in REQUESTS {
        let name = types::name(facts.request_type).unwrap_or("");
        let (word, missing) = match facts.status {
            Status::Works => ("works", ""),
            Status::Partly(missing) => ("partly", missing),
            Status::Absent(why) => ("absent", why),
        };
        let _ = writeln!(text, "| `{name}` | {word} | {missing} |");
    }
    text + SPACES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_request_is_there_once() {
        for (at, facts) in REQUESTS.iter().enumerate() {
            assert!(types::name(facts.request_type).is_some());
            assert_eq!(facts_of(facts.request_type), *facts, "row {at}");
        }
        for unknown in [0, 127, 128, u32::MAX] {
            assert_eq!(facts_of(unknown).status, Status::Absent(""), "{unknown}");
        }
    }
}
