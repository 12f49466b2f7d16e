from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from mixture_corpus import Doc, Tiny, write_corpus

from mixtures.commands import mix
from mixtures.plan import make_plan
from mixtures.spec import load_mixture
from pipeline.config import ConfigError
from trainer.inventory import corpora_of, look

BASE: dict[str, Any] = {
    "corpora": {"web": "web"},
    "sequence_length": 16,
    "seed": 3,
    "prefer": ["num_chars desc"],
    "sources": {
        "english": {"from": "web", "where": "lang = 'en'", "weight": 3, "max_epochs": 99},
        "chinese": {"from": "web", "where": "lang = 'zh'", "max_epochs": 99},
    },
}


@pytest.fixture
def base(tmp_path: Path) -> Path:
    docs = [*(Doc(f"a sentence with the number {n}") for n in range(20))]
    docs += [Doc(f"中文句子，第{n}句。", "zh") for n in range(20)]
    write_corpus(tmp_path / "bases" / "web", Tiny(docs))
    return write(tmp_path / "bases" / "base.yaml", BASE)


def write(path: Path, spec: dict[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(spec, sort_keys=False), "utf-8")
    return path


def test_it_is_the_mixture_written_out(base: Path, tmp_path: Path) -> None:
    arm = {"extends": "../bases/base.yaml", "sources": {"english": {"weight": 1}}, "prefer": None}
    short = write(tmp_path / "arms" / "arm.yaml", arm)
    long = {key: value for key, value in BASE.items() if key != "prefer"}
    english = BASE["sources"]["english"] | {"weight": 1}
    long["sources"] = BASE["sources"] | {"english": english}
    written = write(base.parent / "long.yaml", long)
    assert load_mixture(short).model_dump() == load_mixture(written).model_dump()
    plans = [make_plan(path, 1_600, pack=False) for path in (short, written)]
    assert plans[0] == plans[1]
    assert plans[0].fingerprint != make_plan(base, 1_600, pack=False).fingerprint


def test_a_chain(base: Path, tmp_path: Path) -> None:
    write(base.parent / "middle.yaml", {"extends": "base.yaml", "seed": 4, "unique": "exact"})
    drop = {"extends": "bases/middle.yaml", "sources": {"english": None}, "seed": 5}
    found = load_mixture(write(tmp_path / "top.yaml", drop))
    assert (found.seed, found.unique, list(found.sources)) == (5, "exact", ["chinese"])
    assert found.corpora == {"web": str(base.parent / "web")}
    assert found.extends is None


def test_what_lies_under_a_folder_knows_it(base: Path, tmp_path: Path) -> None:
    """`assay gc` keeps what a mixture here reads."""
    arm = write(tmp_path / "arms" / "arm.yaml", {"extends": "../bases/base.yaml", "seed": 9})
    assert corpora_of(arm) == {base.parent / "web"}
    assert look([arm.parent]).mixtures == [arm]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            {"extends": "bases/bose.yaml"},
            "top.yaml: key `extends`: {folder}/bases/bose.yaml: no ",
        ),
        ({"extends": "top.yaml"}, "top.yaml extends {folder}/top.yaml: a circle; let one of them"),
        ({"extends": 3}, "top.yaml: key `extends`: expected the path of a mixture (value 3)"),
        ({"extends": "bases/base.yaml", "sead": 1}, "unknown key `sead` (value 1); did you mean"),
        (
            {"extends": "bases/base.yaml", "sources": {"enlish": None}},
            "key `sources.enlish`: expected `key: value` lines",
        ),
    ],
)
def test_what_is_refused(base: Path, tmp_path: Path, spec: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_mixture(write(tmp_path / "top.yaml", spec))
    assert message.format(folder=tmp_path) in str(caught.value)


def test_mix_shows_it_written_out(
    base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arm = write(tmp_path / "arm.yaml", {"extends": "bases/base.yaml", "seed": 9})
    assert mix([str(arm), "--show"]) == 0
    shown = yaml.safe_load(capsys.readouterr().out)
    assert shown == BASE | {"corpora": {"web": str(base.parent / "web")}, "seed": 9}
    with pytest.raises(ConfigError, match="--tokens is missing"):
        mix([str(arm)])
