from __future__ import annotations

from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels import arrow
from kernels.arrow import string_buffers


def texts_of(array: pa.Array) -> list[str]:
    data, offsets = string_buffers(array)
    return [bytes(data[a:b]).decode() for a, b in pairwise(offsets)]


@given(st.lists(st.text(max_size=5), max_size=6), st.integers(0, 6), st.integers(0, 6))
def test_slices_of_every_string_type(texts: list[str], start: int, length: int) -> None:
    for kind in (pa.string(), pa.large_string()):
        cut = pa.array(texts, kind).slice(start, length)
        assert texts_of(cut) == texts[start : start + length]


def test_chunks_are_joined() -> None:
    assert texts_of(pa.chunked_array([["甲", ""], ["b😀"]])) == ["甲", "", "b😀"]


def test_text_is_not_copied() -> None:
    array = pa.array(["你好", "x"])
    data, _ = string_buffers(array)
    assert data.ctypes.data == array.buffers()[2].address


def test_nulls_and_other_types_are_refused() -> None:
    with pytest.raises(ValueError, match="1 of 2 texts are null"):
        string_buffers(pa.array(["a", None]))
    with pytest.raises(TypeError, match="got int64"):
        string_buffers(pa.array([1]))


@pytest.mark.parametrize("kind", [pa.string(), pa.binary(), pa.large_string()])
def test_chunks_beyond_the_reach_of_their_offsets(
    monkeypatch: pytest.MonkeyPatch, kind: pa.DataType
) -> None:
    """Arrow refuses to join more than 2 GiB of strings: "offset overflow"."""
    monkeypatch.setattr(arrow, "MAX_BYTES", 4)
    chunks = pa.chunked_array([["one", "二"], [], ["three"]], kind)
    data, offsets = string_buffers(chunks)
    assert bytes(data) == "one二three".encode()
    assert offsets.tolist() == [0, 3, 6, 11]
