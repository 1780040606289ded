"""The port for operations (--http-admin): what its clients can do to those of the data."""
import socket
import time

from fault import fault, free_port, pings

SECONDS, OTHER_MS, GROWN_BYTES = 4, 30, 32 << 20


def attacked(bench, once, pause_s=0):
    """A server whose port for operations gets `once(port, open sockets)` again and again."""
    port = free_port()
    server = bench.ladon("--io-threads", "1", "--http-admin", "127.0.0.1:%d" % port)
    count = 0

    def run(ends):
        nonlocal count
        sockets = []
        while not ends.is_set():
            try:
                once(port, sockets)
                count += 1
            except OSError:
                pass
            time.sleep(pause_s)
            while len(sockets) > 512:
                sockets.pop(0).close()
        for left in sockets:
            left.close()
    slow, grown = pings(server, SECONDS, run)
    began = time.monotonic()
    answer = ask(port)
    scrape_ms = 1000 * (time.monotonic() - began)
    right = slow <= OTHER_MS and grown <= GROWN_BYTES and b"200 OK" in answer and count > 0
    return "%d of them: p99.9 %.1f ms, +%d MB, a scrape afterwards %.0f ms" % (count, slow, grown >> 20, scrape_ms), right


def ask(port):
    with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
        client.sendall(b"GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        answer = b""
        while part := client.recv(1 << 16):
            answer += part
        return answer


RIGHT = "others' PING p99.9 at most 30 ms, RSS +32 MB at most, and a scrape is answered"


@fault("a scrape every 10 ms", RIGHT)
def scrapes(bench):
    return attacked(bench, lambda port, _: ask(port), 0.01)


@fault("half requests by the thousand, that are left open", RIGHT)
def half_requests(bench):
    def half(port, sockets):
        client = socket.create_connection(("127.0.0.1", port), timeout=5)
        sockets.append(client)
        client.sendall(b"GET /metrics HTTP/1.1\r\nHo")
    return attacked(bench, half)


@fault("clients that ask for the metrics and never read, 100 a second", RIGHT)
def never_read(bench):
    def asks(port, sockets):
        client = socket.create_connection(("127.0.0.1", port), timeout=5)
        sockets.append(client)
        client.sendall(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n")
    return attacked(bench, asks, 0.01)


@fault("20 kB that are no HTTP, again and again", RIGHT)
def garbage(bench):
    def sends(port, _):
        with socket.create_connection(("127.0.0.1", port), timeout=5) as client:
            client.sendall(bytes(range(256)) * 80)
    return attacked(bench, sends)
