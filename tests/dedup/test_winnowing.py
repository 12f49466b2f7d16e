"""Winnowing held to its definition in plain Python, and to its guarantee."""

from __future__ import annotations

import gzip
import json
import os
import random
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup.winnowing import Stretches, named, sizes, winnowed
from kernels.arrow import string_buffers

LENGTH, WINDOW = 12, 7
MASK = (1 << 64) - 1
BASE, PRIME = 0xD6E8FEB86659FD93, 0x9E3779B97F4A7C15
TEXTS = st.lists(
    st.one_of(
        st.text("ab", max_size=80),
        st.text("ab é中😀\r\n", max_size=60),
        st.integers(0, 80).map(lambda n: "." * n),
    ),
    max_size=5,
)


def run(texts: list[str], length: int = LENGTH, window: int = WINDOW) -> Stretches:
    return winnowed(*string_buffers(pa.array(texts, pa.large_string())), length, window)


def taken(text: str) -> list[int]:
    """Where the stretches that stand for a text begin, by definition."""
    data = text.encode()
    hashes = []
    for at in range(len(data) - LENGTH + 1):
        value = 0
        for byte in data[at : at + LENGTH]:
            value = (value * BASE + byte) & MASK
        value = ((value ^ value >> 32) * PRIME) & MASK
        hashes.append(MASK if data[at] & 0xC0 == 0x80 else value ^ value >> 29)
    found: list[int] = []
    for begin in range(len(hashes) - WINDOW + 1):
        window = hashes[begin : begin + WINDOW]
        stays = found and found[-1] >= begin and hashes[found[-1]] == min(window)
        if not stays:
            least = [begin + i for i in range(WINDOW) if window[i] == min(window)]
            found.append(least[-1] if found else least[0])
    return found


@given(TEXTS)
def test_the_kernel_is_the_definition(texts: list[str]) -> None:
    found = run(texts)
    got = list(zip(found.rows.tolist(), found.starts.tolist(), strict=True))
    assert got == [(row, at) for row, text in enumerate(texts) for at in taken(text)]


@given(st.text("ab中", min_size=19, max_size=30), TEXTS)
def test_texts_that_share_enough_share_a_stretch_inside(shared: str, others: list[str]) -> None:
    size = len(shared.encode())
    before, after = "".join(others[:2]), "".join(others[2:])
    found = run([shared, f"{before}{shared}{after}"])
    names = {}
    for row, begin in enumerate([0, len(before.encode())]):
        inside = (found.rows == row) & (found.starts >= begin)
        inside &= found.starts + LENGTH <= begin + size
        names[row] = set(zip(found.upper[inside], found.lower[inside], strict=True))
    assert size >= LENGTH + WINDOW - 1
    assert names[0]
    assert names[0] <= names[1]


def test_sizes_find_all_of_so_many_bytes() -> None:
    for size in (60, 61, 62, 300, 301, 1000):
        length, window = sizes(size)
        assert length + window - 1 == size
        assert window <= length // 2 + 2


def test_names_are_of_the_bytes_alone() -> None:
    data, offsets = string_buffers(pa.array(["xxabcdefgh", "abcdefgi", "abcdefgh"]))
    found = named(data, offsets, np.array([0, 1, 2]), np.array([2, 0, 0]), 8)
    assert found.upper[0] == found.upper[2] != found.upper[1]
    assert found.lower[0] == found.lower[2] != found.lower[1]


@pytest.mark.parametrize("unit", ["a", "ab", "· ", "中", "0\t0\n", " " * 30 + "|"])
def test_a_text_of_one_pattern_has_few(unit: str) -> None:
    length, window = sizes(300)
    text = unit * (200_000 // len(unit))
    run([text[:1000]], length, window)
    began = time.process_time()
    found = run([text], length, window)
    assert time.process_time() - began < 1
    num_bytes = len(text.encode())
    assert 1 <= len(found.rows) <= 3 * num_bytes / window
    assert np.diff(found.starts).max() <= window


def test_what_is_too_short_has_none() -> None:
    assert len(run(["", "a", "a" * 17, "中" * 5]).rows) == 0
    assert len(run(["a" * 18]).rows) == 1
    assert len(run([]).rows) == 0


@pytest.mark.skipif("ASSAY_SAMPLE" not in os.environ, reason="ASSAY_SAMPLE is not set")
def test_names_of_the_sample_differ_where_bytes_do() -> None:
    with gzip.open(Path(os.environ["ASSAY_SAMPLE"], "zh.jsonl.gz")) as lines:
        texts = [json.loads(line)["text"] for line in lines]
    texts = random.Random(0).sample(texts, 3000)
    length, window = sizes(300)
    found = run(texts, length, window)
    bytes_of: dict[tuple[int, int], bytes] = {}
    for upper, lower, row, start in zip(*(c.tolist() for c in found), strict=True):
        piece = texts[row].encode()[start : start + length]
        assert bytes_of.setdefault((upper, lower), piece) == piece
    assert len(set(bytes_of.values())) == len(bytes_of) > 1_000
    assert len({upper for upper, _ in bytes_of}) == len({lo for _, lo in bytes_of}) == len(bytes_of)
