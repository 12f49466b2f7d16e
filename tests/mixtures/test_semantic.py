"""`assay embed`, `assay dedup semantic` and `unique: semantic`, as a user calls them."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import small_corpus

from mixtures.select import select
from mixtures.spec import load_mixture
from pipeline import embed as embed_module
from pipeline.config import ConfigError
from pipeline.embed import embed, load
from pipeline.embeddings import embeddings, made_by
from pipeline.sql import ask

# Shares of eight letters and signs: a text and one with a sentence more are near in it.
MODEL = """
import numpy as np

def embed(texts):
    counts = [[text.count(sign) for sign in "aeiou的了在"] for text in texts]
    with open({log!r}, "a") as log:
        log.write(f"{{len(texts)}}\\n")
    return np.array(counts) - np.mean(counts, axis=1, keepdims=True)
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_corpus.prepare(tmp_path_factory.mktemp("semantic"), 60)


@pytest.fixture
def root(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path / "corpus")
    (tmp_path / "my_model.py").write_text(MODEL.format(log=str(tmp_path / "calls")))
    return tmp_path / "corpus"


def mixture(root: Path, threshold: float, where: str = "true") -> Path:
    path = root.parent / "mixture.yaml"
    path.write_text(
        f"corpora: {{tales: corpus}}\nsequence_length: 64\nunique: semantic\n"
        f"semantic: {{threshold: {threshold}}}\nprefer: [num_bytes]\n"
        f'sources: {{all: {{from: tales, where: "{where}", weight: 1}}}}\n'
    )
    return path


def _ids(root: Path) -> list[tuple[str, str]]:
    sql = "select id, content_hash from documents where not duplicate"
    with ask(root, sql, macros={}, timeout_seconds=60) as batches:
        table = batches.read_all()
    return list(zip(table["id"].to_pylist(), table["content_hash"].to_pylist(), strict=True))


def texts(root: Path, sql: str) -> list[str]:
    with ask(root, sql, macros={}, timeout_seconds=60) as batches:
        return [text for batch in batches for text in batch.column(0).to_pylist()]


