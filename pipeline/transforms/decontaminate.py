"""Evaluation items in the text of documents.

    choose     all sets: their items, and the index of them, which all workers map
    group      signals: how much of which item stands in a document, and where
    editor     edits: those bytes, taken out

Nothing is dropped: a mixture says `where: "contamination.score < 0.4"`, or `edits:
[contamination]`.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from dedup.item_index import ItemIndex, build_index, ngrams_of
from dedup.overlap import Found, find
from dedup.placed_words import Length
from filters.columns import Signal
from filters.editors import Editor
from filters.edits import Edits, edits_of, merged
from filters.segments import Texts
from filters.signals import Group
from pipeline import schema
from pipeline.files import replacing
from pipeline.tables import write_rows

if TYPE_CHECKING:
    from filters.signals import Columns
    from pipeline.evaluation_items import Item
    from pipeline.heldout_settings import Decontaminate

NAME = "contamination"  # of the signal group, of the edits, and of the folder of items and index
EXCERPT_CHARS = 120  # of an item, for people
HIT = pa.struct(
    [
        ("set", pa.string()),
        ("item", pa.string()),  # file:line
        ("share", pa.float32()),
        ("start", pa.int64()),  # UTF-8 bytes of the text, on borders of characters
        ("end", pa.int64()),
    ]
)
SOURCE = "Brown et al. 2020, appendix C; Llama 3 (2024), section 5.1.4; Tülu 3 (2024), section 3.2"
COLUMNS: dict[str, Signal] = {
    "score": Signal(
        pa.float32(),
        "text",
        "largest share of the words of an item that stands in one place",
        SOURCE,
    ),
    "num_items": Signal(pa.int32(), "text", "items found: `share` of corpus.yaml or more", SOURCE),
    "worst_set": Signal(
        pa.string(), "text", "set of the item with the largest share, or empty", ""
    ),
    "hits": Signal(pa.list_(HIT), "text", "each item found, where, and how much of it", ""),
}


# --- choose ---------------------------------------------------------------------------------------


def choose_outputs(root: Path) -> list[Path]:
    return [root / NAME / "items.parquet"] + [
        root / NAME / "index" / f"{name}.npy" for name in ItemIndex._fields
    ]


def choose(root: Path, settings: Decontaminate, items: Sequence[Item]) -> dict[str, Any]:
    """Write the items of all sets and their index; all are in memory, ten times their text."""
    length = Length(settings.words, settings.characters)
    whole = pa.array([f"{item.question}\n{item.other}" for item in items], pa.large_string())
    entry, firsts, words = _entries(whole, pa.array([i.question for i in items], pa.large_string()))
    questions = pa.array([items[i].question for i in firsts], pa.large_string())
    others = pa.array([items[i].other for i in firsts], pa.large_string())
    index = build_index(questions, others, length)
    short = np.diff(ngrams_of(whole, length)[2]) == 0
    why = np.where(words == 0, "empty", np.where(short, "short", "shared"))
    unmatched = np.where(index.counted[entry] == 0, why, "").tolist()
    rows = [
        {
            "set": item.set,
            "item": item.name,
            "entry": int(entry[i]),
            "num_words": int(words[i]),
            "unmatched": unmatched[i],
            "excerpt": _excerpt(item),
        }
        for i, item in enumerate(items)
    ]
    items_path, *index_paths = choose_outputs(root)
    write_rows(items_path, schema.EVALUATION_ITEMS, rows)
    for path in index_paths:
        with replacing(path) as temporary, open(temporary, "wb") as file:  # np.save would rename it
            np.save(file, getattr(index, path.stem))
    return {
        "items": len(items),
        "matchable": unmatched.count(""),
        **{word: unmatched.count(word) for word in ("empty", "short", "shared")},
    }


def _excerpt(item: Item) -> str:
    """The beginning of an item, on one line."""
    return " ".join(f"{item.question} {item.other}".split())[:EXCERPT_CHARS]


def _entries(
    whole: pa.Array, questions: pa.Array
) -> tuple[npt.NDArray[np.int64], list[int], npt.NDArray[np.int64]]:
    """Of each item its entry, which it shares with items of the same words; of each entry the first
    item; and of each item its words."""
    one = Length(1, 1)
    hashes, _, offsets, words = ngrams_of(whole, one)
    asked = ngrams_of(questions, one)[3]
    known: dict[tuple[int, bytes], int] = {}
    entry, firsts = np.empty(len(words), np.int64), []
    for i in range(len(words)):
        key = int(asked[i]), hashes[offsets[i] : offsets[i + 1]].tobytes()
        if key not in known:
            known[key] = len(known)
            firsts.append(i)
        entry[i] = known[key]
    return entry, firsts, words


# --- find -----------------------------------------------------------------------------------------


class Items(NamedTuple):
    """What workers look up."""

    looked_up: ItemIndex
    sets: list[str]
    names: list[str]
    by_entry: npt.NDArray[np.int64]  # items, entry by entry
    firsts: npt.NDArray[np.int64]  # those of entry e: by_entry[firsts[e]:firsts[e + 1]]


def _items(root: Path) -> Items:
    path = choose_outputs(root)[0]
    return _read(root, path.stat().st_mtime_ns)


@functools.lru_cache(maxsize=1)
def _read(root: Path, version: int) -> Items:
    del version  # part of the cache's key
    items_path, *index_paths = choose_outputs(root)
    table = pq.ParquetFile(items_path).read(["set", "item", "entry"])
    entries = np.asarray(table["entry"])
    index = ItemIndex(*(np.load(path, mmap_mode="r").view(np.ndarray) for path in index_paths))
    firsts = np.append(0, np.cumsum(np.bincount(entries, minlength=len(index.counted))))
    order = np.argsort(entries, kind="stable")
    return Items(index, table["set"].to_pylist(), table["item"].to_pylist(), order, firsts)


def _found(root: Path, texts: Texts) -> tuple[Items, Found]:
    """Once for all that ask of a batch."""
    if texts not in _known:
        items = _items(root)
        _known[texts] = items, find(items.looked_up, texts.data, texts.offsets)
    return _known[texts]


_known: weakref.WeakKeyDictionary[Texts, tuple[Items, Found]] = weakref.WeakKeyDictionary()


def group(root: Path, settings: Decontaminate) -> Group:
    return Group(
        functools.partial(measure, root, settings.share),
        COLUMNS,
        ("pipeline.transforms.decontaminate",),
        settings=settings.share,
    )


def measure(
    root: Path, share: float, texts: Texts, columns: Columns
) -> Mapping[str, pa.Array | np.ndarray]:
    """See filters/signals.py."""
    del columns
    items, found = _found(root, texts)
    scores = np.zeros(len(texts), np.float32)
    worst = [""] * len(texts)
    hits: list[list[dict[str, Any]]] = [[] for _ in range(len(texts))]
    for document, entry, part, start, end in _rows(found):
        of_entry = items.by_entry[items.firsts[entry] : items.firsts[entry + 1]].tolist()
        if part > scores[document]:
            scores[document], worst[document] = part, items.sets[of_entry[0]]
        if part >= np.float32(share):
            hits[document] += [
                {
                    "set": items.sets[i],
                    "item": items.names[i],
                    "share": part,
                    "start": start,
                    "end": end,
                }
                for i in of_entry
            ]
    num = [len({(hit["set"], hit["item"]) for hit in of}) for of in hits]
    return {
        "score": scores,
        "num_items": np.array(num, np.int32),
        "worst_set": pa.array(worst, pa.string()),
        "hits": pa.array(hits, pa.list_(HIT)),
    }


def editor(root: Path, settings: Decontaminate) -> Editor:
    return Editor(
        functools.partial(edit, root, settings.share),
        ("pipeline.transforms.decontaminate",),
        settings=settings.share,
    )


def edit(root: Path, share: float, texts: Texts, columns: Columns) -> Edits:
    """The places of the items found, each as one edit whose kind is the set; where places overlap,
    they are one, of the set whose item begins first."""
    del columns
    items, found = _found(root, texts)
    return merged(
        [
            edits_of(
                (document, start, end, items.sets[items.by_entry[items.firsts[entry]]], "")
                for document, entry, part, start, end in _rows(found)
                if part >= np.float32(share)
            )
        ]
    )


def _rows(found: Found) -> list[tuple[int, int, float, int, int]]:
    return list(zip(*(column.tolist() for column in found), strict=True))
