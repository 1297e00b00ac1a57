"""Lock libraries over redis-py: redlock-py, pottery, django-redis, python-redis-lock."""

import importlib.metadata
import time

import redis

import scenarios
from own_lock import OwnLock


class RedlockPy(scenarios.Library):
    """redlock-py with the proxy as its one server. Its unlock tells nothing."""

    name, version = "redlock-py", importlib.metadata.version("redlock-py")
    tells = extends = False

    def client(self):
        import redlock

        server = {"host": scenarios.HOST, "port": scenarios.PORT, "db": 0}
        return redlock.Redlock([server], retry_count=1)

    def close(self, client):
        for server in client.servers:
            server.close()

    def lock(self, client, name, ttl, token=None, keep=False):
        return RedlockPyLock(client, name, ttl)


class RedlockPyLock:
    def __init__(self, client, name, ttl):
        self.client, self.name, self.ms, self.held = client, name, int(ttl * 1000), None

    def acquire(self, wait=0.0):
        end = time.monotonic() + wait
        while True:
            self.held = self.client.lock(self.name, self.ms)
            if self.held or time.monotonic() >= end:
                return bool(self.held)
            time.sleep(0.05)

    def release(self):
        self.client.unlock(self.held)
        return True


class Pottery(scenarios.Library):
    name, version = "pottery Redlock", importlib.metadata.version("pottery")

    def client(self):
        return redis.Redis(scenarios.HOST, scenarios.PORT)

    def lock(self, client, name, ttl, token=None, keep=False):
        from pottery import Redlock

        return PotteryLock(Redlock(key=name, masters={client}, auto_release_time=ttl))


class PotteryLock:
    def __init__(self, lock):
        self.lock = lock

    def acquire(self, wait=0.0):
        return self.lock.acquire(blocking=wait > 0, timeout=wait or -1)

    def release(self):
        from pottery import ReleaseUnlockedLock

        try:
            self.lock.release()
        except ReleaseUnlockedLock:
            return False
        return True

    def extend(self, ttl):
        from pottery import ExtendUnlockedLock

        self.lock.auto_release_time = ttl
        try:
            self.lock.extend()
        except ExtendUnlockedLock:
            return False
        return True


class DjangoRedis(scenarios.Library):
    """cache.lock of django-redis."""

    name, version, tokens = "django-redis", importlib.metadata.version("django-redis"), True

    def client(self):
        import django.conf
        from django_redis.cache import RedisCache

        if not django.conf.settings.configured:
            django.conf.settings.configure()
        return RedisCache(f"redis://{scenarios.HOST}:{scenarios.PORT}/0", {})

    def lock(self, client, name, ttl, token=None, keep=False):
        return OwnLock(client.lock(name, timeout=ttl, thread_local=False), token)

    def data(self, run, client, name):
        want = scenarios.want
        client.set(name + ":value", {"a": [1, 2]}, timeout=100)
        want(client.get(name + ":value") == {"a": [1, 2]} and 0 < client.ttl(name + ":value") <= 100, "a value")
        client.set(name + ":number", 1)
        want(client.incr(name + ":number") == 2 and not client.add(name + ":number", 5), "a number")
        yield "strings"
        client.set_many({name + ":x": "1", name + ":y": "2"})
        want(client.get_many([name + ":x", name + ":y"]) == {name + ":x": "1", name + ":y": "2"}, "set_many")
        yield "pipeline"
        want(client.delete_pattern(name + ":[xy]") == 2 and client.get(name + ":x") is None, "delete_pattern")
        yield "SCAN"


class PythonRedisLock(scenarios.Library):
    name, version, tokens, watchdog = "python-redis-lock", importlib.metadata.version("python-redis-lock"), True, 1.0

    def client(self):
        return redis.Redis(scenarios.HOST, scenarios.PORT)

    def lock(self, client, name, ttl, token=None, keep=False):
        import redis_lock

        return PythonRedisLockLock(redis_lock.Lock(client, name, expire=int(ttl), id=token, auto_renewal=keep))


class PythonRedisLockLock:
    def __init__(self, lock):
        self.lock = lock

    def acquire(self, wait=0.0):
        return self.lock.acquire(blocking=wait > 0, timeout=wait or None)

    def release(self):
        from redis_lock import NotAcquired

        try:
            self.lock.release()
        except NotAcquired:
            return False
        return True

    def extend(self, ttl):
        from redis_lock import NotAcquired

        try:
            self.lock.extend(int(ttl))
        except NotAcquired:
            return False
        return True


for library in (RedlockPy(), Pottery(), DjangoRedis(), PythonRedisLock()):
    scenarios.run(library)
