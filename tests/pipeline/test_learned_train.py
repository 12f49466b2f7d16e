"""Train on invented text: what comes out, what is refused, and that the same comes out twice."""

from __future__ import annotations

import json
import os
import random
import shutil
from pathlib import Path
from typing import Any

import fasttext
import numpy as np
import pyarrow as pa
import pytest
import small_corpus
import yaml

from filters import cards, classifier
from filters.classifier import load, margins, measure
from filters.segments import Texts
from filters.spread import spread
from pipeline.config import ConfigError, check
from pipeline.groups import groups
from pipeline.learned.settings import ClassifierSettings, load_classifier
from pipeline.learned.train import train
from pipeline.seeing import labels
from pipeline.seeing.asking import rows
from pipeline.settings import CorpusSettings
from trainer.cli import main

GOOD, BAD = "好妙佳美优", "坏劣糟丑差"  # one in six characters tells the class
OTHERS = "的一是在不了有和人这中大为上个国我以要他"


def sentence(n: int, good: bool) -> str:
    pick = random.Random(2 * n + good).choice
    return "".join(pick((GOOD if good else BAD) if i % 6 == 5 else OTHERS) for i in range(40))


def write(folder: Path, name: str, texts: list[str]) -> None:
    lines = [json.dumps({"text": text}, ensure_ascii=False) for text in texts]
    (folder / name).write_text("\n".join(lines) + "\n", "utf-8")


