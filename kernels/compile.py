"""The one way to compile a loop: `@kernel`. It also decides where machine code is cached.

numba's cache notices a change in a kernel's own file, not in the files of the kernels that it calls
or of the constants that it froze. So the cache folder's name holds the hash of every source file
that declares kernels, and of those that such a file imports from: another version of the code looks
into another folder. So it is with the data files (lists, tables) that constants are made from: a
changed list must not meet machine code that froze the old one. The folder must be set before the
first kernel is declared, which is why nothing else in the project names `numba.njit`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba import types
from numba.core import event

from kernels import stopwatch
from kernels.cache import cache_bases, cache_folder

F = TypeVar("F", bound=Callable[..., Any])

ROOT = Path(__file__).resolve().parent.parent
KERNEL_FOLDERS = ("kernels", "filters", "dedup")
_IMPORT = re.compile(
    rb"^from ((?:%b)\.\w+) import" % b"|".join(map(str.encode, KERNEL_FOLDERS)), re.M
)


def source_hash(root: Path = ROOT) -> str:
    """16 hex digits over the names and contents of all files that decide what kernels do."""
    sources = {
        f"{folder}.{path.stem}".encode(): path.read_bytes()
        for folder in KERNEL_FOLDERS
        for path in sorted((root / folder).glob("*.py"))
    }
    declaring = [name for name, source in sources.items() if b"kernels.compile import" in source]
    used = {found for name in declaring for found in _IMPORT.findall(sources[name])}
    digest = hashlib.blake2b(digest_size=8)
    for name, source in sources.items():
        if name in used or name in declaring:
            digest.update(name + b"\0" + source + b"\0")
    for path in sorted(path for folder in KERNEL_FOLDERS for path in _data_files(root / folder)):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def _data_files(folder: Path) -> Iterator[Path]:
    """1.6 MB in all: 2 ms of a start."""
    for pattern in ("*.tsv", "words/*.tsv", "words/*.toml"):
        yield from folder.glob(pattern)


# The module attribute, not the environment: it holds even if numba was imported before us.
FOLDER = cache_folder(cache_bases(), f"kernels-{source_hash()}")
vars(numba.config)["CACHE_DIR"] = str(FOLDER)


class _Compilations(event.Listener):
    """They are left out of what `stopwatch` tells. One thread compiles at a time; what a kernel
    calls is compiled within it.
    """

    depth = 0

    def on_start(self, _: event.Event) -> None:
        if self.depth == 0:
            self.began = stopwatch.of_thread()
        self.depth += 1

    def on_end(self, _: event.Event) -> None:
        self.depth -= 1
        if self.depth == 0:
            stopwatch.leave_out(self.began)


_listen: Any = event.register
_listen("numba:compile", _Compilations())


def _declared(**options: Any) -> Callable[[F], F]:
    """numba's compiler, with a cache, for which a kernel called with a constant is no other kernel.

    numba types `n = 0` as "the number 0" until it sees that n changes, and compiles what is called
    with it for that too: of 44 CPU-s of compilation 8 went into code that nothing runs.
    """
    compiler: Any = numba.njit(nogil=True, cache=True, **options)
    unliteral: Any = types.unliteral

    def declare(function: F) -> F:
        dispatcher = compiler(function)
        resolve = dispatcher.get_call_template

        def without_constants(args: tuple[Any, ...], kws: dict[str, Any]) -> Any:
            named = {name: unliteral(kind) for name, kind in kws.items()}
            return resolve(tuple(map(unliteral, args)), named)

        dispatcher.get_call_template = without_constants
        return cast("F", dispatcher)

    return declare


# In a kernel, elements are put one by one: `a[i:j] = b` and `a[i] = b, c` cost 2 CPU-s each, for
# numba compiles what would tell of unequal shapes.
# nogil: threads scale. No parallel=True: under Beam each worker has one core.
kernel = _declared()
# A kernel that is copied into its callers: a call hands over seven numbers for each array.
inner_kernel = _declared(forceinline=True)
# A kernel that makes no array and hands none back, and so need not count who holds its arguments:
# a call with a tuple of twelve arrays took two locked counts for each.
leaf_kernel = _declared(_nrt=False)
