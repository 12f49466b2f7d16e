"""The whole pipeline: the same bytes whatever the workers, kills and shards; nothing lost."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import small_corpus
import xxhash
from small_corpus import assay

from pipeline import corpus
from pipeline.files import read_json

SOAK = os.environ.get("ASSAY_SOAK") == "1"
KILLS = 100 if SOAK else 3


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus made by one worker; tests read it and copy it, never write to it."""
    return small_corpus.prepare(tmp_path_factory.mktemp("prepared"))


def copy_inputs(prepared: Path, folder: Path) -> Path:
    """The inputs of `prepared`, without its corpus; returns corpus.yaml."""
    shutil.copytree(
        prepared.parent, folder, ignore=shutil.ignore_patterns("corpus"), dirs_exist_ok=True
    )
    return folder / "corpus.yaml"


def data_hashes(root: Path) -> dict[str, str]:
    """Hash of every data file of a corpus; stats hold timings, inputs.json holds file times."""
    tables = ("documents", "signals", "tokens", "rejects", "pairs", "clusters", "joins/keys")
    tables += ("joins/sketches", "heldout")
    files = [p for table in tables for p in (root / table).rglob("*") if p.is_file()]
    files = [p for p in files if p.name != "engine.json"]  # names the sources of its sample
    files.append(root / "heldout.json")
    return {
        str(p.relative_to(root)): xxhash.xxh3_64_hexdigest(p.read_bytes()) for p in sorted(files)
    }


def rows(root: Path, table: str) -> list[dict[str, Any]]:
    tables = [pq.read_table(path) for path in corpus.part_paths(root, table)]
    return pa.concat_tables(tables).to_pylist() if tables else []


def digests(root: Path) -> dict[str, str]:
    """Digest of each table over its rows ordered by id, which no shard size may change."""
    documents = rows(root, "documents")
    ids = [row["id"] for row in documents]
    found = {}
    tokenizer = corpus.manifest(root)["tokenizer"]["hash"]
    aligned = [
        "signals/normalize",
        "signals/language",
        "signals/gopher",
        "signals/c4",
        "signals/fineweb",
    ]
    for table in [*aligned, f"tokens/{tokenizer}/counts"]:
        values = rows(root, table)
        ordered = sorted(zip(ids, values, strict=True), key=lambda pair: pair[0])
        found[table] = repr(ordered)
    tokens: list[Any] = []
    for path in corpus.part_paths(root, f"tokens/{tokenizer}"):
        tokens += pa.ipc.open_file(pa.memory_map(str(path))).read_all()["ids"].to_pylist()
    found["tokens"] = repr(sorted(zip(ids, tokens, strict=True)))
    found["documents"] = repr(sorted(documents, key=lambda row: row["id"]))
    for table in ("pairs", "clusters", "rejects", "heldout/matches"):
        found[table] = repr(sorted(map(repr, rows(root, table))))
    found["heldout"] = repr(pq.read_table(root / "heldout" / "documents.parquet").to_pylist())
    return {table: xxhash.xxh3_64_hexdigest(text.encode()) for table, text in found.items()}


def test_every_record_is_kept_or_rejected_with_a_reason(prepared: Path) -> None:
    ingest = corpus.manifest(prepared)["stages"]["ingest"]["totals"]
    assert ingest["records"] == 247
    assert ingest["kept"] == 244
    assert ingest["reasons"] == {"bad_utf8": 1, "empty": 1, "null_text": 1}
    rejected = {row["reason"]: row for row in rows(prepared, "rejects")}
    bad = rejected["bad_utf8"]
    raw = (prepared.parent / "en.jsonl").read_bytes()
    assert raw[bad["offset"] :].startswith(b'{"text": "\xff"}')
    assert (bad["source"], bad["file"], bad["stage"]) == ("tales-en", "en.jsonl", "ingest")


