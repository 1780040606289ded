#!/usr/bin/env python3
"""SQLite's sqllogictest files, run over EXECUTE, where the dialect agrees.

    scripts/sqllogictest.py FOLDER LADON [--tarantool PROGRAM] [--port PORT] [--records N] [--show N] [--files WORD..]

FOLDER has `*.test` files of a checkout of sqllogictest. Their records are statements and queries with the results
that SQLite, MySQL, PostgreSQL and others agree on. A record counts as

  right       Ladon answers as the file says;
  as 2.6      it does not, and a real Tarantool 2.6 gives Ladon's answer: the dialect's other types, functions and words;
  wrong       neither.

A table without a primary key, which the dialect asks for, is made as `NAME_rows` with a column of numbers more, and
a view NAME of its own columns; changes go to the former, queries to the latter. `onlyif` records of other systems are
left out, and those after the first N of a file. Exits with 1 if a record is wrong. Needs `msgpack`.
"""
import argparse
import collections
import hashlib
import importlib.util
import os
import re
import shutil
import sys
import tempfile

# A word that is reserved, and a token that may not stand there: which of them 2.6 names is its parser's matter.
WORDS_REFUSED = {183, 184}
OTHER_TYPES = [("FLOAT", "DOUBLE"), ("REAL", "DOUBLE"), ("NUMERIC", "NUMBER")]
CHANGE = re.compile(r"^\s*(INSERT\s+(?:OR\s+\w+\s+)?INTO|REPLACE\s+INTO|UPDATE(?:\s+OR\s+\w+)?|DELETE\s+FROM)\s+(\w+)(.*)$", re.I | re.S)
AT_ONCE = 40


def fuzz():
    """What the fuzzer has to talk to both servers."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "sql-fuzz.py")
    spec = importlib.util.spec_from_file_location("sql_fuzz", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Record:
    def __init__(self, kind, types, sort, text, expected):
        self.kind, self.types, self.sort, self.text, self.expected = kind, types, sort, text, expected


def records(path, counts):
    """The records of a file that are for every system."""
    with open(path, encoding="utf-8", errors="replace") as file:
        blocks = re.split(r"\n\s*\n", file.read().replace("\r\n", "\n"))
    for block in blocks:
        lines = [line for line in block.split("\n") if not line.startswith("#")]
        lines = [line for line in lines if line.strip()]
        others = False
        while lines and lines[0].split()[0] in ("onlyif", "skipif"):
            others = others or lines[0].split()[0] == "onlyif"
            lines.pop(0)
        if not lines:
            continue
        words = lines[0].split()
        if words[0] == "halt" and not others:
            return
        if words[0] not in ("statement", "query"):
            continue
        if others:
            counts["left out: for another system"] += 1
            continue
        if words[0] == "statement":
            yield Record(words[1], "", "", "\n".join(lines[1:]), [])
            continue
        at = lines.index("----") if "----" in lines else len(lines)
        yield Record("query", words[1], words[2] if len(words) > 2 else "nosort", "\n".join(lines[1:at]), lines[at + 1:])


class Dialect:
    """Turns a file's statements into ones of the dialect."""

    def __init__(self):
        self.without_key = {}

    def create(self, text):
        """The statements of a CREATE TABLE; none if it is none that this can read."""
        match = re.match(r"^\s*CREATE\s+TABLE\s+(\w+)\s*\((.*)\)\s*;?\s*$", text, re.I | re.S)
        if not match:
            return None
        name, inner = match.groups()
        for of, ours in OTHER_TYPES:
            inner = re.sub(rf"\b{of}\b", ours, inner, flags=re.I)
        parts = re.split(r",(?![^()]*\))", inner)
        names, columns, has_key = [], [], "PRIMARY KEY" in inner.upper()
        for part in parts:
            words = part.split()
            if words[0].upper() not in ("PRIMARY", "UNIQUE", "CHECK", "FOREIGN", "CONSTRAINT"):
                names.append(words[0])
                part = part if len(words) > 1 else f"{part} SCALAR"
            columns.append(part)
        if has_key:
            return [f"CREATE TABLE {name} ({', '.join(columns)})"]
        self.without_key[name.upper()] = names
        return [
            f"CREATE TABLE {name}_rows ({', '.join(columns)}, row_number_ INTEGER PRIMARY KEY AUTOINCREMENT)",
            f"CREATE VIEW {name} AS SELECT {', '.join(names)} FROM {name}_rows",
        ]

    def statements(self, text):
        made = self.create(text)
        if made:
            return made
        match = CHANGE.match(text)
        if match and match.group(2).upper() in self.without_key:
            how, name, rest = match.groups()
            names = self.without_key[name.upper()]
            if "INTO" in how.upper() and not re.match(r"\s*\(", rest):
                rest = f" ({', '.join(names)}){rest}"
            return [f"{how} {name}_rows{rest}"]
        match = re.match(r"^(\s*CREATE\s+(?:UNIQUE\s+)?INDEX\s+\w+\s+ON\s+)(\w+)(.*)$", text, re.I | re.S)
        if match and match.group(2).upper() in self.without_key:
            return [f"{match.group(1)}{match.group(2)}_rows{match.group(3)}"]
        match = re.match(r"^\s*DROP\s+TABLE\s+(?:IF\s+EXISTS\s+)?(\w+)\s*;?\s*$", text, re.I)
        if match and match.group(1).upper() in self.without_key:
            del self.without_key[match.group(1).upper()]
            return [f"DROP VIEW {match.group(1)}", f"DROP TABLE {match.group(1)}_rows"]
        return [text]


