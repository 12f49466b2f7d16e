"""datatrove's numbers: its traps by hand, every rule, and its verdicts on real documents.

    ASSAY_CORPUS=... ASSAY_DATATROVE=.../datatrove-each-en.tsv pytest tests/filters/test_faithful.py

compares with verdicts that datatrove itself gave: columns id, language, gopher_repetition,
gopher_quality, c4_quality, fineweb_quality. benchmarks/faithful.py compares the numbers.
"""

from __future__ import annotations

import csv
import gzip
import itertools
import json
import os
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from filters import faithful_rules
from filters.faithful import MARKS, TERMINALS, c4, fineweb, gopher
from filters.faithful_groups import COLUMNS, MEASURES
from filters.faithful_rules import FAITHFUL, FaithfulRule, first_reason
from filters.presets import expression, needs
from filters.presets import first_reason as reason_sql
from filters.segments import Texts

SOAK = os.environ.get("ASSAY_SOAK") == "1"


def one_each(text: str) -> int:
    """A sentence for each full stop."""
    return text.count(".")


def test_the_marks() -> None:
    assert len(TERMINALS) == 159
    assert len(MARKS) == 281
    assert {".", "?", "!", "。"} <= set(TERMINALS)
    assert not {'"', "…", "”"} & set(TERMINALS)


def test_gopher_by_hand() -> None:
    text = "\nThe cat.\n\n\nThe cat.\n- #the…"
    found = gopher(text, ["The", "cat", ".", "The", "cat", ".", "-", "#", "the", "…"])
    assert found["num_chars"] == 28
    assert found["dup_paragraph_share"] == 0  # "The cat." and "The cat.\n- #the…"
    assert found["dup_line_share"] == 1 / 4  # the empty line before the first line feed counts
    assert found["dup_line_char_share"] == 8 / 28
    assert found["top_2_gram_char_share"] == 2 * len("The cat") / 28  # with the space
    assert found["top_4_gram_char_share"] == len("The cat . The") / 28  # stands once
    assert found["dup_5_gram_char_share"] == 0
    assert found["num_words"] == 5  # The cat The cat the
    assert found["mean_word_length"] == 3
    assert found["hash_ratio"] == 1 / 10  # of all words, marks among them
    assert found["ellipsis_ratio"] == 1 / 10
    assert found["bullet_line_share"] == 1 / 6
    assert found["ellipsis_line_share"] == 1 / 6
    assert found["alpha_word_share"] == 5 / 10
    assert found["num_stop_words"] == 1  # `The` is not `the`


def test_a_share_can_exceed_one() -> None:
    found = gopher("甲乙丙丁", list("甲乙丙丁"))
    assert found["top_4_gram_char_share"] == 7 / 4


def test_repeated_ngrams_do_not_overlap() -> None:
    assert gopher("a" * 11, ["a"] * 11)["dup_5_gram_char_share"] == 10 / 11
    assert gopher("a" * 10, ["a"] * 10)["dup_5_gram_char_share"] == 5 / 10


def test_c4_by_hand() -> None:
    text = (
        f"{'x' * 1001} and more.\r\nNo mark here\nBut two.\nJavaScript {'{'} is off here.\n"
        "We use cookies. So there.\n  One [1] two. Three[edit] four five?\nAn {end} of it."
    )
    found = c4(text, one_each, any_end=False)
    assert found == {
        "num_lines": 7,
        "num_long_word_lines": 1,
        "num_unended_lines": 1,
        "num_short_lines": 1,
        "num_lorem_ipsum": 0,
        "num_javascript_lines": 1,
        "num_curly_brackets": 1,
        "num_policy_lines": 1,
        "lines_after": 1,
        "sentences_after": 1,
    }
    assert c4(text, one_each, any_end=True)["lines_after"] == 2
    early = c4("A {b c d.\nE f g.", one_each, any_end=True)
    assert (early["num_lines"], early["lines_after"]) == (1, 0)


def test_fineweb_by_hand() -> None:
    found = fineweb("A b.\r\nC d.\n \nC d.", ["A", "b", ".", "C", "d", ".", "C", "d", "."])
    assert found["num_lines"] == 3
    assert found["punctuation_line_share"] == 2 / 3  # "A b.\r" ends in none
    assert found["short_line_share"] == 1
    assert found["dup_line_char_share"] == 4 / 14
    assert found["newline_ratio"] == 3 / 9


