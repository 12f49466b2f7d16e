"""Looking at a corpus: rules, samples, histograms, two corpora, places."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from filters.presets import PRESETS, Bound, Rule, reasons
from mixtures.questions import report
from pipeline.seeing import alarms, compare, histograms, page, rules, sample
from pipeline.seeing.asking import rows
from pipeline.syntax import SqlError


def test_rules_are_counted_alone_and_given_the_others(many_parts: Path) -> None:
    """Against the definition: each document's failed rules, counted one by one."""
    for preset in ("gopher", "c4", "fineweb"):
        tests = ", ".join(f"{sql} as f{i}" for i, (_, sql) in enumerate(reasons(preset)))
        found = rows(many_parts, f"select lang, {preset}.pass as passes, {tests} from documents")
        counted = {r.language: r for r in rules.count(many_parts, preset)}
        assert counted.keys() == {"en", "zh"}
        for language, result in counted.items():
            failed = [
                {i for i in range(len(PRESETS[preset])) if row[f"f{i}"]}
                for row in found
                if row["lang"] == language
            ]
            assert result.judged == len(failed)
            assert result.passes == sum(not one for one in failed)
            assert result.fails.tolist() == [
                sum(i in one for one in failed) for i in range(len(result.signals))
            ]
            assert result.only.tolist() == [
                sum(one == {i} for one in failed) for i in range(len(result.signals))
            ]
            assert result.both.tolist() == [
                [sum({i, j} <= one for one in failed) for j in range(len(result.signals))]
                for i in range(len(result.signals))
            ]


def test_rules_that_fail_nothing_are_named() -> None:
    """fineweb-2's recipes carry rules that never fired; a user must see it."""
    found = rules.Rules(
        name="p",
        language="en",
        signals=("a", "b", "c"),
        judged=10,
        passes=4,
        fails=np.array([6, 4, 0]),
        only=np.array([2, 0, 0]),
        both=np.array([[6, 4, 0], [4, 4, 0], [0, 0, 0]]),
    )
    assert found.silent() == ["c"]
    assert found.nearest(0) == ("b", 4 / 6)
    assert found.nearest(1) == ("a", 1.0)
    assert found.nearest(2) is None
    lines = rules.shown([found])
    assert lines[0] == "p, en: 10 documents, of which 4 pass (40.0%)"
    assert lines[2].split() == ["a", "6", "60.0%", "2", "20.0%", "b", "(67%)"]
    assert lines[-1] == "  fail nothing: c"
    assert [line.split() for line in rules.overlap([found])[1:]] == [
        ["1", "2"],
        ["1", "a", "100", "67"],
        ["2", "b", "100", "100"],
    ]


def test_each_preset_can_be_asked_for_by_itself(many_parts: Path) -> None:
    """A preset reads groups that other presets have their name from: fineweb2 gopher's."""
    for preset in rules.known_presets(many_parts):
        counts = "count(*) filter (passes) as passes, count(passes) as judged, count(reason) as r"
        asked = f"select {preset}.pass as passes, {preset}.reason as reason, lang from documents"
        found = rows(
            many_parts, f"select lang, {counts} from ({asked}) group by lang order by lang"
        )
        counted = {r.language: r for r in rules.count(many_parts, preset)}
        for row in found:
            expected = counted.get(row["lang"])
            assert row["judged"] == (expected.judged if expected else 0), preset
            assert row["passes"] == (expected.passes if expected else 0), preset
            assert row["r"] == row["judged"] - row["passes"], preset


def test_a_preset_without_its_signals_is_refused(many_parts: Path) -> None:
    with pytest.raises(ValueError, match="no preset 'goper'"):
        rules.count(many_parts, "goper")


def test_the_parts_of_a_predicate_are_counted(many_parts: Path) -> None:
    """Against the definition, document by document; NULL fails, and is told."""
    where = "lang = 'en' and num_chars > 900 and (source_id < 'en-3' or lang = 'zh')"
    where += " and nullif(lang, 'zh') = 'en'"
    found = rules.parts(many_parts, "mine", where)
    names = ("lang = 'en'", "num_chars > 900", "(source_id < 'en-3') OR (lang = 'zh')")
    assert found.signals[:3] == names
    asked = ", ".join(f"{part} as p{i}" for i, part in enumerate(found.signals))
    every = rows(many_parts, f"select {asked} from documents")
    failed = [{i for i in range(4) if row[f"p{i}"] is not True} for row in every]
    assert (found.judged, found.passes) == (len(every), sum(not one for one in failed))
    assert found.fails.tolist() == [sum(i in one for one in failed) for i in range(4)]
    assert found.only.tolist() == [sum(one == {i} for one in failed) for i in range(4)]
    assert found.unknown == (0, 0, 0, sum(row["p3"] is None for row in every))
    assert found.unknown[3] > 100
    kept = rules.parts(many_parts, "mine", where, null_passes=True)
    assert kept.fails[3] == 0
    within = rules.parts(many_parts, "mine", where, "lang = 'en'")
    assert (within.judged, within.silent()) == (123, [names[0], *within.silent()[1:]])
    lines = rules.shown([found])
    assert lines[0].startswith(f"mine: {len(every)} documents, of which {found.passes} pass (")
    assert lines[-1] == f"  NULL for {found.unknown[3]} documents: {found.signals[3]}"
    with pytest.raises(SqlError, match="65 parts that `and` joins; at most 64"):
        rules.parts(many_parts, "mine", " and ".join(["num_chars > 1"] * 65))


