from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from filters import perplexity
from filters.kenlm_model import load
from filters.segments import Texts
from filters.spread import View

pytest.importorskip("kenlm", reason="the extra kenlm is not installed")

ARPA = """
\\data\\
ngram 1=5
ngram 2=1

\\1-grams:
-2\t<unk>
0\t<s>
-1\t</s>
-0.5\t天
-0.25\t好

\\2-grams:
-0.1\t天 好

\\end\\
"""


@pytest.fixture
def arpa(tmp_path: Path) -> Path:
    (tmp_path / "zh.arpa").write_text(ARPA, "utf-8")
    return tmp_path / "zh.arpa"


def test_bits_a_character(arpa: Path) -> None:
    models = perplexity.Models({"zh": load(arpa, View())}, 100, {})
    texts = Texts(pa.array(["天好天", "", "x", "好"]))
    found = perplexity.bits(models, texts, np.array(["zh", "zh", "zh", "en"], dtype=object))
    bits = math.log2(10)  # sums of -log10 p, over characters and the end
    assert found[:3] == pytest.approx([2.1 * bits / 4, bits, 3 * bits / 2])
    assert np.isnan(found[3])


def test_what_it_cannot_read(arpa: Path) -> None:
    with pytest.raises(ValueError, match="no such file; a KenLM model"):
        load(arpa.with_name("none.arpa"), View())
    arpa.write_text("no model\n")
    with pytest.raises(ValueError, match=r"zh.arpa is no model that KenLM reads"):
        load(arpa, View())


def test_without_the_package(arpa: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kenlm", None)
    with pytest.raises(ValueError, match=r"needs KenLM; pip install 'assay\[kenlm\]'"):
        load(arpa, View())
