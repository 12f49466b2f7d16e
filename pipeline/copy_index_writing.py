"""Make an index (copy_index.py) of documents of some corpora, or add theirs to one that stands.

Band keys and sketches are those that `prepare` kept; shingles are made here from the text of the
documents that stay, part by part. The bytes do not depend on the number of processes; index.json
comes last, so that what a kill leaves is no index, or the old one, and the same call goes on.
"""

from __future__ import annotations

import functools
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dedup import sketches
from dedup.shingles import shingles
from pipeline import copy_index, linked, objects, schema, signed
from pipeline.config import ConfigError
from pipeline.copy_index import MANIFEST, Group, Names, among
from pipeline.corpus import manifest
from pipeline.dedup_settings import Near
from pipeline.files import file_hash, part_name, remove_temporaries, replacing, write_sealed
from pipeline.fingerprint import fingerprint
from pipeline.finished import home
from pipeline.tables import column, names_of, read_columns
from pipeline.transforms.near import ROW

# Hashes are random, so no codec but sorting helps: the differences of sorted ones take fewer bits,
# 6.9 bytes of 8 for a shingle. 40 bits of each would take 4: docs/dedup.md.
DELTAS = "DELTA_BINARY_PACKED"


@dataclass(frozen=True)
class Chosen:
    """The documents of a corpus whose copies are to be left out."""

    root: Path  # of its finished state
    ids: Names  # ascending
    contents: Names  # ascending; of those whose near copies are left out too


def write(place: str, chosen: list[Chosen], add: bool = False) -> copy_index.Index:
    """Write an index to a folder or URL; returns it.

    Raises:
        ConfigError: one stands there and is not to be added to, or none stands to be added to; the
            corpora were not prepared alike, or by another version; or one is in the index already.
    """
    roots = [one.root for one in chosen]
    settings = signed.require_alike(roots)
    for root in roots:
        signed.require_signed_now(root)
    stands = _stands(place)
    if stands and not add:
        raise ConfigError(f"{place}: an index stands there; name another folder, or `--add` to it")
    if add and not stands:
        raise ConfigError(f"{place}: no index stands there to add to; leave out `--add`")
    old = copy_index.read(copy_index.fetched(place)) if add else None
    if old is not None:
        copy_index.require_alike(str(home(roots[0])), settings, old)
    at = copy_index.folder(place)
    with _folder(at, old is not None) as folder:
        groups, files = (list(old.groups), dict(old.files)) if old else ([], {})
        for one in chosen:
            group, made = _group(folder, one, Near(**settings), groups)
            groups.append(group)
            files |= {
                str(path.relative_to(folder)): {
                    "bytes": path.stat().st_size,
                    "xxh3": file_hash(path),
                }
                for path in made
            }
        known = {
            "format": copy_index.FORMAT,
            "settings": {"near": settings},
            "probe": copy_index.probe(**settings),
            "groups": [asdict(group) for group in groups],
            "files": files,
        }
        write_sealed(folder / MANIFEST, known)
    if objects.is_url(place):
        for name in files.keys() - (old.files.keys() if old else set()):
            objects.upload(at / name, f"{place.rstrip('/')}/{name}")
        objects.write(f"{place.rstrip('/')}/{MANIFEST}", (at / MANIFEST).read_bytes())
    return copy_index.read(at)


def _stands(place: str) -> bool:
    if objects.is_url(place):
        return objects.exists(f"{place.rstrip('/')}/{MANIFEST}")
    at = Path(place)
    if at.exists() and not (at / MANIFEST).exists() and (at.is_file() or any(at.iterdir())):
        raise ConfigError(f"{place}: something else stands there; name another folder")
    return (at / MANIFEST).exists()


@contextmanager
def _folder(at: Path, stands: bool) -> Iterator[Path]:
    """The folder to write into: itself where an index stands, else one that takes its name.

    Nobody else may add to an index meanwhile.
    """
    if stands:
        remove_temporaries(at)  # of a killed call
        yield at
        return
    attempt = at.with_name(f".{at.name}.tmp")
    shutil.rmtree(attempt, ignore_errors=True)
    attempt.mkdir(parents=True)
    try:
        yield attempt
        shutil.rmtree(at, ignore_errors=True)  # empty, or the copy of an index that is gone
        attempt.rename(at)
    finally:
        shutil.rmtree(attempt, ignore_errors=True)


