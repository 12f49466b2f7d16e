"""Signal group `code`: what code teams leave out of source files.

Lengths of lines and letters as CodeParrot and The Stack have them, data blobs as StarCoder 2, marks
of generators, licence headers. Of documents of kind `code` alone: in any other all are 0, for a
line of 1,000 characters says nothing about a page. No preset judges code by rules for prose, where
`pass` is NULL. Shares of nothing are 0.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from filters.columns import Signal
from filters.segments import Texts
from filters.text import CLASSES, WORD, Bits, next_char
from kernels.compile import kernel
from kernels.hashing import Bytes

CODEPARROT = "Tunstall et al. 2022, CodeParrot; Kocetkov et al. 2022, arXiv:2211.15533"
STARCODER = "Lozhkov et al. 2024, arXiv:2402.19173, section 2.1"
SHARE = pa.float32()
COLUMNS: dict[str, Signal] = {
    "max_line_length": Signal(pa.int32(), "characters", "of the longest line", CODEPARROT),
    "mean_line_length": Signal(SHARE, "characters per line", "of lines with text", CODEPARROT),
    "alnum_share": Signal(SHARE, "characters", "letters and digits", CODEPARROT),
    "byte_entropy": Signal(SHARE, "bytes", "bits of a byte by its frequency, 0 to 8", "assay"),
    "data_share": Signal(
        SHARE, "bytes", "in runs of base64 (64 bytes) or of numbers (256 bytes)", STARCODER
    ),
    "minified_share": Signal(
        SHARE, "characters", "in ASCII lines of over 500, under a tenth of them spaces", "assay"
    ),
    "generated": Signal(SHARE, "text", "1: a generator's mark at its head; else 0", CODEPARROT),
    "licence_share": Signal(SHARE, "bytes", "of a comment at its head that is a licence", "assay"),
    "evidence": Signal(pa.list_(pa.string()), "lines", "the lines that say so, 4 at most", "assay"),
}
NUMBERS = tuple(COLUMNS)[:6]

HEAD_BYTES = 4_000  # where a generator or a licence says so
HEAD_LINES = 10  # The Stack has 5; a licence often stands before the mark
_GENERATED = re.compile(
    "@generated|auto-?generated|automatically generated|generated (?:by|from|with) |"
    "this (?:file|code) (?:was|is) generated|do not (?:edit|modify)|自动生成|自動生成".encode(),
    re.I,
)
_COMMENT = re.compile(
    rb"\A(?:#!.*\n)?\s*(?:/\*(?:[^*]|\*(?!/))*\*/|<!--(?:[^-]|-(?!->))*-->|(?:(?://|#|--|;|%).*\n?)+)"
)
_LICENCE = re.compile(
    "copyright|licen[cs]e|SPDX-|permission is hereby|all rights reserved|版权|版權|许可".encode(),
    re.I,
)


def measure(texts: Texts, columns: Mapping[str, pa.Array]) -> Mapping[str, pa.Array | np.ndarray]:
    """All columns of `COLUMNS` for a batch; see filters/signals.py."""
    numbers = np.zeros((len(texts), len(NUMBERS)), np.float64)
    is_code = np.asarray(pc.equal(columns["kind"], "code").fill_null(False))
    _measure(texts.data, texts.offsets, CLASSES, is_code, numbers)
    found = {name: numbers[:, i].astype(np.float32) for i, name in enumerate(NUMBERS)}
    found["max_line_length"] = numbers[:, 0].astype(np.int32)
    heads = np.zeros((2, len(texts)), np.float32)
    evidence: list[list[str]] = [[] for _ in range(len(texts))]
    for row in np.flatnonzero(is_code).tolist():
        heads[0, row], heads[1, row], evidence[row] = _head(texts, row)
    return found | {
        "generated": heads[0],
        "licence_share": heads[1],
        "evidence": pa.array(evidence, pa.list_(pa.string())),
    }


def _head(texts: Texts, row: int) -> tuple[float, float, list[str]]:
    """Is a file generated, which share of it is its licence, and the lines that say so."""
    begin, end = int(texts.offsets[row]), int(texts.offsets[row + 1])
    head = texts.data[begin : min(end, begin + HEAD_BYTES)].tobytes()
    comment = _COMMENT.match(head)
    is_licence = comment is not None and _LICENCE.search(comment[0]) is not None
    lines = [line for line in head.split(b"\n")[:HEAD_LINES] if _GENERATED.search(line)]
    said = lines[:2]
    if comment is not None and is_licence:
        said += [line for line in comment[0].split(b"\n") if _LICENCE.search(line)][:2]
    share = len(comment[0]) / (end - begin) if comment is not None and is_licence else 0.0
    shown = [line.decode("utf-8", "ignore").strip()[:200] for line in said]
    return float(bool(lines)), share, shown


_NUMBER, _BASE64, _DIGIT, _SPACE, _ALNUM = 1, 2, 4, 8, 16
LONG_LINE = 500
BASE64_RUN, NUMBER_RUN = 64, 256


def _bytes() -> Bytes:
    bits = np.zeros(256, np.uint8)
    bits[list(b"0123456789abcdefABCDEFxXuUL,.+-_()[]{}\\ \t\n")] |= _NUMBER
    digits, letters = list(range(0x30, 0x3A)), [*range(0x41, 0x5B), *range(0x61, 0x7B)]
    bits[[*digits, *letters, *b"+/"]] |= _BASE64
    bits[digits] |= _DIGIT
    bits[list(b" \t")] |= _SPACE
    bits[[*digits, *letters]] |= _ALNUM
    return bits


_BYTES = _bytes()


@kernel
def _measure(
    data: Bytes,
    offsets: npt.NDArray[np.int64],
    classes: Bits,
    is_code: npt.NDArray[np.bool_],
    numbers: npt.NDArray[np.float64],
) -> None:
    counts = np.zeros(256, np.int64)
    for text in np.flatnonzero(is_code):
        begin, stop = offsets[text], offsets[text + 1]
        counts[:] = 0
        chars = alnum = lines = inside = longest = minified = blobs = 0
        length = spaces = wide = 0  # of the line
        run = run_digits = table = table_digits = in_table = 0
        at = begin
        while at <= stop:
            start = at
            kind = 0
            if at == stop:
                at += 1
            else:
                byte = data[at]
                if byte < 0x80:
                    kind = int(_BYTES[byte])
                    at += 1
                    alnum += kind & _ALNUM != 0
                else:
                    code, at = next_char(data, at)
                    alnum += classes[code] & WORD != 0
                    wide += 1
                chars += 1
                for i in range(start, at):
                    counts[data[i]] += 1
            if kind & _BASE64:
                run += 1
                run_digits += kind & _DIGIT != 0
            else:
                if run >= BASE64_RUN and 0 < run_digits < run:
                    blobs += run
                    in_table += min(run, table)
                run = run_digits = 0
            if kind & _NUMBER:
                table += 1
                table_digits += kind & _DIGIT != 0
            else:
                if table >= NUMBER_RUN and table_digits * 4 >= table:
                    blobs += table - in_table
                table = table_digits = in_table = 0
            if start == stop or data[start] == 0x0A:
                if length > spaces:
                    lines += 1
                    inside += length
                longest = max(longest, length)
                if length > LONG_LINE and spaces * 10 < length and wide * 5 < length:
                    minified += length
                length = spaces = wide = 0
            else:
                length += 1
                spaces += kind & _SPACE != 0
        entropy = 0.0
        for count in counts:
            if count:
                share = count / (stop - begin)
                entropy -= share * np.log2(share)
        row = numbers[text]
        row[0] = longest
        row[1] = inside / max(lines, 1)
        row[2] = alnum / max(chars, 1)
        row[3] = entropy
        row[4] = min(blobs / max(stop - begin, 1), 1.0)
        row[5] = minified / max(chars, 1)
