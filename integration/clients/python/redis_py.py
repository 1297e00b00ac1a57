"""redis-py: commands by hand, its Lock class, and its asyncio Lock class."""

import asyncio
import threading
import time
import uuid

import redis
import redis.asyncio

import scenarios
from own_lock import OwnLock

RELEASE = 'if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("del",KEYS[1]) else return 0 end'
EXTEND = 'if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("pexpire",KEYS[1],ARGV[2]) else return 0 end'


class HandLock:
    def __init__(self, client, name, ttl, token):
        self.client, self.name, self.ms = client, name, int(ttl * 1000)
        self.token = uuid.uuid4().bytes if token is None else token
        self.release_script = client.register_script(RELEASE)

    def acquire(self, wait=0.0):
        end = time.monotonic() + wait
        while not self.client.set(self.name, self.token, nx=True, px=self.ms):
            if time.monotonic() >= end:
                return False
            time.sleep(0.05)
        scenarios.want(self.client.get(self.name) == self.token, "GET tells another token")
        scenarios.want(0 < self.client.pttl(self.name) <= self.ms + 1000, "PTTL out of range")
        return True

    def release(self):
        return self.release_script(keys=[self.name], args=[self.token]) == 1

    def extend(self, ttl):
        return self.client.eval(EXTEND, 1, self.name, self.token, int(ttl * 1000)) == 1


class ByHand(scenarios.Library):
    name, version, tokens = "redis-py", redis.__version__, True

    def client(self):
        return redis.Redis(scenarios.HOST, scenarios.PORT, client_name="by-hand")

    def lock(self, client, name, ttl, token=None, keep=False):
        return HandLock(client, name, ttl, token)


class Lock(scenarios.Library):
    name, version = "redis-py Lock", redis.__version__

    def client(self):
        return redis.Redis(scenarios.HOST, scenarios.PORT)

    def lock(self, client, name, ttl, token=None, keep=False):
        return OwnLock(client.lock(name, timeout=ttl, thread_local=False))


class AsyncLock:
    def __init__(self, client, lock):
        self.client, self.lock = client, lock

    def acquire(self, wait=0.0):
        return self.client.do(lambda: self.lock.acquire(blocking=wait > 0, blocking_timeout=wait or None))

    def release(self):
        try:
            self.client.do(self.lock.release)
        except redis.exceptions.LockError:
            return False
        return True

    def extend(self, ttl):
        try:
            return self.client.do(lambda: self.lock.extend(ttl, replace_ttl=True))
        except redis.exceptions.LockError:
            return False


class AsyncClient:
    """A client with an event loop of its own, in a thread of its own, as the scenarios are plain functions."""

    def __init__(self):
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        self.redis = redis.asyncio.Redis(host=scenarios.HOST, port=scenarios.PORT)

    def do(self, call):
        async def run():
            return await call()

        return asyncio.run_coroutine_threadsafe(run(), self.loop).result(scenarios.LONG)

    def close(self):
        self.do(getattr(self.redis, "aclose", self.redis.close))
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()


class Async(scenarios.Library):
    name, version = "redis-py asyncio Lock", redis.__version__

    def client(self):
        return AsyncClient()

    def lock(self, client, name, ttl, token=None, keep=False):
        return AsyncLock(client, client.redis.lock(name, timeout=ttl, thread_local=False))


for library in (ByHand(), Lock(), Async()):
    scenarios.run(library)
