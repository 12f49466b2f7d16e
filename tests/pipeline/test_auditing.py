"""`assay dedup audit` against brute force, over corpora whose pairs are set by hand."""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mixture_corpus import Doc, Tiny, write_corpus
from mixture_corpus import _write as write_rows

from mixtures.dedup_commands import main
from pipeline import schema
from pipeline.auditing import losses, neighbours, verdict
from pipeline.auditing.audit import Audit, audit
from pipeline.auditing.differences import columns, differences
from pipeline.auditing.neighbours import ANY, edges
from pipeline.auditing.shown import page, told
from pipeline.auditing.verdict import Rate, plain_jaccard
from pipeline.dedup_settings import Near

NEAR = Near()
WORDS = [f"{a}{b}" for a in "ba be bi bo da de di do ka ke ki ko".split() for b in "lmnrst"]
HANS = "海边山谷城里河岸院子车站集市学校庙前田间桥头村口码头林中楼上湖心老师渔夫医生孩子木匠船长"


def families(num: int = 24) -> list[Doc]:
    """Texts with 0 to 9 words replaced, English and Chinese in turn; short and empty ones."""
    pick = random.Random(11)
    docs = [Doc(""), Doc("cat"), Doc("dog"), Doc("😀")]
    for family in range(num):
        units = WORDS if family % 2 else list(HANS)
        original = [pick.choice(units) for _ in range(pick.randint(60, 200))]
        for _ in range(pick.randint(1, 4)):
            words = list(original)
            for _ in range(pick.randint(0, 9)):
                words[pick.randrange(len(words))] = pick.choice(units)
            text = (" " if units is WORDS else "").join(words)
            docs.append(Doc(text, "en" if units is WORDS else "zh", f"source-{family % 3}"))
    return docs


def similar(docs: list[Doc], least: float) -> dict[tuple[int, int], float]:
    """Pairs of different contents, by the definition."""
    found = {}
    for i, j in itertools.combinations(range(len(docs)), 2):
        jaccard = plain_jaccard(docs[i].text, docs[j].text, NEAR.ngram)
        if jaccard >= least and docs[i].text != docs[j].text:
            found[i, j] = jaccard
    return found


def write(root: Path, docs: list[Doc], pairs: list[tuple[int, int]], shard_rows: int = 9) -> Path:
    return write_corpus(root / "web", Tiny(docs, pairs), shard_rows=shard_rows)


def audited(root: Path, **settings: Any) -> Audit:
    given = {"documents": 1000, "seconds": 60.0, "max_loss": 0.5, "shown": 2, "seed": 0}
    return audit(root, **given | settings)


def test_edges_hold_the_threshold() -> None:
    assert edges(0.8) == [0.5, 0.6, 0.7, 0.8, 0.9]
    assert edges(0.75) == [0.5, 0.6, 0.7, 0.75, 0.8, 0.9]
    assert edges(0.3) == [0.3, 0.5, 0.6, 0.7, 0.8, 0.9]


def test_draws_are_those_of_all_pairs(tmp_path: Path) -> None:
    docs = families()
    chosen = neighbours.sample(write(tmp_path, docs, []), NEAR, 1000, seed=3)
    draws = neighbours.compare(tmp_path / "web", NEAR, chosen, 60, seed=3).draws
    true = similar(docs, 0.5)
    number = {doc.content: n for n, doc in enumerate(docs)}
    names = [number[content] for content in chosen.contents.to_pylist()]
    borders = edges(NEAR.threshold)
    expected = {
        (a, borders.index(max(edge for edge in borders if edge <= jaccard)))
        for (i, j), jaccard in true.items()
        for a in (number[docs[i].content], number[docs[j].content])
    }
    of_bands = draws[draws["band"] >= 0]
    assert len(expected) > 40
    assert {(names[d["text"]], d["band"]) for d in of_bands} == expected
    for draw in draws:
        a, b = names[draw["text"]], number[draw["other"].ljust(16, b"\0")]
        jaccard = plain_jaccard(docs[a].text, docs[b].text, NEAR.ngram)
        assert draw["jaccard"] == np.float32(jaccard)
        assert draw["proposed"] or draw["band"] != ANY


def test_draws_depend_neither_on_shards_nor_on_the_order_of_documents(tmp_path: Path) -> None:
    docs = families(9)
    found = []
    for rows, of in ((1, docs), (50, docs), (4, docs[::-1])):
        root = write(tmp_path / str(rows), of, [], rows)
        chosen = neighbours.sample(root, NEAR, 1000, seed=1)
        found.append(neighbours.compare(root, NEAR, chosen, 60, seed=1).draws.tolist())
    assert found[0] == found[1] == found[2] != []


