"""The settings that a reader copies: those of the quickstart, and those printed in README.md."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from mixtures.spec import Mixture
from pipeline.config import Settings, check, load
from pipeline.settings import CorpusSettings, Input, load_corpus
from trainer.ablation.study import StudySettings
from trainer.cli import VERBS
from trainer.settings import RunSettings

ROOT = Path(__file__).resolve().parents[2]
QUICKSTART = ROOT / "examples" / "quickstart"
README = (ROOT / "README.md").read_text(encoding="utf-8")
FILES: dict[str, type[Settings]] = {
    "corpus.yaml": CorpusSettings,
    "mixture.yaml": Mixture,
    "run.yaml": RunSettings,
    "study.yaml": StudySettings,
}


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def named_blocks() -> dict[str, Any]:
    """File name, which opens a block as a comment -> its settings."""
    named = {}
    for block in blocks("yaml"):
        name = re.match(r"# (\w+\.yaml)", block)
        assert name is not None, block
        named[name[1]] = yaml.safe_load(block)
    return named


@pytest.mark.parametrize("name", FILES)
def test_settings_of_the_quickstart(name: str) -> None:
    load(QUICKSTART / name, FILES[name])


@pytest.mark.parametrize("name", FILES)
def test_settings_in_the_readme(name: str) -> None:
    check(named_blocks()[name], FILES[name], "README.md")


def test_the_quickstart_reads_what_its_script_writes() -> None:
    settings = load_corpus(QUICKSTART / "corpus.yaml", tokenizer_exists=False)
    written = {"reviews.jsonl.gz", "laws.jsonl.gz", "manual.jsonl.gz", "packages.jsonl.gz"}
    assert {Path(i.files).name for i in settings.inputs} == written | {"pydoc.warc.gz"}


def test_the_arms_of_the_quickstart_change_keys_that_exist() -> None:
    mixture = load(QUICKSTART / "mixture.yaml", Mixture)
    study = load(QUICKSTART / "study.yaml", StudySettings)
    assert list(study.arms) == ["as-it-comes", "filtered"]
    assert study.arms["as-it-comes"].mixture == {}
    changed = study.arms["filtered"].mixture
    assert {key.split(".")[1] for key in changed if "." in key} == mixture.sources.keys()


def test_the_readme_names_every_verb_once() -> None:
    named = re.findall(r"^\| `(\w+)` \|", README, re.MULTILINE)
    assert sorted(named) == sorted(VERBS)


def test_links_of_the_docs_lead_somewhere() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/*.md")]
    broken = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in [*pages, QUICKSTART / "README.md"]
        for target in re.findall(r"\]\((?!https?://)([^)#]+)", page.read_text(encoding="utf-8"))
        if not (page.parent / target).exists()
    ]
    assert broken == []


def test_every_key_of_a_source_is_in_the_docs() -> None:
    page = (ROOT / "docs" / "inputs.md").read_text("utf-8")
    first, second = re.findall(r"^```yaml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)[:2]
    written = yaml.safe_load(first)
    check(written, CorpusSettings, "docs/inputs.md")
    assert set(written["inputs"][0]) == set(Input.model_fields)
    check(written | yaml.safe_load(second), CorpusSettings, "docs/inputs.md")
