"""Lines and paragraphs that stand in several documents: against a definition in plain Python, for
any parts, partitions and order of inputs."""

from __future__ import annotations

import gzip
import json
import os
import random
import re
from collections import defaultdict
from itertools import groupby, islice
from pathlib import Path
from typing import Any

import corpus_parts
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from corpus_parts import content
from hypothesis import given
from hypothesis import strategies as st

from dedup import distinct
from dedup.folding import ONE_WORD, fold
from filters.addresses import site
from filters.edits import applied, edits_of, fault
from filters.segments import Texts
from pipeline.config import ConfigError
from pipeline.dedup_settings import UNITS, Across, SiteLines
from pipeline.files import part_name
from pipeline.groups import editors, groups
from pipeline.settings import CorpusSettings
from pipeline.transforms import across, across_edits, pieces
from pipeline.transforms.sweep import sweep

SAMPLE = os.environ.get("ASSAY_SAMPLE")
Span = tuple[int, int]  # characters of a text
Told = dict[str, tuple[list[Span], list[Span]]]  # text -> what was found in it, and what goes


# --- the definition -------------------------------------------------------------------------------


def is_long(piece: str, words: int, characters: int) -> bool:
    found = fold(piece).split()
    single = sum(re.fullmatch(f"[{ONE_WORD}]", word) is not None for word in found)
    return single * words + (len(found) - single) * characters >= words * characters


def spans(text: str, unit: str) -> list[Span]:
    """Whole lines with text, or whole paragraphs, with their line feeds."""
    found, at, run = [], 0, False
    for line in lines_of(text):
        full = bool(line.strip())
        if full and unit == "repeated_paragraphs" and run:
            found[-1] = (found[-1][0], at + len(line))
        elif full:
            found.append((at, at + len(line)))
        at, run = at + len(line), full
    return found


def lines_of(text: str) -> list[str]:
    """With their line feeds; the last one may have none."""
    return re.findall(r"[^\n]*\n|[^\n]+$", text)


def without(text: str, gone: list[Span]) -> str:
    """The text without these spans, and without the blank lines that would be left double."""
    at, rows = 0, []
    for line in lines_of(text):
        rows.append((line, not line.strip(), any(a <= at < b for a, b in gone)))
        at += len(line)
    left: list[tuple[str, bool, bool]] = []
    at = 0
    while at < len(rows):
        if not rows[at][2]:
            left.append(rows[at])
            at += 1
            continue
        end = last = at  # of those that go, blank lines between
        while end < len(rows) and (rows[end][1] or rows[end][2]):
            last = end if rows[end][2] else last
            end += 1
        above = at == 0 or rows[at - 1][1]
        below = last + 1 == len(rows) or rows[last + 1][1]
        gaps = [list(group) for blank, group in groupby(rows[at:last], lambda r: r[1]) if blank]
        if gaps and not above and not below:
            left += gaps[0]
        at = end if above and below else last + 1
        while above and below and end == len(rows) and left and left[-1][1]:
            left.pop()
    return "".join(line for line, _, _ in left)


def defined(texts: list[str], unit: str, settings: Across, where: dict[str, str]) -> Told:
    """What of each text is found, and what goes; `where` says of which site it is."""
    wanted = settings.units[unit]
    stands: dict[tuple[str, str], set[str]] = defaultdict(set)
    of_site: dict[str, set[str]] = defaultdict(set)

    def key(text: str, span: Span) -> tuple[str, str]:
        return where[text] if unit == "site_lines" else "", fold(text[slice(*span)])

    for text in texts:
        of_site[where[text]].add(text)
        for span in spans(text, unit):
            stands[key(text, span)].add(text)
    told: Told = {}
    for text in texts:
        found, gone, seen = [], [], set()
        for span in spans(text, unit):
            name = key(text, span)
            num = len(stands[name])
            if num < wanted.documents:
                continue
            if not is_long(text[slice(*span)], wanted.words, wanted.characters):
                continue
            if unit == "site_lines":
                if num < settings.site_lines.share * len(of_site[where[text]]):
                    continue
                gone.append(span)
            elif min(stands[name], key=content) != text or name in seen:
                gone.append(span)
            seen.add(name)
            found.append(span)
        told[text] = found, gone
    return told


