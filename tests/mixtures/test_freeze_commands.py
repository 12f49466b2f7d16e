"""A frozen corpus is verified, found out when changed, and made again at another shard size."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import small_corpus

from mixtures.freeze_commands import freeze, verify
from mixtures.plan import make_plan
from pipeline.corpus import CorpusError
from pipeline.digests import table_digests
from pipeline.files import file_hash, read_json, write_json

MIXTURE = """
corpora: {corpus: corpus}
sequence_length: 64
unique: near
sources:
  english: {from: corpus, where: "lang = 'en'"}
  chinese: {from: corpus, where: "lang = 'zh'"}
"""


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tests that write to it put back what they changed."""
    root = small_corpus.prepare(tmp_path_factory.mktemp("frozen"), 60)
    (root.parent / "mixture.yaml").write_text(MIXTURE)
    return root


@pytest.fixture
def frozen(corpus: Path) -> Path:
    path = corpus.parent / "frozen.json"
    if not path.exists():
        assert freeze([str(corpus), "--output", str(path)]) == 0
    return path


def test_what_did_not_change_is_the_same(
    frozen: Path, corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert verify([str(frozen)]) == 0
    assert capsys.readouterr().out == f"corpus corpus ({corpus}): the same\n"
    known = read_json(frozen)["corpora"]["corpus"]
    documents = read_json(corpus / "corpus.json")["stages"]["ingest"]["totals"]["documents"]
    assert {known["tables"][t]["rows"] for t in ("documents", "signals/gopher")} == {documents}
    assert {"lid.176.ftz", "simplified.tsv"} <= known["lists_and_models"].keys()
    assert {"python", "unicode", "assay", "pyarrow", "duckdb"} <= known["versions"].keys()
    assert {"documents", "heldout", "heldout_index", "heldout_match"} <= known["code"].keys()
    raw = known["inputs"]["tales-en/en.jsonl"]
    assert raw.startswith(f"{(corpus.parent / 'en.jsonl').stat().st_size} ")


def test_a_changed_byte_is_found_and_named(
    frozen: Path, corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = corpus / "signals/gopher/part-00001.parquet"
    before = path.read_bytes()
    table = pq.read_table(path).to_pylist()
    table[3]["num_words"] += 1
    pq.write_table(pq.read_table(path).from_pylist(table, pq.read_schema(path)), path)
    assert verify([str(frozen)]) == 2
    path.write_bytes(before)
    said = capsys.readouterr().out.splitlines()
    assert said[0] == f"corpus corpus ({corpus}): differs"
    assert [line.split(":")[:2] for line in said[1:-1]] == [["  tables", " signals/gopher.digest"]]
    assert said[-1].startswith("  to mend tables: `assay prepare --verify`")


FROZEN = (
    "documents/part-00001.parquet",
    "signals/language/part-00000.parquet",
    "tokens/*/part-00000.arrow",
    "tokens/*/tokenizer.json",
    "heldout/documents.parquet",
    "stats/ingest/part-00000.json",
    "inputs.json",
)


@pytest.mark.parametrize("name", FROZEN)
def test_a_damaged_corpus_is_not_frozen(corpus: Path, tmp_path: Path, name: str) -> None:
    """Every 8th of a file, whether what is there still decodes or not."""
    [path] = corpus.glob(name)
    before = path.read_bytes()
    try:
        for eighth in range(8):
            at = len(before) * eighth // 8
            path.write_bytes(before[:at] + bytes([before[at] ^ 1]) + before[at + 1 :])
            with pytest.raises(
                CorpusError, match=rf"{path} is damaged.*`assay prepare CORPUS.yaml "
            ):
                freeze([str(corpus), "--output", str(tmp_path / "frozen.json")])
    finally:
        path.write_bytes(before)
    assert list(tmp_path.iterdir()) == []


def test_the_input_file_that_changed_or_is_gone_is_named(
    frozen: Path, corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = corpus.parent / "zh.jsonl"
    before = path.read_bytes()
    was = f"{len(before):,} bytes with hash {file_hash(path)}"
    path.write_bytes(before[:-2] + b" }")
    now = f"{len(before):,} bytes with hash {file_hash(path)}"
    try:
        assert verify([str(frozen)]) == 2
        path.unlink()
        assert verify([str(frozen)]) == 0, "the corpus is what it was"
    finally:
        path.write_bytes(before)
    changed, gone = capsys.readouterr().out.split("corpus corpus")[1:]
    assert f"  inputs: tales-zh/zh.jsonl ({path}): expected {was}, found {now}" in changed
    assert "\n  to mend inputs: put the files back; or take them as they are" in changed
    assert f"  input files: tales-zh/zh.jsonl: expected {was}, found no file" in gone
    assert "tales-en" not in changed + gone


def test_a_changed_setting_inside_a_list_is_named(
    frozen: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    known = read_json(frozen)
    known["corpora"]["corpus"]["settings"]["inputs"][1]["kind"] = "web"
    known["corpora"]["corpus"]["settings"]["languages"] = ["zh"]
    write_json(tmp_path / "old.json", known)
    assert verify([str(tmp_path / "old.json")]) == 0
    said = capsys.readouterr().out
    assert "  settings: inputs.tales-zh.kind: expected web, found book\n" in said
    assert "  settings: languages: expected ['zh'], found ['zh', 'en']\n" in said


def test_other_versions_alone_are_told_and_do_not_fail(
    frozen: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    known = read_json(frozen)
    known["corpora"]["corpus"]["versions"]["pyarrow"] = "1.0"
    write_json(tmp_path / "old.json", known)
    assert verify([str(tmp_path / "old.json")]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[1].startswith("  versions: pyarrow: expected 1.0, found ")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{}", "not a frozen corpus or mixture"),
        ("[", "not readable as JSON"),
        ('{"frozen": 99, "corpora": {}}', "version 99, this version of assay reads 1"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "file.json").write_text(content)
    with pytest.raises(CorpusError, match=message):
        verify([str(tmp_path / "file.json")])


def test_no_rebuild_from_other_inputs(frozen: Path, corpus: Path, tmp_path: Path) -> None:
    path = corpus.parent / "zh.jsonl"
    before = path.read_bytes()
    path.write_bytes(before + b'{"text": "more"}\n')
    try:
        with pytest.raises(CorpusError, match=r"tales-zh/zh.jsonl .*: expected .*, found .* bytes"):
            verify([str(frozen), "--rebuild", str(tmp_path)])
    finally:
        path.write_bytes(before)
    assert list(tmp_path.iterdir()) == []


def test_rebuilt_in_smaller_shards_it_is_the_same(frozen: Path, tmp_path: Path) -> None:
    known = read_json(frozen)
    known["corpora"]["corpus"]["settings"]["shard_bytes"] = 15_000
    write_json(tmp_path / "frozen.json", known)
    done = small_corpus.assay("verify", tmp_path / "frozen.json", "--rebuild", tmp_path / "again")
    again = tmp_path / "again/corpus"
    assert f"corpus corpus ({again}): the same" in done.stdout
    assert len(list((again / "documents").iterdir())) > 2
    assert table_digests(again) == known["corpora"]["corpus"]["tables"]


def test_a_mixture_is_its_selections_and_their_bytes(
    corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mixture, path = corpus.parent / "mixture.yaml", tmp_path / "frozen.json"
    plan = make_plan(mixture, 5_000)
    assert freeze([str(mixture), "--output", str(path)]) == 0
    packed: dict[str, Any] = json.loads(path.read_text("utf-8"))["mixture"]["packed"]
    assert {s.name: s.selection for s in plan.sources} == {
        name: found["selection"] for name, found in packed.items()
    }
    assert packed["english"]["files"]["part-00000.arrow"]["bytes"] > 0
    assert verify([str(path)]) == 0
    mixture.write_text(MIXTURE.replace("lang = 'zh'", "lang = 'zh' and num_chars > 300"))
    assert verify([str(path)]) == 2
    mixture.write_text(MIXTURE)
    said = capsys.readouterr().out
    assert "  packed: chinese.documents: expected " in said
    assert "  settings: sources.chinese.where: expected lang = 'zh', found lang = 'zh' and" in said
    assert "english" not in said
