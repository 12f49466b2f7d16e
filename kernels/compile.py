"""The one way to compile a loop: `@kernel`. It also decides where machine code is cached.

numba's cache notices a change in a kernel's own file, not in the files of the kernels that it calls
or of the constants that it froze. So the cache folder's name holds the hash of every source file
that declares kernels, and of those that such a file imports from: another version of the code looks
into another folder. It must be set before the first kernel is declared, which is why nothing else
in the project names `numba.njit`.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import numba

from kernels.cache import cache_bases, cache_folder

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
    return digest.hexdigest()


# The module attribute, not the environment: it holds even if numba was imported before us.
vars(numba.config)["CACHE_DIR"] = str(cache_folder(cache_bases(), f"kernels-{source_hash()}"))

# nogil: threads scale. No parallel=True: under Beam each worker has one core.
kernel = numba.njit(nogil=True, cache=True)
# A kernel that is copied into its callers: a call hands over seven numbers for each array.
inner_kernel = numba.njit(nogil=True, cache=True, forceinline=True)