def _group(
    folder: Path, one: Chosen, settings: Near, before: list[Group]
) -> tuple[Group, list[Path]]:
    """Write the parts of a corpus behind those that stand; returns what they are, and the files."""
    corpus = str(home(one.root))
    documents = signed.outputs_of(one.root, "ingest")
    made_of = fingerprint(documents, one.ids.tobytes().hex(), one.contents.tobytes().hex())
    if any(group.made_of == made_of for group in before):
        raise ConfigError(f"{corpus}: these documents are in the index already")
    parts, first = signed.parts_of(one.root), sum(group.parts for group in before)
    scratch = folder / ".chosen.tmp"
    scratch.mkdir(exist_ok=True)
    np.save(scratch / "ids.npy", one.ids)
    np.save(scratch / "contents.npy", one.contents)
    try:
        work = functools.partial(_part, folder, one.root, scratch, settings)
        counts = linked.each(work, [(first + n, part) for n, part in enumerate(parts)], "indexed")
    finally:
        shutil.rmtree(scratch)
    forest = folder / "forest" / part_name(len(before))
    _write_forest(forest, one.root, parts)
    group = Group(
        corpus=corpus,
        made_of=made_of,
        first=first,
        parts=len(parts),
        text_bytes=manifest(one.root)["stages"]["ingest"]["totals"]["bytes"],
        documents=sum(counts),
        verified=len(one.contents),
    )
    names = [part_name(first + n) for n in range(len(parts))]
    return group, [*(folder / table / name for table in TABLES for name in names), forest]


TABLES = ("keys", "documents")


def _part(
    folder: Path, root: Path, scratch: Path, settings: Near, numbered: tuple[int, int]
) -> int:
    """Write a part; returns how many documents of it are known."""
    number, part = numbered
    keys_path, sketches_path, documents_path = signed.part_files(root, part)
    keys, rows = read_columns(keys_path, schema.BAND_KEYS)
    with _writer(folder / "keys" / part_name(number), schema.BAND_KEYS) as writer:
        writer.write_table(pa.table([keys, rows], schema=schema.BAND_KEYS))
    words = sketches.num_words(settings.permutations)
    (bits,) = read_columns(sketches_path, schema.SKETCHES)
    has_keys = np.zeros(len(bits) // words, np.bool_)
    has_keys[rows] = True
    sketch = pa.Array.from_buffers(
        pa.binary(8 * words), len(has_keys), [None, pa.py_buffer(bits.astype("<u8"))]
    )
    copies = pq.read_table(signed.copies_file(root, part)).combine_chunks()
    documents = pq.ParquetFile(documents_path)
    ids, contents = (np.load(scratch / name, mmap_mode="r") for name in ("ids.npy", "contents.npy"))
    begin = num_known = 0
    with _writer(folder / "documents" / part_name(number), schema.INDEXED) as writer:
        for i in range(documents.num_row_groups):
            content = column(documents, i, "content_hash")
            inside = slice(begin, begin + len(content))
            is_known, _ = among(names_of(column(documents, i, "id")), ids)
            is_verified = among(names_of(content), contents)[0] & has_keys[inside]
            columns = [
                _where(is_known | is_verified, content),
                *(
                    _where(is_known, copies[name][inside].combine_chunks())
                    for name in copies.column_names
                ),
                _where(has_keys[inside], sketch[inside].cast(pa.binary())),
                pa.array(is_verified),
                _shingles(column(documents, i, "text"), is_verified, settings.ngram),
            ]
            writer.write_table(pa.table(columns, schema=schema.INDEXED), len(content))
            begin, num_known = inside.stop, num_known + int(is_known.sum())
    return num_known


def _where(mask: npt.NDArray[np.bool_], values: pa.Array) -> pa.Array:
    return pc.if_else(pa.array(mask), values, None)


def _shingles(texts: pa.Array, wanted: npt.NDArray[np.bool_], ngram: int) -> pa.Array:
    """Of the texts that are wanted, sorted; null of the others."""
    hashes, offsets = shingles(texts.filter(pa.array(wanted)).fill_null(""), ngram)
    ends = np.append(0, np.cumsum(wanted))
    return pa.LargeListArray.from_arrays(
        pa.array(offsets[ends]), pa.array(hashes), mask=pa.array(~wanted)
    )


def _write_forest(path: Path, root: Path, parts: list[int]) -> None:
    """Edges that join what `prepare` found to hang together, parts by their place in the group."""
    docs, labels = read_columns(signed.components_file(root), schema.COMPONENTS)
    places = np.searchsorted(np.array(parts, np.uint64), docs >> np.uint64(32)).astype(np.uint64)
    docs = places << np.uint64(32) | docs & ROW
    _, first, which = np.unique(labels, return_index=True, return_inverse=True)
    leaders = docs[first][which]
    is_edge = docs != leaders
    with _writer(path, schema.EDGES) as writer:
        writer.write_table(pa.table([docs[is_edge], leaders[is_edge]], schema=schema.EDGES))


@contextmanager
def _writer(path: Path, columns: pa.Schema) -> Iterator[pq.ParquetWriter]:
    """Numbers as differences to those before them; all else as it is."""
    numbers = {
        "shingles.list.element" if pa.types.is_large_list(field.type) else field.name: DELTAS
        for field in columns
        if pa.types.is_large_list(field.type) or pa.types.is_integer(field.type)
    }
    with (
        replacing(path) as temporary,
        pq.ParquetWriter(
            temporary,
            columns,
            compression="zstd",
            use_dictionary=False,
            column_encoding=numbers,
            write_statistics=False,
        ) as writer,
    ):
        yield writer
