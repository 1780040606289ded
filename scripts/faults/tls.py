"""TLS: what those who begin handshakes do to the others, beside Redis in the same run."""
import importlib
import os
import socket
import ssl
import subprocess
import time

from fault import fault

storm = importlib.import_module("tls-storm")

CONNECTIONS, SECONDS, ROUNDS = 10_000, 2, 3
# Below this, the other core's scheduler says more than the server.
FLOOR_MS, GROWN_KB = 5, 32 << 10


def stormed(bench, kind):
    storm.allow_open_files(CONNECTIONS)
    field, found = storm.Field(bench.ladon_path, "redis-server"), {}
    try:
        before = [target.rss_kb() for target in field.targets]
        for _ in range(ROUNDS):
            field.round(kind, SECONDS, CONNECTIONS, found)
    finally:
        field.stop()

    def p999(name):
        return [storm.quantile(waits, 0.999) for waits in (found[name].plain, found[name].tls)]

    def said(name, grown_kb):
        here = found[name]
        return "%s: %.1f and %.1f ms, newcomers %.0f ms, from elsewhere %.0f ms, +%d MB, %d/s" % (
            name, *p999(name), *(storm.quantile(found, 0.5) for found in (here.newcomers, here.others)), grown_kb >> 10,
            here.rate())
    grown = [found[target.server.name].rss_kb - before for target, before in zip(field.targets, before)]
    is_right = (all(here <= max(1.5 * calm, FLOOR_MS) for here, calm in zip(p999("ladon"), p999("control")))
                and grown[0] <= GROWN_KB)
    return "; ".join([said("ladon", grown[0]), said("redis", grown[1]),
                      "the control %.1f and %.1f ms" % tuple(p999("control"))]), is_right


RIGHT = ("p99.9 of PING on open connections, plain and with TLS, at most 1.5 times the control's (or %d ms), RSS +32 MB "
         "at most" % FLOOR_MS)


@fault("10,000 half-open handshakes that send nothing", RIGHT)
def silent(bench):
    return stormed(bench, "silent")


@fault("10,000 half-open handshakes that stop after their ClientHello", RIGHT)
def begun(bench):
    return stormed(bench, "begun")


@fault("10,000 half-open handshakes with 60 kB of a message that never ends", RIGHT)
def partial(bench):
    return stormed(bench, "partial")


@fault("four clients that do handshakes as fast as they can", RIGHT)
def whole(bench):
    return stormed(bench, "whole")


def sealed(bench):
    """A Ladon with a port for TLS, that port, and the folder of its certificates."""
    directory = bench.directory()
    storm.cost.make_certificates(storm.pathlib.Path(directory))
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    files = storm.cost.files(directory)
    return bench.ladon("--io-threads", "1", "--tls-port", str(port), *files), port, directory


@fault("CONFIG SET tls-cert-file to a FIFO, /dev/zero, a folder, a file of 1 TB", "each is refused within a second, nobody waits, and TLS goes on")
def odd_files(bench):
    server, port, directory = sealed(bench)
    fifo, long = os.path.join(directory, "fifo"), os.path.join(directory, "long")
    os.mkfifo(fifo)
    with open(long, "wb") as file:
        file.truncate(1 << 40)
    client, slowest, refused = server.client(timeout=5), 0, 0
    before = server.rss_bytes()
    for path in fifo, "/dev/zero", directory, long:
        for name in "tls-cert-file", "tls-key-file", "tls-ca-cert-file":
            began = time.monotonic()
            refused += "Unable to update TLS" in str(client.error("CONFIG", "SET", name, path))
            slowest = max(slowest, time.monotonic() - began)
    grown = server.rss_bytes() - before
    context = ssl.create_default_context(cafile=os.path.join(directory, "ca.crt"))
    with context.wrap_socket(socket.create_connection(("127.0.0.1", port)), server_hostname="localhost") as other:
        other.sendall(b"PING\r\n")
        answer = other.recv(100)
    right = refused == 12 and slowest < 1 and answer == b"+PONG\r\n" and grown < 16 << 20
    return "%d of 12 refused, the slowest after %.0f ms, +%d MB, then %r" % (refused, slowest * 1000, grown >> 20, answer), right


@fault("ladon ping to a server with TLS: with the settings, --cacert, --insecure, without trust, with a wrong name", "PONG three times, then refused twice")
def pings(bench):
    _, port, directory = sealed(bench)
    ca, settings = os.path.join(directory, "ca.crt"), ["--port", "0", "--tls-port", str(port)]
    own = [*settings, *storm.cost.files(directory)]
    tries = [own, [*settings, "--tls-auth-clients", "no", "--tls", "--cacert", ca],
             [*settings, "--tls-auth-clients", "no", "--tls", "--insecure"],
             [*settings, "--tls-auth-clients", "no", "--tls"],
             [*settings, "--tls-auth-clients", "no", "--tls", "--cacert", ca, "--sni", "other.test"]]
    told = []
    for words in tries:
        run = subprocess.run([bench.ladon_path, "ping", *words], capture_output=True, text=True, timeout=20)
        told.append(run.stdout.strip() or run.stderr.strip()[-120:])
    is_right = told[:3] == ["PONG"] * 3 and all("certificate" in text for text in told[3:])
    return "; ".join(told), is_right
