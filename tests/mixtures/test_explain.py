"""Why a mixture takes a document: each reason, against a corpus written by hand and a real one."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from mixture_corpus import Doc, Tiny, write_corpus

from mixtures.commands import mix as mix_command
from mixtures.explain import explain
from mixtures.questions import inspect
from pipeline import schema
from pipeline.commits import commit
from pipeline.config import ConfigError
from pipeline.corpus import part_paths
from pipeline.files import part_number
from pipeline.seeing.asking import rows

DOCS = [
    Doc("the best of all", score=0.9),
    Doc("the best of all", score=0.1),  # exact copy of 0
    Doc("the best of it all", score=0.8),  # near copy of 0
    Doc("held out", score=0.7),
    Doc("no score", score=None),
    Doc("中文", "zh", score=0.3),
]
SOURCES = {
    "english": {"from": "web", "where": "lang = 'en' and quality.score > 0", "missing": "drop"}
}


def told(folder: Path, number: int, sources: dict[str, Any] = SOURCES, **keys: Any) -> list[str]:
    """What is said of a document of DOCS."""
    tiny = Tiny(DOCS, pairs=[(0, 2)], heldout=[3])
    root = folder / "web"
    if not root.exists():
        write_corpus(root, tiny)
    spec = {"corpora": {"web": "web"}, "sequence_length": 8, "sources": sources} | keys
    path = folder / "mixture.yaml"
    path.write_text(yaml.safe_dump(spec, sort_keys=False))
    (row,) = rows(root, f"select * from documents where id = '{tiny.id(number)}'")
    lines = explain(str(path), root, {"document": row, "presets": {}})
    assert lines[0].startswith(f"{path}: ")
    return [line.removeprefix(f"{path}: ") for line in lines]


def first(number: int) -> str:
    return f"{Tiny(DOCS).id(number)} (corpus web, source web), which comes first"


def test_a_document_that_stays(tmp_path: Path) -> None:
    assert told(tmp_path, 0, prefer=["quality.score desc"]) == [
        "in, by source english: 16 tokens",
        "  not packed yet: `assay mix` packs this selection",
        "  source english: `where` is true",
    ]


def test_where_it_is_packed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told(tmp_path, 0)
    assert mix_command([str(tmp_path / "mixture.yaml"), "--tokens", "8"]) == 0
    folder = capsys.readouterr().out.split("english: ")[-1].strip()
    assert told(tmp_path, 0)[1] == f"  packed: window 0 of 1 of {folder}, part 0"


def test_copies_name_what_stays_and_why_it_comes_first(tmp_path: Path) -> None:
    assert told(tmp_path, 1, prefer=["quality.score desc"])[0] == (
        f"out: a copy, by the text, of {first(0)} by `prefer: quality.score desc`: 0.9 there, "
        "0.1 here"
    )
    assert told(tmp_path, 2, prefer=["quality.score desc"])[0] == (
        f"out: a near duplicate (Jaccard 0.900) of {first(0)} by `prefer: quality.score desc`: "
        "0.9 there, 0.8 here"
    )
    ties = {told(tmp_path, n)[0].split(" of ")[-1] for n in (0, 1, 2)}
    assert len(ties) > 1, "one stays, the others name it"
    assert told(tmp_path, 2, unique="exact")[0] == "in, by source english: 19 tokens"


def test_predicates_that_are_false_or_null(tmp_path: Path) -> None:
    assert told(tmp_path, 5) == [
        "out: no source selects it",
        "  source english: `where` is false",
        "    false: lang = 'en'   (lang = zh)",
    ]
    assert told(tmp_path, 4)[1:] == [
        "  source english: `where` is NULL, and `missing: drop`",
        "    NULL: quality.score > 0   (quality.score = NULL)",
    ]
    without = {"english": {"from": "web", "where": "quality.score > 0"}}
    found = told(tmp_path, 4, without)
    assert found[0].startswith("the mixture cannot be planned: a `where` is NULL, neither true")
    assert found[1] == "  source english: `where` is NULL, and it has no `missing: keep` or `drop`"


def test_held_out_text_is_out_though_it_is_selected(tmp_path: Path) -> None:
    assert told(tmp_path, 3) == [
        "out: held out, no mixture trains on it",
        "  source english: `where` is true",
    ]


def test_two_sources_that_select_it(tmp_path: Path) -> None:
    two = SOURCES | {"again": {"from": "web", "where": "num_chars = 15"}}
    found = told(tmp_path, 0, two)
    assert "selected by more than one source" in found[0]
    assert found[1:] == ["  source english: `where` is true", "  source again: `where` is true"]


def test_a_mixture_of_another_corpus(tmp_path: Path) -> None:
    told(tmp_path, 0)
    other = write_corpus(tmp_path / "other", Tiny([Doc("a")]))
    (row,) = rows(other, "select * from documents")
    with pytest.raises(ConfigError, match="mixture.yaml: no source reads .*other, but .*web"):
        explain(str(tmp_path / "mixture.yaml"), other, {"document": row, "presets": {}})


def test_edits_that_leave_nothing(corpus_with_edits: Path, tmp_path: Path) -> None:
    root = Path(shutil.copytree(corpus_with_edits, tmp_path / "web"))
    (row,) = rows(root, "select * from documents where source_id = '60'")
    whole = {"id": bytes.fromhex(row["id"]), "start": 0, "end": row["num_bytes"]}
    for path in part_paths(root, "edits/privacy"):
        mine = [whole | {"kind": "email", "replacement": ""}] * (part_number(path) == row["part"])
        pq.write_table(pa.Table.from_pylist(mine, schema.EDITS), path)
        commit(root, "edits/privacy", part_number(path), "made so", [path], {}, 0.5, 0.5)
    path = tmp_path / "mixture.yaml"
    spec = {"corpora": {"web": "web"}, "sequence_length": 8, "edits": ["privacy"]}
    path.write_text(yaml.safe_dump(spec | {"sources": {"tales": {"from": "web"}}}))
    assert explain(str(path), root, {"document": row, "presets": {}})[0] == (
        f"{path}: out: its edits (privacy) leave nothing of it, in source tales"
    )


def test_the_command_with_presets_and_edits(
    corpus_with_edits: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def spec(where: str, name: str) -> Path:
        source = {"from": "web", "where": where, "missing": "drop"}
        mixture = {
            "corpora": {"web": str(corpus_with_edits)},
            "sequence_length": 8,
            "edits": ["privacy"],
            "sources": {"tales": source},
        }
        path = tmp_path / name
        path.write_text(yaml.safe_dump(mixture))
        return path

    def said(path: Path, source_id: str) -> list[str]:
        what = f"select id from documents where source_id = '{source_id}'"
        (row,) = rows(corpus_with_edits, what)
        assert inspect([str(corpus_with_edits), row["id"], "--mixture", str(path)]) == 0
        return capsys.readouterr().out.splitlines()

    every = spec("true", "every.yaml")
    (whole,) = rows(
        corpus_with_edits,
        "select source_id, num_bytes from documents where not heldout and kept and source_id in "
        "(select source_id from documents join edits using (id)) and num_chars > 100 limit 1",
    )
    lines = said(every, whole["source_id"])
    assert lines[0] == "found by its id"
    assert lines[1].startswith(f"{every}: in, by source tales: ")
    assert lines[2].startswith(f"  edited (privacy): {whole['num_bytes']:,} bytes are ")
    lines = said(spec("gopher.pass", "gopher.yaml"), "60")
    assert lines[1].endswith("gopher.yaml: out: no source selects it")
    failed = next(line for line in lines if line.startswith("    false: gopher.pass"))
    assert "gopher.num_words = " in failed
    assert "wanted 50 .. 100000" in failed
