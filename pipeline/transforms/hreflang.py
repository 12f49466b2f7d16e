"""Parallel pages by what they say of each other: `<link rel="alternate" hreflang>`, as `keep:
[hreflang]` takes it along.

    join        all parts: of each document of a group, the name of that
    names       of a part, in the order of its documents

Two pages are of one group where each names the other, as search engines ask for; groups are the
connected components of that. A page that names another which does not name it back is not joined to
it: sites link the front page of another language from every page. An address of which nothing is
known, for it was not crawled or has no list of its own, joins the pages that name it, if they are
no more than a page may name (MAX_LINKS). A page that none of this joins to an address is alone.

The name of a group is the smallest hash of its addresses, crawled or not. So it depends on neither
order nor sharding, and the pages of a complete set have one name in whatever corpus each stands.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import xxhash

from dedup.clusters import components
from filters.canonical_urls import canonical
from pipeline import schema
from pipeline.files import part_name
from pipeline.pages.metadata import MAX_LINKS
from pipeline.tables import write_table

FIELD = "hreflang"  # of `meta`: addresses by language, or a list of them, as JSON

Addresses = npt.NDArray[np.uint64]  # their hashes


def outputs(root: Path) -> list[Path]:
    return [root / "translations" / part_name(0)]


def join(root: Path, parts: list[int]) -> dict[str, int]:
    """Write the group of each document that is of one. In memory: some 250 bytes a link."""
    ids, where = bytearray(), array("i")
    own, sources, targets = array("Q"), array("Q"), array("Q")
    for part in parts:
        for name, address, named in _said(root / "documents" / part_name(part)):
            ids += name
            where.append(part)
            own.append(address)
            others = sorted(named - {address})
            sources.extend([address] * len(others))
            targets.extend(others)
    pages = np.array(own, np.uint64)
    joined, num_links = _holding(np.array(sources, np.uint64), np.array(targets, np.uint64), pages)
    addresses, smallest = components(joined)
    at = np.searchsorted(addresses, pages)
    at[at == len(addresses)] = 0
    grouped = addresses[at] == pages if len(addresses) else np.zeros(len(pages), np.bool_)
    names = addresses[smallest[at[grouped]]].tolist()
    columns = [
        pa.FixedSizeBinaryArray.from_buffers(
            schema.HASH, len(pages), [None, pa.py_buffer(ids)]
        ).filter(pa.array(grouped)),
        pa.array(np.array(where, np.int32)).filter(pa.array(grouped)),
        pa.array([f"{name:016x}" for name in names], pa.string()),
    ]
    write_table(outputs(root)[0], schema.TRANSLATIONS, columns)
    return {"pages": len(pages), "links": num_links, "links_held": len(joined), "named": len(names)}


def _holding(
    sources: Addresses, targets: Addresses, pages: Addresses
) -> tuple[npt.NDArray[np.uint64], int]:
    """The links that join two addresses, [links, 2], and how many there are of all.

    Args:
        pages: the addresses that have a list.
    """
    addresses, ends = np.unique(np.concatenate([sources, targets]), return_inverse=True)
    num = max(len(addresses), 1)
    there = np.unique(ends[: len(sources)] * num + ends[len(sources) :])  # each link once
    source, target = there // num, there % num
    crawled = np.isin(addresses, pages)[target]
    times = np.bincount(target, minlength=num)[target]
    holds = np.where(crawled, np.isin(target * num + source, there), times <= MAX_LINKS)
    return addresses[np.stack([source[holds], target[holds]], 1)], len(there)


def _said(path: Path) -> Iterator[tuple[bytes, int, set[int]]]:
    """Of each document of a part that names others: its id, its address, and those named."""
    file = pq.ParquetFile(path)
    columns = ["id", "url", "canonical_url", "meta"]
    for batch in file.iter_batches(columns=columns):
        said = pc.map_lookup(batch["meta"], FIELD, "first")
        rows = batch.select(columns[:3]).filter(said.is_valid()).to_pylist()
        for row, text in zip(rows, said.drop_null().to_pylist(), strict=True):
            named = _addresses(text)
            own = _own(row, named)
            if own is not None and named:
                yield row["id"], own, named


def _addresses(text: str) -> set[int]:
    """Of a field, none where it is no such one."""
    try:
        found = json.loads(text)
    except ValueError:
        return set()
    values = found.values() if isinstance(found, dict) else found
    if not isinstance(found, dict | list):
        return set()
    return {_hash(value) for value in values if isinstance(value, str) and value.strip()}


def _own(row: dict[str, Any], named: set[int]) -> int | None:
    """The address by which others know a page: that which it says is its own, if its list has it
    (sites name their front page there); else that which it was fetched from."""
    said, fetched = (_hash(url) if url else None for url in (row["canonical_url"], row["url"]))
    return said if said is not None and (said in named or fetched is None) else fetched


@lru_cache(1 << 14)  # pages of a group mostly stand near each other: a third of the time
def _hash(url: str) -> int:
    """Of an address in the form in which copies of a page have the same."""
    return xxhash.xxh3_64_intdigest(canonical(url).encode("utf-8", "surrogatepass"))


def names(root: Path, part: int, ids: pa.Array) -> pa.Array:
    """Of each of these documents of a part the name of its group; null: of none."""
    found = pq.read_table(outputs(root)[0], filters=[("part", "=", part)])
    return found["name"].combine_chunks().take(pc.index_in(ids, found["document"].combine_chunks()))
