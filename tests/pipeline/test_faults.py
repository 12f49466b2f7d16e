"""What goes wrong outside of our code: a clear message, nothing corrupt; the next call goes on."""

from __future__ import annotations

import errno
import gzip
import itertools
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kills
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import small_corpus

from pipeline import corpus, cutting, prepare, runners
from pipeline.card import card
from pipeline.config import ConfigError
from pipeline.corpus import CorpusError
from pipeline.disk import DiskError
from pipeline.files import file_hash, read_json
from pipeline.readers import Bad, Piece, Record, jsonl
from pipeline.readers.formats import READERS, Reader
from pipeline.report import funnel, summary
from pipeline.settings import load_corpus
from pipeline.sql import ask
from pipeline.transforms.ingest import UnreadableError


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Inputs and a tokenizer; tests copy them."""
    folder = tmp_path_factory.mktemp("faults")
    path = small_corpus.write_inputs(folder, documents=20)
    tokenizer = ["--vocab-size", "400", "--output", str(folder / "tokenizer.json")]
    small_corpus.assay("tokenizer", "train", path, *tokenizer)
    return folder


@pytest.fixture
def settings(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """corpus.yaml of 23 English documents in en.jsonl, 23 Chinese ones in zh.jsonl."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.setattr(prepare, "_run", kills.run_stages)
    return tmp_path / "corpus.yaml"


def run(settings: Path, **more: object) -> dict[str, Any]:
    checked = load_corpus(settings).model_copy(update=more)
    return prepare.prepare(checked, runners.Chosen("inline", 1)).manifest


def documents(settings: Path) -> Counter[str]:
    paths = corpus.part_paths(settings.parent / "corpus", "documents")
    return Counter(row["file"] for p in paths for row in pq.read_table(p).to_pylist())


def failing_after(records: int, name: str) -> Reader:
    """The JSONL reader, which crashes in one file."""

    def read(piece: Piece, source: Any, extractor: str) -> Iterator[Record | Bad]:
        for n, record in enumerate(jsonl.read(piece, source, extractor)):
            if piece.file == name and n == records:
                raise KeyError("a decoder")
            yield record

    return Reader(READERS["jsonl"].suffixes, READERS["jsonl"].cut, read)


