"""Groups of equal stretches, runs of them, and where text may be cut."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from dedup import repeats
from kernels.arrow import string_buffers

U = np.uint64


def test_the_first_by_content_then_byte_keeps_a_stretch() -> None:
    upper = np.array([7, 9, 7, 7, 8, 7], U)
    contents = np.array([[5, 0], [5, 0], [3, 0], [5, 0], [1, 0], [3, 0]], U)
    starts = np.array([10, 0, 40, 4, 0, 30])
    found = repeats.groups(upper, upper, contents, starts)
    assert found.at.tolist() == [5, 2, 3, 0]
    assert found.first.tolist() == [True, False, False, False]
    assert found.copies.tolist() == [4] * 4
    assert found.members.tolist() == [3 + 3 + 5 + 5] * 4
    assert found.places.tolist() == [3 * 30 + 3 * 40 + 5 * 4 + 5 * 10] * 4


def test_texts_of_equal_content_are_one() -> None:
    upper, contents = np.array([7, 7, 7], U), np.array([[5, 1], [5, 1], [5, 2]], U)
    found = repeats.groups(upper, upper, contents, np.array([4, 4, 4]))
    assert found.first.tolist() == [True, True, False]
    assert found.copies.tolist() == [2, 2, 2]
    alone = repeats.groups(upper[:2], upper[:2], contents[:2], np.array([4, 4]))
    assert len(alone.at) == 0
    assert len(repeats.groups(upper[:0], upper[:0], contents[:0], np.zeros(0, np.int64)).at) == 0


def test_half_a_name_is_no_name() -> None:
    upper, lower = np.array([7, 7], U), np.array([1, 2], U)
    assert (
        len(repeats.groups(upper, lower, np.array([[1, 0], [2, 0]], U), np.zeros(2, int)).at) == 0
    )


def test_a_run_goes_on_while_all_places_do() -> None:
    """Two texts share stretches at 0, 20, 40 and 100; at 60 there is one that a third has too."""
    at = [0, 20, 40, 60, 100]
    members = np.array([8, 8, 8, 15, 8], U)  # contents 3 and 5; 7
    places = [3 * a + 5 * (a + 1000) + (7 if a == 60 else 0) for a in at]
    rows, starts = np.zeros(5, np.int64), np.array(at)
    firsts, lasts = repeats.runs(rows, starts, members, np.array(places, U), 30)
    assert [(at[a], at[b]) for a, b in zip(firsts, lasts, strict=True)] == [
        (0, 40),
        (100, 100),
        (60, 60),
    ]


@pytest.mark.parametrize(
    ("text", "start", "end", "wanted"),
    [
        ("one two three four", 1, 15, " two three"),
        ("one two three four", 0, 18, "one two three four"),
        ("один два три четыре", 1, 24, " два три"),  # an odd byte: inside of a character
        ("我们在河边看见一座磨坊", 1, 20, "们在河边看"),
        ("x中文abc", 0, 8, "x中文"),
        ("我们走。在河边，看见一座磨坊", 3, 37, "。在河边，看见一座"),  # the comma is 4 Han away
        ("在河边，看见", 0, 15, "在河边，"),
        ("one\ntwo three\nfour", 3, 14, "\ntwo three"),
        ("one two three ", 4, 14, "two three "),
        ("a" * 99, 40, 80, "a" * 40),  # no border near: cut where it is
    ],
)
def test_cuts_leave_words_and_characters_whole(
    text: str, start: int, end: int, wanted: str
) -> None:
    data, offsets = string_buffers(pa.array(["--", text]))
    one = np.array([1])
    begins, ends = repeats.rounded(data, offsets, one, np.array([start]), np.array([end]), 9)
    assert text.encode()[begins[0] : ends[0]].decode() == wanted
