"""aioredlock over aioredis 1."""

import importlib.metadata
import logging
import time

import aioredlock

import scenarios
from own_loop import Loop

logging.disable(logging.CRITICAL)


class Client(Loop):
    def __init__(self):
        super().__init__()
        self.managers = []

    def manager(self, ttl):
        server = {"host": scenarios.HOST, "port": scenarios.PORT}
        made = aioredlock.Aioredlock([server], retry_count=1, internal_lock_timeout=ttl)
        self.managers.append(made)
        return made

    def close(self):
        for manager in self.managers:
            self.do(manager.destroy)
        self.stop()


class Lock:
    def __init__(self, client, name, ttl, token, keep):
        self.client, self.name, self.ttl, self.token, self.held = client, name, None if keep else ttl, token, None
        self.manager = client.manager(ttl)

    def acquire(self, wait=0.0):
        end = time.monotonic() + wait
        while True:
            try:
                self.held = self.client.do(lambda: self.manager.lock(self.name, self.ttl, self.token))
                return True
            except aioredlock.LockAcquiringError:
                if time.monotonic() >= end:
                    return False
            time.sleep(0.05)

    def release(self):
        self.client.do(lambda: self.manager.unlock(self.held))
        return True

    def extend(self, ttl):
        self.client.do(lambda: self.manager.extend(self.held, ttl))
        return True


class Aioredlock(scenarios.Library):
    name, version, tells, tokens, watchdog = "aioredlock", importlib.metadata.version("aioredlock"), False, True, 1.0

    def client(self):
        return Client()

    def lock(self, client, name, ttl, token=None, keep=False):
        return Lock(client, name, ttl, token, keep)


scenarios.run(Aioredlock())