def test_from_texts_to_a_mixture(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    function, by = load(f"{root.parent}/my_model.py:embed")
    monkeypatch.setattr(embed_module, "CHUNK", 50)
    num = len(set(texts(root, "select content_hash from documents")))
    assert embed(root, function, by, "semantic", 16) == num
    hashes, vectors = embeddings(root, "semantic")
    assert (len(hashes), vectors.shape) == (num, (num, 8))
    assert made_by(root, "semantic") == by
    assert by.startswith("my_model.py:embed, ")
    assert not (root / ".embedding" / "semantic").exists()
    [length] = set(texts(root, "select len(semantic.embedding) from documents"))
    assert length == 8

    by_text = dict(zip([h.hex() for h in hashes.to_pylist()], vectors, strict=True))
    chosen = texts(
        root,
        "select content_hash from documents where not heldout and not near_duplicate "
        "and not duplicate order by num_bytes, content_hash",
    )
    kept: list[np.ndarray] = []
    for content in chosen:  # rule 2 of the design, over pairs as everybody would compute them
        one = by_text[content] / np.linalg.norm(by_text[content])
        if all(one @ other < 0.99 for other in kept):
            kept.append(one)
    selection = select(load_mixture(mixture(root, 0.99)))
    assert selection.counts[0].documents == len(kept) < len(chosen)
    assert selection.counts[0].semantic == len(chosen) - len(kept)
    assert selection.counts[0].near == 1

    by_content = {hit: key for key, hit in _ids(root)}
    kept_ids = {name.tobytes().hex() for name in selection.documents["all"].id}
    gone = next(by_content[c] for c in chosen if by_content[c] not in kept_ids)
    shown = small_corpus.assay("inspect", root, gone, "--mixture", root.parent / "mixture.yaml")
    assert "out: it means the same (cosine " in shown.stdout
    assert "by `prefer: num_bytes`" in shown.stdout
    shown = small_corpus.assay("mix", root.parent / "mixture.yaml", "--tokens", "1k", "--dry-run")
    assert f"removed from all for what they mean: {len(chosen) - len(kept)} " in shown.stdout
    shown = small_corpus.assay("dedup", "semantic", root, "--documents", "20", "-n", "1")
    assert f"20 of {num} texts by lot" in shown.stdout
    assert "semantic: {threshold: 0.95, group: semantic}" in shown.stdout


def test_what_was_embedded_is_not_embedded_again(root: Path) -> None:
    function, by = load(f"{root.parent}/my_model.py:embed")
    num = embed(root, function, by, "semantic", 32)
    calls = root.parent / "calls"
    assert sum(map(int, calls.read_text().split())) == num
    assert embed(root, function, by, "semantic", 32) == 0
    assert sum(map(int, calls.read_text().split())) == num
    with pytest.raises(ConfigError, match="this function is other.py:f, 0; give another --name"):
        embed(root, function, "other.py:f, 0", "semantic", 32)
    assert embed(root, function, "other.py:f, 0", "semantic", 32, replace=True) == num


def test_a_killed_call_goes_on(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    function, by = load(f"{root.parent}/my_model.py:embed")
    monkeypatch.setattr(embed_module, "CHUNK", 20)
    asked = 0

    def dies(some: list[str]) -> np.ndarray:
        nonlocal asked
        asked += len(some)
        if asked > 50:
            raise RuntimeError("out of memory")
        return np.asarray(function(some))

    with pytest.raises(RuntimeError):
        embed(root, dies, by, "semantic", 10)
    num = len(set(texts(root, "select content_hash from documents")))
    assert embed(root, function, by, "semantic", 10) == num - 40  # two chunks stood
    whole, vectors = embeddings(root, "semantic")
    shutil.rmtree(root / "attached")
    embed(root, function, by, "semantic", 64)
    again, other = embeddings(root, "semantic")
    assert whole.equals(again)
    assert (vectors == other).all()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (lambda texts: np.zeros(len(texts)), r"array of shape \(8,\); expected \[8, dimensions\]"),
        (lambda texts: np.zeros((1, 4)), r"shape \(1, 4\)"),
        (lambda texts: np.full((len(texts), 4), np.nan), "with NaN or infinity"),
        (lambda texts: ["a"] * len(texts), "gave list, which is no array of numbers"),
        (lambda texts: np.zeros((len(texts), len(texts[0]))), r"gave \d+ dimensions, before it \d"),
    ],
)
def test_what_a_function_may_not_give(root: Path, given: object, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        embed(root, given, "x", "semantic", 8)  # type: ignore[arg-type]


def test_a_forgotten_text_has_no_vector_again(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    function, by = load(f"{root.parent}/my_model.py:embed")
    [content] = texts(root, "select content_hash from documents where not heldout limit 1")
    monkeypatch.setattr(embed_module, "attach", None)  # killed when all was embedded
    with pytest.raises(TypeError):
        embed(root, function, by, "semantic", 64)
    assert list((root / ".embedding" / "semantic").glob("*.parquet"))
    monkeypatch.undo()
    where = f"content_hash = '{content}'"
    small_corpus.assay("forget", root, "--where", where, "--reason", "asked", "--delete")
    assert not (root / ".embedding").exists()
    file = root.parent / "vectors.parquet"
    vectors = pa.table({"content_hash": [content, "0" * 32], "embedding": [[1.0], [0.0]]})
    pq.write_table(vectors, file)
    done = small_corpus.assay("attach", root, file, "--on", "content_hash", check=False)
    assert "none the content_hash of a document" in done.stderr


def test_mistakes(root: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="has no embeddings 'semantic'; make them with `assay"):
        select(load_mixture(mixture(root, 0.9)))
    with pytest.raises(ConfigError, match=r"--with .*nothing.py: no such file"):
        load("nothing.py:embed")
    with pytest.raises(ConfigError, match="has no function 'other'"):
        load(f"{root.parent}/my_model.py:other")
    path = mixture(root, 0.9)
    path.write_text(path.read_text().replace("semantic: {threshold: 0.9}\n", ""))
    with pytest.raises(ConfigError, match="`assay dedup semantic CORPUS` shows pairs by cosine"):
        load_mixture(path)


def test_a_text_without_embedding_stops_the_plan(root: Path) -> None:
    function, by = load(f"{root.parent}/my_model.py:embed")
    embed(root, function, by, "semantic", 64)
    file = root.parent / "some.parquet"
    table = pq.read_table(root / "attached" / "semantic.parquet")
    pq.write_table(table.slice(10), file)
    small_corpus.assay(
        "attach", root, file, "--on", "content_hash", "--name", "semantic", "--replace"
    )
    with pytest.raises(ConfigError, match=r"\d+ texts of corpus 'tales' have no embedding"):
        select(load_mixture(mixture(root, 0.9)))
