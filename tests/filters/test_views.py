"""What a kernel writes of texts without markup is what the patterns leave of them."""

from __future__ import annotations

import gzip
import json
import os
import re
import unicodedata
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from filters import letters
from filters.plain import plain_heads
from filters.text import CLASSES
from filters.views import HEAD_CHARS, MIN_PROSE_CHARS, MODEL_BYTES, views, views_by_rules
from kernels.arrow import string_buffers

CHARS = st.sampled_from(
    "aBw7好ーй😀＠Ａ`~<>[](){}!%$#*_\\.'\n @:/-&;ſ\u3000\x85\u9fff"
) | st.characters(codec="utf-8")
PIECES = st.sampled_from(
    [
        *(
            "a&amp;b",
            "a & b",
            "<p>",
            "a < b",
            "www.x",
            "w.x",
            "a@b",
            "a @ b",
            "```",
            "~~~",
            "---\n",
        ),
        *("{{x}}", "{x}", "[a](b)", "[a] (b)", "[a][b]", "]:", "::", "://", "$a$", "5$ ", "\\fB"),
        *("\\d", "\n'", "\n.B ", "天气很好" * 60, "a b " * 260, " " * 1990, "\n", "é", "K<ſtyle>x"),
        *("---\n", "PROJECT ", "ＡＢ", "㐀"),
    ]
)
TEXT = st.text(CHARS) | st.lists(PIECES, max_size=8).map("".join)


def defined(text: str) -> str:
    (view,) = views_by_rules(pa.array([text]))
    n = letters.count(*string_buffers(pa.array([text])))
    if re.search(f"[{letters.ODD_WIDTH}]", view):
        view = unicodedata.normalize("NFKC", view)
    return view.lower() if 2 * n.upper > n.all else view


def assert_same(texts: list[str]) -> None:
    array = pa.array(["not read", *texts], pa.string())[1:]
    found = views(array, letters.count(*string_buffers(array)))
    assert found.to_pylist() == list(map(defined, texts))


@given(st.lists(TEXT, max_size=4))
@example(["x" * 799 + " y", "x" * 799 + "好y", "天" * 300, "<ſtyle>a", ("- " * 700) + "a"])
@example(["a" * 199 + " " * 1801, "a" * 200 + " " * 1800, "a b" * 2000, "好" * 1999 + "`a`"])
def test_equals_the_patterns(texts: list[str]) -> None:
    assert_same(texts)


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("天气很好。", True),
        ("a < b & c, 5$; node.js * x_y [1] a:b it's {x}", True),
        ("see http://x", False),
        ("`a`", False),
        ("123", False),  # no letter: marks are kept
        ("", False),
        ("a" * 199 + " " * 1801, False),  # too little of a long text
    ],
)
def test_which_texts_are_plain(text: str, plain: bool) -> None:
    data, offsets = string_buffers(pa.array([text]))
    limits = HEAD_CHARS, MODEL_BYTES, MIN_PROSE_CHARS
    _, _, found = plain_heads(data, offsets, CLASSES, *limits, False)
    assert found.tolist() == [plain]


SAMPLE = os.environ.get("ASSAY_SAMPLE")


@pytest.mark.skipif(SAMPLE is None, reason="ASSAY_SAMPLE is not set")
@pytest.mark.parametrize("language", ["en", "zh"])
def test_equals_the_patterns_on_the_sample(language: str) -> None:
    with gzip.open(Path(str(SAMPLE)) / f"{language}.jsonl.gz", "rt", encoding="utf-8") as file:
        assert_same([json.loads(line)["text"] for line in file])
