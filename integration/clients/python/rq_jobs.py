"""Jobs of the RQ worker in frameworks.py."""

import time

import rq


def add(a, b):
    return a + b


def sleep(seconds):
    time.sleep(seconds)


def hang(started):
    """Pushes on the list, and does not end."""
    rq.get_current_job().connection.rpush(started, "yes")
    time.sleep(600)


def second_time():
    job = rq.get_current_job()
    tries = job.meta["tries"] = job.meta.get("tries", 0) + 1
    job.save_meta()
    if tries < 2:
        raise RuntimeError("the first time")
    return tries
