"""Merged tables answer as their parts do, and follow them."""

from __future__ import annotations

import shutil
import uuid
from pathlib import Path
from typing import Any

import kills
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline import accounts, merged, objects, prepare, ranges, runners, store
from pipeline.corpus import manifest
from pipeline.files import read_json, write_sealed
from pipeline.job import plan_job
from pipeline.settings import load_corpus
from pipeline.shards import load_shards
from pipeline.sql import ask
from pipeline.stages import Job
from pipeline.tokenizer import load

QUESTIONS = (
    "select lang, count(*), sum(num_bytes), avg(gopher.num_words), sum(num_tokens), sum(part) "
    "from documents group by 1 order by 1",
    "select source, sum(heldout::int), sum(duplicate::int), sum(near_duplicate::int) "
    "from documents group by 1 order by 1",
    "select id, meta.author, part, gopher.pass from documents order by id",
    "select reason, count(*) from rejects group by 1 order by 1",
    "select part, source, documents, bytes from shards order by all",
)


def answers(root: Path) -> list[list[dict[str, Any]]]:
    found = []
    for question in QUESTIONS:
        with ask(root, question, macros={}, timeout_seconds=60) as rows:
            found.append(rows.read_all().to_pylist())
    return found


def job_of(root: Path) -> Job:
    settings = load_corpus(root.parent / "corpus.yaml")
    return plan_job(root, settings, load(settings.tokenizer), load_shards(root))


def renewed(job: Job) -> list[str]:
    return merged.renew(job, accounts.add_up(job).hashes)


@pytest.fixture
def corpus(many_parts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy, with tables merged by three parts."""
    monkeypatch.setattr(merged, "MANY_PARTS", 2)
    monkeypatch.setattr(merged, "BLOCK_PARTS", 3)
    shutil.copytree(many_parts.parent, tmp_path, dirs_exist_ok=True)
    return tmp_path / "corpus"


def test_few_parts_are_not_merged(many_parts: Path) -> None:
    assert read_json(many_parts / "corpus.json")["merged"] == []
    assert not (many_parts / "merged").exists()


def test_merged_tables_answer_as_their_parts_do(corpus: Path) -> None:
    expected = answers(corpus)
    tables = renewed(job_of(corpus))
    write_sealed(corpus / "corpus.json", manifest(corpus) | {"merged": tables})
    assert "documents" in tables
    num_parts = len(load_shards(corpus))
    assert len(list((corpus / "merged/documents").iterdir())) == -(-num_parts // 3) > 2
    for table in ("documents", "rejects", "heldout/matches"):
        for path in (corpus / table).glob("part-*"):
            path.write_bytes(b"not read")
    assert answers(corpus) == expected


def test_a_question_about_text_reads_the_parts(corpus: Path) -> None:
    question = "select sum(length(text))::bigint as chars from documents"
    questions = (question, f"{question.removesuffix('documents')}(select * from documents)")

    def asked() -> list[list[dict[str, int]]]:
        found = []
        for question in questions:
            with ask(corpus, question, macros={}, timeout_seconds=60) as rows:
                found.append(rows.read_all().to_pylist())
        return found

    expected = asked()
    assert expected[0] == expected[1] != [{"chars": None}]
    tables = renewed(job_of(corpus))
    write_sealed(corpus / "corpus.json", manifest(corpus) | {"merged": tables})
    assert asked() == expected


def test_a_second_call_merges_what_changed(corpus: Path) -> None:
    job = job_of(corpus)
    renewed(job)
    first, second = (corpus / f"merged/rejects/part-0000{n}.parquet" for n in (0, 1))
    times = [path.stat().st_mtime_ns for path in (first, second)]
    (corpus / "merged/rejects/part-00099.parquet").write_bytes(b"of parts that are gone")
    first.unlink()
    renewed(job)
    assert first.stat().st_mtime_ns != times[0]
    assert second.stat().st_mtime_ns == times[1]
    assert not (corpus / "merged/rejects/part-00099.parquet").exists()


def test_workers_elsewhere_made_it_and_no_text_is_fetched(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"memory://{uuid.uuid4().hex}/corpus"
    monkeypatch.setenv("ASSAY_CACHE", str(tmp_path / "cache"))
    root = store.cache(url)

    def stages_elsewhere(job: Job, *_: object) -> None:
        kills.run_stages(job)
        for table in ("documents", "signals", "rejects", "tokens"):
            for path in (root / table).rglob("part-*"):
                path.unlink()

    monkeypatch.setattr(prepare, "_run", stages_elsewhere)
    settings = load_corpus(corpus.parent / "corpus.yaml").model_copy(update={"output": url})
    prepare.prepare(settings, runners.Chosen("inline", 1))
    assert not list((root / "documents").glob("part-*"))
    assert not list((root / "signals").rglob("part-*"))
    assert answers(root) == answers(corpus)


def test_of_a_part_on_a_store_the_text_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [uuid.uuid5(uuid.NAMESPACE_URL, str(n)).hex * 200 + str(n) for n in range(2_000)]
    columns = {"id": list(range(2_000)), "text": texts, "num_bytes": [len(t) for t in texts]}
    path = tmp_path / "part-00007.parquet"
    pq.write_table(pa.table(columns), path, row_group_size=500, compression="none")
    url = f"memory://{uuid.uuid4().hex}/documents/part-00007.abc.parquet"
    objects.upload(path, url)
    asked = []
    plain = ranges.Ranges._range

    def counted(self: ranges.Ranges, begin: int, end: int) -> bytes:
        asked.append(end - begin)
        return plain(self, begin, end)

    monkeypatch.setattr(ranges.Ranges, "_range", counted)
    assert merged.merge([url], tmp_path / "merged.parquet") == {"rows": 2_000}
    found = pq.read_table(tmp_path / "merged.parquet")
    assert found.column_names == ["id", "num_bytes", "part", "file_row_number"]
    assert (found["id"].to_pylist()[-1], found["part"].to_pylist()[-1]) == (1_999, 7)
    assert sum(asked) < path.stat().st_size / 10
