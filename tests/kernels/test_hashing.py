from __future__ import annotations

import string

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from kernels.hashing import (
    alphanumeric,
    ascii_word,
    digit_bytes,
    first_byte,
    folded_hash,
    lead_bytes,
    load8,
    long_leads,
    num_bytes,
    span_hash,
)

ALPHANUMERIC = set((string.ascii_letters + string.digits).encode())


def array(data: bytes) -> np.ndarray:
    return np.frombuffer(data, np.uint8)


def test_load8_stops_at_the_end() -> None:
    data = array(bytes(range(1, 13)))
    assert int(load8(data, 0, 12)).to_bytes(8, "little") == bytes(range(1, 9))
    assert int(load8(data, 1, 4)) == 0x040302
    assert int(load8(data, 9, 12)) == 0x0C0B0A


@given(st.binary(max_size=20), st.integers(0, 20), st.integers(0, 20))
def test_load8(data: bytes, begin: int, end: int) -> None:
    begin, end = sorted((min(begin, len(data)), min(end, len(data))))
    expected = int.from_bytes(data[begin : min(begin + 8, end)], "little")
    assert int(load8(array(data), begin, end)) == expected


def tops(bits: list[bool]) -> np.uint64:
    return np.uint64(sum(0x80 << 8 * at for at, bit in enumerate(bits) if bit))


@given(st.binary(min_size=8, max_size=8))
@example(b"@AZ[`az{")
@example(b"/09:\xbf\xc0\xdf\xe0")
def test_eight_bytes_at_once(data: bytes) -> None:
    chunk = np.uint64(load8(array(data), 0, 8))
    marks = np.uint64(alphanumeric(chunk))
    assert marks == tops([byte in ALPHANUMERIC for byte in data])
    assert lead_bytes(chunk) == tops([byte >= 0xC0 for byte in data])
    assert long_leads(chunk) == tops([byte >= 0xE0 for byte in data])
    assert num_bytes(marks) == sum(byte in ALPHANUMERIC for byte in data)
    if marks:
        assert data[first_byte(marks)] in ALPHANUMERIC
        assert not any(byte in ALPHANUMERIC for byte in data[: first_byte(marks)])


@given(st.binary(max_size=30), st.integers(0, 5))
@example(b"0\x19", 0)
@example(b"@AZ[`az{/09:", 0)
def test_ascii_word(data: bytes, begin: int) -> None:
    begin = min(begin, len(data))
    word = bytearray()
    for byte in data[begin:]:
        if byte not in ALPHANUMERIC:
            break
        word.append(byte)
    length, letters, value = ascii_word(array(data), begin, len(data))
    assert length == len(word)
    assert letters == any(chr(byte).isalpha() for byte in word)
    assert value == folded_hash(array(data), begin, begin + len(word))


@given(st.binary(max_size=20), st.binary(max_size=20))
def test_hashes_of_pieces(one: bytes, other: bytes) -> None:
    both = array(one + other)
    assert (span_hash(both, 0, len(one)) == span_hash(both, len(one), len(both))) == (one == other)
    assert (folded_hash(both, 0, len(one)) == folded_hash(both, len(one), len(both))) == (
        one.lower() == other.lower()  # of bytes: A-Z only
    )


@given(st.binary(min_size=8, max_size=8))
@example(b"/09:\xb0\xb9 0")
def test_digits_of_eight_bytes(data: bytes) -> None:
    bits = digit_bytes(np.uint64(load8(array(data), 0, 8)))
    expected = [0x80 if byte in b"0123456789" else 0 for byte in data]
    assert list(int(bits).to_bytes(8, "little")) == expected
