#!/usr/bin/env python3
"""Random statements of SQL, sent to Ladon and to Tarantool 2.6 (and some to SQLite): the answers have to be equal.

    scripts/sql-fuzz.py --ladon PROGRAM [--seed N] [--statements N] [--port PORT] [--tarantool PROGRAM] [--keep-going]

Each round makes a few tables (keys, foreign ones, UNIQUE, CHECK, NOT NULL, DEFAULT, indexes, triggers), and sends
changes and queries of them. Compared are the code and the words of errors, counts of changed rows, columns' names and types, rows
(in order where ORDER BY decides it), and after each change all rows of all tables. Queries that mean the same in
SQLite, over integers and texts, are compared with Python's sqlite3 as well. A round is made of its seed alone,
which is printed with a difference: `--seed N --statements 1` runs it again. Differences that docs/compat/sql.md
explains are the rules of `explained`; they are counted. Exits with 1 after a difference. Needs `msgpack`.
"""
import argparse
import base64
import collections
import hashlib
import os
import random
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time

import msgpack

TARANTOOL = """
box.cfg{{wal_mode = 'none', log = 'log.txt', checkpoint_interval = 0}}
box.schema.user.grant('guest', 'super')
box.cfg{{listen = '127.0.0.1:{port}'}}
"""
# Statements of a round, and of one send.
ROUND, AT_ONCE = 120, 40

# Codes of errors that computing a value gives.
COMPUTED = {159, 171, 178}
CHECK_FAILED, TUPLE_FOUND, OUT_OF_MEMORY = 196, 3, 2
# What 2.6's temporary tables say of values that are not of the type of a column.
TEMPORARY = {18, 23}


# Only the counts differ if the rows are equal.
OR_IGNORE = "OR IGNORE counts no rows of some tables"
# What 2.6 loses rows by, and other words for it, in which it does not. A query is sent in both, a change in those
# alone. By an index with a collation, a text that is LIKE one beyond ASCII, or one that ends with z, is not found,
# unless that is computed.
IN_OTHER_WORDS = {" IS NOT NULL": " IS NULL = FALSE", " LIKE 'é'": " LIKE TRIM('é')", " LIKE 'zz'": " LIKE TRIM('zz')"}


def in_other_words(text):
    for words, others in IN_OTHER_WORDS.items():
        text = text.replace(words, others)
    return text



def is_computed(answer):
    return answer.error is not None and answer.error[0] in COMPUTED


def folded(row):
    return tuple((of, value.casefold() if isinstance(value, str) else value) for of, value in row)


def explained(text, theirs, ours):
    """Why the answers may differ; None if they may not."""
    if theirs.error and ours.error:
        codes = {theirs.error[0], ours.error[0]}
        if is_computed(theirs) and is_computed(ours):
            return "of several values that cannot be computed, one is named"
        if codes <= {CHECK_FAILED, TUPLE_FOUND} or CHECK_FAILED in codes and (is_computed(theirs) or is_computed(ours)):
            return "of several constraints that a row breaks, one is named"
    if is_computed(theirs) != is_computed(ours):
        return "a value that cannot be computed is an error only where it is needed"
    if theirs.error and theirs.error[0] in TEMPORARY and ours.error is None and "SELECT" in text:
        return "2.6 refuses a value that is not of the type which it takes the column for"
    if theirs.error and theirs.error[1].startswith("Supplied key type") and ours.error is None:
        return "2.6 refuses a value that is not of the type of an index's part"
    if " OR IGNORE" in text and ours.error is None and theirs.error is None:
        return OR_IGNORE
    errors = [one.error[0] if one.error else 0 for one in (theirs, ours)]
    if text.startswith("UPDATE") and sorted(errors) == [0, TUPLE_FOUND]:
        return "the order in which rows are updated decides whether a new key is there already"
    if theirs.rows and ours.rows and sorted(theirs.rows) != sorted(ours.rows) and sorted(map(folded, theirs.rows)) == sorted(map(folded, ours.rows)):
        return "of texts that are equal by a collation, another one is shown"
    if text.startswith("SELECT DISTINCT") and ("any" in (kind for _, kind in theirs.columns)) and theirs.error is None:
        return "2.6 compares nothing in a column of which it knows no type, so that DISTINCT shows rows twice"
    same = (theirs.error, theirs.count, theirs.ids) == (ours.error, ours.count, ours.ids)
    if same and theirs.rows is not None and sorted(theirs.rows) == sorted(ours.rows):
        if [name for name, _ in theirs.columns] == [name for name, _ in ours.columns]:
            return "the type of a result's column in the metadata"
    return None


