#!/usr/bin/env python3
"""What TLS costs: the server's CPU per operation, Ladon and redis-server, plain and with TLS.

  scripts/tls-cost.py target/release/ladon [--rounds 5] [--seconds 4] [--redis redis-server]
  scripts/tls-cost.py target/release/ladon --other OTHER      a second build in redis-server's place

All servers run at the same time and are measured in turns (A B C D A B C D ...), with one IO thread
each and without syncing. CPU is what /proc says of the process, user and system. A cell is the
median over the rounds in microseconds per operation, then the median of its ratio to Ladon's plain
one in the same round. Needs redis-benchmark with TLS, redis-server with TLS, and openssl.
"""

import argparse
import os
import pathlib
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

CURVE = "ec_paramgen_curve:prime256v1"
TICKS = os.sysconf("SC_CLK_TCK")


def make_certificates(directory):
    """An authority, and a certificate for localhost."""

    def openssl(*words):
        subprocess.run(["openssl", *words], cwd=directory, check=True, capture_output=True)

    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", CURVE, "-nodes", "-keyout", "ca.key", "-out", "ca.crt",
            "-days", "30", "-subj", "/CN=test authority")
    openssl("req", "-newkey", "ec", "-pkeyopt", CURVE, "-nodes", "-keyout", "server.key", "-out", "server.csr",
            "-subj", "/CN=localhost")
    (directory / "names").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
    openssl("x509", "-req", "-in", "server.csr", "-CA", "ca.crt", "-CAkey", "ca.key",
            "-CAcreateserial", "-out", "server.crt", "-days", "30", "-extfile", "names")


def files(directory):
    return ["--tls-cert-file", f"{directory}/server.crt", "--tls-key-file",
            f"{directory}/server.key", "--tls-ca-cert-file", f"{directory}/ca.crt",
            "--tls-auth-clients", "no"]


class Server:
    """A process, and its plain and its TLS port."""

    def __init__(self, name, command, port):
        self.name, self.port = name, port
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)

    def cpu_seconds(self):
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def stop(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


def ladon(name, binary, directory, port):
    return Server(name, [binary, "--data", f"{directory}/data-{port}", "--port", str(port),
                         "--tls-port", str(port + 1), "--io-threads", "1", "--gate", "none",
                         *files(directory)], port)


def redis(binary, directory, port):
    return Server("redis", [binary, "--port", str(port), "--tls-port", str(port + 1), "--save", "",
                            "--appendonly", "no", "--dir", str(directory), *files(directory)], port)


def commands_of(server):
    """How many commands the server has run."""
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall(b"INFO stats\r\n")
        text = b""
        while b"total_commands_processed:" not in text or not text.endswith(b"\r\n"):
            text += connection.recv(65536)
    return int(text.split(b"total_commands_processed:")[1].split(b"\r\n")[0])


def measure(server, tls, directory, command, pipeline, seconds):
    """Microseconds of the server's CPU per operation, once all connections are established."""
    words = ["redis-benchmark", "-p", str(server.port + tls), "-c", "50", "-P", str(pipeline), "-d",
             "64", "-r", "100000", "-q", "-t", command, "-n", "1000000000"]
    if tls:
        words += ["--tls", "--cacert", f"{directory}/ca.crt"]
    load = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        time.sleep(0.7)
        before = (server.cpu_seconds(), commands_of(server))
        time.sleep(seconds)
        after = (server.cpu_seconds(), commands_of(server))
    finally:
        load.kill()
        load.wait()
    return (after[0] - before[0]) * 1e6 / (after[1] - before[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--commands", default="set,get")
    parser.add_argument("--redis", default="redis-server")
    parser.add_argument("--other")
    arguments = parser.parse_args()
    directory = pathlib.Path(tempfile.mkdtemp())
    make_certificates(directory)
    servers = [ladon("ladon", arguments.binary, directory, 17610)]
    if arguments.other:
        servers.append(ladon("other", arguments.other, directory, 17620))
    else:
        servers.append(redis(arguments.redis, directory, 17620))
    try:
        time.sleep(2)
        print(f"{'':12}" + "".join(f"{s.name + (' tls' if t else ' plain'):>20}"
                                   for s in servers for t in (0, 1)))
        for command in arguments.commands.split(","):
            for pipeline in (1, 16):
                found = {}
                for _ in range(arguments.rounds):
                    for server in servers:
                        for tls in (0, 1):
                            value = measure(server, tls, directory, command, pipeline,
                                            arguments.seconds)
                            found.setdefault((server.name, tls), []).append(value)
                plain = found["ladon", 0]
                cells = []
                for values in found.values():
                    ratio = statistics.median(v / p for v, p in zip(values, plain))
                    cells.append(f"{statistics.median(values):.2f} ({ratio:.2f})")
                ratio = statistics.median(
                    a / b for a, b in zip(found["ladon", 1], found[servers[1].name, 1]))
                print(f"{command} P={pipeline:<5}" + "".join(f"{cell:>20}" for cell in cells)
                      + f"   ladon/{servers[1].name} tls {ratio:.2f}", flush=True)
    finally:
        for server in servers:
            server.stop()
        shutil.rmtree(directory)


if __name__ == "__main__":
    sys.exit(main())
