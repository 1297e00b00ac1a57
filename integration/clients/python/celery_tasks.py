"""Tasks of the Celery worker in frameworks.py. The proxy is its broker and keeps its results."""

import os
import time

import celery
import celery_once
import redis

URL = f"redis://{os.environ['PROXY_HOST']}:{os.environ['PROXY_PORT']}/0"

app = celery.Celery("celery_tasks", broker=URL, backend=URL)
app.conf.ONCE = {"backend": "celery_once.backends.Redis", "settings": {"url": URL, "default_timeout": 600}}


@app.task
def add(a, b):
    return a + b


@app.task
def total(numbers):
    return sum(numbers)


@app.task(bind=True)
def third_time(self):
    if self.request.retries < 2:
        raise self.retry(countdown=0.1)
    return self.request.retries


@app.task
def sleep(seconds):
    time.sleep(seconds)


@app.task(base=celery_once.QueueOnce)
def once(gate):
    """Ends when something is pushed on the list."""
    with redis.Redis.from_url(URL, socket_timeout=None) as client:
        return client.blpop(gate, timeout=60)[1].decode()
