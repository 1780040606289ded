"""What the families about programs share: a program in a Ladon, its clients, and servers that it asks."""
import os
import socket
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import iproto  # noqa: E402
from fault import Started, free_port, pings  # noqa: E402

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


def endless_server(pieces, ends):
    """A server of HTTP that sends the first piece and then the second one for ever; its port."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve(one):
        try:
            one.recv(4096)
            one.sendall(pieces[0])
            while not ends.is_set():
                one.sendall(pieces[1])
        except OSError:
            pass

    def accept():
        while not ends.is_set():
            one, _ = listener.accept()
            threading.Thread(target=serve, args=(one,), daemon=True).start()
    threading.Thread(target=accept, daemon=True).start()
    return listener.getsockname()[1]


def beside(server, seconds, text):
    """Evaluates a text while others PING and one more client CALLs; what they saw."""
    codes, meanwhile = [], []

    def both(ends):
        thread = threading.Thread(target=lambda: codes.append(answers(connect(server), evaluate(text))), daemon=True)
        thread.start()
        other = connect(server)
        while not ends.is_set():
            meanwhile.append(answers(other, call("one")))
            time.sleep(0.05)
        thread.join(60)
    p999, grown = pings(server, seconds, both)
    did = "%.1f ms, +%d MB, code %s, %d of %d CALLs" % (p999, grown // MB, codes, meanwhile.count(0), len(meanwhile))
    return did, p999, grown, codes == [0] and meanwhile and not any(meanwhile)
