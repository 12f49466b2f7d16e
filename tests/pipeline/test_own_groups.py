"""Signal groups that other keys of corpus.yaml than `signals` make: from the yaml to SQL."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from small_corpus import assay, write_inputs

from pipeline.config import ConfigError
from pipeline.groups import groups
from pipeline.settings import load_corpus
from pipeline.sql import connect


def settings_with(folder: Path, *lines: str) -> Path:
    """corpus.yaml of the small corpus, its English with addresses, and further keys."""
    path = write_inputs(folder, documents=24)
    english = folder / "en.jsonl"
    rows = english.read_bytes().splitlines()
    for at, host in ((0, b"www.bad.com"), (1, b"good.bad.com"), (2, b"fine.org")):
        rows[at] = rows[at].replace(b"{", b'{"url": "https://' + host + b'/x", ', 1)
    english.write_bytes(b"\n".join(rows) + b"\n")
    path.write_text(path.read_text() + "\n".join(lines) + "\n")
    return path


def test_faithful_and_urls_end_to_end(tmp_path: Path) -> None:
    pytest.importorskip("spacy", reason="the extra `faithful` is not installed")
    path = settings_with(
        tmp_path, "faithful: [gopher, c4, fineweb]", "urls: {block: [bad.txt], allow: [good.txt]}"
    )
    (tmp_path / "bad.txt").write_text("bad.com\n")
    (tmp_path / "good.txt").write_text("good.bad.com\n")
    tokenizer = tmp_path / "tokenizer.json"
    assay("tokenizer", "train", path, "--vocab-size", "500", "--output", tokenizer)
    assay("prepare", path)
    with connect(tmp_path / "corpus") as connection:
        rows = connection.execute(
            "select source_id, urls.blocked, urls.allowed, urls.entries, urls.site from documents "
            "where url is not null order by source_id"
        ).fetchall()
        assert rows == [
            ("en-0", True, False, ["bad: bad.com"], "bad.com"),
            ("en-1", False, True, ["bad: bad.com"], "bad.com"),
            ("en-2", False, False, [], "fine.org"),
        ]
        rows = connection.execute(
            "select lang, gopher_faithful.pass, gopher_faithful.reason, fineweb_faithful.reason, "
            "c4_faithful.pass, c4_any_end_faithful.reason, gopher.reason is null = gopher.pass "
            "from documents where source_id in ('en-3', 'zh-3') group by all order by lang"
        ).fetchall()
        assert rows == [
            ("en", False, "duplicated_6_n_grams", None, True, None, True),
            ("zh", None, None, None, None, None, True),
        ]
    (tmp_path / "bad.txt").write_text("bad.com\ncasino\n")
    failed = assay("prepare", path, check=False)
    assert failed.returncode != 0
    assert f"{tmp_path}/bad.txt, line 2: 'casino' is no domain: write" in failed.stderr


def test_what_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = settings_with(tmp_path, "urls: {block: [none.txt]}")
    settings = load_corpus(path, tokenizer_exists=False)
    message = f"key `urls`: {tmp_path}/none.txt: no list of addresses; give a file"
    with pytest.raises(ConfigError, match=message):
        groups(settings)
    path = settings_with(tmp_path / "faithful", "faithful: [c4]")
    settings = load_corpus(path, tokenizer_exists=False)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"spaCy, which is not installed; pip install 'assay\["):
        groups(settings)
