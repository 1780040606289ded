"""A program written for Tarantool inside of the server, and clients of it that mean it ill."""
import os
import shutil
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import iproto  # noqa: E402
from fault import Started, fault, free_port, pings  # noqa: E402

PASSWORD = "secret"
OTHER_MS, MB = 30, 1 << 20

PROGRAM = """
box.cfg{listen = '127.0.0.1:' .. arg[1], log_level = 1}
box.schema.user.passwd('admin', 'secret')
local fiber = require('fiber')
local s = box.schema.space.create('s', {if_not_exists = true})
s:create_index('pk', {if_not_exists = true})
function forever() while true do end end
function stubborn() while true do pcall(forever) end end
function bomb() local t = {} while true do t[#t + 1] = string.rep('x', 100000) .. #t end end
function text() return string.rep('x', 100000) end
function one() return s:replace{1, 'x'} end
function sleepers(count)
    local made = 0
    for _ = 1, count do
        if not pcall(fiber.create, fiber.sleep, 1000) then break end
        made = made + 1
    end
    return made
end
if arg[2] then
    local server = require('http.server').new('127.0.0.1', tonumber(arg[2]))
    server:route({path = '/one'}, function(request) return request:render{json = one()} end)
    server:route({path = '/text'}, function(request) return request:render{text = text()} end)
    server:start()
end
"""


def run(bench, *arguments, settings=()):
    """The program in a Ladon: .port is RESP's, .iproto_port the program's, .http that of its HTTP server."""
    server = Started(bench.directory(), True)
    server.http = free_port()
    path = os.path.join(server.directory, "init.lua")
    with open(path, "w") as file:
        file.write(PROGRAM)
    command = [bench.ladon_path, "tarantool", "--resp", "127.0.0.1:%d" % server.port, *settings, path,
               str(server.iproto_port), str(server.http), *arguments]
    return bench.started(server, command, cwd=server.directory)


def connect(server, timeout=60):
    end = time.monotonic() + 20
    while True:
        try:
            client = iproto.Iproto(server.iproto_port, PASSWORD)
            client.socket.settimeout(timeout)
            return client
        except (OSError, EOFError, ValueError):
            # It listens before the password is set.
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


def call(name, *arguments, sync=1):
    return iproto.packet(iproto.CALL, {iproto.FUNCTION_NAME: name, iproto.TUPLE: list(arguments)}, sync=sync)


def evaluate(text, *arguments):
    return iproto.packet(iproto.EVAL, {iproto.EXPRESSION: text, iproto.TUPLE: list(arguments)})


def answers(client, packet):
    """The code of the reply: 0 without an error."""
    client.socket.sendall(packet)
    return iproto.code_of(client.any_reply())


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


def flood(port, request, connections, ends, greeting=True):
    """Connections that send a request again and again, and read nothing."""
    sockets = []
    for _ in range(connections):
        one = socket.create_connection(("127.0.0.1", port), timeout=20)
        if greeting:
            one.recv(128, socket.MSG_WAITALL)
        one.setblocking(False)
        sockets.append(one)
    while not ends.is_set():
        for one in sockets:
            try:
                one.send(request)
            except (BlockingIOError, OSError):
                pass
        time.sleep(0.001)
    for one in sockets:
        one.close()


GRANT = "box.schema.user.grant('guest', 'execute,read,write', 'universe', nil, {if_not_exists = true})"


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