EN = (
    "The river rose in the night, and by morning the lower fields were under water. We moved our "
    "sheep up to a hill above the village. Children carried whatever they could hold with them. "
    "Nobody slept until noon, when rain stopped and somebody lit fires for those who had nothing "
    "dry left. It has been worse, said my grandfather, but he never told us which year he meant."
)
A, B = "One short line of prose stands here.", "Another one stands below it, also short."


def unique(number: int, length: int = 5) -> list[str]:
    """So many words, no two of them alike, and two stop words."""
    letters = itertools.product("bcdfghjklmnpqrst", repeat=length)
    return ["the", "of", *("".join(word) for word in itertools.islice(letters, number))]


def repeated(n: int, share: float) -> str:
    """Twelve runs of n words that stand twice, with `share` of all characters in the second ones:
    5 of 6 characters are a word's, the sixth is a space."""
    fresh = iter(unique(12 * n * 20)[2:])
    runs = [" ".join(itertools.islice(fresh, n)) for _ in range(12)]
    again = [f"{run} {next(fresh)}" for run in reversed(runs)]
    between = itertools.islice(fresh, round(12 * n * 5 / 6 / share) - 24 * n - 12)
    return " ".join(["the of", *runs, *between, *again])


PROSE = " ".join(unique(200))
FIRES: dict[str, dict[str, str]] = {
    "gopher_faithful": {
        "empty": "",
        "dup_para_frac": EN + "\n\nread more" * 3,
        "dup_para_char_frac": "\n\n".join([EN, A, B, EN]),
        "dup_line_frac": EN + "\nread more" * 3,
        "dup_line_char_frac": "\n".join([EN, A, B, EN]),
        "top_2_gram": EN + " read more" * 20,
        "top_3_gram": EN + " please read more" * 9,
        "top_4_gram": EN + " please read much more" * 5,
        **{
            f"duplicated_{n}_n_grams": repeated(n, share)
            for n, share in ((5, 0.2), (6, 0.17), (7, 0.15), (8, 0.14), (9, 0.13), (10, 0.12))
        },
        "gopher_short_doc": " ".join(unique(40)),
        "gopher_long_doc": " ".join(unique(100_001)),
        "gopher_below_avg_threshold": " ".join(unique(200, 2)),
        "gopher_above_avg_threshold": " ".join(unique(200, 11)),
        "gopher_too_many_hashes": PROSE.replace(" b", " #b"),
        "gopher_too_many_ellipsis": PROSE.replace(" b", " …b"),
        "gopher_too_many_bullets": "- " + PROSE.replace(" ", "\n- "),
        "gopher_too_many_end_ellipsis": "...\n".join(
            " ".join(row) for row in zip(*[iter(unique(198))] * 20, strict=True)
        ),
        "gopher_below_alpha_threshold": PROSE + " " + " ".join(str(n) for n in range(500, 600)),
        "gopher_enough_stop_words": PROSE.replace("the of", "The"),
    },
    "c4_faithful": {
        "lorem_ipsum": f"It is lorem ipsum.\nIt is {{ this.\n{EN}",
        "curly_bracket": f"It is {{ this.\nIt is lorem ipsum.\n{EN}",
        "too_few_sentences": EN.replace(". ", "\n"),
    },
    "c4_any_end_faithful": {
        "lorem_ipsum": f"It is lorem ipsum\n{EN}",
        "curly_bracket": f"It is {{ this\n{EN}",
        "too_few_sentences": EN[:300],
    },
    "fineweb_faithful": {
        "empty": " \n\t",
        "line_punct_ratio": EN.replace(".", ""),
        "short_line_ratio": "\n".join(f"Line {word}." for word in unique(8)),
        "char_dup_ratio": f"{EN}\n{EN}",
        "list_ratio": EN.replace(". ", "." + "\n" * 7),
    },
}
CASES = [(preset, reason) for preset, texts in FIRES.items() for reason in texts]


def values(preset: str, text: str) -> dict[str, float]:
    if preset.startswith("gopher"):
        return gopher(text, text.split())
    if preset.startswith("fineweb"):
        return fineweb(text, text.split())
    any_end = c4(text, one_each, any_end=True)
    by_end = c4(text, one_each, any_end=False)
    return by_end | {f"{name}_any_end": value for name, value in any_end.items()}


@pytest.mark.parametrize(("preset", "reason"), CASES)
def test_each_rule_can_fire_and_is_the_first(preset: str, reason: str) -> None:
    found = values(preset, FIRES[preset][reason])
    assert first_reason(FAITHFUL[preset][1], found) == reason
    assert in_sql(preset, found) == (False, reason)


