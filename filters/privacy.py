"""Editor and signal group `privacy`: what tells who somebody is, or opens a door.

A kernel marks the few places where something may stand (private_marks.py), rules look there:
private_numbers.py, private_addresses.py, private_homes.py, secrets.py. Chinese and English, in any
text.

Replacements are plain words in square brackets, one for each kind and the same everywhere: they
depend on no order and no shard; no rule finds them again; they are nobody's, where numbers set
aside for documentation would have to be (for a Chinese mobile none is); and they are no control
token of a tokenizer, which `<|email|>` might be. A second run finds nothing: `find` looks again at
what its own edits leave.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping

import numpy as np
import pyarrow as pa

from filters import private_addresses, private_homes, private_numbers, secrets
from filters.columns import Signal
from filters.edits import Edits, applied, edits_of, merged
from filters.private_marks import (
    AT,
    COLONS,
    DOTTED,
    NUMBER,
    PASSPORT,
    ROOM,
    STREET,
    TOKEN,
    WIDE,
    marks,
)
from filters.private_numbers import Span
from filters.private_widths import narrowed
from filters.segments import Texts

Rule = Callable[[bytes, int, int], Iterable[Span]]

# Kind -> the marks at which its rule looks, and the rule. Where two overlap the first counts.
RULES: dict[str, tuple[int, Rule]] = {
    "secret": (TOKEN, secrets.tokens),
    "password": (AT, secrets.passwords),
    "email": (AT, private_addresses.emails),
    "resident_id": (NUMBER, private_numbers.resident_ids),
    "bank_card": (NUMBER, private_numbers.bank_cards),
    "phone": (NUMBER, private_numbers.phones),
    "passport": (PASSPORT, private_numbers.passports),
    "ipv4": (DOTTED, private_addresses.ipv4),
    "ipv6": (COLONS, private_addresses.ipv6),
    "home_address": (ROOM | STREET, private_homes.homes),
}
REPLACEMENTS = {kind: f"[{kind.upper()}]" for kind in RULES}

COLUMNS: dict[str, Signal] = {
    f"num_{kind}": Signal(pa.int32(), "phrases", f"edits of kind {kind}", "assay") for kind in RULES
}
MOST_TURNS = 8  # of looking again; two are enough for all but texts made to need more


def find(texts: Texts, columns: Mapping[str, pa.Array]) -> Edits:
    """What would be replaced; see filters/editors.py."""
    del columns
    edits = _found(texts)
    for _ in range(MOST_TURNS if len(edits) else 0):
        rows = np.unique(edits.rows)
        again = applied(texts.array.take(pa.array(rows)), _renumbered(edits, rows))
        more = _found(Texts(again))
        if not len(more):
            break
        edits = merged([edits, _before(more, edits, rows)])
    return edits


def measure(texts: Texts, columns: Mapping[str, pa.Array]) -> Mapping[str, pa.Array | np.ndarray]:
    """All columns of `COLUMNS` for a batch; see filters/signals.py."""
    edits = find(texts, columns)
    kinds = np.array(edits.kinds.to_pylist(), object)
    return {
        f"num_{kind}": np.bincount(edits.rows[kinds == kind], minlength=len(texts)).astype(np.int32)
        for kind in RULES
    }


def _found(texts: Texts) -> Edits:
    by_kind: dict[str, list[tuple[int, int, int, str, str]]] = {kind: [] for kind in RULES}
    for row, kind, start, end in _spans(texts):
        by_kind[kind].append((row, start, end, kind, REPLACEMENTS[kind]))
    return merged([edits_of(dict.fromkeys(found)) for found in by_kind.values() if found])


def _spans(texts: Texts) -> Iterator[tuple[int, str, int, int]]:
    """Of every mark what its rules find: row, kind, start, end."""
    row, text, first = -1, b"", 0
    for number, begin, end, what in marks(texts.data, texts.offsets).tolist():
        if number != row:
            row, first = number, int(texts.offsets[number])
            text = texts.data[first : texts.offsets[number + 1]].tobytes()
        if what == WIDE:
            window, here, there, places = narrowed(text, begin - first, end - first)
            for kind, rule in _rules_at(NUMBER):
                for start, stop in rule(window, here, there):
                    yield row, kind, places[start], places[stop]
            continue
        for kind, rule in _rules_at(what):
            for start, stop in rule(text, begin - first, end - first):
                yield row, kind, start, stop


@functools.cache
def _rules_at(what: int) -> list[tuple[str, Rule]]:
    return [(kind, rule) for kind, (at, rule) in RULES.items() if what & at]


def _renumbered(edits: Edits, rows: np.ndarray) -> Edits:
    """The same edits of the texts `rows` alone."""
    numbers = np.searchsorted(rows, edits.rows)
    return Edits(numbers, edits.starts, edits.ends, edits.kinds, edits.replacements)


def _before(more: Edits, edits: Edits, rows: np.ndarray) -> Edits:
    """Edits `more` of the edited texts `rows`, as ranges of the texts before `edits`. What covers a
    replacement covers all that it replaced."""
    found = []
    sizes = np.array([len(text.encode()) for text in edits.replacements.to_pylist()])
    columns = (more.rows, more.starts, more.ends, more.kinds, more.replacements)
    for number, start, end, kind, text in zip(*(c.tolist() for c in columns), strict=True):
        mine = edits.rows == rows[number]
        starts, ends = edits.starts[mine], edits.ends[mine]
        shift = np.cumsum(sizes[mine] - (ends - starts))  # after each edit
        new_ends = ends + shift
        new_starts = new_ends - sizes[mine]
        first = int(np.searchsorted(new_ends, start, side="right"))  # edits that end before it
        last = int(np.searchsorted(new_starts, end, side="left"))  # edits that begin before its end
        begin = start - (shift[first - 1] if first else 0)
        stop = end - (shift[last - 1] if last else 0)
        if first < len(starts) and new_starts[first] < start:
            begin = starts[first]
        if last and new_ends[last - 1] > end:
            stop = ends[last - 1]
        found.append((int(rows[number]), int(begin), int(stop), kind, text))
    return edits_of(found)