def test_rules_of_a_predicate_and_of_a_mixture_on_a_screen(
    many_parts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mixture = tmp_path / "mixture.yaml"
    mixture.write_text(
        f"corpora: {{web: {many_parts}}}\nsequence_length: 8\nsources:\n"
        "  chinese: {from: web, where: \"lang = 'zh' and gopher.pass\", missing: drop}\n"
        "  english: {from: web, where: \"lang = 'en'\"}\n"
    )
    assert report([str(many_parts), "--rules", "--mixture", str(mixture)]) == 0
    shown = capsys.readouterr().out
    assert "source chinese: 244 documents, of which " in shown
    assert "source english: 244 documents, of which 123 pass (50.4%)" in shown
    assert report([str(many_parts), "--rules", "--where", "gopher.pass and lang = 'zh'"]) == 0
    assert capsys.readouterr().out.startswith("where gopher.pass and lang = 'zh': 244 documents")
    assert report([str(many_parts), "--rules", "--overlap", "--mixture", str(mixture)]) == 0
    assert "source chinese: % of a line that the column fails too" in capsys.readouterr().out
    for wrong in (["--where", "true"], ["--rules", "gopher", "--where", "true"]):
        with pytest.raises(SystemExit):
            report([str(many_parts), *wrong])
        assert "--where" in capsys.readouterr().err.splitlines()[-1]


def test_a_sample_is_of_each_fate_and_does_not_change(many_parts: Path) -> None:
    where = "num_chars > 600"
    found = sample.sample(many_parts, where, None, list(sample.FATES), 2, seed=0)
    assert [row["fate"] for row in found] == ["kept", "kept", "dropped", "dropped"]
    assert [row["num_chars"] > 600 for row in found] == [True, True, False, False]
    assert sample.sample(many_parts, where, None, list(sample.FATES), 2, seed=0) == found
    other = sample.sample(many_parts, where, None, list(sample.FATES), 2, seed=1)
    assert [row["id"] for row in other] != [row["id"] for row in found]
    (one,) = sample.sample(many_parts, "null::boolean", "lang = 'zh'", ["null"], 1, seed=0)
    assert (one["fate"], one["lang"]) == ("null", "zh")
    assert sample.sample(many_parts, "true", None, ["dropped"], 3, seed=0) == []
    counts = sample.count(many_parts, where, None)
    assert sum(counts.values()) == rows(many_parts, "select count(*) as n from documents")[0]["n"]


def test_sample_on_a_screen(many_parts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert sample.main([str(many_parts), "--where", "lang = 'en'", "-n", "1", "--chars", "20"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "lang = 'en': kept 123 (50.4%), dropped 121 (49.6%)"
    assert sample.main([str(many_parts), "--where", "lang = 'en'", "--only", "kept", "--json"]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["lang"] for row in found] == ["en"] * 3
    with pytest.raises(SqlError, match="predicate"):
        sample.main([str(many_parts), "--where", "true); drop view documents; select (1"])


def test_a_histogram_holds_every_document_once(many_parts: Path) -> None:
    known = histograms.numeric_signals(many_parts)
    assert "gopher.num_words" in known["gopher"]
    assert "lang_score" in known["language"]
    values = {"words": "gopher.num_words", "half": "gopher.num_words / 2", "none": "null::double"}
    found = histograms.histograms(many_parts, values, ["zh", "en", "ja"])
    assert [(h.signal, h.language) for h in found] == [
        *(("words", "zh"), ("half", "zh"), ("words", "en"), ("half", "en"))
    ]
    for histogram in found:
        value = values[histogram.signal]
        of = f"from documents where lang = '{histogram.language}'"
        (total,) = rows(many_parts, f"select count(*) as n, median({value}) as m {of}")
        (source,) = histogram.counts
        assert histogram.counts[source].sum() == total["n"]
        assert histogram.median[source] == total["m"]
        assert histogram.low < histogram.median[source] < histogram.high


def test_documents_next_to_a_threshold(many_parts: Path) -> None:
    bounds = [
        histograms.Bound("en", "gopher.num_words", 100.0),
        histograms.Bound("en", "gopher.num_words / greatest(c4.num_lines, 1)", 5.0),
        histograms.Bound("ja", "gopher.num_words", 100.0),
    ]
    found = histograms.nearest(many_parts, bounds)
    columns = "id, gopher.num_words as n, c4.num_lines as l, text"
    every = rows(many_parts, f"select {columns} from documents where lang = 'en'")
    far = [lambda row: abs(row["n"] - 100), lambda row: abs(row["n"] / max(row["l"], 1) - 5)]
    for bound, distance in zip(bounds[:2], far, strict=True):
        closest = sorted(every, key=lambda row: (distance(row), row["id"]))[:6]
        assert [row["id"] for row in found[bound]] == [row["id"] for row in closest]
        heads = [row["head"] for row in found[bound]]
        assert heads == [row["text"][: len(head)] for row, head in zip(closest, heads, strict=True)]
    assert found[bounds[2]] == []


def test_the_page_shows_both_ends_of_a_rule_and_no_markup_of_documents(many_parts: Path) -> None:
    html = page.page(many_parts)
    assert "<h2>gopher, zh</h2>" in html
    assert "<h2>gopher.num_words</h2>" in html
    assert "<title>gopher: 50</title>" in html
    assert "closest to 50 (" in html
    assert "closest to 100000 (" in html
    assert "% of a line that the rule of a column fails too" in html
    whole = rules.parts(many_parts, "where mine", "lang = 'en' and num_chars > 600")
    with_parts = page.page(many_parts, [whole])
    assert "<h2>where mine</h2>" in with_parts
    assert "num_chars &gt; 600" in with_parts
    assert page.table(["a"], [["<script>"]]).count("&lt;script&gt;") == 1


def test_thresholds_of_quotients_and_of_kinds_of_chinese() -> None:
    bounds = {"zh": Bound(1, 5, "s"), "zh-lzh": Bound(None, 2, "s"), "en": Bound(3, 10, "s")}
    rules = [("p", Rule("g.a", bounds)), ("q", Rule("g.a", bounds, per="g.b"))]
    assert page.thresholds(rules, "g.a", "zh") == [("p", 1), ("p", 5), ("p, lzh", 2)]
    assert page.thresholds(rules, "g.a / g.b", "en") == [("q", 3), ("q", 10)]


def test_the_cut_of_a_detector_is_shown_without_the_other_detectors() -> None:
    found = list(page.rules_of("ads", ["gopher"]))
    assert [(preset, rule.signal) for preset, rule in found] == [("clean", "ads.score")]
    assert page.thresholds(found, "ads.score", "zh") == [("clean", 0.2)]
    assert list(page.rules_of("ads", ["clean"])) == found


def test_a_corpus_does_not_differ_from_itself(many_parts: Path) -> None:
    found = compare.compare(many_parts, many_parts)
    (n,) = rows(many_parts, "select count(distinct content_hash) as n from documents")
    assert found["contents"] == {"shared": n["n"], "gone": 0, "new": 0}
    assert {row["errors"] for row in found["drift"]} == {0.0}
    assert {row["language"] for row in found["drift"] if "language" in row} == {"en", "zh"}
    sources = {row["source"] for row in found["drift"] if "source" in row}
    assert sources == {"tales-en", "tales-zh"}
    told = compare.shown(found)
    assert "by source, signals whose mean moved by more than 4 standard errors: 0 of " in told
    assert compare.alarms(found["sources"]) == []


def test_drift_is_told_in_standard_errors() -> None:
    before = {("language", "en", "s"): {"n": 100, "mean": 1.0, "variance": 4.0, "median": 1.0}}
    after = {("language", "en", "s"): {"n": 300, "mean": 2.0, "variance": 12.0, "median": 1.5}}
    (row,) = compare.drift(before, after)
    assert row["noise"] == pytest.approx(np.sqrt(4 / 100 + 12 / 300))
    assert row["errors"] == pytest.approx(1 / row["noise"])
    assert (row["moved"], row["median_moved"]) == (1.0, 0.5)
    same = {key: value | {"variance": 0.0} for key, value in before.items()}
    assert compare.drift(same, same)[0]["errors"] == 0.0


def test_alarms_of_sources() -> None:
    def share(n: int, before: float, after: float) -> list[dict[str, float]]:
        return [{"share": value, "documents": n} for value in (before, after)]

    none = [{"share": None, "documents": 0}] * 2
    shares = {
        "a": {"kept": share(1000, 0.9, 0.7), "gopher.pass": share(500, 0.5, 0.2)},
        "b": {"kept": share(1000, 0.9, 0.88), "gopher.pass": none},
        "c": {"kept": share(20, 0.9, 0.7)},
        "e": {"kept": share(1000, 1, 1), "flagged.ads": share(1000, 0.01, 0.05)},
        "f": {"kept": share(1000, 1, 0.96), "flagged.ads": share(1000, 0.01, 0.029)},
    }
    told = compare.alarms(
        [{"source": s, "documents": [1000, 1000], "shares": found} for s, found in shares.items()]
        + [{"source": "g", "documents": [0, 5], "shares": {"kept": [None, share(5, 1, 1)[0]]}}]
    )
    assert told == [
        "\nalarms",
        "  source a: kept 90.0% -> 70.0% (noise 1.7%); gopher.pass 50.0% -> 20.0% (noise 2.9%)",
        "  source e: flagged.ads 1.0% -> 5.0% (noise 0.8%)",
        "  source g is new: 5 documents",
    ]


def test_alarms_of_a_template_a_burst_and_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over tables made by hand: 100 pages of 12 domains."""
    pages = [
        {
            "source": "web",
            "content_hash": f"{n:032d}",
            "domain": f"d{n % 12}.example",
            "id": f"{n}",
            "text": f"第{n}篇，今天天气很好我们去公园。\n"
            + "cheap pills here " * (n < 20)
            # 24 documents of 3 domains, inside of lines; the other of 4, and one that is short
            + f"Tale {n}: call Doctor Wang for a cure! {n}" * (n % 12 < 3 and n < 96)
            + f"，找王医生看病就打这个电话❤{n}，有事{n}" * (n % 12 < 4)
            + f"，加微信领红包，{n}" * (n % 12 < 2),
        }
        for n in range(100)
    ]
    repeated = [
        {"source": "web", "domain": f"d{n}.example", "line": "All rights reserved", "documents": 5}
        for n in range(7)
    ]
    repeated += [
        {"source": "web", "domain": f"d{n}.example", "line": "cheap pills here", "documents": 10}
        for n in range(2)
    ]
    clusters = [{"content_hash": f"{n:032d}", "cluster": "c" * 32} for n in range(25)]
    tables = {"documents": pages, "lines": repeated, "clusters": clusters}
    with duckdb.connect() as connection:
        for name, table in tables.items():
            connection.register(name, pa.Table.from_pylist(table))

        def asked(_: Path, question: str) -> list[dict[str, object]]:
            return list(connection.sql(question).to_arrow_table().to_pylist())

        monkeypatch.setattr(alarms, "rows", asked)
        told = alarms.alarms(Path())
    assert told == [
        "the line 'All rights reserved' stands in 35 documents (35%) of source web",
        "the line 'cheap pills here' stands in 20 documents (20%) of source web, of 2 domains",
        "the phrase 'call Doctor Wang for a cure' stands in 24 documents (24%) of source web, of 3 "
        "domains",
        "near copies of one text are 25 documents (25%) of source web, cluster cccccccccccc",
    ]


def test_places(many_parts: Path) -> None:
    columns = "source, documents, duplicate_share, compression_ratio, median.gopher.num_words as w"
    found = rows(many_parts, f"select {columns}, most_repeated_line from sources")
    assert [row["source"] for row in found] == ["tales-en", "tales-zh"]
    for row in found:
        of = f"from documents where source = '{row['source']}'"
        question = f"select count(*) as n, median(gopher.num_words) as w {of}"
        (expected,) = rows(many_parts, question)
        assert (row["documents"], row["w"]) == (expected["n"], expected["w"])
        assert 1.5 < row["compression_ratio"] < 6
    (domain,) = rows(many_parts, "select domain, documents from domains")
    assert domain == {"domain": None, "documents": sum(row["documents"] for row in found)}


def test_repeated_lines(many_parts: Path) -> None:
    """Counted by hand in Python."""
    texts = rows(many_parts, "select source, text from documents")
    counts: dict[tuple[str, str], int] = {}
    for row in texts:
        for line in {line.strip() for line in row["text"].split("\n")}:
            if len(line) >= 6:
                counts[row["source"], line] = counts.get((row["source"], line), 0) + 1
    repeated = {key: n for key, n in counts.items() if n > 1}
    found = rows(many_parts, "select source, line, documents from lines")
    assert {(row["source"], row["line"]): row["documents"] for row in found} == repeated


def test_a_question_that_does_not_name_medians_reads_no_signals(many_parts: Path) -> None:
    from pipeline.sql import connect

    names = frozenset({"sources", "documents"})
    with connect(many_parts, names=names) as connection:
        columns = [row[0] for row in connection.execute("describe sources").fetchall()]
    assert columns == ["source", "documents", "bytes", "tokens", "kept_share", "duplicate_share"]


def test_numbers_alone_are_compared(many_parts: Path) -> None:
    with pytest.raises(SqlError, match=r'Referenced table "no" not found'):
        compare.moments(many_parts, ["no.such"])
