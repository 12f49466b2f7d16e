"""Edits as a stage of the sweep, as a view, and as what other verbs see of them."""

from __future__ import annotations

import shutil
from pathlib import Path

import corpus_parts
import edited_corpus
import pyarrow.parquet as pq
import pytest

from filters.editors import EDITORS, Editor
from filters.edits import Edits, edits_of
from filters.segments import Texts
from filters.signals import Columns
from pipeline import schema
from pipeline.card import card
from pipeline.config import ConfigError
from pipeline.digests import table_digests
from pipeline.files import read_json
from pipeline.groups import editors
from pipeline.preconditions import check
from pipeline.settings import load_corpus
from pipeline.sql import ask
from pipeline.transforms import edit
from pipeline.transforms.sweep import Swept, sweep

TEXTS = [f"line {n}" + "\n第二行" * (n % 3) for n in range(17)]


def second_lines(texts: Texts, columns: Columns) -> Edits:
    """Every line but the first goes."""
    assert columns["lang"].to_pylist() == ["en"] * len(texts)
    found = []
    for row, text in enumerate(texts.array.to_pylist()):
        at = len(text.encode())
        for _ in text.split("\n")[1:]:
            found.append((row, at - 10, at, "line", ""))
            at -= 10
    return edits_of(found)


def run(root: Path, find: object) -> Swept:
    editor = Editor(find, ())  # type: ignore[arg-type]
    stage = edit.edit(root, "own", editor, 0)
    return sweep(root, 0, {"edits/own": stage}, 5, ["id"])["edits/own"]


def test_one_row_an_edit_in_the_order_of_documents(tmp_path: Path) -> None:
    corpus_parts.write(tmp_path, [TEXTS])
    made = run(tmp_path, second_lines)
    assert made.counters == {
        "documents": 17,
        "edited_documents": 11,
        "removed_bytes": 160,
        "added_bytes": 0,
        "kind.line": 16,
    }
    table = pq.read_table(edit.outputs(tmp_path, "own", 0)[0])
    assert table.schema == schema.EDITS
    rows = table.to_pylist()
    assert len(rows) == 16
    assert rows[1:3] == [
        {
            "id": schema.document_id("web", "0.jsonl", 2),
            "start": start,
            "end": start + 10,
            "kind": "line",
            "replacement": "",
        }
        for start in (6, 16)
    ]


def test_a_part_without_edits_has_a_file(tmp_path: Path) -> None:
    corpus_parts.write(tmp_path, [["a"], []])
    assert run(tmp_path, lambda texts, columns: edits_of([])).counters["documents"] == 1
    assert pq.read_table(edit.outputs(tmp_path, "own", 0)[0]).equals(schema.EDITS.empty_table())


def test_what_is_no_edit_is_named_and_no_file_stands(tmp_path: Path) -> None:
    corpus_parts.write(tmp_path, [["a中"]])
    message = "editor 'own', part 0: edit han of text 0, bytes 1 to 3 of 4 begins or ends inside a"
    with pytest.raises(ValueError, match=message):
        run(tmp_path, lambda texts, columns: edits_of([(0, 1, 3, "han", "")]))
    assert not (tmp_path / "edits" / "own").exists() or not list((tmp_path / "edits/own").iterdir())


def test_unknown_edits_are_refused_with_the_nearest(corpus_with_edits: Path) -> None:
    settings = load_corpus(corpus_with_edits.parent / "corpus.yaml")
    assert editors(settings) == {"privacy": EDITORS["privacy"]}
    assert editors(settings.model_copy(update={"edits": ()})) == {}
    wrong = settings.model_copy(update={"edits": ("privacy", "privcy")})
    with pytest.raises(ConfigError, match="key `edits`: no edits 'privcy'; did you mean 'privacy'"):
        check(wrong)
    path = corpus_with_edits.parent / "twice.yaml"
    path.write_text(edited_corpus.SETTINGS.replace("[privacy]", "[privacy, privacy]"))
    with pytest.raises(ConfigError, match="a name stands twice"):
        load_corpus(path)


def test_every_edit_stands_in_the_view(corpus_with_edits: Path) -> None:
    question = (
        "select name, edits.kind, source_id, text, start_byte, end_byte, replacement "
        "from edits join documents using (id) order by source_id::int"
    )
    with ask(corpus_with_edits, question, macros={}, timeout_seconds=60) as batches:
        rows = batches.read_all().to_pylist()
    numbers = [n for n in range(edited_corpus.DOCUMENTS + 1) if n % 4 < 2]
    assert [int(row["source_id"]) for row in rows] == numbers
    for row in rows:
        gone = row["text"].encode()[row["start_byte"] : row["end_byte"]].decode()
        number = int(row["source_id"])
        whole = "nothing.else@mail.cn" if number == edited_corpus.DOCUMENTS else None
        assert gone == (whole or f"editor{number}@mail.cn")
        assert (row["name"], row["kind"], row["replacement"]) == ("privacy", "email", "[EMAIL]")


def test_totals_digests_and_card_know_them(corpus_with_edits: Path) -> None:
    found = read_json(corpus_with_edits / "corpus.json")
    assert found["edits"] == ["privacy"]
    totals = found["stages"]["edits/privacy"]["totals"]
    assert totals["documents"] == edited_corpus.DOCUMENTS + 1
    assert totals["kind.email"] == totals["edited_documents"] == 31
    assert totals["added_bytes"] == 31 * len("[EMAIL]")
    assert table_digests(corpus_with_edits)["edits/privacy"]["rows"] == 31
    lines = card(corpus_with_edits).splitlines()
    assert f"| privacy | email | 31 | 31 | {totals['removed_bytes']} |" in lines


def test_a_corpus_without_edits_has_an_empty_view(many_parts: Path, tmp_path: Path) -> None:
    root = Path(shutil.copytree(many_parts, tmp_path / "corpus"))
    with ask(root, "select * from edits", macros={}, timeout_seconds=60) as batches:
        table = batches.read_all()
    columns = ["id", "start_byte", "end_byte", "kind", "replacement"]
    assert table.column_names == ["name", *columns]
    assert len(table) == 0