def test_documents_carry_identity_language_and_meta(prepared: Path) -> None:
    documents = rows(prepared, "documents")
    first = documents[0]
    assert first["text"] == small_corpus.english(0)
    assert (first["source_id"], first["source"], first["offset"]) == ("en-0", "tales-en", 0)
    assert dict(first["meta"]) == {"author": "a0"}
    assert first["num_bytes"] == len(first["text"].encode())
    assert len({row["id"] for row in documents}) == 244
    copies = [c for c in Counter(row["content_hash"] for row in documents).values() if c > 1]
    assert copies == [2, 2]
    languages = Counter(row["lang"] for row in rows(prepared, "signals/language"))
    assert languages == {"en": 123, "zh": 121}


def test_a_literal_end_token_is_ordinary_text_and_counted(prepared: Path) -> None:
    found = corpus.manifest(prepared)
    assert found["stages"]["tokens"]["totals"]["special_literals"] == 1
    tokenizer = found["tokenizer"]
    ends = total = 0
    for path in corpus.part_paths(prepared, f"tokens/{tokenizer['hash']}"):
        for ids in pa.ipc.open_file(pa.memory_map(str(path))).read_all()["ids"].to_pylist():
            ends += ids.count(tokenizer["eos_id"])
            total += 1
            assert ids[-1] == tokenizer["eos_id"]
    assert ends == total == 244


def test_near_copies_are_verified_pairs(prepared: Path) -> None:
    by_id = {row["source_id"]: row["content_hash"] for row in rows(prepared, "documents")}
    pairs = {(row["a"], row["b"]): row["jaccard"] for row in rows(prepared, "pairs")}
    near = tuple(sorted((by_id["en-6"], by_id["near"])))
    assert 0.8 <= pairs[near] < 1
    assert all(a < b and jaccard >= 0.8 for (a, b), jaccard in pairs.items())


def test_held_out_documents_match_themselves(prepared: Path) -> None:
    held = pq.read_table(prepared / "heldout" / "documents.parquet").to_pylist()
    sets = Counter(row["set"] for row in held)
    assert sets == {"corpus/en/tales-en": 6, "corpus/zh/tales-zh": 4}
    matched = {row["content_hash"] for row in rows(prepared, "heldout/matches")}
    assert {row["content_hash"] for row in held} <= matched


def test_two_workers_write_the_same_bytes(prepared: Path, tmp_path: Path) -> None:
    settings = copy_inputs(prepared, tmp_path)
    assay("prepare", settings, "--workers", "2")
    assert data_hashes(tmp_path / "corpus") == data_hashes(prepared)


def test_a_finished_corpus_is_left_alone(prepared: Path) -> None:
    before = {p: p.stat().st_mtime_ns for p in prepared.rglob("*") if p.is_file()}
    done = assay("prepare", prepared.parent / "corpus.yaml")
    assert "nothing to do, all stages stand" in done.stdout
    after = {p: p.stat().st_mtime_ns for p in prepared.rglob("*") if p.is_file()}
    before.pop(prepared / ".lock")
    after.pop(prepared / ".lock")
    assert after == before


def test_another_shard_size_gives_the_same_tables(prepared: Path, tmp_path: Path) -> None:
    settings = copy_inputs(prepared, tmp_path)
    settings.write_text(settings.read_text() + "shard_bytes: 20000\n")
    assay("prepare", settings, "--workers", "1")
    assert len(corpus.part_paths(tmp_path / "corpus", "documents")) > 5
    assert digests(tmp_path / "corpus") == digests(prepared)


@pytest.mark.slow
def test_kills_at_random_moments_end_with_the_same_bytes(prepared: Path, tmp_path: Path) -> None:
    settings = copy_inputs(prepared, tmp_path)
    moments = random.Random(17)
    command = [sys.executable, "-m", "trainer.cli", "prepare", str(settings), "--workers", "2"]
    for _ in range(KILLS):
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        time.sleep(moments.uniform(2.0, 9.0))
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assay(*command[3:])
    assert data_hashes(tmp_path / "corpus") == data_hashes(prepared)
    assert not list((tmp_path / "corpus").rglob("*.tmp"))


