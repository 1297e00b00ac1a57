"""Locks through redis-py: by hand in RESP2 and RESP3, and with its own Lock class.

usage: locking.py HOST PORT
"""

import sys

import redis

RELEASE = 'if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("del",KEYS[1]) else return 0 end'


def want(what, got, expected):
    if got != expected:
        sys.exit(f"redis-py {redis.__version__}: {what}: got {got!r}, want {expected!r}")


def by_hand(client, key):
    client.delete(key)
    want("SET NX PX", client.set(key, "me", nx=True, px=30000), True)
    want("a second SET NX PX", client.set(key, "you", nx=True, px=30000), None)
    want("GET", client.get(key), b"me")
    want("PTTL in range", 0 < client.pttl(key) <= 30000, True)
    want("TTL in range", 0 < client.ttl(key) <= 30, True)
    want("release by a stranger", client.eval(RELEASE, 1, key, "you"), 0)
    script = client.register_script(RELEASE)
    want("release by the owner", script(keys=[key], args=["me"]), 1)
    want("release again", script(keys=[key], args=["me"]), 0)
    pipe = client.pipeline(transaction=False)
    pipe.set(key, "me", nx=True, px=30000).set(key, "you", nx=True, px=30000).get(key).delete(key)
    want("a pipeline", pipe.execute(), [True, None, b"me", 1])


def with_lock_class(client, name):
    first = client.lock(name, timeout=30)
    second = client.lock(name, timeout=30, blocking=False)
    want("Lock.acquire", first.acquire(), True)
    want("a second Lock.acquire", second.acquire(), False)
    want("Lock.owned", first.owned(), True)
    want("Lock.locked", second.locked(), True)
    want("Lock.extend", first.extend(10), True)
    want("the TTL was added", 30000 < client.pttl(name) <= 40000, True)
    want("Lock.reacquire", first.reacquire(), True)
    want("the TTL was renewed", 0 < client.pttl(name) <= 30000, True)
    first.release()
    want("Lock.acquire after release", second.acquire(), True)
    second.release()
    try:
        second.release()
        sys.exit("redis-py: a lock was released twice")
    except redis.exceptions.LockError:
        pass


def main(host, port):
    for protocol in (2, 3):
        for db in (0, 1):
            client = redis.Redis(host=host, port=port, db=db, protocol=protocol, client_name="locking")
            by_hand(client, f"python:{protocol}:{db}")
            with_lock_class(client, f"python:lock:{protocol}:{db}")
            client.close()
    print(f"ok redis-py {redis.__version__}")


main(sys.argv[1], int(sys.argv[2]))
