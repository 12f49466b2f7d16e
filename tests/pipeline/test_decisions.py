"""What `assay inspect` says beside the values of one document."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from filters.presets import PRESETS
from pipeline.config import ConfigError
from pipeline.seeing import decisions
from pipeline.settings import load_corpus


def test_every_rule_says_what_it_counts() -> None:
    told = {rule.name: decisions.formula(rule) for rules in PRESETS.values() for rule in rules}
    assert [name for name, formula in told.items() if ": " not in formula] == ["num_chars"]
    assert told["gopher.num_words"] == "words: words of the text"


@pytest.mark.parametrize(
    ("measured", "margins", "groups"),
    [([1], [1], []), ([1], [2], ["quality"]), (None, [2], []), ([1], None, [])],
)
def test_percentiles_of_other_edges_are_told(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    measured: list[int] | None,
    margins: list[int] | None,
    groups: list[str],
) -> None:
    from filters.cards import edges_hash

    def write(numbers: list[int]) -> str | None:
        card = {"edges": {"margins": numbers}}
        (tmp_path / "quality.json").write_text(json.dumps(card), encoding="utf-8")
        return edges_hash(str(tmp_path / "quality.bin"))

    found: dict[str, Any] = {
        "edges": {"quality": write(measured)} if measured else {},
        "settings": {"classifiers": {"quality": str(tmp_path / "quality.bin")}, "perplexity": None},
    }
    (tmp_path / "quality.json").unlink(missing_ok=True)
    if margins:
        write(margins)
    monkeypatch.setattr(decisions, "manifest", lambda root: found)
    assert [line.partition(".")[0] for line in decisions.stale(tmp_path)] == groups


def test_what_a_corpus_needs_is_shown(tmp_path: Path) -> None:
    (tmp_path / "corpus.yaml").write_text("languages: [zh]\n")
    with pytest.raises(
        ConfigError, match="(?s)`inputs` is missing; as in `inputs: .*`tokenizer` is m"
    ):
        load_corpus(tmp_path / "corpus.yaml")