def test_a_union_of_bands_has_one_draw_of_each_text() -> None:
    draws = np.zeros(4, neighbours.DRAW)
    draws["text"], draws["band"], draws["lot"] = [0, 0, 0, 1], [3, 4, 2, 4], [5, 3, 1, 9]
    assert neighbours.of_bands(draws, 3, 5)["lot"].tolist() == [3, 9]


def test_a_pair_that_both_of_its_texts_drew_counts_once(tmp_path: Path) -> None:
    docs = [Doc(" ".join([*WORDS, "one"])), Doc(" ".join([*WORDS, "two"])), Doc("cat")]
    found = audited(write(tmp_path, docs, [(0, 1)]))
    assert found.recall["all"] == found.proposals == found.bands[-1].known == Rate(1, 1)
    assert [pair.what for pair in found.pairs] == ["a pair"]


def test_recall_counts_what_the_corpus_knows(tmp_path: Path) -> None:
    docs = families()
    pairs = sorted(similar(docs, NEAR.threshold))
    whole = audited(write(tmp_path / "whole", docs, pairs))
    assert whole.recall["all"].hits == whole.recall["all"].draws > 7
    assert whole.recall.keys() >= {"language en", "language zh", "source source-1"}
    known = {docs[n].content for pair in pairs[::2] for n in pair}
    half = audited(write(tmp_path / "half", docs, pairs[::2]))
    assert 0 < half.recall["all"].hits < half.recall["all"].draws == whole.recall["all"].draws
    assert half.recall["all"].hits <= len(known)
    assert [pair.what for pair in half.pairs][:2] == ["missed", "missed"]
    assert audited(write(tmp_path / "none", docs, [])).recall["all"].hits == 0


def test_members_of_a_large_cluster_are_known(tmp_path: Path) -> None:
    docs = [Doc(" ".join([*WORDS, f"end{n}"])) for n in range(3)]
    root = write(tmp_path, docs, [])
    contents = sorted(doc.content for doc in docs)
    rows = [{"content_hash": c, "cluster": contents[0], "size": 3, "large": True} for c in contents]
    write_rows(root / "clusters/part-00000.parquet", rows, schema.CLUSTERS)
    assert audited_recall(root) in (Rate(2, 2), Rate(3, 3))  # three pairs, drawn by lot
    rows[2] = rows[2] | {"cluster": contents[2]}
    write_rows(root / "clusters/part-00000.parquet", rows, schema.CLUSTERS)
    assert audited_recall(root).hits < 3


def audited_recall(root: Path) -> Rate:
    chosen = neighbours.sample(root, NEAR, 10, 0)
    draws = neighbours.compare(root, NEAR, chosen, 60, 0).draws
    verdict.mark_known(root, chosen, draws)
    return verdict.recall(NEAR, chosen, draws)["all"]


def test_a_stored_pair_that_is_none_is_told(tmp_path: Path) -> None:
    docs = families()
    pairs = sorted(similar(docs, NEAR.threshold))
    found = audited(write(tmp_path, docs, [*pairs, (1, 2)]))
    assert found.precision["all"] == Rate(len(pairs), len(pairs) + 1)
    assert [pair.jaccard for pair in found.wrong] == [0.0]
    assert "warning: stored as a pair of 0.900, but 0.000 by their texts" in "\n".join(told(found))


def test_a_sample_and_an_end_by_time(tmp_path: Path) -> None:
    docs = families()
    root = write(tmp_path, docs, [])
    found = audited(root, documents=5, seconds=0.0)
    assert (found.sampled, found.compared.documents) == (5, 9)  # one slice: a part of nine
    assert found.compared.of_documents == len(docs)
    assert "5 texts by lot compared with 9 of " in told(found)[0]


def test_without_any_pair(tmp_path: Path) -> None:
    found = audited(write(tmp_path, [Doc(""), Doc("cat"), Doc("dog"), Doc("猫")], []))
    assert found.recall == {"all": Rate(0, 0)}
    assert found.pairs == []
    assert told(found)[-1] == "no warning"


# --- losses ---------------------------------------------------------------------------------------


