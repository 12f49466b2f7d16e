from __future__ import annotations

import re

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.literals import count_literals, may_hold

TEXTS = pa.array(["<|end|>", "a好b<|end|><|end|>", "a<|ex", "<｜完｜>", "<", "x<<b", ""])


@pytest.mark.parametrize(
    ("literals", "held", "counts"),
    [
        (("<｜完成｜>", "<|end|>"), [True, False, True, False, False, False], [2, 0, 0, 0, 0, 0]),
        (("<|end|>",), [True, False, False, False, False, False], [2, 0, 0, 0, 0, 0]),
        (("<|e", "<"), [True, True, True, True, True, False], [2, 1, 1, 1, 2, 0]),
        ((), [False] * 6, [0] * 6),
    ],
)
def test_values(literals: tuple[str, ...], held: list[bool], counts: list[int]) -> None:
    assert may_hold(TEXTS[1:], literals).tolist() == held
    assert count_literals(TEXTS[1:], literals).tolist() == counts


@given(st.lists(st.text("<|a好", max_size=9)), st.lists(st.text("<|a好", min_size=1, max_size=4)))
def test_as_by_the_expression_alone(texts: list[str], strings: list[str]) -> None:
    literals = tuple(sorted(set(strings), key=len, reverse=True))
    pattern = re.compile("|".join(map(re.escape, literals)))
    expected = [len(pattern.findall(text)) if literals else 0 for text in texts]
    assert count_literals(pa.array(texts, pa.string()), literals).tolist() == expected
