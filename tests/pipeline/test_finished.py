"""Readers see the last finished state of a corpus, whatever a run does to it, and when it dies."""

from __future__ import annotations

import errno
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import kills
import pytest
import small_corpus

from pipeline import finished
from pipeline.digests import table_digests
from pipeline.finished import ChangedError, reading
from pipeline.sql import ask

COUNT = "select count(*) from documents"
KILLS = 100 if os.environ.get("ASSAY_SOAK") == "1" else 6


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "web"
    for name in ("corpus.json", "pairs/part-00000.parquet", "joins/keys/part-00000.arrow"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("old")
    return folder


def replace(path: Path, text: str) -> None:
    path.with_suffix(".new").write_text(text)
    path.with_suffix(".new").replace(path)


def test_what_a_run_replaces_stays_for_readers_until_it_ends(root: Path) -> None:
    finished.set_aside(root)
    replace(root / "pairs/part-00000.parquet", "new")
    with reading(root) as folder:
        assert (folder.name, finished.home(folder)) == ("web", root)
        assert (folder / "pairs/part-00000.parquet").read_text() == "old"
        assert not (folder / "joins").exists(), "no reader reads it"
    finished.set_aside(root)  # the next call, after a kill
    assert (finished.standing(root) / "pairs/part-00000.parquet").read_text() == "old"
    replace(root / "corpus.json", "new")
    assert finished.standing(root) == root, "from here on the new one counts"
    finished.drop(root)
    assert sorted(p.name for p in root.iterdir()) == ["corpus.json", "joins", "pairs"]


def test_a_kill_while_it_is_set_aside_costs_nothing(root: Path) -> None:
    (root / ".finished.new/web").mkdir(parents=True)  # died among the links
    assert finished.standing(root) == root
    (root / ".finished/web").mkdir(parents=True)  # or before corpus.json went
    (root / ".finished/web/corpus.json").write_text("old")
    assert finished.standing(root) == root
    finished.set_aside(root)
    assert (finished.standing(root) / "pairs/part-00000.parquet").read_text() == "old"


def test_what_was_read_of_two_states_is_refused(root: Path) -> None:
    message = "web was changed while it was read .* call again"
    with pytest.raises(ChangedError, match=message), reading(root):
        finished.set_aside(root)
    with pytest.raises(ChangedError, match=message), reading(root) as folder:
        replace(root / "corpus.json", "new")
        finished.drop(root)
        (folder / "pairs/part-00000.parquet").read_text()  # gone: told as what it is
    with pytest.raises(FileNotFoundError), reading(root) as folder:
        (folder / "nothing").read_text()


def test_what_is_read_while_the_links_go_is_refused(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    finished.set_aside(root)
    monkeypatch.setattr(finished.shutil, "rmtree", lambda *_, **__: None)  # it has only begun
    with pytest.raises(ChangedError, match="web was changed while it was read"), reading(root):
        replace(root / "corpus.json", "new")
        finished.drop(root)


def test_a_run_that_begins_or_ends_between_two_looks_is_told_as_that(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Microseconds lie between the choice of the folder and the look at its state."""
    chosen = finished.standing

    def overtaken(change: Callable[[], None]) -> Callable[[Path], Path]:
        def standing(corpus: Path) -> Path:
            folder = chosen(corpus)
            monkeypatch.setattr(finished, "standing", chosen)
            change()
            return folder

        return standing

    def ends() -> None:
        replace(root / "corpus.json", "new")
        finished.drop(root)

    for change in (lambda: finished.set_aside(root), ends):
        monkeypatch.setattr(finished, "standing", overtaken(change))
        with pytest.raises(ChangedError, match=r"web was changed .*; call again"):
            with reading(root):
                raise AssertionError("nothing is read")


def test_without_hard_links_it_is_unfinished_until_the_run_ends(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EPERM, "no links here")

    monkeypatch.setattr(finished.os, "link", refuse)
    finished.set_aside(root)
    assert finished.standing(root) == root
    assert sorted(p.name for p in root.iterdir()) == ["joins", "pairs"]


def test_kills_while_a_corpus_grows_leave_it_readable(tmp_path: Path) -> None:
    """A new file, and other columns of an old one: documents are replaced, numbers of rows move."""
    settings = small_corpus.write_inputs(tmp_path, documents=30)
    tokenizer = ["--vocab-size", "600", "--output", str(tmp_path / "tokenizer.json")]
    small_corpus.assay("tokenizer", "train", settings, *tokenizer)
    root, told = tmp_path / "corpus", tmp_path / "told"
    told.touch()
    assert kills.prepared_or_killed(settings, 0, told)
    old = table_digests(root)
    shutil.copytree(root, tmp_path / "kept")
    shutil.copy(tmp_path / "en.jsonl", tmp_path / "en-2.jsonl")
    changed = settings.read_text().replace("en.jsonl", "en*.jsonl").replace("[author]", "[id]", 1)
    settings.write_text(changed)
    assert kills.prepared_or_killed(settings, 0, told)
    new = table_digests(root)
    moments = random.Random(11)
    runs = 0
    while told.read_text().count("\n") < KILLS or runs == 0:
        shutil.rmtree(root)
        shutil.copytree(tmp_path / "kept", root)
        while not kills.prepared_or_killed(settings, moments.randrange(1, 120), told):
            with reading(root) as folder:
                seen = table_digests(folder)
                with ask(folder, COUNT, macros={}, timeout_seconds=60) as rows:
                    counted = rows.read_all().column(0).to_pylist()
            assert seen in (old, new)
            assert counted == [seen["documents"]["rows"]]
        assert table_digests(root) == new
        assert not list(root.glob(".finished*"))
        runs += 1
    print(f"{told.read_text().count(chr(10))} kills, {runs} whole runs")
