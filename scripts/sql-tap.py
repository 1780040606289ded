#!/usr/bin/env python3
"""Runs Tarantool's own SQL tests (test/sql-tap) on Ladon, each statement over EXECUTE.

    scripts/sql-tap.py CHECKOUT LADON [TARANTOOL] [--files WORD ...] [--out FOLDER] [--port PORT]

CHECKOUT is a folder with Tarantool's sources, whose test/sql-tap is read. LADON is the program.
TARANTOOL is the real server's program, version 2.6 (`tarantool` if it is not named). A test file is a
Lua program that calls `box.execute`. The real program runs each file twice: once with its own
`box.execute`, once with one that sends the statement to a fresh Ladon: the connection of its own, and
in a stream from START TRANSACTION to COMMIT or ROLLBACK.

Prints one line a file: asserts that pass on Ladon and on the original. Then the sums, and how many
files are clean: what passes on the original passes on Ladon. --files takes the files whose names
contain one of the words. --out keeps what the files print, and their statements with their answers.
--port is Ladon's for IPROTO (the next one is for RESP).
"""
import argparse
import collections
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

# Those run for minutes, or need a debug build of Tarantool, or its statistics.
LEFT_OUT = {
    "selectA", "like2", "types2", "e_expr", "date", "tkt-bd484a090c", "tkt3791", "gh-3350-skip-scan",
    "debug_mode_only", "gh-3332-tuple-format-leak", "gh-3083-ephemeral-unref-tuples",
}
FILE_SECONDS_MAX = 60

PRELUDE = r"""
local port, file, tests = tonumber(arg[1]), arg[2], arg[3]
arg = {[0] = file, 'memtx', trace = arg[4] == 'trace'}
require('fio').chdir(require('fio').tempdir())
local socket, msgpack, digest = require('socket'), require('msgpack'), require('digest')
local connection
local function request(kind, stream, body)
    local head = msgpack.encode({[0] = kind, [1] = 1, [10] = stream})
    local packet = head .. msgpack.encode(body)
    connection:write(msgpack.encode(#packet) .. packet)
    local size = connection:read(5)
    if size == nil or #size < 5 then connection = nil return nil, 'connection closed' end
    size = msgpack.decode(size)
    local bytes = connection:read(size)
    local reply, at = msgpack.decode(bytes)
    return reply[0], (msgpack.decode(bytes, at))
end
local function xor(a, b)
    local out = {}
    for i = 1, #a do out[i] = string.char(bit.bxor(a:byte(i), b:byte(i))) end
    return table.concat(out)
end
local function connect()
    connection = socket.tcp_connect('127.0.0.1', port, 5)
    local greeting = connection:read(128)
    local salt = digest.base64_decode(greeting:sub(65, 108)):sub(1, 20)
    local first = digest.sha1('secret')
    local scramble = xor(first, digest.sha1(salt .. digest.sha1(first)))
    assert(request(7, 0, {[0x23] = 'admin', [0x21] = {'chap-sha1', scramble}}) == 0)
end
local names = {[0] = 'name', 'type', 'collation', 'is_nullable', 'is_autoincrement', 'span'}
-- A tuple, unless that would make an integer of a large double.
local function row_of(row)
    for i = 1, #row do
        if type(row[i]) == 'number' and math.abs(row[i]) >= 2^53 then return row end
    end
    return box.tuple.new(row)
end
local function result(body)
    local info = body[0x42]
    if info ~= nil then return {row_count = info[0], autoincrement_ids = info[1]} end
    local rows, metadata = {}, {}
    for i, row in ipairs(body[0x30]) do rows[i] = row_of(row) end
    for i, column in ipairs(body[0x32]) do
        metadata[i] = {}
        for key, value in pairs(column) do metadata[i][names[key]] = value end
    end
    return {metadata = metadata, rows = rows}
end
local stream = 0
local function execute(sql, binds)
    if connection == nil then connect() end
    local words = sql:upper():gsub('^[%s;]+', '')
    if words:match('^START%s+TRANSACTION') then stream = 1 end
    local binds = setmetatable(binds or {}, {__serialize = 'seq'})
    local code, body = request(11, stream, {[0x40] = sql, [0x41] = binds})
    local is_end = words:match('^COMMIT') or words:match('^ROLLBACK[%s;]*$')
    if is_end and code == 0 then stream = 0 end
    if code == 0 then return result(body) end
    if code == nil then return nil, box.error.new({code = 77, reason = body}) end
    return nil, box.error.new({code = bit.band(code, 0x7fff), reason = body[0x31]})
end
local own
local function traced(sql, binds)
    local answer, failure = (port > 0 and execute or own)(sql, binds or {})
    local shown = failure and tostring(failure) or require('json').encode(answer)
    io.stderr:write('-- ', sql:gsub('%s+', ' '), '\n   ', shown:sub(1, 1000), '\n')
    return answer, failure
end
local chosen = arg.trace and traced or execute
if port > 0 then box.execute = chosen end
for _, folder in ipairs({'sql-tap', 'sql', 'box'}) do
    package.path = tests .. '/' .. folder .. '/lua/?.lua;' .. package.path
end
require('sqltester')
-- There only since the server was started.
if port == 0 then own = box.execute end
if port > 0 or arg.trace then box.execute = chosen end
if port > 0 then
    -- A file sets what it wants of its own session.
    box.space._session_settings.update = function(_, name, operations)
        local value = operations[1][3]
        value = type(value) == 'string' and ("'" .. value .. "'") or tostring(value)
        execute(('SET SESSION "%s" = %s'):format(name, value))
    end
end
assert(loadfile(file))('memtx')
"""


