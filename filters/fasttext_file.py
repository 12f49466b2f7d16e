"""A supervised fastText model, .bin or .ftz, as the arrays that filters/fasttext_predict.py reads.

The file, little-endian: magic and version; settings; dictionary (words, then labels, each with a
NUL, its count and its kind); pruned n-gram buckets as (bucket, row); the input matrix, one row a
word and one a bucket; the output matrix, one row a label (for hierarchical softmax one a node).
Either matrix may be product-quantized: it is decoded here, so such a model costs rows x dim x 4
bytes (lid.176.ftz: 3 MB). A dense one stays in the file, and processes share it.
"""

from __future__ import annotations

import re
import struct
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kernels.compile import kernel
from kernels.hashing import Bytes

MAGIC, VERSIONS, SUPERVISED = 793712314, (11, 12), 3
HIERARCHICAL, NEGATIVE, SOFTMAX, ONE_VS_ALL = 1, 2, 3, 4  # losses
LABEL = "__label__"
_CENTROIDS = 256  # of a quantizer: a code is one byte


Positions = npt.NDArray[np.int64]
Ids = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float32]


class Dictionary(NamedTuple):
    """Entries `data[begins[i]:ends[i]]`: words, then labels."""

    data: Bytes
    begins: Positions
    ends: Positions
    slots: Ids  # hash table of entries, -1: empty; its size is a power of two


class Network(NamedTuple):
    """What the kernel reads of a model."""

    dictionary: Dictionary
    num_words: int
    word_ngrams: int
    minn: int  # characters of a subword
    maxn: int
    bucket: int  # number of hash buckets for n-grams
    pruned: bool  # only buckets in `kept` have a row
    kept: Bytes  # one bit a bucket: it stays in L2, `rows` does not
    rows: Ids  # of each bucket, after those of the words
    input: Floats
    output: Floats
    loss: int
    left: Ids  # children of each node of the Huffman tree; leaves are the labels, -1
    right: Ids


class Classifier(NamedTuple):
    labels: tuple[str, ...]  # without `__label__`
    network: Network


def read(path: Path) -> Classifier:
    """The model of a file.

    Raises:
        ValueError: it is no supervised fastText model.
    """
    data = np.memmap(path, np.uint8, "r")
    raw = data.data
    magic, version, dim, *_, word_ngrams, loss, model, bucket, minn, maxn, _ = (
        struct.unpack_from("<14i", raw) if len(data) > 92 else (0,) * 14
    )
    if magic != MAGIC or version not in VERSIONS or model != SUPERVISED:
        raise ValueError(
            f"{path} is no supervised fastText model of version 11 or 12 (it begins with "
            f"{data[:8].tobytes()!r}, model type {model}); `fasttext supervised` makes one"
        )
    size, num_words, _, _, num_pruned = struct.unpack_from("<3i2q", raw, 64)
    begins, ends, counts, at = entries(data, 92, size)
    words = np.array(data[:at])
    pruned = np.frombuffer(data, "<i4", 2 * max(num_pruned, 0), at).reshape(-1, 2)
    at += pruned.nbytes
    quantized = bool(data[at])
    weights, at = (_quantized if quantized else _dense)(raw, at + 1)
    output, _ = (_quantized if quantized and data[at] else _dense)(raw, at + 1)
    if (weights.shape[1], output.shape[1]) != (dim, dim):
        raise ValueError(
            f"{path}: matrices of {weights.shape} and {output.shape}, but vectors of {dim} numbers"
        )
    kept, rows = _buckets(bucket if num_pruned >= 0 else 0, pruned)
    left, right = _huffman(counts[num_words:] if loss == HIERARCHICAL else counts[:0])
    dictionary = Dictionary(words, begins, ends, hash_table(words, begins, ends))
    maxn = 0 if version == 11 else maxn
    network = Network(
        dictionary, num_words, word_ngrams, minn, maxn, bucket, num_pruned >= 0, kept, rows,
        weights, output, loss, left, right,
    )  # fmt: skip
    labels = [
        words[begin:end].tobytes().decode("utf-8", "replace").removeprefix(LABEL)
        for begin, end in zip(begins[num_words:], ends[num_words:], strict=True)
    ]
    return Classifier(tuple(labels), network)


def labels(path: Path) -> list[str]:
    """The labels of a model of at most some MB, in 1 ms: kernels take .4 s to load."""
    found = re.findall(LABEL.encode() + rb"([^\0]+)\0.{8}\x01", path.read_bytes(), re.DOTALL)
    return [name.decode("utf-8", "replace") for name in found]


@kernel
def entries(data: Bytes, at: int, size: int) -> tuple[Positions, Positions, Positions, int]:
    """Where `size` dictionary entries begin and end, their counts, and the byte after them."""
    begins = np.empty(size, np.int64)
    ends = np.empty(size, np.int64)
    counts = np.zeros(size, np.int64)
    for i in range(size):
        begins[i] = at
        while data[at]:
            at += 1
        ends[i] = at
        for byte in range(8):
            counts[i] |= np.int64(data[at + 1 + byte]) << 8 * byte
        at += 10
    return begins, ends, counts, at


