"""What docs/presets.md and docs/signals.md say is what the code has."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(name="modules")
def _modules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")


@pytest.mark.usefixtures("modules")
def test_the_docs_show_the_rules_and_what_six_documents_get() -> None:
    import presets

    text = presets.DOCS.read_text(encoding="utf-8")
    renewed = presets.replaced(text, "recipes", presets.rules_of(presets.RECIPES))
    renewed = presets.replaced(renewed, "own cuts", presets.rules_of(presets.OWN))
    renewed = presets.replaced(renewed, "six documents", presets.six_documents())
    assert renewed == text, "python benchmarks/presets.py --write"
    with pytest.raises(ValueError, match="stand there 0 times"):
        presets.replaced("no marks", "recipes", iter([]))


@pytest.mark.usefixtures("modules")
def test_the_docs_show_every_signal() -> None:
    import signal_tables

    text = signal_tables.DOCS.read_text(encoding="utf-8")
    assert text == signal_tables.page(), "python benchmarks/signal_tables.py --write"
