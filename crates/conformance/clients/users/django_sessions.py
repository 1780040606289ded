"""Django's sessions in its Redis cache: logging in, coming back, logging out, being forgotten.

Django's own code decides which commands that takes. A save that returned is there after a kill.
"""

import time

import django
from common import LOST, PORT, Crew, check, finish, kill, patiently
from django.conf import settings

settings.configure(
    CACHES={
        "default": {
            "BACKEND": "django.core.cache.backends.redis.RedisCache",
            "LOCATION": f"redis://127.0.0.1:{PORT}",
        }
    },
    SESSION_ENGINE="django.contrib.sessions.backends.cache",
    SECRET_KEY="only for this test",
)
django.setup()

from django.contrib.sessions.backends.cache import SessionStore  # noqa: E402
from django.core.cache import cache  # noqa: E402

VISITORS = 3
breaks = []
saved = {}  # session key -> what it may hold: the last save, and those whose answer was lost
gone = set()  # logged out


def browse(stop, visitor):
    turn = 0
    mine = []
    while not stop.is_set():
        turn += 1
        try:
            if len(mine) < 20 or turn % 7 == 0:
                session = SessionStore()
                session["visitor"] = visitor
                session["turn"] = turn
                session.save()
                mine.append(session.session_key)
                saved[session.session_key] = {turn}
            elif turn % 11 == 0:
                key = mine.pop(0)
                saved.pop(key)
                SessionStore(session_key=key).flush()
                gone.add(key)
            else:
                key = mine[turn % len(mine)]
                session = SessionStore(session_key=key)
                if session.get("visitor") is None:
                    # Django shows a session that it cannot reach as an empty one.
                    kept = patiently(lambda: cache.get(session.cache_key_prefix + key))
                    assert kept is not None, f"{key} is lost"
                    breaks.append(turn)
                    continue
                assert session["visitor"] == visitor, f"{key} holds {dict(session.items())}"
                session["turn"] = turn
                # Until the save returns it may be the old or the new.
                saved[key].add(turn)
                session.save()
                saved[key] = {turn}
        except LOST:
            breaks.append(turn)
            time.sleep(0.02)


for _ in range(2):
    crew = Crew()
    for visitor in range(VISITORS):
        crew.start(browse, visitor)
    crew.work_for(0.7)
    kill()
    crew.work_for(0.3)
    crew.end()
    for key, turns in saved.items():
        session = SessionStore(session_key=key)
        check(session.get("turn") in turns, f"{key}: {session.get('turn')}, not {turns}")
    for key in gone:
        check(not SessionStore(session_key=key).exists(key), f"{key} was logged out")

cache.set("greeting", "hello", timeout=1)
check(cache.get("greeting") == "hello", "the cache")
check(cache.add("greeting", "other") is False, "add over a key")
cache.set_many({"one": 1, "two": 2})
check(cache.get_many(["one", "two", "three"]) == {"one": 1, "two": 2}, "get_many")
check(cache.incr("one", 5) == 6, "incr")
check(cache.touch("two", 100), "touch")
time.sleep(1.1)
check(cache.get("greeting") is None, "the cached value outlived its second")
check(breaks, "no kill was in the way")
print(f"{len(saved)} sessions, {len(gone)} logged out, {len(breaks)} requests broke off")
finish()
