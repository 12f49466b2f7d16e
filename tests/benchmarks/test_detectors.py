"""The figures of benchmarks/detectors.py, in a short form that needs no corpus."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
LAW = "第一条　为了保护公民的合法权益，根据宪法，制定本法。本法自公布之日起施行。"
PROSE = "It’s late, and nobody came. “Tomorrow,” he said, “we’ll try again” – as if it were new."


@pytest.fixture(name="modules")
def _modules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")


@pytest.mark.usefixtures("modules")
def test_auc() -> None:
    from detectors import auc

    assert auc(np.array([2.0, 1.0]), np.array([1.0, 0.0])) == pytest.approx(3.5 / 4)
    assert np.isnan(auc(np.array([1.0]), np.array([])))


@pytest.mark.usefixtures("modules")
def test_each_breakage_changes_text_and_comes_out_alike_again() -> None:
    from breakage import CHINESE, ENGLISH, broken

    for text, kinds in (
        ((LAW + "未来今天\n") * 40, CHINESE),
        ((PROSE + " The nationality.\n") * 40, ENGLISH),
    ):
        for kind, how in kinds.items():
            done = broken(kind, how, text, 0.3, 7)
            assert done != text, kind
            assert done == broken(kind, how, text, 0.3, 7)


@pytest.mark.usefixtures("modules")
def test_pieces_are_cut_at_line_ends() -> None:
    from human_texts import pieces

    assert pieces("ab\ncd\ne", 3) == ["ab\n", "cd\n"]
    assert pieces("a", 3) == ["a"]


def test_tables_are_printed(tmp_path: Path) -> None:
    rows = [{"source": "laws-zh", "text": f"{LAW * 12}{i}"} for i in range(3)] + [
        {"source": "sms-spam-en", "label": ("ham", "spam")[i % 2], "text": f"{PROSE * 14}{i}"}
        for i in range(4)
    ]
    with gzip.open(tmp_path / "a.jsonl.gz", "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    command = [sys.executable, str(ROOT / "benchmarks" / "detectors.py"), str(tmp_path)]
    done = subprocess.run(
        [*command, "--groups", "broken"],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    ).stdout
    assert "| zh | law | laws-zh | 3 | 0.000 |" in done
    assert "| sms-spam-en | spam | broken.score | 0.000 | 0.000 | 0.500 |" in done
    assert "| zh | utf-8 as gb18030 | 3 | 1.000 | 1.000 |" in done
    assert "| ai | zh | essay | 35 |" in done
    assert LAW[:10] not in done


@pytest.mark.usefixtures("modules")
def test_gbk_read_as_latin_1_is_damaged() -> None:
    from human_texts import is_gbk_as_latin_1

    assert is_gbk_as_latin_1(LAW.encode("gb18030").decode("latin-1"))
    for text in (LAW, PROSE, "élève à l'école, où l'été fut très sévère", ""):
        assert not is_gbk_as_latin_1(text)
