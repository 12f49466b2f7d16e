"""The verbs of a finished corpus on a store: prices, freeze, verify, ls, gc, sets that are kept."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import small_corpus
from small_corpus import assay

from mixtures.freeze_commands import freeze, verify
from pipeline import corpus, damage, frozen, given, objects, store
from pipeline.config import ConfigError
from pipeline.heldout_settings import Heldout
from pipeline.prices import prices_of
from pipeline.sql import ask
from trainer.forget import forget
from trainer.garbage import gc
from trainer.inventory import ls

PRICES = "{currency: EUR, cpu_core_hour: 0.5, storage_gb_month: 0.02, source: a test}\n"


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a corpus at file://<folder>/store/web, prepared with prices."""
    folder = tmp_path_factory.mktemp("verbs")
    settings = small_corpus.write_inputs(folder, 40)
    tokenizer = folder / "tokenizer.json"
    assay("tokenizer", "train", settings, "--vocab-size", "600", "--output", tokenizer)
    url = f"file://{folder}/store/web"
    settings.write_text(settings.read_text().replace("output: corpus", f"output: {url}"))
    (folder / "prices.yaml").write_text(PRICES)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ASSAY_CACHE", str(folder / "driver"))
        assay("prepare", settings, "--workers", "1", "--prices", folder / "prices.yaml")
    return folder


@pytest.fixture
def url(prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Its URL, on another machine."""
    shutil.copytree(prepared / "store", tmp_path / "store")
    monkeypatch.setenv("ASSAY_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return f"file://{tmp_path}/store/web"


def test_prices_reach_the_store(url: str) -> None:
    prices = prices_of(store.folder(url))
    assert prices is not None
    assert (prices.currency, prices.cpu_core_hour) == ("EUR", 0.5)


def test_freeze_and_verify(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert freeze([url, "--output", "web.json"]) == 0
    monkeypatch.setenv("ASSAY_CACHE", str(tmp_path / "again"))
    capsys.readouterr()
    assert verify(["web.json"]) == 0
    assert capsys.readouterr().out == f"corpus corpus ({url}): the same\n"
    assert verify(["web.json", url]) == 0


def test_ls(url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mixture = tmp_path / "mixtures" / "m.yaml"
    mixture.parent.mkdir()
    mixture.write_text(f"corpora: {{web: {url}}}\nsources: {{all: {{from: web}}}}\n")
    assert ls([url, "mixtures"]) == 0
    [line] = [line for line in capsys.readouterr().out.splitlines() if line.startswith("corpus ")]
    assert line.startswith(f"corpus {url} ")
    assert line.endswith("mixtures/m.yaml")
    assert "0.0 MB" not in line, "of what stands on the store, not of the cache"
    with pytest.raises(FileNotFoundError, match="no corpus"):
        ls([f"{url}-other"])


def test_gc(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert gc([url, "--delete"]) == 0  # old leases
    lost = f"{url}/documents/part-00000.0123456789ab.parquet"
    objects.write(lost, b"x" * 1_000_000)
    before = objects.names(url)
    capsys.readouterr()
    assert gc([url]) == 0
    assert f"         1.0 MB  {lost}: no manifest names it\n" in capsys.readouterr().out
    assert set(before) <= set(objects.names(url))
    assert gc([url, "--delete"]) == 0
    assert not objects.exists(lost)
    root = store.folder(url)
    with corpus.locked(root):
        assert damage.damaged(root) == [], "what is named stays"
        assert gc([url, "--delete"]) == 0
    assert "left alone: " in capsys.readouterr().err


def test_held_out_sets_of_a_store_are_kept(url: str, tmp_path: Path) -> None:
    for keep in (url, f"{url}/heldout.json"):
        held = Heldout(keep=(keep,))
        frozen.check(tmp_path / "new", held, given.kept_folders(held))
        rows = frozen.kept(given.kept_folders(held)).to_pylist()
        assert {row["source"] for row in rows} == {"tales-en", "tales-zh"}
        assert {row["set"].split("/")[0] for row in rows} == {"web"}
    other = Heldout(keep=(f"{url}-other",))
    with pytest.raises(ConfigError, match="no such file .*; name a heldout.json, or the URL"):
        frozen.check(tmp_path / "new", other, given.kept_folders(other))


def test_forget(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No object holds the text any more, another machine sees the list, nothing is made again."""
    text = small_corpus.english(3)
    texts = [text[at : at + 30].encode() for at in (0, 90)]
    root = store.folder(url)
    question = f"select count(*), count(*) filter (where text = '{text}') from documents"
    assert answer(root, question) == (84, 2)
    where = ["--where", f"text = '{text}'", "--reason", "asked"]
    assert forget([url, *where]) == 0
    assert answer(root, question) == (84, 2)
    assert forget([url, *where, "--delete"]) == 0
    stored = list((tmp_path / "store").rglob("*.parquet"))
    assert stored
    for path in [*stored, *root.rglob("*.parquet")]:
        for column in pq.read_table(path).columns:
            for buffer in (b for chunk in column.chunks for b in chunk.buffers() if b is not None):
                assert not any(piece in buffer.to_pybytes() for piece in texts), path

    monkeypatch.setenv("ASSAY_CACHE", str(tmp_path / "another machine"))
    assert answer(store.folder(url), question) == (82, 0)
    assert freeze([url, "--output", "without.json"]) == 0
    assert verify(["without.json"]) == 0
    assert [name for name in objects.names(f"{url}/forgotten") if ".receipt" in name]


def answer(root: Path, sql: str) -> tuple[int, ...]:
    with ask(root, sql, macros={}, timeout_seconds=60) as batches:
        return tuple(batches.read_all().to_pylist()[0].values())
