"""Scripts: what ends them, how deep they go, and what they leave behind."""
import time

from fault import fault

ENDLESS = "while true do end"


def killed(bench, body, threads=2):
    """Whether `body` is busy and killed within 100 ms, and whether the server ends by a signal afterwards."""
    server = bench.ladon("--io-threads", str(threads), "--busy-reply-threshold", "50")
    others = [server.client(5) for _ in range(4)]
    runner = server.client(20)
    runner.send("EVAL", body, 1, "k")
    time.sleep(0.4)
    began = time.monotonic()
    try:
        answer = server.client(2)("SCRIPT", "KILL")
        others[0].error("GET", "k"), others[1].error("GET", "k")
        reply = runner.reply()
    except Exception as error:
        answer, reply = "%s" % type(error).__name__, "nothing"
    took = time.monotonic() - began
    # The next one can be ended, too: nothing has switched the hook off.
    if answer == "OK":
        again = server.client(20)
        again.send("EVAL", ENDLESS, 0)
        time.sleep(0.3)
        try:
            answer += ", then %s" % server.client(2)("SCRIPT", "KILL")
        except Exception as error:
            answer += ", then %s" % (str(error) or type(error).__name__)
        last = server.client(20)
        last.send("EVAL", body, 1, "k")
        time.sleep(0.3)
    server.process.terminate()
    try:
        server.process.wait(3)
        end = "SIGTERM ends it"
    except Exception:
        end = "SIGTERM has no effect"
    right = answer == "OK, then OK" and "killed" in str(reply) and took < 0.5 and end == "SIGTERM ends it"
    return "SCRIPT KILL: %s after %d ms; %s" % (answer, took * 1000, end), right


ENDED = "SCRIPT KILL ends it within 100 ms, and the next one; then SIGTERM ends the server"


@fault("EVAL: string.find of 'a?' sixty times", ENDED)
def pattern(bench):
    return killed(bench, "return string.find(string.rep('a',60), string.rep('a?',60)..string.rep('a',60))")


@fault("EVAL: load(function() while true do end end)", ENDED)
def load(bench):
    return killed(bench, "load(function() while true do end end) return 1", threads=1)


@fault("EVAL: table.sort of what is sorted already, in a row", ENDED)
def sort(bench):
    return killed(bench, "local t = {} for i = 1, 2000000 do t[i] = i % 2 end while true do table.sort(t) end")


@fault("EVAL: strings of 100 MB compared in a loop", ENDED)
def comparison(bench):
    return killed(bench, "local s = ('x'):rep(100000000) local t = s .. 'y' while s < t do end")


@fault("EVAL: collectgarbage in a loop, with five million tables", ENDED)
def collection(bench):
    return killed(bench, "local t = {} for i = 1, 2000000 do t[i] = {} end while true do collectgarbage() end")


@fault("EVAL: a value whose __tostring is tostring", ENDED)
def tostring_of_itself(bench):
    return killed(bench, "local t = setmetatable({}, {__tostring = tostring}) while true do pcall(tostring, t) end")


DEEP = ["string.gsub('x', 'x', f)", "coroutine.wrap(f)()", "xpcall(f, f)", "pcall(f)", "load(f)",
        "table.sort({3, 2, 1}, f)", "tostring(setmetatable({}, {__tostring = f}))",
        "string.format('%s', setmetatable({}, {__tostring = f}))",
        "local x = _G[setmetatable({}, {__tostring = f})]",
        "pcall(error, setmetatable({}, {__index = f}))"]


@fault("EVAL, FUNCTION LOAD: recursion through %d functions that call Lua from C" % len(DEEP),
       "each an error or a reply, the server goes on")
def recursion(bench):
    survived = 0
    for call in DEEP:
        server = bench.ladon("--io-threads", "1", "--busy-reply-threshold", "100")
        body = "local f f = function() %s return '' end f() return 1" % call
        for command in (["EVAL", body, 0],
                        ["FUNCTION", "LOAD", "#!lua name=l\n%s" % body.replace("return 1", "redis.register_function('g', f)")]):
            client = server.client(10)
            client.send(*command)
            time.sleep(0.2)
            try:
                server.client(2).error("SCRIPT", "KILL")
                client.reply()
            except (OSError, EOFError):
                pass
        try:
            survived += server.client(2)("PING") == "PONG"
        except (OSError, EOFError):
            pass
        server.kill()
    return "%d of %d survived" % (survived, len(DEEP)), survived == len(DEEP)


@fault("cjson.encode_number_precision(3), then another script", "1.23456789 with all its digits")
def settings(bench):
    client = bench.ladon("--io-threads", "1").client()
    client("EVAL", "cjson.encode_number_precision(3) cjson.encode_max_depth(1) math.randomseed(3)", 0)
    reply = client.error("EVAL", "return cjson.encode({1.23456789, {2}})", 0)
    return repr(reply), reply == b"[1.23456789,[2]]"


@fault("redis.call('SET', k, 2^63) and others outside of 64 bits", "as the original stores them")
def numbers(bench):
    body = "local t = {} for _, n in ipairs({2^63, -2^64, 1e21, 2^53 + 1, 1e15, 1/0, -1/0}) do " \
        "redis.call('SET', 'k', n) t[#t + 1] = redis.call('GET', 'k') end return t"
    here, there = (server.client()("EVAL", body, 0) for server in (bench.ladon(), bench.redis()))
    return b" ".join(here).decode(), here == there


@fault("errors with colons, lines and '#' in their codes, and 300 codes", "INFO errorstats as the original's, and bounded")
def errorstats(bench):
    replies = []
    for server in (bench.ladon("--io-threads", "1"), bench.redis()):
        client = server.client()
        for text in ("@user x", "A:B x", "My#E:r x", "noword", "W" * 40 + " x"):
            client.error("EVAL", "return {err = ARGV[1]}", 0, text)
        lines = client("INFO", "errorstats").decode().split("\r\n")
        replies.append(sorted(line for line in lines if line.startswith("errorstat")))
    client = bench.ladon("--io-threads", "1").client()
    for number in range(300):
        client.error("EVAL", "return {err = ARGV[1]}", 0, "E%d x" % number)
    count = client("INFO", "errorstats").count(b"errorstat_")
    return "%s; of 300 codes %d" % (" ".join(replies[0]), count), replies[0] == replies[1] and count < 150
