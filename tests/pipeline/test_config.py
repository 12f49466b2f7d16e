"""A settings error names the file, the key, the value and the nearest known key."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pytest

from mixtures.spec import Mixture, load_mixture
from pipeline import commands
from pipeline.amounts import Amount
from pipeline.config import KINDS, ConfigError, Settings, _known_keys, check, load
from pipeline.dedup_settings import Near
from pipeline.learned.settings import ClassifierSettings
from pipeline.settings import CorpusSettings, load_corpus
from trainer.ablation.study import StudySettings
from trainer.settings import RunSettings

GOOD = "inputs:\n  - {source: a, files: 'a.jsonl'}\ntokenizer: deepseek\n"


def message(tmp_path: Path, text: str) -> str:
    path = tmp_path / "corpus.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_corpus(path)
    assert list(tmp_path.iterdir()) == [path], "a refused file leaves nothing behind"
    return str(caught.value).removeprefix(f"{path}: ")


def test_unknown_keys_name_the_nearest(tmp_path: Path) -> None:
    assert message(tmp_path, GOOD + "langauges: [zh]\n") == (
        "unknown key `langauges` (value ['zh']); did you mean `languages`?"
    )
    nested = GOOD.replace("files:", "file:")
    assert "did you mean `files`?" in message(tmp_path, nested)
    assert "key `inputs.1st.files` is missing" in message(tmp_path, nested)


def test_values_are_named_with_their_place(tmp_path: Path) -> None:
    text = message(tmp_path, GOOD + "heldout: {share: 0.9}\n")
    assert text == "key `heldout.share`: expected 0.5 or less (value 0.9)"
    bands = message(tmp_path, GOOD + "near: {bands: 32, rows: 8}\n")
    assert "bands x rows = 32 x 8 exceeds permutations = 128; lower one" in bands
    lowest = message(tmp_path, GOOD + "near: {threshold: 0.01}\n")
    assert lowest.startswith("128 values find a pair at a Jaccard of 0.01 with probability 0.724")
    held = message(tmp_path, GOOD + "heldout: {min_documents: 12k}\n")
    assert "max_documents = 5000 is below min_documents = 12000; raise the one or" in held
    twice = GOOD.replace("\ntok", "\n  - {source: a, files: 'b.jsonl'}\ntok")
    assert "source 'a' stands twice; give each input its own name" in message(tmp_path, twice)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (
            "heldout: {share: 5%}",
            "`heldout.share`: expected a number, as in 0.05, which is 5 % (val",
        ),
        ("near: {bands: 1.5}", "`near.bands`: expected a whole number, as in 64 (value 1.5)"),
        ("languages: [no]", "expected text; what YAML takes for something else needs quotes, as"),
        ("languages: {zh: 1.5}", "`languages.zh`: expected 1.0 or less (value 1.5)"),
        ("languages: {en: 65%}", "`languages.en`: expected a number, as in 0.05, which is 5 % (v"),
        ("languages: zh", "`languages`: expected a list, as in `[a, b]` (value 'zh')"),
        ("shard_bytes: 500", "`shard_bytes`: expected 1,000 or more (value 500)"),
        ("near: {threshold: 0}", "`near.threshold`: expected more than 0.0 (value 0)"),
        ("extractor: trafiltura", "'resiliparse' or 'trafilatura'; did you mean `trafilatura`?"),
    ],
)
def test_what_is_expected_is_said_with_an_example(tmp_path: Path, line: str, told: str) -> None:
    found = message(tmp_path, f"{GOOD}{line}\n")
    assert told in found
    assert "Input should" not in found


class Either(Settings):
    every: Literal["final"] | Amount
    sets: Literal["all"] | tuple[int, ...] = "all"


def test_a_key_that_may_be_this_or_that_has_one_message() -> None:
    with pytest.raises(ConfigError) as caught:
        check({"every": "finl", "sets": [1, "x"]}, Either, "a.yaml")
    assert str(caught.value).splitlines() == [
        "a.yaml: key `every`: not an amount: 'finl'; write 500000, 500k, 2M or 1.5B; or 'final'; "
        "did you mean `final`? (value 'finl')",
        "a.yaml: key `sets.2nd`: expected a whole number, as in 64 (value 'x')",
        "a.yaml: key `sets`: expected 'all' (value [1, 'x'])",
    ]


def test_a_key_that_stands_twice_is_refused(tmp_path: Path) -> None:
    assert message(tmp_path, GOOD + "languages: [zh]\noutput: a\nlanguages: [en]\n") == (
        "not readable as YAML: line 6, column 1: key `languages` stands twice, first in line 4; "
        "keep one"
    )
    inner = message(tmp_path, GOOD + "near: {bands: 2, bands: 3}\n")
    assert "line 4, column 18: key `bands` stands twice, first in line 4" in inner
    path = tmp_path / "merged.yaml"
    path.write_text("a: &a {x: 1, y: &y {z: 1}}\nb: {<<: *a, x: 2, y: {<<: *y, z: 2}}\n")
    merged = load(path, AnyPair)
    assert merged.b == {"x": 2, "y": {"z": 2}}, "what `<<` brings may be replaced"


class AnyPair(Settings):
    a: dict[str, Any]
    b: dict[str, Any]


def test_a_folder_instead_of_a_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load_corpus(tmp_path)
    assert str(caught.value) == (
        f"{tmp_path}: a folder; expected a YAML file, which names it: README.md shows one of each "
        "kind"
    )
    (tmp_path / "my.yaml").write_text(GOOD)
    with pytest.raises(ConfigError, match=r": a folder; expected a YAML file, as .*/my.yaml"):
        load_corpus(tmp_path)


def test_not_yaml_not_a_mapping_not_there(tmp_path: Path) -> None:
    assert "not readable as YAML" in message(tmp_path, "inputs: [")
    assert "expected `key: value` lines, found str" in message(tmp_path, "inputs")
    assert "expected `key: value` lines, found nothing" in message(tmp_path, "")
    with pytest.raises(ConfigError, match="nowhere.yaml: no such file"):
        load_corpus(tmp_path / "nowhere.yaml")


def test_a_missing_tokenizer_names_the_command_that_makes_it(tmp_path: Path) -> None:
    text = message(tmp_path, GOOD.replace("deepseek", "mine.json"))
    assert "assay tokenizer train" in text
    assert "mine.json" in text


def test_what_else_is_wrong_is_told_with_a_missing_tokenizer(tmp_path: Path) -> None:
    text = GOOD.replace("deepseek", "mine.json") + "signals: [default, adds]\n"
    (tmp_path / "corpus.yaml").write_text(text)
    with pytest.raises(ConfigError) as caught:
        commands.prepare([str(tmp_path / "corpus.yaml")])
    told = str(caught.value).splitlines()
    assert "no such file" in told[0]
    assert "did you mean 'ads'" in told[1]
    assert "a.jsonl" in told[2]
    assert len(told) == 3


def test_a_file_of_another_kind_is_told_in_one_line(tmp_path: Path) -> None:
    mixture = "corpora: {a: b}\nsources: {x: {from: a}}\nsequence_length: 8\n"
    assert message(tmp_path, mixture) == (
        "this is a mixture.yaml, for `assay mix`, and what takes a mixture: it has `corpora` and "
        "`sources`; expected a corpus.yaml, with `inputs` and `tokenizer`"
    )
    run = "mixture: m.yaml\nmodel: 1M\ntokens: 1M\n"
    assert "this is a run.yaml, for `assay train`" in message(tmp_path, run)
    (tmp_path / "mixture.yaml").write_text(GOOD)
    with pytest.raises(
        ConfigError, match="mixture.yaml: this is a corpus.yaml, for `assay prepare`"
    ):
        load_mixture(tmp_path / "mixture.yaml")


def test_the_files_of_each_kind_are_known_by_their_keys() -> None:
    models = (CorpusSettings, Mixture, RunSettings, StudySettings, ClassifierSettings)
    for (kind, (needed, _)), model in zip(KINDS.items(), models, strict=True):
        assert set(needed) <= set(_known_keys(model, ())), kind
        required = {k for k, field in model.model_fields.items() if field.is_required()}
        assert set(needed) <= required, kind


def test_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    (tmp_path / "corpus.yaml").write_text(GOOD)
    settings = load_corpus(tmp_path / "corpus.yaml")
    assert settings.inputs[0].files == str(tmp_path / "a.jsonl")
    assert settings.output == str(tmp_path / "runs" / "corpus")


def test_paths_may_name_environment_variables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAW", "/raw")
    path = tmp_path / "corpus.yaml"
    path.write_text(GOOD.replace("a.jsonl", "$RAW/a.jsonl"))
    assert load_corpus(path).inputs[0].files == "/raw/a.jsonl"
    monkeypatch.delenv("RAW")
    text = message(tmp_path, GOOD.replace("a.jsonl", "$RAW/a.jsonl"))
    assert text == "'$RAW/a.jsonl' names an environment variable that is not set"


def test_messages_speak_of_yaml_and_come_once(tmp_path: Path) -> None:
    assert message(tmp_path, "inputs: {source: a}\ntokenizer: deepseek\n") == (
        "key `inputs`: expected a list, as in `[a, b]`"
    )
    assert message(tmp_path, GOOD.replace("source: a", "source: a b")) == (
        "key `inputs.1st.source`: a name is made of A-Z, a-z, 0-9, `.`, `_` and `-`, as in "
        "zhihu-qa (value 'a b')"
    )
    assert message(tmp_path, "inputs: []\ntokenizer: deepseek\n") == (
        "key `inputs`: expected at least one entry (value [])"
    )


def test_bands_and_rows_follow_from_the_threshold() -> None:
    chosen = {(near.bands, near.rows) for near in (Near(), Near(threshold=0.8))}
    assert chosen == {(21, 6)}
    assert Near(threshold=0.9) == Near(threshold=0.9, bands=13, rows=9)
    assert Near(permutations=256) == Near(permutations=256, bands=27, rows=7)
