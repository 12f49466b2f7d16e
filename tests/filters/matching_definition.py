"""What filters/matching.py finds, in plain Python: the definition that the kernels are held to."""

from __future__ import annotations

import functools
import itertools
import math

from filters.automaton import Form
from filters.han_words import WORDS
from filters.matching import MAX_GAP
from filters.symbols import BLANK, DIGIT, GAP, HAN, LETTER, NOTHING, VALUE, symbol

Found = tuple[int, int, int]  # entry, begin, end in characters


@functools.cache
def frequencies() -> dict[str, int]:
    rows = (line.split("\t") for line in WORDS.read_text(encoding="utf-8").splitlines())
    return {word: int(count) for word, count in rows}


def is_word(row: str, begin: int, end: int) -> bool:
    """Is row[begin:end] a word? All ways to cut `row` into words are compared."""
    counts = frequencies()
    total = sum(counts.values())

    def through(i: int, j: int) -> bool:
        if i < begin and j >= end:
            return not (begin - i >= 2 and row[i:begin] in counts)
        return i < begin < j < end or begin < i < end < j

    def best(i: int, careful: bool) -> float:
        if i == len(row):
            return 0.0
        found = -math.inf
        for j in range(i + 1, len(row) + 1):
            if careful and through(i, j):
                continue
            known = j - i <= 4 and row[i:j] in counts
            count = counts.get(row[i:j], 0) if known else 1 if j == i + 1 else 0
            if (i, j) == (begin, end):
                count = max(count, min(counts.values()))
            if count:
                found = max(found, math.log(count / total) + best(j, careful))
        return found

    return best(0, True) >= best(0, False) - 1e-4


def read(text: str) -> list[tuple[int, int]]:
    """The symbols of a text, each with where it stands; what cannot be seen is none."""
    found = [(symbol(char), at) for at, char in enumerate(text)]
    return [(value, at) for value, at in found if not value & NOTHING]


def _folded(phrase: str) -> tuple[int, ...]:
    values = [value for value, _ in read(phrase.strip())]
    kept = [v for i, v in enumerate(values) if not (v & BLANK and i and values[i - 1] & BLANK)]
    return tuple(value & VALUE for value in kept)


@functools.lru_cache(maxsize=1)
def _rows(
    forms: tuple[Form, ...],
) -> tuple[dict[tuple[int, ...], list[Form]], set[tuple[int, ...]]]:
    """The forms by their symbols, and all that rows of symbols begin with."""
    by_row: dict[tuple[int, ...], list[Form]] = {}
    for form in forms:
        by_row.setdefault(_folded(form.text), []).append(form)
    return by_row, {row[:n] for row in by_row for n in range(1, len(row) + 1)}


def _ends(
    symbols: list[tuple[int, int]], begin: int, prefixes: set[tuple[int, ...]]
) -> list[tuple[tuple[int, ...], int, bool]]:
    """What is read from a symbol on, as long as phrases begin so: symbols, the last one's number,
    whether anything stood between."""
    row: tuple[int, ...] = ()
    found = []
    gap, gapped, last = 0, False, 0
    for at in range(begin, len(symbols)):
        value = symbols[at][0]
        if value & last & BLANK:
            continue
        longer = (*row, value & VALUE)
        if longer not in prefixes or (gap and not (last | value) & HAN):
            gap += 1
            if not row or not value & GAP or gap > MAX_GAP:
                break
            continue
        gapped, gap, last, row = gapped or gap > 0, 0, value, longer
        found.append((row, at, gapped))
    return found


def _apart(symbols: list[tuple[int, int]], begin: int, end: int) -> bool:
    """Does what stands at symbols[begin:end + 1] stand at word borders?"""
    kind = LETTER | DIGIT
    if begin and symbols[begin - 1][0] & symbols[begin][0] & kind:
        return False
    if end + 1 < len(symbols) and symbols[end][0] & symbols[end + 1][0] & kind:
        return False
    before = after = ""
    if symbols[begin][0] & HAN:
        left = [value for value, _ in symbols[max(begin - 3, 0) : begin]][::-1]
        han = itertools.takewhile(lambda value: value & HAN, left)
        before = "".join(chr(value & VALUE) for value in han)[::-1]
    if symbols[end][0] & HAN:
        right = [value for value, _ in symbols[end + 1 : end + 4]]
        han = itertools.takewhile(lambda value: value & HAN, right)
        after = "".join(chr(value & VALUE) for value in han)
    if not before + after:
        return True
    shown = [value for value, _ in symbols[begin : end + 1] if value & (HAN | LETTER | DIGIT)]
    middle = "".join(chr(value & VALUE) for value in shown)
    return is_word(before + middle + after, len(before), len(before) + len(middle))


def find(text: str, forms: list[Form], categories: list[int], ordinary: list[str]) -> list[Found]:
    symbols = read(text)
    by_row, prefixes = _rows((*forms, *(Form(-1, phrase) for phrase in ordinary)))
    free: dict[int, int] = {}
    found: list[Found] = []
    for begin in range(len(symbols)):
        for row, end, gapped in reversed(_ends(symbols, begin, prefixes)):
            for form in by_row.get(row, []):
                category = -1 if form.entry < 0 else categories[form.entry]
                if free.get(category, 0) > begin or (form.gapped and not gapped):
                    continue
                kind = LETTER | DIGIT
                glued = begin > 0 and symbols[begin - 1][0] & symbols[begin][0] & kind
                if not glued and (form.entry < 0 or _apart(symbols, begin, end)):
                    free[category] = end + 1
                    found.append((form.entry, symbols[begin][1], symbols[end][1] + 1))
    kept = []
    spans = [(begin, end) for entry, begin, end in found if entry < 0]
    for entry, begin, end in found:
        holds = [b < end and begin < e and not (begin <= b and e <= end and e - b < end - begin)
                 for b, e in spans]  # fmt: skip
        if entry >= 0 and not any(holds):
            kept.append((entry, begin, end))
    return sorted(kept)
