"""A packed selection on disk: what its manifest says, and whether its files are as it says.

packing.py writes it, loader.py reads its windows.
"""

from __future__ import annotations

import contextlib
import fcntl
from collections.abc import Collection, Iterator
from dataclasses import astuple, dataclass, fields, replace
from pathlib import Path
from typing import Any

from mixtures.spec import Mixture
from mixtures.tokens import tokens_fingerprint
from pipeline import finished, objects
from pipeline.files import SUSPECTS, file_hash, part_number, read_sealed, unsealed
from pipeline.forgotten import listed
from pipeline.objects import is_url

DOCUMENTS = "documents.arrow"  # schema.selected(): what is packed, also what fills no window
ANSWER = "going-"  # file names of answers.py begin so
PUBLISH = "`assay mix mixture.yaml --tokens N --publish URL`"
PADDED = bytes(16)  # the id of what stands where no document does
PART_TOKENS = 1 << 25  # 64 to 128 MB of ids: one part in memory, few files


@dataclass(frozen=True)
class Packing:
    """How a selection is packed; everything that decides its bytes."""

    seed: int
    sequence_length: int
    tokenizer: str  # hash: the ids, their type, bos and eos
    tokens: str  # fingerprint of the stage that made the ids: its code and versions, not its parts
    part_tokens: int = PART_TOKENS
    policy: str = "concat"  # of layout.py


@dataclass(frozen=True)
class Loss:
    """What packing costs."""

    padding: int = 0  # ids of windows that are no token
    cut: int = 0  # documents of which no window holds the whole
    cut_short: int = 0  # of these, that would fit into one
    headless: int = 0  # tokens in windows that do not hold the beginning of their document

    def __add__(self, other: Loss) -> Loss:
        return Loss(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))


NO_LOSS = Loss()


@dataclass(frozen=True)
class Packed:
    """A packed selection: what manifest.json holds."""

    selection: str  # hash of the selected documents and of the packing; names the folder
    packing: Packing
    num_documents: int
    tokens_in: int
    tokens_out: int
    remainder: int
    windows: tuple[int, ...]  # of each part
    loss: Loss = NO_LOSS  # nothing where it was packed before this was known
    order: str = ""  # hash that the order of windows follows from: see order.py

    @property
    def num_windows(self) -> int:
        return sum(self.windows)

    @property
    def filled(self) -> float:
        """Tokens of a window, on average, by its length: 1 where nothing is padded. Of windows as
        they were packed: not to be asked of what `read_at` returns."""
        if not self.loss.padding:
            return 1.0
        return self.tokens_out / (self.num_windows * self.packing.sequence_length)

    def read_at(self, sequence_length: int) -> Packed:
        """As windows of a length that divides the packed one."""
        pieces = self.packing.sequence_length // sequence_length
        return replace(self, windows=tuple(num * pieces for num in self.windows))


def packing_of(mixture: Mixture, root: Path, tokenizer: str) -> Packing:
    """How a mixture packs what it selects of the corpus at `root`."""
    return Packing(
        seed=mixture.seed,
        sequence_length=mixture.packed_length or mixture.sequence_length,
        tokenizer=tokenizer,
        tokens=tokens_fingerprint(root, tokenizer),
        part_tokens=PART_TOKENS,
        policy=mixture.packing,
    )


def folder_of(root: Path, selection: str) -> Path:
    return finished.home(root) / "packed" / selection


def read_packed(folder: Path, *, hashes: bool = False) -> Packed:
    """What manifest.json holds, if the files are as it says: their sizes, and with `hashes` their
    bytes.

    Raises:
        ValueError: a file is missing, or not as it was written; names it and the remedy.
    """
    found = require_whole(folder, hashes=hashes)
    known = {field.name: found[field.name] for field in fields(Packed) if field.name in found}
    known["packing"] = Packing(**known["packing"])
    known["windows"] = tuple(known["windows"])
    known["loss"] = Loss(**known.get("loss", {}))
    return Packed(**known)


