"""The web console: what its clients can do to those of Redis' protocol."""
import json
import socket
import threading
import time

from fault import fault, free_port, pings

SECONDS, OTHER_MS, GROWN_BYTES = 4, 30, 48 << 20
RIGHT = ("p99.9 of another client's PING at most %d ms, RSS +%d MB at most; then a login still works"
         % (OTHER_MS, GROWN_BYTES >> 20))


def request(method, path, body="", cookie="", length=None):
    head = "%s /console/%s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" % (method, path)
    head += "Content-Length: %d\r\n" % (len(body) if length is None else length)
    return (head + ("Cookie: %s\r\n" % cookie if cookie else "") + "\r\n" + body).encode()


def connect(port, timeout=20):
    return socket.create_connection(("127.0.0.1", port), timeout=timeout)


def exchange(port, message, timeout=20):
    """Status, head and body of the answer to one request."""
    with connect(port, timeout) as one:
        one.sendall(message)
        answer = b""
        while b"\r\n\r\n" not in answer:
            part = one.recv(65536)
            if not part:
                raise EOFError("closed after %r" % answer[:100])
            answer += part
        head, body = answer.split(b"\r\n\r\n", 1)
        lines = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length: ")]
        length = int(lines[0].split(b" ")[1]) if lines else 0
        while len(body) < length:
            part = one.recv(65536)
            if not part:
                break
            body += part
    return int(head.split(b" ")[1]), head.decode(), body


def login_request():
    return request("POST", "api/login", json.dumps({"name": "default", "password": ""}))


def log_in(port):
    status, head, body = exchange(port, login_request())
    if status != 200:
        raise RuntimeError("login: %d %s" % (status, body[:100]))
    line = next(line for line in head.split("\r\n") if line.lower().startswith("set-cookie: "))
    return line.split(": ")[1].split(";")[0]


def repeated(action):
    """Does it again and again, until the end; what a server refuses is no reason to stop."""
    def run(ends):
        while not ends.is_set():
            try:
                action()
            except (OSError, EOFError):
                time.sleep(0.001)
    return run


def many(run, count):
    def all_of_them(ends):
        threads = [threading.Thread(target=run, args=(ends,), daemon=True) for _ in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
    return all_of_them


def held(port, message, count):
    """Connections that have sent this, and read nothing."""
    kept = []
    for _ in range(count):
        try:
            kept.append(connect(port, 5))
            kept[-1].sendall(message)
        except OSError:
            pass
    return kept


def abused(bench, abuse, fill=None):
    """What `abuse(port, cookie)`, a function of the end, does to another client's PING."""
    port = free_port()
    server = bench.ladon("--io-threads", "1", "--gate", "none", "--http-admin", "127.0.0.1:%d" % port)
    if fill:
        fill(server.client())
    cookie = log_in(port)
    slow, grown = pings(server, SECONDS, abuse(port, cookie))
    time.sleep(0.5)
    log_in(port)
    return "p99.9 %.1f ms, +%d MB" % (slow, grown >> 20), slow <= OTHER_MS and grown <= GROWN_BYTES


def holding(message, count):
    def abuse(port, cookie):
        def run(ends):
            kept = held(port, message(cookie), count)
            ends.wait()
            for one in kept:
                one.close()
        return run
    return abuse


@fault("2,000 half logins of the console", RIGHT)
def half_logins(bench):
    return abused(bench, holding(lambda cookie: request("POST", "api/login", '{"name":', length=4000), 2000))


@fault("2,000 half heads at the console's port", RIGHT)
def half_heads(bench):
    return abused(bench, holding(lambda cookie: b"GET /console/ HTTP/1.1\r\nX: " + b"a" * 2000, 2000))


@fault("500 live streams of the console that nobody reads", RIGHT)
def unread_streams(bench):
    return abused(bench, holding(lambda cookie: request("GET", "api/live", cookie=cookie), 500))


@fault("wrong passwords at the console, 32 clients", RIGHT)
def wrong_passwords(bench):
    wrong = request("POST", "api/login", json.dumps({"name": "default", "password": "wrong"}))
    def abuse(port, cookie):
        return many(repeated(lambda: exchange(port, wrong, 2)), 32)
    return abused(bench, abuse)


@fault("bodies of 8 MB to the console, 8 clients", RIGHT)
def long_bodies(bench):
    body = json.dumps({"commands": [["SET", "k", "x" * (8 << 20)]]})
    def abuse(port, cookie):
        message = request("POST", "api/command", body, cookie)
        return many(repeated(lambda: exchange(port, message, 5)), 8)
    return abused(bench, abuse)


@fault("the tree of 300,000 keys and values of 64 MB, read by the console again and again, 8 clients", RIGHT)
def large_trees(bench):
    commands = [["SCAN", "0", "MATCH", "*", "COUNT", "10000"]] * 30 + [["GET", "long"]]
    message = json.dumps({"commands": commands})
    def fill(client):
        client("SET", "long", b"x" * (64 << 20))
        for first in range(0, 300_000, 1000):
            client("MSET", *(word for n in range(first, first + 1000) for word in ("a:%d:%d" % (n % 100, n), "x")))
    def abuse(port, cookie):
        return many(repeated(lambda: exchange(port, request("POST", "api/command", message, cookie), 10)), 8)
    return abused(bench, abuse, fill)
