"""The lock of redis-py, which others hand on."""

import redis


class OwnLock:
    def __init__(self, lock, token=None):
        self.lock, self.token = lock, token

    def acquire(self, wait=0.0):
        return self.lock.acquire(blocking=wait > 0, blocking_timeout=wait or None, token=self.token)

    def release(self):
        try:
            self.lock.release()
        except redis.exceptions.LockError:
            return False
        return True

    def extend(self, ttl):
        self.lock.timeout = ttl  # reacquire sets it again
        try:
            return self.lock.extend(ttl, replace_ttl=True) and self.lock.reacquire() and self.lock.owned()
        except redis.exceptions.LockError:
            return False
