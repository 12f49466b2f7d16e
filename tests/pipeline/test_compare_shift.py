"""How far percentiles of learned quality moved, in the report of two corpora."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from filters import edges
from pipeline.files import read_sealed, write_sealed
from pipeline.seeing import compare


def measured(corpus: Path, to: Path, power: float) -> Path:
    """A copy with a group `quality`, whose percentiles are even for a power of 1."""
    root = Path(shutil.copytree(corpus, to))
    paths = sorted((root / "documents").glob("part-*.parquet"))
    numbers = np.random.default_rng(1)
    (root / "signals/quality").mkdir()
    for path in paths:
        shares = numbers.random(pq.read_metadata(path).num_rows) ** power
        table = pa.table({"percentile": shares.astype(np.float32)})
        pq.write_table(table, root / "signals/quality" / path.name)
    found = read_sealed(root / "corpus.json")
    assert found is not None
    write_sealed(root / "corpus.json", found | {"signals": [*found["signals"], "quality"]})
    return root


def test_the_shift_of_percentiles_is_in_the_report(
    many_parts: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(edges, "MIN_DOCUMENTS", 50)
    before = measured(many_parts, tmp_path / "before", 1.0)
    after = measured(many_parts, tmp_path / "after", 4.0)
    assert compare.main([str(before), str(after), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["shifts"]
    sides = [{row["lang"]: row for row in side} for side in found["quality"]]
    assert [sorted(side) for side in sides] == [["en", "zh"]] * 2
    assert [[side[lang]["shifted"] for lang in ("en", "zh")] for side in sides] == [
        [False, False],
        [True, True],
    ]
    assert compare.main([str(before), str(after)]) == 0
    said = capsys.readouterr().out
    assert "percentiles of quality, which are even where its edges were fitted (PSI from 0" in said
    for lang in ("en", "zh"):
        was, now = sides[0][lang], sides[1][lang]
        assert (
            f"  {lang}  PSI {was['psi']:.3f} -> {now['psi']:.3f}   at .9 and above "
            f"{was['top_tenth']:.1%} -> {now['top_tenth']:.1%}  moved\n" in said
        )


def test_without_percentiles_nothing_is_said_of_them(many_parts: Path) -> None:
    found = compare.compare(many_parts, many_parts)
    assert found["shifts"] == {}
    assert "percentiles" not in compare.shown(found)
