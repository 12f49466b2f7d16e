"""`assay prepare` onto S3 and GCS, `sql` and `mix` from them: the same bytes as on a disk."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import small_corpus
import xxhash
from gs_server import gs_bucket
from s3_server import s3_bucket
from small_corpus import assay

from mixtures.select import select
from mixtures.spec import load_mixture
from mixtures.tokens import TokenShards, tokenizer_of
from pipeline import store
from pipeline.sql import ask

TABLES = "documents signals tokens rejects pairs clusters heldout joins heldout.json"
MIXTURE = """corpora: {{web: {url}}}
sequence_length: 64
sources: {{all: {{from: web}}}}
"""


@pytest.fixture(params=["s3", "gs"])
def bucket(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    with (s3_bucket if request.param == "s3" else gs_bucket)() as url:
        monkeypatch.setenv("ASSAY_CACHE", str(tmp_path / "cache"))
        yield url


def hashes(root: Path) -> dict[str, str]:
    """Of every data file of a corpus that no time stands in."""
    files = [p for t in TABLES.split() for p in (root / t, *(root / t).rglob("*")) if p.is_file()]
    return {
        str(path.relative_to(root)): xxhash.xxh3_64_hexdigest(path.read_bytes()) for path in files
    }


def test_a_corpus_on_a_store(bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    local = small_corpus.prepare(tmp_path / "local", documents=60)
    settings = local.parent / "corpus.yaml"
    settings.write_text(settings.read_text().replace("output: corpus", f"output: {bucket}/corpus"))
    assert "made ingest 2" in assay("prepare", settings, "--workers", "2").stdout
    assert hashes(store.cache(f"{bucket}/corpus")) == hashes(local)

    monkeypatch.setenv("ASSAY_CACHE", str(tmp_path / "another machine"))
    assert "nothing to do" in assay("prepare", settings).stdout
    fetched = store.folder(f"{bucket}/corpus")
    query = "select count(*), sum(num_tokens) from documents"
    assert answer(fetched, query) == answer(local, query)
    assert not (fetched / "joins").exists(), "what nobody asked for"
    assert selected(tmp_path, f"{bucket}/corpus") == selected(tmp_path, str(local))


def answer(root: Path, query: str) -> list[object]:
    with ask(root, query, macros={}, timeout_seconds=60) as rows:
        return rows.read_all().to_pylist()


def selected(folder: Path, place: str) -> list[bytes]:
    """Ids of the documents of a mixture, and the lengths of those of the first part."""
    path = folder / "mixture.yaml"
    path.write_text(MIXTURE.format(url=place))
    mixture = load_mixture(path)
    root = Path(mixture.corpora["web"])
    ids = [document.tobytes() for document in select(mixture).documents["all"].id]
    return [*ids, TokenShards(root, tokenizer_of([root])).lengths(0).tobytes()]
