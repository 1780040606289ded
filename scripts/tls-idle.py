#!/usr/bin/env python3
"""What an idle connection holds: resident memory of the server, plain and with TLS by cipher suite.

  scripts/tls-idle.py target/release/ladon [--connections 4000]

Each connection has asked PING once. A second wave of as many connections is counted, so that what
the first one made the allocator keep is not.
"""

import argparse
import importlib
import pathlib
import shutil
import socket
import ssl
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
cost = importlib.import_module("tls-cost")

PORT = 17680
KINDS = [("plain", None, None), ("TLS 1.3", "TLSv1.3", "TLS_AES_256_GCM_SHA384"), ("TLS 1.3", "TLSv1.3", "TLS_AES_128_GCM_SHA256"),
         ("TLS 1.3", "TLSv1.3", "TLS_CHACHA20_POLY1305_SHA256"), ("TLS 1.2", "TLSv1.2", None)]


def rss(server):
    with open(f"/proc/{server.process.pid}/smaps_rollup") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith("Rss:"))


def opened(port, context):
    connection = socket.create_connection(("127.0.0.1", port))
    if context:
        connection = context.wrap_socket(connection, server_hostname="localhost")
    connection.sendall(b"PING\r\n")
    assert connection.recv(100) == b"+PONG\r\n"
    return connection


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary")
    parser.add_argument("--connections", type=int, default=4000)
    arguments = parser.parse_args()
    directory = pathlib.Path(tempfile.mkdtemp())
    cost.make_certificates(directory)
    for name, version, suite in KINDS:
        more = [*(("--tls-protocols", version) if version else ()), *(("--tls-ciphersuites", suite) if suite else ())]
        command = [arguments.binary, "--data", f"{directory}/data", "--port", str(PORT), "--tls-port", str(PORT + 1),
                   "--io-threads", "1", "--gate", "none", "--tls-handshakes-per-second", "100000", *cost.files(directory), *more]
        server = cost.Server("ladon", command, PORT)
        try:
            time.sleep(1.5)
            context = ssl.create_default_context(cafile=f"{directory}/ca.crt") if version else None
            port, kept, steps = PORT + bool(version), [], []
            for _ in range(3):
                kept += [opened(port, context) for _ in range(arguments.connections)]
                time.sleep(3)
                steps.append(rss(server))
            grown = (steps[2] - steps[0]) / (2 * arguments.connections)
            print(f"{name} {suite or ''}: {grown:.0f} bytes a connection", flush=True)
            for connection in kept:
                connection.close()
        finally:
            server.stop()
            shutil.rmtree(directory / "data", ignore_errors=True)
    shutil.rmtree(directory)


if __name__ == "__main__":
    sys.exit(main())
