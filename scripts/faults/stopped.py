"""Processes that stop, and disks that are full, over HTTP, memcached's protocol and the console."""
import os
import signal
import socket
import subprocess
import sys
import threading
import time

from console import exchange, log_in, request
from fault import fault, free_port, pings

OTHER_MS, MB = 30, 1 << 20
CLIENT = """
import socket, sys, time
one = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
one.sendall(eval(sys.argv[2]))
print("sent", flush=True)
time.sleep(600)
"""


def served(bench, *arguments, directory=None):
    """A Ladon that speaks all of them: .http, .memcached, .console are ports."""
    ports = [free_port() for _ in range(3)]
    names = ["--http", "--memcached", "--http-admin"]
    listens = [word for name, port in zip(names, ports) for word in (name, "127.0.0.1:%d" % port)]
    server = bench.ladon("--io-threads", "1", *listens, *arguments, directory=directory)
    server.http, server.memcached, server.console = ports
    return server


def post(port, body):
    """Status and body of a command over HTTP."""
    head = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body)
    status, _, answer = exchange(port, head.encode() + body)
    return status, answer


def line_of(port, message, timeout=20):
    """The first line of a reply of memcached's protocol."""
    with socket.create_connection(("127.0.0.1", port), timeout=timeout) as one:
        one.sendall(message)
        return one.makefile("rb").readline().rstrip().decode()


@fault("clients that are stopped (SIGSTOP) amid requests and replies of 64 MB, over HTTP and memcached",
       "others' PING p99.9 at most %d ms, RSS +300 MB at most; all is answered" % OTHER_MS)