# FNV-1a, 32 bits, over *signed* bytes: fastText's models were trained with that slip.
HASH_START = np.uint64(2166136261)


@kernel
def hash_step(value: np.uint64, byte: int) -> np.uint64:
    signed = np.uint64(np.int64(np.int8(byte)))
    return ((value ^ signed) * np.uint64(16777619)) & np.uint64(0xFFFFFFFF)


@kernel
def hash_bytes(data: Bytes, begin: int, end: int) -> np.uint64:
    value = HASH_START
    for at in range(begin, end):
        value = hash_step(value, data[at])
    return value


@kernel
def hash_table(data: Bytes, begins: Positions, ends: Positions) -> Ids:
    size = 2
    while size < 2 * len(begins):
        size *= 2
    slots = np.full(size, -1, np.int32)
    for i in range(len(begins)):
        slot = np.int64(hash_bytes(data, begins[i], ends[i])) & (size - 1)
        while slots[slot] >= 0:
            slot = (slot + 1) & (size - 1)
        slots[slot] = i
    return slots


@kernel
def find(words: Dictionary, value: np.uint64, data: Bytes, begin: int, end: int) -> int:
    """The entry that equals `data[begin:end]`, whose hash is `value`; -1: none."""
    mask = len(words.slots) - 1
    slot = np.int64(value) & mask
    while words.slots[slot] >= 0:
        entry = words.slots[slot]
        at = words.begins[entry]
        if words.ends[entry] - at == end - begin:
            same = begin
            while same < end and data[same] == words.data[at]:
                same += 1
                at += 1
            if same == end:
                return int(entry)
        slot = (slot + 1) & mask
    return -1


def _dense(data: memoryview, at: int) -> tuple[Floats, int]:
    rows, columns = struct.unpack_from("<2q", data, at)
    matrix = np.frombuffer(data, "<f4", rows * columns, at + 16).reshape(rows, columns)
    if matrix.nbytes < 1 << 20:  # the kernel is compiled once for aligned and once for others
        matrix = matrix.copy()
    return matrix, at + 16 + matrix.nbytes


def _quantized(data: memoryview, at: int) -> tuple[Floats, int]:
    """Row = norm x its centroids, in float32 as fastText multiplies them."""
    has_norms, rows, columns, num_codes = struct.unpack_from("<?2qi", data, at)
    at += 21
    codes = np.frombuffer(data, np.uint8, num_codes, at).reshape(rows, -1)
    matrix, at = _decoded(codes, data, at + num_codes)
    if has_norms:
        norms, at = _decoded(np.frombuffer(data, np.uint8, rows, at)[:, None], data, at + rows)
        matrix *= norms
    assert matrix.shape == (rows, columns)
    return matrix, at


def _decoded(codes: Bytes, data: memoryview, at: int) -> tuple[Floats, int]:
    """Codes of (row, part) to the centroids of a product quantizer; the last part may be short."""
    dim, parts, width, last = struct.unpack_from("<4i", data, at)
    centroids = np.frombuffer(data, "<f4", dim * _CENTROIDS, at + 16)
    matrix = np.empty((len(codes), dim), np.float32)
    for part in range(parts):
        size = last if part == parts - 1 else width
        begin = part * _CENTROIDS * width
        table = centroids[begin : begin + _CENTROIDS * size].reshape(_CENTROIDS, size)
        matrix[:, part * width : part * width + size] = table[codes[:, part]]
    return matrix, at + 16 + centroids.nbytes


def _buckets(bucket: int, pruned: Ids) -> tuple[Bytes, Ids]:
    kept = np.zeros(bucket, np.bool_)
    kept[pruned[:, 0]] = True
    rows = np.zeros(bucket, np.int32)
    rows[pruned[:, 0]] = pruned[:, 1]
    return np.packbits(kept, bitorder="little"), rows


def _huffman(counts: Positions) -> tuple[Ids, Ids]:
    """Children of each node: leaves in the order of their counts, which fall, then inner nodes."""
    leaves = len(counts)
    num_nodes = max(2 * leaves - 1, 0)
    left = np.full(num_nodes, -1, np.int32)
    right = left.copy()
    weights = [*counts.tolist(), *[10**15] * (num_nodes - leaves)]
    leaf, node = leaves - 1, leaves
    for parent in range(leaves, num_nodes):
        children = []
        for _ in range(2):
            if leaf >= 0 and weights[leaf] < weights[node]:
                children.append(leaf)
                leaf -= 1
            else:
                children.append(node)
                node += 1
        left[parent], right[parent] = children
        weights[parent] = weights[children[0]] + weights[children[1]]
    return left, right
