"""Every signal group, by its golden pairs: own short texts, and the values that they must have.

    ASSAY_GOLDEN=write python -m pytest tests/filters/test_signals.py

writes the files of tests/golden/signals/ anew: of each pair the groups that it names (a new one as
`"<group>": {}`) from its `text`, `lang` and other columns. Read the difference before you commit.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from filters.columns import UNITS, unknown_units
from filters.presets import CUTS
from filters.segments import Texts
from filters.signals import GROUPS

Pairs = list[dict[str, Any]]

CHINESE_ONLY = ("fineweb", "spun")  # not defined in English

FOLDER = Path(__file__).parent.parent / "golden" / "signals"
FILES: dict[str, Pairs] = {
    path.name: json.loads(path.read_text(encoding="utf-8"))
    for path in sorted(FOLDER.glob("*.json"))
}


def pairs_of(group: str) -> Pairs:
    return [pair for pairs in FILES.values() for pair in pairs if group in pair]


def measured(group: str, pairs: Pairs) -> Pairs:
    table = GROUPS[group]
    texts = pa.array([pair["text"] for pair in pairs], pa.string())
    read = {
        name: pa.array([pair.get(name, "") for pair in pairs], pa.string())
        for name in ("lang", *table.reads)
    }
    columns = table.measure(Texts(texts), read)
    assert list(columns) == list(table.columns)
    arrays = {name: pa.array(columns[name]) for name in columns}
    assert {n: a.type for n, a in arrays.items()} == {n: s.type for n, s in table.columns.items()}
    return [
        {n: round(v, 4) if isinstance(v, float) else v for n, v in row.items()}
        for row in pa.table(arrays).to_pylist()
    ]


@pytest.mark.parametrize("group", GROUPS)
def test_golden_pairs(group: str) -> None:
    pairs = pairs_of(group)
    assert {"en", "zh"} <= {pair["lang"] for pair in pairs}, "a pair in each language"
    rows = measured(group, pairs)
    if os.environ.get("ASSAY_GOLDEN") == "write":
        for pair, row in zip(pairs, rows, strict=True):
            pair[group] = row
        for name, found in FILES.items():
            text = json.dumps(found, ensure_ascii=False, indent=1)
            (FOLDER / name).write_text(f"{text}\n", encoding="utf-8")
    assert rows == [pair[group] for pair in pairs]


@pytest.mark.parametrize("group", GROUPS)
def test_no_signal_is_inert(group: str) -> None:
    """Of the golden pairs each column says of some other things than of others."""
    rows = [pair[group] for pair in pairs_of(group)]
    values = {name: {json.dumps(row[name]) for row in rows} for name in GROUPS[group].columns}
    assert [name for name, found in values.items() if len(found) < 2] == []


DETECTORS = {**{signal: cut for signal, (cut, _) in CUTS.items()}, "spun.score": 0.5}


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("signal", DETECTORS)
def test_each_detector_can_fire_and_can_pass(signal: str, language: str) -> None:
    group, _, column = signal.partition(".")
    scores = [pair[group][column] for pair in pairs_of(group) if pair["lang"] == language]
    flagged = {score >= DETECTORS[signal] for score in scores if score is not None}
    assert flagged == (set() if language == "en" and group in CHINESE_ONLY else {True, False})


@pytest.mark.parametrize("group", GROUPS)
def test_a_batch_of_nothing(group: str) -> None:
    nothing = pa.array([], pa.string())
    table = GROUPS[group]
    columns = table.measure(Texts(nothing), dict.fromkeys(("lang", *table.reads), nothing))
    assert [len(column) for column in columns.values()] == [0] * len(table.columns)


@pytest.mark.parametrize("group", GROUPS)
def test_a_document_is_measured_alike_in_any_batch(group: str) -> None:
    pairs = pairs_of(group)
    together = measured(group, pairs)
    assert [measured(group, [pair])[0] for pair in pairs] == together


ODD = (
    *("", " ", "。", "\n\n\n", "😀", "a", "的", "-", "#" * 50, "\x00", "\ufffd", "a\r\nb\r\n\r\nc"),
    *(char * 200_000 for char in ("a", "的", "1", "@", "\n", " ", ".", "\u0301")),
    "word " * 100_000,
    "一段没有句号的话" * 20_000,
)
# Without a definition in a language: no list of stop words, no fewest words of a line, no model.
WITHOUT = {
    "fineweb": {"num_yue_words", "num_lzh_words"},
    "gopher": {"num_stop_words"},
    "c4": {"num_short_lines", "lines_after", "words_after", "sentences_after"},
    "generated": {"score"},
    "spun": {"score", "choice", "num_words"},
}


@pytest.mark.parametrize("language", ["en", "zh", "ja", "und"])
@pytest.mark.parametrize("group", GROUPS)
def test_a_value_for_every_text_and_no_nan(group: str, language: str) -> None:
    """RedPajama-Data #77; dolma #148: no words, no lines, nothing but marks, and no end."""
    known = ("zh",) if group in CHINESE_ONLY else ("zh", "en")
    undefined = set() if language in known else WITHOUT.get(group, set())
    for row in measured(group, [{"text": text, "lang": language} for text in ODD]):
        odd = {n for n, v in row.items() if v is None or (isinstance(v, float) and np.isnan(v))}
        assert odd == undefined
        assert all(0 <= v <= 1 for n, v in row.items() if n.endswith(("share", "score")) and v)


@pytest.mark.parametrize("group", GROUPS)
def test_every_signal_names_its_unit(group: str) -> None:
    unknown = {
        name: parts
        for name, signal in GROUPS[group].columns.items()
        if (parts := unknown_units(signal.unit))
    }
    assert unknown == {}, f"a unit is one of {UNITS}, `A of B` or `A per B`"


def test_every_group_names_real_files() -> None:
    folder = Path(__file__).parents[2]
    for group in GROUPS.values():
        assert [f for f in group.files if not (folder / "filters" / f).is_file()] == []
        assert [
            m for m in group.modules if not (folder / (m.replace(".", "/") + ".py")).is_file()
        ] == []
