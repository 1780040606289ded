"""A program that asks others too much: commands of Redis, servers of HTTPS, key functions and persistent functions."""
import os
import socket
import ssl
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import iproto  # noqa: E402
from fault import fault, pings  # noqa: E402
from program_bench import GRANT, MB, OTHER_MS, answers, beside, call, connect, evaluate, flood, run  # noqa: E402

KEYS, LIST = 1_000_000, 200_000

COMMANDS = """
local resp = box.resp.call
local function all(...) return select('#', ...) end
function keys() return #resp('KEYS', '*') end
function sorted() return #resp('SORT', 'list', 'ALPHA') end
function values()
    local names = {}
    for i = 1, 6900 do names[i] = 'key:' .. i end
    local count = 0
    for _ = 1, 20 do count = count + #resp('MGET', unpack(names)) end
    return count
end
function endless() return resp('EVAL', 'while true do end', '0') end
function busy() return resp('EVAL', 'for i = 1, 20000000 do end return 1', '0') end
"""


def filled(bench):
    """A program beside a million keys and a long list."""
    server = run(bench)
    client, keys = connect(server), server.client(60)
    answers(client, evaluate(GRANT))
    code = answers(client, evaluate(COMMANDS))
    if code:
        raise RuntimeError("the program's functions are refused: %d" % code)
    keys("EVAL", "for i = 1, %d do redis.call('SET', 'key:' .. i, i) end" % KEYS, 0)
    keys("EVAL", "for i = 1, %d do redis.call('RPUSH', 'list', 'element:' .. (i * 7919) %% %d) end" % (LIST, LIST), 0)
    return server


def asked_by_many(server, name, connections=20, seconds=10):
    """Clients that CALL a function one after the other, and others meanwhile; p99.9, memory, how often it was answered."""
    codes = []

    def attack(ends):
        one = connect(server)
        while not ends.is_set():
            try:
                codes.append(answers(one, call(name)))
            except (EOFError, OSError):
                # The server is at its end.
                return

    def both(ends):
        threads = [threading.Thread(target=attack, args=(ends,), daemon=True) for _ in range(connections)]
        for thread in threads:
            thread.start()
        ends.wait()
    p999, grown = pings(server, seconds, both)
    return p999, grown, codes


@fault("box.resp.call of KEYS * (a million keys), SORT of 200,000 elements, MGETs of 6,900 keys, by 20 procedures each",
       "others' PING p99.9 at most %d ms, RSS +1500 MB at most; some are answered, none by an error" % OTHER_MS)
