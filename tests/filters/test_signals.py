"""Every signal group, by its golden pairs: own short texts, and the values that they must have.

    ASSAY_GOLDEN=write python -m pytest tests/filters/test_signals.py

writes tests/golden/signals.json anew from the `text` and `lang` of each pair; read the difference
before you commit it.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from filters.segments import Texts
from filters.signals import GROUPS

GOLDEN = Path(__file__).parent.parent / "golden" / "signals.json"
PAIRS: list[dict[str, Any]] = json.loads(GOLDEN.read_text(encoding="utf-8"))


def measured(group: str, pairs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    table = GROUPS[group]
    texts = pa.array([pair["text"] for pair in pairs], pa.string())
    columns = table.measure(Texts(texts), pa.array([pair["lang"] for pair in pairs], pa.string()))
    assert list(columns) == list(table.columns)
    arrays = {name: pa.array(columns[name]) for name in columns}
    assert {n: a.type for n, a in arrays.items()} == {n: s.type for n, s in table.columns.items()}
    return [
        {n: round(v, 4) if isinstance(v, float) else v for n, v in row.items()}
        for row in pa.table(arrays).to_pylist()
    ]


@pytest.mark.parametrize("group", GROUPS)
def test_golden_pairs(group: str) -> None:
    rows = measured(group, PAIRS)
    if os.environ.get("ASSAY_GOLDEN") == "write":
        for pair, row in zip(PAIRS, rows, strict=True):
            pair[group] = row
        GOLDEN.write_text(json.dumps(PAIRS, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    assert rows == [pair[group] for pair in PAIRS]


@pytest.mark.parametrize("group", GROUPS)
def test_a_batch_of_nothing(group: str) -> None:
    columns = GROUPS[group].measure(Texts(pa.array([], pa.string())), pa.array([], pa.string()))
    assert [len(column) for column in columns.values()] == [0] * len(GROUPS[group].columns)


@pytest.mark.parametrize("group", GROUPS)
def test_a_document_is_measured_alike_in_any_batch(group: str) -> None:
    together = measured(group, PAIRS)
    assert [measured(group, [pair])[0] for pair in PAIRS] == together


@pytest.mark.parametrize("group", GROUPS)
def test_a_row_for_every_text_and_no_nan(group: str) -> None:  # RedPajama-Data #77
    texts = ["", " ", "。", "\n\n\n", "😀", "a", "的", "-", "#" * 50, "\x00", "\ufffd"]
    for row in measured(group, [{"text": text, "lang": "en"} for text in texts]):
        assert [
            n for n, v in row.items() if v is None or (isinstance(v, float) and np.isnan(v))
        ] == []


def test_every_group_names_real_files() -> None:
    folder = Path(__file__).parents[2]
    for group in GROUPS.values():
        assert [f for f in group.files if not (folder / "filters" / f).is_file()] == []
        assert [
            m for m in group.modules if not (folder / (m.replace(".", "/") + ".py")).is_file()
        ] == []
