#!/usr/bin/env python3
"""Adds what a running Redis says about commands to a fixture of the tests of command-docs.

    scripts/record-command-facts.py PORT FIXTURE.json NAME...

NAME is a command or `container|subcommand`, as in crates/command-docs/commands.txt. Names that the
server does not know are left out. Nothing is recorded of the prose.
"""
import json
import re
import socket
import sys


class Client:
    def __init__(self, port):
        self.stream = socket.create_connection(("127.0.0.1", port)).makefile("rwb")

    def call(self, *words):
        self.stream.write(b"*%d\r\n" % len(words))
        for word in words:
            self.stream.write(b"$%d\r\n%s\r\n" % (len(word.encode()), word.encode()))
        self.stream.flush()
        return self.reply()

    def reply(self):
        line = self.stream.readline()[:-2]
        kind, rest = line[:1], line[1:]
        if kind in b"+-":
            return rest.decode()
        if kind == b":":
            return int(rest)
        count = int(rest)
        if count < 0:
            return None
        if kind == b"$":
            return self.stream.read(count + 2)[:-2].decode("utf-8", "replace")
        return [self.reply() for _ in range(count)]


def pairs(flat):
    return dict(zip(flat[::2], flat[1::2])) if flat else {}


def key_spec(flat):
    spec = pairs(flat)
    both = {}
    for part in ("begin_search", "find_keys"):
        fields = pairs(spec[part])
        both[part] = {"type": fields["type"], "spec": pairs(fields["spec"])}
    return {"flags": spec["flags"], **both}


def argument(flat):
    fields = pairs(flat)
    value = {name: fields[name] for name in ("name", "type")}
    for name in ("display_text", "key_spec_index", "token", "since", "deprecated_since", "flags"):
        if name in fields:
            value[name] = fields[name]
    if "arguments" in fields:
        value["arguments"] = [argument(inner) for inner in fields["arguments"]]
    return value


def orders(text):
    """Every O(...) in the text, up to the first closing parenthesis."""
    return re.findall(r"O\([^)]*\)", text)


def facts(client, name):
    info = client.call("COMMAND", "INFO", name)[0]
    if info is None:
        return None
    docs = pairs(client.call("COMMAND", "DOCS", name)[1])
    if "subcommands" in docs and "|" in name:
        docs = pairs(pairs(docs["subcommands"])[name])
    return {
        "arity": info[1],
        "flags": sorted(info[2]),
        "keys": info[3:6],
        "acl_categories": sorted(info[6]),
        "tips": info[7],
        "key_specs": [key_spec(spec) for spec in info[8]],
        "since": docs["since"],
        "group": docs["group"],
        "complexity": orders(docs.get("complexity", "")),
        "doc_flags": docs.get("doc_flags", []),
        "deprecated_since": docs.get("deprecated_since"),
        "history": [version for version, _ in docs.get("history", [])],
        "arguments": [argument(flat) for flat in docs.get("arguments", [])],
    }


def main():
    client, path = Client(int(sys.argv[1])), sys.argv[2]
    with open(path) as file:
        recording = json.load(file)
    for name in sys.argv[3:]:
        if found := facts(client, name):
            recording[name] = found
    lines = [
        f"{json.dumps(name)}: {json.dumps(recording[name], separators=(',', ':'))}"
        for name in sorted(recording)
    ]
    with open(path, "w") as file:
        file.write("{\n" + ",\n".join(lines) + "\n}\n")


main()
