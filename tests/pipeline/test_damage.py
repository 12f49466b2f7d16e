"""A flipped byte in any file of a corpus: `--verify` names it, and mends it where that can be."""

from __future__ import annotations

import gzip
from fnmatch import fnmatch
from pathlib import Path

import kills
import pyarrow.parquet as pq
import pytest
import small_corpus

from pipeline import damage, prepare, runners, store
from pipeline.attach import attach
from pipeline.config import ConfigError
from pipeline.corpus import CorpusError, manifest
from pipeline.files import file_hash
from pipeline.prices import Prices, keep_prices
from pipeline.report import funnel
from pipeline.settings import load_corpus

WITH_TIMES = ("stats/", "corpus.json")  # other bytes whenever they are written
GIVEN = (*damage.GIVEN, "heldout/documents.parquet")  # not made again: the remedy is told


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """corpus.yaml of a corpus that has every kind of file."""
    folder = tmp_path_factory.mktemp("damage")
    path = small_corpus.write_inputs(folder, documents=20)
    plain = (folder / "en.jsonl").read_bytes()
    (folder / "en.jsonl.gz").write_bytes(gzip.compress(plain, mtime=0))
    path.write_text(path.read_text("utf-8").replace("en.jsonl", "en.jsonl.gz"), "utf-8")
    with open(path, "a") as file:
        file.write("shard_bytes: 15kB\n")
    tokenizer = ["--vocab-size", "400", "--output", str(folder / "tokenizer.json")]
    small_corpus.assay("tokenizer", "train", path, *tokenizer)
    return path


def run(settings: Path) -> Path:
    """`assay prepare --verify`, its stages one after another."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prepare, "_run", kills.run_stages)
        checked = load_corpus(settings)
        return prepare.prepare(checked, runners.Chosen("inline", 1), verify=True).root


@pytest.fixture(scope="module")
def corpus(settings: Path) -> Path:
    root = run(settings)
    scores = settings.parent / "scores.csv"
    scores.write_text("id,score\n" + "".join(f"{key},1\n" for key in ids(root)))
    attach(root, scores, "id", "scores")
    prices = {"currency": "EUR", "cpu_core_hour": 0.5, "storage_gb_month": 0.1, "source": "a test"}
    keep_prices(root, Prices(**prices))
    funnel(root)
    return root


def ids(root: Path) -> list[str]:
    tables = [pq.read_table(p, columns=["id"]) for p in sorted(root.glob("documents/*.parquet"))]
    return [row["id"].hex() for table in tables for row in table.to_pylist()]


def test_a_flipped_byte_in_any_file_is_named_and_mended(
    corpus: Path, settings: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(settings)
    skipped = store.matching(corpus, damage.NOT_CHECKED)
    files = [path for path in sorted(corpus.rglob("*")) if path.is_file() and path.name[0] != "."]
    checked = [path for path in files if path not in skipped]
    kinds = {str(path.relative_to(corpus)).partition("/")[0] for path in checked}
    assert {"cut", "attached", "tokens", "stats", "heldout", "joins", "corpus.json"} <= kinds
    before = {path: path.read_bytes() for path in checked}
    hashes = {path: file_hash(path) for path in checked}
    for path in checked:
        name, whole = str(path.relative_to(corpus)), before[path]
        middle = len(whole) // 2
        path.write_bytes(whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :])
        said = told(settings, capsys)
        if any(fnmatch(name, pattern) for pattern in GIVEN):
            assert name in said, (name, said)
            assert "put it back" in said or "again" in said or "anew" in said, said
            path.write_bytes(whole)
        else:
            assert f"damaged, made again: {path}\n" in said, (name, said)
        if not name.startswith(WITH_TIMES):
            assert file_hash(path) == hashes[path], name
        assert damage.damaged(corpus) == [], name
    assert manifest(corpus)["finished"]


def told(settings: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """What a run says, or the message that it ends with."""
    capsys.readouterr()
    try:
        run(settings)
    except (CorpusError, ConfigError) as error:
        return str(error)
    return capsys.readouterr().err
