"""A run whose edits keep one of several places goes on when that place is forgotten."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import small_corpus
import yaml
from small_corpus import assay

from mixtures.loader import Loader
from mixtures.plan import Plan, make_plan
from pipeline import corpus
from pipeline.corpus import CorpusError
from pipeline.files import read_json, write_json
from pipeline.seeing.asking import rows
from trainer import cli

SETTINGS = """\
inputs: [{source: web, files: pages.jsonl, kind: web}]
tokenizer: tokenizer.json
heldout: {share: 0.05, min_documents: 2}
shard_bytes: 16000
output: corpus
near: {containment: 0.9}
substrings: {min_bytes: 80}
across: {repeated_lines: {documents: 2}, repeated_paragraphs: {documents: 2}}
edits: [substrings, repeated_lines, repeated_paragraphs]
"""
RUN = {
    "model": {"width": 16, "depth": 1, "heads": 2, "kv_heads": 1, "ffn": 16},
    "tokens": 1280,
    "batch_tokens": 256,
    "checkpoint": {"every": 256, "keep": 9},
    "threads": 1,
}
EDITS = ["substrings", "repeated_lines", "repeated_paragraphs"]


def text(n: int) -> str:
    """Of three in a row a paragraph of one line is the same."""
    shared = small_corpus.english(4 * (n // 3) + 1000).replace("\n", " ")
    return "\n\n".join([small_corpus.english(2 * n), shared, small_corpus.english(2 * n + 1)])


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("forget_repeats")
    pages = [json.dumps({"id": f"{n}", "text": text(n)}) for n in range(60)]
    part = {"id": "part", "text": text(4)[: len(text(4)) // 2]}  # held by 4
    (folder / "pages.jsonl").write_text("\n".join([*pages, json.dumps(part)]) + "\n")
    settings, tokenizer = folder / "corpus.yaml", folder / "tokenizer.json"
    settings.write_text(SETTINGS)
    assay("tokenizer", "train", settings, "--vocab-size", "500", "--output", tokenizer)
    assay("prepare", settings, "--workers", "1")
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "repeats", symlinks=True))


def mixture(folder: Path, edits: list[str], unique: str = "near", name: str = "mixture") -> Path:
    """Two sources, of which one may keep what goes from the other."""
    odd = "source_id[-1:] in ('1', '3', '5', '7', '9')"
    source = {"from": "web", "max_epochs": 99}
    sources = {"odd": source | {"where": odd}, "even": source | {"where": f"not {odd}"}}
    spec = {"corpora": {"web": "corpus"}, "sequence_length": 64, "sources": sources}
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(spec | {"edits": edits, "unique": unique}))
    return path


def keepers(root: Path, edits: str, plan: Plan) -> list[str]:
    """Documents of the plan that keep a text which another one of it lost."""
    table = "substrings" if edits == "substrings" else f"places/{edits}"
    places = pa.concat_tables(pq.read_table(path) for path in corpus.part_paths(root, table))
    packed = [pa.ipc.open_file(Path(s.folder) / "documents.arrow").read_all() for s in plan.sources]
    mine = {name for each in packed for name in each["id"].to_pylist()}
    held: dict[bytes, list[tuple[bool, bytes]]] = {}
    for row in places.to_pylist():
        if row["id"] in mine:
            held.setdefault(row["key"], []).append((row["first"], row["id"]))
    keep = [name for found in held.values() if len(found) > 1 for first, name in found if first]
    return sorted(name.hex() for name in set(keep))


def forget(folder: Path, *ids: str) -> None:
    (folder / "ids.txt").write_text("\n".join(ids))
    call = ["forget", str(folder / "corpus"), "--ids", str(folder / "ids.txt"), "--reason", "x"]
    assert cli.main([*call, "--runs", str(folder), "--delete"]) == 0


@pytest.mark.parametrize("edits", EDITS)
@pytest.mark.parametrize("unique", ["near", "contained"])
def test_the_plan_stays_when_what_kept_a_text_is_forgotten(
    folder: Path, edits: str, unique: str
) -> None:
    path = mixture(folder, [edits], unique)
    plan = make_plan(path, 1280)
    seen = Loader(plan).documents_at(0, plan.num_windows)
    ids = keepers(folder / "corpus", edits, plan)
    assert len(ids) > 9
    for name in ids[:2]:  # one after the other
        forget(folder, name)
        shutil.rmtree(folder / "corpus" / "edited")  # is made again
        again = make_plan(path, 1280)
        assert again.fingerprint == plan.fingerprint
        assert Loader(again).documents_at(0, again.num_windows) == seen
    answers = list((folder / "corpus" / "packed").glob("*/going-*.arrow"))
    assert len({path.name for path in answers}) == 1 < len(answers)
    assert make_plan(path, 1280).fingerprint == plan.fingerprint
    for kept in answers:
        kept.unlink()
    assert make_plan(path, 1280).fingerprint != plan.fingerprint  # else the test shows nothing


def test_a_selection_that_never_had_it_is_asked_anew(folder: Path) -> None:
    root = folder / "corpus"
    whole = mixture(folder, ["substrings"])
    plan = make_plan(whole, 1280)
    gone = keepers(root, "substrings", plan)[0]
    (name,) = rows(root, f"select source_id from documents where id = '{gone}'")
    spec = yaml.safe_load(whole.read_text())
    for source in spec["sources"].values():
        source["where"] += f" and source_id <> '{name['source_id']}'"
    (folder / "without.yaml").write_text(yaml.safe_dump(spec))
    without = make_plan(folder / "without.yaml", 1280)
    assert without.fingerprint != plan.fingerprint
    forget(folder, gone)
    assert make_plan(folder / "without.yaml", 1280).fingerprint == without.fingerprint


def test_a_damaged_answer_is_told(folder: Path) -> None:
    path = mixture(folder, ["substrings"])
    ids = keepers(folder / "corpus", "substrings", make_plan(path, 1280))
    forget(folder, ids[0])
    for kept in (folder / "corpus" / "packed").glob("*/going-*.arrow"):  # which is asked: any
        kept.write_bytes(kept.read_bytes()[:-1] + b"x")
    with pytest.raises(CorpusError, match=r"going-\w+.arrow is not as it was written; delete it"):
        make_plan(path, 1280)


def test_a_run_goes_on_over_masked_windows(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Stopped after step 2 of 5, what kept a text forgotten, then gone on with."""
    path = mixture(folder, EDITS, "contained")
    (folder / "run.yaml").write_text(yaml.safe_dump(RUN | {"mixture": path.name}))
    assert cli.main(["train", str(folder / "run.yaml")]) == 0
    run = folder / "runs" / "run"
    write_json(run / "run.json", {**read_json(run / "run.json"), "status": "running"})
    lines = (run / "metrics.jsonl").read_text().splitlines(keepends=True)
    (run / "metrics.jsonl").write_text("".join(lines[:2]))
    for step in (3, 4, 5):
        shutil.rmtree(run / "checkpoints" / f"step-{step:08d}")
    plan = make_plan(path, 1280)
    forget(folder, *(keepers(folder / "corpus", edits, plan)[0] for edits in EDITS))
    capsys.readouterr()
    assert cli.main(["train", str(folder / "run.yaml")]) == 0
    assert "goes on from step-00000002" in capsys.readouterr().err
    steps = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert [row["step"] for row in steps] == [1, 2, 3, 4, 5]
    assert [json.loads(line) for line in lines[:2]] == steps[:2]
