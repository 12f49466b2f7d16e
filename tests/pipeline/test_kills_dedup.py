"""Killed while it looks for text in other text, embeds or indexes: in the end the same bytes."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import kills
import numpy as np
import pytest
import small_corpus

from mixtures.indexing import index
from pipeline import embed

SOAK = os.environ.get("ASSAY_SOAK") == "1"
KILLS = 60 if SOAK else 2
SETTINGS = """\
inputs: [{source: web, files: web.jsonl}]
tokenizer: tokenizer.json
heldout: {share: 0.05, min_documents: 2}
shard_bytes: 12000
output: corpus
near: {containment: 0.9}
substrings: {min_bytes: 120}
edits: [substrings]
"""
# What is made of these, and which of their files stand there.
STAGES = "contained* stretches grouped_* extensions substrings edits/substrings signals/substrings"
TABLES = "joins/contained joins/stretches joins/grouped_stretches joins/extensions joins/contents "
TABLES += "joins/grouped_extensions contained substrings edits signals/substrings"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus in which texts hold others, and share long stretches."""
    folder = tmp_path_factory.mktemp("kills-dedup")
    texts = [(small_corpus.english, small_corpus.chinese)[n % 2](n) for n in range(36)]
    texts += [f"{texts[n]}\n\n{texts[n + 1]}" for n in range(0, 24, 3)]
    lines = [json.dumps({"id": str(n), "text": text}) for n, text in enumerate(texts)]
    (folder / "web.jsonl").write_text("\n".join(lines) + "\n")
    settings, tokenizer = folder / "corpus.yaml", folder / "tokenizer.json"
    settings.write_text(SETTINGS)
    small_corpus.assay("tokenizer", "train", settings, "--vocab-size", "400", "--output", tokenizer)
    small_corpus.assay("prepare", settings, "--workers", "1")
    return folder


def files(root: Path, tables: str = "") -> dict[str, bytes]:
    found = [p for t in tables.split() or ["."] for p in (root / t).rglob("*") if p.is_file()]
    return {str(path.relative_to(root)): path.read_bytes() for path in found}


def test_inside_other_texts(made: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(made, tmp_path / "made", symlinks=True))
    root, told, pick = folder / "corpus", tmp_path / "told", random.Random(5)
    told.touch()
    before = files(root, TABLES)
    tops = {name.split("/")[0] for name in before}
    assert tops == {"joins", "contained", "substrings", "edits", "signals"}
    while told.read_text().count("\n") < KILLS:
        stats = [path for name in STAGES.split() for path in (root / "stats").glob(name)]
        assert len(stats) > 10
        for path in [*stats, *(root / name for name in TABLES.split())]:
            shutil.rmtree(path)
        while not kills.prepared_or_killed(folder / "corpus.yaml", pick.randrange(20, 150), told):
            pass
        assert files(root, TABLES) == before
        assert not list(root.rglob("*.tmp"))


def _dies(work: Callable[..., object], arguments: tuple[Any, ...], moment: int, told: Path) -> None:
    kills.die_at_rename(moment, told)
    work(*arguments)


def killed(
    work: Callable[..., object], arguments: tuple[Any, ...], moment: int, told: Path
) -> bool:
    """Whether it was, or one of the processes that it started, which ends it with an error."""
    before = told.read_text()
    process = kills.FORKS.Process(target=_dies, args=(work, arguments, moment, told))
    process.start()
    process.join()
    assert (process.exitcode == 0) == (told.read_text() == before), process.exitcode
    return process.exitcode != 0


def test_an_index(made: Path, tmp_path: Path) -> None:
    """A new one, and documents added to one that stands: the old one is whole until the end."""
    corpus, told, pick = str(made / "corpus"), tmp_path / "told", random.Random(7)
    told.touch()
    other = small_corpus_of(tmp_path / "other", made)
    index(corpus, str(tmp_path / "whole"))
    one, seen = files(tmp_path / "whole"), str(tmp_path / "seen")
    index(other, str(tmp_path / "whole"), add=True)
    both = files(tmp_path / "whole")
    while told.read_text().count("\n") < 2 * KILLS:
        shutil.rmtree(tmp_path / "seen", ignore_errors=True)
        while killed(index, (corpus, seen), pick.randrange(1, 99), told):
            assert not (tmp_path / "seen").exists()
        assert files(tmp_path / "seen") == one
        while killed(index, (other, seen, True), pick.randrange(1, 20), told):
            assert (tmp_path / "seen" / "index.json").read_bytes() == one["index.json"]
        assert files(tmp_path / "seen") == both


def small_corpus_of(folder: Path, made: Path) -> str:
    """Another corpus of one text, with the same tokenizer."""
    folder.mkdir()
    (folder / "web.jsonl").write_text(json.dumps({"text": small_corpus.english(77)}) + "\n")
    shutil.copy(made / "tokenizer.json", folder)
    (folder / "corpus.yaml").write_text(SETTINGS)
    small_corpus.assay("prepare", folder / "corpus.yaml", "--workers", "1")
    return str(folder / "corpus")


def _counts(texts: list[str]) -> np.ndarray:
    return np.array([[text.count(sign) for sign in "aeiou的了在"] for text in texts])


def _embed(root: Path) -> None:
    embed.CHUNK = 5
    embed.embed(root, _counts, "counts", "semantic", 4)


def test_embeddings(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embed, "CHUNK", embed.CHUNK)  # `_embed` sets it, also in a process forked
    told, pick = tmp_path / "told", random.Random(11)
    told.touch()
    whole = Path(shutil.copytree(made / "corpus", tmp_path / "whole", symlinks=True))
    _embed(whole)
    wanted = files(whole, "attached signals/semantic")
    assert len(wanted) > 3
    while told.read_text().count("\n") < KILLS:
        root = Path(shutil.copytree(made / "corpus", tmp_path / "corpus", symlinks=True))
        while killed(_embed, (root,), pick.randrange(1, 60), told):
            pass
        found = files(root, "attached signals/semantic")  # `prepare` takes temporary files away
        assert {name: data for name, data in found.items() if ".tmp" not in name} == wanted
        shutil.rmtree(root)
