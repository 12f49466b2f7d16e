"""A settings error names the file, the key, the value and the nearest known key."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.config import ConfigError
from pipeline.settings import load_corpus

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
    assert "key `inputs.0.files` is missing" in message(tmp_path, nested)


def test_values_are_named_with_their_place(tmp_path: Path) -> None:
    text = message(tmp_path, GOOD + "heldout: {share: 0.9}\n")
    assert text == "key `heldout.share`: Input should be less than or equal to 0.5 (value 0.9)"
    bands = message(tmp_path, GOOD + "near: {bands: 32, rows: 8}\n")
    assert "bands x rows = 32 x 8 exceeds permutations = 128; lower one" in bands
    held = message(tmp_path, GOOD + "heldout: {min_documents: 12k}\n")
    assert "max_documents = 5000 is below min_documents = 12000; raise the one or" in held
    twice = GOOD.replace("\ntok", "\n  - {source: a, files: 'b.jsonl'}\ntok")
    assert "source 'a' stands twice; give each input its own name" in message(tmp_path, twice)


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
        "key `inputs.0.source`: a name is made of letters, digits, `.`, `_` and `-`, as in "
        "zhihu-qa (value 'a b')"
    )
    assert message(tmp_path, "inputs: []\ntokenizer: deepseek\n") == (
        "key `inputs`: expected at least one entry (value [])"
    )
