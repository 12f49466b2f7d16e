"""Freed memory goes back to the system, in processes that are our own.

glibc keeps what was freed for later, in an arena for each thread, and so does Arrow's allocator;
stages that run one after another would each leave their peak behind. One worker on 44 MB of Chinese
text peaks at 460 MB with this, at 600 MB without, at equal CPU seconds.
"""

from __future__ import annotations

import ctypes
import os

TRIM_THRESHOLD, ARENA_MAX = -1, -8  # of mallopt(3)


def settle() -> None:
    """For the whole process, so never inside somebody else's. Call it before pyarrow loads, which
    looks at the environment once; a user's own setting stands."""
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    _of_glibc("mallopt", TRIM_THRESHOLD, 1_000_000)
    _of_glibc("mallopt", ARENA_MAX, 2)  # threads of gRPC would each keep an arena


def give_back() -> None:
    """Now, also from between what is in use."""
    _of_glibc("malloc_trim", 0)


def _of_glibc(name: str, *arguments: int) -> None:
    function = getattr(ctypes.CDLL(None), name, None)  # other systems have no such function
    if function is not None:
        function(*arguments)