def test_a_file_that_fails_stops_the_run_and_is_named(
    settings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(READERS, "jsonl", failing_after(3, "zh.jsonl"))
    with pytest.raises(UnreadableError, match=r"zh.jsonl cannot be read: KeyError.*max_bad_files"):
        run(settings)


def test_max_bad_files_lets_the_others_through_and_the_next_call_mends_it(
    settings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both files stand in one shard: the bad one costs its own records alone."""
    text = settings.read_text().replace("source: tales-zh, files: zh", "source: tales-zh, files: x")
    settings.write_text(
        text.replace("files: en.jsonl", "files: '*.jsonl'").replace(
            "  - {source: tales-zh, files: x.jsonl, kind: book, keep: [author]}\n", ""
        )
    )
    wanted_manifest = run(settings)
    wanted = documents(settings)
    assert wanted == {"en.jsonl": 23, "zh.jsonl": 21}
    assert wanted_manifest["bad_files"] == []
    shutil.rmtree(settings.parent / "corpus")
    with monkeypatch.context() as patch:
        patch.setitem(READERS, "jsonl", failing_after(3, "zh.jsonl"))
        found = run(settings, max_bad_files=1)
        assert found["bad_files"] == [
            {"source": "tales-en", "file": "zh.jsonl", "reason": "KeyError: 'a decoder'"}
        ]
        assert documents(settings) == {"en.jsonl": 23, "zh.jsonl": 3}
        assert found["stages"]["ingest"]["totals"]["reasons"]["bad_file"] == 1
    found = run(settings, max_bad_files=1)
    assert found["bad_files"] == []
    assert documents(settings) == wanted
    totals, before = found["stages"]["tokens"]["totals"], wanted_manifest["stages"]["tokens"]
    assert totals == before["totals"], "what follows from the part was made again"


def test_more_bad_files_than_allowed_are_named(
    settings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unreadable from the start (a permission, a disk): before any work."""
    real = cutting.cut

    def cut(path: str, file: str, size: int) -> list[Piece] | None:
        if file == "zh.jsonl":
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return real(path, file, size)

    monkeypatch.setattr(cutting, "cut", cut)
    found = run(settings, max_bad_files=1)
    assert [bad["file"] for bad in found["bad_files"]] == ["zh.jsonl"]
    assert documents(settings) == {"en.jsonl": 23}
    monkeypatch.setattr(cutting, "cut", real)
    assert run(settings, max_bad_files=1)["bad_files"] == []
    assert documents(settings) == {"en.jsonl": 23, "zh.jsonl": 21}
    monkeypatch.setitem(READERS, "jsonl", failing_after(0, "zh.jsonl"))
    monkeypatch.setattr(cutting, "cut", lambda *_: cut("en", "zh.jsonl", 0))
    shutil.rmtree(settings.parent / "corpus")
    message = r"2 input files failed, `max_bad_files: 1` allows fewer:\n.*en.jsonl: Permission"
    with pytest.raises(ConfigError, match=message):
        run(settings, max_bad_files=1)


def test_a_broken_intermediate_shard_is_found_when_a_stage_reads_it(settings: Path) -> None:
    run(settings)
    root = settings.parent / "corpus"
    victim = root / "documents" / "part-00001.parquet"
    whole = victim.read_bytes()
    victim.write_bytes(whole[:300] + bytes([whole[300] ^ 1]) + whole[301:])
    shutil.rmtree(root / "stats" / "signals" / "gopher")
    with pytest.raises(CorpusError, match=r"part-00001.parquet is damaged: not the bytes .* again"):
        run(settings)
    assert run(settings)["finished"]
    assert victim.read_bytes() == whole


@pytest.mark.parametrize("name", ["heldout.json", "heldout/documents.parquet", "inputs.json"])
def test_what_cannot_be_made_again_is_named_when_it_is_damaged(settings: Path, name: str) -> None:
    run(settings)
    victim = settings.parent / "corpus" / name
    whole = victim.read_bytes()
    victim.write_bytes(whole[:20] + bytes(100) + whole[120:])
    with pytest.raises(ConfigError, match=f"{name} is damaged .*; put it back, or .*delete"):
        run(settings)
    victim.write_bytes(whole)
    assert run(settings)["finished"]


def test_texts_that_a_killed_attempt_left_beside_the_held_out_ones_are_no_damage(
    settings: Path,
) -> None:
    run(settings)
    documents = settings.parent / "corpus" / "heldout" / "documents.parquet"
    whole = documents.read_bytes()
    rows = pq.read_table(documents)
    more = rows.slice(0, 1).set_column(0, "set", pa.array(["of the killed attempt"]))
    pq.write_table(pa.concat_tables([rows, more.cast(rows.schema)]), documents)
    assert run(settings)["finished"]
    assert documents.read_bytes() == whole


@pytest.mark.parametrize("now", ["", " longer", "\\n"])
def test_an_input_that_changes_while_it_is_read_is_found(
    settings: Path, monkeypatch: pytest.MonkeyPatch, now: str
) -> None:
    """Truncated, grown, or other bytes of the same size; put back, it is read again."""
    path = settings.parent / "zh.jsonl"
    whole = path.read_bytes()
    changed = whole.replace(b"zh-1", b"zh-x") if now == "\\n" else whole + now.encode()
    changed = changed if now else whole[:3_000]

    def stages(*job: Any) -> None:
        path.write_bytes(changed)
        kills.run_stages(*job)

    with monkeypatch.context() as patch:
        patch.setattr(prepare, "_run", stages)
        message = (
            r"changed while they were read:\n  .*zh.jsonl \(source tales-zh\): .*\n.*--refresh"
        )
        with pytest.raises(ConfigError, match=message):
            run(settings)
    assert not (settings.parent / "corpus" / "corpus.json").exists()
    with pytest.raises(ConfigError, match="inputs changed since they were prepared"):
        run(settings)
    path.write_bytes(whole)
    assert run(settings)["finished"]
    assert documents(settings) == {"en.jsonl": 23, "zh.jsonl": 21}


def test_an_input_that_vanishes_while_others_are_read_is_named(
    settings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = settings.parent / "zh.jsonl"
    whole = path.read_bytes()

    def stages(*job: Any) -> None:
        path.unlink()
        kills.run_stages(*job)

    with monkeypatch.context() as patch:
        patch.setattr(prepare, "_run", stages)
        with pytest.raises(UnreadableError, match=r"zh.jsonl cannot be read: FileNotFoundError"):
            run(settings)
    path.write_bytes(whole)
    assert run(settings)["finished"]
    assert documents(settings) == {"en.jsonl": 23, "zh.jsonl": 21}


def test_a_clock_that_jumps_back_changes_nothing(
    settings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(settings)
    wanted = {
        path: file_hash(path)
        for table in ("documents", "tokens", "pairs", "joins")
        for path in (settings.parent / "corpus" / table).rglob("part-*")
    }
    shutil.rmtree(settings.parent / "corpus")
    clock = itertools.count(2_000_000_000, -3_600)
    monkeypatch.setattr(time, "time", lambda: float(next(clock)))
    assert run(settings)["finished"]
    assert wanted == {path: file_hash(path) for path in wanted}
    assert run(settings)["finished"]


def test_links_that_lead_nowhere_or_in_a_circle(settings: Path) -> None:
    """A dead link is a file that cannot be read; a circle gives no file twice."""
    folder = settings.parent
    (folder / "in").mkdir()
    (folder / "en.jsonl").rename(folder / "in" / "en.jsonl")
    (folder / "in" / "again").symlink_to(".", target_is_directory=True)
    text = settings.read_text("utf-8").replace("files: en.jsonl", 'files: "in/**/*.jsonl"')
    settings.write_text(text, "utf-8")
    run(settings)
    assert documents(settings) == {"en.jsonl": 23, "zh.jsonl": 21}
    (folder / "in" / "dead.jsonl").symlink_to("gone.jsonl")
    (folder / "in" / "self.jsonl").symlink_to("self.jsonl")
    message = r"dead.jsonl \(source tales-en\) cannot be read: No such file .*max_bad_files"
    with pytest.raises(ConfigError, match=message):
        run(settings)
    found = run(settings, max_bad_files=2)
    assert [bad["file"] for bad in found["bad_files"]] == ["dead.jsonl", "self.jsonl"]
    assert documents(settings) == {"en.jsonl": 23, "zh.jsonl": 21}


def test_a_file_where_the_corpus_is_to_be(settings: Path) -> None:
    (settings.parent / "corpus").write_text("a file")
    with pytest.raises(CorpusError, match=r"corpus: a file stands .*; name another `output`"):
        run(settings)


def test_files_without_a_byte_are_told(settings: Path, capsys: pytest.CaptureFixture[str]) -> None:
    suffixes = [suffix for reader in READERS.values() for suffix in reader.suffixes]
    for suffix in suffixes:
        (settings.parent / f"empty{suffix}").touch()
    text = settings.read_text("utf-8").replace(
        "inputs:\n", 'inputs:\n  - {source: empty, files: "empty.*", decode: tokenizer.json}\n'
    )
    settings.write_text(text, "utf-8")
    assert run(settings)["finished"]
    assert documents(settings) == {"en.jsonl": 23, "zh.jsonl": 21}
    told = f"{len(suffixes)} input files without a byte (a download that failed?): "
    assert told in capsys.readouterr().err


def test_a_source_without_a_document_is_named_in_summary_and_card(settings: Path) -> None:
    (settings.parent / "nothing.jsonl").touch()
    text = settings.read_text("utf-8").replace("keep: [author]}\ntok", "text: body}\ntok")
    text = text.replace("inputs:\n", "inputs:\n  - {source: none, files: nothing.jsonl}\n")
    settings.write_text(text, "utf-8")
    assert run(settings)["finished"]
    root = settings.parent / "corpus"
    silent = {r["step"]: r["note"] for r in funnel(root) if r["step"].startswith("of source")}
    assert silent == {
        "of source none": "no record: are its files empty?",
        "of source tales-zh": "no document of 23 records, rejected: missing_text, no field 'body'; "
        "the record has 'id', 'text', 'author'",
    }
    for step, note in silent.items():
        assert f"  {step:<28}{0:>12}{'':>14}  {note}" in summary(root).splitlines()
        assert f"| {step} | 0 |  | {note} |" in card(root)


NAMES = (
    "two words.jsonl",
    "中文.jsonl",
    "100%25.jsonl",
    "😀.jsonl",
    "two\nlines.jsonl",
    "[a]*.jsonl",
)


@pytest.mark.parametrize("name", NAMES)
def test_names_that_mean_something_elsewhere(settings: Path, name: str) -> None:
    """Also of the folder of the corpus, which SQL opens."""
    folder = settings.parent / name.replace(".jsonl", "")
    folder.mkdir()
    for file in ("tokenizer.json", "zh.jsonl"):
        shutil.copy(settings.parent / file, folder)
    (settings.parent / "en.jsonl").rename(folder / name)
    text = settings.read_text("utf-8").replace("en.jsonl", json.dumps(name, ensure_ascii=False))
    (folder / "corpus.yaml").write_text(text, "utf-8")
    run(folder / "corpus.yaml")
    assert documents(folder / "corpus.yaml") == {name: 23, "zh.jsonl": 21}
    question = "select file, count(*) as n from documents group by file order by n"
    with ask(folder / "corpus", question, macros={}, timeout_seconds=60) as batches:
        assert [row["file"] for row in batches.read_all().to_pylist()] == ["zh.jsonl", name]


def test_a_disk_that_fills_up_in_the_run(settings: Path, tmp_path: Path) -> None:
    """A process whose files may not grow beyond 30 kB, as on a disk with that much left."""
    told = tmp_path / "told"
    told.touch()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
        try:
            run(settings)
        except DiskError as error:
            told.write_text(str(error))
        os._exit(0)
    os.waitpid(child, 0)
    refused = r"corpus(/[\w-]+)*: no file may grow so large there .* call again: what was finished"
    assert re.search(refused, told.read_text())
    assert not (settings.parent / "corpus" / "corpus.json").exists()
    assert run(settings)["finished"]
    assert read_json(settings.parent / "corpus" / "corpus.json")["finished"]
    assert (soft, hard) == resource.getrlimit(resource.RLIMIT_FSIZE)


def test_the_command_says_in_one_line_what_the_disk_refuses(settings: Path) -> None:
    """Two workers that fail at once: no trace of either."""
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    done = subprocess.run(
        [sys.executable, "-m", "trainer.cli", "prepare", str(settings), "--workers", "2"],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (15_000, limit)),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2, done.stderr
    (line,) = [line for line in done.stderr.splitlines() if "failed" in line or "Trace" in line]
    root = settings.parent / "corpus"
    assert line.startswith(f"assay prepare: {root}: step 'Ingest' failed: {root}/")
    assert "choose another disk, and call again: what was finished is kept" in line


def test_a_stream_that_breaks_is_named_at_the_end(settings: Path) -> None:
    plain = settings.parent / "en.jsonl"
    packed = bytearray(gzip.compress(plain.read_bytes(), mtime=0))
    packed[len(packed) // 2] ^= 1
    plain.unlink()
    (settings.parent / "en.jsonl.gz").write_bytes(packed)
    text = settings.read_text("utf-8").replace("en.jsonl", "en.jsonl.gz")
    settings.write_text(text, "utf-8")
    (broken,) = run(settings)["broken_files"]
    assert (broken["source"], broken["file"]) == ("tales-en", "en.jsonl.gz")
    assert broken["detail"].startswith("corrupt gzip data: ")
