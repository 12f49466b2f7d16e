from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from filters.c4 import COLUMNS, LINE_WORDS, find, measure
from filters.edits import applied, fault
from filters.endings import ELLIPSES, TERMINALS
from filters.phrases import JAVASCRIPT, PHRASES, POLICY
from filters.segments import Texts
from filters.text import lines, sentences, words

TEXT = st.lists(
    st.sampled_from([*PHRASES, "Use ", "COOKIES", "JavaScript.", "one two three ", "天气很好吗"])
    | st.sampled_from([*TERMINALS, *ELLIPSES, "\n", "\n", "\n\n", "\u3000\n", " ", "x" * 1001]),
    max_size=30,
).map("".join)


def has(line: str, kind: int) -> bool:
    return any(phrase in line.lower() for phrase, k in PHRASES.items() if k == kind)


def definition(text: str, language: str) -> dict[str, int | None]:
    rows = lines(text)
    fewest = LINE_WORDS.get(language)
    terminal = [row[-1] in TERMINALS and not row.endswith(ELLIPSES) for row in rows]
    long = [any(len(word) > 1000 for word in words(row)) for row in rows]
    short = [len(words(row)) < (fewest or 0) for row in rows]
    javascript = [has(row, JAVASCRIPT) for row in rows]
    policy = [has(row, POLICY) for row in rows]
    taken = zip(rows, terminal, long, short, javascript, policy, strict=True)
    after = [row for row, good, *bad in taken if good and not any(bad)]
    by_language = {
        "num_short_lines": sum(short),
        "lines_after": len(after),
        "words_after": sum(len(words(row)) for row in after),
        "sentences_after": sum(len(sentences(row)) for row in after),
    }
    return {
        "num_lines": len(rows),
        "num_terminal_lines": sum(terminal),
        "num_long_word_lines": sum(long),
        "num_javascript_lines": sum(javascript),
        "num_policy_lines": sum(policy),
        "num_lorem_ipsum": text.lower().count("lorem ipsum"),
        "num_curly_brackets": text.count("{"),
        "num_sentences": len(sentences(text)),
        **{name: value if fewest else None for name, value in by_language.items()},
    }


def rows(texts: list[str], language: str) -> list[dict[str, int | None]]:
    languages = pa.array([language] * len(texts), pa.string())
    columns = measure(Texts(pa.array(texts, pa.string())), {"lang": languages})
    assert list(columns) == list(COLUMNS)
    return pa.table({name: pa.array(columns[name]) for name in COLUMNS}).to_pylist()


@given(st.lists(TEXT, max_size=3), st.sampled_from(["en", "zh", "ko"]))
def test_equals_definition(texts: list[str], language: str) -> None:
    assert rows(texts, language) == [definition(text, language) for text in texts]


@given(st.lists(TEXT, max_size=3), st.sampled_from(["en", "zh"]))
def test_what_the_edits_leave_is_what_was_measured(texts: list[str], language: str) -> None:
    batch = Texts(pa.array(["", *texts], pa.string()).slice(1))
    columns = {"lang": pa.array([language] * len(texts)), "kind": pa.array(["web"] * len(texts))}
    edits = find(batch, {name: array.cast(pa.string()) for name, array in columns.items()})
    assert fault(batch, edits) == ""
    after = applied(batch.array, edits).to_pylist()
    left = [(len(lines(text)), sum(len(sentences(r)) for r in lines(text))) for text in after]
    found = rows(texts, language)
    assert left == [(row["lines_after"], row["sentences_after"]) for row in found]


SAMPLE = os.environ.get("ASSAY_SAMPLE")


@pytest.mark.skipif(SAMPLE is None, reason="ASSAY_SAMPLE is not set")
@pytest.mark.parametrize("language", ["en", "zh"])
def test_equals_definition_on_the_sample(language: str) -> None:
    with gzip.open(Path(str(SAMPLE)) / f"{language}.jsonl.gz", "rt", encoding="utf-8") as file:
        texts = [json.loads(line)["text"] for line in file]
    assert rows(texts, language) == [definition(text, language) for text in texts]


def test_chinese_lines_are_kept() -> None:  # NeMo Curator constants.py:19: only . ? ! " '
    (row,) = rows(
        ["今天天气很好。\n她说：“我们走吧！”\n首页\n阅读我们的隐私政策。\n还有呢……"], "zh"
    )
    assert row["num_terminal_lines"] == 3
    assert row["num_policy_lines"] == 1
    assert (row["lines_after"], row["words_after"], row["sentences_after"]) == (2, 12, 2)


def test_english_lines() -> None:
    text = "Please enable JavaScript to go on.\nRead more.\nThe cat sat. It slept.\nAnd then it..."
    (row,) = rows([text.replace("\n", " \n")], "en")
    assert row["num_lines"] == 4
    assert row["num_javascript_lines"] == row["num_short_lines"] == row["lines_after"] == 1
    assert row["sentences_after"] == 2


def test_every_phrase_is_found_in_any_case() -> None:
    for phrase, kind in PHRASES.items():
        if kind == POLICY:
            found = [row["num_policy_lines"] for row in rows([phrase, phrase.upper()], "en")]
            assert (phrase, found) == (phrase, [1, 1])
