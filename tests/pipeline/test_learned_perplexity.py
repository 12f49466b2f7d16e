"""Character models of a small corpus: trained, measured with, twice the same bytes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import small_corpus

from filters import perplexity
from filters.segments import Texts
from pipeline.groups import groups
from pipeline.settings import CorpusSettings
from trainer.cli import main


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = small_corpus.prepare(tmp_path_factory.mktemp("perplexity"))
    assert main(["perplexity", "train", str(root), "--output", str(root.parent / "lm.npz")]) == 0
    return root


def card(corpus: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((corpus.parent / "lm.json").read_text("utf-8"))
    return found


def measured(corpus: Path, texts: list[str], languages: list[str]) -> dict[str, list[Any]]:
    columns = {"lang": pa.array(languages, pa.string())}
    path = str(corpus.parent / "lm.npz")
    found = perplexity.measure(path, Texts(pa.array(texts, pa.string())), columns)
    return {name: pa.array(found[name]).to_pylist() for name in perplexity.COLUMNS}


def test_the_same_twice(corpus: Path, tmp_path: Path) -> None:
    assert main(["perplexity", "train", str(corpus), "--output", str(tmp_path / "lm.npz")]) == 0
    for name in ("lm.npz", "lm.json"):
        assert (tmp_path / name).read_bytes() == (corpus.parent / name).read_bytes()


def test_the_card(corpus: Path) -> None:
    found = card(corpus)
    assert list(found["languages"]) == ["zh", "en"]
    assert 0.5 < found["languages"]["en"]["bits"] < 2  # few words, in few places
    assert 0.5 < found["languages"]["zh"]["bits"] < 2
    aside = found["edges"]["documents"]
    assert aside + sum(of_it["documents"] for of_it in found["languages"].values()) == 232


def test_every_text_has_a_value_where_its_language_has_a_model(corpus: Path) -> None:
    texts = ["", "a", "。", "😀", "的" * 200_000, "x" * 10**6, "\n\n", small_corpus.english(7)]
    found = measured(corpus, texts, ["zh", "en", "zh", "en", "zh", "en", "zh", "en"])
    assert all(np.isfinite(value) and value > 0 for value in found["bits"])
    assert all(0 <= value <= 1 for value in found["percentile"])
    assert set(found["bucket"]) <= set(perplexity.BUCKETS)
    assert found["bits"][-1] < 1.5 < found["bits"][5]
    assert found["bucket"][5] == "tail"
    assert measured(corpus, ["ein Text"], ["de"]) == {
        "bits": [None],
        "percentile": [None],
        "bucket": [None],
    }
    assert measured(corpus, [], []) == {"bits": [], "percentile": [], "bucket": []}


def test_in_a_corpus(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = corpus.parent / "corpus.yaml"
    settings.write_text(settings.read_text() + "perplexity: lm.npz\n")
    small_corpus.assay("prepare", settings, "--workers", "1")
    question = "select lang, bool_and(perplexity.bits < 3) b, count(perplexity.bucket) n "
    found = small_corpus.assay(
        "sql", corpus, f"{question} from documents group by all order by 1", "--format", "csv"
    )
    assert found.stdout.split() == ["lang,b,n", "en,true,123", "zh,true,121"]
    assert main(["perplexity", "edges", str(corpus.parent / "lm.npz"), str(corpus)]) == 0
    assert "percentiles of corpus: 242 documents, *" in capsys.readouterr().out
    assert card(corpus)["edges"]["corpus"] == "corpus"


def test_what_cannot_be_used(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["perplexity", "train", str(corpus), "--output", str(corpus.parent / "x.npz")]
    assert main([*arguments, "--languages", "zh,ja"]) == 2
    assert "0 documents of language 'ja', at least 20 are needed" in capsys.readouterr().err
    assert main([*arguments, "--order", "9"]) == 2
    assert "expected 1 to 8" in capsys.readouterr().err
    with pytest.raises(ValueError, match="no such file; `assay perplexity train` makes a model"):
        perplexity.load(corpus.parent / "none.npz")


def test_the_group_is_made_by_its_key() -> None:
    settings = {"inputs": [{"source": "a", "files": "a.jsonl"}], "tokenizer": "x"}
    made = groups(CorpusSettings.model_validate(settings | {"perplexity": "/m/lm.npz"}))
    assert made["perplexity"].files == ("/m/lm.npz", "/m/lm.json")
    assert "perplexity" not in groups(CorpusSettings.model_validate(settings))


def test_models_of_kenlm(corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("kenlm", reason="the extra kenlm is not installed")
    unigrams = "-2\t<unk>\n0\t<s>\n-1\t</s>\n-0.5\tthe\n"
    bigrams = "-0.1\tthe the\n"
    (tmp_path / "en.arpa").write_text(
        f"\\data\\\nngram 1=4\nngram 2=1\n\n\\1-grams:\n{unigrams}\n"
        f"\\2-grams:\n{bigrams}\n\\end\\\n"
    )
    command = ["perplexity", "adopt", "--corpus", str(corpus), "--output", str(tmp_path / "k.npz")]
    assert main([*command, f"en={tmp_path / 'en.arpa'}"]) == 0
    assert "percentiles of corpus: 122 documents, *" in capsys.readouterr().out
    columns = {"lang": pa.array(["en", "zh"])}
    found = perplexity.measure(str(tmp_path / "k.npz"), Texts(pa.array(["the the", "天"])), columns)
    assert pa.array(found["bits"]).to_pylist() == [pytest.approx(1.6 * np.log2(10) / 8), None]
    (tmp_path / "en.arpa").write_text("other")
    perplexity._load.cache_clear()
    with pytest.raises(ValueError, match="en.arpa is no model that KenLM reads"):
        perplexity.load(tmp_path / "k.npz")
    assert main([*command, "en.arpa"]) == 2
    assert "expected LANGUAGE=FILE" in capsys.readouterr().err
