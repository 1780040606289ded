"""Users (ACL): wrong passwords in floods, changes of rights while many clients run, beside Redis in the same run."""
import threading
import time

from fault import fault, pings

OTHER_MS = 30


def wrong_passwords(server, count=16):
    """Clients that try passwords in pipelines, and come back when they are closed."""
    request = b"*3\r\n$4\r\nAUTH\r\n$3\r\nbob\r\n$5\r\nwrong\r\n" * 500

    def one(ends):
        while not ends.is_set():
            try:
                client = server.client(timeout=1)
                while not ends.is_set():
                    client.socket.sendall(request)
                    client.socket.recv(1 << 20)
            except OSError:
                time.sleep(0.001)

    def all_of_them(ends):
        threads = [threading.Thread(target=one, args=(ends,), daemon=True) for _ in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)
    return all_of_them


@fault("16 clients try wrong passwords in pipelines for 3 s", "others' PING p99.9 no slower than beside Redis (or 30 ms), "
       "RSS +32 MB at most; one entry in ACL LOG for a user and a minute")
def many_wrong_passwords(bench):
    seen = []
    for server in bench.ladon("--io-threads", "1"), bench.redis():
        server.client()("ACL", "SETUSER", "bob", "on", ">right")
        slow, grown = pings(server, 3, wrong_passwords(server))
        entries = server.client()("ACL", "LOG", 100)
        seen.append((slow, grown >> 20, len(entries)))
    (slow, grown, entries), (slow_there, grown_there, _) = seen
    right = slow <= max(OTHER_MS, 1.5 * slow_there) and grown <= 32 and entries <= 2
    return "p99.9 %.1f ms (Redis %.1f), +%d MB (+%d), %d entries" % (slow, slow_there, grown, grown_there, entries), right


def busy_users(server, count):
    """Connections of bob that write all the time, while his rights change; returns the wrong answers."""
    wrong = []

    def run(ends):
        clients = [server.client() for _ in range(count)]
        for client in clients:
            client("AUTH", "bob", "pw")
        control, has_key = server.client(), True
        while not ends.is_set():
            has_key = not has_key
            control("ACL", "SETUSER", "bob", "resetkeys", *(["~key"] if has_key else []))
            for client in clients:
                client.send("SET", "key", "1")
            for client in clients:
                reply = client.reply()
                if reply != "OK" if has_key else "NOPERM" not in str(reply):
                    wrong.append(reply)
    return run, wrong


@fault("the rights of a user change again and again while 1,000 of its connections run",
       "each request after the change has the new rights; others' PING p99.9 no slower than beside Redis (or 30 ms)")
def changes_beside_clients(bench):
    seen = []
    for server in bench.ladon("--io-threads", "1"), bench.redis():
        server.client()("ACL", "SETUSER", "bob", "on", ">pw", "+@all", "~key")
        run, wrong = busy_users(server, 1000)
        slow, _ = pings(server, 4, run)
        seen.append((slow, len(wrong)))
    (slow, wrong), (slow_there, _) = seen
    right = slow <= max(OTHER_MS, 1.5 * slow_there) and not wrong
    return "p99.9 %.1f ms (Redis %.1f), %d wrong answers" % (slow, slow_there, wrong), right


@fault("AUTH with a password of 64 MB, ten times; SETUSER and requirepass with one of 1 MB",
       "refused at once; others' PING within 30 ms (Redis hashes them all)")
def long_passwords(bench):
    server = bench.ladon("--io-threads", "1")
    control = server.client()
    control("ACL", "SETUSER", "bob", "on", ">pw")
    request = b"*3\r\n$4\r\nAUTH\r\n$3\r\nbob\r\n$%d\r\n%s\r\n" % (64 << 20, b"x" * (64 << 20))

    def run(ends):
        client = server.client()
        for _ in range(10):
            client.socket.sendall(request)
            client.reply()
    slow, _ = pings(server, 3, run)
    rule = control.error("ACL", "SETUSER", "bob", ">" + "x" * (1 << 20))
    setting = control.error("CONFIG", "SET", "requirepass", "x" * (1 << 20))
    return "p99.9 %.1f ms; %r; %r" % (slow, rule[-60:], setting[-60:]), "too long" in rule and "at most" in setting and slow <= OTHER_MS
