"""RQ's queues, with two workers and its scheduler: rq_jobs.py PORT. Exit status: failed checks."""
import datetime
import pathlib
import subprocess
import sys
import time

import rq_functions
from redis import Redis
from rq import Queue, Retry

port = sys.argv[1]
failed = 0


def check(is_right, what):
    global failed
    print("ok  " if is_right else "FAIL", what, flush=True)
    failed += not is_right


queue = Queue("jobs", connection=Redis(port=int(port)))
jobs = [queue.enqueue(rq_functions.square, n) for n in range(60)]
failing = queue.enqueue(rq_functions.fails, retry=Retry(max=2))
later = queue.enqueue_in(datetime.timedelta(seconds=1), rq_functions.square, 9)
after = queue.enqueue(rq_functions.square, 4, depends_on=jobs[5])
rq = pathlib.Path(sys.executable).with_name("rq")
arguments = ["worker", "-q", "--with-scheduler", "--url", f"redis://127.0.0.1:{port}", "jobs"]
workers = [
    subprocess.Popen([rq, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT)
    for _ in range(2)
]
try:
    end = time.time() + 90
    while time.time() < end:
        if all(job.is_finished for job in [*jobs, later, after]) and failing.is_failed:
            break
        time.sleep(0.3)
    check([job.return_value() for job in jobs] == [n * n for n in range(60)], "60 jobs")
    is_reported = failing.is_failed and "on purpose" in failing.latest_result().exc_string
    check(is_reported, "a failure, after two retries")
    check(later.return_value() == 81, "a scheduled job")
    check(after.return_value() == 16, "a job that depends on another")
    check(queue.count == 0 and len(queue.failed_job_registry) == 1, "nothing is left")
finally:
    for worker in workers:
        worker.terminate()
    for worker in workers:
        worker.wait()
sys.exit(failed)