def shown(cell, kind):
    """A cell, with the class of its type in front, as the files have it."""
    of, value = cell
    if of == 0:
        return "NULL"
    if isinstance(value, bool):
        value = int(value)
    if kind == "I":
        try:
            return str(int(float(value))) if not isinstance(value, int) else str(value)
        except (TypeError, ValueError):
            return "0"
    if kind == "R":
        try:
            return f"{float(value):.3f}"
        except (TypeError, ValueError):
            return "0.000"
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    text = "".join(char if " " <= char <= "~" else "@" for char in text)
    return text or "(empty)"


def is_right(record, answer):
    if record.kind == "ok":
        return answer.error is None
    if record.kind == "error":
        return answer.error is not None
    if answer.error is not None or answer.rows is None:
        return False
    rows = [[shown(cell, kind) for cell, kind in zip(row, record.types)] for row in answer.rows]
    if rows and len(answer.rows[0]) != len(record.types):
        return False
    if record.sort == "rowsort":
        rows.sort()
    values = [cell for row in rows for cell in row]
    if record.sort == "valuesort":
        values.sort()
    match = re.match(r"^(\d+) values hashing to ([0-9a-f]{32})$", record.expected[0]) if record.expected else None
    if match:
        digest = hashlib.md5("".join(value + "\n" for value in values).encode()).hexdigest()
        return len(values) == int(match.group(1)) and digest == match.group(2)
    expected = [value for line in record.expected for value in ([line] if len(record.expected) == len(values) else line.split("\t"))]
    return values == expected


def is_alike(theirs, ours, record):
    """Whether both have the same answer, its order aside unless it is the record's."""
    if theirs.error or ours.error:
        codes = {one.error[0] if one.error else 0 for one in (theirs, ours)}
        return len(codes) == 1 or codes == WORDS_REFUSED
    if theirs.rows is None or ours.rows is None:
        return theirs.rows is ours.rows
    one, other = theirs.rows, ours.rows
    return one == other or record.sort != "nosort" and sorted(map(repr, one)) == sorted(map(repr, other))


def run(path, peers, counts, options):
    dialect, todo, wrong = Dialect(), [], []
    for at, record in enumerate(records(path, counts)):
        if at >= options.records:
            counts["left out: behind the first records of a file"] += 1
            continue
        statements = dialect.statements(record.text.strip().rstrip(";"))
        todo.append((record, statements))
    for begin in range(0, len(todo), AT_ONCE):
        some = todo[begin:begin + AT_ONCE]
        texts = [(text, ()) for _, statements in some for text in statements]
        theirs, ours = [peer.execute(texts) for peer in peers]
        place = 0
        for record, statements in some:
            place += len(statements)
            their, our = theirs[place - 1], ours[place - 1]
            if is_right(record, our):
                counts["right"] += 1
            elif is_alike(their, our, record):
                counts["as 2.6" + (f": error {our.error[0]}" if our.error else ": another answer")] += 1
            else:
                counts["wrong"] += 1
                wrong.append((statements[-1], their, our, record))
    for text, their, our, record in wrong[: options.show]:
        print(f"{path}: {text}\n  2.6: {their.shown()[:300]}\n  Ladon: {our.shown()[:300]}\n  expected: {record.expected[:6]}")
    # The tables of the next file have the same names.
    for peer in peers:
        peer.end()
        peer.begin()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder")
    parser.add_argument("ladon")
    parser.add_argument("--tarantool", default="tarantool")
    parser.add_argument("--port", type=int, default=4571)
    parser.add_argument("--records", type=int, default=1 << 60)
    parser.add_argument("--show", type=int, default=3, help="so many wrong records of each file are shown")
    parser.add_argument("--files", nargs="*", default=[])
    options = parser.parse_args()
    paths = [os.path.join(folder, name) for folder, _, names in os.walk(options.folder) for name in names if name.endswith(".test")]
    paths = sorted(path for path in paths if not options.files or any(word in path for word in options.files))
    module = fuzz()
    folders = [tempfile.mkdtemp(prefix="sqllogictest-") for _ in range(2)]
    program = os.path.join(folders[1], "init.lua")
    with open(program, "w") as file:
        file.write(module.TARANTOOL.format(port=options.port + 1))
    command = [os.path.abspath(options.ladon), "--port", str(options.port + 2), "--dir", folders[0], "--gate", "none"]
    command += ["--iproto", f"127.0.0.1:{options.port}", "--iproto-admin-password", "secret"]
    peers, counts = [], collections.Counter()
    try:
        peers.append(module.Peer("Tarantool", [options.tarantool, program], options.port + 1, folders[1], None))
        peers.append(module.Peer("Ladon", command, options.port, folders[0], "secret"))
        for path in paths:
            before = counts["right"], counts["wrong"]
            run(path, peers, counts, options)
            print(f"{path}: {counts['right'] - before[0]} right, {counts['wrong'] - before[1]} wrong", flush=True)
    finally:
        for peer in peers:
            peer.end()
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)
    print(f"{len(paths)} files: " + ", ".join(f"{count} {what}" for what, count in counts.most_common()))
    sys.exit(1 if counts["wrong"] else 0)


if __name__ == "__main__":
    main()
