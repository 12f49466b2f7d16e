"""Blocks of a text: its paragraphs, cut where the lines turn from one kind of script to another.

A page that gives each line in Chinese and in English has one paragraph and many blocks; hard-wrapped
prose has a block a paragraph. A line is ideographic where one of its letters in SEVEN is Han, kana or
Hangul (of Chinese prose about commands a third is, by letters), else alphabetic; a line without
letters goes with the one before it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from filters import english, letters
from filters.english import mark as english_words
from filters.letters import Counts, Letters
from filters.names import Keys, Offsets, Positions, longest
from filters.pieces import Segments
from filters.segments import Texts
from filters.text import next_char
from kernels.compile import kernel
from kernels.hashing import Bytes

SEVEN = 7
NO_LETTERS, ALPHABETIC, IDEOGRAPHIC = -1, 0, 1


class Blocks(NamedTuple):
    """Those of text `i` are `offsets[i]:offsets[i + 1]`."""

    offsets: Offsets
    begins: Offsets  # of bytes in `Texts.data`
    ends: Offsets
    kinds: Positions
    words: Positions  # of alphabetic lines
    english: Positions  # ... those of filters/english.py
    letters: Letters


def blocks(texts: Texts) -> Blocks:
    """The blocks of each text, in order."""
    segments = texts.segments
    num_lines = int(segments.lines.offsets[-1])
    offsets = np.zeros(len(texts) + 1, np.int64)
    spans = np.empty((2, num_lines), np.int64)
    found = np.zeros((3, num_lines), np.int32)
    counts = np.zeros((num_lines, letters.FIELDS.shape[1]), np.int64)
    tables = letters.CLASSES, letters.FIELDS, english.table()
    _blocks(texts.data, segments, *tables, offsets, spans, found, counts)
    num = int(offsets[-1])
    return Blocks(offsets, *spans[:, :num], *found[:, :num], Letters(*counts[:num].T))


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
) -> None:
    words, lines, paragraphs, _ = segments
    begins, ends = spans
    kinds, num_words, english = found
    row = np.zeros(len(fields), np.int64)
    flags = np.zeros(longest(words.starts), np.uint8)
    block = -1
    for text in range(len(offsets) - 1):
        first, last = words.starts[text], words.starts[text + 1]
        english_words(words.vocabulary, first, last, function_words, flags)
        word = words.offsets[text]
        paragraph = paragraphs.offsets[text] - 1
        for line in range(lines.offsets[text], lines.offsets[text + 1]):
            begin, end = lines.begins[line], lines.ends[line]
            row[:] = 0
            at = begin
            while at < end:
                code, at = next_char(data, at)
                row[classes[code]] += 1
            kind = _kind(row, fields)
            new = paragraph < paragraphs.offsets[text] or begin >= paragraphs.ends[paragraph]
            paragraph += new
            if new or (kind >= 0 and kinds[block] >= 0 and kind != kinds[block]):
                block += 1
                begins[block] = begin
                kinds[block] = kind
            kinds[block] = max(kinds[block], kind)
            ends[block] = end
            for i in range(len(row)):
                if row[i]:
                    for field in range(fields.shape[1]):
                        counts[block, field] += row[i] * fields[i, field]
            if kind == ALPHABETIC:
                num_words[block] += lines.words[line]
                for i in range(word, word + lines.words[line]):
                    english[block] += flags[words.names[i]]
            word += lines.words[line]
        offsets[text + 1] = block + 1


@kernel
def _kind(row: Counts, fields: Counts) -> int:
    """Of a line, by its characters of each class."""
    all_letters = ideographic = 0
    for i in range(len(row)):
        all_letters += row[i] * fields[i, 0]
        ideographic += row[i] * (fields[i, 1] + fields[i, 2] + fields[i, 3])
    if all_letters == 0:
        return NO_LETTERS
    return int(SEVEN * ideographic >= all_letters)
