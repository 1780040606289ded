#!/usr/bin/env python3
"""Makes crates/system-spaces/src/tuples.txt: what a fresh Tarantool 2.11 has in its system spaces.

    scripts/record-system-spaces.py > crates/system-spaces/src/tuples.txt

Starts the `tarantool` that is installed (2.6, whose schema is 2.3.1's) in an empty folder, reads its
tuples, and changes what later versions changed until 2.11.1, by the release notes and the upgrades
that they describe. Each change is a function here and a comment in the file.

Not in the file: what differs from server to server (the uuids in _schema and _cluster).
"""
import json
import subprocess
import tempfile

LUA = """
box.cfg{log = 'tarantool.log'}
local json = require('json')
for _, id in ipairs{280, 288, 272, 276, 296, 304, 312} do
    for _, tuple in box.space[id]:pairs() do print(id, json.encode(tuple)) end
end
os.exit(0)
"""
SCHEMA, COLLATION, SPACE, INDEX, FUNC, USER, PRIV = 272, 276, 280, 288, 296, 304, 312
ADMIN, PUBLIC = 1, 2
READ, WRITE = 1, 2
VFUNC, VUSER, SPACE_SEQUENCE, VSPACE_SEQUENCE, SESSION_SETTINGS = 297, 305, 340, 341, 380


def recorded():
    spaces = {}
    with tempfile.TemporaryDirectory() as folder:
        script = folder + "/init.lua"
        with open(script, "w") as file:
            file.write(LUA)
        output = subprocess.run(["tarantool", script], cwd=folder, capture_output=True, text=True)
    for line in output.stdout.splitlines():
        space, tuple_ = line.split("\t", 1)
        spaces.setdefault(int(space), []).append((json.loads(tuple_), ""))
    return spaces


def change(spaces, space, key, why, edit):
    """Applies `edit` to the tuples that begin with `key`; one that returns None is dropped."""
    rows = []
    for row, comment in spaces[space]:
        if row[: len(key)] == key:
            row = edit(row)
            comment = (comment + "; " if comment else "") + why
        if row is not None:
            rows.append((row, comment))
    spaces[space] = rows


def with_field(row, at, value):
    row[at] = value
    return row


def functions(spaces):
    setuid = "2.7.1: the function runs with its caller's rights"
    for name_id in [row[0] for row, _ in spaces[FUNC] if row[2] in ("LUA", "box.schema.user.info")]:
        change(spaces, FUNC, [name_id], setuid, lambda row: with_field(row, 3, 0))
    # 2.9.1: SQL's built-in functions are in _func no more, nor are their privileges.
    builtin = [row[0] for row, _ in spaces[FUNC] if row[4] == "SQL_BUILTIN"]
    for function in builtin:
        change(spaces, FUNC, [function], "", lambda row: None)
        change(spaces, PRIV, [ADMIN, PUBLIC, "function", function], "", lambda row: None)
    lua = [row[0] for row, _ in spaces[FUNC] if row[2] == "LUA"][0]
    why = "2.10.4: public sees LUA, and cannot execute it"
    change(spaces, PRIV, [ADMIN, PUBLIC, "function", lua], why, lambda row: with_field(row, 4, READ))
    format_ = [row[6] for row, _ in spaces[SPACE] if row[0] == FUNC][0]
    why = "2.10.4: the format of _func"
    change(spaces, SPACE, [VFUNC], why, lambda row: with_field(row, 6, format_))


def privileges(spaces):
    row = [ADMIN, PUBLIC, "space", SESSION_SETTINGS, READ + WRITE]
    spaces[PRIV].append((row, "2.10.1: public reads and writes _session_settings"))
    # 2.11.0: public does not write _collation any more.
    change(spaces, PRIV, [ADMIN, PUBLIC, "space", COLLATION], "", lambda row: None)


def view_of_space_sequence(spaces):
    why = "2.10.5: _vspace_sequence, the view of _space_sequence"
    source = [row for row, _ in spaces[SPACE] if row[0] == SPACE_SEQUENCE][0]
    view = [VSPACE_SEQUENCE, ADMIN, "_vspace_sequence", "sysview"] + source[4:]
    spaces[SPACE].append((view, why))
    indexes = [row for row, _ in spaces[INDEX] if row[0] == SPACE_SEQUENCE]
    spaces[INDEX] += [([VSPACE_SEQUENCE] + row[1:], why) for row in indexes]
    spaces[PRIV].append(([ADMIN, PUBLIC, "space", VSPACE_SEQUENCE, READ], why))


def users(spaces):
    fields = [{"name": "auth_history", "type": "array"}, {"name": "last_modified", "type": "unsigned"}]
    why = "2.11.0: auth_history and last_modified"
    for space in (USER, VUSER):
        change(spaces, SPACE, [space], why, lambda row: with_field(row, 6, row[6] + fields))
    spaces[USER] = [(row + [[], 0], why) for row, _ in spaces[USER]]


def schema(spaces):
    # 2.11.1: max_id is gone. The cluster's uuid is the server's own.
    spaces[SCHEMA] = [(["version", 2, 11, 1], "2.11.1: the version of all of this")]


def main():
    spaces = recorded()
    for step in (functions, privileges, view_of_space_sequence, users, schema):
        step(spaces)
    print("# Made by scripts/record-system-spaces.py. A line: the space's id and a tuple as JSON.")
    print("# A comment says what differs in the next tuple from the recorded server's.")
    print("# 2.9.1 took SQL's built-in functions out of _func; 2.11.0 took public's right to write _collation.")
    for space in (SPACE, INDEX, SCHEMA, COLLATION, FUNC, USER, PRIV):
        key = {INDEX: 2, PRIV: 4}.get(space, 1)
        # In the order of the primary key.
        order = lambda row: row[0][1:4] if space == PRIV else row[0][:key]
        for row, comment in sorted(spaces[space], key=order):
            if comment:
                print("#", comment)
            print(space, json.dumps(row, separators=(",", ":"), ensure_ascii=False))


main()
