"""What every library is put through. A library is described by a subclass of Library; run() reports how it fared."""

import json
import os
import socket
import threading
import time
import traceback

HOST = os.environ["PROXY_HOST"]
PORT = int(os.environ["PROXY_PORT"])

LONG = 30.0  # seconds: a TTL that no scenario outlives
SHORT = 3.0  # a TTL that a scenario waits for
SOON = 20.0  # within which what must happen happens, on a busy machine

BINARY = bytes(range(256)) + b"\r\n$-1\r\n"


class Library:
    """One version of a library. Locks are objects with acquire(wait), release() and extend(ttl), which return whether
    they succeeded; an error that is not "somebody else has it" is raised."""

    name = version = ""
    tells = True  # release says whether the lock was still held
    extends = True
    tokens = False  # the caller chooses the token
    reentrant = False
    watchdog = None  # the TTL, in seconds, of a lock that keep=True keeps alive

    def client(self):
        raise NotImplementedError

    def close(self, client):
        client.close()

    def lock(self, client, name, ttl, token=None, keep=False):
        raise NotImplementedError

    def data(self, run, client, name):
        """Uses everything else that the library has, under names that begin with name; run.key names a lock. Yields
        what it has used."""
        raise Absent


class Absent(Exception):
    pass


def want(condition, what):
    if not condition:
        raise AssertionError(what)


_control = socket.create_connection(("127.0.0.1", int(os.environ["CONTROL_PORT"])), timeout=60)
_answers = _control.makefile("r")


def ask(wish):
    _control.sendall(wish.encode() + b"\n")
    answer = _answers.readline().strip()
    want(answer == "ok", f"{wish}: {answer}")


def until(what, check):
    """Polls until check returns true. Errors count as false, but the last one is raised at the deadline."""
    end = time.monotonic() + SOON
    while True:
        error = None
        try:
            if check():
                return
        except Exception as e:  # the libraries have no common error
            error = e
        if time.monotonic() > end:
            raise AssertionError(f"{what}: not within {SOON} s: {error!r}")
        time.sleep(0.05)


def fails(act):
    """Whether act is refused: it returns false or raises."""
    try:
        return not act()
    except Exception:
        return True


class Run:
    """One scenario's clients and its lock's name."""

    def __init__(self, library, scenario):
        self.library = library
        self.key = f"lock:{library.name}:{library.version}:{scenario}".replace(" ", "-")
        self.clients = []

    def client(self):
        c = self.library.client()
        self.clients.append(c)
        return c

    def lock(self, ttl=LONG, client=None, **options):
        """A lock of a client of its own, unless one is given."""
        return self.library.lock(client or self.client(), self.key, ttl, **options)

    def close(self):
        for c in self.clients:
            try:
                self.library.close(c)
            except Exception:
                pass


def take(run):
    lock = run.lock()
    want(lock.acquire(), "not granted")
    ask("held")
    lock.release()


def refuse(run):
    want(run.lock().acquire(), "not granted")
    other = run.lock()
    for _ in range(3):
        want(not other.acquire(), "granted twice")


def release(run):
    first, second = run.lock(), run.lock()
    for lock in (first, second, first):
        want(lock.acquire(), "not granted")
        want(lock.release(), "not released")
        ask("empty")


def stranger(run):
    late, holder = run.lock(SHORT), run.lock()
    want(late.acquire(), "not granted")
    until("the next holder", holder.acquire)
    want(fails(late.release) or not run.library.tells, "a stranger released")
    want(not run.lock().acquire(), "the lock was taken from its holder")
    want(holder.release(), "the holder did not release")


def extend(run):
    if not run.library.extends:
        raise Absent
    lock = run.lock(SHORT)
    start = time.monotonic()
    want(lock.acquire(), "not granted")
    want(lock.extend(LONG), "not extended")
    time.sleep(max(0.0, start + SHORT + 0.5 - time.monotonic()))
    want(not run.lock().acquire(), "the first TTL ended the lock")
    want(lock.release(), "not released")


def expiry(run):
    start = time.monotonic()
    want(run.lock(SHORT).acquire(), "not granted")
    other = run.lock()
    until("the next holder", other.acquire)
    want(time.monotonic() - start >= SHORT, "granted before the TTL was over")
    want(other.release(), "not released")