# --- what the stages say --------------------------------------------------------------------------


def run(
    root: Path, parts: list[list[str]], settings: Across, num: int = 1, **places: Any
) -> dict[str, list[dict[str, Any]]]:
    """Of each unit the edits, and the signals, of all documents; `text` is that of the document."""
    numbers = corpus_parts.write(root, parts, kind="web", **places)
    for part in numbers:
        sweep(root, part, {"p": pieces.pieces(root, settings, part)}, 5, pieces.READS)
    for partition in range(num):
        across.join(root, settings, numbers, partition, num)
    told: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for part, texts in zip(numbers, parts, strict=True):
        across_edits.measured(root, settings, part, num)
        signals = pq.read_table(root / "signals/across" / part_name(part)).to_pylist()
        told["signals"] += [{"text": t} | row for t, row in zip(texts, signals, strict=True)]
        ids = pq.read_table(root / "documents" / part_name(part))["id"].to_pylist()
        for unit in settings.units:
            across_edits.edited(root, settings, unit, part, num)
            edits = pq.read_table(root / "edits" / unit / part_name(part)).to_pylist()
            told[unit] += [{"text": texts[ids.index(edit["id"])]} | edit for edit in edits]
    return told


def after(text: str, edits: list[dict[str, Any]]) -> str:
    """The text with its edits made."""
    mine = {(e["start"], e["end"], e["kind"]) for e in edits if e["text"] == text}
    made = edits_of((0, start, end, kind, "") for start, end, kind in mine)
    texts = Texts(pa.array([text], pa.string()))
    assert fault(texts, made) == ""
    found: str = applied(texts.array, made)[0].as_py()
    return found


def no_site(_: str) -> None:
    return None


EN = "Subscribe to our newsletter for the latest news of the valley and its mills."
ZH = "版权所有，未经许可不得以任何形式转载本站的全部或者部分内容，违者必究。"
TWO = {"documents": 2}
PARAGRAPHS = Across.model_validate({"repeated_paragraphs": TWO})
LINES = Across.model_validate({"repeated_lines": TWO})
ALL = LINES.model_copy(update={"repeated_paragraphs": PARAGRAPHS.repeated_paragraphs})
ALL = ALL.model_copy(update={"site_lines": SiteLines()})
SITE = Across.model_validate({"site_lines": {}})


def ordered(*texts: str) -> list[str]:
    """The one whose copies stay first."""
    return sorted(texts, key=content)


def test_one_copy_of_a_line_stays_that_of_the_lowest_content_hash(tmp_path: Path) -> None:
    texts = [f"{n} first\n{EN}\n{ZH}\nlast {n}" for n in range(5)]
    first, *others = ordered(*texts)
    told = run(tmp_path, [texts[:2], texts[2:]], LINES)
    assert after(first, told["repeated_lines"]) == first
    for text in others:
        n = text[0]
        assert after(text, told["repeated_lines"]) == f"{n} first\nlast {n}"
    assert {e["kind"] for e in told["repeated_lines"]} == {"repeated_line"}
    row = told["signals"][0]
    size = len(EN.encode()) + len(ZH.encode()) + 2
    assert row["num_repeated_lines"] == 2
    assert row["repeated_lines_share"] == np.float32(size / len(texts[0].encode()))
    assert row["repeated_share"] == row["repeated_lines_share"]
    assert row["most_documents"] == 5


def test_case_width_script_and_spaces_do_not_matter(tmp_path: Path) -> None:
    zh = "  版 權 所 有 , 未經許可不得以任何形式轉載本站的全部或者部分內容 違者必究"
    wide = "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in EN.upper())
    a, b = ordered(f"one\n{EN}\n{zh}", f"two\n{wide}\r\n{ZH}\r\n")
    told = run(tmp_path, [[a, b]], LINES)
    assert after(a, told["repeated_lines"]) == a
    assert after(b, told["repeated_lines"]) == b[:4]


