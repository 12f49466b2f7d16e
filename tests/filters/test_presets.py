from __future__ import annotations

from typing import Any

import duckdb
import pyarrow as pa
import pytest

from filters.gopher import COLUMNS, STOP_WORDS, measure
from filters.presets import NO_RULE, PRESETS, expression, needs, reasons

EN = (
    "The river rose in the night, and by morning the lower fields were under water. We moved our "
    "sheep up to a hill above the village. Children carried whatever they could hold with them. "
    "Nobody slept until noon, when rain stopped and somebody lit fires for those who had nothing "
    "dry left. It has been worse, said my grandfather, but he never told us which year he meant."
)
ZH = (
    "夜里河水涨了，到早上低处的田已经淹没在水中。我们把羊赶到山上，孩子们拿着能带走之物跟在后面。"
    "直到中午雨停，村里才有人生起火，给那些衣服湿透者取暖。爷爷说以前比这更糟，可是他没讲清楚究竟"
    "哪一年。傍晚太阳出来，大家回家收拾屋子，清点粮食，准备明天修堤坝。"
)
# For each language: a signal, and a text in which its rule fires.
FIRES = {
    "en": {
        "gopher.num_words": "The end of the story.",
        "gopher.mean_word_length": EN.replace(" ", "").replace(",", " of ").replace(".", " to "),
        "gopher.hash_ratio": EN + " #" * 20,
        "gopher.ellipsis_ratio": EN + " ..." * 20,
        "gopher.bullet_line_share": "- " + EN.replace(". ", ".\n- "),
        "gopher.ellipsis_line_share": EN.replace(". ", "...\n"),
        "gopher.alpha_word_share": EN + " 17" * 30,
        "gopher.num_stop_words": " ".join(
            word for word in EN.split() if word.lower() not in STOP_WORDS["en"]
        ),
        "gopher.dup_line_share": EN + "\nread\nmore" * 3,
        "gopher.dup_line_char_share": "\n".join([EN] * 2),
        "gopher.dup_paragraph_share": EN + "\n\nread more" * 3,
        "gopher.dup_paragraph_char_share": "\n\n".join([EN] * 2),
        "gopher.top_2_gram_char_share": EN + " read more" * 20,
        "gopher.top_3_gram_char_share": EN + " please read more" * 20,
        "gopher.top_4_gram_char_share": EN + " please read much more" * 20,
        **{f"gopher.dup_{n}_gram_char_share": f"{EN} {EN}" for n in range(5, 11)},
    },
    "zh": {
        "gopher.num_words": "今天天气很好。",
        "gopher.hash_ratio": ZH + "#" * 20,
        "gopher.ellipsis_ratio": ZH.replace("，", "……").replace("。", "……"),
        "gopher.bullet_line_share": "●" + ZH.replace("。", "。\n●"),
        "gopher.ellipsis_line_share": ZH.replace("。", "。。。\n"),
        "gopher.alpha_word_share": ZH + " 17" * 60,
        "gopher.num_stop_words": "".join(
            c for c in ZH if c not in "的年在月是和日了有人中他后也由"
        ),
        "gopher.dup_line_share": ZH + "\n展开" * 3,
        "gopher.top_2_gram_char_share": ZH + "展开，" * 30,
        "gopher.top_3_gram_char_share": ZH + "看全文，" * 30,
        "gopher.top_4_gram_char_share": ZH + "展开全文，" * 30,
        "gopher.dup_10_gram_char_share": ZH + ZH,
    },
}


def query(text: str, language: str | None, *columns: str) -> tuple[Any, ...]:
    measured = measure(pa.array([text]), pa.array([language or ""]))
    rows = pa.table({name: pa.array(measured[name]) for name in COLUMNS})
    table = pa.table({"gopher": rows.to_struct_array(), "lang": pa.array([language], pa.string())})
    with duckdb.connect() as connection:
        connection.register("documents", table)
        (row,) = connection.execute(f"select {', '.join(columns)} from documents").fetchall()
    return tuple(row)


@pytest.mark.parametrize(("language", "text"), [("en", EN), ("zh", ZH)])
def test_prose_passes_every_rule(language: str, text: str) -> None:
    assert query(text, language, expression("gopher")) == (True,)
    failed = query(text, language, *(sql for _, sql in reasons("gopher")))
    assert set(failed) <= {False, None}


@pytest.mark.parametrize(
    ("language", "signal"), [(lang, signal) for lang, texts in FIRES.items() for signal in texts]
)
def test_each_rule_can_fire(language: str, signal: str) -> None:
    text = FIRES[language][signal]
    passes, fails = query(text, language, expression("gopher"), dict(reasons("gopher"))[signal])
    assert (passes, fails) == (False, True)


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_rule_is_tested_or_explained(preset: str, language: str) -> None:
    with_bounds = {rule.signal for rule in PRESETS[preset] if language in rule.bounds}
    without = {rule.signal for rule in PRESETS[preset]} - with_bounds
    assert with_bounds == FIRES[language].keys()
    assert without == {signal for name, signal in NO_RULE if name == language}


@pytest.mark.parametrize("language", ["ko", "und", None])
def test_language_without_bounds_is_null(language: str | None) -> None:
    columns = [expression("gopher"), *(sql for _, sql in reasons("gopher"))]
    assert set(query(EN, language, *columns)) == {None}


def test_bounds_are_inclusive() -> None:
    sql = dict(reasons("gopher"))
    words = " ".join(f"word{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(50))
    assert query(words, "en", sql["gopher.num_words"]) == (False,)
    assert query(words.rsplit(" ", 1)[0], "en", sql["gopher.num_words"]) == (True,)
    assert query(words + " #" * 5, "en", sql["gopher.hash_ratio"]) == (False,)  # 5 / 50 == .1
    assert query(words + " #" * 6, "en", sql["gopher.hash_ratio"]) == (True,)


def test_needs_and_unknown_preset() -> None:
    assert needs("gopher") == {"language", "gopher"}
    with pytest.raises(ValueError, match="no preset 'gofer'; presets: gopher"):
        expression("gofer")


def test_every_bound_reads_a_signal_and_names_its_source() -> None:
    for rule in PRESETS["gopher"]:
        assert rule.signal.removeprefix("gopher.") in COLUMNS
        assert [b.source for b in rule.bounds.values() if not b.source] == []
