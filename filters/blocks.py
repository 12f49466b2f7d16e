"""Blocks of a text: its paragraphs, cut where lines turn from one kind of script to another.

A page that gives each line in Chinese and in English has one paragraph and many blocks; prose with
hard line ends has a block a paragraph. A line is ideographic where at least one in SEVEN of its
words' characters is Han, kana or Hangul (in Chinese prose about commands it is a third), else
alphabetic; a line without words goes with the one before it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from filters import english, letters
from filters.english import mark
from filters.letters import Counts, Letters
from filters.names import Keys, Offsets, Positions, longest
from filters.pieces import Segments
from filters.segments import Texts
from filters.text import next_char
from kernels.compile import kernel
from kernels.hashing import Bytes, load8, long_leads, num_bytes

SEVEN = 7
NO_WORDS, ALPHABETIC, IDEOGRAPHIC = -1, 0, 1


class Blocks(NamedTuple):
    """Those of text `i` are `offsets[i]:offsets[i + 1]`."""

    offsets: Offsets
    begins: Offsets  # of bytes in `Texts.data`
    ends: Offsets
    kinds: Positions
    chars: Positions  # of words
    words: Positions
    english: Positions  # words of filters/english.py
    symbols: Positions  # characters that are neither in words nor one between two words
    letters: Letters  # of the ideographic blocks, in order: those of their ideographic lines


def blocks(texts: Texts) -> Blocks:
    """The blocks of each text, in order."""
    segments = texts.segments
    num_lines = int(segments.lines.offsets[-1])
    offsets = np.zeros(len(texts) + 1, np.int64)
    spans = np.empty((2, num_lines), np.int64)
    found = np.zeros((5, num_lines), np.int32)
    counts = np.zeros((letters.FIELDS.shape[1], num_lines), np.int64)
    tables = letters.CLASSES, letters.FIELDS, english.table()
    num_ideographic = _blocks(texts.data, segments, *tables, offsets, spans, found, counts)
    num = int(offsets[-1])
    begins, ends = spans[:, :num]
    kinds, chars, words, english_words, symbols = found[:, :num]
    counted = Letters(*counts[:, :num_ideographic])
    return Blocks(offsets, begins, ends, kinds, chars, words, english_words, symbols, counted)


@kernel
def _blocks(
    data: Bytes,
    segments: Segments,
    classes: Bytes,
    fields: Counts,
    function_words: Keys,
    offsets: Offsets,
    spans: Offsets,
    found: Positions,
    counts: Counts,
) -> int:
    """Fills the last four; how many blocks are ideographic."""
    words, lines, paragraphs, _ = segments
    begins, ends = spans
    kinds, num_chars, num_words, english, symbols = found
    of_block = np.zeros(len(fields), np.int64)  # characters of each class in ideographic lines
    is_ideographic = fields[:, 1] + fields[:, 2] + fields[:, 3]
    flags = np.zeros(longest(words.starts), np.uint8)
    block, num_ideographic = -1, 0
    for text in range(len(offsets) - 1):
        mark(words.vocabulary, words.starts[text], words.starts[text + 1], function_words, flags)
        word, chars_before = words.offsets[text], 0
        paragraph = paragraphs.offsets[text] - 1
        for line in range(lines.offsets[text], lines.offsets[text + 1]):
            begin, end = lines.begins[line], lines.ends[line]
            next_word = word + lines.words[line]
            chars = words.ends[next_word - 1] - chars_before if next_word > word else 0
            kind = NO_WORDS if chars == 0 else ALPHABETIC
            if chars and SEVEN * _num_leads(data, begin, end) >= chars:
                least = (chars + SEVEN - 1) // SEVEN
                kind = int(_has(data, begin, end, classes, is_ideographic, least))
            first = paragraph < paragraphs.offsets[text] or begin >= paragraphs.ends[paragraph]
            paragraph += first
            if first or (kind >= 0 and kinds[block] >= 0 and kind != kinds[block]):
                if block >= 0 and kinds[block] == IDEOGRAPHIC:
                    _put(of_block, fields, counts, num_ideographic)
                    num_ideographic += 1
                block += 1
                begins[block] = begin
                kinds[block] = kind
            kinds[block] = max(kinds[block], kind)
            ends[block] = end
            num_chars[block] += chars
            num_words[block] += lines.words[line]
            symbols[block] += lines.chars[line] - chars - max(lines.words[line] - 1, 0)
            if kind == IDEOGRAPHIC:
                _add(data, begin, end, classes, of_block)
            else:
                num_english = 0
                for i in range(word, next_word):
                    num_english += flags[np.uint64(words.names[i])]
                english[block] += num_english
            word, chars_before = next_word, chars_before + chars
        offsets[text + 1] = block + 1
    if block >= 0 and kinds[block] == IDEOGRAPHIC:
        _put(of_block, fields, counts, num_ideographic)
        num_ideographic += 1
    return num_ideographic


@kernel
def _num_leads(data: Bytes, begin: int, end: int) -> int:
    """Characters of three bytes and more, as Han, kana and Hangul are: eight bytes at a time, which
    saves most lines of an alphabet from the next loop."""
    leads = 0
    for at in range(begin, end, 8):
        leads += num_bytes(long_leads(load8(data, at, end)))
    return leads


@kernel
def _has(
    data: Bytes, begin: int, end: int, classes: Bytes, is_ideographic: Counts, least: int
) -> bool:
    """Are at least so many characters of a line ideographic? Of Chinese a seventh is read."""
    at = begin
    while at < end and least > 0:
        code, at = next_char(data, at)
        least -= is_ideographic[classes[code]]
    return least <= 0


@kernel
def _add(data: Bytes, begin: int, end: int, classes: Bytes, of_block: Counts) -> None:
    """Add the characters of a line to their classes."""
    at = begin
    while at < end:
        code, at = next_char(data, at)
        of_block[np.uint64(classes[code])] += 1


@kernel
def _put(of_block: Counts, fields: Counts, counts: Counts, number: int) -> None:
    """Write the fields of an ideographic block that has ended, and begin a new one."""
    for i in range(len(of_block)):
        if of_block[i]:
            for field in range(len(counts)):
                if fields[i, field]:
                    counts[field, number] += of_block[i]
            of_block[i] = 0
