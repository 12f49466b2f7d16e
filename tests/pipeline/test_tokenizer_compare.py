from __future__ import annotations

import json
from pathlib import Path

import pytest
import small_corpus
from mixture_corpus import Doc, Tiny, write_corpus

from pipeline import tokenizer_commands as commands
from pipeline.tokenizer_compare import compare, sample


def test_rows_add_up(tmp_path: Path) -> None:
    commands.train(["abab abab"], 258, tmp_path / "own.json")  # bytes, the end, one merge
    documents = [("en", "a", "abab"), ("zh", "b", "好"), ("zh", "a", "")]
    rows, speeds = compare([str(tmp_path / "own.json")], documents)
    found = {(r.language, r.source): r for r in rows}
    assert sorted(found) == [
        *(("all", "all"), ("en", "a"), ("en", "all")),
        *(("zh", "a"), ("zh", "all"), ("zh", "b")),
    ]
    assert (found["en", "a"].tokens, found["en", "a"].bytes_per_token) == (2, 2.0)
    zh = found["zh", "b"]
    assert (zh.tokens, zh.bytes_per_token, zh.byte_share, zh.round_trip_failures) == (3, 1.0, 1, 0)
    every = found["all", "all"]
    assert (every.documents, every.bytes, every.tokens) == (3, 7, 5)
    assert every.vocabulary_used == pytest.approx(4 / 258)
    assert (speeds[0].vocabulary, speeds[0].engine) == (258, "fastokens")


def test_the_verb(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    documents = [Doc(small_corpus.english(n), "en", "tales-en") for n in range(30)]
    documents += [Doc(small_corpus.chinese(n), "zh", "tales-zh") for n in range(30)]
    root = write_corpus(tmp_path / "corpus", Tiny(documents), shard_rows=7)
    texts = [document.text for document in documents]
    commands.train(texts, 600, tmp_path / "own.json")
    commands.train(texts[1:2], 300, tmp_path / "en.json")
    files = [str(tmp_path / "own.json"), str(tmp_path / "en.json")]
    argv = ["compare", *files, "--corpus", str(root)]
    assert commands.main([*argv, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert {row["language"] for row in rows} == {"all", "en", "zh"}
    assert {row["source"] for row in rows} == {"all", "tales-en", "tales-zh"}
    assert all(row["round_trip_failures"] == 0 for row in rows)
    every = [row for row in rows if row["language"] == "all"]
    assert every[0]["bytes"] == every[1]["bytes"] == sum(len(text.encode()) for text in texts)
    assert every[0]["bytes_per_token"] > every[1]["bytes_per_token"]
    assert commands.main([*argv, "--sample", "20kB"]) == 0
    assert "times `tokenizers`" in capsys.readouterr().out
    some = sample(root, 20_000)
    assert 20_000 <= sum(len(text.encode()) for *_, text in some) < 25_000
    assert sample(root, 10_000) == some[: len(sample(root, 10_000))]
