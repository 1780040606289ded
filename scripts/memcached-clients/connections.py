#!/usr/bin/env python3
"""Many connections of memcached's protocol: memory of the server while they idle, then while each works.

    connections.py PORT PID [COUNT]
"""
import resource
import socket
import sys
import time


def rss_mb(pid):
    with open("/proc/%s/status" % pid) as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1024


def main():
    port, pid, count = int(sys.argv[1]), sys.argv[2], int((sys.argv[3:] or ["10000"])[0])
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, count + 1000), hard))
    before, clients = rss_mb(pid), []
    for number in range(count):
        # One address has not enough ports for all.
        client = socket.socket()
        client.bind(("127.0.0.%d" % (2 + number % 4), 0))
        client.connect(("127.0.0.1", port))
        clients.append(client)
    clients[-1].sendall(b"version\r\n")
    clients[-1].recv(100)
    time.sleep(1)
    print("%d idle connections: %.1f MB more" % (count, rss_mb(pid) - before))
    rounds, right = 5, 0
    began = time.monotonic()
    for turn in range(rounds):
        for number, client in enumerate(clients):
            client.sendall(b"set c:%d %d 0 2\r\nhi\r\nget c:%d\r\n" % (number, turn, number))
        for number, client in enumerate(clients):
            expected, got = b"STORED\r\nVALUE c:%d %d 2\r\nhi\r\nEND\r\n" % (number, turn), b""
            while len(got) < len(expected):
                part = client.recv(4096)
                if not part:
                    sys.exit("connection %d was closed" % number)
                got += part
            right += got == expected
    print("%d active connections: %d of %d replies right, %.1f MB more, %.1f s"
          % (count, right, rounds * count, rss_mb(pid) - before, time.monotonic() - began))
    sys.exit(right != rounds * count)


if __name__ == "__main__":
    main()
