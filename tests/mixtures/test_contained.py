"""`unique: contained` from corpus.yaml to a mixture: of one corpus, of several, and where it was
not asked for."""

from __future__ import annotations

import functools
import random
import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import several_corpora
from several_corpora import contents
from small_corpus import assay, chinese, english

from mixtures.explain import explain
from pipeline import linked
from pipeline.config import ConfigError
from pipeline.corpus import part_paths
from pipeline.inspect import inspect
from pipeline.linked_contained import linked_contained


def rows() -> list[dict[str, str]]:
    """Tales of two languages; digests that hold some, near copies, and short pieces of some."""
    pick = random.Random(1)
    texts = [make(n) for n in range(40) for make in (english, chinese)]
    digests = ["\n\n".join(pick.sample(texts, 6)) for _ in range(5)]
    near = [f"{text} So it was." for text in pick.sample(texts, 10)]
    pieces = [text[: len(text) // 2] for text in pick.sample(texts, 10)]
    all_of = [*texts, *digests, *near, *pieces]
    pick.shuffle(all_of)
    return [{"id": str(n), "text": text} for n, text in enumerate(all_of)]


choose = functools.partial(several_corpora.choose, unique="contained")
prepare = functools.partial(several_corpora.prepare, shard_bytes=30_000)


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("contained")
    everything = rows()
    settings = {"near": {"containment": 0.9}}
    prepare(folder, "whole", everything, **settings)
    prepare(folder, "one", everything[:60], **settings)
    prepare(folder, "two", everything[60:], **settings)
    prepare(folder, "without", everything[:60])
    return folder


def test_what_longer_documents_hold_goes_after_near_duplicates(corpora: Path) -> None:
    near, both = choose(corpora, "whole", unique="near"), choose(corpora, "whole")
    (before,), (after,) = near.counts, both.counts
    assert (before.near, before.contained) == (10, 0)
    assert (after.near, after.contained) == (10, 36)
    assert after.documents == before.documents - 36
    assert contents(both) < contents(near)
    preferred = choose(corpora, "whole", prefer=["num_chars"])  # of near ones alone
    assert preferred.counts[0].contained >= 30


def test_the_view_says_the_same(corpora: Path) -> None:
    query = (
        "select count(*) filter (contained), count(*) filter (near_duplicate), "
        "count(*) filter (contained and near_duplicate), count(*) filter (contained is null) "
        "from documents"
    )
    asked = assay("sql", corpora / "whole", query, "--format", "csv").stdout.splitlines()
    assert asked[1:] == ["36,10,0,0"]
    asked = assay("sql", corpora / "without", query, "--format", "csv").stdout.splitlines()
    assert asked[1:] == ["0,3,0,60"]
    query = (
        "select bool_and(num_shingles <= holder_shingles and containment >= 0.9), "
        "count(distinct content_hash) >= 36 from contained"
    )
    asked = assay("sql", corpora / "whole", query, "--format", "csv").stdout.splitlines()
    assert asked[1:] == ["true,true"]


def test_over_two_corpora_stays_what_would_stay_of_one(corpora: Path) -> None:
    assert contents(choose(corpora, "one", "two")) == contents(choose(corpora, "whole"))
    alone = choose(corpora, "one").counts[0].documents + choose(corpora, "two").counts[0].documents
    assert alone > choose(corpora, "whole").counts[0].documents
    folder = linked_contained([corpora / "one", corpora / "two"])
    assert folder.parent == corpora / "one" / linked.FOLDER
    assert sorted(path.name for path in folder.iterdir()) == ["contained", "corpus.json"]
    tables = [
        {tuple(row.values()) for p in part_paths(f, "contained") for row in _rows(p)}
        for f in (folder, corpora / "whole")
    ]
    assert tables[0] == tables[1]
    (folder / "contained" / "part-00000.parquet").unlink()  # and is made again
    assert contents(choose(corpora, "one", "two")) == contents(choose(corpora, "whole"))


def _rows(path: Path) -> list[dict[str, Any]]:
    return pq.read_table(path).to_pylist()  # type: ignore[no-any-return]


def test_a_corpus_that_was_made_without_it_says_what_to_add(corpora: Path) -> None:
    with pytest.raises(ConfigError, match=r"add `near: {containment: 0.9}` to its corpus.yaml"):
        choose(corpora, "without")
    assert choose(corpora, "one", "without", unique="near").counts[0].contained == 0


def test_corpora_with_other_thresholds_are_refused(corpora: Path, tmp_path: Path) -> None:
    shutil.copytree(corpora, tmp_path / "all")
    prepare(tmp_path / "all", "two", rows()[60:], near={"containment": 0.8})
    with pytest.raises(ConfigError, match=r"`near: {containment}` is 0.9 in one and 0.8 in the"):
        choose(tmp_path / "all", "one", "two")
    assert choose(tmp_path / "all", "one", "two", unique="near").counts[0].documents > 0


def test_it_is_told_of_a_document_which_one_holds_it(corpora: Path) -> None:
    selection = choose(corpora, "whole")
    query = "select id from documents where contained order by id limit 1"
    (_, gone) = assay("sql", corpora / "whole", query, "--format", "csv").stdout.splitlines()
    assert gone not in {d.tobytes().hex() for d in selection.documents["whole"].id}
    found = inspect(corpora / "whole", gone)
    assert "out when what longer documents hold goes: it stands in " in "\n".join(found["verdict"])
    (first, *_) = explain(str(corpora / "mixture.yaml"), corpora / "whole", found)
    assert "% of it stands in " in first


def test_added_to_a_corpus_it_remakes_nothing_and_moves_with_its_threshold(
    corpora: Path, tmp_path: Path
) -> None:
    shutil.copytree(corpora, tmp_path / "all")
    everything = rows()[:60]
    done = prepare(
        tmp_path / "all", "without", everything, near={"containment": 0.9}, shard_bytes=30_000
    )
    assert (
        "made contained_keys 5, contained_filter 1, contained_hits 5, contained_proposals 1, "
        "contained_candidates 1, contained_shingles 5, contained 1;" in done
    )
    done = prepare(
        tmp_path / "all", "without", everything, near={"containment": 0.8}, shard_bytes=30_000
    )
    assert "made contained_candidates 1, contained_shingles 5, contained 1;" in done
    assert "all stages stand" in prepare(
        tmp_path / "all", "without", everything, shard_bytes=30_000
    )
    query = "select count(*), (select count(contained) from documents) from contained"
    asked = assay("sql", tmp_path / "all" / "without", query, "--format", "csv").stdout
    assert asked.splitlines()[1:] == ["0,0"]  # what stands there from before is not shown
    with pytest.raises(ConfigError, match="containment: 0.9"):
        choose(tmp_path / "all", "without")


def test_two_workers_write_the_same_bytes(corpora: Path, tmp_path: Path) -> None:
    for path in corpora.glob("*.json*"):
        shutil.copy(path, tmp_path)
    shutil.copy(corpora / "whole.yaml", tmp_path)
    assay("prepare", tmp_path / "whole.yaml", "--workers", "2")
    for pattern in ("contained/part-*", "joins/contained/*/part-*"):
        ours, theirs = (sorted((r / "whole").glob(pattern)) for r in (corpora, tmp_path))
        assert [p.read_bytes() for p in ours] == [p.read_bytes() for p in theirs]
        assert len(ours) == len(theirs) > 0
