"""A program written for Tarantool inside of the server, and clients of it that mean it ill."""
import os
import shutil
import socket
import subprocess
import threading
import time

from fault import fault, free_port, pings
from program_bench import GRANT, MB, OTHER_MS, answers, beside, call, connect, endless_server, evaluate, flood, run


@fault("50 clients CALL a function that never ends and catches all errors; others meanwhile; LADON.FIBER KILL of each",
       "others' PING p99.9 at most %d ms; another CALL is answered at last" % OTHER_MS)
def forever(bench):
    server = run(bench)
    clients = [connect(server) for _ in range(50)]
    for client in clients:
        client.socket.sendall(call("stubborn"))
    time.sleep(0.3)
    p999, grown = pings(server, 3, lambda ends: None)
    control, ended = server.client(), set()
    end = time.monotonic() + 60
    while len(ended) < 50 and time.monotonic() < end:
        running = control("LADON.FIBER", "RUNNING")
        if running:
            control("LADON.FIBER", "KILL", running[0])
            ended.add(running[0])
        time.sleep(0.01)
    code = answers(connect(server), call("one"))
    return "%.1f ms, +%d MB, %d were ended, then %d" % (p999, grown // MB, len(ended), code), p999 <= OTHER_MS and code == 0


@fault("a function that takes all memory, three times; a CALL and a PING after each",
       "each is an error, and the others are answered; RSS at most 2.5 GB")
def bomb(bench):
    server = run(bench)
    client, codes, most = connect(server), [], 0
    for _ in range(3):
        codes.append(answers(client, call("bomb")))
        most = max(most, server.rss_bytes())
        codes.append(answers(client, call("one")))
        server.client()("PING")
    did = "codes %s, RSS %d MB" % (codes, most // MB)
    return did, all(codes[0::2]) and not any(codes[1::2]) and most <= 2500 * MB


@fault("100,000 fibers that sleep", "as many as there is room for; CALLs go on; a fiber at most 2 times Tarantool's memory")
def sleepers(bench):
    server = run(bench)
    client, before = connect(server, 120), server.rss_bytes()
    code = answers(client, evaluate("made = sleepers(100000)"))
    grown = server.rss_bytes() - before
    made = -1
    for count in range(1000, 100001, 1000):
        if answers(client, evaluate("assert(made >= ...)", count)):
            break
        made = count
    each = grown / max(made, 1)
    theirs = tarantools_fiber_bytes(bench, max(made, 1000))
    later = answers(client, call("one"))
    did = "%d fibers of %d bytes (Tarantool's: %s), then %d" % (made, each, theirs and "%d" % theirs, later)
    return did, code == 0 and later == 0 and (theirs is None or each <= 2 * theirs)


def tarantools_fiber_bytes(bench, count):
    """Memory of one of so many fibers that sleep, in a real Tarantool; None without one."""
    if not shutil.which("tarantool"):
        return None
    text = """
        local fiber = require('fiber')
        local function rss()
            local file = io.open('/proc/self/smaps_rollup') local text = file:read('*a') file:close()
            return tonumber(text:match('Rss:%%s+(%%d+)')) * 1024
        end
        local before = rss()
        for _ = 1, %d do fiber.create(fiber.sleep, 1000) end
        print((rss() - before) / %d) os.exit(0)
    """ % (count, count)
    done = subprocess.run(["tarantool", "-e", text], capture_output=True, text=True, cwd=bench.directory())
    return float(done.stdout) if done.returncode == 0 else None


@fault("endless CALLs whose answers (100 kB each) nobody reads, 50 connections, client-reply-backlog 64mb",
       "others' PING p99.9 at most %d ms, RSS +200 MB at most; a CALL is answered meanwhile" % OTHER_MS)
def unread_calls(bench):
    server = run(bench, settings=("--client-reply-backlog", "64mb"))
    client = connect(server)
    answers(client, evaluate(GRANT))
    codes = []

    def attack(ends):
        flood(server.iproto_port, call("text") * 20, 50, ends)

    def both(ends):
        thread = threading.Thread(target=attack, args=(ends,), daemon=True)
        thread.start()
        time.sleep(1)
        codes.append(answers(client, call("one")))
        thread.join()
    p999, grown = pings(server, 5, both)
    did = "%.1f ms, +%d MB, codes %s" % (p999, grown // MB, codes)
    return did, p999 <= OTHER_MS and grown <= 200 * MB and codes == [0]


@fault("the program's http.server: 900 half requests, and pipelines whose answers nobody reads, 20 connections",
       "others' PING p99.9 at most %d ms, RSS +400 MB at most; a request is answered meanwhile" % OTHER_MS)
def http(bench):
    server = run(bench)
    connect(server)
    halves, seen = [], []

    def both(ends):
        for _ in range(900):
            one = socket.create_connection(("127.0.0.1", server.http), timeout=20)
            one.sendall(b"GET /one HTTP/1.1\r\nHost: x\r\nX-Long: " + b"a" * 2000)
            halves.append(one)
        request = b"GET /text HTTP/1.1\r\nHost: x\r\n\r\n" * 20
        thread = threading.Thread(target=flood, args=(server.http, request, 20, ends, False), daemon=True)
        thread.start()
        time.sleep(1)
        with socket.create_connection(("127.0.0.1", server.http), timeout=10) as one:
            one.sendall(b"GET /one HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            seen.append(one.makefile("rb").readline().decode().strip())
        thread.join()
    p999, grown = pings(server, 6, both)
    did = "%.1f ms, +%d MB, %s" % (p999, grown // MB, seen)
    return did, p999 <= OTHER_MS and grown <= 400 * MB and seen[:1] == ["HTTP/1.1 200 Ok"]


@fault("2,000 EVALs of garbled texts and arguments", "each is answered; CALLs go on")
def garbled(bench):
    server = run(bench)
    client = connect(server)
    source = os.urandom(2000)
    count = 0
    for number in range(2000):
        cut = source[number % 1000:number % 1000 + number % 90]
        text = "return " + "".join(chr(33 + byte % 90) for byte in cut)
        answers(client, evaluate(text, [number] * (number % 50), {"k": cut.hex()}))
        count += 1
    later = answers(client, call("one"))
    return "%d answered, then %d" % (count, later), count == 2000 and later == 0


FETCH = """
local client = require('http.client').new()
local is_done, response = pcall(client.get, client, 'http://127.0.0.1:%d/', {timeout = 4})
assert(not is_done or response.status ~= 200)
"""


@fault("http.client asks servers whose head, body in pieces, or body of a terabyte never ends",
       "each is an error within its timeout; others' PING p99.9 at most %d ms, RSS +800 MB at most" % OTHER_MS)
def endless_answers(bench):
    did, is_right = [], True
    for pieces in [(b"HTTP/1.1 200 OK\r\n", b"X-Header: " + b"x" * 1000 + b"\r\n"),
                   (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"8000\r\n" + b"x" * 32768 + b"\r\n"),
                   (b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\n", b"x" * 65536)]:
        ends, server = threading.Event(), run(bench)
        port = endless_server(pieces, ends)
        said, p999, grown, is_done = beside(server, 5, FETCH % port)
        ends.set()
        server.kill()
        did.append(said)
        is_right &= bool(is_done) and p999 <= OTHER_MS and grown <= 800 * MB
    return "; ".join(did), is_right


CHILDREN = """
local popen, fiber = require('popen'), require('fiber')
local deaf = popen.new({'/bin/sleep', '60'}, {stdin = popen.opts.PIPE})
local loud = popen.new({'/usr/bin/yes'}, {stdout = popen.opts.PIPE})
local is_written, why = deaf:write(string.rep('x', 10000000), {timeout = 2})
assert(is_written == nil, 'a child that never reads has taken it all')
local read = 0
local stop = fiber.time() + 1
while fiber.time() < stop do read = read + #loud:read() end
assert(read > 0)
deaf:close() loud:close()
"""


@fault("popen: a child that never reads, and one that writes without end",
       "write ends with its timeout; others' PING p99.9 at most %d ms, RSS +300 MB at most" % OTHER_MS)
def children(bench):
    did, p999, grown, is_done = beside(run(bench), 4, CHILDREN)
    return did, bool(is_done) and p999 <= OTHER_MS and grown <= 300 * MB


FILES = """
local fio = require('fio')
local zero = fio.open('/dev/zero', {'O_RDONLY'})
local ok, text = pcall(zero.read, zero, 1e12)
assert(not ok or text == nil or #text <= 64 * 1024 * 1024, 'too much')
zero:close()
local sparse = fio.open('sparse', {'O_RDWR', 'O_CREAT'}, tonumber('644', 8))
sparse:truncate(8 * 1024 * 1024 * 1024)
ok, text = pcall(sparse.read, sparse)
assert(not ok or text == nil or #text < 4e9, 'too much')
sparse:close()
"""


@fault("fio: reads a terabyte of /dev/zero, and all of a file of 8 GiB",
       "each is bounded or an error; others' PING p99.9 at most %d ms, RSS +2500 MB at most" % OTHER_MS)
def huge_files(bench):
    did, p999, grown, is_done = beside(run(bench), 4, FILES)
    return did, bool(is_done) and p999 <= OTHER_MS and grown <= 2500 * MB


@fault("console.listen: 50 connections that send half lines without end",
       "others' PING p99.9 at most %d ms, RSS +300 MB at most; a console answers meanwhile" % OTHER_MS)
def half_lines(bench):
    server = run(bench)
    client, port, seen = connect(server), free_port(), []
    answers(client, evaluate("require('console').listen('127.0.0.1:%d')" % port))

    def both(ends):
        thread = threading.Thread(target=flood, args=(port, b"x = 1 " * 2000, 50, ends), daemon=True)
        thread.start()
        time.sleep(1)
        with socket.create_connection(("127.0.0.1", port), timeout=10) as one:
            one.recv(128)
            one.sendall(b"1 + 1\n")
            seen.append(one.recv(100))
        thread.join()
    p999, grown = pings(server, 5, both)
    did = "%.1f ms, +%d MB, %s" % (p999, grown // MB, seen)
    return did, p999 <= OTHER_MS and grown <= 300 * MB and seen == [b"---\n- 2\n...\n"]


HOSTILE = """
local bodies = {
    [[function(k) box.space.held:replace{k, %d} for i = 1, 20000000 do end return 1 end]],
    [[function(k) box.space.held:replace{k, %d} local t = 'x' for i = 1, 24 do pcall(function() t = t .. t end) end return #t end]],
    [[function(k) box.space.held:replace{k, %d} return (('a'):rep(60)):find('.-.-.-.-.-b') end]],
    [[function(k) box.space.held:replace{k, %d} local t = {} for i = 1, 200000 do t[i] = -i end table.sort(t) return t[1] end]],
    [[function(k) for i = 1, 5000 do box.space.held:replace{i, k, %d} end return #box.space.held:select() end]],
    [[function(k) box.space.held:replace{k, %d} for i = 1, 1000 do pcall(error, 'x') helper_that_is_not_there = i end return 1 end]],
}
box.schema.space.create('held'):create_index('pk')
box.schema.func.create('mild', {body = 'function(k) return box.space.held:replace{k, 0} end'})
for i = 1, 240 do
    box.schema.func.create('hostile' .. i, {body = bodies[i %% #bodies + 1]:format(i)})
end
"""


@fault("240 persistent functions that loop, double texts, match, sort and write without end, called by 8 connections",
       "others' PING p99.9 at most %d ms, RSS +500 MB at most; a mild one on the same space is answered meanwhile" % OTHER_MS)
def hostile_functions(bench):
    server = run(bench)
    client, codes = connect(server), []
    answers(client, evaluate(GRANT))
    made = answers(client, evaluate(HOSTILE.replace("%%", "%")))

    def attack(first):
        one = connect(server)
        for at in range(first, 241, 8):
            try:
                answers(one, call("hostile%d" % at, at))
            except (EOFError, OSError):
                # The server is at its end.
                return

    def both(ends):
        threads = [threading.Thread(target=attack, args=(first,), daemon=True) for first in range(1, 9)]
        for thread in threads:
            thread.start()
        while not ends.is_set():
            codes.append(answers(client, call("mild", 6000)))
    p999, grown = pings(server, 5, both)
    did = "%.1f ms, +%d MB, %d answered" % (p999, grown // MB, len(codes))
    return did, made == 0 and p999 <= OTHER_MS and grown <= 500 * MB and len(codes) > 100 and set(codes) == {0}
