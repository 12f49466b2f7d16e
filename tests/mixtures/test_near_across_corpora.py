"""`unique: near` over several corpora keeps what it would keep if they were one."""

from __future__ import annotations

import functools
import random
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import several_corpora
from several_corpora import contents, prepare
from small_corpus import chinese, english

from pipeline import linked
from pipeline.config import ConfigError
from pipeline.corpus import CorpusError

choose = functools.partial(several_corpora.choose, prefer=["num_chars desc"])


def rows(seed: int) -> list[dict[str, str]]:
    """Texts of two languages, a third of them near copies of others, some exact ones."""
    pick = random.Random(seed)
    texts = [make(n) for n in range(40) for make in (english, chinese)]
    texts += [f"{text} So it was {n}." for n, text in enumerate(pick.sample(texts, 30))]
    texts += pick.sample(texts, 10)
    pick.shuffle(texts)
    return [{"id": str(n), "text": text} for n, text in enumerate(texts)]


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("across")
    everything = rows(3)
    prepare(folder, "whole", everything)
    prepare(folder, "one", everything[:70])
    prepare(folder, "two", everything[70:])
    return folder


def test_what_stays_is_what_would_stay_of_one_corpus(corpora: Path) -> None:
    whole = choose(corpora, "whole")
    both = choose(corpora, "one", "two")
    assert contents(both) == contents(whole)
    gone = [sum(getattr(count, kind) for count in both.counts) for kind in ("copies", "near")]
    assert gone == [whole.counts[0].copies, whole.counts[0].near] == [10, 30]
    alone = choose(corpora, "one").counts[0].documents + choose(corpora, "two").counts[0].documents
    assert alone > whole.counts[0].documents  # some pairs stand across


def test_pairs_are_made_once_and_nothing_else_stays(
    corpora: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    choose(corpora, "one", "two")
    (folder,) = (corpora / "one" / linked.FOLDER).iterdir()
    assert sorted(p.name for p in folder.iterdir()) == ["clusters", "corpus.json", "pairs"]
    pairs = [pq.read_table(corpora / name / "pairs").num_rows for name in ("whole", "one", "two")]
    assert pq.read_table(folder / "pairs").num_rows == pairs[0] > pairs[1] + pairs[2]
    monkeypatch.setattr("pipeline.linked.link", None)
    assert contents(choose(corpora, "one", "two")) == contents(choose(corpora, "whole"))


def test_pairs_that_are_damaged_or_gone_are_made_again(corpora: Path) -> None:
    whole = contents(choose(corpora, "one", "two"))
    (folder,) = (corpora / "one" / linked.FOLDER).iterdir()
    for harm in (Path.unlink, lambda path: path.write_bytes(b"damaged")):
        harm(folder / "pairs" / "part-00000.parquet")
        assert contents(choose(corpora, "one", "two")) == whole


def test_corpora_that_were_not_prepared_alike(corpora: Path) -> None:
    prepare(corpora, "other", rows(4)[:20], near={"threshold": 0.7})
    with pytest.raises(ConfigError, match=r"`near: {threshold}` is 0.8 in one and 0.7 in the"):
        choose(corpora, "one", "other")
    chosen = choose(corpora, "one", "other", unique="exact")
    assert set(chosen.documents) == {"one", "other"}


def test_a_damaged_file_is_named(corpora: Path) -> None:
    for name in ("one", "two"):
        hurt = corpora / f"{name}-hurt"
        shutil.copytree(corpora / name, hurt, ignore=shutil.ignore_patterns(linked.FOLDER))
    path = corpora / "two-hurt" / "joins" / "keys" / "part-00000.arrow"
    path.write_bytes(path.read_bytes()[:-8] + b"damaged!")
    with pytest.raises(CorpusError, match=r"joins/keys/part-00000.arrow is damaged"):
        choose(corpora, "one-hurt", "two-hurt")
    assert not list((corpora / "one-hurt" / linked.FOLDER).glob(".*"))
