"""A reliable queue: LPUSH to submit, BLMOVE to a worker's own list, LREM when done.

    producers --LPUSH--> jobs --BLMOVE--> taken:W --MULTI LREM, HINCRBY EXEC--> done

Every submitted job is in exactly one of the three places at every moment, kills included, and
done exactly once: a worker that lost its connection first looks at what it had taken.
"""

import threading
import time
from collections import Counter

from common import LOST, Crew, check, connect, finish, kill, patiently

PRODUCERS = 2
WORKERS = 4

acknowledged = set()  # LPUSH was answered
unknown = set()  # the connection broke before the answer
finished = Counter()  # EXEC was answered
breaks = Counter()
guard = threading.Lock()


def produce(stop, producer):
    r = connect()
    number = 0
    while not stop.is_set():
        job = f"{producer}:{number}"
        number += 1
        try:
            r.lpush("jobs", job)
        except LOST:
            with guard:
                unknown.add(job)
                breaks["producer"] += 1
            patiently(r.ping)
        else:
            with guard:
                acknowledged.add(job)
        # Bursts: workers wait for a job in between.
        if number % 50 == 0:
            time.sleep(0.03)


def complete(r, mine, job):
    with r.pipeline(transaction=True) as pipe:
        pipe.lrem(mine, 1, job)
        pipe.hincrby("done", job, 1)
        removed, times = pipe.execute()
    assert removed == 1, f"{job} was done without having been taken"
    assert times == 1, f"{job} was done {times} times"
    with guard:
        finished[job] += 1


def consume(stop, worker):
    r = connect()
    mine = f"taken:{worker}"
    while True:
        try:
            for job in r.lrange(mine, 0, -1):
                complete(r, mine, job)
            while True:
                job = r.blmove("jobs", mine, 0.3, "RIGHT", "LEFT")
                if job is not None:
                    complete(r, mine, job)
                elif stop.is_set():
                    return
        except LOST:
            with guard:
                breaks["worker"] += 1
            patiently(r.ping)


def everything_is_somewhere(r):
    with guard:
        submitted = set(acknowledged)
        completed = set(finished)

    def look():
        with r.pipeline(transaction=True) as pipe:
            pipe.lrange("jobs", 0, -1)
            for worker in range(WORKERS):
                pipe.lrange(f"taken:{worker}", 0, -1)
            pipe.hgetall("done")
            return pipe.execute()

    *lists, done = patiently(look)
    places = Counter(job for jobs in lists for job in jobs)
    places.update(done.keys())
    for job in submitted:
        check(places[job] == 1, f"{job} was acknowledged and is in {places[job]} places")
    for job in completed:
        check(done.get(job) == "1", f"{job} was done and is now {done.get(job)}")
    twice = [job for job, count in places.items() if count != 1]
    check(not twice, f"in several places: {twice}")


r = connect()
producers, workers = Crew(), Crew()
for producer in range(PRODUCERS):
    producers.start(produce, producer)
for worker in range(WORKERS):
    workers.start(consume, worker)
for _ in range(3):
    producers.work_for(0.7)
    everything_is_somewhere(r)
    kill()
    everything_is_somewhere(r)
    workers.look()
producers.work_for(0.3)
producers.end()

deadline = time.monotonic() + 20
while patiently(lambda: r.llen("jobs")) and time.monotonic() < deadline:
    workers.work_for(0.05)
workers.end()
everything_is_somewhere(r)
done = set(r.hkeys("done"))
check(acknowledged <= done, f"never done: {acknowledged - done}")
check(done <= acknowledged | unknown, "done, and nobody asked for it")
check(r.llen("jobs") == 0, "jobs are left")
check(all(r.llen(f"taken:{worker}") == 0 for worker in range(WORKERS)), "taken ones are left")
check(breaks["worker"] >= 3 and breaks["producer"] >= 3, f"no kill was in the way: {breaks}")
print(f"{len(acknowledged)} jobs acknowledged, {len(unknown)} unknown, broken {dict(breaks)}")
finish()