def test_a_new_file_touches_only_its_shards_and_the_joins(prepared: Path, tmp_path: Path) -> None:
    settings = copy_inputs(prepared, tmp_path)
    settings.write_text(settings.read_text().replace("en.jsonl", "en*.jsonl"))
    assay("prepare", settings, "--workers", "1")
    root = tmp_path / "corpus"
    before = data_hashes(root)
    (tmp_path / "en-2.jsonl").write_text('{"text": "A second file, quite short.", "id": "new"}\n')
    done = assay("prepare", settings, "--workers", "1")
    assert (
        "ingest 1, signals/language 1, nominees 1, heldout 1, signals/gopher 1, "
        "signals/c4 1, signals/fineweb 1, tokens 1" in done.stdout
    )
    after = data_hashes(root)
    changed = {name for name in before if after[name] != before[name]}
    assert changed == set()
    assert {n for n in after if n not in before and n.startswith("documents")} == {
        "documents/part-00002.parquet"
    }
    assert len(rows(root, "documents")) == 245


def test_a_new_source_remakes_nothing_of_the_others(prepared: Path, tmp_path: Path) -> None:
    shutil.copytree(prepared.parent, tmp_path, dirs_exist_ok=True)
    settings = tmp_path / "corpus.yaml"
    before = data_hashes(tmp_path / "corpus")
    (tmp_path / "more.jsonl").write_text('{"body": "A third source.", "id": "new"}\n')
    more = "  - {source: more, files: more.jsonl, text: body, keep: [autor]}\ntokenizer:"
    settings.write_text(settings.read_text().replace("tokenizer:", more, 1))
    done = assay("prepare", settings, "--workers", "1")
    assert (
        "ingest 1, signals/language 1, nominees 1, heldout 1, signals/gopher 1, "
        "signals/c4 1, signals/fineweb 1, tokens 1" in done.stdout
    )
    assert "no document of source 'more' has the field 'autor' of `keep`" in done.stdout
    after = data_hashes(tmp_path / "corpus")
    assert {name for name in before if after[name] != before[name]} == set()


def test_a_threshold_remakes_only_what_compares(prepared: Path, tmp_path: Path) -> None:
    """With the bands and rows of before; without, they follow from it, and keys are made anew."""
    shutil.copytree(prepared.parent, tmp_path, dirs_exist_ok=True)
    settings = tmp_path / "corpus.yaml"
    settings.write_text(settings.read_text() + "near: {threshold: 0.9, bands: 21, rows: 6}\n")
    done = assay("prepare", settings, "--workers", "1")
    assert "made matches 2, forest 1, components 1, candidates 2, pairs 1;" in done.stdout
    assert all(row["jaccard"] >= 0.9 for row in rows(tmp_path / "corpus", "pairs"))


def test_the_score_of_a_kept_language_remakes_nothing(prepared: Path, tmp_path: Path) -> None:
    shutil.copytree(prepared.parent, tmp_path, dirs_exist_ok=True)
    settings = tmp_path / "corpus.yaml"
    shares = "select lang, avg(languages.pass::int), bool_or(lang_score < 0.999) from documents"
    asked = ("sql", tmp_path / "corpus", f"{shares} group by 1 order by 1", "--format", "csv")
    assert assay(*asked).stdout.splitlines()[1:] == ["en,1.0,true", "zh,1.0,false"]
    settings.write_text(settings.read_text() + "languages: {zh: 0.4, en: 1.0}\n")
    assert "nothing to do, all stages stand" in assay("prepare", settings).stdout
    assert assay(*asked).stdout.splitlines()[1:] == ["en,0.0,true", "zh,1.0,false"]


def test_a_corpus_and_its_inputs_may_move(prepared: Path, tmp_path: Path) -> None:
    shutil.copytree(prepared.parent, tmp_path / "elsewhere")
    done = assay("prepare", tmp_path / "elsewhere" / "corpus.yaml")
    assert "nothing to do, all stages stand" in done.stdout