def test_copies_of_a_text_count_once_and_lose_nothing(tmp_path: Path) -> None:
    """A text that stands a thousand times has no line that stands elsewhere."""
    told = run(tmp_path, [[f"{EN}\n\n{ZH}"] * 500, [f"{EN}\n\n{ZH}"] * 500], ALL, domain=no_site)
    assert not any(told[unit] for unit in UNITS)
    assert {row["repeated_share"] for row in told["signals"]} == {0}


def test_copies_of_a_text_get_the_same_edits(tmp_path: Path) -> None:
    keeper, loser = ordered(f"a\n{EN}", f"b\n{EN}")
    told = run(tmp_path, [[loser, keeper, loser], [loser, keeper]], LINES)
    assert [e["text"] for e in told["repeated_lines"]] == [loser] * 3


def test_within_the_document_that_keeps_it_the_first_one_stays(tmp_path: Path) -> None:
    keeper, loser = ordered(f"a\n{EN}\nb\n{EN.upper()}\nc", f"d\n{EN}\ne\n{EN}\nf")
    edits = run(tmp_path, [[keeper, loser]], LINES)["repeated_lines"]
    a, b, c = keeper.split("\n")[::2]
    assert after(keeper, edits) == "\n".join([a, keeper.split("\n")[1], b, c])
    assert after(loser, edits) == "\n".join(loser.split("\n")[::2])
    alone = run(tmp_path / "alone", [[keeper]], LINES)
    assert alone["repeated_lines"] == []  # a refrain is no copy of another document


def test_short_lines_code_and_dialogue_stay(tmp_path: Path) -> None:
    texts = [f"text {n} says\n}}\n返回\nreturn result\n" + "-" * 80 for n in range(30)]
    told = run(tmp_path, [texts], ALL)
    assert not any(told[unit] for unit in UNITS)
    for kind in ("code", "dialogue"):
        assert kind not in ALL.kinds
    numbers = corpus_parts.write(tmp_path / "code", [[EN, f"{EN}\nb"]], kind="code")
    sweep(tmp_path / "code", 0, {"p": pieces.pieces(tmp_path / "code", ALL, 0)}, 5, pieces.READS)
    across.join(tmp_path / "code", ALL, numbers, 0, 1)
    across_edits.measured(tmp_path / "code", ALL, 0, 1)
    signals = pq.read_table(tmp_path / "code/signals/across/part-00000.parquet").to_pylist()
    assert [row["num_repeated_lines"] for row in signals] == [0, 0]


def test_two_hundred_documents_lose_their_footer_and_nothing_else(tmp_path: Path) -> None:
    """By site, where a share of its documents has it; another site with as many keeps it."""
    footer = "Copyright the valley times\nAll rights reserved"
    texts = [f"Page {n} is about mill {n}.\n\n{footer}\n" for n in range(200)]
    others = [f"Essay {n} of someone else.\n" for n in range(100)]
    others += [f"Essay {n} with {footer}\n{footer}" for n in range(100, 115)]

    def domain(text: str) -> str:
        return f"{'www' if 'mill 1' in text else 'm'}.times.co.uk" if "mill" in text else "b.org"

    told = run(tmp_path, [texts[:90] + others, texts[90:]], SITE, num=2, domain=domain)
    edits = told["site_lines"]
    assert {after(text, edits) for text in texts} == {t.split("\n")[0] + "\n" for t in texts}
    assert {e["text"] for e in edits} == set(texts)
    by_text = {row["text"]: row for row in told["signals"]}
    assert {by_text[text]["num_site_lines"] for text in texts} == {2}
    assert {by_text[text]["num_site_lines"] for text in others} == {0}  # 15 of 115
    assert {by_text[text]["most_documents"] for text in texts} == {200}


