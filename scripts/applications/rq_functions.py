"""The functions that rq_jobs.py lets RQ's workers run."""


def square(n):
    return n * n


def fails():
    raise ValueError("on purpose")
