"""redis-py: commands by hand, its Lock class, and its asyncio Lock class."""

import asyncio
import threading
import time
import uuid

import redis
import redis.asyncio

import scenarios
from scenarios import fails, until, want
from own_lock import OwnLock
from own_loop import Loop

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

    def data(self, run, client, name):
        return use(client, run.client(), name, run.key + ":piped")


def use(client, other, name, piped):
    text, number, fields, items = name + ":text", name + ":number", name + ":fields", name + ":items"
    client.set(text, "one", ex=100)
    want(client.get(text) == b"one" and client.incr(number, 2) == 2, "strings")
    yield "strings"
    client.hset(fields, mapping={"a": 1, "b": 2})
    want(client.hgetall(fields) == {b"a": b"1", b"b": b"2"}, "hash")
    yield "hash"
    client.rpush(items, "x", "y")
    want(client.lrange(items, 0, -1) == [b"x", b"y"], "list")
    yield "list"
    popped = []
    waiter = threading.Thread(target=lambda: popped.append(client.blpop(name + ":queue", timeout=scenarios.LONG)), daemon=True)
    waiter.start()
    other.rpush(name + ":queue", "z")
    waiter.join(scenarios.LONG)
    want(popped == [((name + ":queue").encode(), b"z")], f"BLPOP: {popped}")
    yield "BLPOP"
    with client.pipeline() as p:
        p.watch(number)
        next_number = int(p.get(number)) + 1
        p.multi()
        p.set(number, next_number)
        p.hincrby(fields, "a", 1)
        want(p.execute() == [True, 2], "MULTI")
    with client.pipeline() as p:
        p.watch(number)
        other.incr(number)
        p.multi()
        p.set(number, 100)
        want(fails(p.execute), "WATCH")
    yield "WATCH, MULTI"
    with client.pipeline(transaction=False) as p:
        p.set(text, "two").set(piped, "token", nx=True, px=30000).get(text).get(piped).delete(piped).incr(number)
        replies = p.execute()
        want(replies == [True, True, b"two", b"token", 1, 5], f"pipeline: {replies}")
    yield "pipeline"
    listener = client.pubsub(ignore_subscribe_messages=True)
    listener.subscribe(name + ":news")
    until("heard", lambda: client.publish(name + ":news", "hello") == 1)
    messages = []
    until("a message", lambda: messages.append(listener.get_message(timeout=1)) or messages[-1])
    want(messages[-1]["data"] == b"hello", f"pub/sub: {messages[-1]}")
    listener.close()
    yield "pub/sub"
    found = set(client.scan_iter(match=name + ":*"))
    want(found == {k.encode() for k in (text, number, fields, items)}, f"SCAN: {found}")
    yield "SCAN"
    double = client.register_script('return redis.call("incrby", KEYS[1], redis.call("get", KEYS[1]))')
    want(double(keys=[number]) == 10, "script")
    yield "scripts"


class Lock(scenarios.Library):
    name, version, tokens = "redis-py Lock", redis.__version__, True

    def client(self):
        return redis.Redis(scenarios.HOST, scenarios.PORT)

    def lock(self, client, name, ttl, token=None, keep=False):
        return OwnLock(client.lock(name, timeout=ttl, thread_local=False), token)


class AsyncLock:
    def __init__(self, client, lock, token):
        self.client, self.lock, self.token = client, lock, token

    def acquire(self, wait=0.0):
        return self.client.do(lambda: self.lock.acquire(blocking=wait > 0, blocking_timeout=wait or None, token=self.token))

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


class AsyncClient(Loop):
    def __init__(self):
        super().__init__()
        self.redis = redis.asyncio.Redis(host=scenarios.HOST, port=scenarios.PORT)

    def close(self):
        self.do(getattr(self.redis, "aclose", self.redis.close))
        self.stop()


async def use_async(client, name, piped):
    text, number, fields, items = name + ":text", name + ":number", name + ":fields", name + ":items"
    await asyncio.gather(client.set(text, "one"), client.incr(number, 2), client.hset(fields, "a", 1), client.rpush(items, "x"))
    got = await asyncio.gather(client.get(text), client.get(number), client.hgetall(fields), client.lrange(items, 0, -1))
    want(got == [b"one", b"2", {b"a": b"1"}, [b"x"]], f"many at once: {got}")
    popped, _ = await asyncio.gather(client.blpop(name + ":queue", timeout=20), client.rpush(name + ":queue", "z"))
    want(popped == ((name + ":queue").encode(), b"z"), f"BLPOP: {popped}")
    async with client.pipeline() as p:
        replies = await p.incr(number).hincrby(fields, "a", 1).execute()
        want(replies == [3, 2], f"MULTI: {replies}")
    async with client.pipeline(transaction=False) as p:
        replies = await p.set(piped, "token", nx=True, px=30000).incr(number).delete(piped).get(number).execute()
        want(replies == [True, 4, 1, b"4"], f"pipeline: {replies}")
    listener = client.pubsub(ignore_subscribe_messages=True)
    await listener.subscribe(name + ":news")
    while await client.publish(name + ":news", "hello") != 1:
        await asyncio.sleep(0.05)
    message = None
    while message is None:
        message = await listener.get_message(ignore_subscribe_messages=True, timeout=1)
    want(message["data"] == b"hello", f"pub/sub: {message}")
    await getattr(listener, "aclose", listener.close)()
    found = {k async for k in client.scan_iter(match=name + ":*")}
    want(found == {k.encode() for k in (text, number, fields, items)}, f"SCAN: {found}")
    double = client.register_script('return redis.call("incrby", KEYS[1], redis.call("get", KEYS[1]))')
    want(await double(keys=[number]) == 8, "script")
    return ["strings", "hash", "list", "BLPOP", "MULTI", "pipeline", "pub/sub", "SCAN", "scripts"]


class Async(scenarios.Library):
    name, version, tokens = "redis-py asyncio Lock", redis.__version__, True

    def client(self):
        return AsyncClient()

    def data(self, run, client, name):
        return client.do(lambda: use_async(client.redis, name, run.key + ":piped"))

    def lock(self, client, name, ttl, token=None, keep=False):
        return AsyncLock(client, client.redis.lock(name, timeout=ttl, thread_local=False), token)


for library in (ByHand(), Lock(), Async()):
    scenarios.run(library)