class Peer:
    def __init__(self, name, command, port, folder, password):
        self.name, self.of = name, (command, port, folder, password)
        self.begin()

    def begin(self):
        command, port, folder, password = self.of
        for name in os.listdir(folder):
            if name != "init.lua":
                path = os.path.join(folder, name)
                shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)
        log = open(os.path.join(folder, "output.txt"), "w")
        self.process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
        for _ in range(200):
            try:
                self.socket = socket.create_connection(("127.0.0.1", port))
                self.unread = b""
                greeting = self.take(128)
                break
            except (OSError, EOFError):
                time.sleep(0.05)
        if password:
            salt = base64.b64decode(greeting[64:108])[:20]
            first = hashlib.sha1(password.encode()).digest()
            second = hashlib.sha1(salt + hashlib.sha1(first).digest()).digest()
            scramble = bytes(a ^ b for a, b in zip(first, second))
            self.send([(7, {0x23: "admin", 0x21: ["chap-sha1", scramble]})])
            assert self.reply()[1] == 0

    def take(self, count):
        while len(self.unread) < count:
            part = self.socket.recv(1 << 20)
            if not part:
                raise EOFError(f"{self.name} closed the connection")
            self.unread += part
        taken, self.unread = self.unread[:count], self.unread[count:]
        return taken

    def send(self, requests):
        packets = []
        for at, (kind, body) in enumerate(requests):
            packet = msgpack.packb({0: kind, 1: at}) + msgpack.packb(body, use_bin_type=True)
            packets.append(b"\xce" + len(packet).to_bytes(4, "big") + packet)
        self.socket.sendall(b"".join(packets))

    def replies(self, count):
        """The replies to all of them in their order: of one that takes long, it may come later."""
        found = [None] * count
        for _ in range(count):
            at, *reply = self.reply()
            found[at] = Answer(*reply)
        return found

    def reply(self):
        bytes_ = self.take(int.from_bytes(self.take(5)[1:], "big"))
        unpacker = msgpack.Unpacker(raw=False, strict_map_key=False, unicode_errors="surrogateescape")
        unpacker.feed(bytes_)
        header, body = unpacker.unpack(), unpacker.unpack()
        return header[1], header[0] & 0x7FFF, body

    def execute(self, statements):
        self.send([(11, {0x40: text, 0x41: list(values)}) for text, values in statements])
        return self.replies(len(statements))

    def end(self):
        self.process.kill()
        self.process.wait()


def cell(value):
    """A value so that what is equal in SQL is equal, and sorts."""
    if value is None:
        return (0, 0)
    if isinstance(value, bool):
        return (1, value)
    if isinstance(value, int) and abs(value) < 1 << 53:
        return (2, value)
    if isinstance(value, (int, float)):
        # A sum of NUMBERs may be either.
        return (2, float(f"{value:.12g}"))
    if isinstance(value, str):
        return (4, value)
    return (5, repr(value))