def long_commands(bench):
    did, is_right = [], True
    for name in ["keys", "sorted", "values", "busy"]:
        server = filled(bench)
        p999, grown, codes = asked_by_many(server, name)
        server.kill()
        did.append("%s %.1f ms, +%d MB, %d answered %s" % (name, p999, grown // MB, len(codes), sorted(set(codes))))
        is_right &= p999 <= OTHER_MS and grown <= 1500 * MB and set(codes) == {0}
    return "; ".join(did), is_right


@fault("box.resp.call of EVAL without end, then LADON.FIBER KILL or SCRIPT KILL",
       "others' PING p99.9 at most %d ms; it ends, and CALLs are answered" % OTHER_MS)
def endless_script(bench):
    server = run(bench)
    client = connect(server)
    answers(client, evaluate(GRANT))
    answers(client, evaluate(COMMANDS))
    client.socket.sendall(call("endless"))
    time.sleep(0.3)
    p999, _ = pings(server, 3, lambda ends: None)
    control, said, end = server.client(), [], time.monotonic() + 20
    client.socket.settimeout(0.5)
    is_over = False
    while not is_over and time.monotonic() < end:
        running = control("LADON.FIBER", "RUNNING")
        if running:
            control("LADON.FIBER", "KILL", running[0])
        said.append(control.error("SCRIPT", "KILL"))
        try:
            client.any_reply()
            is_over = True
        except (TimeoutError, socket.timeout):
            pass
    code = answers(connect(server), call("one"))
    return "%.1f ms, %s, over: %s, then %d" % (p999, sorted(set(map(str, said)))[:2], is_over, code), \
        p999 <= OTHER_MS and is_over and code == 0


JOINT = """
local resp, fiber = box.resp.call, require('fiber')
box.schema.space.create('joint'):create_index('pk')
function joint()
    box.begin()
    for i = 1, 100 do resp('INCR', 'joint:' .. i) end
    box.space.joint:replace{math.random(1000)}
    local is_done, why = pcall(box.commit)
    if not is_done and why.code ~= box.error.TRANSACTION_CONFLICT then error(why) end
end
function heavy()
    box.begin()
    local is_done, why
    repeat is_done, why = pcall(resp, 'SORT', 'list', 'ALPHA') until not is_done
    box.rollback()
    if not tostring(why):match('50 ms') then error(why) end
end
function left_open()
    box.begin()
    for i = 1, 20 do resp('SET', 'open:' .. i, string.rep('x', 100000)) end
    fiber.sleep(0.2)
    box.rollback()
end
"""


@fault("box.resp.call in transactions: 100 commands each on the same keys, SORTs of 200,000 elements, and 2 MB that are not "
       "committed, by 20 procedures each",
       "others' PING p99.9 at most %d ms, RSS +500 MB at most; all are answered, heavy ones refused by name" % OTHER_MS)
def joint_transactions(bench):
    did, is_right = [], True
    for name in ["joint", "heavy", "left_open"]:
        server = run(bench)
        client, keys = connect(server), server.client(60)
        answers(client, evaluate(GRANT))
        code = answers(client, evaluate(JOINT))
        keys("EVAL", "for i = 1, %d do redis.call('RPUSH', 'list', 'element:' .. (i * 7919) %% %d) end" % (LIST, LIST), 0)
        p999, grown, codes = asked_by_many(server, name, seconds=6)
        server.kill()
        did.append("%s %.1f ms, +%d MB, %d answered %s" % (name, p999, grown // MB, len(codes), sorted(set(codes))))
        is_right &= code == 0 and p999 <= OTHER_MS and grown <= 500 * MB and set(codes) == {0}
    return "; ".join(did), is_right


def certificate(directory):
    """A certificate of its own for `localhost`, and its key: the files."""
    cert, key = os.path.join(directory, "cert.pem"), os.path.join(directory, "key.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-keyout", key, "-out", cert, "-days", "2", "-subj", "/CN=localhost", "-addext",
                    "subjectAltName=DNS:localhost"], check=True, capture_output=True)
    return cert, key


def secure_server(files, serve, ends):
    """A server that `serve`s each connection: with TLS, or as it is if there are no files. Its port."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=100)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    if files:
        context.load_cert_chain(*files)

    def one_of(one):
        try:
            with context.wrap_socket(one, server_side=True) if files else one as stream:
                serve(stream, ends)
        except OSError:
            pass

    def accept():
        while not ends.is_set():
            one, _ = listener.accept()
            threading.Thread(target=one_of, args=(one,), daemon=True).start()
    threading.Thread(target=accept, daemon=True).start()
    return listener.getsockname()[1]


def silent(stream, ends):
    ends.wait(60)


def trickling(stream, ends):
    """A handshake of which a byte comes now and then."""
    for byte in b"\x16\x03\x03\x40\x00\x02\x00\x3f\xfc" + b"\x03" * 1000:
        if ends.is_set():
            return
        stream.sendall(bytes([byte]))
        time.sleep(0.05)


def endless(*pieces):
    def serve(stream, ends):
        stream.recv(4096)
        stream.sendall(pieces[0])
        while not ends.is_set():
            stream.sendall(pieces[1])
    return serve


def slow_body(stream, ends):
    stream.recv(4096)
    stream.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
    while not ends.is_set():
        stream.sendall(b"x")
        time.sleep(0.05)


ASK = """
local client, fiber = require('http.client').new({max_connections = 1}), require('fiber')
local waiting = {}
for i = 1, %d do
    waiting[i] = fiber.new(function()
        local began = fiber.time()
        local is_done, response = pcall(client.get, client, 'https://localhost:%d/', {timeout = 3, ca_file = %s})
        assert(not is_done or response.status ~= 200, 'it was taken')
        assert(fiber.time() - began < 6, 'it took ' .. fiber.time() - began)
    end)
    waiting[i]:set_joinable(true)
end
for _, one in ipairs(waiting) do
    local is_done, why = one:join()
    if not is_done then error(tostring(why)) end
end
"""


@fault("http.client asks 20 times at once over HTTPS: a server that is silent, trickles its handshake or its body, whose heads, "
       "heads of a hundred, pieces of a byte, trailers or body never end, or whose certificate nobody knows",
       "each is an error within twice its timeout; others' PING p99.9 at most %d ms, RSS +1500 MB at most; CALLs go on" % OTHER_MS)
def hostile_https(bench):
    ok, chunked = b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    header = b"X-Header: " + b"x" * 1000 + b"\r\n"
    servers = [
        ("silent", silent, False, True), ("trickling", trickling, False, True), ("slow body", slow_body, True, True),
        ("heads", endless(ok, header), True, True),
        ("hundreds", endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 500), True, True),
        ("bytes", endless(chunked, b"1\r\nx\r\n" * 5000), True, True),
        ("trailers", endless(chunked + b"0\r\n", header * 20), True, True),
        ("body", endless(ok + b"\r\n", b"x" * 65536), True, True),
        ("unknown", endless(ok + b"Content-Length: 1\r\n\r\n", b"x"), True, False),
    ]
    did, is_right = [], True
    for name, serve, is_secure, is_known in servers:
        ends, server = threading.Event(), run(bench)
        files = certificate(server.directory)
        port = secure_server(files if is_secure else None, serve, ends)
        text = ASK % (20, port, "'%s'" % files[0] if is_known else "nil")
        said, p999, grown, is_done = beside(server, 5, text)
        ends.set()
        server.kill()
        did.append("%s %s" % (name, said))
        is_right &= bool(is_done) and p999 <= OTHER_MS and grown <= 1500 * MB
    return "; ".join(did), is_right


KEYED = """
local space = box.schema.space.create('keyed', {if_not_exists = true})
space:create_index('pk', {if_not_exists = true})
local function index(name, body)
    box.schema.func.create(name, {body = body, is_deterministic = true, is_sandboxed = true})
    space:create_index(name, {func = name, parts = {{1, 'unsigned'}}, unique = false})
end
index('matched', [[function(tuple)
    local text = string.rep('a', tuple[2]) .. 'c'
    local from = tuple[3] == 1 and text:find('.-.-.-.-.-.-b') or 0
    return {from or 0}
end]])
index('worked', [[function(tuple)
    local kind, count = tuple[3], tuple[2]
    if kind == 2 then
        for i = 1, 1000000 do pcall(string.rep, 'a', 60000000) end
    elseif kind == 3 then
        local list = {}
        for i = 1, 100000 do list[i] = -i % 1000 end
        for i = 1, 1000000 do pcall(table.sort, list) end
    elseif kind == 4 then
        local text = string.rep('a', 900000)
        for i = 1, 1000000 do pcall(string.upper, text .. i) end
    elseif kind == 5 then
        local text = string.rep('a', 1000)
        for i = 1, 1000000 do pcall(string.find, text, 'a*a*b') end
    end
    return {count}
end]])
"""


@fault("key functions whose patterns backtrack, and that repeat, sort and join texts without end, by 8 connections",
       "each REPLACE is answered within 3 s; others' PING within 2 s; a mild one on the same space is answered")
def hostile_keys(bench):
    server = run(bench)
    client = connect(server, 30)
    answers(client, evaluate(GRANT))
    made, seen = answers(client, evaluate(KEYED)), []

    def attack(first, ends):
        one, at = connect(server, 30), first
        while not ends.is_set():
            began = time.monotonic()
            try:
                code = answers(one, call("box.space.keyed:replace", [at, 60, 1 + at % 5]))
            except (EOFError, OSError):
                return
            seen.append((time.monotonic() - began, code))
            at += 8

    def both(ends):
        threads = [threading.Thread(target=attack, args=(first, ends), daemon=True) for first in range(8)]
        for thread in threads:
            thread.start()
        ends.wait()
        for thread in threads:
            thread.join(20)
    p999, grown = pings(server, 8, both)
    mild = answers(client, call("box.space.keyed:replace", [1_000_000, 5, 0]))
    longest = max(took for took, _ in seen)
    did = "made %d, %.1f ms, +%d MB, %d answered, the longest in %.2f s, then %d" % (
        made, p999, grown // MB, len(seen), longest, mild)
    return did, made == 0 and p999 <= 2000 and longest <= 3 and mild == 0


MILD = """
box.schema.func.create('mild', {body = [[function(k)
    box.space.held:replace{k, 0}
    return box.space.held:get(k)
end]]})
box.schema.space.create('held'):create_index('pk')
"""


@fault("50 connections CALL a persistent function without end, and read nothing; two make and drop ever new ones",
       "others' PING p99.9 at most 6 times that beside as many SELECTs, RSS +300 MB at most; CALLs are answered meanwhile")
def endless_persistent(bench):
    server = run(bench, settings=("--client-reply-backlog", "64mb"))
    client = connect(server)
    answers(client, evaluate(GRANT))
    what = {iproto.SPACE_ID: 280, iproto.LIMIT: 1, iproto.KEY: []}
    selects = b"".join(iproto.packet(iproto.SELECT, what, sync=sync) for sync in range(100))
    usual, _ = pings(server, 4, lambda ends: flood(server.iproto_port, selects, 50, ends))
    made, codes, others = answers(client, evaluate(MILD)), [], []

    def define(first, ends):
        one, at = connect(server), first
        while not ends.is_set():
            text = "box.schema.func.create('f%d', {body = 'function() return %d end'})" % (at, at)
            others.append(answers(one, evaluate(text)))
            others.append(answers(one, call("f%d" % at)))
            others.append(answers(one, evaluate("box.schema.func.drop('f%d')" % at)))
            at += 2
            time.sleep(0.01)

    def both(ends):
        request = b"".join(call("mild", key, sync=key) for key in range(100))
        threads = [threading.Thread(target=flood, args=(server.iproto_port, request, 50, ends), daemon=True)]
        threads += [threading.Thread(target=define, args=(first, ends), daemon=True) for first in (0, 1)]
        for thread in threads:
            thread.start()
        while not ends.is_set():
            codes.append(answers(client, call("mild", 6000)))
            time.sleep(0.01)
        for thread in threads:
            thread.join(20)
    p999, grown = pings(server, 8, both)
    did = "%.1f ms (%.1f beside SELECTs), +%d MB, %d answered, %d of others" % (
        p999, usual, grown // MB, len(codes), len(others))
    is_answered = len(codes) > 50 and set(codes) == {0} and len(others) > 30 and set(others) == {0}
    return did, made == 0 and p999 <= max(OTHER_MS, 6 * usual) and grown <= 300 * MB and is_answered