def start(ladon, port, folder):
    """A fresh Ladon that listens."""
    shutil.rmtree(folder, ignore_errors=True)
    command = [ladon, "--port", str(port + 1), "--dir", folder, "--iproto", f"127.0.0.1:{port}"]
    command += ["--iproto-admin-password", "secret"]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(200):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return server
        except OSError:
            time.sleep(0.02)
    server.kill()
    sys.exit(f"{ladon} does not listen on port {port}")


def asserts(tarantool, prelude, port, file, tests, out):
    """Runs a file. Returns how often each assert passed."""
    command = ["timeout", str(FILE_SECONDS_MAX), tarantool, prelude, str(port), file, tests]
    command += ["trace"] if out else []
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True)
    if out:
        with open(out, "wb") as kept:
            kept.write(done.stdout + b"\n--stderr\n" + done.stderr)
    # `ok - NAME`, sometimes with a number before the name.
    passed = re.findall(rb"^ok(?: \d+)? - (.*)$", done.stdout, re.M)
    return collections.Counter(passed)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("checkout")
    parser.add_argument("ladon")
    parser.add_argument("tarantool", nargs="?", default="tarantool")
    parser.add_argument("--files", nargs="*", default=[])
    parser.add_argument("--out")
    parser.add_argument("--port", type=int, default=4501)
    options = parser.parse_args()
    tests = os.path.abspath(os.path.join(options.checkout, "test"))
    listed = sorted(os.listdir(os.path.join(tests, "sql-tap")))
    names = [name[: -len(".test.lua")] for name in listed if name.endswith(".test.lua")]
    names = [name for name in names if name not in LEFT_OUT and "analyze" not in name]
    if options.files:
        names = [name for name in names if any(word in name for word in options.files)]
    if options.out:
        os.makedirs(options.out, exist_ok=True)
    folder = tempfile.mkdtemp()
    prelude = os.path.join(folder, "prelude.lua")
    with open(prelude, "w") as text:
        text.write(PRELUDE)
    kept_sum = original_sum = clean = counted = 0
    for name in names:
        file = os.path.join(tests, "sql-tap", name + ".test.lua")
        kept_as = options.out and os.path.join(options.out, name + ".{}.txt")
        original = kept_as and kept_as.format("tarantool")
        expected = asserts(options.tarantool, prelude, 0, file, tests, original)
        server = start(options.ladon, options.port, os.path.join(folder, "data"))
        try:
            ours = kept_as and kept_as.format("ladon")
            found = asserts(options.tarantool, prelude, options.port, file, tests, ours)
            died = server.poll() is not None
        finally:
            server.kill()
            server.wait()
        total, kept = sum(expected.values()), sum((expected & found).values())
        print(f"{name}: {kept} of {total}{' THE SERVER DIED' if died else ''}", flush=True)
        kept_sum, original_sum = kept_sum + kept, original_sum + total
        counted += total > 0
        clean += total > 0 and kept == total
    shutil.rmtree(folder, ignore_errors=True)
    share = 100 * kept_sum / max(original_sum, 1)
    print(f"asserts {kept_sum} of {original_sum} ({share:.1f} %), clean files {clean} of {counted}")


if __name__ == "__main__":
    main()
