"""The true neighbours of a sample of texts: what `pairs` should hold, found without it.

Sampled contents are compared with every text of the corpus, exactly, by the index that finds copies
of held-out text (dedup/contamination.py). A text of a large cluster has thousands of neighbours
that all say the same; so of each sampled text and band of similarity one is kept, by lot: these are
independent draws, and shares of them have honest intervals. Beside the bands, one text by lot that
LSH proposes, which shares a band of the signature, however similar it is.

The lot of a pair is a hash of both contents and the seed, so draws depend neither on shards nor on
order, and the lowest lot of several bands is a draw of all of them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from dedup import bands, postings
from dedup.clusters import jaccard
from dedup.contamination import matches
from dedup.minhash import signatures
from dedup.shingles import Hashes, Offsets, shingles
from pipeline.corpus import part_paths
from pipeline.dedup_settings import Near
from pipeline.schema import HASH
from pipeline.seeing.asking import rows
from pipeline.tables import column, halves_of

FLOOR = 0.5  # Jaccard from which all neighbours are found
STEP = 0.1  # of a band of similarity
MAX_SHINGLES = 10_000_000  # of the sample: 240 MB with their index; it ends where they do
SLICE = 256  # texts compared at once: 10,000 neighbours of each are 100 MB
ANY = -1  # the band of what LSH proposes
MERGED = 10_000  # draws after which those of one text and band become one
SHARING = 16  # texts of the sample that are looked at for one key
SLACK = 1e-6  # similarities are rounded to float32

DRAW = np.dtype(
    [
        ("text", "<i4"),  # which of the sample
        ("band", "i1"),  # of edges(): the highest that its similarity reaches; or ANY
        ("lot", "<u8"),
        ("other", "S16"),  # its content
        ("jaccard", "<f4"),
        ("proposed", "?"),  # do the two share a band of the signature
        ("known", "?"),  # to the corpus: see verdict.py
    ]
)
Draws = npt.NDArray[Any]  # of DRAW
Rows = npt.NDArray[np.int64]


class Sampled(NamedTuple):
    """Texts of different content, by lot."""

    contents: pa.Array
    sources: npt.NDArray[np.str_]
    languages: npt.NDArray[np.str_]
    hashes: Hashes
    offsets: Offsets


class Compared(NamedTuple):
    draws: Draws
    documents: int  # that the sample was compared with
    of_documents: int
    seconds: float


def edges(threshold: float) -> list[float]:
    """Where bands of similarity begin, ascending: steps from FLOOR, or from a lower threshold, and
    the threshold itself."""
    steps = {round(FLOOR + STEP * i, 1) for i in range(5)} | {threshold}
    return sorted(edge for edge in steps if edge >= min(FLOOR, threshold))


def sample(root: Path, near: Near, num: int, seed: int) -> Sampled:
    """`num` contents by lot; fewer if they are long."""
    order = f"md5(content_hash || '{seed}')"
    found = rows(
        root,
        "select content_hash, source, coalesce(lang, '') as lang, text from documents where id in "
        f"(select min(id) from documents group by content_hash order by {order} limit {num}) "
        f"order by {order}",
    )
    hashes, offsets = shingles(pa.array([row["text"] for row in found], pa.string()), near.ngram)
    size = max(1, int(np.searchsorted(offsets, MAX_SHINGLES, side="right")) - 1)
    found, offsets = found[:size], offsets[: size + 1]
    return Sampled(
        pa.array([bytes.fromhex(row["content_hash"]) for row in found], HASH),
        np.array([row["source"] for row in found], np.str_),
        np.array([row["lang"] for row in found], np.str_),
        hashes[: offsets[-1]].copy(),
        offsets,
    )


def compare(root: Path, near: Near, chosen: Sampled, seconds: float, seed: int) -> Compared:
    """Compare the sample with all documents, part by part in an order by lot, until `seconds` are
    over."""
    done, begin = 0, 0.0
    paths = part_paths(root, "documents")
    total = sum(pq.ParquetFile(path).metadata.num_rows for path in paths)
    index = _index(near, chosen)
    draws: list[Draws] = [np.empty(0, DRAW)]  # by_lot of all before, then what came since
    order = np.random.default_rng(seed).permutation(len(paths))
    for texts, contents in _slices([paths[number] for number in order.tolist()]):
        if done and time.monotonic() - begin > seconds:
            break
        draws += _draws(texts, contents, near, index, seed)
        if sum(map(len, draws[1:])) > len(draws[0]) + MERGED:
            draws = [by_lot(np.concatenate(draws))]
        begin = begin if done else time.monotonic()  # the first slice may compile kernels
        done += len(texts)
    return Compared(by_lot(np.concatenate(draws)), done, total, time.monotonic() - begin)


def by_lot(draws: Draws) -> Draws:
    """Of each text and band the draw with the lowest lot, by text and band."""
    return draws[_lowest(draws)]


def of_bands(draws: Draws, low: int, high: int) -> Draws:
    """One draw of each text, of its neighbours in the bands from `low` to below `high`; a pair that
    both of its texts drew counts once."""
    mine = draws[(draws["band"] >= low) & (draws["band"] < high)].copy()
    mine["band"] = low
    mine = by_lot(mine)
    return mine[np.sort(np.unique(mine["lot"], return_index=True)[1])]


def _lowest(draws: Draws) -> npt.NDArray[np.int64]:
    order = np.lexsort((draws["lot"], draws["band"], draws["text"]))
    text, band = draws["text"][order], draws["band"][order]
    is_first = np.ones(len(order), np.bool_)
    is_first[1:] = (text[1:] != text[:-1]) | (band[1:] != band[:-1])
    return order[is_first]


def _slices(paths: list[Path]) -> Iterator[tuple[pa.Array, pa.Array]]:
    """Texts and contents of a few documents at a time."""
    for path in paths:
        documents = pq.ParquetFile(path)
        for group in range(documents.num_row_groups):
            texts, contents = (column(documents, group, n) for n in ("text", "content_hash"))
            texts = texts.fill_null("")  # null: forgotten
            for first in range(0, len(texts), SLICE):
                yield texts[first : first + SLICE], contents[first : first + SLICE]


class Index(NamedTuple):
    """What the sample is looked up by."""

    chosen: Sampled
    held: postings.Index
    keys: bands.Keys  # of each text
    sorted_keys: bands.Keys
    texts: npt.NDArray[np.int64]  # of each of these


def _index(near: Near, chosen: Sampled) -> Index:
    held = postings.build_index(chosen.hashes, chosen.offsets, edges(near.threshold)[0])
    keys = _keys(near, chosen.hashes, chosen.offsets)
    sorted_keys, docs = bands.key_records(keys, np.diff(chosen.offsets) > 0, part=0)
    return Index(chosen, held, keys, sorted_keys, docs.astype(np.int64))


def _keys(near: Near, hashes: Hashes, offsets: Offsets) -> bands.Keys:
    return bands.band_keys(signatures(hashes, offsets, near.permutations), near.bands, near.rows)


def _draws(
    texts: pa.Array, contents: pa.Array, near: Near, index: Index, seed: int
) -> tuple[Draws, Draws]:
    """Of a few documents, for each sampled text: one in each band, and one that LSH proposes."""
    hashes, offsets = shingles(texts, near.ngram)
    keys = _keys(near, hashes, offsets)
    borders = edges(near.threshold)
    row, text, similar, _ = matches(index.held, hashes, offsets, 1.0, borders[0])
    band = np.searchsorted(np.array(borders) - SLACK, similar, side="right") - 1
    in_band = band >= 0  # contained texts are among them, however similar

    def drawn(row: Rows, text: Rows, band: Rows) -> Draws:
        theirs, ours = halves_of(contents), halves_of(index.chosen.contents)
        other = (theirs[row] != ours[text]).any(axis=1)
        row, text, band = row[other], text[other], band[other]
        draws = np.zeros(len(row), DRAW)
        draws["text"], draws["band"] = text, band
        draws["lot"] = _lots(theirs[row, 1] ^ ours[text, 1], seed)
        lowest = _lowest(draws)
        draws, row, text = draws[lowest], row[lowest], text[lowest]
        draws["other"] = theirs[row].copy().view("S16").reshape(-1)
        draws["proposed"] = (keys[row] == index.keys[text]).any(axis=1)
        draws["jaccard"] = [
            jaccard(_set(index.chosen.hashes, index.chosen.offsets, t), _set(hashes, offsets, r))
            for t, r in zip(text.tolist(), row.tolist(), strict=True)
        ]
        return draws

    shared = _sharing(keys, np.diff(offsets) > 0, index)
    return (
        drawn(row[in_band], text[in_band], band[in_band]),
        drawn(*shared, np.full(len(shared[0]), ANY)),
    )


def _sharing(keys: bands.Keys, signed: npt.NDArray[np.bool_], index: Index) -> tuple[Rows, Rows]:
    """(document, sampled text) that share a band; of a key that many have, SHARING of them."""
    rows = np.repeat(np.flatnonzero(signed), keys.shape[1])
    flat = keys[signed].reshape(-1)
    first = np.searchsorted(index.sorted_keys, flat)
    count = np.searchsorted(index.sorted_keys, flat, side="right") - first
    found = np.flatnonzero(count)
    taken = np.minimum(count[found], SHARING)
    each = np.repeat(found, taken)
    at = np.arange(len(each)) - np.repeat(np.cumsum(taken) - taken, taken)
    turn = (flat[each] % count[each].astype(np.uint64)).astype(np.int64)
    return rows[each], index.texts[first[each] + (turn + at) % count[each]]


def _lots(mixed: npt.NDArray[np.uint64], seed: int) -> npt.NDArray[np.uint64]:
    """The same for (a, b) and (b, a), of contents that are hashes already."""
    lots = (mixed ^ np.uint64(seed)) * np.uint64(0x9E3779B97F4A7C15)
    return lots ^ (lots >> np.uint64(32))


def _set(hashes: Hashes, offsets: Offsets, text: int) -> Hashes:
    return hashes[offsets[text] : offsets[text + 1]]
