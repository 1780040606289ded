#!/usr/bin/env python3
"""CPU that a call of a Lua procedure takes of the server: Ladon beside Tarantool, in one run.

    scripts/procedure-cost.py --ladon target/release/ladon [--calls N] [--rounds N]

Both run the same program: a procedure that gets, replaces and updates a tuple, once as a global
function and once as a persistent one, of `_func` ("stored"). The load is
Tarantool's own net.box with 64, 16 and 1 calls at once. Printed are the medians of the servers' CPU
microseconds a call (user and system, all threads), and the ratio. Needs `tarantool`.
"""
import argparse
import os
import statistics
import subprocess
import tempfile
import time

from procedure_bench import Server

PROGRAM = """
box.cfg{listen = '127.0.0.1:' .. arg[1], wal_mode = 'none', log_level = 1}
local s = box.schema.space.create('s')
s:create_index('pk', {parts = {1, 'unsigned'}})
for i = 1, 10000 do s:replace{i, 'value', 0} end
function three(key)
    local tuple = s:get(key)
    s:replace{key, tuple[2], tuple[3] + 1}
    return s:update(key, {{'+', 3, 1}})
end
function nothing() return 1 end
box.schema.func.create('stored', {body = [[function(key)
    local s = box.space.s
    local tuple = s:get(key)
    s:replace{key, tuple[2], tuple[3] + 1}
    return s:update(key, {{'+', 3, 1}})
end]]})
box.schema.user.grant('guest', 'execute,read,write', 'universe')
"""

LOAD = """
local fiber = require('fiber')
local port, name, at_once, calls = arg[1], arg[2], tonumber(arg[3]), tonumber(arg[4])
local connection = require('net.box').connect('127.0.0.1:' .. port)
local done = fiber.channel(at_once)
local each = math.floor(calls / at_once)
for f = 1, at_once do
    fiber.create(function()
        for i = 1, each do connection:call(name, {math.random(10000)}) end
        done:put(true)
    end)
end
for f = 1, at_once do done:get() end
os.exit(0)
"""


def cpu_us(pid):
    """User and system time of a process so far, microseconds."""
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) * 1_000_000 / os.sysconf("SC_CLK_TCK")


class Measured(Server):
    def cost(self, load, name, at_once, calls):
        before = cpu_us(self.process.pid)
        began = time.monotonic()
        words = ["tarantool", load, str(self.port), name, str(at_once), str(calls)]
        subprocess.run(words, check=True)
        seconds = time.monotonic() - began
        return (cpu_us(self.process.pid) - before) / calls, calls / seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ladon", required=True)
    parser.add_argument("--calls", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as load:
        load.write(LOAD)
        load.flush()
        servers = [
            ("ladon", Measured([os.path.abspath(options.ladon), "tarantool"], 3771, PROGRAM)),
            ("tarantool", Measured(["tarantool"], 3772, PROGRAM)),
        ]
        try:
            print("| procedure | at once | ladon us | tarantool us | ratio | calls/s | calls/s |")
            print("|---|---|---|---|---|---|---|")
            for name in ["three", "stored", "nothing"]:
                for at_once in [64, 16, 1]:
                    calls = options.calls if at_once > 1 else options.calls // 4
                    found = {of: [] for of, _ in servers}
                    for _ in range(options.rounds):
                        for of, server in servers:
                            found[of].append(server.cost(load.name, name, at_once, calls))
                    us = {of: statistics.median(it[0] for it in all_) for of, all_ in found.items()}
                    rate = {of: statistics.median(it[1] for it in all_) for of, all_ in found.items()}
                    ratio = us["ladon"] / us["tarantool"]
                    print(
                        f"| {name} | {at_once} | {us['ladon']:.2f} | {us['tarantool']:.2f} | "
                        f"{ratio:.2f} | {rate['ladon']:.0f} | {rate['tarantool']:.0f} |"
                    )
        finally:
            for _, server in servers:
                server.stop()


main()