def stopped_clients(bench):
    server = served(bench, "--gate", "none")
    server.client()("SET", "long", b"x" * (64 * MB))
    messages = [
        (server.http, 'b"GET /get/long HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n" * 4'),
        (server.http, 'b"PUT /v1/keys/h HTTP/1.1\\r\\nHost: x\\r\\nContent-Length: 64000000\\r\\n\\r\\n" + b"x" * 1000000'),
        (server.memcached, 'b"get long\\r\\n" * 4'),
        (server.memcached, 'b"set m 0 0 64000000\\r\\n" + b"x" * 1000000'),
    ]
    clients = []
    for port, message in messages * 2:
        command = [sys.executable, "-c", CLIENT, str(port), message]
        clients.append(subprocess.Popen(command, stdout=subprocess.PIPE))
        clients[-1].stdout.readline()
        clients[-1].send_signal(signal.SIGSTOP)
    try:
        slow, grown = pings(server, 5, lambda ends: None)
        answers = post(server.http, b'["PING"]')[1], line_of(server.memcached, b"version\r\n")
    finally:
        for client in clients:
            client.kill()
            client.wait()
    right = slow <= OTHER_MS and grown <= 300 * MB and b"PONG" in answers[0] and answers[1].startswith("VERSION")
    return "p99.9 %.1f ms, +%d MB; %s, %s" % (slow, grown // MB, answers[0].decode(), answers[1]), right


@fault("the server is stopped for 3 s amid requests over HTTP, memcached and the console, then goes on",
       "each is answered, in order")
def stopped_server(bench):
    server = served(bench)
    cookie = log_in(server.console)
    sent = []
    for port, message in [
        (server.http, b"GET /set/h/1 HTTP/1.1\r\nHost: x\r\n\r\nGET /get/h HTTP/1.1\r\nHost: x\r\n"),
        (server.memcached, b"set m 0 0 2\r\nh"),
        (server.console, request("POST", "api/command", '{"commands":[["SET","c","1"]]}', cookie)[:-5]),
    ]:
        sent.append(socket.create_connection(("127.0.0.1", port), timeout=10))
        sent[-1].sendall(message)
    time.sleep(0.2)
    server.process.send_signal(signal.SIGSTOP)
    for one, rest in zip(sent, [b"\r\n", b"i\r\nget m\r\n", b'1"]]}']):
        one.sendall(rest)
    time.sleep(3)
    server.process.send_signal(signal.SIGCONT)
    ends = [b'{"result":"1"}', b"END\r\n", b"]"]
    answers = []
    for one, end in zip(sent, ends):
        answer = b""
        while not (answer.count(b"HTTP/1.1") == 1 + (end == ends[0]) or end == ends[1]) or end not in answer:
            part = one.recv(65536)
            if not part:
                break
            answer += part
        answers.append(answer)
    right = (ends[0] in answers[0] and answers[1] == b"STORED\r\nVALUE m 0 2\r\nhi\r\nEND\r\n"
             and b" 200 " in answers[2].split(b"\r\n")[0])
    return "; ".join(answer.decode()[-60:].replace("\r\n", " ") for answer in answers), right


@fault("a disk of 48 MB (tmpfs) becomes full by writes over HTTP and memcached, then has space again",
       "clear errors (503, SERVER_ERROR MISCONF), reads go on; what was acknowledged is there after kill -9; writes go on")
def full_disk(bench):
    directory = bench.directory()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=48m", "tmpfs", directory], capture_output=True).returncode:
        return "not tried: no right to mount", True
    try:
        return on_full_disk(bench, directory)
    finally:
        bench.stop_all()
        subprocess.run(["umount", "-l", directory], check=False)


def on_full_disk(bench, directory):
    ballast = os.path.join(directory, "ballast")
    with open(ballast, "wb") as file:
        file.write(b"x" * (16 * MB))
    server = served(bench, "--gate", "fsync", "--save", "", directory=directory)
    value, written, refused = "v" * 200_000, [], []
    for number in range(400):
        status, answer = post(server.http, ('["SET","h%d","%s"]' % (number, value)).encode())
        written += ["h%d" % number] if status == 200 else []
        line = line_of(server.memcached, ("set m%d 7 0 %d\r\n%s\r\n" % (number, len(value), value)).encode())
        written += ["m%d" % number] if line == "STORED" else []
        if status != 200 and line != "STORED":
            refused = [status, answer.decode(), line]
            break
    cookie = log_in(server.console)
    _, _, body = exchange(server.console, request("POST", "api/command", '{"commands":[["SET","c","1"]]}', cookie))
    refused.append(body.decode())
    reads = line_of(server.memcached, b"get m0\r\n").startswith("VALUE m0 7 ")
    os.unlink(ballast)
    went_on, end = False, time.monotonic() + 20
    while not went_on and time.monotonic() < end:
        went_on = (post(server.http, b'["SET","after","1"]')[0] == 200
                   and line_of(server.memcached, b"set after2 0 0 1\r\nx\r\n") == "STORED")
        time.sleep(0.2)
    server.kill()
    server = served(bench, "--gate", "fsync", directory=directory)
    client = server.client()
    lost = [key for key in written if client("STRLEN", key) != len(value)]
    did = "%d written, then %s; reads %s; went on: %s; lost: %s" % (
        len(written), [str(what)[:90] for what in refused], reads, went_on, lost or "nothing")
    clear = len(refused) == 4 and refused[0] == 503 and "SERVER_ERROR" in refused[2] and "MISCONF" in refused[3]
    return did, bool(written) and clear and reads and went_on and not lost


def http_set(one, name, number):
    one.sendall(b"GET /set/%s/%d HTTP/1.1\r\nHost: x\r\n\r\n" % (name, number))
    answer = b""
    while not answer.endswith(b'{"result":"OK"}'):
        part = one.recv(4096)
        if not part:
            raise EOFError("closed")
        answer += part


def memcached_set(one, name, number):
    one.sendall(b"set %s 9 0 %d\r\n%d\r\n" % (name, len(str(number)), number))
    answer = b""
    while answer != b"STORED\r\n":
        part = one.recv(4096)
        if not part:
            raise EOFError("closed")
        answer += part


def write_until_killed(port, store, name, asked, acknowledged):
    """Counts one key up until the server is gone; notes what was asked for and what was acknowledged."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=20) as one:
            while True:
                asked[name] = asked.get(name, 0) + 1
                store(one, name, asked[name])
                acknowledged[name] = asked[name]
    except (OSError, EOFError):
        pass


@fault("six rounds of kill -9 amid writes over HTTP and memcached, 8 clients, gate fsync",
       "every key has what was acknowledged last, or what was asked for after that; flags are there")
def killed_amid_writes(bench):
    directory, asked, acknowledged, wrong = bench.directory(), {}, {}, []
    for turn in range(6):
        server = served(bench, "--gate", "fsync", directory=directory)
        client = server.client()
        for name, number in acknowledged.items():
            found = int(client("GET", name) or 0)
            if not number <= found <= asked[name]:
                wrong.append("%s: %d, acknowledged %d" % (name.decode(), found, number))
            if name.startswith(b"m") and not line_of(server.memcached, b"get %s\r\n" % name).startswith("VALUE %s 9 " % name.decode()):
                wrong.append("%s: its flags" % name.decode())
            # What was asked for, and perhaps done, is what the next round begins with.
            asked[name] = acknowledged[name] = found
        writers = []
        for number in range(8):
            is_http = number % 2 == 0
            of = (server.http, http_set, b"h%d" % number) if is_http else (server.memcached, memcached_set, b"m%d" % number)
            writers.append(threading.Thread(target=write_until_killed, args=(*of, asked, acknowledged), daemon=True))
            writers[-1].start()
        time.sleep(0.3 + 0.17 * turn)
        server.kill()
        for one in writers:
            one.join(20)
    return "%d writes acknowledged; wrong: %s" % (sum(acknowledged.values()), wrong or "nothing"), (
        len(acknowledged) == 8 and min(acknowledged.values()) > 10 and not wrong)
