"""One writer of a corpus on a store: a lease by put if absent, with a fencing number.

    lease/00000003.json     owner, and until when by the owner's clock; the highest number holds

A takeover creates the next number: of two that try, one wins. What the holder of a number writes
for the whole corpus stands under that number, and the highest is what readers see: so a writer that
was taken over, even one that slept for a day between its check and its put, changes nothing. The
clock only says when one may try: one that jumps costs a takeover too early or too late, never a
corpus.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pipeline import objects

LEASE_SECONDS = 60.0
RENEW_SECONDS = 15.0

Clock = Callable[[], float]


class LeaseError(ValueError):
    """Another process writes to this corpus, or took it over; names it and the remedy."""


@dataclass(frozen=True)
class Lease:
    url: str  # of the corpus
    number: int  # the fencing number: each holder has a higher one than all before
    owner: str


def acquire(url: str, clock: Clock = time.time) -> Lease:
    """Take the lease of a corpus.

    Raises:
        LeaseError: another process holds it; names it, and when it may be taken over. Or the
            store has no put if absent.
    """
    number = latest(url)
    if number:
        held = json.loads(objects.read(_name(url, number)))
        left = held["expires"] - clock()
        # Further ahead than any holder writes: its clock was wrong, or ours is.
        if 0 < left <= 2 * LEASE_SECONDS:
            raise LeaseError(
                f"{url}: another assay process writes here ({held['owner']}); wait for it, or stop "
                f"it and call again in {left:.0f} seconds: what it finished is kept"
            )
    owner = f"process {os.getpid()} on {socket.gethostname()}, {os.urandom(4).hex()}"
    lease = Lease(url, number + 1, owner)
    if not objects.create(_name(url, lease.number), _content(lease, clock() + LEASE_SECONDS)):
        raise LeaseError(f"{url}: another assay process has just begun to write here; call again")
    # Some stores that speak S3 take the condition and put all the same: asked once, by a release.
    if objects.create(_name(url, lease.number), _content(lease, 0)):
        raise LeaseError(
            f"{url}: this store writes over what stands, though asked not to (If-None-Match), so "
            "two writers could spoil a corpus; write to a folder or another store, then copy it"
        )
    return lease


def renew(lease: Lease, clock: Clock = time.time) -> None:
    """Hold it for LEASE_SECONDS more.

    Raises:
        LeaseError: it was taken over.
    """
    check(lease.url, lease.number)
    objects.write(_name(lease.url, lease.number), _content(lease, clock() + LEASE_SECONDS))


def release(lease: Lease) -> None:
    """Let others take it at once. The number stays: the next is higher."""
    objects.write(_name(lease.url, lease.number), _content(lease, 0))


def check(url: str, number: int) -> None:
    """Refuse to go on under a number that is not the last; one request.

    Raises:
        LeaseError: a later lease stands.
    """
    if latest(url) > number:  # not only the next: `gc` may have taken that away
        raise LeaseError(
            f"{url}: lease {number} was taken over by another process, as if this one had died "
            "(asleep, cut off, or a clock that jumped?); this one stops: what it finished is kept"
        )


def latest(url: str) -> int:
    """The highest number given so far; 0: none."""
    return max((int(name.split(".")[0]) for name in objects.names(f"{url}/lease")), default=0)


@contextmanager
def held(url: str, clock: Clock = time.time, every: float = RENEW_SECONDS) -> Iterator[Lease]:
    """Hold the lease while the block runs; a block that loses it is interrupted.

    Raises:
        LeaseError: another process holds it, or took it over meanwhile.
    """
    lease = acquire(url, clock)
    stop = threading.Event()
    lost: list[Exception] = []

    def keep() -> None:
        while not stop.wait(every):
            try:
                renew(lease, clock)
            except Exception as error:  # whatever it is: without a lease the work must stop
                lost.append(error)
                # A real signal: it wakes a main thread that waits for workers.
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
                return

    thread = threading.Thread(target=keep, daemon=True)
    thread.start()
    try:
        yield lease
    except KeyboardInterrupt:
        if lost:
            raise lost[0] from None
        raise
    finally:
        stop.set()
        thread.join()
        if not lost:
            release(lease)


def _name(url: str, number: int) -> str:
    return f"{url}/lease/{number:08d}.json"


def _content(lease: Lease, expires: float) -> bytes:
    return json.dumps({"owner": lease.owner, "expires": expires}).encode()
