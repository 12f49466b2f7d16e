from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from filters.edits import Edits, applied, edits_of, fault, merged
from filters.segments import Texts

Rows = list[tuple[int, int, int, str, str]]

TEXTS = st.lists(st.text("a中😀é\n", max_size=12), min_size=1, max_size=4)


def rows_of(edits: Edits) -> Rows:
    columns = (edits.rows, edits.starts, edits.ends, edits.kinds, edits.replacements)
    return list(zip(*(column.tolist() for column in columns), strict=True))


@st.composite
def edited(draw: st.DrawFn, texts: list[str]) -> Rows:
    """Edits of one rule: ranges of characters that do not overlap, as bytes."""
    found = []
    for row, text in enumerate(texts):
        cuts = sorted(draw(st.sets(st.integers(0, len(text)), max_size=6)))
        for begin, end in zip(cuts[::2], cuts[1::2], strict=False):
            start = len(text[:begin].encode())
            stop = len(text[:end].encode())
            found.append(
                (row, start, stop, draw(st.sampled_from("kl")), draw(st.text("xé", max_size=2)))
            )
    return found


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[str], list[Rows]]:
    texts = draw(TEXTS)
    return texts, draw(st.lists(edited(texts), max_size=3))


def merged_definition(several: list[Rows]) -> Rows:
    """Overlapping edits become one, until none overlap; the first rule, then the first byte, says
    its kind and replacement."""
    waiting = [
        (row, start, end, (rank, start, kind, text))
        for rank, rows in enumerate(several)
        for row, start, end, kind, text in rows
    ]
    found = []
    while waiting:
        row, start, end, said = waiting.pop()
        for other in list(waiting):
            if other[0] == row and other[1] < end and start < other[2]:
                waiting.remove(other)
                start, end = min(start, other[1]), max(end, other[2])
                waiting.append((row, start, end, min(said, other[3])))
                break
        else:
            found.append((row, start, end, said[2], said[3]))
    return sorted(found)


def applied_definition(text: str, rows: Rows) -> str:
    data = text.encode()
    for _, start, end, _, replacement in sorted(rows, reverse=True):
        data = data[:start] + replacement.encode() + data[end:]
    return data.decode()


@given(cases())
@settings(max_examples=300, deadline=None)
def test_merged_and_applied_are_their_definitions(case: tuple[list[str], list[Rows]]) -> None:
    texts, several = case
    together = merged([edits_of(rows) for rows in several])
    assert rows_of(together) == merged_definition(several)
    assert fault(Texts(pa.array(texts)), together) == ""
    after = applied(pa.array(texts), together).to_pylist()
    for row, text in enumerate(texts):
        mine = [edit for edit in rows_of(together) if edit[0] == row]
        assert after[row] == applied_definition(text, mine)


@given(cases())
@settings(max_examples=100, deadline=None)
def test_of_one_rule_nothing_changes(case: tuple[list[str], list[Rows]]) -> None:
    for rows in case[1]:
        assert rows_of(merged([edits_of(rows)])) == sorted(rows)


def test_the_rule_that_stands_first_says_the_replacement() -> None:
    line = edits_of([(0, 2, 9, "line", ""), (1, 0, 3, "line", "")])
    mail = edits_of([(0, 5, 12, "email", "[EMAIL]"), (0, 12, 14, "email", "[EMAIL]")])
    assert rows_of(merged([line, mail])) == [
        (0, 2, 12, "line", ""),
        (0, 12, 14, "email", "[EMAIL]"),
        (1, 0, 3, "line", ""),
    ]
    assert rows_of(merged([mail, line]))[0] == (0, 2, 12, "email", "[EMAIL]")
    assert len(merged([])) == 0


def test_slices_and_texts_without_edits() -> None:
    texts = pa.array(["drop me", "中a中", "", "keep"])
    edits = edits_of([(0, 3, 4, "han", "é")])
    assert applied(texts.slice(1), edits).to_pylist() == ["中é中", "", "keep"]
    assert applied(texts, edits_of([])).equals(texts)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            [(0, 1, 3, "a", "")],
            "edit a of text 0, bytes 1 to 3 of 7 begins or ends inside a character",
        ),
        (
            [(0, 0, 2, "a", "")],
            "edit a of text 0, bytes 0 to 2 of 7 begins or ends inside a character",
        ),
        (
            [(0, 3, 3, "a", "")],
            "edit a of text 0, bytes 3 to 3 of 7 holds no byte, or lies outside of",
        ),
        (
            [(1, 0, 4, "b", "")],
            "edit b of text 1, bytes 0 to 4 of 3 holds no byte, or lies outside of",
        ),
        (
            [(0, -1, 3, "a", "")],
            "edit a of text 0, bytes -1 to 3 of 7 holds no byte, or lies outside",
        ),
        (
            [(0, 0, 4, "a", ""), (0, 3, 7, "b", "")],
            "edit b of text 0, bytes 3 to 7 of 7 begins before",
        ),
        ([(3, 0, 1, "a", "")], "rows must ascend within 0 to 2"),
        ([(0, 0, 3, "a", ""), (0, 3, 7, "b", ""), (1, 0, 3, "c", "x")], ""),
    ],
)
def test_faults(rows: Rows, message: str) -> None:
    texts = Texts(pa.array(["中a中", "end", ""]))
    found = fault(texts, edits_of(rows))
    assert found.startswith(message)
    assert bool(found) == bool(message)


def test_rows_must_ascend() -> None:
    edits = edits_of([(0, 0, 1, "a", ""), (1, 0, 1, "a", "")])
    turned = Edits(edits.rows[::-1], edits.starts, edits.ends, edits.kinds, edits.replacements)
    assert fault(Texts(pa.array(["x", "y"])), turned) == "rows must ascend within 0 to 1"
    assert np.array_equal(edits.rows, [0, 1])
