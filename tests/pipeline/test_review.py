"""Labels by hand: which documents, which keys, what stays, what they say."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import small_corpus

from pipeline.config import ConfigError
from pipeline.corpus import CorpusError
from pipeline.seeing import labels, review
from pipeline.seeing.agreement import Stratum, stratified, weighted_kappa, wilson
from pipeline.seeing.asking import Row, rows
from pipeline.seeing.rubrics import RUBRICS, Rubric, rubric
from pipeline.seeing.summary import summary

KEEP = RUBRICS["keep"]


@pytest.fixture
def corpus(many_parts: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(many_parts, tmp_path / "corpus"))


def typed(keys: str) -> Callable[[], str]:
    left: Iterator[str] = iter(keys)
    return lambda: next(left, "")


def chosen(corpus: Path, n: int, per: str | None = None, reviewer: str = "ann") -> list[Row]:
    return review.unlabelled(corpus, review.draw(corpus, None, per, n, 0), reviewer, KEEP)


def given(corpus: Path) -> dict[str, float]:
    return {row["content_hash"]: row["label"] for row in labels.read(corpus).to_pylist()}


def test_each_key_is_a_label_at_once(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = chosen(corpus, 4)
    assert review.label(corpus, found, "ann", KEEP, typed("yxns y")) == 3
    contents = [row["content_hash"] for row in found]
    assert given(corpus) == {contents[0]: 1.0, contents[1]: 0.0, contents[3]: 1.0}
    shown = capsys.readouterr().out
    assert "1 of 4" in shown
    assert "tales" not in shown, "blind: no source"
    in_sql = rows(corpus, "select reviewer, rubric, count(*) as n from labels group by all")
    assert in_sql == [{"reviewer": "ann", "rubric": "keep/1", "n": 3}]


def test_undo_takes_the_last_label_back(corpus: Path) -> None:
    found = chosen(corpus, 2)
    review.label(corpus, found, "ann", KEEP, typed("yunq"))
    assert given(corpus) == {found[0]["content_hash"]: 0.0}
    assert review.label(corpus, found, "ann", KEEP, typed("")) == 0, "end of input ends"


def test_a_reviewer_is_asked_once_and_another_too(corpus: Path) -> None:
    first = chosen(corpus, 3)
    review.label(corpus, first, "ann", KEEP, typed("yy"))
    assert chosen(corpus, 3) == first[2:]
    assert chosen(corpus, 3, reviewer="bob") == first


def test_so_many_of_each_source(corpus: Path) -> None:
    found = chosen(corpus, 2, per="source")
    by_id = {row["id"]: row["source"] for row in rows(corpus, "select id, source from documents")}
    assert sorted(by_id[row["id"]] for row in found) == ["tales-en"] * 2 + ["tales-zh"] * 2


def test_what_labels_say(corpus: Path) -> None:
    found = rows(corpus, "select distinct content_hash, lang from documents order by 1 limit 40")
    english = [row["content_hash"] for row in found if row["lang"] == "en"]
    for reviewer in ("ann", "bob"):
        said = {row["content_hash"]: float(row["lang"] == "zh") for row in found}
        labels.append(corpus, reviewer, KEEP.id, said)
    lines = summary(corpus, corpus, KEEP, "lang = 'en'")
    low, high = wilson(len(english), len(english))
    rate = f"bad {len(english)} of {len(english)}, {low:.0%} to {high:.0%}"
    assert f"  tales-en                 {rate}" in lines
    assert not [line for line in lines if line.startswith("  tales-zh")], "not selected"
    said = "".join(line for line in lines if line.startswith("  selected by lang = 'en': "))
    assert "bad 100.0%, " in said
    assert "(stratified by source, standard error 0.0%" in said
    assert f"{len(english)} documents labelled)" in said
    assert "  drawn as an earlier version did not write down: 80" in lines
    assert lines[-1] == "  ann and bob: the same label for 40 of 40, weighted kappa 1.00"
    with pytest.raises(ConfigError, match="no labels of rubric education/1; there are some of kee"):
        summary(corpus, corpus, RUBRICS["education"], None)


def test_strata_weigh_as_many_documents_as_they_have(corpus: Path) -> None:
    """All bad of a rule that selects 12 documents of one source and many of the other."""
    sizes = {"tales-en": 12}
    everything = "select source, count(distinct content_hash) as n from documents group by 1"
    sizes["tales-zh"] = {row["source"]: row["n"] for row in rows(corpus, everything)}["tales-zh"]
    order = "select content_hash from documents where lang = 'en' order by content_hash limit 12"
    listed = ", ".join(f"'{row['content_hash']}'" for row in rows(corpus, order))
    where = f"lang = 'zh' or content_hash in ({listed})"
    design = {"where": where, "per": "source", "n": 6, "seed": 0}
    found = review.draw(corpus, **design)
    sources = rows(corpus, "select distinct content_hash, source from documents")
    of = {row["content_hash"]: row["source"] for row in sources}
    said = {row["content_hash"]: float(of[row["content_hash"]] == "tales-zh") for row in found}
    assert len(said) == 12
    labels.append(corpus, "ann", KEEP.id, said, design)
    lines = summary(corpus, corpus, KEEP, where)
    share = 12 / sum(sizes.values())  # not 6 of 12
    assert f"  selected by {where}: bad {share:.1%}, " in "\n".join(lines)
    assert "(stratified by source, standard error 0.0%; 12 documents labelled)" in "\n".join(lines)
    assert f'  drawn by --where "{where}" -n 6 --per source --seed 0: 12' in lines
    other = "\n".join(summary(corpus, corpus, KEEP, "lang = 'zh'"))
    assert "--seed 0: 12; no random ones of what is asked" in other
    assert "  selected by lang = 'zh': bad 0.0%, " in other
    assert "  not selected by lang = 'zh': bad 100.0%, " in other


def test_the_mean_of_strata() -> None:
    # weights .9 and .1, shares .2 and .8: .26; error: sqrt(.81 * .16/9 * .99 + .01 * .16/9 * .9)
    found = stratified([Stratum(1_000 - 100, 9 + 1, 2), Stratum(100, 10, 8)])
    assert round(found.mean, 4) == 0.26
    expected = (0.81 * (1 - 10 / 900) * 0.16 / 9 + 0.01 * 0.9 * 0.16 / 9) ** 0.5
    assert found.error == pytest.approx(expected)
    assert found.low < 0.26 < found.high
    alike = stratified([Stratum(10**9, 8, 0)])
    assert (alike.error, alike.low) == (0.0, 0.0)
    assert alike.high == pytest.approx(wilson(0, 8)[1]), "one large stratum: Wilson's"
    whole = stratified([Stratum(10, 10, 3)])
    assert (whole.mean, whole.low, whole.high) == (0.3, 0.3, 0.3)
    assert stratified([Stratum(10, 1, 0), Stratum(10, 5, 1)]).error is None


def test_a_line_that_a_kill_cut_is_left_out_and_a_damaged_one_named(tmp_path: Path) -> None:
    labels.append(tmp_path, "ann", "keep/1", {"a" * 32: 1.0})
    path = tmp_path / "labels" / "ann.jsonl"
    with open(path, "a") as file:
        file.write('{"content_hash": "bb')
    assert given(tmp_path) == {"a" * 32: 1.0}
    labels.append(tmp_path, "ann", "keep/1", {"b" * 32: 0.0})
    assert given(tmp_path) == {"a" * 32: 1.0, "b" * 32: 0.0}
    stands = path.read_text()
    at = '"rubric": "keep/1", "at": "2026-01-01T00:00:00"'
    for bad in ("{}", f'{{"content_hash": "ab", {at}}}', f'{{"label": "yes", {at}}}', "[1]", "\0"):
        path.write_text(f"{stands}{bad}\n")
        with pytest.raises(CorpusError, match="line 3 is no label"):
            labels.read(tmp_path)


def test_wilson_and_kappa() -> None:
    low, high = wilson(8, 10)
    assert (round(low, 4), round(high, 4)) == (0.4902, 0.9433)  # Wilson 1927
    assert wilson(0, 0) == (0.0, 1.0)
    assert weighted_kappa([0, 1, 1, 0], [0, 1, 1, 0]) == 1.0
    assert weighted_kappa([0, 0, 1, 1], [0, 1, 0, 1]) == 0.0
    assert weighted_kappa([1, 1], [1, 1]) == 0.0
    # 45 yes-yes, 15 no-no, 25 and 15 apart: Cohen's kappa .1304
    a = [1.0] * 70 + [0.0] * 30
    b = [1.0] * 45 + [0.0] * 25 + [1.0] * 15 + [0.0] * 15
    assert round(weighted_kappa(a, b), 4) == 0.1304


def test_rubrics(tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    path.write_text("{name: own, version: 2, question: q, keys: {a: 1, b: 0}}")
    assert rubric(str(path)) == Rubric(name="own", version=2, question="q", keys={"a": 1, "b": 0})
    with pytest.raises(ConfigError, match="no rubric 'kep'; known: keep"):
        rubric("kep")
    path.write_text("{name: own, question: q, keys: {q: 1, b: 0}}")
    with pytest.raises(ConfigError, match="'q' is no key for an answer"):
        rubric(str(path))


def test_the_verb(
    corpus: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(review, "_keys", lambda: typed("ny"))
    assert review.main([str(corpus), "-n", "2", "--reviewer", "ann"]) == 0
    assert "keep/1: 2 labels of 2 documents" in capsys.readouterr().out
    lines = (corpus / "labels" / "ann.jsonl").read_text().splitlines()
    assert [json.loads(line)["label"] for line in lines] == [0.0, 1.0]
    drawn = {"where": None, "per": None, "n": 2, "seed": 0}
    assert [json.loads(line)["design"] for line in lines] == [drawn, drawn]
    assert review.main([str(corpus), "-n", "2", "--reviewer", "ann"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("all 2 are labelled: -n more or another --seed\nkeep/1: 2 labels of 2 ")
    assert "  drawn by -n 2 --seed 0: 2\n" in said
    assert "  all: bad 50.0%, 10% to 90% of 242 documents (drawn at random, standard err" in said
    monkeypatch.setattr(review, "_keys", lambda: typed("q"))
    assert review.main([str(corpus), "-n", "2", "--rubric", "clean", "--reviewer", "ann"]) == 0
    said = capsys.readouterr().out
    assert said.endswith("\nno label was given; the same command begins here again\n")
    with pytest.raises(ConfigError, match="no document where lang = 'fr': nothing to review"):
        review.main([str(corpus), "--where", "lang = 'fr'"])
    with pytest.raises(SystemExit):
        review.main([str(corpus), "--reviewer", "a/b"])


def test_labels_survive_another_preparation(many_parts: Path, tmp_path: Path) -> None:
    """Also where inputs changed: a text with a label moved to another place of its file, one went,
    one came; and a label of what went is there when it comes back."""
    folder = Path(shutil.copytree(many_parts.parent, tmp_path / "all"))
    corpus, settings = folder / "corpus", folder / "corpus.yaml"
    texts = {row["text"]: row["content_hash"] for row in rows(corpus, "from documents")}
    lines = (folder / "zh.jsonl").read_text("utf-8").splitlines(keepends=True)
    first, last = (texts[json.loads(lines[n])["text"]] for n in (0, 1))
    labels.append(corpus, "ann", KEEP.id, {first: 1.0, last: 0.0})
    before = rows(corpus, "from labels order by content_hash")
    assert len(before) == 2
    new = json.dumps({"id": "new", "text": small_corpus.chinese(999)}) + "\n"
    (folder / "zh.jsonl").write_text("".join([new, *lines[2:], lines[0]]), "utf-8")
    small_corpus.assay("prepare", settings, "--workers", "1", "--refresh")
    assert rows(corpus, "from labels order by content_hash") == before
    joined = "select content_hash, label from labels join documents using (content_hash)"
    assert rows(corpus, joined) == [{"content_hash": first, "label": 1.0}]
    left = chosen(corpus, 10_000)
    assert first not in {row["content_hash"] for row in left}
    assert len(left) == len({row["content_hash"] for row in rows(corpus, "from documents")}) - 1
    (folder / "zh.jsonl").write_text("".join(lines), "utf-8")
    small_corpus.assay("prepare", settings, "--workers", "1", "--refresh")
    found = {row["content_hash"]: row["label"] for row in rows(corpus, joined)}
    assert found == {first: 1.0, last: 0.0}
