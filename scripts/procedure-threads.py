#!/usr/bin/env python3
"""What a second IO thread brings to persistent functions: calls a second with one and with two.

    scripts/procedure-threads.py --ladon target/release/ladon [--seconds N] [--rounds N]

A function of each of two spaces gets and updates 60 tuples, so that a call costs far more than what brings
it: clients and server share the machine's cores, and the clients take little. Two clients of IPROTO, with 16 calls at
once on a connection each, call the one function and the other. Which IO thread gets a connection is the system's
choice: rounds in which one got both are told, and left out. Printed are the calls a second of both clients, medians of
rounds in alternation, with one IO thread and with two, and the ratio; beside them Tarantool's, which has one thread for all
of them. Two idle cores are needed. Needs `tarantool` for its net.box.
"""
import argparse
import os
import statistics
import subprocess
import tempfile

from procedure_bench import Server

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
local connection = require('net.box').connect('127.0.0.1:' .. port)
for f = 1, 16 do
    fiber.create(function()
        while clock.monotonic() < ends do
            connection:call(name, {math.random(900)})
            count = count + 1
        end
        done:put(true)
    end)
end
for f = 1, 16 do done:get() end
print(count)
os.exit(0)
"""


class Measured(Server):
    def ticks(self):
        """Processor time of each IO thread so far."""
        found, folder = {}, f"/proc/{self.process.pid}/task"
        for task in os.listdir(folder):
            with open(f"{folder}/{task}/stat") as file:
                name, rest = file.read().split("(", 1)[1].rsplit(")", 1)
            if name.startswith("ladon-io"):
                found[name] = sum(int(field) for field in rest.split()[11:13])
        return found

    def rate(self, load, seconds):
        """Calls a second, and whether all IO threads worked."""
        before = self.ticks()
        words = lambda name: ["tarantool", load, str(self.port), name, str(seconds)]
        clients = [
            subprocess.Popen(words(name), stdout=subprocess.PIPE) for name in ["work_a", "work_b"]
        ]
        rate = sum(int(client.communicate()[0]) for client in clients) / seconds
        worked = [ticks - before[name] for name, ticks in self.ticks().items()]
        return rate, not worked or min(worked) > max(worked) / 3


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ladon", required=True)
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    ladon = os.path.abspath(options.ladon)
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as load:
        load.write(LOAD)
        load.flush()
        threads = lambda count: [ladon, "tarantool", "--resp", "off", "--io-threads", str(count)]
        servers = [
            ("one thread", Measured(threads(1), 3773, PROGRAM)),
            ("two threads", Measured(threads(2), 3774, PROGRAM)),
            ("tarantool", Measured(["tarantool"], 3775, PROGRAM)),
        ]
        found = {of: [] for of, _ in servers}
        try:
            for _ in range(options.rounds):
                for of, server in servers:
                    rate, is_spread = server.rate(load.name, options.seconds)
                    if is_spread:
                        found[of].append(rate)
                    else:
                        print(f"{of}: both connections on one ({rate:.0f} calls a second)")
        finally:
            for _, server in servers:
                server.stop()
    if not all(found.values()):
        raise SystemExit("all rounds had both connections on one thread: more --rounds")
    rates = {of: statistics.median(all_) for of, all_ in found.items()}
    for of, rate in rates.items():
        print(f"{of}: {rate:.0f} calls a second")
    print(f"two threads / one: {rates['two threads'] / rates['one thread']:.2f}")


main()
