#!/usr/bin/env python3
"""What a second IO thread brings to persistent functions: calls a second with one and with two.

    scripts/procedure-threads.py --ladon target/release/ladon [--seconds N] [--rounds N]

A function of each of two spaces gets and updates 60 tuples, so that a call costs far more than what brings
it: clients and server share the machine's cores, and the clients take little. Two clients of IPROTO, with eight
connections each and two calls at once on each, call the one function and the other. Printed are the calls a
second of both, medians of rounds in alternation, with one IO thread and with two, and the ratio; beside them
Tarantool's, which has one thread for all of them. Two idle cores are needed. Needs `tarantool` for its net.box.
"""
import argparse
import os
import shutil
import statistics
import subprocess
import tempfile
import time

PROGRAM = """
box.cfg{listen = '127.0.0.1:' .. arg[1], wal_mode = 'none', log_level = 1}
for _, name in ipairs({'a', 'b'}) do
    local s = box.schema.space.create(name)
    s:create_index('pk', {parts = {1, 'unsigned'}})
    for i = 1, 1000 do s:replace{i, 'value', 0} end
    box.schema.func.create('work_' .. name, {body = ([[function(key)
        local s = box.space.%s
        local sum = 0
        for i = key, key + 59 do
            sum = sum + s:get(i)[3]
            s:update(i, {{'+', 3, 1}})
        end
        return sum
    end]]):format(name)})
end
box.schema.user.grant('guest', 'execute,read,write', 'universe')
"""

LOAD = """
local fiber = require('fiber')
local clock = require('clock')
local port, name, seconds = arg[1], arg[2], tonumber(arg[3])
local count, ends, done = 0, clock.monotonic() + seconds, fiber.channel(16)
for c = 1, 8 do
    local connection = require('net.box').connect('127.0.0.1:' .. port)
    for f = 1, 2 do
        fiber.create(function()
            while clock.monotonic() < ends do
                connection:call(name, {math.random(900)})
                count = count + 1
            end
            done:put(true)
        end)
    end
end
for f = 1, 16 do done:get() end
print(count)
os.exit(0)
"""


class Server:
    def __init__(self, command, port):
        self.folder = tempfile.mkdtemp(prefix="procedure-threads-")
        program = os.path.join(self.folder, "init.lua")
        with open(program, "w") as file:
            file.write(PROGRAM)
        self.port = port
        log = open(os.path.join(self.folder, "log"), "w")
        self.process = subprocess.Popen(
            [*command, program, str(port)], cwd=self.folder, stdout=log, stderr=log
        )
        time.sleep(2)
        if self.process.poll() is not None:
            raise SystemExit(open(log.name).read())

    def rate(self, load, seconds):
        words = lambda name: ["tarantool", load, str(self.port), name, str(seconds)]
        clients = [
            subprocess.Popen(words(name), stdout=subprocess.PIPE) for name in ["work_a", "work_b"]
        ]
        return sum(int(client.communicate()[0]) for client in clients) / seconds

    def stop(self):
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ladon", required=True)
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    ladon = os.path.abspath(options.ladon)
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as load:
        load.write(LOAD)
        load.flush()
        threads = lambda count: [ladon, "tarantool", "--resp", "off", "--io-threads", str(count)]
        servers = [
            ("one thread", Server(threads(1), 3773)),
            ("two threads", Server(threads(2), 3774)),
            ("tarantool", Server(["tarantool"], 3775)),
        ]
        found = {of: [] for of, _ in servers}
        try:
            for _ in range(options.rounds):
                for of, server in servers:
                    found[of].append(server.rate(load.name, options.seconds))
        finally:
            for _, server in servers:
                server.stop()
    rates = {of: statistics.median(all_) for of, all_ in found.items()}
    for of, rate in rates.items():
        print(f"{of}: {rate:.0f} calls a second")
    print(f"two threads / one: {rates['two threads'] / rates['one thread']:.2f}")


main()
