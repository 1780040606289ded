"""Sessions as hashes: EXPIRE on the whole, HEXPIRE on the fields that live shorter.

What was acknowledged is there after a kill, with the very same expiry; what expires while the
server is away is gone when it is back. Servers without HEXPIRE are asked for the rest only.
"""

import threading
import time

import redis
from common import LOST, Crew, check, connect, finish, kill, patiently

VISITORS = 4
PER_VISITOR = 30

breaks = []
guard = threading.Lock()


class Session:
    def __init__(self, name):
        self.key = f"session:{name}"
        self.visits = 0  # acknowledged
        self.unknown = 0  # visits whose answer never came
        self.cart = {None}  # what the cart may be
        self.expires = {None}  # what PEXPIRETIME may say
        self.token = {None}  # (text, expiry) of the field that expires


def attempt(r, may_be, value, call):
    """Runs a write of `value`: afterwards it is that, or, if the answer was lost, that or the old."""
    try:
        call()
    except LOST:
        with guard:
            breaks.append(time.time())
        may_be.add(value)
        patiently(r.ping)
    else:
        may_be.clear()
        may_be.add(value)


def browse(stop, sessions):
    r = connect()
    turn = 0
    while not stop.is_set():
        session = sessions[turn % len(sessions)]
        turn += 1
        key = session.key
        try:
            r.hincrby(key, "visits", 1)
        except LOST:
            session.unknown += 1
            with guard:
                breaks.append(time.time())
            patiently(r.ping)
            continue
        session.visits += 1
        cart = f"{turn} things"
        attempt(r, session.cart, cart, lambda: r.hset(key, "cart", cart))
        until = int(time.time() * 1000) + 60_000 + turn
        attempt(r, session.expires, until, lambda: r.pexpireat(key, until))
        if fields_expire:
            token, end = f"token {turn}", int(time.time() * 1000) + 30_000 + turn

            def renew():
                with r.pipeline(transaction=True) as pipe:
                    pipe.hset(key, "token", token)
                    pipe.hpexpireat(key, end, "token")
                    pipe.execute()

            attempt(r, session.token, (token, end), renew)


def compare(r, session):
    key = session.key
    got = r.hgetall(key)
    visits = int(got.get("visits", 0))
    low, high = session.visits, session.visits + session.unknown
    check(low <= visits <= high, f"{key}: {visits} visits, not {low} to {high}")
    check(got.get("cart") in session.cart, f"{key}: {got.get('cart')!r}, not {session.cart}")
    expires = r.pexpiretime(key)
    expires = None if expires < 0 else expires
    check(expires in session.expires, f"{key} expires at {expires}, not {session.expires}")
    if fields_expire:
        end = r.hpexpiretime(key, "token")
        token = (got["token"], end[0]) if "token" in got else None
        check(token in session.token, f"{key}: {token}, not {session.token}")


r = connect()
try:
    r.hset("probe", "field", 1)
    fields_expire = r.hexpire("probe", 1000, "field") == [1]
except redis.ResponseError:
    fields_expire = False
r.delete("probe")

groups = [
    [Session(f"{visitor}:{number}") for number in range(PER_VISITOR)]
    for visitor in range(VISITORS)
]
for _ in range(2):
    crew = Crew()
    for group in groups:
        crew.start(browse, group)
    crew.work_for(0.7)

    # These end around the time at which the server is away, or just after.
    now = int(time.time() * 1000)
    short = {f"short:{number}": now + 20 * number for number in range(1, 60)}
    for key, end in short.items():
        with r.pipeline(transaction=True) as pipe:
            pipe.hset(key, mapping={"user": key, "token": "t"})
            pipe.pexpireat(key, end + 200)
            if fields_expire:
                pipe.hpexpireat(key, end, "token")
            pipe.execute()
    kill()
    for key, end in short.items():
        before = int(time.time() * 1000)
        got = patiently(lambda: r.hgetall(key))
        after = int(time.time() * 1000)
        if after < end + 200:
            check(got.get("user") == key, f"{key} is gone early: {got}")
        if before > end + 200:
            check(got == {}, f"{key} outlived its time: {got}")
        if fields_expire and after < end:
            check(got.get("token") == "t", f"{key}'s token is gone early: {got}")
        if fields_expire and before > end:
            check("token" not in got, f"{key}'s token outlived its time: {got}")
    crew.work_for(0.3)
    crew.end()
    for group in groups:
        for session in group:
            compare(r, session)
    time.sleep(max(0, now / 1000 + 1.5 - time.time()))
    check(not any(r.exists(key) for key in short), "short sessions are left")

check(len(breaks) >= 2, f"no kill was in the way: {breaks}")
visits = sum(session.visits for group in groups for session in group)
print(f"{visits} visits acknowledged, {len(breaks)} writes broke off, HEXPIRE: {fields_expire}")
finish()
