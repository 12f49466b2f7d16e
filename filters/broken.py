"""Signal group `broken`: text that was damaged on its way, and how much of it.

Each kind is a share of the text; `score` is the worst of them, each times the number of characters,
words or lines that one fault of the kind spoils (SPOILS): a wrong character spoils a hundred, so a
text in which one of a hundred is wrong has the score 1. One � in a short message is much, in a book
it is nothing.

A cheap look at all bytes comes first (filters/mojibake.py, broken_lines.py, broken_words.py); only
what it picks is looked at by the regular expressions here. Not told apart from sound text: machine
translation, one wrong letter in a rare word, 1025 for 10²⁵ where no × stands before it.
"""

from __future__ import annotations

import functools
import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from filters import confused_han, mojibake
from filters.broken_lines import HYPHEN, PAGE, WRAPPED, cut_lines
from filters.broken_words import (
    CONFUSED,
    CONFUSED_WORDS,
    ENDING,
    ENDINGS,
    JOINED,
    JOINED_CHARS,
    MIN_WORDS,
    suspects,
)
from filters.columns import Signal
from filters.evidence import MOST
from filters.mojibake import wrong_chars
from filters.pinyin import in_brackets
from filters.segments import Texts

SPOILS: dict[str, int] = {
    "wrong_char_share": 100,
    "confused_share": 50,
    "split_share": 50,
    "pinyin_share": 10,
    "spaced_share": 10,
    "joined_share": 10,
    "page_line_share": 10,
    "hyphen_line_share": 5,
}
EVIDENCE_CHARS = 30

SHARE, COUNT = pa.float32(), pa.int32()
_STRINGS = pa.list_(pa.string())
COLUMNS: dict[str, Signal] = {
    "score": Signal(
        SHARE, "text", "how much of it is spoilt: the largest share times its SPOILS", "assay"
    ),
    "wrong_char_share": Signal(
        SHARE, "characters", "U+FFFD and mojibake; see filters/mojibake.py", "assay"
    ),
    "num_replaced": Signal(COUNT, "characters", "U+FFFD", "Unicode 17, chapter 23.8"),
    "confused_share": Signal(
        SHARE, "words", "末来, 曰本, tlie, frorn: of three on; see CONFUSED", "assay"
    ),
    "split_share": Signal(SHARE, "words", "ends of words that stand alone, of three on", "assay"),
    "pinyin_share": Signal(SHARE, "words", "with pinyin in brackets behind: 练(liàn)", "assay"),
    "spaced_share": Signal(
        SHARE, "words", "characters between spaces, of three on: 你 好 吗", "assay"
    ),
    "joined_share": Signal(
        SHARE,
        "characters",
        "in words of 21 letters and more, of three on; 0 if not English",
        "assay",
    ),
    "page_line_share": Signal(
        SHARE, "lines", "numbers of pages one after another, and the heads beside them", "assay"
    ),
    "hyphen_line_share": Signal(SHARE, "lines", "that end in a hyphen within a word", "assay"),
    "wrapped_line_share": Signal(
        SHARE, "lines", "of 15 characters and more that end within a sentence", "assay"
    ),
    "num_flat_powers": Signal(COUNT, "phrases", "×1025, ×10-6: exponents that are none", "assay"),
    "evidence": Signal(_STRINGS, "phrases", "the first of each kind that counts in score", "assay"),
}

_HAN = "[\u3400-\u9fff]"
_SPACED_HAN = re.compile(rf" (?<={_HAN} ){_HAN}(?= {_HAN})")
# From behind the first letter: search for one character is four times as fast as for a class.
_SPACED_LETTERS = re.compile(
    r" (?:(?<=[^A-Za-z0-9][A-Za-z] )|(?<=\A[A-Za-z] ))(?:[A-Za-z] ){2,}[A-Za-z](?![A-Za-z0-9])"
)
_JOINED = re.compile(rf"(?<![\w/@.-])[A-Za-z][a-z]{{{JOINED_CHARS - 1},}}(?![\w/@-])")
_POWERS = re.compile(r"× ?10[-−–]?[1-9][0-9]?(?![0-9.,])")
_AROUND = ".,;:!?()[]\"'“”‘’"  # a word
# 周末来, 自己经: the first character may end a word. A class before the 440 pairs: without it each
# character is held against all of them.
_FIRST_OF_PAIR = "".join(sorted({pair[0] for pair in confused_han.PAIRS}))
_CONFUSED_HAN = re.compile(
    f"(?=[{_FIRST_OF_PAIR}])(?<![周週月年季期纪紀岁歲世始本自知克利律])"
    f"(?:{'|'.join(sorted(confused_han.PAIRS))})"
)


def _all(pattern: re.Pattern[str], text: str) -> tuple[int, list[str]]:
    matches = pattern.findall(text)
    return len(matches), matches


def _pinyin(text: str) -> tuple[int, list[str]]:
    matches = in_brackets(text)
    return len(matches), matches


def _some(matches: list[str]) -> tuple[int, list[str]]:
    return (len(matches), matches) if len(matches) >= MIN_WORDS else (0, [])


