"""The gopher signals in plain Python: slow, short, and what the kernels must equal."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from filters.gopher import BULLETS
from filters.stop_words import STOP_WORDS
from filters.text import CLASSES, LETTER, lines, paragraphs, words

_ASCII_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}


def gopher(text: str, language: str) -> dict[str, float | None]:
    found = [word.translate(_ASCII_LOWER) for word in words(text)]
    rows = lines(text)
    num_words, num_lines = max(len(found), 1), max(len(rows), 1)
    stops = [
        set(entry) if not entry.isascii() else {entry} for entry in STOP_WORDS.get(language, ())
    ]
    return {
        "num_words": len(found),
        "num_stop_words": sum(not entry.isdisjoint(found) for entry in stops) if stops else None,
        "mean_word_length": sum(map(len, found)) / num_words,
        "hash_ratio": len(re.findall("[#＃]", text)) / num_words,
        "ellipsis_ratio": len(re.findall(r"…+|\.{3,}|。{3,}", text)) / num_words,
        "bullet_line_share": sum(row[0] in BULLETS for row in rows) / num_lines,
        "ellipsis_line_share": sum(row.endswith(("…", "...", "。。。")) for row in rows)
        / num_lines,
        "alpha_word_share": sum(any(CLASSES[ord(c)] & LETTER for c in w) for w in found)
        / num_words,
        **_duplicates("line", rows),
        **_duplicates("paragraph", paragraphs(text)),
        **{f"top_{n}_gram_char_share": _share(found, n, _top(found, n)) for n in (2, 3, 4)},
        **{
            f"dup_{n}_gram_char_share": _share(found, n, _repeated(_grams(found, n)))
            for n in range(5, 11)
        },
    }


def _duplicates(unit: str, pieces: list[str]) -> dict[str, float | None]:
    again = [pieces[i] for i in _repeated(pieces)]
    return {
        f"dup_{unit}_share": len(again) / max(len(pieces), 1),
        f"dup_{unit}_char_share": sum(map(len, again)) / max(sum(map(len, pieces)), 1),
    }


def _grams(found: list[str], n: int) -> list[tuple[str, ...]]:
    return [tuple(found[i : i + n]) for i in range(len(found) - n + 1)]


def _top(found: list[str], n: int) -> list[int]:
    """Where the most frequent n-gram stands; the first of several; nowhere if it stands once."""
    grams = _grams(found, n)
    top = max(Counter(grams).items(), key=lambda item: item[1], default=((), 0))
    return [i for i, gram in enumerate(grams) if gram == top[0]] if top[1] > 1 else []


def _repeated(pieces: Sequence[object]) -> list[int]:
    """Indices of pieces that stood before."""
    first: dict[object, int] = {}
    return [i for i, piece in enumerate(pieces) if first.setdefault(piece, i) != i]


def _share(found: list[str], n: int, starts: list[int]) -> float:
    covered = {i for start in starts for i in range(start, start + n)}
    return sum(len(found[i]) for i in covered) / max(sum(map(len, found)), 1)
