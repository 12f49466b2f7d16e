"""`not_in`: what stays beside an index is what would stay beside the documents themselves."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from several_corpora import prepare
from small_corpus import chinese, english

from dedup import clusters
from mixtures.commands import mix
from mixtures.dedup_commands import main
from mixtures.freeze_commands import frozen
from mixtures.indexing import index
from mixtures.plan import make_plan
from mixtures.questions import inspect
from mixtures.select import Selection, select
from mixtures.spec import load_mixture
from pipeline import copy_index, linked, schema
from pipeline.config import ConfigError
from pipeline.corpus import CorpusError
from pipeline.files import file_hash, read_json, write_sealed

LEVELS = [("url", False), ("exact", False), ("folded", False), ("near", False), ("near", True)]
SHORT = ["cat", "dog", "好", "。", "Hi there", "hi, there!"]


def rows(seed: int, num: int) -> list[dict[str, Any]]:
    """Texts of two languages from few families: chains of altered ones, copies as they are and in
    other punctuation, some addresses that repeat; short texts."""
    pick = random.Random(seed)
    found: list[dict[str, Any]] = []
    for _ in range(num):
        family = pick.randrange(18)
        text = (chinese if family % 2 else english)(4 * family)
        for change in range(pick.randrange(4)):  # a chain: each has all the changes before
            words = f" And then it was number {change} of {family}, they said, of all there were."
            text += (
                words
                if not family % 2
                else f"然后第{change}个{family}号的故事也讲完了，大家都回家去了。"
            )
        text = pick.choice([text, text, text.replace(",", " -").replace("，", ",").upper()])
        text = pick.choice([text] * 6 + SHORT)
        found.append({"text": text, "url": f"https://www.site.org/{pick.randrange(2 * num)}"})
    return [{"id": f"{seed}-{n}", **row} for n, row in enumerate(found)]


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Corpora `old`, `older` and `new`, and an index of each that is not new."""
    folder = tmp_path_factory.mktemp("not-in")
    prepare(folder, "old", rows(1, 90))
    prepare(folder, "older", rows(2, 60))
    prepare(folder, "new", rows(3, 90))
    for name in ("old", "older"):
        index(str(folder / name), str(folder / f"{name}-index"))
    return folder


@pytest.fixture(autouse=True)
def _joined_anew(corpora: Path) -> Iterator[None]:
    yield
    for name in ("old", "older", "new"):
        shutil.rmtree(corpora / name / linked.FOLDER, ignore_errors=True)


def mixture(folder: Path, *names: str, file: str = "mixture.yaml", **settings: Any) -> Path:
    known = {
        "corpora": {name: name for name in names},
        "sequence_length": 64,
        "prefer": ["corpus = 'old'", "corpus = 'older'"],
        "sources": {name: {"from": name} for name in names},
    }
    (folder / file).write_text(yaml.safe_dump(known | settings))
    return folder / file


def choose(folder: Path, *names: str, **settings: Any) -> Selection:
    return select(load_mixture(mixture(folder, *names, **settings)))


def ids(selection: Selection, source: str = "new") -> set[bytes]:
    return {name.tobytes() for name in selection.documents[source].id}


