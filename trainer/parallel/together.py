"""What fails on one process ends all of them, with its message, within seconds.

A process that fails writes its message into the store of the process group before it leaves. The
others learn of it in one of two ways: a collective breaks (gloo sees a closed connection), and the
message is raised in place of the transport's; or nothing breaks (NCCL waits, a process computes
or reads), and a thread that looks at the store ends the process. Without either, peers wait for
the timeout of a collective, 30 minutes.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import torch.distributed as dist
from torch.distributed.distributed_c10d import _get_default_store

KEY = "assay/failed"
HEARD = "assay/heard"  # how many ranks have read it
LOST = "the process that holds the store, usually rank 0, ended without a message"
LOOK_SECONDS = 1.0
GRACE_SECONDS = 5.0  # for a process to leave by itself, closing its files
EXIT_CODE = 1


class PeerError(ValueError):
    """Another process of the run failed; the message is its own."""


@contextmanager
def together(rank: int, size: int) -> Iterator[None]:
    """Within it, an exception on any rank reaches every rank.

    Raises:
        PeerError: on ranks whose collectives broke because another one failed.
    """
    default: Any = _get_default_store()
    store = default.clone()  # a client of its own: the others wait in their calls
    ended, heard = threading.Event(), list[str]()
    watch = threading.Thread(target=_watch, args=(rank, default.clone(), ended, heard), daemon=True)
    watch.start()
    try:
        yield
        dist.barrier()  # a rank that leaves first may take the store with it
    except BaseException as error:
        heard += _tell(store, f"rank {rank}: {type(error).__name__}: {error}")
        if _of_transport(error):
            raise PeerError(heard[0] if heard else LOST) from error
        _let_others_read(store, size)
        raise
    finally:
        ended.set()
        watch.join()


def _tell(store: Any, mine: str) -> list[str]:
    """Leave a message, unless one is there; returns that of another rank."""
    try:
        first = str(store.compare_set(KEY, "", mine).decode())
    except (RuntimeError, OSError):  # the store is gone, and who held it knows why
        return []
    return [] if first == mine else [first]


def _let_others_read(store: Any, size: int) -> None:
    """Stay a moment: the store goes with the process that holds it."""
    until = time.monotonic() + GRACE_SECONDS
    with suppress(RuntimeError, OSError):
        while store.add(HEARD, 0) < size - 1 and time.monotonic() < until:
            time.sleep(0.05)


def _of_transport(error: BaseException) -> bool:
    """Whether a collective broke, rather than anything of this rank itself."""
    return isinstance(error, dist.DistError) or (
        type(error) is RuntimeError and any(x in str(error) for x in ("gloo", "Gloo", "NCCL"))
    )


def _watch(rank: int, store: Any, ended: threading.Event, heard: list[str]) -> None:
    """Hear of failures, and end the process when it does not leave by itself."""
    while not heard and not ended.wait(LOOK_SECONDS):
        try:
            if store.check([KEY]):
                heard.append(store.get(KEY).decode())
                store.add(HEARD, 1)
        except (RuntimeError, OSError):
            heard.append(LOST)
    if heard and not ended.wait(GRACE_SECONDS):
        print(f"assay: rank {rank} ends, because of {heard[0]}", file=sys.stderr, flush=True)
        os._exit(EXIT_CODE)
