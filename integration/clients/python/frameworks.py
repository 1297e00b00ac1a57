"""Frameworks with one Redis URL for everything, a worker of theirs in a process of its own: Celery, RQ. They are only
put through the scenario "data", and the lock beside it is redis-py's."""

import contextlib
import datetime
import os
import subprocess
import sys
import tempfile
import time

import redis

import scenarios
from own_lock import OwnLock
from scenarios import LONG, until, want

START = 120.0  # seconds within which a worker starts, or ends, on a busy machine
HERE = os.path.dirname(os.path.abspath(__file__))


@contextlib.contextmanager
def worker(first, *words):
    """Runs one, which does what first tells is done, and must end as it should. What it says is shown if anything goes
    wrong."""
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen([sys.executable, "-m", *words], cwd=HERE, stdout=log, stderr=log)
        try:
            end = time.monotonic() + START
            while not first():
                want(process.poll() is None and time.monotonic() < end, "the worker did not start")
                time.sleep(0.05)
            yield
            process.terminate()
            want(process.wait(START) == 0, "the worker did not end as it should")
        except BaseException:
            process.kill()
            process.wait()
            log.seek(0)
            sys.stderr.write(log.read().decode(errors="replace"))
            raise


class Framework(scenarios.Library):
    def client(self):
        return redis.Redis(scenarios.HOST, scenarios.PORT)

    def lock(self, client, name, ttl, token=None, keep=False):
        return OwnLock(client.lock(name, timeout=10 * LONG, thread_local=False))


class Celery(Framework):
    name = "Celery"

    def __init__(self):
        import celery

        self.version = celery.__version__

    def data(self, run, client, name):
        import celery
        import celery_once
        from celery_tasks import add, app, once, sleep, third_time, total

        def get(result):
            return result.get(timeout=LONG)

        words = ["celery", "-A", "celery_tasks", "worker", "--concurrency", "2", "--loglevel", "WARNING"]
        with worker(add.delay(1, 1).ready, *words):
            want([get(r) for r in [add.delay(i, i) for i in range(20)]] == [2 * i for i in range(20)], "tasks")
            yield "tasks"
            want(get(add.apply_async((1, 2), countdown=1)) == 3, "countdown")
            want(get(third_time.delay()) == 2, "retries")
            yield "countdown, retries"
            want(get(celery.chain(add.s(1, 2), add.s(3))()) == 6, "chain")
            want(get(celery.group(add.s(i, i) for i in range(5))()) == [0, 2, 4, 6, 8], "group")
            want(get(celery.chord((add.s(i, i) for i in range(5)), total.s())()) == 20, "chord")
            yield "chain, group, chord"
            late = sleep.delay(10 * LONG)
            until("started", lambda: late.id in str(app.control.inspect(timeout=1).active()))
            late.revoke(terminate=True)
            until("revoked", lambda: late.state == "REVOKED")
            yield "revoke"
            gate = name + ":gate"
            held = once.delay(gate)
            try:
                once.delay(gate)
                want(False, "celery-once: queued twice")
            except celery_once.AlreadyQueued:
                pass
            client.rpush(gate, "done")
            want(get(held) == "done", "celery-once")
            until("celery-once has released", lambda: not client.exists("qo_celery_tasks.once_gate-" + gate))
            yield "celery-once by vote"
        app.close()


class RQ(Framework):
    name = "RQ"

    def __init__(self):
        import rq

        self.version = rq.VERSION

    def data(self, run, client, name):
        import rq
        import rq.command
        import rq.exceptions
        import rq_jobs

        queue = rq.Queue(connection=client)

        def ends(job, state):
            until(state, lambda: job.get_status(refresh=True) == state)
            return job.return_value() if state == "finished" else None

        url = f"redis://{scenarios.HOST}:{scenarios.PORT}/0"
        words = ["rq.cli", "worker", "--url", url, "--with-scheduler", "--logging_level", "WARNING"]
        first = queue.enqueue(rq_jobs.add, 1, 1)
        with worker(lambda: first.get_status(refresh=True) == "finished", *words):
            jobs = [queue.enqueue(rq_jobs.add, i, i) for i in range(5)]
            want([ends(j, "finished") for j in jobs] == [0, 2, 4, 6, 8], "jobs")
            before = queue.enqueue(rq_jobs.sleep, 0.1)
            want(ends(queue.enqueue(rq_jobs.add, 1, 2, depends_on=before), "finished") == 3, "dependency")
            yield "jobs, dependencies"
            later = queue.enqueue_in(datetime.timedelta(seconds=1), rq_jobs.add, 2, 3)
            again = queue.enqueue(rq_jobs.second_time, retry=rq.Retry(max=2, interval=1))
            want(ends(later, "finished") == 5 and ends(again, "finished") == 2, "scheduled")
            yield "scheduled jobs, retries"
            started = name + ":started"
            long = queue.enqueue(rq_jobs.hang, started, job_id="long", unique=True)
            want(scenarios.fails(lambda: queue.enqueue(rq_jobs.hang, started, job_id="long", unique=True)), "unique")
            until("started", lambda: client.lpop(started))
            until("asked to stop", lambda: rq.command.send_stop_job_command(client, "long") is None)
            ends(long, "stopped")
            yield "unique jobs, stop"


for framework in (Celery(), RQ()):
    scenarios.run(framework)
