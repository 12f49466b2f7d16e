"""The quickstart's text is the same in every checkout: no run and no commit moves it."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def data() -> ModuleType:
    path = ROOT / "examples" / "quickstart" / "data.py"
    spec = importlib.util.spec_from_file_location("quickstart_data", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_pages_hold_nothing_of_this_machine(
    data: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data, "PYDOC_MODULES", "os sys doctest difflib ftplib ctypes")
    pages = dict(data.pages())
    assert len(pages) == 6
    assert "<strong>environ</strong>" in pages["http://localhost/os.html"]
    for url, page in pages.items():
        assert re.findall(r"0x[0-9a-f]{6,}|handle [0-9a-f]{6,}|environ\(\{", page) == [], url
        assert str(ROOT) not in page
    assert "parser=&lt;doctest.DocTestParser object&gt;" in pages["http://localhost/doctest.html"]


def test_packages_are_those_of_a_list_that_a_commit_does_not_move(data: ModuleType) -> None:
    names = data.PACKAGES.split()
    assert names == sorted(names, key=str.lower)
    assert "assay" not in names
    found = [record["id"].split("/")[0] for record in data.packages()]
    assert found == sorted(found, key=str.lower)
    assert {"numpy", "pytest"} <= set(found) <= set(names)
