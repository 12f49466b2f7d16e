"""`assay forget` as a user calls it: nowhere found, the same bytes after any kill, runs go on."""

from __future__ import annotations

import gzip
import io
import json
import os
import shutil
import signal
from pathlib import Path

import kills
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import small_corpus
import xxhash
import zstandard
from small_corpus import assay

from mixtures.loader import Loader
from mixtures.plan import make_plan
from pipeline import copy_index, corpus, forgotten
from pipeline.files import read_json, write_json
from pipeline.tables import names_of
from pipeline.to_forget import read_values
from trainer import cli
from trainer import receipt as receipts

SOAK = os.environ.get("ASSAY_SOAK") == "1"
FORKS = kills.FORKS
MIXTURE = """corpora: {web: corpus}
sequence_length: 64
edits: [privacy]
sources: {all: {from: web, max_epochs: 9}}
"""
RUN = """mixture: mixture.yaml
model: {width: 16, depth: 1, heads: 2, kv_heads: 1, ffn: 16}
tokens: 2560
batch_tokens: 256
checkpoint: {every: 512, keep: 9}
threads: 1
"""
EMAILS = " Write to ada.lovelace@harbour-mail.net or call."
GONE = {"en-3": small_corpus.english(3), "zh-7": small_corpus.chinese(7)}
GONE |= {"en-6": small_corpus.english(6), "mail": small_corpus.english(301) + EMAILS}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus of several parts, a mixture and a finished run; tests copy it."""
    folder = tmp_path_factory.mktemp("forget")
    settings = small_corpus.write_inputs(folder, 40)
    mail = {"id": "mail", "text": GONE["mail"], "author": "a"}
    raw = (folder / "en.jsonl").read_bytes()
    (folder / "en.jsonl").unlink()
    data = raw + json.dumps(mail).encode() + b"\n"
    (folder / "en.jsonl.gz").write_bytes(gzip.compress(data, mtime=0))  # cut: shards in the corpus
    text = settings.read_text().replace("files: en.jsonl", "files: en.jsonl.gz")
    settings.write_text(text + "shard_bytes: 20000\nsignals: [language]\nedits: [privacy]\n")
    tokenizer = folder / "tokenizer.json"
    assay("tokenizer", "train", settings, "--vocab-size", "600", "--output", tokenizer)
    assay("prepare", settings, "--workers", "1")
    (folder / "mixture.yaml").write_text(MIXTURE)
    (folder / "run.yaml").write_text(RUN)
    assay("train", folder / "run.yaml")
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    """At one place for all tests: paths stand in files."""
    return Path(shutil.copytree(made, tmp_path / "forget", symlinks=True))


def ids_of(root: Path, *names: str) -> list[str]:
    paths = corpus.part_paths(root, "documents")
    table = pa.concat_tables([pq.read_table(p, columns=["id", "source_id"]) for p in paths])
    by_name = dict(zip(table["source_id"].to_pylist(), table["id"].to_pylist(), strict=True))
    return [by_name[name].hex() for name in names]


def forget(folder: Path, *names: str) -> int:
    root, asked = folder / "corpus", folder / "ids.txt"
    asked.write_text("\n".join(["# asked for", *ids_of(root, *names)]))
    call = ["forget", str(root), "--ids", str(asked), "--reason", "asked"]
    return cli.main([*call, "--runs", str(folder), "--delete"])


def found(root: Path, needles: list[bytes]) -> set[str]:
    """Files in whose bytes, unpacked, one of these stands."""
    return {
        str(path.relative_to(root))
        for path in root.rglob("*")
        if path.is_file() and any(needle in data for data in _unpacked(path) for needle in needles)
    }


def _unpacked(path: Path) -> list[bytes]:
    data = path.read_bytes()
    if path.suffix == ".parquet":
        columns = [c for column in pq.read_table(path).columns for c in column.chunks]
        return [data, *(b.to_pybytes() for c in columns for b in c.buffers() if b is not None)]
    if path.suffix == ".zst":
        return [zstandard.ZstdDecompressor().stream_reader(io.BytesIO(data)).read()]
    return [data]


def needles(root: Path) -> list[bytes]:
    """Pieces of the forgotten texts, as UTF-8, as JSON spells them, and as token ids."""
    texts = [text[at : at + 30] for text in GONE.values() for at in (0, 90, len(text) - 30)]
    tokens = root / "tokens" / corpus.manifest(root)["tokenizer"]["hash"]
    rows = []
    for path in sorted(tokens.glob("part-*.arrow")):
        rows += pa.ipc.open_file(pa.memory_map(str(path))).read_all()["ids"].to_pylist()
    ids = dict(zip(_names(root), rows, strict=True))
    pieces = [np.array(ids[name][20:60], np.uint16).tobytes() for name in GONE]
    return [t.encode() for t in texts] + [json.dumps(t)[1:-1].encode() for t in texts] + pieces


def _names(root: Path) -> list[str]:
    paths = corpus.part_paths(root, "documents")
    return [name for p in paths for name in pq.read_table(p)["source_id"].to_pylist()]


def test_shown_first_and_nothing_is_changed(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = folder / "corpus"
    (folder / "ids.txt").write_text("\n".join([*ids_of(root, "en-3", "en-6"), "0" * 32]))
    arguments = ["forget", str(root), "--ids", str(folder / "ids.txt"), "--reason", "asked"]
    assert cli.main(arguments) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("named: 2, 0.0")
    assert "\nexact copies of these: 1, " in shown
    assert "\nverified near copies of these: 1, " in shown
    assert f"\nin no document: 1 value: {'0' * 32}\n" in shown
    assert shown.endswith("nothing was changed; --delete does it\n")
    assert not (root / "forgotten").exists()


def test_nowhere_to_be_found_and_nothing_is_made_again(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = folder / "corpus"
    pieces, before = needles(root), corpus.manifest(root)["stages"]
    tables = {name.split("/")[0] for name in found(root, pieces)}
    assert {"documents", "tokens", "packed", "cut", "joins"} <= tables
    assert forget(folder, *GONE) == 0
    assert found(root, pieces) == set()
    assert found(root, [b"ada.lovelace"]) == set()

    after = corpus.manifest(root)["stages"]
    totals = after["ingest"]["totals"]
    assert totals["forgotten"] == 6, "four, a copy and a near copy"
    assert totals["kept"] == before["ingest"]["totals"]["kept"] - 6
    assert totals["records"] == totals["kept"] + totals["rejected"] + totals["forgotten"]
    assert after["tokens"]["totals"]["tokens"] < before["tokens"]["totals"]["tokens"]
    assert after["edits/privacy"]["totals"]["edited_documents"] == 0

    told = assay("prepare", folder / "corpus.yaml", "--workers", "1", "--verify")
    assert "nothing to do, all stages stand" in told.stdout
    assert "damaged" not in told.stderr
    assert found(root, pieces) == set()
    capsys.readouterr()
    question = "select count(*) as n from documents"
    assert cli.main(["sql", str(root), question, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"n": totals["kept"]}


def test_a_run_goes_on_over_masked_windows(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Stopped after step 4 of 10, its documents forgotten, then gone on with."""
    run = folder / "runs" / "run"
    record = read_json(run / "run.json")
    write_json(run / "run.json", {**record, "status": "running"})
    lines = (run / "metrics.jsonl").read_text().splitlines(keepends=True)
    (run / "metrics.jsonl").write_text("".join(lines[:4]))
    for path in (run / "checkpoints").glob("step-*"):
        if int(path.name.removeprefix("step-")) > 4:
            shutil.rmtree(path)
    shutil.rmtree(folder / "corpus" / "edited", ignore_errors=True)  # is made again
    plan = make_plan(folder / "mixture.yaml", 2560)
    seen = Loader(plan).documents_at(0, plan.num_windows)
    names = [name for _, window in seen[:4] for name in window]
    (folder / "ids.txt").write_text(names[0])
    arguments = ["forget", str(folder / "corpus"), "--ids", str(folder / "ids.txt")]
    assert cli.main([*arguments, "--reason", "asked", "--runs", str(folder), "--delete"]) == 0

    receipt = read_json(folder / "corpus/forgotten/00000001.receipt.json")
    (told,) = receipt["runs"]
    steps = sorted({at // 4 + 1 for at, (_, window) in enumerate(seen) if names[0] in window})
    ranges = [step for first, last in told["planned_steps"] for step in range(first, last + 1)]
    assert (ranges, told["documents"], told["status"]) == (steps, [names[0]], "running")
    assert told["steps"][0][0] == 1
    assert told["checkpoints"] == ["step-00000002", "step-00000004"]
    assert told["plan"] == plan.fingerprint == record["fingerprints"]["plan"]
    (windows,) = receipt["windows"]
    assert windows["selection"] == plan.sources[0].selection
    assert "steps that saw them: 1" in (folder / "corpus/forgotten/00000001.receipt.md").read_text()

    capsys.readouterr()
    assert cli.main(["train", str(folder / "run.yaml")]) == 0
    assert "goes on from step-00000004" in capsys.readouterr().err
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == list(range(1, 11))
    assert rows[:4] == [json.loads(line) for line in lines[:4]]
    again = make_plan(folder / "mixture.yaml", 2560)
    assert Loader(again).documents_at(0, again.num_windows) == seen


def state(root: Path) -> dict[str, str]:
    """Hash of every file in which no time stands."""
    found = {}
    for path in sorted(p for p in root.rglob("*") if p.is_file()):
        name = str(path.relative_to(root))
        if name.startswith("forgotten/") and path.suffix in (".json", ".md"):
            continue
        if name not in (".lock", "stats/log.jsonl", "packed/.lock"):
            found[name] = xxhash.xxh3_64_hexdigest(path.read_bytes())
    return found


def _killed(folder: Path, moment: int, told: Path) -> None:
    kills.die_at_rename(moment, told)
    forget(folder, *GONE)


@pytest.mark.parametrize("moment", range(1, 400, 3) if SOAK else (5, 8, 40, 73, 119))
def test_kill_and_call_again(made: Path, tmp_path: Path, moment: int) -> None:
    whole = Path(shutil.copytree(made, tmp_path / "whole" / "forget", symlinks=True))
    assert forget(whole, *GONE) == 0
    folder = Path(shutil.copytree(made, tmp_path / "killed" / "forget", symlinks=True))
    process = FORKS.Process(target=_killed, args=(folder, moment, tmp_path / "told"))
    process.start()
    process.join()
    assert process.exitcode in (0, -signal.SIGKILL)
    if not forgotten.listed(folder / "corpus"):
        assert forget(folder, *GONE) == 0  # killed before anything was listed
    else:
        assert cli.main(["forget", str(folder / "corpus"), "--runs", str(folder), "--delete"]) == 0
    assert state(folder / "corpus") == state(whole / "corpus")
    receipts = [read_json(f / "corpus/forgotten/00000001.receipt.json") for f in (folder, whole)]
    for receipt in receipts:
        for run in receipt["runs"]:
            del run["run"]
        for key in ("asked", "done", "seal", "looked_for_runs_in"):
            del receipt[key]
    assert receipts[0] == receipts[1]


def test_indexes_that_know_the_texts_are_named(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    index, damaged = folder / "seen", folder / "seen-hurt"
    assert cli.main(["dedup", "index", str(folder / "corpus"), "--out", str(index)]) == 0
    shutil.copytree(index, damaged)
    (damaged / "index.json").write_text("{}")
    before = {path: path.read_bytes() for path in index.rglob("*.*")}
    stands = pq.read_table(index / "documents")["content_hash"].to_pylist()
    assert forget(folder, *GONE) == 0
    receipt = read_json(folder / "corpus/forgotten/00000001.receipt.json")
    gone = {row["content_hash"] for row in receipt["documents"]}
    texts = len(gone & {name.hex() for name in stands if name is not None})
    assert 2 <= texts <= len(gone)  # held-out ones are not in it
    assert receipt["indexes"] == [
        {"index": str(index), "texts": texts},
        {"index": str(damaged), "texts": None},
    ]
    told = (folder / "corpus/forgotten/00000001.receipt.md").read_text()
    assert (
        f"\n## Indexes\n\n{receipts.KNOWN}\n\n- {index}: {texts} texts\n- {damaged}: cannot" in told
    )
    assert {path: path.read_bytes() for path in index.rglob("*.*")} == before
    shutil.rmtree(index)
    assert cli.main(["dedup", "index", str(folder / "corpus"), "--out", str(index)]) == 0
    known = names_of(forgotten.contents(forgotten.listed(folder / "corpus")))
    assert not copy_index.have([copy_index.read(index)], "exact", known).any()
    capsys.readouterr()
    assert cli.main(["ls", str(folder)]) == 0
    said = capsys.readouterr().out
    assert f"index {index}" in said
    assert f"documents of {folder / 'corpus'}" in said
    assert "damaged: make it again with `assay dedup index`" in said


def test_later_ingest_is_bound(folder: Path) -> None:
    """A copy and a near copy in a new file, and a new tokenizer over all: none comes back."""
    root = folder / "corpus"
    pieces = needles(root)
    assert forget(folder, *GONE) == 0
    near = small_corpus.english(3).replace("The amber", "An amber") + " That was all."
    texts = [GONE["zh-7"], near, small_corpus.english(950)]
    lines = [json.dumps({"id": f"new-{n}", "text": text}) for n, text in enumerate(texts)]
    (folder / "zh-2.jsonl").write_text("\n".join(lines) + "\n")
    settings = folder / "corpus.yaml"
    settings.write_text(settings.read_text().replace("files: zh.jsonl", 'files: "zh*.jsonl"'))
    told = assay("prepare", settings, "--workers", "1").stdout
    assert "made ingest 1, " in told
    totals = corpus.manifest(root)["stages"]["ingest"]["totals"]
    assert totals["forgotten"] == 8
    assert totals["records"] == totals["kept"] + totals["rejected"] + totals["forgotten"]
    assert found(root, pieces) == set()

    settings.write_text(settings.read_text().replace("shard_bytes: 20000", "shard_bytes: 30000"))
    assay("prepare", settings, "--workers", "1")
    assert corpus.manifest(root)["stages"]["ingest"]["totals"]["forgotten"] == 8
    assert found(root, pieces) == set(), "also not in shards that were cut again"


def test_everything_of_a_source_and_everything(folder: Path) -> None:
    root = folder / "corpus"
    where = ["--reason", "x", "--delete", "--where"]
    assert cli.main(["forget", str(root), *where, "source = 'tales-zh'"]) == 0
    told = assay("report", root).stdout
    assert "its documents were all forgotten" in told
    assert "are its files empty" not in told
    assert cli.main(["forget", str(root), *where, "true"]) == 0
    assay("prepare", folder / "corpus.yaml", "--workers", "1")
    assert assay("report", root).stdout.count("its documents were all forgotten") == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--ids", "bad.txt", "--reason", "x"], "bad.txt, line 2: 'zz' is no id; expected 32 hex"),
        (["--where", "no_such = 1", "--reason", "x"], '"no_such" not found'),
        (["--where", "1; select 2", "--reason", "x"], "one expression"),
        (["--where", "num_chars", "--reason", "x"], "--where is BIGINT, neither true nor false"),
        (["--where", "source", "--reason", "x"], "--where is VARCHAR, neither true nor false"),
        (["--ids", "latin.txt", "--reason", "x"], "latin.txt, line 2: not utf-8"),
    ],
)
def test_mistakes_are_named(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    Path("bad.txt").write_text(f"{'a' * 32}\nzz\n")
    Path("latin.txt").write_bytes(b"# list\n\xe9\n")
    assert cli.main(["forget", str(made / "corpus"), *arguments]) == 2
    assert message in capsys.readouterr().err


def test_by_domain_address_and_expression(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = folder / "corpus"
    assert cli.main(["forget", str(root), "--where", "source_id = 'zh-9'", "--reason", "x"]) == 0
    assert capsys.readouterr().out.startswith("named: 1, ")
    (folder / "urls.txt").write_text("https://example.org/none\n")
    assert cli.main(["forget", str(root), "--urls", str(folder / "urls.txt"), "--reason", "x"]) == 0
    assert "no document is meant" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        cli.main(["forget", str(root), "--urls", str(folder / "urls.txt")])
    assert "give a --reason" in capsys.readouterr().err
    for nothing in (["--urls", str(folder / "urls.txt")], ["--where", "null"]):
        assert cli.main(["forget", str(root), *nothing, "--reason", "x", "--delete"]) == 1
        assert "left to be taken out" not in capsys.readouterr().out
    with pytest.raises(SystemExit):
        cli.main(["forget", str(root), "--where", "", "--reason", "x", "--delete"])
    assert "--where is empty" in capsys.readouterr().err


def test_files_of_values(tmp_path: Path) -> None:
    path, number = tmp_path / "values.txt", "A" * 32
    for data in (f"\ufeff{number}\r\n# no\n".encode(), f"{number}\n\n".encode("utf-16")):
        path.write_bytes(data)
        assert read_values(path, "ids") == [number.lower()]
    path.write_text(
        "Secret.Example.ORG.\nhttps://near.example.net/x\nwww.copy.example.net\nlocal\n"
    )
    names = ["secret.example.org", "near.example.net", "copy.example.net", "local"]
    assert read_values(path, "domains") == names
