from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
import yaml

from pipeline.config import ConfigError
from trainer.ablation import plans
from trainer.ablation.commands import ablate
from trainer.ablation.plans import plan_arms
from trainer.ablation.study import Study, load_study
from trainer.metrics import Progress


def study_with(folder: Path, **values: Any) -> Study:
    path = folder / "study.yaml"
    path.write_text(yaml.safe_dump({**yaml.safe_load(path.read_text()), **values}, sort_keys=False))
    return load_study(path)


def plan(study: Study) -> dict[str, plans.Plan]:
    return plan_arms(study, study.settings.arms, Progress(io.StringIO()))


def test_arms_that_select_alike_select_once(folder: Path, monkeypatch: pytest.MonkeyPatch):
    calls, select = [], plans.select
    monkeypatch.setattr(plans, "select", lambda mixture: calls.append(1) or select(mixture))
    arms = {
        "base": {},
        "shorter": {"run": {"tokens": 9000}, "mixture": {"sources.pages.weight": 2.0}},
        "windows": {"mixture": {"sequence_length": 128}},
        "english": {"mixture": {"sources.pages.where": "lang = 'en'"}},
    }
    found = plan(study_with(folder, arms=arms))
    assert [(name, p.sources[0].documents) for name, p in found.items()] == [
        ("base", 40),
        ("shorter", 40),
        ("windows", 40),
        ("english", 20),
    ]
    assert [round(p.sources[0].epochs) for p in found.values()] == [114, 1, 115, 226]
    assert len(calls) == 2
    assert not (folder / "corpus" / "packed").exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"sources.pages.where": "langg = 'en'"},
            "key `sources.pages.where`: corpus 'web' cannot ",
        ),
        (
            {"sources.pages.where": "mine.score > 1"},
            "key `sources.pages.where`: corpus 'web' cannot ",
        ),
        (
            {"sources.pages.where": "url = 'x'"},
            "a `where` is NULL, neither true nor false, for some documents:\n  source 'pages': ",
        ),
        (
            {"sources.more": {"from": "web", "where": "lang = 'zh'"}},
            "20 documents selected by more than one source, for instance ",
        ),
        (
            {"sources.pages.max_epochs": 4},
            "source 'pages' would repeat 114.05 times (15,625 windows from 137), more than its ",
        ),
    ],
)
@pytest.mark.parametrize("dry", [True, False])
def test_an_arm_that_cannot_run_is_named_before_any_is_trained(
    folder: Path, changes: dict[str, Any], message: str, dry: bool
):
    study_with(folder, arms={"base": {}, "odd": {"mixture": changes}})
    with pytest.raises(ConfigError) as caught:
        ablate([str(folder / "study.yaml"), *["--dry-run"] * dry], ("must-not-run",))
    assert str(caught.value).startswith(f"{folder / 'study.yaml'}: arm `odd`: {message}")
    assert not (folder / "study").exists()


@pytest.mark.parametrize(
    ("primary", "message"),
    [
        ({"languages": {"zhh": 1}}, "`primary.languages`: no held-out text in language 'zhh'; did"),
        (
            {"languages": {"ja": 1}},
            "`primary.languages`: no held-out text in language 'ja'; known: en, zh",
        ),
        (
            {"languages": {"en": 1}, "sets": ["web/en/page"]},
            "`primary.sets`: no held-out text in set 'web/en/page'; did you mean 'web/en/pages'?",
        ),
        (
            {"languages": {"zh": 1}, "sets": ["web/en/pages"]},
            "`primary.languages`: no held-out text in language 'zh'; known: en",
        ),
    ],
)
def test_what_the_deciding_number_asks_for_is_held_out(
    folder: Path, primary: dict[str, Any], message: str
):
    study = study_with(folder, primary=primary)
    with pytest.raises(ConfigError) as caught:
        plan(study)
    assert str(caught.value).startswith(f"{folder / 'study.yaml'}: key {message}")
