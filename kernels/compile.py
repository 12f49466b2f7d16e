"""The one way to compile a loop: `@kernel`. It also decides where machine code is cached.

numba's cache notices a change in a kernel's own file, not in the files of the kernels that it calls
or of the constants that it froze. So the cache folder's name holds the hash of every source file
that declares kernels: another version of the code looks into another folder. It must be set before
the first kernel is declared, which is why nothing else in the project names `numba.njit`. A
constant that a kernel freezes must therefore stand in a file with kernels.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import numba

from kernels.cache import cache_bases, cache_folder

ROOT = Path(__file__).resolve().parent.parent
KERNEL_FOLDERS = ("kernels", "filters", "dedup")


def source_hash(root: Path = ROOT) -> str:
    """16 hex digits over the names and contents of all files that declare kernels."""
    digest = hashlib.blake2b(digest_size=8)
    for folder in KERNEL_FOLDERS:
        for path in sorted((root / folder).rglob("*.py")):
            source = path.read_bytes()
            if b"kernels.compile import" in source or folder == "kernels":
                digest.update(str(path.relative_to(root)).encode() + b"\0" + source + b"\0")
    return digest.hexdigest()


# The module attribute, not the environment: it holds even if numba was imported before us.
vars(numba.config)["CACHE_DIR"] = str(cache_folder(cache_bases(), f"kernels-{source_hash()}"))

# nogil: threads scale. No parallel=True: under Beam each worker has one core.
kernel = numba.njit(nogil=True, cache=True)
# A kernel that is copied into its callers: a call hands over seven numbers for each array.
inner_kernel = numba.njit(nogil=True, cache=True, forceinline=True)
