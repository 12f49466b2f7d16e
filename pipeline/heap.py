"""Freed memory goes back to the system, in processes that are our own.

glibc keeps what was freed for later, in an arena for each thread, and so does Arrow's allocator;
stages that run one after another would each leave their peak behind. One worker on 44 MB of Chinese
text peaks at 460 MB with this, at 600 MB without.

Between parts it goes back, small blocks not within: what is given back after each use (all above
128 kB, where only TRIM_THRESHOLD is set) costs its pages anew each time. Ingest of that text
touches 110,000 new pages so, and 30,000 with the thresholds here: all stages take 5.8 and 4.6 CPU
seconds. Larger blocks go back at once: kept to 32 MB they make no stage faster, and on 0.2 GB with
two workers the peak 830 MB instead of 750.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Iterator

TRIM_THRESHOLD, MMAP_THRESHOLD, PERTURB, ARENA_MAX = -1, -3, -6, -8  # of mallopt(3)
ENVIRONMENT = {  # read when numpy and pyarrow load; a setting of the user's own stands
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "OPENBLAS_NUM_THREADS": "1",  # no thread may run where processes are forked: workers.py
    "JE_ARROW_MALLOC_CONF": "background_thread:false",  # pyarrow's, likewise
}


def settle() -> None:
    """For the whole process, so never inside somebody else's, and for those that it starts. Call it
    before numpy and pyarrow load."""
    settle_children()
    _of_glibc("mallopt", TRIM_THRESHOLD, 8_000_000)
    _of_glibc("mallopt", MMAP_THRESHOLD, 4_000_000)
    _of_glibc("mallopt", ARENA_MAX, 2)  # threads of gRPC would each keep an arena


def settle_children() -> None:
    """For the processes that this one starts."""
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)


@contextlib.contextmanager
def zeroed() -> Iterator[None]:
    """What is allocated within (blocks above 1 kB) is zeros: glibc fills it with the opposite of
    this byte, to find those who rely on it. fastText 0.9.2 needs it: see learned/train.py."""
    _of_glibc("mallopt", PERTURB, 0xFF)
    try:
        yield
    finally:
        _of_glibc("mallopt", PERTURB, 0)


def give_back() -> None:
    """Now, also from between what is in use."""
    _of_glibc("malloc_trim", 0)


def _of_glibc(name: str, *arguments: int) -> None:
    function = getattr(ctypes.CDLL(None), name, None)  # other systems have no such function
    if function is not None:
        function(*arguments)
