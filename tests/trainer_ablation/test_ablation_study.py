from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from pipeline.config import ConfigError
from pipeline.files import write_json
from pipeline.fingerprint import code
from trainer.ablation.study import CODE, changes, load_study


def edit(path: Path, **values: Any) -> None:
    content = yaml.safe_load(path.read_text())
    path.write_text(yaml.safe_dump({**content, **values}, allow_unicode=True, sort_keys=False))


def keys(folder: Path) -> dict[str, str]:
    return {f"{r.arm}/{r.seed}": r.key for r in load_study(folder / "study.yaml").runs}


def test_every_arm_runs_once_per_seed_as_base_plus_changes(folder: Path):
    study = load_study(folder / "study.yaml")
    assert study.baseline == "as-it-comes"
    assert [(r.arm, r.seed, str(r.folder.relative_to(folder))) for r in study.runs] == [
        ("as-it-comes", 1, "study/as-it-comes/seed-1"),
        ("as-it-comes", 2, "study/as-it-comes/seed-2"),
        ("as-it-comes", 3, "study/as-it-comes/seed-3"),
        ("deduplicated", 1, "study/deduplicated/seed-1"),
        ("deduplicated", 2, "study/deduplicated/seed-2"),
        ("deduplicated", 3, "study/deduplicated/seed-3"),
    ]
    run = study.runs[4]
    assert (run.mixture["unique"], run.mixture["seed"], run.run["seed"]) == ("near", 2, 2)
    assert run.mixture["corpora"] == {"web": str(folder / "corpus")}
    assert (run.run["mixture"], run.run["output"], run.run["tokens"]) == (
        "mixture.yaml",
        ".",
        1_000_000,
    )
    assert len(set(keys(folder).values())) == 6
    assert not (folder / "study").exists()


def test_dotted_keys_reach_into_the_base(folder: Path):
    arm = {
        "mixture": {"sources.pages.where": "lang = 'zh'", "sources.more": {"from": "web"}},
        "run": {"schedule.decay": 0.5, "model": "1M"},
    }
    edit(folder / "study.yaml", arms={"base": None, "changed": arm})
    run = load_study(folder / "study.yaml").runs[3]
    assert run.mixture["sources"]["pages"]["where"] == "lang = 'zh'"
    assert run.mixture["sources"]["more"]["weight"] == 1.0
    assert (run.run["schedule"]["decay"], run.run["schedule"]["warmup"]) == (0.5, 0.05)
    assert run.run["model"]["width"] == 96
    assert changes(load_study(folder / "study.yaml").settings.arms["changed"]) == {
        "mixture.sources.pages.where": "lang = 'zh'",
        "mixture.sources.more": {"from": "web"},
        "run.schedule.decay": 0.5,
        "run.model": "1M",
    }


@pytest.mark.parametrize(
    ("arm", "message"),
    [
        (
            {"mixture": {"uniqe": "near"}},
            "arm `b`, mixture: unknown key `uniqe` (value 'near'); did you mean `unique`?",
        ),
        (
            {"mixture": {"sources.page.where": "true"}},
            "arm `b`, mixture: unknown key `sources.page.where` (value 'true'); "
            "did you mean `sources.pages.where`?",
        ),
        (
            {"mixture": {"sources.pages.were": "true"}},
            "arm `b`, mixture: unknown key `sources.pages.were` (value 'true'); "
            "did you mean `where`?",
        ),
        (
            {"run": {"zzz.decay": 1}},
            "arm `b`, run: unknown key `zzz.decay` (value 1); keys with keys below them here: "
            "model, optimizer, objective, schedule, evaluate, checkpoint, cache, parallel",
        ),
        ({"run": {"seed": 4}}, "arm `b`: key `run.seed` is set by the study, for every run"),
        (
            {"run": {"threads": 1, "micro_batch": 4}},
            "arms `a` and `b` are the same: nothing that changes the loss differs between them; "
            "change a key of one, or leave it out",
        ),
    ],
)
def test_a_wrong_arm_is_refused_and_nothing_is_written(
    folder: Path, arm: dict[str, Any], message: str
):
    edit(folder / "study.yaml", arms={"a": {}, "b": arm})
    with pytest.raises(ConfigError) as error:
        load_study(folder / "study.yaml")
    assert str(error.value) == f"{folder / 'study.yaml'}: {message}"
    assert not (folder / "study").exists()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"arms": {"a": {}}}, "key `arms`: a study compares at least two arms; the first is the"),
        (
            {"arms": {"all": {}, "b": {}}},
            "key `arms`: an arm may not be called `all`, as rows of the report are; another name, "
            "for instance `all-data`",
        ),
        ({"arms": {"a": {}, "language": {}}}, "key `arms`: an arm may not be called `language`, "),
        ({"seeds": [1, 1, 2]}, "key `seeds`: give each seed once, for instance [1, 2, 3]"),
        ({"primary": {"languages": {}}}, "key `primary.languages`: "),
        ({"sedes": [1]}, "unknown key `sedes` (value [1]); did you mean `seeds`?"),
    ],
)
def test_a_wrong_study_is_refused(folder: Path, values: dict[str, Any], message: str):
    edit(folder / "study.yaml", **values)
    with pytest.raises(ConfigError) as error:
        load_study(folder / "study.yaml")
    assert str(error.value).startswith(f"{folder / 'study.yaml'}: {message}")


def test_the_hash_of_a_run_changes_with_what_changes_its_loss(folder: Path):
    before = keys(folder)
    edit(folder / "run.yaml", micro_batch=2, threads=1, checkpoint={"keep": 7})
    edit(folder / "study.yaml", workers=5, question="Another?")
    assert keys(folder) == before
    edit(folder / "run.yaml", evaluate={"max_bytes_per_set": "1k"})
    scored = keys(folder)
    assert not set(scored.values()) & set(before.values())
    record = {"outputs": {"documents/part-00000.parquet": {"bytes": 9, "xxh3": "other"}}}
    write_json(folder / "corpus" / "stats" / "ingest" / "part-00000.json", record)
    assert not set(keys(folder).values()) & set(scored.values())


def test_an_arm_changes_only_its_own_hashes(folder: Path):
    before = keys(folder)
    edit(folder / "study.yaml", arms={"as-it-comes": {}, "deduplicated": {"run": {"tokens": "2M"}}})
    after = keys(folder)
    assert {k for k in before if before[k] == after[k]} == {f"as-it-comes/{n}" for n in (1, 2, 3)}


def test_the_code_that_makes_the_loss_is_found():
    nothing = code("trainer.no_such_module")
    assert [module for module in CODE if code(module) == nothing] == []