class Answer:
    def __init__(self, code, body):
        self.error = (code, body.get(0x31)) if code else None
        self.count = body.get(0x42, {}).get(0)
        self.ids = body.get(0x42, {}).get(1)
        self.columns = [(one[0], one[1]) for one in body.get(0x32, [])]
        self.rows = [tuple(map(cell, row)) for row in body[0x30]] if 0x30 in body else None

    def seen(self, is_ordered):
        rows = self.rows if is_ordered or self.rows is None else sorted(self.rows)
        return (self.error, self.count, self.ids, self.columns, rows)

    def shown(self):
        if self.error:
            return f"error {self.error[0]}: {self.error[1]}"
        if self.rows is None:
            return f"{self.count} rows changed, ids {self.ids}"
        values = [" ".join(str(value) for _, value in row) for row in self.rows[:20]]
        return f"{self.columns}, {len(self.rows)} rows: " + " | ".join(values)


class Table:
    def __init__(self, name, columns):
        # columns: (name, type)
        self.name, self.columns = name, columns
        # 2.6's OR IGNORE leaves rows alone that break no unique key beside the primary one.
        self.may_ignore = True
        self.has_one_key = False


# Arithmetic of 2.6 takes the text of a negative integer for one of 64 bits without a sign ('-8' / 2 is
# 9223372036854775804), so that there is none.
WORDS = ["", "a", "b", "A", "ab", "abc", "%", "a%", "1", "2", "-1.5", "1.5", "é", "zz"]
TYPES = ["INT", "INT", "INT", "TEXT", "TEXT", "DOUBLE", "NUMBER", "BOOLEAN", "UNSIGNED", "SCALAR"]