@pytest.mark.parametrize("preset", FAITHFUL)
def test_each_rule_can_pass(preset: str) -> None:
    found = values(preset, EN)
    assert first_reason(FAITHFUL[preset][1], found) is None
    assert in_sql(preset, found) == (True, None)
    assert [rule[3] for rule in FAITHFUL[preset][1]] == list(FIRES[preset])


def in_sql(preset: str, found: dict[str, float], language: str = "en") -> tuple[object, ...]:
    """`pass` and `reason` as the view `documents` has them."""
    group = FAITHFUL[preset][0]
    columns = COLUMNS[group.removesuffix("_faithful")]
    row = pa.table({name: pa.array([found[name]], columns[name].type) for name in columns})
    documents = pa.table({group: row.to_struct_array(), "lang": [language], "kind": ["code"]})
    with duckdb.connect() as connection:
        connection.register("documents", documents)
        query = f"select {expression(preset)}, {reason_sql(preset)} from documents"
        (found_row,) = connection.execute(query).fetchall()
    return tuple(found_row)


def test_presets_need_their_group_and_hold_for_english() -> None:
    assert needs("c4_any_end_faithful") == {"language", "c4_faithful"}
    assert in_sql("fineweb_faithful", fineweb(EN, EN.split()), "zh") == (None, None)


ODD = ["", "a", "。", "#", " ", "\n\n\n", "a\r\nb.\r\n", "\x00", "\x1c\x85", "😀", "!" * 3000]


@pytest.mark.parametrize("group", MEASURES)
def test_a_value_for_every_english_text(group: str) -> None:
    pytest.importorskip("spacy", reason="the extra `faithful` is not installed")
    texts = [*ODD, "The end."]
    languages = pa.array(["en"] * len(ODD) + ["zh"])
    found = MEASURES[group](Texts(pa.array(texts)), {"lang": languages})
    assert list(found) == list(COLUMNS[group])
    for name, column in found.items():
        assert column.type == COLUMNS[group][name].type
        assert column.is_null().to_pylist() == [False] * len(ODD) + [True]
        assert all(value == value for value in column.to_pylist()[:-1])


ENGLISH = ("python-peps-en", "rust-rfcs-en", "rust-book-en", "ethereum-eips-en")
VERDICTS: dict[str, tuple[str, tuple[FaithfulRule, ...]]] = {
    "gopher_repetition": ("gopher", faithful_rules.GOPHER_REPETITION),
    "gopher_quality": ("gopher", faithful_rules.GOPHER_QUALITY),
    "c4_quality": ("c4", faithful_rules.C4_ANY_END),
    "fineweb_quality": ("fineweb", faithful_rules.FINEWEB),
}


def documents(folder: Path) -> Iterator[tuple[str, str]]:
    for name in ENGLISH:
        with gzip.open(folder / f"{name}.jsonl.gz") as stream:
            for line in stream:
                row = json.loads(line)
                yield row["id"], row["text"]


@pytest.mark.slow  # 100 CPU s with ASSAY_SOAK=1; otherwise every 20th document
def test_verdicts_are_datatroves() -> None:
    for name in ("ASSAY_CORPUS", "ASSAY_DATATROVE"):
        if name not in os.environ:
            pytest.skip(
                f"{name} is not set: no documents with datatrove's verdicts; run it with "
                "both, as the head of this file shows"
            )
    pytest.importorskip("spacy", reason="the extra `faithful` is not installed")
    with open(os.environ["ASSAY_DATATROVE"], encoding="utf-8") as stream:
        expected = {row["id"]: row for row in csv.DictReader(stream, delimiter="\t")}
    pairs = list(documents(Path(os.environ["ASSAY_CORPUS"])))[:: 1 if SOAK else 20]
    texts, languages = Texts(pa.array([text for _, text in pairs])), pa.array(["en"] * len(pairs))
    rows = {
        group: pa.table(measure(texts, {"lang": languages})).to_pylist()
        for group, measure in MEASURES.items()
    }
    different = [
        (identity, column, reason, expected[identity][column])
        for at, (identity, _) in enumerate(pairs)
        for column, (group, rules) in VERDICTS.items()
        if (reason := first_reason(rules, rows[group][at]) or "keep") != expected[identity][column]
    ]
    assert different == []
    assert len(pairs) == (1401 if SOAK else 71)
