from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.files import read_json
from trainer.ablation.charts import Curve, Interval, curves, intervals, number, ticks
from trainer.ablation.commands import ablate
from trainer.ablation.render import Report, Section, Table, html, markdown
from trainer.ablation.report import make_report
from trainer.ablation.results import compare, read_scores
from trainer.ablation.study import load_study


def test_the_verdict_stands_on_top(trained: Path):
    study = trained / "study"
    lines = (study / "report.md").read_text("utf-8").split("\n")
    found = read_json(study / "verdict.json")
    assert lines[0] == (
        "# Does removing &#60;near&#62; duplicates help &#124; at equal training tokens?"
    )
    assert lines[2] == f"**{found['sentences']['deduplicated']}**"
    assert found["verdicts"] == {"deduplicated": "better"}
    assert found["primary"]["differences"]["deduplicated"]["estimate"] == pytest.approx(
        -0.05, abs=0.01
    )
    titles = [line for line in lines if line.startswith("## ")]
    assert titles == [
        "## How sure is that",
        "## The difference on each held-out set",
        "## What was compared",
        "## What each arm trains on",
        "## The deciding number, seed by seed",
        "## Training loss",
        "## From raw input to documents: corpus “web”",
        "## What it cost",
        "## Where it comes from",
    ]
    assert "| deduplicated | mixture.unique: near |       900 |       310,000 |" in "\n".join(lines)
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if "|" in line]
    rows = [row for row in cells if row[1:2] == ["pages"]]
    assert rows == [
        ["as-it-comes", "pages", "1,200", "0", "0", "1,200", "400,000", "2.5 times"],
        ["deduplicated", "pages", "1,200", "200", "100", "900", "310,000", "2.5 times"],
    ]


def test_the_page_needs_nothing_else_and_escapes_what_settings_say(trained: Path):
    page = (trained / "study" / "report.html").read_text("utf-8")
    assert "<h1>Does removing &lt;near&gt; duplicates help | at equal training tokens?</h1>" in page
    assert "web/zh/页面 &amp; &lt;b&gt;" in page
    assert set(re.findall(r"https?://[^\"' ]+", page)) == {"http://www.w3.org/2000/svg"}
    assert re.findall(r"<(script|link|img|iframe|@import)", page) == []
    assert page.count("<svg") == page.count("</svg>") == 2


def test_a_second_call_writes_the_same_bytes(trained: Path):
    names = ("report.md", "report.html", "verdict.json")
    study = trained / "study"
    before = [(study / name).read_bytes() for name in names]
    assert ablate([str(trained / "study.yaml"), "--report-only"]) == 0
    assert [(study / name).read_bytes() for name in names] == before


def test_a_caution_where_copies_are_seldom_met(trained: Path):
    path = trained / "study.yaml"
    caution = "what removing copies is worth can hardly show"
    assert caution not in (trained / "study" / "report.md").read_text("utf-8")
    for arm, epochs in (("as-it-comes", 0.07), ("deduplicated", 0.214)):
        plan = trained / "study" / arm / "seed-1" / "plan.json"
        plan.write_text(plan.read_text().replace('"epochs": 2.5', f'"epochs": {epochs}'))
    assert ablate([str(path), "--report-only"]) == 0
    assert (
        "\n\nA run sees 7% to 21% of its text, and so two copies of one text seldom: what removing "
        "copies is worth can hardly show. Train longer, or select less.\n\n"
    ) in (trained / "study" / "report.md").read_text("utf-8")


def test_many_sets_are_said_to_differ_by_chance(trained: Path):
    study = load_study(trained / "study.yaml")
    outcome = compare(study, read_scores(study))
    said = "sets are compared one by one"
    assert said not in markdown(make_report(study, outcome))
    many = replace(outcome, sets=outcome.sets * 5)
    assert (
        "\n\n10 sets are compared one by one; by chance about 1 in 20 would show a difference "
        "where there is none: only the deciding number gives a verdict.\n\n"
    ) in markdown(make_report(study, many))


def test_both_renderings_show_text_as_it_stands():
    table = Table(("源", "n"), (("a|<b>", "1"), ("中文", "23")), frozenset({1}))
    report = Report("Q & A", (("better", "yes *"),), (Section("T", ("p <i>",), "", table, "x<y"),))
    assert markdown(report) == (
        "# Q &amp; A\n\n**yes &#42;**\n\n## T\n\np &#60;i&#62;\n\n"
        "| 源                 |   n |\n"
        "| ------------------ | --: |\n"
        "| a&#124;&#60;b&#62; |   1 |\n"
        "| 中文               |  23 |\n\n"
        "```\nx<y\n```\n"
    )
    page = html(report)
    assert '<p class="verdict better">yes *</p>' in page
    assert "<td>a|&lt;b&gt;</td><td class=num>1</td>" in page
    assert "<pre>x&lt;y</pre>" in page


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.0, 1.0, [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]),
        (-0.03, 0.011, [-0.03, -0.02, -0.01, 0.0, 0.01]),
        (4.0, 4.0, [4.0]),
        (0.0, 1_000_000.0, [0.0, 200_000.0, 400_000.0, 600_000.0, 800_000.0, 1_000_000.0]),
    ],
)
def test_ticks_are_round_numbers(low: float, high: float, expected: list[float]):
    assert ticks(low, high) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (-0.05, "−0.05"), (400_000, "400k"), (1.5e6, "1.5M"), (2e9, "2B"), (4.5, "4.5")],
)
def test_short_numbers(value: float, text: str):
    assert number(value) == text


def test_charts_hold_every_point_and_escape_names():
    chart = curves({"<a>": Curve([0, 50, 100], [3, 2, 1], [3, 2, 1], [3, 2, 1])}, "x", "y")
    assert chart.count("<polyline") == 1
    points = re.findall(r'<polyline points="([^"]+)"', chart)[0].split()
    assert [point.split(",")[0] for point in points] == ["64.0", "404.0", "744.0"]
    chart = intervals([Interval("网页 <&>", -0.1, -0.2, 0.0), Interval("b", 0.1, None, None)], "x")
    assert "网页 &lt;&amp;&gt;" in chart
    assert chart.count("<circle") == 2
    assert chart.count('class="whisker') == 1
