"""A sliding-window rate limiter: one sorted set per client of the service, scored by time.

    MULTI; ZREMRANGEBYSCORE key -inf now-window; ZADD key now id; ZCARD key; PEXPIRE key; EXEC
    allowed if ZCARD <= limit, else ZREM key id

No window ever holds more than the limit, also when the server is killed inside it: a request that
was counted stays counted.
"""

import bisect
import threading
import time

from common import LOST, Crew, check, connect, finish, kill, patiently

LIMIT = 40
WINDOW = 1.5  # seconds
VISITORS = 6

allowed = {visitor: [] for visitor in range(VISITORS)}
rejected = {visitor: [] for visitor in range(VISITORS)}
breaks = []
guard = threading.Lock()


def request(r, visitor, number):
    """Whether this request may pass, and its time."""
    key = f"limit:{visitor}"
    now = time.time()
    with r.pipeline(transaction=True) as pipe:
        pipe.zremrangebyscore(key, "-inf", now - WINDOW)
        pipe.zadd(key, {str(number): now})
        pipe.zcard(key)
        pipe.pexpire(key, int(WINDOW * 1000) + 1000)
        _, added, count, _ = pipe.execute()
    assert added == 1, f"request {number} was there already"
    if count > LIMIT:
        r.zrem(key, str(number))
        return False, now
    return True, now


def visit(stop, visitor):
    # Of one visitor the requests come one after another; visitors come at once.
    r = connect()
    number = 0
    while not stop.is_set():
        number += 1
        try:
            passed, when = request(r, visitor, number)
        except LOST:
            # It may have been counted, and was not let in.
            with guard:
                breaks.append(time.time())
            patiently(r.ping)
        else:
            (allowed if passed else rejected)[visitor].append(when)
        time.sleep(0.002)


crew = Crew()
for visitor in range(VISITORS):
    crew.start(visit, visitor)
kills = []
for _ in range(2):
    # Everybody's window is full by then, and mostly still full when the server is back.
    crew.work_for(0.8)
    kill()
    kills.append(time.time())
crew.work_for(2 * WINDOW)
crew.end()

for visitor in range(VISITORS):
    times = allowed[visitor]
    for index, when in enumerate(times):
        inside = index + 1 - bisect.bisect_right(times, when - WINDOW)
        check(inside <= LIMIT, f"{inside} requests in the {WINDOW} s before {when}")
    check(len(times) > LIMIT, f"visitor {visitor} was let in {len(times)} times only")
    for killed in kills:
        refused = [when for when in rejected[visitor] if killed < when]
        check(refused, f"visitor {visitor} was never refused after a kill")
check(len(breaks) >= 2, f"no kill was in the way: {breaks}")

# Nobody comes any more: the sets leave by themselves.
r = connect()
check(r.exists(*(f"limit:{visitor}" for visitor in range(VISITORS))) == VISITORS, "gone early")
time.sleep(WINDOW + 1.1)
check(r.dbsize() == 0 or not r.keys("limit:*"), "limiters outlive their time")
passed = sum(len(times) for times in allowed.values())
refused = sum(len(times) for times in rejected.values())
print(f"{passed} passed, {refused} refused, {len(breaks)} broke off")
finish()