def test_changed_and_vanished_inputs_are_named(prepared: Path, tmp_path: Path) -> None:
    shutil.copytree(prepared.parent, tmp_path, dirs_exist_ok=True)
    settings = tmp_path / "corpus.yaml"
    known = read_json(tmp_path / "corpus" / "inputs.json")
    size = next(f["bytes"] for f in known["files"] if f["file"] == "zh.jsonl")
    with open(tmp_path / "zh.jsonl", "ab") as file:
        file.write(b'{"text": "more"}\n')
    done = assay("prepare", settings, check=False)
    assert done.returncode == 2
    assert f"zh.jsonl (source tales-zh): changed, {size:,} bytes then" in done.stderr
    assert "--refresh" in done.stderr
    assay("prepare", settings, "--workers", "1", "--refresh")
    ids = [row["source_id"] for row in rows(tmp_path / "corpus", "documents")]
    assert len(ids) == 245
    assert [p.name for p in corpus.part_paths(tmp_path / "corpus", "documents")] == [
        "part-00000.parquet",
        "part-00002.parquet",
    ]
    assert list((tmp_path / "corpus").rglob("part-00001*")) == []  # of no table, of no stage


def test_settings_are_refused_before_anything_is_written(prepared: Path, tmp_path: Path) -> None:
    settings = copy_inputs(prepared, tmp_path)
    good = settings.read_text()
    wrong = {
        "signals: [language, gofer]\n": "no group 'gofer'; did you mean 'gopher'?",
        "signals: [gopher]\n": "must begin with 'language'",
        "languages: [zh, zhh]\n": "no document is ever of language 'zhh'; did you mean 'zh'?",
        "near: {bands: 0}\n": "key `near.bands`",
        "heldout: {keep: [gone/heldout.json]}\n": "key `heldout.keep`: no such file",
    }
    for line, message in wrong.items():
        settings.write_text(good.replace("heldout: {share: 0.03, min_documents: 2}\n", line))
        done = assay("prepare", settings, check=False)
        assert (done.returncode, message in done.stderr) == (2, True), done.stderr
    settings.write_text(good.replace("en.jsonl", "nothing*.jsonl"))
    done = assay("prepare", settings, check=False)
    assert done.returncode == 2
    assert "source 'tales-en': no file matches" in done.stderr
    assert not (tmp_path / "corpus").exists()


def test_empty_inputs(prepared: Path, tmp_path: Path) -> None:
    settings = copy_inputs(prepared, tmp_path)
    (tmp_path / "en.jsonl").write_bytes(b"")
    (tmp_path / "zh.jsonl").write_bytes(b"\n")
    done = assay("prepare", settings, "--workers", "1", check=False)
    assert done.returncode == 2
    assert "0 records, none of which became a document" in done.stderr
    (tmp_path / "zh.jsonl").write_bytes(b"")
    done = assay("prepare", settings, "--refresh", check=False)
    assert "the inputs hold no record: 2 files, all empty" in done.stderr


def test_verify_finds_and_mends_a_flipped_byte(prepared: Path, tmp_path: Path) -> None:
    shutil.copytree(prepared.parent, tmp_path, dirs_exist_ok=True)
    victim = tmp_path / "corpus" / "joins" / "keys" / "part-00000.arrow"
    whole = victim.read_bytes()
    victim.write_bytes(whole[:5000] + bytes([whole[5000] ^ 1]) + whole[5001:])
    done = assay("prepare", tmp_path / "corpus.yaml", "--workers", "1", "--verify")
    assert f"damaged, made again: {victim}" in done.stderr
    assert victim.read_bytes() == whole


def test_limit_takes_documents_by_hash(prepared: Path, tmp_path: Path) -> None:
    settings = copy_inputs(prepared, tmp_path)
    assay("prepare", settings, "--workers", "1", "--limit", "30")
    totals = corpus.manifest(tmp_path / "corpus-limit-30")["stages"]["ingest"]["totals"]
    assert totals["kept"] + totals["rejected"] == 30
    assert totals["not_sampled"] == 217


def test_estimate_writes_nothing(prepared: Path, tmp_path: Path) -> None:
    settings = copy_inputs(prepared, tmp_path)
    before = sorted(tmp_path.rglob("*"))
    done = assay("prepare", settings, "--estimate")
    assert "sample: 2 of 2 pieces, 247 records" in done.stdout
    kept = {
        line.split()[0]: line.split()[1:4] for line in done.stdout.splitlines() if "kept" in line
    }
    assert kept == {
        "tales-en": ["124", "records,", "99.2%"],
        "tales-zh": ["123", "records,", "98.4%"],
        "all": ["247", "records,", "98.8%"],
    }
    assert sorted(tmp_path.rglob("*")) == before