def wait(run):
    lock, other = run.lock(), run.lock()
    want(lock.acquire(), "not granted")
    outcome = {}

    def waiter():
        outcome["granted"] = other.acquire(wait=LONG / 2)
        outcome["at"] = time.monotonic()
        if outcome["granted"]:
            outcome["released"] = other.release()  # some libraries bind a lock to its thread

    thread = threading.Thread(target=waiter, daemon=True)
    thread.start()
    time.sleep(0.5)  # most probably it waits by now; if not, it is granted at once, rightly
    released = time.monotonic()
    want(lock.release(), "not released")
    thread.join(LONG)
    want(outcome.get("granted"), "the waiter was not granted")
    want(outcome["at"] >= released, "the waiter was granted before the release")
    want(outcome["at"] - released < SOON, "the waiter was granted late")
    want(outcome["released"], "the waiter did not release")


def lost(run):
    lock = run.lock()
    want(lock.acquire(), "not granted")
    ask("lose")
    if run.library.extends:
        want(fails(lambda: lock.extend(LONG)), "a lost lock was extended")
    want(fails(lock.release) or not run.library.tells, "a lost lock was released")
    want(run.lock().acquire(), "not granted to the next")


def no_quorum(run):
    held = run.lock()
    want(held.acquire(), "not granted")
    other = run.library.lock(run.client(), run.key + ":other", LONG)
    ask("down 2")
    start = time.monotonic()
    want(fails(other.acquire), "granted without a quorum")
    want(time.monotonic() - start < SOON, "refused late")
    want(fails(held.release) or not run.library.tells, "released without a quorum")
    ask("up")
    until("granted with the quorum back", run.library.lock(run.client(), run.key + ":third", LONG).acquire)


def minority(run):
    ask("down 1")
    lock, other = run.lock(), run.lock()
    want(lock.acquire(), "not granted")
    want(not other.acquire(), "granted twice")
    want(lock.release(), "not released")
    want(other.acquire(), "not granted to the next")
    want(other.release(), "not released by the next")


def reentrance(run):
    if not run.library.reentrant:
        raise Absent
    lock, other = run.lock(), run.lock()
    want(lock.acquire() and lock.acquire(), "not granted twice to its holder")
    lock.release()
    want(not other.acquire(), "one release of two freed the lock")
    lock.release()
    want(other.acquire(), "not granted to the next")


def watchdog(run):
    if run.library.watchdog is None:
        raise Absent
    lock = run.lock(run.library.watchdog, keep=True)
    want(lock.acquire(), "not granted")
    other = run.lock()
    end = time.monotonic() + 3 * run.library.watchdog
    while time.monotonic() < end:
        want(not other.acquire(), "granted while the watchdog ran")
        time.sleep(0.1)
    want(lock.release(), "not released")
    until("the next holder", other.acquire)


def binary_token(run):
    if not run.library.tokens:
        raise Absent
    for token in (BINARY, b""):
        lock, other = run.lock(token=token), run.lock(token=b"other")
        want(lock.acquire(), "not granted")
        want(not other.acquire(), "granted twice")
        want(fails(other.release), "another token released")
        want(lock.extend(LONG), "not extended")
        want(lock.release(), "not released")
        ask("empty")


def reconnect(run):
    holder, other = run.client(), run.client()
    lock, second, again = run.lock(client=holder), run.lock(client=holder), run.lock(client=other)
    want(lock.acquire(), "not granted")
    want(not again.acquire(), "granted twice")
    ask("restart")
    until("an answer to each", lambda: not second.acquire() and not again.acquire())
    want(lock.release(), "not released")
    want(again.acquire(), "not granted to the next")
    want(again.release(), "not released")


def data(run):
    client = run.client()
    lock = run.lock(client=client)
    want(lock.acquire(), "not granted")
    used = list(run.library.data(run, client, run.key.replace("lock:", "data:", 1)))
    ask("held")
    ask("apart")
    want(lock.release(), "not released")
    ask("empty")
    return ", ".join(used)


SCENARIOS = {
    "take": take,
    "refuse": refuse,
    "release": release,
    "stranger": stranger,
    "extend": extend,
    "expiry": expiry,
    "wait": wait,
    "lost": lost,
    "no quorum": no_quorum,
    "minority": minority,
    "re-entrance": reentrance,
    "watchdog": watchdog,
    "binary token": binary_token,
    "reconnect": reconnect,
    "data": data,
}


def run(library):
    if os.environ.get("LIBRARIES", "") not in library.name:
        return
    for name, scenario in SCENARIOS.items():
        if name not in os.environ["SCENARIOS"].split(","):
            continue
        result, why, used = "ok", "", None
        this = Run(library, name)
        try:
            ask("reset")
            used = scenario(this)
        except Absent:
            result = "absent"
        except Exception as e:
            result, why = "failed", f"{type(e).__name__}: {e}"
            traceback.print_exc()
        this.close()
        report = {"library": library.name, "version": library.version, "scenario": name, "result": result, "why": why}
        report["used"] = used or ""
        print(json.dumps(report), flush=True)
