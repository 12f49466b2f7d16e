from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from mixture_corpus import Doc, Tiny, write_corpus

from mixtures.spec import Mixture, load_mixture
from pipeline.config import ConfigError, check
from pipeline.files import read_json, write_json

BASE: dict[str, Any] = {
    "corpora": {"web": "runs/web", "books": "runs/books"},
    "sequence_length": 2048,
    "unique": "exact",
    "sources": {
        "english": {"from": "web", "where": "lang = 'en'", "weight": 2},
        "books": {"from": "books", "weight": 0.5},
    },
}


def test_weights_are_shares(tmp_path: Path) -> None:
    mixture = check(BASE, Mixture, "mixture.yaml")
    assert mixture.weights() == {"english": 0.8, "books": 0.2}
    assert mixture.sources["books"].where == "true"
    assert mixture.sources["books"].max_epochs == 4


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sead": 1}, "unknown key `sead` (value 1); did you mean `seed`?"),
        ({"sources": {}}, "key `sources`: "),
        ({"sources": {"a": {"from": "wed"}}}, "source 'a': no corpus 'wed'; did you mean 'web'?"),
        ({"sources": {"a": {"from": "web", "wight": 1}}}, "did you mean `weight`?"),
        ({"sources": {"a": {"from": "web", "weight": 0}}}, "source 'a' has weight 0; raise its"),
        ({"sources": {"a": {"from": "web", "weight": float("inf")}}}, "key `sources.a.weight`: "),
        ({"edits": ["privacy", "privacy"]}, "key `edits`: a name stands twice; name each once"),
        ({"phases": [{}, {"until": "8B"}]}, "phase 1: key `until` is missing: only the last"),
        ({"phases": [{"until": "8B"}, {"until": "8B"}]}, "phase 2 ends at 8,000,000,000 tokens, w"),
        ({"phases": [{"until": "2k"}, {"until": "2.04k"}]}, "phase 2 is shorter than a window of"),
        ({"phases": [{"weights": {"bocks": 1}}]}, "phase 1: no source 'bocks'; did you mean 'boo"),
        ({"phases": [{"weights": {"books": 1}}]}, "`weights` has none for source 'english'; give"),
        ({"phases": [{"weights": {"books": 0, "english": 0}}]}, "phase 1: all weights are 0; give"),
        (
            {"phases": [{"weights": {"books": 1, "english": 0}}]},
            "source 'english' has weight 2 and none in any phase; raise its `weight`, or leave",
        ),
        (
            {"phases": [{"weights": {"books": -1, "english": 1}}]},
            "key `phases.1st.weights.books`: expected 0.0 or more (value -1)",
        ),
        (
            {"phases": [{"until": "2k"}, {"until": -5}]},
            "key `phases.2nd.until`: expected 1 or more (value -5)",
        ),
        ({"phases": [{"until": 0}, {}]}, "key `phases.1st.until`: expected 1 or more (value 0)"),
        (
            {"sources": {"laws": None}},
            "key `sources.laws`: expected `key: value` lines, and nothing stands there; write them",
        ),
        (
            {"sources": {"a": {"from": "web", "cap": {"by": "domain"}}}},
            "key `sources.a.cap`: a cap by domain says how much one value may have: `max_share: ",
        ),
        (
            {"sources": {"a": {"from": "web", "cap": {"by": "domain", "max_share": 1}}}},
            "key `sources.a.cap.max_share`: expected less than 1",
        ),
        (
            {"sources": {"a": {"from": "web", "cap": {"by": "a, b", "max_tokens": "2M"}}}},
            "key `sources.a.cap.by`: ",
        ),
        ({"sources": {"a": {"from": "web", "weight": float("nan")}}}, "key `sources.a.weight`: "),
        (
            {"sources": {"a": {"from": "web", "weight": True}}},
            "key `sources.a.weight`: expected a number, as in 0.05",
        ),
        ({"sequence_length": True}, "key `sequence_length`: expected a whole number, as in 64"),
        ({"sources": {"a": {"from": "web", "max_epochs": float("nan")}}}, "`sources.a.max_epochs`"),
        ({"sources": {"a": {"from": "web", "epochs": 0}}}, "`sources.a.epochs`: expected more tha"),
        (
            {"sources": {"a": {"from": "web", "epochs": 2, "max_epochs": 3}}},
            "key `sources.a`: `epochs: 2` says how much of it a run sees, and so does `max_epochs`",
        ),
        (
            {"sources": {"a": {"from": "web", "repeats": "fineweb2", "repeats_by": "2"}}},
            "key `sources.a`: `repeats` and `repeats_by` both say how often one stands; keep one",
        ),
        (
            {"unique": "nearr"},
            "'folded', 'near', 'contained' or 'semantic'; did you mean `near`? (value",
        ),
        (
            {"unique": "substring"},
            "key `unique`: expected 'none', 'url', 'exact', 'folded', 'near', 'contained' or "
            "'semantic' (value",
        ),
        ({"sequence_length": "64k apples"}, "not an amount: '64k apples'; write 500000, 500k, 2M"),
    ],
)
def test_what_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        check(BASE | change, Mixture, "mixture.yaml")
    assert message in str(error.value)
    assert str(error.value).startswith("mixture.yaml: ")


def test_a_length_with_a_unit() -> None:
    assert check(BASE | {"sequence_length": "2k"}, Mixture, "mixture.yaml").sequence_length == 2_000


def test_a_corpus_that_is_not_there_is_named(tmp_path: Path) -> None:
    path = tmp_path / "mixture.yaml"
    path.write_text(
        "corpora: {web: runs/web}\nsequence_length: 8\nsources: {all: {from: web}}\n", "utf-8"
    )
    with pytest.raises(ConfigError, match=r"key `corpora.web`: no corpus at .*runs/web; make one"):
        load_mixture(path)


def test_edits_are_those_of_the_corpora(tmp_path: Path) -> None:
    root = write_corpus(tmp_path / "web", Tiny([Doc("a")]))
    path = tmp_path / "mixture.yaml"

    def refused(edits: str, of_corpus: list[str]) -> str:
        write_json(root / "corpus.json", read_json(root / "corpus.json") | {"edits": of_corpus})
        rest = "corpora: {web: web}\nsequence_length: 8\nsources: {all: {from: web}}\n"
        path.write_text(f"edits: [{edits}]\n{rest}", "utf-8")
        with pytest.raises(ConfigError) as error:
            load_mixture(path)
        return str(error.value).removeprefix(f"{path}: key `edits`: corpus 'web' has no edits ")

    assert refused("privcy", ["privacy"]) == "'privcy'; did you mean 'privacy'?"
    assert refused("lines", ["privacy"]) == "'lines'; known: privacy"
    assert refused("privacy", ["own"]) == (
        "'privacy'; add `edits: [own, privacy]` to its corpus.yaml and call `assay prepare`"
    )
