from __future__ import annotations

import json
import random
from pathlib import Path

import pyarrow as pa
import pytest
import small_corpus
import tokenizers

from pipeline import tokenizer as tok
from pipeline import tokenizer_commands as commands
from pipeline.config import ConfigError
from pipeline.settings import Tokenizer
from pipeline.tokenizer_files import SPLITS
from pipeline.tokenizer_sample import as_lines, draw, parse_shares, taken

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


@pytest.mark.parametrize("rule", list(SPLITS))
def test_fast_engines_know_every_rule(rule: str, tmp_path: Path) -> None:
    texts = [*TEXTS, "It's 12345 x\u0301 \u00c9t\u00e9 HTTPServer\r\n\n  a/b \u1e9e\u0665 \ufdfa"]
    commands.train(texts, 320, tmp_path / "t.json", rule)
    content = (tmp_path / "t.json").read_text("utf-8")
    (split, _) = json.loads(content)["pre_tokenizer"]["pretokenizers"]
    assert split["pattern"]["Regex"] == SPLITS[rule]
    assert tok.choose_engine(tmp_path / "t.json", texts) == "fastokens"


def _taken(found: list[tuple[bytes, str, str]], num_bytes: int) -> list[str]:
    return [text for *_, text in taken(draw(found, num_bytes, None))]


def test_sample_is_a_set_by_hash_whatever_the_order() -> None:
    documents = [(str(i).encode(), "a", f"document {i} " * (i % 7)) for i in range(500)]
    expected = _taken(documents, 3_000)
    total = sum(len(text) for text in expected)
    assert 3_000 <= total < 3_000 + 7 * 13
    shuffled = documents.copy()
    random.Random(1).shuffle(shuffled)
    assert _taken(shuffled, 3_000) == expected
    smaller = _taken(documents, 1_000)
    assert expected[: len(smaller)] == smaller  # samples nest
    assert len(_taken(documents, 10**9)) == 500


def test_shares_are_of_bytes_within_each_language() -> None:
    """9 of 10 documents are English; the sample is half Chinese all the same."""
    found = [(f"en{i}".encode(), "a", small_corpus.english(i)) for i in range(90)]
    found += [(f"zh{i}".encode(), "bc"[i % 2], small_corpus.chinese(i)) for i in range(10)]
    found.append((b"code", "d", "\n".join("0123456789" for _ in range(100))))  # und
    drawn = draw(found, 8_000, {"zh": 0.5, "en": 0.5})
    assert list(drawn) == ["zh", "en"]
    largest = 4 * 1_000  # one document
    for name, lowest in drawn.items():
        assert {document.language for document in lowest.documents()} == {name}
        assert 4_000 <= lowest.num_bytes < 4_000 + largest
    assert draw(found[::-1], 8_000, {"zh": 0.5, "en": 0.5})["zh"].keyed() == drawn["zh"].keyed()
    assert {
        document.source for document in draw(found, 10**6, {"other": 1})["other"].documents()
    } == {*("a", "b", "c", "d")}
    (rest,) = draw(found, 10**6, {"zh": 0.5, "en": 0.4, "other": 0.1})["other"].documents()
    assert (rest.language, rest.source) == ("und", "d")


def test_a_language_that_has_too_little_is_told() -> None:
    found = [(b"1", "a", "the cat sat on the mat " * 50), (b"2", "b", "今天天气很好" * 50)]
    assert list(as_lines(draw(found, 4_000, {"en": 0.25, "zh": 0.75}))) == [
        "  en     a                            1      0.00 MB  56.1%",
        "  zh     b                            1      0.00 MB  43.9%",
        "  the inputs have 0.00 MB of zh, not 0.00: its share is 43.9% instead of 75.0%; "
        "`--sample 0.0012MB` has it",
    ]
    assert "take it out of --shares" in list(as_lines(draw(found, 40, {"en": 0.5, "ja": 0.5})))[-1]


def test_shares_are_normalized_or_refused() -> None:
    assert parse_shares("zh=2, en=1,other=1") == {"zh": 0.5, "en": 0.25, "other": 0.25}
    for wrong, message in {
        "zh": "'zh': write zh=0.5,en=0.5",
        "zh=0,en=1": "'zh=0': .* a number above 0",
        "zh=nan": "a number above 0",
        "cn=1": "no language 'cn'; write it as column `lang` does",
        "zh=1,zh=2": "zh stands twice",
    }.items():
        with pytest.raises(ConfigError, match=message):
            parse_shares(wrong)


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
    first, *groups = printed.err.splitlines()
    assert first == "training on 50 documents, 0.0 MB"
    assert sum(int(line.split()[2]) for line in groups) == 50
    assert "\r" not in json.loads(output.read_text("utf-8"))["model"]["vocab"]
    assert tok.load(Tokenizer(file=str(output))).vocab_size == 300
    shares = [*argv, "--overwrite", "--rule", "qwen", "--shares", "zh=1,ja=1"]
    assert commands.main(shares) == 0
    assert "the inputs have 0.00 MB of ja" in capsys.readouterr().err
    with pytest.raises(ConfigError, match="no text to train on in ja; give other --shares"):
        commands.main([*argv, "--overwrite", "--shares", "ja=1"])
