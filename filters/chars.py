"""Signal group `chars`: what a text is made of, character by character.

Published recipes look at such shares, and most look at ASCII only: NeMo Curator's alphanumerics are
[a-zA-Z0-9], its end marks and data-juicer's special characters list some full-width marks and not
others (上 and 士 are special there), MAP-NEO's punctuation is ASCII. Here a class is Unicode's, for
every script. All shares are of the characters of the text, white space included, but for
`upper_share`; of an empty text each is 0.

`distinct_share` and MAP-NEO's share of distinct characters look at the same thing. Theirs falls as
a text grows: 700 characters of sound English have fewer than a tenth distinct ones. Ours is the
mean over stretches of 200 characters, so it does not depend on the length.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from filters import text as units
from filters.columns import Signal
from filters.names import Offsets, Positions
from filters.segments import Texts
from filters.text import next_char
from kernels.cache import kept_arrays
from kernels.compile import kernel
from kernels.hashing import Bytes

STRETCH = 200  # characters of which the distinct ones are counted
RUN = 7  # equal letters or digits in a row (Zyda: `(\w)\1{6,}`)
PARENTHESES = "()[]{}⟨⟩（）［］｛｝"  # NeMo Curator constants.py, and the full-width forms
_COUNT = 0xFFFFFFFF
_OPEN, _CLOSE = ord("【"), ord("】")

RATIO = pa.float32()
_JUICER = "data-juicer"
_CURATOR = "NeMo Curator heuristic_filter.py"
_MAP_NEO = "MAP-NEO filter.py"
_ZYDA = "Zyda preprocess_and_filter.py"
COLUMNS: dict[str, Signal] = {
    "alnum_share": Signal(RATIO, "characters", "letters and numbers of any script", _JUICER),
    "han_share": Signal(
        RATIO,
        "characters",
        "Han of all blocks, extensions included",
        "ChineseWebText preprocess.py",
    ),
    "digit_share": Signal(RATIO, "characters", "decimal digits", f"{_CURATOR}; {_ZYDA}"),
    "symbol_share": Signal(
        RATIO, "characters", "neither letter, number, mark nor white space", f"{_ZYDA}; {_MAP_NEO}"
    ),
    "special_share": Signal(RATIO, "characters", "neither letter nor mark", f"BLOOM; {_JUICER}"),
    "space_share": Signal(RATIO, "characters", "white space", _CURATOR),
    "parenthesis_share": Signal(RATIO, "characters", f"of {PARENTHESES}", _CURATOR),
    "replacement_share": Signal(RATIO, "characters", "U+FFFD", _ZYDA),
    "private_share": Signal(RATIO, "characters", "private-use code points", "assay"),
    "upper_share": Signal(RATIO, "letters", "upper-case letters / letters", "assay"),
    "lenticular_share": Signal(
        RATIO, "characters", "between 【 and the next 】 of its line", _MAP_NEO
    ),
    "distinct_share": Signal(
        RATIO, "characters", "distinct ones / 200, mean over stretches of 200 in a row", _MAP_NEO
    ),
    "entropy": Signal(RATIO, "characters", "- sum of p log p, in nats", _MAP_NEO),
    "num_runs": Signal(pa.int32(), "runs", "runs of at least 7 equal letters or digits", _ZYDA),
}
SHARES = tuple(COLUMNS)[:10]  # those that count characters of a kind


def _classes() -> tuple[Bytes, npt.NDArray[np.int64]]:
    """A class for each code point; which of SHARES, then of letters, count it."""
    found, chars = units.CLASSES, units.CHARS
    letter = found & units.LETTER != 0
    word = found & units.WORD != 0
    mark = found & units.MARK != 0
    space = found & units.SPACE != 0
    members: list[Any] = [
        word,
        found & units.HAN != 0,
        np.strings.isdecimal(chars),
        ~(word | mark | space),
        ~(letter | mark),
        space,
        [ord(char) for char in PARENTHESES],
        [0xFFFD],
        [*range(0xE000, 0xF900), *range(0xF0000, 0xFFFFE), *range(0x100000, 0x10FFFE)],
        np.strings.isupper(chars),
        letter,
    ]
    bits = np.zeros(len(found), np.uint16)
    for number, member in enumerate(members):
        bits[member] |= 1 << number
    kinds, classes = np.unique(bits, return_inverse=True)
    return classes.astype(np.uint8), kinds[:, None] >> np.arange(len(members)) & 1


_CLASSES, _FIELDS = kept_arrays([__file__, units.__file__], _classes)
_IS_WORD = _FIELDS[:, 0] == 1  # of each class
_LOGS = np.array([0.0, *(n * math.log(n) for n in range(1, 256))])  # n log n


def measure(texts: Texts, columns: Mapping[str, pa.Array]) -> Mapping[str, pa.Array | np.ndarray]:
    """All columns of `COLUMNS` for a batch; no other columns are read. See filters/signals.py."""
    tallies = np.zeros((len(texts), len(_FIELDS)), np.int64)
    others = np.zeros((len(texts), 3), np.float32)
    runs = np.zeros(len(texts), np.int32)
    # Here, not in the kernel, which would write all its 9 MB: the system's pages come as zeros.
    states = np.zeros(len(_CLASSES), np.int64)
    _measure(texts.data, texts.offsets, _CLASSES, states, tallies, others, runs)
    counts = tallies @ _FIELDS
    wholes = np.repeat(tallies.sum(axis=1)[:, None], len(SHARES), axis=1)
    wholes[:, SHARES.index("upper_share")] = counts[:, -1]
    shares = (counts[:, :-1] / np.maximum(wholes, 1)).astype(np.float32)
    return {
        **{name: shares[:, i].copy() for i, name in enumerate(SHARES)},
        "lenticular_share": others[:, 0].copy(),
        "distinct_share": others[:, 1].copy(),
        "entropy": others[:, 2].copy(),
        "num_runs": runs,
    }


@kernel
def _measure(
    data: Bytes,
    offsets: Offsets,
    classes: Bytes,
    states: Offsets,
    tallies: npt.NDArray[np.int64],
    others: npt.NDArray[np.float32],
    runs: Positions,
) -> None:
    """`states`, of each code point, zeros: how often this text has it, and above bit 32 the last
    stretch that had it.
    """
    seen = np.empty(len(classes), np.int32)  # code points of this text, as they came
    stretch = 0
    for text in range(len(runs)):
        at, end = offsets[text], offsets[text + 1]
        num_seen = distinct = in_stretches = whole = before = run = 0
        left = STRETCH
        stretch += 1
        while at < end:
            code = int(data[np.uint64(at)])
            if code < 0x80:
                at += 1
            else:
                code, at = next_char(data, at)
            state = states[np.uint64(code)]
            seen[np.uint64(num_seen)] = code  # no branch: which are new cannot be predicted
            num_seen += state & _COUNT == 0
            distinct += state >> 32 != stretch
            states[np.uint64(code)] = (stretch << 32) + (state & _COUNT) + 1
            run = run + 1 if code == before else 1
            before = code
            if run == RUN:
                runs[text] += _IS_WORD[classes[code]]
            left -= 1
            if left == 0:
                in_stretches += distinct
                whole += STRETCH
                distinct = 0
                left = STRETCH
                stretch += 1
        num_chars = whole + STRETCH - left
        if num_chars == 0:
            continue
        if states[_OPEN] & _COUNT and states[_CLOSE] & _COUNT:
            others[text, 0] = _in_brackets(data, offsets[text], end) / num_chars
        others[text, 1] = in_stretches / whole if whole else distinct / num_chars
        logs = 0.0
        for i in range(num_seen):
            count = states[seen[i]] & _COUNT
            states[seen[i]] = 0
            logs += _LOGS[count] if count < len(_LOGS) else count * math.log(count)
            tallies[text, classes[seen[i]]] += count
        others[text, 2] = max(math.log(num_chars) - logs / num_chars, 0.0)


@kernel
def _in_brackets(data: Bytes, at: int, end: int) -> int:
    """Characters between each 【 and the next 】 of its line."""
    inside = 0
    chars = -1  # since 【; -1 outside
    while at < end:
        code, at = next_char(data, at)
        if code == _OPEN and chars < 0:
            chars = 0
        elif code == _CLOSE and chars >= 0:
            inside += chars
            chars = -1
        elif code == 10:
            chars = -1
        elif chars >= 0:
            chars += 1
    return inside