def test_a_source_that_loses_more_than_a_share_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    template = " ".join(random.Random(1).choices(WORDS, k=80))
    docs = [Doc(f"{template} end{n}", source="forms") for n in range(9)]
    docs += [docs[0], Doc("one", source="other"), Doc("two", source="other")]
    pairs = list(itertools.combinations(range(9), 2))
    root = write(tmp_path, docs, pairs)
    _clusters(root, docs[:9])
    found = losses.losses(root)
    assert [(row["source"], row["documents"], row["copies"], row["near"]) for row in found] == [
        ("forms", 10, 1, 8),
        ("other", 2, 0, 0),
    ]
    (line,) = losses.warnings(found, 0.5)
    cluster = min(doc.content for doc in docs[:9]).hex()[:12]
    assert line.startswith(
        "source forms loses 90% of 10 documents: 1 as exact copies, 8 as near duplicates; "
        f"cluster {cluster} took 8: '{template[:20]}"
    )
    assert losses.warnings(found, 0.9) == []
    assert main(["audit", str(root), "--strict"]) == 2
    assert main(["audit", str(root), "--strict", "--max-loss", "0.95"]) == 0
    assert main(["audit", str(root)]) == 0
    assert "warning: source forms loses 90%" in capsys.readouterr().out


def _clusters(root: Path, docs: list[Doc]) -> None:
    contents = sorted(doc.content for doc in docs)
    rows = [
        {"content_hash": c, "cluster": contents[0], "size": len(docs), "large": False}
        for c in contents
    ]
    write_rows(root / "clusters/part-00000.parquet", rows, schema.CLUSTERS)


# --- side by side ---------------------------------------------------------------------------------


def test_differences_are_marked_on_both_sides() -> None:
    (place,) = differences("the cat sat on the mat", "the cat sat on a mat")
    assert place == (
        [("the cat sat on ", False), ("the", True), (" mat", False)],
        [("the cat sat on ", False), ("a", True), (" mat", False)],
    )
    assert columns(place, 26, colour=False) == [
        "the cat sat on [the] mat   | the cat sat on [a] mat"
    ]
    (coloured,) = columns(place, 26, colour=True)
    assert coloured.startswith("the cat sat on \033[7mthe\033[0m mat     | the cat")
    assert differences("same", "same") == []


def test_han_characters_take_two_cells() -> None:
    (place,) = differences("海边的老师\n走了", "海边的医生\n走了")
    assert columns(place, 12, colour=False) == [
        "海边的[老师] | 海边的[医生]",
        "↵走了        | ↵走了",
    ]


def test_the_page_is_escaped_and_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    docs = [Doc(" ".join([*WORDS, "<script>alert(1)</script>"])), Doc(" ".join([*WORDS, "& co"]))]
    root = write(tmp_path, docs, [(0, 1)])
    assert main(["audit", str(root), "--html", str(tmp_path / "audit.html")]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[1].startswith("recall: of pairs at ")
    assert "precision: of stored pairs, read again, at the threshold" in said
    assert said[-1] == f"wrote {tmp_path / 'audit.html'}"
    text = (tmp_path / "audit.html").read_text("utf-8")
    assert "<ins>&lt;script&gt;alert(1)&lt;/script&gt;</ins>" in text
    assert "<script" not in text
    assert page(audited(root)).count("<h2>") == 5


def test_json_holds_no_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    docs = families(4)
    assert main(["audit", str(write(tmp_path, docs, [])), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["compared_with"] == found["of_documents"] == len(docs)
    assert found["recall"]["all"]["hits"] == 0
    assert all(pair["a"]["text"] is None for pair in found["pairs"])


# --- the curve ------------------------------------------------------------------------------------


def test_the_curve_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["curve"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == (
        "21 bands of 6 rows, 126 of 128 values: a pair at 0.8 is proposed with probability "
        "0.9983; the curve rises around 0.602"
    )
    assert "   0.80   0.99831  " + "#" * 50 + "  <- threshold" in lines
    assert lines[-1] == "in corpus.yaml: near: {threshold: 0.8, bands: 21, rows: 6}"
    assert main(["curve", "--bands", "14", "--rows", "8"]) == 0
    assert "probability 0.9235" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["curve", "--threshold", "1.2"], "--threshold 1.2: above 0, at most 1"),
        (["curve", "--recall", "1"], "--recall 1.0: between 0 and 1"),
        (["curve", "--bands", "3"], "--bands and --rows go together"),
        (["audit", "x", "--documents", "0"], "--documents 0: at least 1"),
    ],
)
def test_what_cannot_be(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    assert message in capsys.readouterr().err