def _spaced(text: str) -> tuple[int, list[str]]:
    letters = (match.span() for match in _SPACED_LETTERS.finditer(text))
    matches = _SPACED_HAN.findall(text) + [text[begin - 1 : end] for begin, end in letters]
    num_spaced = sum((len(match) + 1) // 2 for match in matches)
    return (num_spaced, matches) if num_spaced >= MIN_WORDS else (0, [])


def _joined(text: str) -> tuple[int, list[str]]:
    _, matches = _some(
        [
            word
            for chunk in text.split()
            if len(chunk) >= JOINED_CHARS
            for word in _JOINED.findall(chunk)
        ]
    )
    return sum(map(len, matches)), matches


def _listed(words: frozenset[str], text: str) -> list[str]:
    return [word for word in text.split() if word.strip(_AROUND).lower() in words]


# What a dear look counts, and the places where; `measure` says which texts get it.
DEAR: dict[str, Callable[[str], tuple[int, list[str]]]] = {
    "pinyin_share": _pinyin,
    "spaced_share": _spaced,
    "joined_share": _joined,
    "split_share": lambda text: _some(_listed(ENDINGS, text)),
    "confused_share": lambda text: _some(
        _listed(CONFUSED_WORDS, text) + _CONFUSED_HAN.findall(text)
    ),
    "num_flat_powers": functools.partial(_all, _POWERS),
}


def measure(texts: Texts, columns: Mapping[str, pa.Array]) -> Mapping[str, pa.Array | np.ndarray]:
    """All columns of `COLUMNS` for a batch; see filters/signals.py."""
    words, lines, *_ = texts.segments
    english = pc.equal(columns["lang"], "en").fill_null(False).to_numpy(zero_copy_only=False)
    wrong, looks, spans = wrong_chars(texts.data, texts.offsets)
    cut, first_cut = cut_lines(texts.data, texts.segments)
    odd = suspects(texts.data, texts.offsets, words, english)
    picked = {
        "pinyin_share": looks[:, mojibake.BRACKETS] >= mojibake.TONE,
        "spaced_share": looks[:, mojibake.APART] > 0,
        "joined_share": odd[:, JOINED] >= MIN_WORDS,
        "split_share": odd[:, ENDING] >= MIN_WORDS,
        "confused_share": odd[:, CONFUSED] + looks[:, mojibake.CONFUSIONS] >= MIN_WORDS,
        "num_flat_powers": looks[:, mojibake.POWERS] > 0,
    }
    found: dict[str, npt.NDArray[Any]] = {
        "wrong_char_share": wrong[:, 0] + np.maximum(wrong[:, 1], wrong[:, 2]),
        "page_line_share": cut[:, PAGE],
        "hyphen_line_share": cut[:, HYPHEN],
        "wrapped_line_share": cut[:, WRAPPED],
        **{name: np.zeros(len(texts), np.int32) for name in DEAR},
    }
    evidence: defaultdict[int, list[str]] = defaultdict(list)
    for text in np.flatnonzero(spans[:, 0, 1]).tolist():
        places = spans[text].tolist()
        wrong_places = {bytes(texts.data[begin:end]).decode() for begin, end in places if end}
        evidence[text] += _shown("wrong_char", sorted(wrong_places)[:3])
    for name, kind in (("page_line", PAGE), ("hyphen_line", HYPHEN)):
        for text in np.flatnonzero(cut[:, kind]).tolist():
            line = first_cut[text, kind]
            piece = texts.data[lines.begins[line] : lines.ends[line]]
            evidence[text] += _shown(name, [bytes(piece).decode()])
    for text in np.flatnonzero(np.any(list(picked.values()), axis=0)).tolist():
        content = texts.array[text].as_py()
        for name in (name for name in DEAR if picked[name][text]):
            found[name][text], places = DEAR[name](content)
            if name in SPOILS:
                evidence[text] += _shown(name.removesuffix("_share"), places[:2])
    num_chars = np.diff(np.concatenate([[0], lines.chars.cumsum(dtype=np.int64)])[lines.offsets])
    of = {"characters": num_chars, "words": np.diff(words.offsets), "lines": np.diff(lines.offsets)}
    shares = {
        name: (found[name] / np.maximum(of[COLUMNS[name].unit], 1)).clip(0, 1).astype(np.float32)
        for name in found
        if name.endswith("_share")
    }
    score = np.max([shares[name] * spoilt for name, spoilt in SPOILS.items()], axis=0)
    columns_found: dict[str, Any] = {
        **shares,
        "score": score.clip(0, 1).astype(np.float32),
        "num_replaced": wrong[:, 0].copy(),
        "num_flat_powers": found["num_flat_powers"],
        "evidence": _lists(evidence, len(texts)),
    }
    return {name: columns_found[name] for name in COLUMNS}


def _lists(evidence: Mapping[int, list[str]], num_texts: int) -> pa.Array:
    """A list for each text; nearly all are empty."""
    counts = np.zeros(num_texts + 1, np.int32)
    for text, places in evidence.items():
        counts[text + 1] = min(len(places), MOST)
    values = [place for text in sorted(evidence) for place in evidence[text][:MOST]]
    return pa.ListArray.from_arrays(counts.cumsum(dtype=np.int32), pa.array(values, pa.string()))


def _shown(kind: str, places: list[str]) -> list[str]:
    return [f"{kind}: {place.strip()[:EVIDENCE_CHARS]}" for place in places]
