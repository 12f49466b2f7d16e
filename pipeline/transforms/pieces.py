"""Lines and paragraphs of a part, as records that can meet those of other parts. No text travels.

A record is a key of 128 bits and a place. The key says what counts as the same: a line, a line of
one site, a paragraph, or the site itself, of which each document is a record (so that a share of
its documents can be told). Records are sorted by key, so that those of a partition (the top bits)
are a slice of every part; across.py has them meet.

A place is the bytes that would go: whole lines with their line feeds, and how many bytes of blank
lines stand before and after. Copies of a document within a part have records once.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from dedup.piece_hashes import Folded, hash_pieces, of_site
from filters.addresses import site
from filters.piece_places import Places, places
from pipeline import dedup_settings, schema
from pipeline.files import part_name
from pipeline.tables import halves_of, write_columns

if TYPE_CHECKING:
    from filters.pieces import Pieces
    from pipeline.dedup_settings import Across, Unit
    from pipeline.transforms.sweep import Batch, Stage

Numbers = npt.NDArray[np.int64]
Column = npt.NDArray[Any]  # of its own type
READS = ("kind", "domain", "source")

# What a record is of, in the lowest two bits of its key: a site, or the edits named here.
SITE = 0
UNITS = ("site", *dedup_settings.UNITS)
# Flipped in the upper half, so that a line and a paragraph of the same words hardly ever share it
_FLIPPED = np.arange(4, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
_UNIT_BITS = np.uint64(3)


class Records(NamedTuple):
    """As schema.PIECES, of a batch."""

    high: Column
    low: Column
    row: Column
    start: Column
    end: Column
    before: Column
    after: Column

    def take(self, which: npt.NDArray[np.int64]) -> Records:
        return Records(*(column[which] for column in self))


NOTHING = Records(*(pa.array([], field.type).to_numpy() for field in schema.PIECES))


def outputs(root: Path, part: int) -> list[Path]:
    return [
        root / "joins" / "across" / table / part_name(part, "arrow")
        for table in ("pieces", "documents")
    ]


def unit_of(low: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Number in UNITS of what keys are of."""
    return low & _UNIT_BITS


def pieces(root: Path, across: Across, part: int) -> Stage:
    """Write the records of a part, sorted by key, and of each document the upper half of its
    content_hash and the row of its first copy, which has its records."""
    found: list[Records] = [NOTHING]
    names: list[npt.NDArray[np.uint64]] = [np.empty((0, 3), np.uint64)]
    rows = 0
    while (batch := (yield)) is not None:
        sites = _sites(batch)
        kinds = np.asarray(pc.is_in(batch.columns["kind"], pa.array(across.kinds)))
        measured = kinds & ~batch.forgotten
        of_batch = [
            records._replace(row=records.row + np.uint32(rows))
            for records in _records(batch, across, sites, measured)
        ]
        found += of_batch
        names.append(np.column_stack([halves_of(batch.contents), sites[:, 0]]))
        rows += len(batch.texts)
    content, firsts = _copies(np.concatenate(names))
    joined = Records(*map(np.concatenate, zip(*found, strict=True)))
    joined = joined.take(np.flatnonzero(firsts[joined.row] == joined.row))
    order = np.argsort(joined.high, kind="stable")  # of one document and key they ascend
    pieces_path, documents_path = outputs(root, part)
    write_columns(pieces_path, schema.PIECES, list(joined.take(order)))
    write_columns(documents_path, schema.PIECE_DOCUMENTS, [content, firsts])
    return {"documents": rows, "pieces": len(order)}


def _copies(
    names: npt.NDArray[np.uint64],
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint32]]:
    """Of each document its content, and the first row of the same content and site."""
    rows = np.ascontiguousarray(names).view("V24").reshape(-1)
    _, first, of_row = np.unique(rows, return_index=True, return_inverse=True)
    return names[:, 0], first[of_row].astype(np.uint32)


def _sites(batch: Batch) -> npt.NDArray[np.uint64]:
    """128 bits of each document's registered domain, or of its source where it has no address."""
    known: dict[tuple[str | None, str], bytes] = {}
    found = []
    hosts, sources = (batch.columns[name].to_pylist() for name in ("domain", "source"))
    for host, source in zip(hosts, sources, strict=True):
        if (host, source) not in known:
            name = f"site {site(host)}" if host else f"source {source}"
            known[host, source] = xxhash.xxh3_128_digest(name.encode())
        found.append(known[host, source])
    return np.frombuffer(b"".join(found), ">u8").astype(np.uint64).reshape(-1, 2)


def _records(
    batch: Batch, across: Across, sites: npt.NDArray[np.uint64], measured: npt.NDArray[np.bool_]
) -> Iterator[Records]:
    """Of each unit that is asked for."""
    units, segments = across.units, batch.texts.segments
    if "site_lines" in units:
        (documents,) = np.nonzero(measured)
        nothing = np.zeros(len(documents), np.int64)
        yield _keyed(SITE, sites[documents], documents, Places(*[nothing] * 4))
    if "site_lines" in units or "repeated_lines" in units:
        lines = _found(batch, segments.lines)
        if "site_lines" in units:
            rows, hashes, at = _chosen(lines, measured, units["site_lines"])
            yield _keyed(1, of_site(hashes, sites[rows]), rows, at)
        if "repeated_lines" in units:
            rows, hashes, at = _chosen(lines, measured, units["repeated_lines"])
            yield _keyed(2, hashes, rows, at)
    if "repeated_paragraphs" in units:
        paragraphs = _found(batch, segments.paragraphs)
        rows, hashes, at = _chosen(paragraphs, measured, units["repeated_paragraphs"])
        yield _keyed(3, hashes, rows, at)


def _found(batch: Batch, of_texts: Pieces) -> tuple[Numbers, Folded, Places]:
    """Of each line or paragraph the row of its document, its hash, and its place."""
    texts, num = batch.texts, of_texts.offsets[-1]
    rows = np.repeat(np.arange(len(texts)), np.diff(of_texts.offsets))
    folded = hash_pieces(texts.data, of_texts.begins[:num], of_texts.ends[:num])
    return rows, folded, places(texts, of_texts)


def _chosen(
    found: tuple[Numbers, Folded, Places], measured: npt.NDArray[np.bool_], unit: Unit
) -> tuple[Numbers, npt.NDArray[np.uint64], Places]:
    """Those of the documents measured that are long enough."""
    rows, folded, at = found
    chosen = np.flatnonzero(folded.is_long(unit.words, unit.characters) & measured[rows])
    return rows[chosen], folded.hashes[chosen], Places(*(column[chosen] for column in at))


def _keyed(unit: int, hashes: npt.NDArray[np.uint64], rows: Numbers, at: Places) -> Records:
    """Blank lines of 64 kB and more are left where they are."""
    return Records(
        hashes[:, 0] ^ _FLIPPED[unit],
        hashes[:, 1] & ~_UNIT_BITS | np.uint64(unit),
        rows.astype(np.uint32),
        at.starts.astype(np.uint32),
        at.ends.astype(np.uint32),
        np.where(at.before >> 16, 0, at.before).astype(np.uint16),
        np.where(at.after >> 16, 0, at.after).astype(np.uint16),
    )
