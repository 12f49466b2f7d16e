"""Signal group `lists`: how often the phrases of own lists stand in a text.

    lists: {brands: words/brands.txt, banned: words/banned.tsv}        # in corpus.yaml

A list is UTF-8 text, a phrase a line; a line that begins with # is a comment. After a tab a
category may follow, which is shown with the phrase. `viagra~` is found with digits for letters too;
`!phrase` is an ordinary phrase of which no part counts, in any list. What is found, and through
which disguises: filters/matching.py, filters/disguises.py.
"""

from __future__ import annotations

import codecs
import functools
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from filters import disguises
from filters.automaton import FILES as PHRASE_FILES
from filters.automaton import LONGEST, Automaton, automaton, folded
from filters.columns import Signal
from filters.evidence import distinct, listed
from filters.matching import find
from filters.segments import Texts
from filters.symbols import VALUE

FILES = (str(disguises.FILE), *PHRASE_FILES)
ORDINARY = "!"
_LINE_END = re.compile(rb"\r\n?|\n")

Paths = tuple[tuple[str, str], ...]  # name of each list, its file


class Entry(NamedTuple):
    phrase: str  # as it stands in the list
    category: str
    ordinary: bool


def columns(paths: Paths) -> dict[str, Signal]:
    """Two for each list: how many, and which."""
    found: dict[str, Signal] = {}
    for name, _ in paths:
        found[name] = Signal(pa.int32(), "phrases", f"times that phrases of {name} stand there", "")
        found[f"{name}_words"] = Signal(
            pa.list_(pa.string()), "phrases", "at most 8 of them, most frequent first", ""
        )
    return found


def read(path: str) -> list[Entry]:
    """The entries of a list.

    Raises:
        ValueError: no such file, or a line that is no entry: names file, line and remedy.
    """
    found: list[Entry] = []
    seen: dict[bytes, int] = {}
    for number, line in _lines(path):
        where = f"{path}, line {number}"
        if not line or line.startswith("#"):
            continue
        phrase, _, category = (part.strip() for part in line.partition("\t"))
        ordinary = phrase.startswith(ORDINARY)
        phrase = phrase.removeprefix(ORDINARY).strip()
        symbols = folded(disguises.name(phrase)) & VALUE
        if not 2 <= len(symbols) <= LONGEST:
            raise ValueError(
                f"{where}: {phrase!r} has {len(symbols)} characters; an entry has 2 to {LONGEST}; "
                "of one alone nobody knows what it is there, so write more of it, or leave it out"
            )
        first = seen.setdefault(symbols.tobytes(), number)
        if first != number:
            raise ValueError(
                f"{where}: {phrase!r} stands in line {first} already (case, width and traditional "
                "characters make no other entry); leave one of them out"
            )
        found.append(Entry(phrase, category, ordinary))
    if all(entry.ordinary for entry in found):
        raise ValueError(f"{path}: no entries; write a phrase a line, or take the list out")
    return found


def _lines(path: str) -> Iterator[tuple[int, str]]:
    """Number and text of each line; lines may end as on any system. Editors of Windows write UTF-16
    with a byte order mark, and one before UTF-8."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise ValueError(
            f"{path}: {error.strerror}; a list is a file with a phrase a line"
        ) from None
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        data = data.decode("utf-16", "replace").encode()
    for number, raw in enumerate(_LINE_END.split(data.removeprefix(codecs.BOM_UTF8)), 1):
        try:
            line = raw.decode()
        except UnicodeDecodeError:
            line = "\ufffd"
        if "\0" in line or "\ufffd" in line:
            charset = "utf-16le" if b"\0" in data else "gb18030"
            raise ValueError(
                f"{path}, line {number}: not UTF-8: {raw[:40]!r}; save the list as UTF-8, as with "
                f"`iconv -f {charset} -t utf-8`"
            )
        yield number, line.strip()


class _Lists(NamedTuple):
    names: list[str]  # of entries, as they are shown
    numbers: npt.NDArray[np.int64]  # of their lists
    automaton: Automaton


@functools.lru_cache(maxsize=2)
def _lists(paths: Paths) -> _Lists:
    entries = [(number, entry) for number, (_, path) in enumerate(paths) for entry in read(path)]
    counted = [(number, entry) for number, entry in entries if not entry.ordinary]
    numbers = [number for number, _ in counted]
    shown = [(entry.category, disguises.name(entry.phrase)) for _, entry in counted]
    return _Lists(
        [f"{category}:{phrase}" if category else phrase for category, phrase in shown],
        np.array(numbers),
        automaton(
            disguises.forms([entry.phrase for _, entry in counted]),
            numbers,
            [entry.phrase for _, entry in entries if entry.ordinary],
        ),
    )


def measure(
    paths: Paths, texts: Texts, columns: Mapping[str, pa.Array]
) -> Mapping[str, pa.Array | np.ndarray]:
    """The columns of `columns(paths)` for a batch; see filters/signals.py."""
    known = _lists(paths)
    found = find(texts, known.automaton)
    lists = known.numbers[found.entries]
    measured: dict[str, pa.Array | np.ndarray] = {}
    for number, (name, _) in enumerate(paths):
        own = lists == number
        hits = found.texts[own]
        different = distinct(hits, found.entries[own], len(known.names))
        measured[name] = np.bincount(hits, minlength=len(texts)).astype(np.int32)
        measured[f"{name}_words"] = listed(*different, known.names, len(texts))
    return measured
