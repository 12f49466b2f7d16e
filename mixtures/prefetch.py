"""Items of an iterator, made ahead by a thread."""

from __future__ import annotations

import queue
import threading
from collections.abc import Generator, Iterable
from typing import TypeVar

T = TypeVar("T")

POLL_SECONDS = 0.1  # how long the thread goes on after nobody wants more
JOIN_SECONDS = 5.0  # for the item that it is at; a download may take longer, and ends by itself


def ahead(items: Iterable[T], depth: int) -> Generator[T, None, None]:
    """The same items in the same order, up to `depth` of them made before they are asked for.

    An error of the thread is raised here, behind the items before it. The thread ends when this
    generator is closed, exhausted or dropped; it is a daemon, so no exit waits for it.
    """
    if depth < 1:
        yield from items
        return
    made: queue.Queue[tuple[T | None, BaseException | None, bool]] = queue.Queue(depth)
    stop = threading.Event()
    arguments = (items, made, stop)  # not this generator: it could never be dropped
    thread = threading.Thread(target=_make, args=arguments, name="prefetch", daemon=True)
    thread.start()
    try:
        while True:
            item, error, is_last = made.get()
            if error is not None:
                raise error
            if is_last:
                return
            yield item  # type: ignore[misc]  # None is an item too
    finally:
        stop.set()
        thread.join(JOIN_SECONDS)


def _make(items: Iterable[T], made: queue.Queue[object], stop: threading.Event) -> None:
    try:
        for item in items:
            if not _put(made, (item, None, False), stop):
                return
        _put(made, (None, None, True), stop)
    except BaseException as error:  # raised at the consumer
        _put(made, (None, error, False), stop)


def _put(made: queue.Queue[object], item: object, stop: threading.Event) -> bool:
    while not stop.is_set():
        try:
            made.put(item, timeout=POLL_SECONDS)
            return True
        except queue.Full:
            continue
    return False