def continued(root: Path, packed: Packed) -> Packed:
    """What a selection reads: itself, in the order that it has where it is packed, or the packed
    selection that it is what is left of, after documents of that were forgotten and masked
    (masking.py)."""
    stands = read_sealed(folder_of(root, packed.selection) / "manifest.json")
    if stands is not None:
        return replace(packed, order=stands.get("order", ""))
    if not listed(root):
        return packed
    for path in sorted((finished.home(root) / "packed").glob("[!.]*/manifest.json")):
        if packed.selection in (read_sealed(path) or {}).get("stands_for", ()):
            return read_packed(path.parent)
    return packed


def read_manifest(folder: str) -> dict[str, Any]:
    """manifest.json of a packed folder, which may be a URL.

    Raises:
        ValueError: it is missing or damaged.
    """
    if not is_url(folder):
        return read_sealed(Path(folder) / "manifest.json") or {}
    try:
        found = unsealed(objects.read(f"{folder}/manifest.json"), strict=True)
    except FileNotFoundError:
        found = None
    if found is None:
        raise ValueError(
            f"{folder}/manifest.json is missing, or not as it was written; publish the plan again: "
            f"{PUBLISH}"
        )
    return found


def forgotten_of(manifest: dict[str, Any]) -> frozenset[bytes]:
    """Ids of the documents that are masked in the folder of a manifest."""
    return frozenset(map(bytes.fromhex, manifest.get("forgotten", ())))


def parts_of(folder: Path) -> set[int]:
    """The parts that are packed in a folder: those that a run asked for."""
    found = read_sealed(folder / "manifest.json", strict=True) or {"files": ()}
    return {part_number(Path(name)) for name in found["files"] if name.startswith("part-")}


def require_parts(folder: Path, wanted: Collection[int]) -> None:
    """Refuse to read parts that can no longer be packed as they were to be.

    Raises:
        ValueError: some of `wanted` are not packed.
    """
    missing = sorted(set(wanted) - parts_of(folder))
    if missing:
        raise ValueError(
            f"{folder}: {len(missing)} of the parts that the run needs were never packed, and "
            "documents of this selection were forgotten since, so their windows cannot be made as "
            "they were planned; keep the number of tokens of the run, or start a new run with "
            "another `seed`"
        )


@contextlib.contextmanager
def packing_held(root: Path) -> Iterator[None]:
    """Nobody packs a selection of this corpus meanwhile: runs pack without holding the corpus."""
    if not (root / "packed").exists():
        yield
        return
    with open(root / "packed" / ".lock", "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def require_whole(folder: Path, *, hashes: bool = True) -> dict[str, Any]:
    """The manifest of a packed folder, if its files are as it says: by their sizes, or with
    `hashes` by their bytes, which reads them all (0.1 s for 1 GB that is in memory).

    Raises:
        ValueError: names the file that is not, and the remedy.
    """
    found = read_sealed(folder / "manifest.json", strict=True)
    if found is None:
        raise ValueError(_damaged(folder, "manifest.json", "is not as it was written"))
    # An earlier version listed the answers that lie beside windows, which may be deleted
    found["files"] = {n: f for n, f in found["files"].items() if not n.startswith(ANSWER)}
    for name, known in found["files"].items():
        file = folder / name
        size = file.stat().st_size if file.exists() else None
        if size is None:
            raise ValueError(_damaged(folder, name, "is missing"))
        right = (known["xxh3"], known.get("before"))  # before: while it is masked
        if size != known["bytes"] or (hashes and file_hash(file) not in right):
            raise ValueError(_damaged(folder, name, "is not as it was written"))
    return found


def _damaged(folder: Path, name: str, what: str) -> str:
    return f"{folder / name} {what} {SUSPECTS}; {remedy(str(folder))}"


def remedy(folder: str) -> str:
    """What makes the windows of a damaged packed folder, which may be a URL, again."""
    if is_url(folder):  # publishing sends what is not there
        return f"delete {folder} and publish the plan again: {PUBLISH}"
    return f"delete the folder {folder}, and it will be packed again"
