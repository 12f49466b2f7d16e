"""`assay tokenize`: another tokenizer beside the first, and mixtures that choose it."""

from __future__ import annotations

import itertools
import json
import shutil
from pathlib import Path

import kills
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import small_corpus
import tokenizers

from mixtures.plan import make_plan
from mixtures.spec import load_mixture
from mixtures.tokens import TokenShards, tokenizer_of, tokens_fingerprint
from pipeline import added_tokenizers, damage
from pipeline.config import ConfigError
from pipeline.corpus import CorpusError, manifest
from pipeline.tokenizer_commands import train

MIXTURE = """
corpora: {{c: corpus}}
sequence_length: 32
tokenizer: {}
sources: {{all: {{from: c}}}}
"""


@pytest.fixture(scope="module")
def corpus(many_parts: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With a second tokenizer, `other`; made once, copied by tests that change it."""
    folder = tmp_path_factory.mktemp("beside")
    shutil.copytree(many_parts.parent, folder, dirs_exist_ok=True)
    train([small_corpus.english(1), small_corpus.chinese(1)], 300, folder / "other.json")
    done = small_corpus.assay(
        "tokenize", folder / "corpus", "--tokenizer", folder / "other.json", "--workers", "1"
    )
    assert done.stdout.splitlines()[1].split()[0] == "other"
    return folder / "corpus"


def _texts(root: Path) -> list[list[str]]:
    paths = sorted((root / "documents").glob("part-*"))
    return [pq.read_table(path, columns=["text"])["text"].to_pylist() for path in paths]


def test_each_document_has_the_tokens_of_both(corpus: Path) -> None:
    reader = tokenizers.Tokenizer.from_file(str(corpus.parent / "other.json"))
    shards = TokenShards(corpus, tokenizer_of([corpus], "other"))
    for part, texts in enumerate(_texts(corpus)):
        found = [
            ids[a:b].tolist()
            for ends, ids in shards.batches(part)
            for a, b in itertools.pairwise(ends)
        ]
        assert [reader.decode(row, skip_special_tokens=False) for row in found] == [
            text + "<|endoftext|>" for text in texts
        ]
    assert shards.vocab_size == 300
    assert TokenShards(corpus, tokenizer_of([corpus])).vocab_size == 600


def test_text_and_first_tokens_are_as_they_were(corpus: Path, many_parts: Path) -> None:
    first = manifest(many_parts)["tokenizer"]["hash"]
    for table in ("documents", f"tokens/{first}"):
        for path in (many_parts / table).glob("part-*"):
            assert (corpus / table / path.name).read_bytes() == path.read_bytes()
    known = manifest(many_parts)
    found = manifest(corpus)
    assert {k: v for k, v in found.items() if k not in ("tokenizers", "stages")} == {
        k: v for k, v in known.items() if k not in ("tokenizers", "stages")
    }
    assert tokens_fingerprint(corpus, first) == known["stages"]["tokens"]["fingerprint"]
    damage.require_whole(corpus)


def test_a_mixture_reads_the_tokenizer_that_it_names(corpus: Path) -> None:
    (corpus.parent / "own.yaml").write_text(MIXTURE.format("null"))
    (corpus.parent / "other.yaml").write_text(MIXTURE.format("other"))
    own = make_plan(corpus.parent / "own.yaml", 640)
    other = make_plan(corpus.parent / "other.yaml", 640)
    assert (own.vocab_size, other.vocab_size) == (600, 300)
    assert own.sources[0].documents == other.sources[0].documents
    assert own.sources[0].num_tokens < other.sources[0].num_tokens
    assert own.fingerprint != other.fingerprint
    part = Path(other.sources[0].folder) / "part-00000.arrow"
    windows = pa.ipc.open_file(pa.memory_map(str(part))).read_all()
    ids = np.concatenate([row.values.to_numpy() for row in windows["ids"][:5]])
    reader = tokenizers.Tokenizer.from_file(other.tokenizer_file)
    joined = "".join(text for texts in _texts(corpus) for text in texts)
    for text in reader.decode(ids.tolist(), skip_special_tokens=False).split("<|endoftext|>")[1:-1]:
        assert text in joined


def test_refusals(corpus: Path) -> None:
    (corpus.parent / "wrong.yaml").write_text(MIXTURE.format("othe"))
    with pytest.raises(ConfigError, match=r"no tokens of 'othe', but of .* other \([0-9a-f]{16}\)"):
        make_plan(corpus.parent / "wrong.yaml", 640)
    first = small_corpus.assay(
        "tokenize", corpus, "--tokenizer", corpus.parent / "tokenizer.json", check=False
    )
    assert "is the first tokenizer of" in first.stderr
    train([small_corpus.english(1)], 310, corpus.parent / "more/other.json")
    taken = small_corpus.assay(
        "tokenize", corpus, "--tokenizer", corpus.parent / "more/other.json", check=False
    )
    assert "give it another --name" in taken.stderr
    assert load_mixture(corpus.parent / "other.yaml").tokenizer == "other"


def test_a_killed_call_goes_on_and_prepare_keeps_it_current(corpus: Path, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(corpus.parent, folder)
    root = folder / "corpus"
    identity = tokenizer_of([root], "other")
    ids = root / "tokens" / identity / "part-00001.arrow"
    before = ids.read_bytes()
    ids.unlink()
    (root / "stats/tokens" / identity / "part-00001.json").unlink()
    argv = ("tokenize", root, "--tokenizer", folder / "other.json", "--workers", "1")
    assert f"made 1 part of tokens/{identity}" in small_corpus.assay(*argv).stderr
    assert ids.read_bytes() == before

    with open(folder / "en.jsonl", "a") as file:
        file.write(json.dumps({"text": small_corpus.english(777)}) + "\n")
    stale = small_corpus.assay("prepare", folder / "corpus.yaml", "--refresh", "--workers", "1")
    assert f"tokens/{identity} 1" in stale.stdout
    totals = {
        k: v["totals"]["documents"] for k, v in manifest(root)["stages"].items() if "tok" in k
    }
    assert set(totals.values()) == {manifest(root)["stages"]["ingest"]["totals"]["documents"]}

    dropped = small_corpus.assay("tokenize", root, "--drop", "other")
    assert len(dropped.stdout.splitlines()) == 1
    assert added_tokenizers.listed(root) == ()
    assert "token ids of a former tokenizer" in small_corpus.assay("gc", folder).stdout


def test_sigkill_at_any_rename_leaves_the_same_bytes(
    corpus: Path, many_parts: Path, tmp_path: Path
) -> None:
    """Before, in the middle of and after a file: 1, 6, 11, ... moments after the start."""
    root, told = tmp_path / "corpus", tmp_path / "told"
    shutil.copytree(many_parts, root)
    moments = itertools.count(1, 5)
    while not kills.tokenized_or_killed(root, corpus.parent / "other.json", next(moments), told):
        pass
    halves = [line.split()[0] for line in told.read_text().splitlines()]
    assert set(halves) == {"before", "middle", "after"}
    identity = tokenizer_of([root], "other")
    for folder in (f"tokens/{identity}", f"tokens/{identity}/counts"):
        made = {path.name: path.read_bytes() for path in (root / folder).glob("part-*")}
        assert made == {p.name: p.read_bytes() for p in (corpus / folder).glob("part-*")}
        assert len(made) == len(_texts(root))
    assert [path for path in root.rglob("*") if ".tmp" in path.name] == []
    damage.require_whole(root)


def test_the_slow_engine_says_why(corpus: Path, tmp_path: Path) -> None:
    root, own = tmp_path / "corpus", tmp_path / "han.json"
    shutil.copytree(corpus, root)
    spec = json.loads((corpus.parent / "other.json").read_text("utf-8"))
    spec["pre_tokenizer"]["pretokenizers"][0]["pattern"] = {"Regex": r"\p{Han}+|\P{Han}+"}
    own.write_text(json.dumps(spec), "utf-8")
    done = small_corpus.assay("tokenize", root, "--tokenizer", own, "--workers", "1")
    (line,) = (line for line in done.stderr.splitlines() if line.startswith("tokenizer "))
    assert line == (
        f"tokenizer {own}: encoded by `tokenizers`, 15 to 80 times slower than fastokens; "
        "fastokens does not read this tokenizer (splitting rule "
        "'\\\\p{Han}+|\\\\P{Han}+' names a script; "
        "fastokens misreads it); a tokenizer with a rule of `assay tokenizer train --rule` is fast"
    )
    assert done.stdout.splitlines()[1].endswith(", uint16, tokenizers")


def test_documents_of_another_version_are_refused(corpus: Path, tmp_path: Path) -> None:
    root = tmp_path / "corpus"
    shutil.copytree(corpus, root)
    record = root / "stats/ingest/part-00000.json"
    record.write_text(record.read_text().replace('"fingerprint": "', '"fingerprint": "0'))
    train([small_corpus.english(1)], 320, tmp_path / "third.json")
    found = small_corpus.assay(
        "tokenize", root, "--tokenizer", tmp_path / "third.json", check=False
    )
    assert "call `assay prepare` first" in found.stderr
    assert CorpusError.__name__ not in found.stderr
