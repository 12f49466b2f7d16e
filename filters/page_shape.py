"""How a page is laid out: paragraphs and their evenness, headings, lists, bold type."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from filters.pieces import Segments
from filters.text import next_char
from kernels.compile import kernel
from kernels.hashing import Bytes

SHAPE = ("prose_lines", "heading_share", "list_share", "bold_share", "evenness", "burstiness")
USUAL = 0.5
_PROSE_BYTES = 90  # of a line: 30 Han, 15 English words
_HASH, _STAR, _MINUS, _STOP = (ord(char) for char in "#*-.")
_BULLETS = np.array([ord(char) for char in "•·●✅◆▪–"])


@kernel
def page_shapes(data: Bytes, segments: Segments) -> npt.NDArray[np.float32]:
    """Of each text the SHAPE: lines of prose (with a sentence, and not short); of all lines, the
    shares that are headings (#, or short without a mark at the end), items of lists, and that have
    bold type; the variation coefficients of prose lines: of their characters, and of the words of a
    sentence in them.
    """
    lines = segments.lines
    num_texts = len(lines.offsets) - 1
    shapes = np.zeros((num_texts, 6), np.float32)
    for text in range(num_texts):
        first, last = lines.offsets[text], lines.offsets[text + 1]
        prose = headings = items = bold = 0
        chars = chars_squared = words = words_squared = 0.0
        for line in range(first, last):
            begin, end = lines.begins[line], lines.ends[line]
            code, after = next_char(data, begin)
            starred = end - begin > 4 and _has_bold(data, begin, end)
            bold += starred
            digits = begin
            while digits < end and digits < begin + 3 and 0x30 <= data[digits] <= 0x39:
                digits += 1
            numbered = (
                digits > begin and digits < end and (data[digits] == _STOP or data[digits] == 0xE3)
            )
            item = numbered or (code in (_STAR, _MINUS) and after < end and data[after] == 0x20)
            for bullet in _BULLETS:
                item |= code == bullet
            items += item
            if end - begin >= _PROSE_BYTES and lines.sentences[line] > 0:
                prose += 1
                length = float(lines.chars[line])
                chars += length
                chars_squared += length * length
                each = lines.words[line] / lines.sentences[line]
                words += each
                words_squared += each * each
            elif not item:
                mark = data[end - 1]
                closed = mark == _STOP or mark == 0x21 or mark == 0x3F or mark == 0x3A
                closed |= (
                    mark >= 0x80
                    and end - begin >= 3
                    and (data[end - 3] == 0xE3 or data[end - 3] == 0xEF)
                )
                headings += code == _HASH or not closed
        num_lines = max(last - first, 1)
        shapes[text, 0] = prose
        shapes[text, 1] = headings / num_lines
        shapes[text, 2] = items / num_lines
        shapes[text, 3] = bold / num_lines
        shapes[text, 4] = _variation(prose, chars, chars_squared)
        shapes[text, 5] = _variation(prose, words, words_squared)
    return shapes


@kernel
def _variation(number: int, total: float, squared: float) -> float:
    """Standard deviation over mean; of fewer than three, what half of all pages have."""
    if number < 3:
        return USUAL
    mean = total / number
    return float(np.sqrt(max(squared / number - mean * mean, 0.0)) / mean)


@kernel
def _has_bold(data: Bytes, begin: int, end: int) -> bool:
    """** at the beginning, or after the number or bullet of an item."""
    for at in range(begin, min(begin + 6, end - 1)):
        if data[at] == _STAR and data[at + 1] == _STAR:
            return True
    return False
