"""An index of documents that were had before: enough to leave out their copies, without their text.

    index.json                     settings of `near`, what our hashes are (`probe`), its corpora,
                                   size and hash of every file; sealed
    keys/part-00000.parquet        schema.BAND_KEYS of all documents of a part
    documents/part-00000.parquet   schema.INDEXED, a row for each of them
    forest/part-00000.parquet      schema.EDGES: what the keys of a corpus join by themselves

It holds what pipeline/linked.py takes of a corpus, and 64-bit shingle hashes whole, so that pairs
are verified as from the text: what stays is what would stay beside the corpus itself. The folder is
complete in itself and may lie on a store; `copy_index_writing.py` makes it.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipeline import disk, objects, schema
from pipeline.config import ConfigError
from pipeline.corpus import CorpusError
from pipeline.dedup_settings import Near
from pipeline.files import hash_once, part_name, read_sealed, replacing
from pipeline.fingerprint import fingerprint
from pipeline.tables import names_of

MANIFEST = "index.json"
FORMAT = 1
# Level of `unique` -> columns by which a copy is known; the first that is there counts.
COLUMNS: dict[str, tuple[str, ...]] = {
    "url": ("url_hash",),
    "exact": ("content_hash",),
    "folded": ("folded_hash", "content_hash"),
    "near": ("content_hash",),
    "contained": ("content_hash",),  # after that as near copies: whom it holds is not looked for
    "semantic": ("content_hash",),  # after that as near copies: an index has no embeddings
}
AGAIN = "copy it again, or make it again with `assay dedup index`"
Names = npt.NDArray[np.bytes_]  # S16: hashes that can be compared


@dataclass(frozen=True)
class Group:
    """The parts of one corpus in an index."""

    corpus: str  # where it lay
    made_of: str  # fingerprint of its documents, and of which of them are known
    first: int
    parts: int
    text_bytes: int
    documents: int  # whose copies are known
    verified: int  # contents whose near copies are


@dataclass(frozen=True)
class Index:
    """An index that was found whole."""

    folder: Path
    near: dict[str, Any]
    probe: str
    groups: tuple[Group, ...]
    files: dict[str, dict[str, Any]]

    @property
    def parts(self) -> list[int]:
        return list(range(sum(group.parts for group in self.groups)))

    def fingerprint(self) -> str:
        return fingerprint(self.near, self.probe, self.files)


def folder(place: str) -> Path:
    """The folder of an index, by its path or URL; of a URL the copy of it that is kept here."""
    if not objects.is_url(place):
        return Path(place)
    base = disk.cache_folder()
    url = place.rstrip("/")
    return base / "indexes" / hashlib.sha256(url.encode()).hexdigest()[:16] / Path(url).name


def fetched(place: str) -> Path:
    """The same, brought up to what the store holds.

    Raises:
        ConfigError: there is no index.
        CorpusError: it is damaged.
    """
    at = folder(place)
    if objects.is_url(place):
        url = place.rstrip("/")
        if not objects.exists(f"{url}/{MANIFEST}"):
            raise _none(place)
        with replacing(at / MANIFEST) as temporary:
            temporary.write_bytes(objects.read(f"{url}/{MANIFEST}"))
        for name, entry in _manifest(at)["files"].items():
            path = at / name
            if not path.exists() or hash_once(path) != entry["xxh3"]:
                with replacing(path) as temporary:
                    objects.download(f"{url}/{name}", temporary)
    elif not (at / MANIFEST).exists():
        raise _none(place)
    return at


def _none(place: str) -> ConfigError:
    if not objects.is_url(place) and (Path(place) / "corpus.json").exists():
        return ConfigError(
            f"{place} is a corpus, not an index of one; name it under `corpora` to read its "
            f"documents too, or call `assay dedup index {place} --out {place.rstrip('/')}-index` "
            "and name that in `not_in`"
        )
    return ConfigError(
        f"no index at {place} (no {MANIFEST}); make one with `assay dedup index CORPUS --out "
        f"{place}`"
    )


def read(at: Path) -> Index:
    """An index, every byte of which was looked at (once a process).

    Raises:
        ConfigError: there is none; or it is of another format.
        CorpusError: a file is missing or damaged; names it and the remedy.
    """
    if not (at / MANIFEST).exists():
        raise _none(str(at))
    found = _manifest(at)
    for name, entry in found["files"].items():
        path = at / name
        if not path.exists():
            raise CorpusError(f"{path} is missing; {AGAIN}")
        if path.stat().st_size != entry["bytes"] or hash_once(path) != entry["xxh3"]:
            raise CorpusError(f"{path} is damaged or cut short: not the bytes written; {AGAIN}")
    groups = tuple(Group(**group) for group in found["groups"])
    return Index(at, found["settings"]["near"], found["probe"], groups, found["files"])


def _manifest(at: Path) -> dict[str, Any]:
    found = read_sealed(at / MANIFEST, strict=True)
    if found is None:
        raise CorpusError(f"{at / MANIFEST} is damaged or cut short; {AGAIN}")
    if found["format"] != FORMAT:
        raise ConfigError(
            f"{at}: an index of format {found['format']}, this version of assay reads {FORMAT}; "
            "make it again from the corpus"
        )
    return found


def require_alike(place: str, near: dict[str, Any], index: Index) -> None:
    """Refuse an index whose hashes say something else than those of a corpus.

    Raises:
        ConfigError: names the key, both values and the remedy.
    """
    for key, ours in near.items():
        if index.near.get(key) != ours:
            raise ConfigError(
                f"`not_in`: `near: {{{key}}}` is {ours} in {place} and {index.near.get(key)} in "
                f"the index {index.folder}; prepare the corpus with the value of the index, make "
                "the index again from its corpus, or use `unique: exact`"
            )
    if index.probe != probe(**index.near):
        raise ConfigError(
            f"`not_in`: {index.folder} was made by a version of assay (or Python) that hashes text "
            "otherwise than this one does; make it again from its corpus, or use the version it "
            "was made with"
        )


@functools.cache
def probe(**near: Any) -> str:
    """What our code makes of every character there is, as one hash: equal for versions that hash
    alike, whatever else changed in them. 0.1 s."""
    from dedup import bands, minhash, sketches  # loads numba
    from dedup.shingles import folded_shingles

    settings = Near(**near)
    points = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]
    texts = ["".join(points[i : i + 64]) for i in range(0, len(points), 64)]
    texts += [f"the {c} of" for c in points[0x20:0x3000]]
    hashes, offsets, folded = folded_shingles(pa.array(texts, pa.large_string()), settings.ngram)
    signatures = minhash.signatures(hashes, offsets, settings.permutations)
    keys = bands.band_keys(signatures, settings.bands, settings.rows)
    made = (hashes, offsets, folded, keys, sketches.sketches(signatures))
    return fingerprint([hashlib.sha256(m.tobytes()).hexdigest() for m in made])


# --- what is in it --------------------------------------------------------------------------------


def among(values: Names, ascending: Names) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.int64]]:
    """Which values stand among the ascending ones, and where."""
    if not len(ascending):
        return np.zeros(len(values), np.bool_), np.zeros(len(values), np.int64)
    at = np.minimum(np.searchsorted(ascending, values), len(ascending) - 1)
    return ascending[at] == values, at


def have(indexes: Iterable[Index], level: str, copies: Names) -> npt.NDArray[np.bool_]:
    """Which of these hashes, of this level of `unique`, an indexed document has."""
    distinct, inverse = np.unique(copies, return_inverse=True)
    found = np.zeros(len(distinct), np.bool_)
    for table in _tables(indexes, [*COLUMNS[level]]):
        known = pc.coalesce(*(table[name] for name in COLUMNS[level]))
        is_there, at = among(names_of(known.drop_null()), distinct)
        found[at[is_there]] = True
    return found[inverse]


def verified(indexes: Iterable[Index], contents: pa.Array) -> pa.Array:
    """Of these contents (schema.HASH) those that stand in an index with their shingles."""
    distinct = np.unique(names_of(contents))
    found = np.zeros(len(distinct), np.bool_)
    for table in _tables(indexes, ["content_hash", "verified"]):
        is_there, at = among(names_of(table.filter(table["verified"])["content_hash"]), distinct)
        found[at[is_there]] = True
    values = pa.py_buffer(np.ascontiguousarray(distinct[found]))
    return pa.Array.from_buffers(schema.HASH, int(found.sum()), [None, values])


def _tables(indexes: Iterable[Index], columns: Sequence[str]) -> Iterator[pa.Table]:
    for index in indexes:
        for part in index.parts:
            yield pq.read_table(index.folder / "documents" / part_name(part), columns=columns)
