"""Celery's broker and its results: celery_jobs.py PORT. Exit status: how many checks failed."""
import os
import subprocess
import sys
import time

os.environ["PORT"] = sys.argv[1]
from celery import chain, chord, group  # noqa: E402
from celery_tasks import app, fails, flaky, square, total  # noqa: E402

failed = 0


def check(is_right, what):
    global failed
    print("ok  " if is_right else "FAIL", what, flush=True)
    failed += not is_right


command = ["-A", "celery_tasks", "worker", "-c", "2", "-l", "error", "-n", f"w{os.getpid()}@x"]
worker = subprocess.Popen(
    [sys.executable, "-m", "celery", *command],
    stdout=subprocess.DEVNULL,
    stderr=subprocess.STDOUT,
)
try:
    check(square.delay(3).get(timeout=60) == 9, "a task answers")
    results = [square.delay(n) for n in range(500)]
    squares = [n * n for n in range(500)]
    check([result.get(timeout=60) for result in results] == squares, "500 tasks")
    check(group(square.s(n) for n in range(20))().get(timeout=20) == squares[:20], "group")
    check(chord((square.s(n) for n in range(20)), total.s())().get(timeout=20) == 2470, "chord")
    check(chain(square.s(2), square.s(), square.s())().get(timeout=20) == 256, "chain")
    check(flaky.delay().get(timeout=20) == 2, "retries")
    try:
        fails.delay().get(timeout=20)
        check(False, "a failure comes back")
    except ValueError as error:
        check(str(error) == "on purpose", "a failure comes back")
    began = time.time()
    answer = square.apply_async((5,), countdown=1).get(timeout=20)
    check(answer == 25 and time.time() - began >= 1, "a countdown")
    late = square.apply_async((5,), countdown=3)
    late.revoke()
    time.sleep(4)
    check(late.state in ("PENDING", "REVOKED"), "a revoked task does not run")
    pongs = list(app.control.inspect(timeout=5).ping().values())
    check(pongs == [{"ok": "pong"}], "remote control by publish and subscribe")
finally:
    worker.terminate()
    worker.wait()
sys.exit(failed)