def settings_of(folder: Path, **keys: Any) -> Path:
    path = folder / f"{keys.get('output', 'quality.bin').removesuffix('.bin')}.yaml"
    path.write_text(
        json.dumps(
            {"positive": [{"files": "good-*.jsonl"}], "negative": [{"files": "bad-*.jsonl"}]}
            | {"output": "quality.bin", "fasttext": {"bucket": 20_000}, **keys}
        )
    )
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three sources of each class, and a trained model."""
    made = tmp_path_factory.mktemp("classifier")
    for shop in range(3):
        for name, good in (("good", True), ("bad", False)):
            write(
                made, f"{name}-{shop}.jsonl", [sentence(100 * shop + n, good) for n in range(100)]
            )
    with open(made / "bad-0.jsonl", "a") as file:  # a copy, and what stands in both classes
        for text in (sentence(0, False), sentence(5, True)):
            file.write(json.dumps({"text": text}) + "\n")
    train(load_classifier(settings_of(made)))
    return made


def card(folder: Path, name: str = "quality") -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / f"{name}.json").read_text("utf-8"))
    return found


def test_whole_sources_are_held_out(folder: Path) -> None:
    held, data = card(folder)["heldout"], card(folder)["data"]
    assert held["by"] == "source"
    assert sorted(source[:-2] for source in held["sources"]) == ["bad", "good"]
    assert set(held["by_source"]) == set(held["sources"])
    assert (data["copies"], data["in_both_classes"]) == (2, 1)
    for name, counts in data["sources"].items():
        side = "held out" if name.split(" ")[0] in held["sources"] else "trained on"
        assert all(key.endswith(side) for key in counts)


def test_it_learnt_and_says_how_well(folder: Path) -> None:
    found = card(folder)["heldout"]["all"]
    assert found["accuracy"] > 0.95
    assert found["auc"] > 0.99
    assert found["interval"][0] > found["majority"]
    assert "| all |" in (folder / "quality.md").read_text("utf-8")


def test_the_same_again(folder: Path) -> None:
    before = {name: (folder / f"quality.{name}").read_bytes() for name in ("bin", "json", "md")}
    waste = [os.urandom(size) for size in (10**5, 10**6, 3 * 10**6)]
    del waste  # memory that is not zeros: fastText took its rows from there
    train(load_classifier(settings_of(folder)))
    assert {name: (folder / f"quality.{name}").read_bytes() for name in before} == before
    assert card(folder)["model"]["sha256"] == cards.sha256(folder / "quality.bin")


def test_single_tokens_alone_train_alike_too(folder: Path) -> None:
    """Without n-grams fastText 0.9.2 has no bucket, and its small matrix was never fresh memory."""
    keys = {"output": "single.bin", "fasttext": {"word_ngrams": 1}}
    hashes = set()
    for size in (10, 10**5, 10**6):
        waste = [os.urandom(size) for _ in range(20)]
        del waste
        hashes.add(train(load_classifier(settings_of(folder, **keys)))["model"]["sha256"])
    assert len(hashes) == 1


def test_the_margin_is_that_of_the_package(folder: Path) -> None:
    model, package = load(folder / "quality.bin"), fasttext.load_model(str(folder / "quality.bin"))
    texts = [sentence(7, True), sentence(7, False), "", "。", "x", "好" * 5, "他用Python3写。" * 50]
    found = margins(model, Texts(pa.array(texts)))
    for text, margin in zip(texts, found.tolist(), strict=True):
        labels, shares = package.predict(spread(text, model.view), k=2)
        expected = dict(zip(labels, shares, strict=True))["__label__positive"]
        assert 1 / (1 + np.exp(-margin)) == pytest.approx(expected, abs=2e-5)  # it adds 1e-5


def test_a_group_of_every_text(folder: Path) -> None:
    texts = ["", "a", "。！", "的" * 200_000, "word " * 200_000, "x" * 10**6, sentence(3, True)]
    columns = {"lang": pa.array(["und"] * 6 + ["zh"])}
    found = measure(str(folder / "quality.bin"), Texts(pa.array(texts)), columns)
    assert list(found) == list(classifier.COLUMNS)
    for name in found:
        values = np.asarray(found[name])
        assert values.dtype == np.float32
        assert ((values >= 0) & (values <= 1)).all()
    assert found["score"][-1] > 0.9
    nothing = measure(
        str(folder / "quality.bin"),
        Texts(pa.array([], pa.string())),
        {"lang": pa.array([], pa.string())},
    )
    assert [len(values) for values in nothing.values()] == [0, 0]


def test_unsegmented_chinese_is_refused_with_both_numbers(folder: Path) -> None:
    path = settings_of(folder, output="raw.bin", view={"units": "raw"})
    with pytest.raises(ConfigError, match=r"0\.\d{3} \(95 % interval .* larger class in 0\.5"):
        train(load_classifier(path))
    assert not (folder / "raw.bin").exists()
    assert not (folder / "raw.json").exists()


def test_sources_and_contents_that_are_asked_for(folder: Path) -> None:
    keys = {"output": "named.bin", "heldout": {"sources": ["good-1", "bad-2"]}}
    found = train(load_classifier(settings_of(folder, **keys)))
    assert found["heldout"]["sources"] == ("bad-2", "good-1")
    keys = {"output": "content.bin", "heldout": {"by": "content"}}
    found = train(load_classifier(settings_of(folder, **keys)))
    assert found["heldout"]["by"] == "content"
    assert 80 < found["heldout"]["all"]["documents"] < 160  # a fifth of 599
    keys = {"output": "none.bin", "heldout": {"sources": ["good-9"]}}
    with pytest.raises(ConfigError, match="no source 'good-9'; there are: bad-0, "):
        train(load_classifier(settings_of(folder, **keys)))
    keys = {"output": "none.bin", "heldout": {"sources": ["good-0"]}}
    with pytest.raises(ConfigError, match="no negative text held out"):
        train(load_classifier(settings_of(folder, **keys)))


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"positive": [{"files": "none-*.jsonl"}]}, "no file matches"),
        ({"positive": [{}]}, "expected `files` or `corpus`, one of them"),
        ({"output": "quality"}, "a model ends in .bin"),
        ({"view": {"units": "words"}}, "expected 'characters', 'jieba' or 'raw'"),
        (
            {"positive": [{"corpus": "runs/web", "labels": "l.parquet", "at_least": 3}]},
            "trained on only where some were checked by hand",
        ),
        ({"positive": [{"corpus": "runs/web", "labels": "l.parquet"}]}, "go with `at_least`"),
        ({"positive": [{"corpus": "runs/web", "reviewed": "keep"}]}, "go with `at_least`"),
        ({"positive": [{"files": "a", "reviewed": "keep", "at_least": 1}]}, "are of a `corpus`"),
        (
            {"positive": [{"corpus": "c", "labels": "l", "reviewed": "keep", "at_least": 1}]},
            "give one of them",
        ),
    ],
)
def test_settings_that_cannot_be_used(folder: Path, keys: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        train(load_classifier(settings_of(folder, **{"output": "wrong.bin"} | keys)))


def test_models_that_cannot_be_used(folder: Path, tmp_path: Path) -> None:
    model = tmp_path / "other.bin"
    with pytest.raises(ValueError, match=r"other.bin: no such file; `assay classifier train`"):
        load(model)
    shutil.copy(folder / "quality.bin", model)
    with pytest.raises(ValueError, match=r"other.bin: no card .*other.json beside it"):
        load(model)
    for written, message in (
        ("{", "not readable as JSON"),
        ("[]", "is no card of kind 'classifier'"),
        ('{"kind": "classifier", "format": 9}', "format 9, this version of assay reads 1"),
        ('{"kind": "classifier", "format": 1}', "is not a whole card"),
    ):
        (tmp_path / "other.json").write_text(written)
        with pytest.raises(ValueError, match=message):
            load(model)
    shutil.copy(folder / "quality.json", tmp_path / "other.json")
    model.write_bytes(model.read_bytes()[:-1] + b"\x00")
    with pytest.raises(ValueError, match=r"is not the model that .*other.json describes"):
        load(model)
    with pytest.raises(ValueError, match=r"labels positive, negative|labels negative, positive"):
        classifier.linear(folder / "quality.bin", "hq")


def test_names_of_groups(folder: Path) -> None:
    def of(**classifiers: str) -> dict[str, Any]:
        return groups(
            CorpusSettings.model_validate(
                {"inputs": [{"source": "a", "files": "a.jsonl"}], "tokenizer": "x"}
                | {"classifiers": classifiers}
            )
        )

    assert list(of(quality="q.bin", edu="e.bin"))[-2:] == ["quality", "edu"]
    assert of(quality="/m/q.bin")["quality"].files == ("/m/q.bin", "/m/q.json")
    with pytest.raises(ConfigError, match="'gopher' is the name of another signal group"):
        of(gopher="q.bin")
    with pytest.raises(ConfigError, match="'text' is the name of a column"):
        of(text="q.bin")
    with pytest.raises(ValueError, match="a name is made of a-z, 0-9 and _"):
        of(Quality="q.bin")


def test_from_a_corpus_to_sql(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Train on a corpus, measure it, rank by several, fit the edges, see that it has not moved."""
    root = small_corpus.prepare(tmp_path)
    settings = {
        "positive": [{"corpus": "corpus", "where": "lang = 'zh'"}],
        "negative": [{"corpus": "corpus", "where": "lang = 'en'"}],
        "output": "quality.bin",
    }
    (tmp_path / "quality.yaml").write_text(json.dumps(settings))
    assert main(["classifier", "train", str(tmp_path / "quality.yaml")]) == 0
    assert "held out by content" in capsys.readouterr().out
    held = small_corpus.assay("sql", root, "select count(*) n from heldout", "--format", "csv")
    assert int(held.stdout.split()[-1]) > 0  # and these were not trained on
    trained = card(tmp_path)["data"]["sources"]
    documents = sum(sum(counts.values()) for counts in trained.values())
    assert documents == 242 - int(held.stdout.split()[-1])

    reviewed = {"corpus": "corpus", "reviewed": "keep"}
    by_people = {
        "positive": [reviewed | {"at_least": 1}],
        "negative": [reviewed | {"at_most": 0}],
        "output": "people.bin",
    }
    (tmp_path / "people.yaml").write_text(json.dumps(by_people))
    with pytest.raises(ConfigError, match="no labels of rubric keep/1; make some with `assay revi"):
        train(load_classifier(tmp_path / "people.yaml"))
    known = rows(root, "select content_hash, lang from documents where not heldout")
    said: dict[str, float | None] = {r["content_hash"]: float(r["lang"] == "zh") for r in known}
    labels.append(root, "ann", "keep/1", said)
    found = train(load_classifier(tmp_path / "people.yaml"))
    assert sum(sum(c.values()) for c in found["data"]["sources"].values()) == documents

    with open(tmp_path / "corpus.yaml", "a") as file:
        file.write("classifiers: {quality: quality.bin, other: quality.bin}\n")
    (tmp_path / "quality.json").rename(tmp_path / "aside")
    failed = small_corpus.assay("prepare", tmp_path / "corpus.yaml", check=False)
    assert failed.returncode == 2
    assert "key `classifiers.quality`: " in failed.stderr
    assert "quality.bin: no card " in failed.stderr
    (tmp_path / "aside").rename(tmp_path / "quality.json")
    small_corpus.assay("prepare", tmp_path / "corpus.yaml", "--workers", "1")
    question = (
        "select lang, round(avg(quality.score)) score, count(*) filter (where "
        "greatest(quality.percentile, other.percentile) between 0 and 1) n "
        "from documents group by all order by 1"
    )
    found = small_corpus.assay("sql", root, question, "--format", "csv")
    assert found.stdout.split() == ["lang,score,n", "en,0.0,123", "zh,1.0,121"]

    assert main(["classifier", "shift", str(root), "quality"]) == 0
    assert capsys.readouterr().out.count("\n") == 1  # no language has 200 documents
    assert main(["classifier", "edges", str(tmp_path / "quality.bin"), str(root)]) == 0
    assert "percentiles of corpus: 242 documents, *" in capsys.readouterr().out
    assert card(tmp_path)["edges"]["corpus"] == "corpus"
    assert load(tmp_path / "quality.bin").edges["*"] == card(tmp_path)["edges"]["margins"]["*"]
    assert main(["classifier", "shift", str(root), "quality"]) == 2
    assert "quality.percentile was measured with other edges than" in capsys.readouterr().err
    small_corpus.assay("prepare", tmp_path / "corpus.yaml", "--workers", "1")
    assert main(["classifier", "shift", str(root), "quality"]) == 0
    assert capsys.readouterr().out.count("\n") == 1
    assert main(["classifier", "shift", str(root), "qualty"]) == 2
    assert "no signal group 'qualty'; there are: " in capsys.readouterr().err


def test_the_example_of_the_help_is_one(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["classifier", "train", "--help"])
    told = capsys.readouterr().out
    example = told.partition("its folder):\n")[2].partition("\nexample:")[0]
    settings = check(yaml.safe_load(example), ClassifierSettings, "the help")
    assert [item.source for item in settings.positive] == [None, "wiki", None, None, None]
    assert settings.positive[-1].reviewed == settings.negative[1].reviewed == "keep"
    assert settings.negative[0].max_documents == 20_000
    assert "It refuses a model that is no better there than always saying the larger class" in told
