"""Kept languages as SQL: a list asks less of short English, given scores hold for every length."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest

from filters.kept_languages import expression
from filters.language import measure
from filters.segments import Texts


def passes(languages: list[str] | dict[str, float], row: tuple[str, float, int]) -> bool:
    lang, score, num_chars = row
    columns = f"'{lang}' as lang, {score}::float as lang_score, {num_chars} as num_chars"
    found = duckdb.sql(f"select {expression(languages)} from (select {columns})").fetchall()
    return bool(found[0][0])


@pytest.mark.parametrize(
    ("row", "listed", "given"),
    [
        (("en", 0.66, 200), True, True),
        (("en", 0.64, 200), False, False),
        (("en", 0.64, 199), True, False),
        (("en", 0.29, 199), False, False),
        (("zh", 0.51, 10), True, True),
        (("zh", 0.49, 10), False, False),
        (("de", 1.0, 10), False, False),
    ],
)
def test_the_least_score(row: tuple[str, float, int], listed: bool, given: bool) -> None:
    assert passes(["zh", "en"], row) is listed
    assert passes({"zh": 0.5, "en": 0.65}, row) is given
    assert passes([], row) is False


@pytest.mark.parametrize(
    "text",
    [
        "Thank you for your help!",
        "The cat sat on the mat.",
        "Yes.",
        "Please call me back when you can.",
        "The parcel never came and nobody answers the phone.",
        "谢谢你的帮助！",
        "好。",
    ],
)
def test_short_clear_text_is_kept(text: str) -> None:
    found = measure(Texts(pa.array([text])), {})
    lang, score = pa.array(found["lang"])[0].as_py(), float(found["lang_score"][0])
    assert passes(["zh", "en"], (lang, score, len(text)))
