"""Words, lines, paragraphs and sentences of a batch: found once, shared by all signal groups.

The units are those of filters/text.py. One pass over the UTF-8 of each text serves them all. A word
becomes its number in the text's vocabulary, so that two words are the same where their numbers are;
it takes eight bytes, a line 44. tests/filters/test_segments.py holds the pass to the plain
functions.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import pyarrow as pa

from filters.names import MIN_BITS, Offsets, Positions, fill, name_of
from filters.pieces import Counts, Pieces, Segments, room
from filters.repetition import Repetition, repeated_words
from filters.text import CLASSES, SPACE, WORD, Bits, next_char
from filters.wordruns import LONG_WORD, NUM_HAN, Words, ascii_run, han_run, word_end
from kernels.arrow import string_buffers
from kernels.compile import kernel
from kernels.hashing import Bytes, folded_hash, span_hash


class Texts:
    """Texts of a batch: text `i` is `data[offsets[i]:offsets[i + 1]]`, in UTF-8.

    Raises:
        ValueError: a text is null.
    """

    def __init__(self, array: pa.Array) -> None:
        self.array = array
        self.data, self.offsets = string_buffers(array)

    def __len__(self) -> int:
        return len(self.array)

    @cached_property
    def segments(self) -> Segments:
        """Found when a group asks first."""
        arrays = room(self.data, self.offsets)
        return segment(self.data, self.offsets, CLASSES, *arrays)

    @cached_property
    def repetition(self) -> Repetition:
        """Of words in a row, likewise."""
        return repeated_words(self.segments.words)


# Bits of an ASCII character.
_WORD, _SPACE, _MARK, _AFTER_STOP = 1, 2, 4, 8


def _ascii() -> Bytes:
    bits = np.zeros(128, np.uint8)
    bits[CLASSES[:128] & WORD != 0] |= _WORD
    bits[CLASSES[:128] & SPACE != 0] |= _SPACE | _AFTER_STOP
    bits[[ord(char) for char in ".!?#"]] |= _MARK
    bits[[ord(char) for char in ".\"')]"]] |= _AFTER_STOP
    return bits


_ASCII = _ascii()
_FULL_STOP, _ELLIPSIS, _IDEOGRAPHIC_STOP = 0x2E, 0x2026, 0x3002
_NUMBER_SIGN, _WIDE_NUMBER_SIGN = 0x23, 0xFF03
_QUOTES_AFTER = (0x2026, 0x201D, 0x2019)  # …”’
_ENDS = (0x3002, 0xFF01, 0xFF1F, 0x2026, 0xFF1B, 0x21, 0x3F)  # 。！？…；!?


@kernel
def segment(
    data: Bytes,
    offsets: Offsets,
    classes: Bits,
    words: Words,
    lines: Pieces,
    paragraphs: Pieces,
    counts: Counts,
    table: Positions,
) -> Segments:
    """Fills the others but the table, which is for itself: `room` makes them."""
    num_texts = len(offsets) - 1
    han = np.full(NUM_HAN, -1, np.int32)
    word = line = paragraph = first = distinct = 0
    for text in range(num_texts):
        begin, end = offsets[text], offsets[text + 1]
        first += distinct
        distinct = 0
        bits = MIN_BITS
        while bits < 12 and 1 << bits < (end - begin) >> 3:
            bits += 1
        table[: 1 << bits] = -1
        chars = word_chars = letter_words = newlines = hash_marks = ellipses = 0
        line_begin = paragraph_begin = -1
        last = last_chars = 0  # after the last character that is no space
        line_chars = line_word = line_sentences = line_long = 0
        paragraph_chars = paragraph_line = paragraph_word = sentences = long_words = 0
        line_pending = pending = False  # a word stands after the last end of a sentence
        mark_code = mark_end = repeats = 0
        at = begin
        while at <= end:
            start = at
            code = 10
            kind = _SPACE  # what comes after the end closes the last line
            lead = data[np.uint64(at)] if at < end else np.uint8(0)
            if at == end:
                at += 1
            elif lead < 0x80:
                code = int(lead)
                kind = int(_ASCII[lead])
                at += 1
            elif 0xE4 <= lead <= 0xE9:
                kind = _WORD  # nearly always; seen below
            else:
                code, at = next_char(data, at)
                found = classes[np.uint64(code)]
                kind = _WORD if found & WORD else _SPACE if found & SPACE else _MARK
            if kind & _SPACE:
                chars += 1
                if code != 10:
                    continue
                newlines += 1
                if line_begin >= 0:
                    lines.begins[line] = line_begin
                    lines.ends[line] = last
                    lines.chars[line] = last_chars - line_chars
                    lines.hashes[line] = span_hash(data, line_begin, last)
                    lines.words[line] = word - line_word
                    lines.sentences[line] = line_sentences + line_pending
                    lines.long_words[line] = long_words - line_long
                    line += 1
                    line_begin = -1
                    if at <= end:
                        continue
                if paragraph_begin >= 0:
                    paragraphs.begins[paragraph] = paragraph_begin
                    paragraphs.ends[paragraph] = last
                    paragraphs.chars[paragraph] = last_chars - paragraph_chars
                    if line == paragraph_line + 1:
                        paragraphs.hashes[paragraph] = lines.hashes[paragraph_line]
                    else:
                        paragraphs.hashes[paragraph] = span_hash(data, paragraph_begin, last)
                    paragraphs.words[paragraph] = word - paragraph_word
                    paragraphs.sentences[paragraph] = sentences + pending
                    paragraphs.long_words[paragraph] = long_words
                    paragraph += 1
                    paragraph_begin = -1
                continue
            if line_begin < 0:
                line_begin, line_chars, line_word = start, chars, word
                line_sentences, line_pending, line_long = 0, False, long_words
                if paragraph_begin < 0:
                    paragraph_begin, paragraph_chars, paragraph_line = start, chars, line
                    paragraph_word, sentences, pending, long_words = word, 0, False, 0
                    line_long = 0
            if kind & _WORD:
                run = start
                if lead < 0x80:
                    run, last, word, word_chars, distinct, letters = ascii_run(
                        data, start, end, words, word, word_chars, table, bits, first, distinct
                    )
                    letter_words += letters
                    last_chars = chars + last - start
                    chars += run - start
                elif lead >= 0xE4:
                    run, after, distinct = han_run(
                        data,
                        start,
                        end,
                        classes,
                        words,
                        word,
                        word_chars,
                        han,
                        first,
                        distinct,
                    )
                    chars += after - word
                    word_chars += after - word
                    letter_words += after - word
                    word = after
                    last, last_chars = run, chars
                if run > start:
                    at = run
                    line_pending = pending = True
                    continue
                if distinct * 2 >= 1 << bits:
                    bits += 1
                    fill(table, bits, words.vocabulary, first, distinct)
                    at = start
                    continue
                code, at = next_char(data, start)
                if classes[code] & WORD:
                    at, length, letters = word_end(data, start, end, classes)
                    value = folded_hash(data, start, at)
                    name = name_of(table, bits, words.vocabulary, first, distinct, value)
                    words.names[word] = name
                    distinct += name == distinct
                    word_chars += length
                    words.ends[word] = word_chars
                    word += 1
                    chars += length
                    letter_words += letters
                    long_words += length > LONG_WORD
                    line_pending = pending = True
                    last, last_chars = at, chars
                    continue
            chars += 1
            if kind & _MARK:
                repeats = repeats + 1 if code == mark_code and start == mark_end else 1
                mark_code, mark_end = code, at
                stop = code == _FULL_STOP
                if code in (_NUMBER_SIGN, _WIDE_NUMBER_SIGN):
                    hash_marks += 1
                elif code == _ELLIPSIS:
                    ellipses += repeats == 1
                elif stop or code == _IDEOGRAPHIC_STOP:
                    ellipses += repeats == 3
                ends = code in _ENDS or (stop and _after_stop(data, at, end, classes))
                if ends and pending:
                    line_sentences += line_pending
                    sentences += 1
                    line_pending = pending = False
            last, last_chars = at, chars
        words.offsets[text + 1] = word
        words.starts[text + 1] = first + distinct
        lines.offsets[text + 1] = line
        paragraphs.offsets[text + 1] = paragraph
        counts.letter_words[text] = letter_words
        counts.newlines[text] = newlines - 1
        counts.hash_marks[text] = hash_marks
        counts.ellipses[text] = ellipses
    return Segments(words, lines, paragraphs, counts)


@kernel
def _after_stop(data: Bytes, at: int, end: int, classes: Bits) -> bool:
    """Does a full stop before `at` end a sentence?"""
    if at == end:
        return True
    if data[at] < 0x80:
        after: bool = _ASCII[data[at]] & _AFTER_STOP != 0
        return after
    code = next_char(data, at)[0]
    space: bool = classes[code] & SPACE != 0
    return space or code in _QUOTES_AFTER
