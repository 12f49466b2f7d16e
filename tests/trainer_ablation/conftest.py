from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
import yaml
from mixture_corpus import Doc, Tiny, write_corpus

from pipeline.files import read_json, write_json
from trainer.ablation.commands import ablate

FAKE_TRAIN = (sys.executable, str(Path(__file__).with_name("fake_train.py")))

STUDY = {
    "question": "Does removing <near> duplicates help | at equal training tokens?",
    "base": {"mixture": "mixture.yaml", "run": "run.yaml"},
    "arms": {"as-it-comes": {}, "deduplicated": {"mixture": {"unique": "near"}}},
    "seeds": [1, 2, 3],
    "primary": {"languages": {"zh": 0.5, "en": 0.5}},
    "output": "study",
    "workers": 2,
}
# 40 documents of 200 to 239 bytes, two of them near copies, and two held-out ones besides.
TEXTS = {
    "docs": [
        Doc(f"{n:02d} " + "x" * (197 + n), "en" if n % 2 else "zh", "pages") for n in range(40)
    ],
    "pairs": [(0, 1)],
    "kept": [Doc("held out", "en", "pages"), Doc("留下的", "zh", "页面 & <b>")],
}


@pytest.fixture
def fake_train() -> tuple[str, ...]:
    return FAKE_TRAIN


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with study.yaml, its base, and what a study reads of a corpus."""
    return make_folder(tmp_path)


@pytest.fixture(scope="session")
def trained_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = make_folder(tmp_path_factory.mktemp("trained"))
    assert ablate([str(folder / "study.yaml")], FAKE_TRAIN) == 0
    return folder


@pytest.fixture
def trained(trained_once: Path, tmp_path: Path) -> Path:
    """A folder with a finished study; a copy, so that a moved study is a finished one too."""
    return shutil.copytree(trained_once, tmp_path / "moved")


def make_folder(path: Path) -> Path:
    stage = {"fingerprint": "0", "seconds": 1, "cpu_seconds": 1}
    ingest = {
        "records": 50,
        "not_sampled": 0,
        "reasons": {"bad_json": 50},
        "documents": 0,
        "bytes": 0,
    }
    heldout = {"documents": 0, "sets": 0, "independent_rejected": 0}
    stages = {
        "ingest": {**stage, "totals": ingest},
        "heldout": {**stage, "totals": heldout},
        "matches": {**stage, "totals": {"documents": 0}},
    }
    corpus = write_corpus(path / "corpus", Tiny(**TEXTS, name="web"))
    found = read_json(corpus / "corpus.json")
    found["settings"] |= {"inputs": [], "languages": ["zh", "en"]}
    write_json(corpus / "corpus.json", {**found, "stages": {**found["stages"], **stages}})
    record = {
        "stage": "ingest",
        "part": 0,
        "counters": {},
        "seconds": 1,
        "cpu_seconds": 1,
        "outputs": {"documents/part-00000.parquet": {"bytes": 9, "xxh3": "abc"}},
    }
    write_json(corpus / "stats" / "ingest" / "part-00000.json", record)
    write_yaml(
        path / "mixture.yaml",
        {
            "corpora": {"web": "corpus"},
            "sequence_length": 64,
            "unique": "none",
            "sources": {"pages": {"from": "web", "where": "true", "max_epochs": 1000}},
        },
    )
    write_yaml(path / "run.yaml", {"mixture": "mixture.yaml", "model": "0.4M", "tokens": "1M"})
    write_yaml(path / "study.yaml", STUDY)
    return path


def write_yaml(path: Path, content: object) -> None:
    path.write_text(yaml.safe_dump(content, allow_unicode=True, sort_keys=False))