class Maker:
    """Statements of one round."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.tables, self.has_trigger, self.has_collation = [], False, False
        # Whether SQLite means the same by what is made.
        self.is_common = self.random.random() < 0.3
        # Whether operators get what they do not take.
        self.is_wild = not self.is_common and self.random.random() < 0.3

    def any(self, *of):
        return self.random.choice(of)

    def chance(self, of):
        return self.random.random() < of

    def literal(self, kind):
        if self.chance(0.08):
            return "NULL"
        if self.is_wild and self.chance(0.1):
            kind = self.any("INT", "TEXT", "DOUBLE", "BOOLEAN")
        if kind == "SCALAR":
            kind = self.any("INT", "TEXT", "DOUBLE", "BOOLEAN")
        if kind == "NUMBER":
            kind = self.any("INT", "DOUBLE")
        if kind == "TEXT":
            return "'" + self.random.choice(WORDS) + "'"
        if kind == "BOOLEAN":
            return self.any("TRUE", "FALSE")
        if kind == "DOUBLE":
            return self.any("0.0", "1.5", "-2.25", "3.0", "1e3", "0.1")
        if kind == "UNSIGNED":
            return str(self.random.randint(0, 12))
        if self.chance(0.03) and not self.is_common:
            return self.any("9223372036854775807", "18446744073709551615", "-9223372036854775808")
        return str(self.random.randint(-3, 12))

    def schema(self):
        for at in range(self.random.randint(1, 3)):
            yield from self.table(f"T{at}")
        if not self.is_common and self.chance(0.3):
            yield from self.trigger()

    def table(self, name):
        kinds = ["INT", "TEXT"] if self.is_common else TYPES
        columns = [(f"C{at}", self.random.choice(kinds)) for at in range(self.random.randint(2, 4))]
        parts = []
        primary = [columns[0][0]]
        if self.chance(0.2):
            primary.append(columns[1][0])
        for column, kind in columns:
            text = f"{column} {kind}"
            if kind == "TEXT" and not self.is_common and self.chance(0.15):
                text += ' COLLATE "unicode_ci"'
            if self.is_common and column in primary or column not in primary and self.chance(0.15):
                text += " NOT NULL"
            if self.chance(0.15) and column not in primary:
                text += f" DEFAULT {self.literal(kind)}"
            if self.chance(0.12) and column not in primary:
                text += " UNIQUE"
            parts.append(text)
        parts.append(f"PRIMARY KEY ({', '.join(primary)})")
        table = Table(name, columns)
        table.has_one_key = len(primary) == 1
        table.may_ignore = not any("UNIQUE" in part for part in parts)
        has_collation = any("COLLATE" in part for part in parts)
        self.has_collation = self.has_collation or has_collation
        if not self.is_common and self.chance(0.3) and not has_collation:
            self.tables, before = [table], self.tables
            # 2.6's OR IGNORE leaves rows alone behind one that breaks a check.
            table.may_ignore = False
            parts.append(f"CONSTRAINT ck{name} CHECK ({self.truth(table, 1)})")
            self.tables = before
        parts += self.foreign_key(columns, primary)
        yield f"CREATE TABLE {name} ({', '.join(parts)})"
        self.tables.append(table)
        for at in range(self.random.randint(0, 2)):
            of = self.random.sample(columns, self.random.randint(1, 2))
            unique = "UNIQUE " if self.chance(0.2) else ""
            table.may_ignore = table.may_ignore and not unique
            yield f"CREATE {unique}INDEX i{at} ON {name} ({', '.join(column for column, _ in of)})"

    def foreign_key(self, columns, primary):
        """A key of a table that is there already, which has one of the column's type."""
        # SQLite looks at none unless it is asked to.
        if self.is_common or not self.chance(0.4):
            return
        for parent in self.tables:
            first, kind = parent.columns[0]
            fits = [name for name, of in columns if of == kind and name not in primary]
            if parent.has_one_key and fits:
                action = self.any("", " ON DELETE CASCADE", " ON DELETE SET NULL", " ON DELETE RESTRICT", " ON DELETE NO ACTION")
                yield f"CONSTRAINT fk FOREIGN KEY ({self.random.choice(fits)}) REFERENCES {parent.name} ({first}){action}"
                return

    def trigger(self):
        self.has_trigger = True
        table, other = self.random.choice(self.tables), self.random.choice(self.tables)
        # 2.6 fires triggers AFTER also of a row that OR IGNORE has left alone.
        table.may_ignore = False
        event = self.any("INSERT", "UPDATE", "DELETE")
        row = "OLD" if event == "DELETE" else "NEW"
        when = self.any("BEFORE", "AFTER")
        column, kind = self.random.choice(table.columns)
        # Which conflict policy a trigger's new primary key has in 2.6 is another matter.
        target, of = self.random.choice(other.columns[2:] or [("", "")])
        value = f"{row}.{column}" if of == kind else self.literal(of)
        step = self.any(
            f"UPDATE {other.name} SET {target} = {value} WHERE {self.truth(other, 1, bare=True)};" if target else "SELECT 1;",
            f"DELETE FROM {other.name} WHERE {self.truth(other, 1, bare=True)};",
            f"INSERT{' OR IGNORE' if other.may_ignore else ''} INTO {other.name} VALUES ({self.values(other)});",
            "SELECT RAISE(IGNORE);",
            "SELECT RAISE(ABORT, 'stop');",
        )
        condition = f" WHEN {row}.{column} = {self.literal(kind)}" if self.chance(0.4) else ""
        yield f"CREATE TRIGGER tr {when} {event} ON {table.name} FOR EACH ROW{condition} BEGIN {step} END"

    def values(self, table):
        return ", ".join(self.literal(kind) for _, kind in table.columns)

    def column(self, table, kind, bare=False):
        fits = [name for name, of in table.columns if of == kind or self.is_wild and self.chance(0.1)]
        if not fits:
            return self.literal(kind)
        name = self.random.choice(fits)
        return name if bare else f"{table.alias}.{name}"

    def expression(self, table, kind, depth, bare=False):
        if depth <= 0 or self.chance(0.3):
            return self.literal(kind) if self.chance(0.3) else self.column(table, kind, bare)
        inner = lambda kind: self.expression(table, kind, depth - 1, bare)
        if kind == "BOOLEAN":
            return f"({self.truth(table, depth, bare)})"
        if self.chance(0.15):
            return f"CASE WHEN {self.truth(table, depth - 1, bare)} THEN {inner(kind)} ELSE {inner(kind)} END"
        if self.chance(0.1):
            return f"COALESCE({inner(kind)}, {inner(kind)})"
        if kind == "TEXT":
            made = [f"({inner('TEXT')} || {inner('TEXT')})", f"SUBSTR({inner('TEXT')}, {self.random.randint(1, 3)})"]
            if not self.is_common:
                made += [f"UPPER({inner('TEXT')})", f"CAST({inner('INT')} AS TEXT)", f"REPLACE({inner('TEXT')}, 'a', 'b')",
                         f"TRIM({inner('TEXT')})", f"LOWER({inner('TEXT')})"]
            return self.random.choice(made)
        if kind in ("INT", "DOUBLE", "NUMBER", "UNSIGNED"):
            made = [f"({inner(kind)} {self.any('+', '-', '*')} {inner(kind)})", f"(- {inner(kind)})", f"ABS({inner(kind)})"]
            made += [f"LENGTH({inner('TEXT')})"] if kind == "INT" else []
            if not self.is_common:
                # Of negative and broken numbers, and of its own -0 (-1 / 6), 2.6 has other remainders.
                made += [f"({inner(kind)} / {inner(kind)})", f"(ABS({self.column(table, 'INT', bare)}) % 7)"]
                made += [f"CAST({inner(self.any('DOUBLE', 'TEXT', 'INT'))} AS INT)"] if kind == "INT" else []
                made += [f"({inner('INT')} {self.any('&', '|', '<<', '>>')} {inner('INT')})"] if kind == "INT" else []
                made += [f"ROUND({inner(kind)}, {self.random.randint(0, 2)})"] if kind == "DOUBLE" else []
            return self.random.choice(made)
        return inner(self.any("INT", "TEXT"))

    def truth(self, table, depth, bare=False):
        if not hasattr(table, "alias"):
            table.alias = table.name
            bare = True
        kind = self.random.choice(table.columns)[1]
        inner = lambda: self.expression(table, kind, depth - 1, bare)
        roll = self.random.random()
        if depth > 0 and roll < 0.25:
            return f"({self.truth(table, depth - 1, bare)} {self.any('AND', 'OR')} {self.truth(table, depth - 1, bare)})"
        if depth > 0 and roll < 0.3:
            return f"(NOT {self.truth(table, depth - 1, bare)})"
        if roll < 0.38:
            return f"{inner()} IS {self.any('', 'NOT ')}NULL"
        if roll < 0.5:
            # In lists of three and more, 2.6 makes values of one type of them: integers, if ROUND is looked for, and
            # of mixed ones those of the first.
            wanted = inner()
            most = 2 if self.is_wild or wanted.startswith(("ROUND", "COALESCE", "CASE")) else 4
            is_wild, self.is_wild = self.is_wild, False
            kind = self.any("INT", "TEXT", "DOUBLE") if kind == "SCALAR" else kind
            values = ", ".join(self.literal(kind) for _ in range(self.random.randint(1, most)))
            self.is_wild = is_wild
            return f"{wanted} {self.any('', 'NOT ')}IN ({values})"
        if roll < 0.6 and kind != "BOOLEAN":
            return f"{inner()} BETWEEN {self.literal(kind)} AND {self.literal(kind)}"
        if roll < 0.66 and kind == "TEXT" and not self.is_common:
            return f"{inner()} LIKE {self.literal('TEXT')}"
        operator = self.any("=", "=", "<", ">", "<=", ">=", "<>")
        return f"{inner()} {operator} {inner() if self.chance(0.5) else self.literal(kind)}"

    def statement(self):
        """A text, its parameters, whether its rows have an order, and whether it changes rows."""
        roll = self.random.random()
        if roll < 0.3:
            return self.insert()
        if roll < 0.38:
            return self.update()
        if roll < 0.43:
            return self.delete()
        return self.select()

    def insert(self):
        table = self.random.choice(self.tables)
        how = self.any("INSERT", "INSERT", "INSERT OR IGNORE", "INSERT OR REPLACE", "REPLACE")
        how = how if table.may_ignore else how.replace(" OR IGNORE", "")
        if self.chance(0.15):
            source = self.random.choice(self.tables)
            source.alias = source.name
            items = ", ".join(self.expression(source, kind, 1) for _, kind in table.columns)
            # In which order 2.6 inserts the rows of a sorted query is another matter.
            return f"INSERT INTO {table.name} SELECT {items} FROM {source.name} WHERE {self.truth(source, 1)} ORDER BY {self.keys(source)}", (), True, True
        if self.chance(0.15):
            column, kind = self.random.choice(table.columns)
            first, of = table.columns[0]
            names = [first] if column == first else [first, column]
            values = [self.literal(of)] if column == first else [self.literal(of), self.literal(kind)]
            return f"{how} INTO {table.name} ({', '.join(names)}) VALUES ({', '.join(values)})", (), True, True
        # In which order 2.6 inserts several rows that fire triggers is another matter.
        count = 1 if self.has_trigger else self.random.choice([1, 1, 1, 2, 3])
        rows = ", ".join(f"({self.values(table)})" for _ in range(count))
        return f"{how} INTO {table.name} VALUES {rows}", (), True, True

    def update(self):
        table = self.random.choice(self.tables)
        table.alias = table.name
        how = self.any("UPDATE", "UPDATE", "UPDATE", "UPDATE OR IGNORE" if table.may_ignore else "UPDATE")
        # OR IGNORE of 2.6 leaves a row alone that keeps its own key.
        free = table.columns[2 if "IGNORE" in how else 1:]
        if not free:
            how, free = "UPDATE", table.columns[1:]
        which = self.random.sample(free, self.random.randint(1, len(free)))
        sets = ", ".join(f"{column} = {self.expression(table, kind, 2, True)}" for column, kind in which)
        return f"{how} {table.name} SET {sets} WHERE {self.truth(table, 2, True)}", (), True, True

    def delete(self):
        table = self.random.choice(self.tables)
        table.alias = table.name
        return f"DELETE FROM {table.name} WHERE {self.truth(table, 2, True)}", (), True, True

    @staticmethod
    def keys(table):
        return ", ".join(f"{table.alias}.{name}" for name, _ in table.columns)

    def select(self):
        table = self.random.choice(self.tables)
        table.alias = "x"
        tables, source = [table], f"{table.name} AS x"
        if self.chance(0.35):
            other = Table(*(lambda it: (it.name, it.columns))(self.random.choice(self.tables)))
            other.alias = "y"
            tables.append(other)
            left, kind = self.random.choice(table.columns)
            fits = [name for name, of in other.columns if of == kind]
            if fits and self.chance(0.8):
                join = self.any("JOIN", "JOIN", "LEFT JOIN")
                source += f" {join} {other.name} AS y ON x.{left} = y.{self.random.choice(fits)}"
            else:
                source += f", {other.name} AS y"
        one = lambda: self.random.choice(tables)
        where = f" WHERE {self.truth(one(), 2)}" if self.chance(0.7) else ""
        if self.chance(0.25):
            return self.grouped(tables, source, where)
        if self.chance(0.1):
            inner = self.random.choice(self.tables)
            column, kind = self.random.choice(table.columns)
            fits = [name for name, of in inner.columns if of == kind]
            # By an index without the collation that the query's column has, 2.6 finds not all of them.
            if fits and not (self.has_collation and kind in ("TEXT", "SCALAR")):
                test = self.any("IN", "NOT IN")
                joined = " AND " if where else " WHERE "
                where += f"{joined}x.{column} {test} (SELECT {self.random.choice(fits)} FROM {inner.name})"
        items = [self.item(one()) for _ in range(self.random.randint(1, 4))]
        distinct = "DISTINCT " if self.chance(0.15) else ""
        text = f"SELECT {distinct}{', '.join(items)} FROM {source}{where}"
        if self.chance(0.5):
            # All columns of the result, so that rows that tie are equal.
            places = list(range(1, len(items) + 1))
            self.random.shuffle(places)
            is_limited, direction = self.chance(0.4), self.any("", " DESC")
            # Tarantool refuses LIMIT with both directions.
            order = [f"{at}{direction if is_limited else self.any('', ' DESC')}" for at in places]
            text += " ORDER BY " + ", ".join(order)
            if is_limited:
                text += f" LIMIT {self.random.randint(0, 5)}" + (f" OFFSET {self.random.randint(0, 3)}" if self.chance(0.4) else "")
            return text, (), True, False
        return text, (), False, False

    def item(self, table):
        return self.expression(table, self.random.choice(table.columns)[1], 2)

    def grouped(self, tables, source, where):
        table = self.random.choice(tables)
        column, kind = self.random.choice(table.columns)
        numbers = [name for name, of in table.columns if of in ("INT", "UNSIGNED", "DOUBLE", "NUMBER")]
        made = ["COUNT(*)", f"COUNT({table.alias}.{column})", f"MIN({table.alias}.{column})", f"MAX({table.alias}.{column})",
                f"COUNT(DISTINCT {table.alias}.{column})"]
        made += [f"SUM({table.alias}.{name})" for name in numbers]
        made += [f"AVG({table.alias}.{name})" for name in numbers] if not self.is_common else []
        made += [f"TOTAL({table.alias}.{name})" for name in numbers]
        items = [self.random.choice(made) for _ in range(self.random.randint(1, 3))]
        if self.chance(0.3):
            return f"SELECT {', '.join(items)} FROM {source}{where}", (), True, False
        having = f" HAVING COUNT(*) > {self.random.randint(0, 2)}" if self.chance(0.3) else ""
        text = f"SELECT {table.alias}.{column}, {', '.join(items)} FROM {source}{where} GROUP BY {table.alias}.{column}{having}"
        return text, (), False, False