@pytest.mark.parametrize(("unique", "large"), LEVELS)
def test_what_stays_is_what_would_stay_of_all_at_once(
    corpora: Path, unique: str, large: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if large:  # pairs verified at selection
        monkeypatch.setattr(clusters, "MAX_STORED", 2)
    at_once = choose(corpora, "old", "new", unique=unique)
    beside = choose(corpora, "new", unique=unique, not_in=["old-index"])
    assert ids(beside) == ids(at_once)
    alone = choose(corpora, "new", unique=unique)
    assert len(ids(beside)) < len(ids(alone))
    (count,) = beside.counts
    assert count.claimed == count.indexed + count.copies + count.near + count.documents == 90
    assert count.indexed >= len(ids(alone)) - len(ids(beside))


def test_of_what_a_mixture_selects(corpora: Path) -> None:
    """A `where`, another order of preference, two corpora: what was in it blocks, no other."""
    settings: dict[str, Any] = {
        "prefer": ["corpus = 'older'", "num_chars desc"],
        "sources": {"old": {"from": "old", "where": "num_chars > 300"}, "older": {"from": "older"}},
    }
    had = mixture(corpora, "old", "older", file="had.yaml", **settings)
    index(str(had), str(corpora / "had"))
    settings["prefer"] = ["corpus = 'older'", "corpus = 'old'", "num_chars desc"]
    settings["sources"]["new"] = {"from": "new"}
    had_order = select(load_mixture(had))
    at_once = choose(corpora, "old", "older", "new", **settings)
    beside = choose(corpora, "new", prefer=["num_chars desc"], not_in=["had"])
    assert ids(had_order, "older") == ids(at_once, "older")
    assert ids(beside) == ids(at_once)


def test_several_indexes_and_one_with_both_say_the_same(corpora: Path) -> None:
    """What is indexed blocks, whatever is near to it in another index."""
    shutil.copytree(corpora / "old-index", corpora / "both")
    made = index(str(corpora / "older"), str(corpora / "both"), add=True)
    assert [group.corpus for group in made.groups] == [
        str(corpora / name) for name in ("old", "older")
    ]
    assert [group.first for group in made.groups] == [0, made.groups[0].parts]
    one_by_one = choose(corpora, "new", not_in=["old-index", "older-index"])
    assert ids(one_by_one) == ids(choose(corpora, "new", not_in=["both"]))
    each = [choose(corpora, "new", not_in=[f"{name}-index"]) for name in ("old", "older")]
    assert ids(one_by_one) <= ids(each[0]) & ids(each[1])
    with pytest.raises(ConfigError, match="these documents are in the index already"):
        index(str(corpora / "older"), str(corpora / "both"), add=True)
    assert copy_index.read(corpora / "both") == made


def test_it_is_told_where_a_mixture_is_looked_at(
    corpora: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = mixture(corpora, "new", not_in=["old-index"])
    (count,) = select(load_mixture(path)).counts
    assert mix([str(path), "--tokens", "1k", "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert f"removed from new as copies of what `not_in` has: {count.indexed} documents\n" in said
    (source,) = make_plan(path, 1000, pack=False).sources
    assert source.indexed == count.indexed
    assert source.claimed == source.indexed + source.copies + source.near + source.documents
    settings = frozen(path)["mixture"]["settings"]
    assert settings["not_in"] == [copy_index.read(corpora / "old-index").fingerprint()]
    alone = ids(choose(corpora, "new", file="alone.yaml"))
    gone = sorted(alone - ids(choose(corpora, "new", not_in=["old-index"])))[0]
    assert inspect([str(corpora / "new"), gone.hex(), "--mixture", str(path)]) == 0
    assert "out: a copy of a document in an index of `not_in`" in capsys.readouterr().out


def test_a_corpus_beside_its_own_index_has_nothing_left(corpora: Path) -> None:
    with pytest.raises(ConfigError, match="all copies of others, or of documents in `not_in`"):
        choose(corpora, "old", not_in=["old-index"])


def test_the_old_text_is_not_read(corpora: Path) -> None:
    expected = ids(choose(corpora, "new", not_in=["old-index"]))
    (corpora / "old").rename(corpora / "away")
    shutil.rmtree(corpora / "new" / linked.FOLDER)
    try:
        assert ids(choose(corpora, "new", not_in=["old-index"])) == expected
    finally:
        (corpora / "away").rename(corpora / "old")
    text = b"".join(path.read_bytes() for path in (corpora / "old-index").rglob("*.parquet"))
    assert b"harbour" not in text
    assert "渔夫".encode() not in text


def test_its_bytes_are_the_same_for_any_number_of_processes_and_after_a_kill(
    corpora: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = tmp_path / ".again.tmp"
    (left / "keys").mkdir(parents=True)
    (left / "keys/part-00007.parquet").write_bytes(b"left by a kill")
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    index(str(corpora / "old"), str(tmp_path / "again"))
    files = {
        path.relative_to(root): file_hash(path)
        for root in (corpora / "old-index", tmp_path / "again")
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }
    assert len(files) == len([*(tmp_path / "again").rglob("*.*")]) == 4
    for name, value in files.items():
        assert file_hash(corpora / "old-index" / name) == value
    assert not left.exists()


def test_what_stands_in_it(corpora: Path) -> None:
    made = copy_index.read(corpora / "old-index")
    table = pq.read_table(corpora / "old-index/documents/part-00000.parquet")
    assert table.schema.equals(schema.INDEXED)
    (group,) = made.groups
    assert group.documents == table.num_rows == 90
    verified = table.filter(table["verified"])
    kept = choose(corpora, "old", prefer=[])
    contents = {c.tobytes() for c in kept.documents["old"].content_hash}
    assert set(verified["content_hash"].to_pylist()) <= contents
    assert verified.num_rows == table["shingles"].drop_null().length() == len(contents) - 1  # "。"
    assert table["sketch"].drop_null()[0].as_py().__len__() == 16


def test_on_a_store(corpora: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_CACHE", str(tmp_path))
    assert main(["index", str(corpora / "old"), "--out", "memory://bucket/seen"]) == 0
    expected = ids(choose(corpora, "new", not_in=["old-index"]))
    shutil.rmtree(tmp_path / "indexes")
    found = choose(corpora, "new", not_in=["memory://bucket/seen"])
    assert ids(found) == expected
    assert main(["index", str(corpora / "older"), "--out", "memory://bucket/seen", "--add"]) == 0
    both = choose(corpora, "new", not_in=["old-index", "older-index"])
    assert ids(choose(corpora, "new", not_in=["memory://bucket/seen"])) == ids(both)
    (path,) = (tmp_path / "indexes").rglob("keys/part-00001.parquet")
    path.write_bytes(b"another program")
    assert ids(choose(corpora, "new", not_in=["memory://bucket/seen"])) == ids(both)
    fsspec.filesystem("memory").rm("/bucket/seen", recursive=True)
    with pytest.raises(ConfigError, match="no index at memory://bucket/seen .* make one"):
        choose(corpora, "new", not_in=["memory://bucket/seen"])


def test_what_does_not_go_together_is_told(corpora: Path, tmp_path: Path) -> None:
    at = tmp_path / "other"
    shutil.copytree(corpora / "old-index", at)
    known = read_json(at / "index.json")
    del known["seal"]
    for key, value, message in (
        ("ngram", 4, r"`near: \{ngram\}` is 5 in .*/new and 4 in the index .*/other; prepare"),
        ("threshold", 0.7, r"`near: \{threshold\}` is 0.8 in .*/new and 0.7 in the index"),
    ):
        near = known["settings"]["near"] | {key: value}
        write_sealed(at / "index.json", known | {"settings": {"near": near}})
        with pytest.raises(ConfigError, match=message):
            choose(corpora, "new", not_in=[os.path.relpath(at, corpora)])
        choose(corpora, "new", not_in=[os.path.relpath(at, corpora)], unique="exact")
    write_sealed(at / "index.json", known | {"probe": "0" * 32})
    with pytest.raises(ConfigError, match="hashes text otherwise than this one does"):
        choose(corpora, "new", not_in=[str(at)])
    write_sealed(at / "index.json", known | {"format": 0})
    with pytest.raises(ConfigError, match="an index of format 0, this version of assay reads 1"):
        choose(corpora, "new", not_in=[str(at)])
    with pytest.raises(ConfigError, match="`not_in` leaves out copies, and `unique: none` knows"):
        choose(corpora, "new", not_in=[str(at)], unique="none")


def test_a_damaged_index_is_named(corpora: Path, tmp_path: Path) -> None:
    for name, harm, message in (
        ("keys/part-00000.parquet", Path.unlink, "is missing; copy it again, or make it again"),
        ("documents/part-00000.parquet", _cut, "is damaged or cut short"),
        ("index.json", _cut, "is damaged or cut short"),
    ):
        at = tmp_path / name.replace("/", "-")
        shutil.copytree(corpora / "old-index", at)
        harm(at / name)
        with pytest.raises(CorpusError, match=f"{name} {message}"):
            choose(corpora, "new", not_in=[str(at)])
    with pytest.raises(ConfigError, match=r"no index at .*/nowhere \(no index.json\); make one"):
        choose(corpora, "new", not_in=["nowhere"])
    with pytest.raises(ConfigError, match=r"/old is a corpus, not an index of one; .*old-index`"):
        choose(corpora, "new", not_in=["old"])


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def test_what_stands_is_not_written_over(corpora: Path, tmp_path: Path) -> None:
    out = str(corpora / "old-index")
    with pytest.raises(ConfigError, match="an index stands there; name another folder, or `--add`"):
        index(str(corpora / "older"), out)
    with pytest.raises(ConfigError, match="no index stands there to add to; leave out `--add`"):
        index(str(corpora / "older"), str(tmp_path / "none"), add=True)
    (tmp_path / "file").write_text("mine")
    with pytest.raises(ConfigError, match="something else stands there; name another folder"):
        index(str(corpora / "older"), str(tmp_path))
    assert (tmp_path / "file").read_text() == "mine"


def test_a_corpus_that_another_version_signed(corpora: Path, tmp_path: Path) -> None:
    root = tmp_path / "old"
    shutil.copytree(corpora / "old", root)
    known = read_json(root / "corpus.json")
    del known["seal"]
    known["stages"]["signatures"]["fingerprint"] = "0" * 32
    write_sealed(root / "corpus.json", known)
    with pytest.raises(ConfigError, match=r"old: signed by another version .* `assay prepare` for"):
        index(str(root), str(tmp_path / "out"))


def test_verified_names_only_what_was_asked(corpora: Path) -> None:
    made = copy_index.read(corpora / "old-index")
    table = pq.read_table(corpora / "old-index/documents/part-00000.parquet")
    asked = table.filter(table["verified"])["content_hash"].combine_chunks()[:3]
    found = copy_index.verified(
        [made], pa.concat_arrays([asked, pa.array([b"\0" * 16], schema.HASH)])
    )
    assert set(found.to_pylist()) == set(asked.to_pylist())