def test_without_an_address_a_source_is_the_site(tmp_path: Path) -> None:
    texts = [f"{n} is the text.\nA line of all of them" for n in range(10)]
    assert len(run(tmp_path / "ten", [texts], SITE)["site_lines"]) == 10
    assert run(tmp_path / "nine", [texts[:9]], SITE)["site_lines"] == []


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("A\n\nGONE\n\nB", "A\n\nB"),
        ("A\n\nGONE\nGONE 2\n\nB", "A\n\nB"),
        ("A\n\nGONE\n\nGONE 2\n\n\nB", "A\n\nB"),
        ("A\n\nGONE", "A\n"),
        ("A\n\nGONE\n\nGONE 2\n\n", "A\n"),
        ("GONE\n\nA", "A"),
        ("A\nGONE\nB", "A\nB"),
        ("A\nGONE", "A\n"),
        ("A\nGONE\n\nB", "A\n\nB"),
        ("A\n\nGONE\nB", "A\n\nB"),
        ("A\nGONE\n\nGONE 2\nB", "A\n\nB"),
        ("A\nGONE\n\nGONE 2\n \nGONE\nB", "A\n\nB"),
        ("A\r\n\r\nGONE\r\n\r\nB", "A\r\n\r\nB"),
        ("\n \nGONE\n\u3000\n", ""),
        ("GONE", ""),
    ],
)
def test_no_double_blank_lines_are_left(tmp_path: Path, text: str, left: str) -> None:
    text = text.replace("GONE 2", ZH).replace("GONE", EN)
    seed = (f"z{n}\n{EN}\n{ZH}" for n in range(1_000))
    keeper = next(other for other in seed if content(other) < content(text))
    told = run(tmp_path, [[text, keeper]], LINES)
    assert after(text, told["repeated_lines"]) == left


def test_paragraphs_are_the_same_however_they_are_wrapped(tmp_path: Path) -> None:
    a, b = ordered(
        f"one\n\n{EN}\n{ZH}\n\nend", f"two\n\n{EN.replace(' the', chr(10) + 'the')} {ZH}\n"
    )
    told = run(tmp_path, [[a], [b]], PARAGRAPHS)
    assert after(a, told["repeated_paragraphs"]) == a
    assert after(b, told["repeated_paragraphs"]) == f"{b[:3]}\n" + ("\nend" if "end" in b else "")
    lines = run(tmp_path / "lines", [[a], [b]], LINES)
    assert lines["repeated_lines"] == []


# --- any parts, any order -------------------------------------------------------------------------

LOWEST = {"documents": 2, "words": 1, "characters": 1}
EVERY = Across.model_validate(
    {
        "site_lines": {"share": 0.6, **LOWEST},
        "repeated_lines": LOWEST,
        "repeated_paragraphs": {"documents": 2, "words": 2, "characters": 2},
    }
)
SOME = ["a b", "A, b!", "a", "狗", "猫狗", "貓狗", "", " ", "}", "\r", "x\r", "é", "🙂", "\u3000"]
some_texts = st.lists(
    st.lists(st.sampled_from(SOME), max_size=6).map("\n".join) | st.text(max_size=8), max_size=8
)


@given(some_texts, st.integers(1, 3), st.sampled_from([1, 4]), st.randoms(use_true_random=False))
def test_equal_to_the_definition(
    tmp_path_factory: pytest.TempPathFactory,
    texts: list[str],
    num_parts: int,
    num: int,
    pick: random.Random,
) -> None:
    pick.shuffle(texts)
    compare(tmp_path_factory.mktemp("any"), texts, num_parts, num)


@pytest.mark.skipif(SAMPLE is None, reason="ASSAY_SAMPLE is not set")
@pytest.mark.parametrize("language", ["zh", "en"])
def test_equal_to_the_definition_on_real_text(tmp_path: Path, language: str) -> None:
    with gzip.open(f"{SAMPLE}/{language}.jsonl.gz", "rt", encoding="utf-8") as file:
        texts = [json.loads(line)["text"] or "" for line in islice(file, 0, None, 20)]
    compare(tmp_path, [text for text in texts if len(text) < 20_000][:400], 3, 2)


