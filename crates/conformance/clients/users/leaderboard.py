"""A leaderboard: scores by ZINCRBY, the top by ZREVRANGE WITHSCORES, one's place by ZRANK.

A player's score is what was acknowledged, plus at most what broke off. What a spectator saw once
never goes back.
"""

import threading
from collections import Counter
from random import Random

from common import LOST, Crew, check, connect, finish, kill, patiently

# More than the packed form holds (128), so that both forms and the change are at work.
PLAYERS = [f"player:{number:03}" for number in range(400)]
KEY = "leaderboard"

acknowledged = Counter()
unknown = Counter()
breaks = Counter()
guard = threading.Lock()


def play(stop, seed):
    r = connect()
    random = Random(seed)
    while not stop.is_set():
        player = PLAYERS[min(int(random.expovariate(0.02)), len(PLAYERS) - 1)]
        points = random.randint(1, 9)
        try:
            r.zincrby(KEY, points, player)
        except LOST:
            with guard:
                unknown[player] += points
                breaks["player"] += 1
            patiently(r.ping)
        else:
            with guard:
                acknowledged[player] += points


def watch(stop, counts):
    r = connect()
    seen = {}

    def look():
        with r.pipeline(transaction=True) as pipe:
            pipe.zrevrange(KEY, 0, 9, withscores=True)
            pipe.zrevrange(KEY, 4, 4)
            pipe.zcard(KEY)
            (top, fifth, total) = pipe.execute()
        return top, fifth, total

    while not stop.is_set():
        top, _fifth, _total = patiently(look)
        scores = [score for _, score in top]
        assert scores == sorted(scores, reverse=True), f"not in order: {top}"
        for player, score in top:
            assert score >= seen.get(player, 0), f"{player} went back from {seen[player]}"
            seen[player] = score
        counts["looks"] += 1


def standings(r):
    """The whole table against the scores, one by one, with nobody playing."""
    table = patiently(lambda: r.zrevrange(KEY, 0, -1, withscores=True))
    wanted = sorted(table, key=lambda row: (row[1], row[0]), reverse=True)
    check(table == wanted, "the table is not in order")
    check(r.zcard(KEY) == len(table), "ZCARD")
    scores = dict(table)
    check(set(acknowledged) <= set(scores), f"lost: {set(acknowledged) - set(scores)}")
    for place, (player, score) in enumerate(table):
        low = acknowledged[player]
        high = low + unknown[player]
        check(low <= score <= high, f"{player} has {score}, not {low} to {high}")
        check(r.zrevrank(KEY, player) == place, f"{player} is not on place {place}")
        check(r.zrank(KEY, player) == len(table) - 1 - place, f"ZRANK of {player}")
    top = r.zrange(KEY, "+inf", "-inf", desc=True, byscore=True, offset=0, num=10)
    check(top == [player for player, _ in table[:10]], "ZRANGE REV BYSCORE LIMIT")
    return table


looks = Counter()
for round in range(3):
    crew = Crew()
    for seed in range(3):
        crew.start(play, 10 * round + seed)
    crew.start(watch, looks)
    crew.work_for(0.6)
    kill()
    crew.work_for(0.3)
    crew.end()
    r = connect()
    table = standings(r)
    r.close()
check(len(table) > 128, "too few players for the large form")
check(looks["looks"] > 50, f"the spectators hardly looked: {looks}")
check(breaks["player"] >= 3, f"no kill was in the way: {breaks}")
print(f"{sum(acknowledged.values())} points acknowledged, {sum(unknown.values())} unknown")
finish()
