"""The tasks that celery_jobs.py sends to Celery's workers."""
import os

from celery import Celery

url = f"redis://127.0.0.1:{os.environ['PORT']}"
app = Celery("celery_tasks", broker=url + "/0", backend=url + "/1")
app.conf.update(
    task_acks_late=True,
    worker_prefetch_multiplier=4,
    broker_connection_retry_on_startup=True,
)


@app.task
def square(n):
    return n * n


@app.task
def total(numbers):
    return sum(numbers)


@app.task(bind=True, max_retries=3)
def flaky(self):
    if self.request.retries < 2:
        raise self.retry(countdown=0.1, exc=ValueError("again"))
    return self.request.retries


@app.task
def fails():
    raise ValueError("on purpose")
