"""Every editor, by its golden pairs: own short texts, and what they become.

    ASSAY_GOLDEN=write python -m pytest tests/filters/test_editors.py

writes the files of tests/golden/edits/ anew: of each pair `after` and `kinds`, from its `text` and
other columns. Read the difference before you commit.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from filters.editors import EDITORS
from filters.edits import Edits, applied, fault
from filters.segments import Texts

FOLDER = Path(__file__).parent.parent / "golden" / "edits"
ODD = [
    "",
    " ",
    "。",
    "\n\n\n",
    "😀",
    "a",
    "的",
    "@",
    "@" * 500,
    "1" * 20_000,
    "\ufffd",
    "a\x00b",
    "中" * 999,
]


def find(name: str, pairs: list[dict[str, Any]]) -> tuple[Texts, Edits]:
    texts = Texts(pa.array([pair["text"] for pair in pairs], pa.string()))
    read = ("lang", *EDITORS[name].reads)
    columns = {c: pa.array([pair.get(c, "") for pair in pairs], pa.string()) for c in read}
    edits = EDITORS[name].find(texts, columns)
    assert fault(texts, edits) == ""
    return texts, edits


def edited(name: str, pairs: list[dict[str, Any]]) -> list[tuple[str, list[str]]]:
    """Each text afterwards, and the kinds of its edits."""
    texts, edits = find(name, pairs)
    kinds = edits.kinds.to_pylist()
    return [
        (after, [kinds[at] for at in range(len(edits)) if edits.rows[at] == row])
        for row, after in enumerate(applied(texts.array, edits).to_pylist())
    ]


@pytest.mark.parametrize("name", EDITORS)
def test_golden_pairs(name: str) -> None:
    path = FOLDER / f"{name}.json"
    pairs = json.loads(path.read_text("utf-8"))
    assert {"en", "zh"} <= {pair["lang"] for pair in pairs}, "a pair in each language"
    found = edited(name, pairs)
    if os.environ.get("ASSAY_GOLDEN") == "write":
        for pair, (after, kinds) in zip(pairs, found, strict=True):
            pair |= {"after": after, "kinds": kinds}
        path.write_text(json.dumps(pairs, ensure_ascii=False, indent=1) + "\n", "utf-8")
    assert found == [(pair["after"], pair["kinds"]) for pair in pairs]


@pytest.mark.parametrize("name", EDITORS)
def test_a_document_is_edited_alike_in_any_batch(name: str) -> None:
    pairs = json.loads((FOLDER / f"{name}.json").read_text("utf-8"))
    together = edited(name, pairs)
    assert [edited(name, [pair])[0] for pair in pairs] == together
    assert len(find(name, [])[1]) == 0


@pytest.mark.parametrize("name", EDITORS)
def test_odd_texts_have_edits_that_can_be_made(name: str) -> None:
    edited(name, [{"text": text, "lang": lang} for text in ODD for lang in ("zh", "en", "")])


@pytest.mark.parametrize("name", EDITORS)
def test_every_editor_names_real_files(name: str) -> None:
    folder = Path(__file__).parents[2]
    editor = EDITORS[name]
    assert [f for f in editor.files if not (folder / "filters" / f).is_file()] == []
    modules = [folder / (module.replace(".", "/") + ".py") for module in editor.modules]
    assert modules
    assert [path for path in modules if not path.is_file()] == []
