"""What fastText's `predict` does for one label a text, over Arrow buffers and without the GIL.

Equal to the package `fasttext` (tests/filters/test_fasttext_predict.py): same label, and the same
probability to the last bits; a compiler may add the numbers of fastText's own loops in another
order. Read from its sources, 0.9.2: dictionary.cc, loss.cc.

Unlike there a line feed in a text is a space; fastText would stop at it.
"""

from __future__ import annotations

import math

import numpy as np

from filters.fasttext_file import (
    HASH_START,
    HIERARCHICAL,
    Floats,
    Ids,
    Network,
    Positions,
    find,
    hash_bytes,
    hash_step,
)
from filters.fasttext_output import average, best_output, search_tree
from kernels.compile import inner_kernel, kernel
from kernels.hashing import Bytes

_EOS = np.frombuffer(b"</s>", np.uint8).copy()
_LABEL = np.frombuffer(b"__label__", np.uint8).copy()
_LESS, _GREATER = ord("<"), ord(">")  # stand around a word of which subwords are taken
_WORD_NGRAM = np.uint64(116049371)


@kernel
def predict(
    network: Network, data: Bytes, begins: Positions, ends: Positions
) -> tuple[Ids, Floats]:
    """Best label and its probability for each text `data[begins[i]:ends[i]]`, UTF-8.

    -1 and 0.0 for a text without a known word or n-gram.
    """
    labels = np.full(len(begins), -1, np.int32)
    scores = np.zeros(len(begins), np.float32)
    hidden = np.empty(network.input.shape[1], np.float32)
    word, rows = scratch_of(network, begins, ends)
    for i in range(len(begins)):
        line = rows[: rows_of(network, data, begins[i], ends[i], word, rows)]
        if len(line):
            average(network.input, line, hidden)
            if network.loss == HIERARCHICAL:
                label, score = search_tree(network.left, network.right, network.output, hidden)
            else:
                label, score = best_output(network.loss, network.output, hidden)
            labels[i] = label
            scores[i] = np.float32(math.exp(score)) if label >= 0 else np.float32(0)
    return labels, scores


@kernel
def scratch_of(network: Network, begins: Positions, ends: Positions) -> tuple[Bytes, Ids]:
    """Room for `rows_of` of any of these texts: for a word, and for all rows."""
    longest = 0
    for i in range(len(begins)):
        longest = max(longest, ends[i] - begins[i])
    word = np.empty(longest + len(_EOS) + 2, np.uint8)
    ngrams = max(network.maxn - network.minn + 1, 0) + network.word_ngrams + 1
    return word, np.empty(len(word) * ngrams, np.int32)  # at most so many of each byte


@kernel
def rows_of(network: Network, data: Bytes, begin: int, end: int, word: Bytes, line: Ids) -> int:
    """Into `line` the rows of all words and n-grams of a text, in fastText's order; how many."""
    words = network.dictionary
    num_words, bucket, kept, rows = network.num_words, network.bucket, network.kept, network.rows
    count = 0
    hashes = np.empty((end - begin) // 2 + 2 if network.word_ngrams > 1 else 0, np.uint64)
    num_hashes = 0
    at = begin
    ended = False
    while not ended:
        while at < end and _is_space(data[at]):
            at += 1
        if at < end:
            token, first = data, at
            while at < end and not _is_space(data[at]):
                at += 1
            last = at
        else:
            token, first, last = _EOS, 0, len(_EOS)
        ended = last - first == len(_EOS) and _starts_with(token, first, last, _EOS)
        value = hash_bytes(token, first, last)
        entry = find(words, value, token, first, last)
        if entry >= network.num_words or (entry < 0 and _starts_with(token, first, last, _LABEL)):
            continue
        if entry >= 0:
            line[count] = entry
            count += 1
        if network.maxn > 0 and not ended:
            word[0], word[last - first + 1] = _LESS, _GREATER
            for i in range(last - first):
                word[i + 1] = token[first + i]
            count = _subwords(
                word,
                last - first + 2,
                network.minn,
                network.maxn,
                num_words,
                bucket,
                network.pruned,
                kept,
                line,
                count,
            )
        if network.word_ngrams > 1:
            hashes[num_hashes] = value
            num_hashes += 1
    for i in range(num_hashes):
        value = _signed(hashes[i])
        for j in range(i + 1, min(num_hashes, i + network.word_ngrams)):
            value = value * _WORD_NGRAM + _signed(hashes[j])
            number = np.int64(value % np.uint64(bucket))
            count = _push(number, num_words, network.pruned, kept, line, count)
    for i in range(count if network.pruned else 0):
        if line[i] >= num_words:  # a bucket
            line[i] = num_words + rows[np.uint64(line[i] - num_words)]
    return count


@kernel
def _is_space(byte: int) -> bool:
    return byte == 32 or 9 <= byte <= 13 or byte == 0


@kernel
def _starts_with(data: Bytes, begin: int, end: int, prefix: Bytes) -> bool:
    at = 0
    while at < min(len(prefix), end - begin) and data[begin + at] == prefix[at]:
        at += 1
    return at == len(prefix)


@kernel
def _signed(value: np.uint64) -> np.uint64:
    """A hash of 32 bits as fastText keeps it: signed, so its sign fills the upper half."""
    high = np.uint64(0xFFFFFFFF00000000) if value >> np.uint64(31) else np.uint64(0)
    return value | high


@inner_kernel
def _push(
    bucket: np.int64, num_words: int, pruned: bool, kept: Bytes, line: Ids, count: int
) -> int:
    """Append a bucket, if it was kept; returns how many there are. No branch: that cannot be
    predicted."""
    line[np.uint64(count)] = num_words + bucket
    if not pruned:
        return count + 1
    place = np.uint64(bucket)
    return count + int(kept[place >> np.uint64(3)] >> np.uint8(bucket & 7) & np.uint8(1))


@kernel
def _subwords(
    word: Bytes,
    end: int,
    minn: int,
    maxn: int,
    num_words: int,
    size: int,
    pruned: bool,
    kept: Bytes,
    line: Ids,
    count: int,
) -> int:
    """Append the buckets of all n-grams of minn to maxn characters of `word[:end]`, a word
    between `<` and `>`, but not of these alone. A hash goes on from that of the shorter n-gram.
    """
    inverse = 1.0 / size
    for start in range(end):
        if word[start] & 0xC0 == 0x80:
            continue
        value = HASH_START
        at = start
        length = 0
        while at < end and length < maxn:
            value = hash_step(value, word[np.uint64(at)])
            at += 1
            while at < end and word[np.uint64(at)] & 0xC0 == 0x80:
                value = hash_step(value, word[np.uint64(at)])
                at += 1
            length += 1
            if length >= minn and not (length == 1 and (start == 0 or at == end)):
                # value % size: a division takes thrice as long; the quotient may be one off
                bucket = np.int64(value) - np.int64(np.int64(value) * inverse) * size
                if bucket < 0:
                    bucket += size
                elif bucket >= size:
                    bucket -= size
                count = _push(bucket, num_words, pruned, kept, line, count)
    return count