def sqlite_answer(lite, text):
    rows = lite.execute(text).fetchall()
    return sorted(tuple(map(cell, row)) for row in rows)


class Fuzzer:
    def __init__(self, options, ladon, tarantool):
        self.options, self.ladon, self.tarantool = options, ladon, tarantool
        self.sent = collections.Counter()
        self.explained = collections.Counter()
        self.differences = 0

    def differ(self, seed, history, text, theirs, ours, peer="Tarantool"):
        self.differences += 1
        print(f"\nseed {seed}: {text}\n  {peer}: {theirs}\n  Ladon: {ours}")
        if self.options.show:
            print("".join(f"    {one}\n" for one in history))
        sys.stdout.flush()

    def both(self, statements):
        for peer in (self.tarantool, self.ladon):
            peer.send([(11, {0x40: text, 0x41: list(values)}) for text, values in statements])
        return [peer.replies(len(statements)) for peer in (self.tarantool, self.ladon)]

    def round(self, seed):
        maker = Maker(seed)
        schema, history = list(maker.schema()), []
        lite = sqlite3.connect(":memory:") if maker.is_common else None
        if lite:
            lite.execute("PRAGMA case_sensitive_like = ON")
        script = [(text, (), True, True) for text in schema]
        for _ in range(ROUND):
            one = maker.statement()
            if one[3]:
                one = (in_other_words(one[0]), *one[1:])
            script.append(one)
            if in_other_words(one[0]) != one[0]:
                script.append((in_other_words(one[0]), *one[1:]))
            if one[3]:
                script += [(f"SELECT * FROM {table.name}", (), True, False) for table in maker.tables]
        while script:
            # What is sent in other words as well stays together.
            last = script[:AT_ONCE][-1][0]
            most = AT_ONCE + (in_other_words(last) != last)
            part, script = script[:most], script[most:]
            theirs, ours = self.both([one[:2] for one in part])
            for at, ((text, _, is_ordered, changes), a, b) in enumerate(zip(part, theirs, ours)):
                self.sent["statements"] += 1
                self.sent["errors"] += a.error is not None
                history.append(text)
                if a.error and a.error[0] == OUT_OF_MEMORY:
                    raise ConnectionError("Tarantool has to begin anew")
                if a.seen(is_ordered) != b.seen(is_ordered):
                    why = explained(text, a, b)
                    if why is None and in_other_words(text) != text and not changes and at + 1 < len(part):
                        # What it says in other words, both agree on.
                        worded = [theirs[at + 1].seen(is_ordered), ours[at + 1].seen(is_ordered)]
                        if worded == [b.seen(is_ordered)] * 2:
                            why = "2.6 loses rows by IS NOT NULL and LIKE, and not in other words"
                    if why:
                        self.explained[why] += 1
                    else:
                        self.differ(seed, history, text, a.shown(), b.shown())
                    if why is None or changes and why != OR_IGNORE:
                        # The tables are not the same any more.
                        return self.drop(maker)
                if lite:
                    lite = self.with_sqlite(lite, seed, history, (text, changes), b)
        self.drop(maker)

    def with_sqlite(self, lite, seed, history, statement, answer):
        """Sends the statement to SQLite as well. Returns None where the two have parted."""
        text, changes = statement
        try:
            if changes:
                lite.execute(text)
                return lite if answer.error is None else None
            rows = sqlite_answer(lite, text)
        except sqlite3.Error:
            return lite if answer.error is not None else None
        if answer.error is not None:
            return None
        self.sent["of SQLite"] += 1
        if rows != sorted(answer.rows):
            self.differ(seed, history, text, str(rows[:20]), str(sorted(answer.rows)[:20]), "SQLite")
            return None
        return lite

    def drop(self, maker):
        # Those that name others come later.
        names = [f"T{at}" for at in reversed(range(3))]
        answers = self.both([(f"DROP TABLE IF EXISTS {name}", ()) for name in names])
        if any(one.error for one in answers[1]):
            self.differ(0, [], "DROP TABLE", "", " ".join(one.shown() for one in answers[1]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--ladon", required=True)
    parser.add_argument("--tarantool", default="tarantool")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--statements", type=int, default=100_000)
    parser.add_argument("--port", type=int, default=4561)
    parser.add_argument("--keep-going", action="store_true", help="shows all differences, not just the first")
    parser.add_argument("--show", action="store_true", help="shows the statements of the round before a difference")
    options = parser.parse_args()
    folders = [tempfile.mkdtemp(prefix="sql-fuzz-") for _ in range(2)]
    program = os.path.join(folders[1], "init.lua")
    with open(program, "w") as file:
        file.write(TARANTOOL.format(port=options.port + 1))
    command = [os.path.abspath(options.ladon), "--port", str(options.port + 2), "--dir", folders[0]]
    command += ["--iproto", f"127.0.0.1:{options.port}", "--iproto-admin-password", "secret", "--gate", "none"]
    peers = []
    try:
        peers.append(Peer("Ladon", command, options.port, folders[0], "secret"))
        peers.append(Peer("Tarantool", [options.tarantool, program], options.port + 1, folders[1], None))
        fuzzer = Fuzzer(options, *peers)
        seed = options.seed
        while fuzzer.sent["statements"] < options.statements:
            try:
                fuzzer.round(seed)
            except (EOFError, ConnectionError):
                if peers[0].process.poll() is not None:
                    print(f"seed {seed}: Ladon has ended")
                    fuzzer.differences += 1
                    break
                # A statement that ends the real server is not for comparison.
                fuzzer.sent["rounds in which Tarantool ended"] += 1
                for peer in peers:
                    peer.end()
                    peer.begin()
            seed += 1
            if fuzzer.differences and not options.keep_going:
                break
        print(f"seeds {options.seed} to {seed - 1}:", ", ".join(f"{count} {of}" for of, count in fuzzer.sent.items()))
        for why, count in fuzzer.explained.most_common():
            print(f"explained, {count} times: {why}")
        print(f"differences: {fuzzer.differences}")
        sys.exit(1 if fuzzer.differences else 0)
    finally:
        for peer in peers:
            peer.end()
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
