from __future__ import annotations

import json
import random
from pathlib import Path

import pyarrow as pa
import pytest
import tokenizers

from pipeline import tokenizer as tok
from pipeline import tokenizer_commands as commands
from pipeline.config import ConfigError
from pipeline.settings import Tokenizer

TEXTS = ["the cat sat on the mat, 12345 times. " * 20, "今天天气很好，我们去公园。" * 20, "", "😀"]


def test_trained_tokenizer_is_deterministic_and_fast(tmp_path: Path) -> None:
    path = tmp_path / "deep/tokenizer.json"
    assert commands.train(TEXTS, 300, path) == 300
    first = path.read_bytes()
    assert commands.train(TEXTS, 300, path) == 300
    assert path.read_bytes() == first
    assert tok.choose_engine(path, TEXTS) == "fastokens"
    encoder = tok.load(Tokenizer(file=str(path)), "fastokens")
    assert (encoder.eos_id, encoder.bos_id, encoder.vocab_size) == (0, None, 300)
    ids, offsets, literals = encoder.encode(pa.array([*TEXTS, "<|endoftext|>"]))
    reader = tokenizers.Tokenizer.from_file(str(path))
    for i, text in enumerate([*TEXTS, "<|endoftext|>"]):
        row = ids[offsets[i] : offsets[i + 1]].tolist()
        assert row[-1] == 0
        assert 0 not in row[:-1]
        assert reader.decode(row[:-1], skip_special_tokens=False) == text
    assert literals.tolist() == [0, 0, 0, 0, 1]
    assert [p.name for p in path.parent.iterdir()] == ["tokenizer.json"]


def test_digits_come_in_threes(tmp_path: Path) -> None:
    commands.train(["123456789 " * 50], 400, tmp_path / "t.json")
    tokenizer = tokenizers.Tokenizer.from_file(str(tmp_path / "t.json"))
    assert tokenizer.encode("1234567").tokens == ["123", "456", "7"]


def test_sample_is_a_set_by_hash_whatever_the_order() -> None:
    documents = [(str(i).encode(), f"document {i} " * (i % 7)) for i in range(500)]
    expected = commands.sample(documents, 3_000)
    total = sum(len(text) for text in expected)
    assert 3_000 <= total < 3_000 + 7 * 13
    shuffled = documents.copy()
    random.Random(1).shuffle(shuffled)
    assert commands.sample(shuffled, 3_000) == expected
    smaller = commands.sample(documents, 1_000)
    assert expected[: len(smaller)] == smaller  # samples nest
    assert len(commands.sample(documents, 10**9)) == 500


@pytest.mark.parametrize(
    ("text", "value"), [("50MB", 50_000_000), ("1.5GB", 1_500_000_000), ("9", 9), ("2 kB", 2_000)]
)
def test_parse_bytes(text: str, value: int) -> None:
    assert commands.parse_bytes(text) == value


def test_refusals(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="'much' is not a size; write 500kB"):
        commands.parse_bytes("much")
    with pytest.raises(ConfigError, match=r"--vocab-size 100 .* at least 257"):
        commands.train(TEXTS, 100, tmp_path / "t.json")
    assert list(tmp_path.iterdir()) == []


def test_the_verb_reads_inputs_before_the_tokenizer_exists(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [json.dumps({"text": f"line {i}\r\n你好，世界 {i}"}) for i in range(50)]
    lines.insert(3, "{broken")
    (tmp_path / "a.jsonl").write_text("\n".join(lines), encoding="utf-8")
    (tmp_path / "corpus.yaml").write_text(
        "inputs: [{source: a, files: '*.jsonl'}]\ntokenizer: own.json\n", encoding="utf-8"
    )
    output = tmp_path / "own.json"
    argv = ["train", str(tmp_path / "corpus.yaml"), "--vocab-size", "300", "--output", str(output)]
    assert commands.main(argv) == 0
    printed = capsys.readouterr()
    assert printed.out == f"wrote {output}: 300 entries\n"
    assert printed.err == "training on 50 documents, 0.0 MB\n"
    assert "\r" not in json.loads(output.read_text("utf-8"))["model"]["vocab"]
    assert tok.load(Tokenizer(file=str(output))).vocab_size == 300
