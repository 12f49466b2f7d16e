"""The inner loops over words.

A text is mostly runs of two kinds: ASCII words with one space between, and Han. Each has a loop
with little to keep in mind; what is neither (é, kana, apostrophes, marks) goes word by word.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from filters.names import Keys, Offsets, Positions, name_of
from filters.text import APOSTROPHE, LETTER, MARK, SINGLE, WORD, Bits, next_char
from kernels.compile import inner_kernel, kernel
from kernels.hashing import HASH_START, Bytes, ascii_word, folded_hash, mix

FIRST_HAN, NUM_HAN = 0x4E00, 0x5200  # the basic block
LONG_WORD = 1_000  # characters; C4 drops a line with a longer word


class Words(NamedTuple):
    """Words of text `i` are `offsets[i]:offsets[i + 1]`; its distinct words, with A-Z folded, are
    `vocabulary[starts[i]:starts[i + 1]]`, in the order of their first occurrence.
    """

    offsets: Offsets
    names: Positions  # of each word: its place in the vocabulary of its text
    ends: Positions  # characters of words of its text, up to the end of this one
    starts: Offsets
    vocabulary: Keys  # `folded_hash` of the UTF-8


def word_hash(word: str) -> int:
    """What the vocabulary holds for this word."""
    data = np.frombuffer(word.encode(), np.uint8)
    return int(folded_hash(data, 0, len(data)))


@inner_kernel
def ascii_run(
    data: Bytes,
    at: int,
    end: int,
    words: Words,
    word: int,
    word_chars: int,
    table: Positions,
    bits: int,
    first: int,
    count: int,
) -> tuple[int, int, int, int, int, int]:
    """ASCII words with at most a space between, while the table has room.

    Returns: where it stopped, the end of the last word, the next word's number, characters of
    words, distinct words, words with a letter.
    """
    last = at
    letter_words = 0
    while count * 2 < 1 << bits and at < end:
        length, letters, value = ascii_word(data, at, end)
        after = at + length
        if length == 0 or length > LONG_WORD:
            break
        follows = data[np.uint64(after)] if after < end else np.uint8(0)
        if follows >= 0x80 or follows == 0x27:
            break
        name = name_of(table, bits, words.vocabulary, first, count, value)
        words.names[np.uint64(word)] = name
        count += name == count
        word_chars += length
        words.ends[np.uint64(word)] = word_chars
        word += 1
        letter_words += letters
        last = after
        at = after + (follows == 0x20)
    return at, last, word, word_chars, count, letter_words


@inner_kernel
def han_run(
    data: Bytes,
    at: int,
    end: int,
    classes: Bits,
    words: Words,
    word: int,
    word_chars: int,
    names: Positions,
    first: int,
    count: int,
) -> tuple[int, int, int]:
    """Han of the basic block, while no mark follows. `names` has a place for each of them: where
    it stands in the vocabulary, from `first` on if in this text. No hash is made of one that did.

    Returns: where it stopped, the next word's number, distinct words.
    """
    while at < end:
        place = np.uint64(at)  # indices without a sign: no test of it
        lead = data[place]
        if lead < 0xE4 or lead > 0xE9:
            break
        second, third = data[place + np.uint64(1)], data[place + np.uint64(2)]
        if lead == 0xE4 and second < 0xB8:
            break
        after = at + 3
        follows = data[np.uint64(after)] if after < end else np.uint8(0)
        if follows >= 0x80 and not 0xE4 <= follows <= 0xE9:
            code, _ = next_char(data, after)
            if classes[np.uint64(code)] & MARK:
                break
        code = int(lead & 0x0F) << 12 | int(second & 0x3F) << 6 | int(third & 0x3F)
        name = names[np.uint64(code - FIRST_HAN)] - first
        if name < 0:
            name = count
            names[np.uint64(code - FIRST_HAN)] = first + name
            chunk = np.uint64(lead) | np.uint64(second) << np.uint64(8)
            chunk |= np.uint64(third) << np.uint64(16)
            words.vocabulary[first + count] = mix(mix(HASH_START, chunk), np.uint64(3))
            count += 1
        words.names[np.uint64(word)] = name
        word_chars += 1
        words.ends[np.uint64(word)] = word_chars
        word += 1
        at = after
    return at, word, count


@inner_kernel
def marked_words(found: Words, text: int, marks: Positions, places: Offsets) -> int:
    """Into `places` the words of a text that have a mark from 0 on, by their place in its
    vocabulary: how many. No branch: which words do cannot be predicted.
    """
    count = 0
    for word in range(found.offsets[text], found.offsets[text + 1]):
        places[np.uint64(count)] = word
        count += marks[np.uint64(found.names[np.uint64(word)])] >= 0
    return count


@kernel
def word_end(data: Bytes, at: int, end: int, classes: Bits) -> tuple[int, int, int]:
    """Of any word that begins at `at`: its end, its characters, and whether it has a letter."""
    code, at = next_char(data, at)
    single = classes[code] & SINGLE
    letters = classes[code] & LETTER
    chars = 1
    while at < end:
        code, after = next_char(data, at)
        bits = classes[code]
        length = 1
        if bits & APOSTROPHE and not single and after < end:
            code, after = next_char(data, after)
            bits = classes[code] & ~np.uint16(MARK)
            length = 2
        if not bits & MARK and (single or not bits & WORD or bits & SINGLE):
            break
        letters |= bits & LETTER
        at = after
        chars += length
    return at, chars, int(letters != 0)