def compare(root: Path, texts: list[str], num_parts: int, num: int) -> None:
    """What the stages say of these texts with what the definition says."""
    where = {t: ("a.com", "b.c.com", "")[len(t) % 3] for t in texts}
    parts = [texts[part::num_parts] for part in range(num_parts)]
    told = run(root, parts, EVERY, num, domain=lambda t: where[t] or None)
    by_text = {row["text"]: row for row in told["signals"]}
    edits: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for unit in UNITS:
        for edit in told[unit]:
            edits[unit, edit["text"]].append(edit)
    sites = {t: site(host) if host else "" for t, host in where.items()}
    for unit in UNITS:
        for text, (found, gone) in defined(texts, unit, EVERY, sites).items():
            assert by_text[text][f"num_{unit}"] == len(found), (unit, text)
            mine = edits[unit, text]
            assert len({edit["start"] for edit in mine}) == len(gone), (unit, text)
            assert after(text, mine) == without(text, gone)


def test_any_parts_partitions_and_order_say_the_same(tmp_path: Path) -> None:
    pick = random.Random(1)
    stock = [f"{EN} {n}" for n in range(9)] + [f"{ZH}{n}" for n in range(9)]
    texts = ["\n".join([f"own {n}", *pick.choices(stock, k=4)]) for n in range(40)] * 2

    def said(name: str, parts: list[list[str]], num: int) -> set[tuple[Any, ...]]:
        told = run(tmp_path / name, parts, ALL, num)
        rows = [tuple(r.values()) for r in told["signals"]]
        return {*rows, *((e["text"], e["start"], e["end"]) for u in UNITS for e in told[u])}

    expected = said("one", [texts], 1)
    assert len(expected) > 100
    for turn, num_parts in enumerate((2, 9)):
        shuffled = random.Random(turn).sample(texts, len(texts))
        parts = [shuffled[part::num_parts] for part in range(num_parts)]
        assert said(f"turn {turn}", parts, 4 << turn) == expected


# --- counting -------------------------------------------------------------------------------------


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 2**64 - 1)), max_size=80
    ),
    st.integers(1, 9),
    st.integers(1, 100),
)
def test_distinct_contents_are_counted(
    rows: list[tuple[int, int, int]], parts: int, many: int
) -> None:
    some = np.array(rows, np.uint64).reshape(-1, 3)
    batches = [distinct.Records(*some[part::parts].T) for part in range(parts)]
    found = distinct.count(batches, many=many)
    expected = defaultdict(set)
    for high, low, value in rows:
        expected[high, low].add(value)
    assert [tuple(row) for row in np.column_stack(found).tolist()] == [
        (high, low, len(values), min(values))
        for (high, low), values in sorted(expected.items())
        if len(values) > 1
    ]


def test_what_stands_everywhere_is_estimated_the_same_for_any_parts() -> None:
    values = np.random.default_rng(7).integers(0, 2**64, 200_000, np.uint64)
    key = np.full(len(values), 5, np.uint64)
    founds = []
    for parts in (1, 7):
        batches = [
            distinct.Records(key[p::parts], key[p::parts], values[p::parts]) for p in range(parts)
        ]
        founds.append(distinct.count(batches, most=4_096, many=20_000))
    (one,), (other,) = (found.num.tolist() for found in founds)
    assert one == other
    assert abs(one / 200_000 - 1) < 4 / 64  # four standard errors
    assert founds[0].lowest == founds[1].lowest == values.min()


# --- settings -------------------------------------------------------------------------------------


def settings(**keys: Any) -> CorpusSettings:
    inputs = [{"source": "a", "files": "a.jsonl"}]
    return CorpusSettings.model_validate({"inputs": inputs, "tokenizer": "deepseek", **keys})


def test_off_unless_asked_for() -> None:
    assert settings().across.units == {}
    assert "across" not in groups(settings())
    named = settings(across=["site_lines"], edits=["site_lines"])
    assert list(named.across.units) == ["site_lines"] == list(editors(named))
    assert list(groups(named)["across"].columns) == [
        *("num_site_lines", "site_lines_share", "repeated_share", "most_documents")
    ]
    assert settings(**named.model_dump(include={"across", "edits"})) == named


def test_edits_that_are_not_looked_for_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"'repeated_lines' are not looked for; add `across: \["):
        editors(settings(across=["site_lines"], edits=["repeated_lines"]))
