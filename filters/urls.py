"""Signal group `urls`: which lists of `urls` in corpus.yaml know the address of a document.

    urls: {block: [lists/ut1, own.txt], allow: [trusted.txt]}

What an allow list knows is not blocked, whatever a block list says. A document without an address
is on no list. filters/url_lists.py says what an entry means.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from filters.addresses import domain_keys, parse, path_keys, site, word_keys
from filters.columns import Signal
from filters.segments import Texts
from filters.url_lists import ListFile, find, table

MAX_ENTRIES = 8

_TEXTS = pa.list_(pa.string())
_SOURCE = "assay; lists in the format of UT1 (Université Toulouse Capitole)"
COLUMNS: dict[str, Signal] = {
    "blocked": Signal(pa.bool_(), "addresses", "on a block list and on no allow list", _SOURCE),
    "allowed": Signal(pa.bool_(), "addresses", "on an allow list", _SOURCE),
    "categories": Signal(_TEXTS, "lists", "block lists that know the address, at most 8", _SOURCE),
    "entries": Signal(_TEXTS, "entries", "`list: entry` of those, at most 8", _SOURCE),
    "site": Signal(
        pa.string(),
        "domains",
        "the domain that was registered; empty without an address",
        "Public Suffix List, https://publicsuffix.org",
    ),
}


def measure(
    block: tuple[ListFile, ...],
    allow: tuple[ListFile, ...],
    texts: Texts,
    columns: Mapping[str, pa.Array],
) -> Mapping[str, pa.Array]:
    """All columns of `COLUMNS` for a batch, by its `url`; see filters/signals.py.

    Raises:
        ValueError: a list is bad; see filters/url_lists.py.
    """
    parsed = [parse(url or "") for url in columns["url"].to_pylist()]
    keys, rows = [], []
    for row, (host, path) in enumerate(parsed):
        found = [*domain_keys(host), *path_keys(host, path), *word_keys(host, path)]
        keys += found
        rows += [row] * len(found)
    categories: list[list[str]] = [[] for _ in parsed]
    entries: list[list[str]] = [[] for _ in parsed]
    allowed = [False] * len(parsed)
    if allow:
        for at, _ in find(table(allow), keys):
            allowed[rows[at]] = True
    if block:
        for at, category in find(table(block), keys):
            entries[rows[at]].append(f"{category}: {keys[at]}")
            if category not in categories[rows[at]]:
                categories[rows[at]].append(category)
    return {
        "blocked": pa.array([bool(c) and not a for c, a in zip(categories, allowed, strict=True)]),
        "allowed": pa.array(allowed, pa.bool_()),
        "categories": pa.array([found[:MAX_ENTRIES] for found in categories], _TEXTS),
        "entries": pa.array([found[:MAX_ENTRIES] for found in entries], _TEXTS),
        "site": pa.array([site(host) for host, _ in parsed], pa.string()),
    }
