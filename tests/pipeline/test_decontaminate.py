"""Evaluation sets from corpus.yaml to SQL, edits, report and mixture."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import small_corpus
import yaml
from small_corpus import assay

from filters.edits import applied, fault
from filters.segments import Texts
from pipeline.config import ConfigError
from pipeline.evaluation_items import read_items
from pipeline.groups import editors
from pipeline.heldout_settings import Decontaminate
from pipeline.seeing.asking import rows
from pipeline.seeing.contamination import ALARM_SHARE, SHOWN, of_set, report
from pipeline.settings import load_corpus
from pipeline.transforms import decontaminate

EN = {"question": "Which of these gases do plants take in when they make sugar?", "answer": "CO2"}
ZH = {"question": "植物在制造糖分的时候吸收下面哪一种气体？", "A": "二氧化碳", "B": "氩气"}
TEXTS = [
    f"Before it. {EN['question'].upper()} Behind it.",
    "從前，「植物在製造糖分的時候，吸收下面哪一種氣體？」他問。",
    f"{EN['question']}\r\n{EN['question']}",
    "Which of these gases do plants take in, 😀 or do they?",
    EN["question"],
    "",
    "nothing of it",
]


def choose(root: Path, sets: dict[str, list[dict[str, Any]]]) -> Decontaminate:
    """Index sets of these records."""
    for name, records in sets.items():
        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in records)
        (root / f"{name}.jsonl").write_text(lines, "utf-8")
    settings = Decontaminate.model_validate(
        {"sets": {name: str(root / f"{name}.jsonl") for name in sets}}
    )
    decontaminate.choose(root, settings, list(read_items(settings)))
    return settings


def measured(root: Path, settings: Decontaminate, texts: list[str]) -> dict[str, list[Any]]:
    group = decontaminate.group(root, settings)
    found = group.measure(Texts(pa.array(texts, pa.string())), {})
    return {
        name: pa.array(found[name]).cast(signal.type).to_pylist()
        for name, signal in decontaminate.COLUMNS.items()
    }


def test_what_each_column_says(tmp_path: Path) -> None:
    settings = choose(tmp_path, {"one": [EN, ZH], "two": [{"text": "x"}, EN]})
    found = measured(tmp_path, settings, TEXTS)
    scores = [round(score, 3) for score in found["score"]]
    assert scores == [1.0, 1.0, 1.0, 0.667, 1.0, 0.0, 0.0]
    assert found["num_items"] == [2, 1, 2, 2, 2, 0, 0]
    assert found["worst_set"] == ["one"] * 5 + ["", ""]
    first = [(h["set"], h["item"], h["start"], h["end"]) for h in found["hits"][0]]
    assert first == [("one", "one.jsonl:1", 11, 70), ("two", "two.jsonl:2", 11, 70)]
    (hit,) = found["hits"][1]
    assert TEXTS[1].encode()[hit["start"] : hit["end"]].decode() == TEXTS[1][4:-5]
    assert found["hits"][5:] == [[], []]


def test_edits_take_out_what_was_found(tmp_path: Path) -> None:
    settings = choose(tmp_path, {"one": [EN, ZH], "two": [EN]})
    texts = Texts(pa.array(TEXTS, pa.string()))
    edits = decontaminate.editor(tmp_path, settings).find(texts, {})
    assert fault(texts, edits) == ""
    assert applied(texts.array, edits).to_pylist() == [
        "Before it. ? Behind it.",
        "從前，「？」他問。",
        "?",
        ", 😀 or do they?",
        "?",
        "",
        "nothing of it",
    ]
    assert edits.kinds.to_pylist() == ["one"] * 5


ODD = (
    *("", " ", "。", "a", "的", "\n\n", "😀", "……！？", "a\r\nb\r\n", "\ufffd", "\x00"),
    *(char * 200_000 for char in ("a", "的", "1", "。", "\n", "\u0301")),
    "word " * 100_000,
    "一段没有句号的话" * 20_000,
)


def test_a_value_for_every_text(tmp_path: Path) -> None:
    settings = choose(tmp_path, {"one": [EN, ZH, {"text": "word " * 20}, {"text": "的" * 30}]})
    found = measured(tmp_path, settings, list(ODD))
    score = {text[:8]: score for text, score in zip(ODD, found["score"], strict=True)}
    assert {text for text, share in score.items() if share} == {"的" * 8, "word wor"}
    assert set(found["num_items"]) == {0, 1}
    texts = Texts(pa.array(ODD, pa.string()))
    assert fault(texts, decontaminate.editor(tmp_path, settings).find(texts, {})) == ""


def test_items_that_cannot_be_found_are_named(tmp_path: Path) -> None:
    ask = "choose the one answer to the question below that is right"
    records: list[dict[str, Any]] = [{"text": f"{ask} {n}"} for n in range(11)]
    choose(tmp_path, {"one": [{"text": ""}, {"text": "too short"}, {"text": ask}, *records]})
    table = pq.read_table(tmp_path / "contamination/items.parquet").to_pylist()
    assert [row["unmatched"] for row in table[:4]] == ["empty", "short", "shared", ""]
    assert [row["num_words"] for row in table[:3]] == [0, 2, 11]
    assert {row["entry"] for row in table} == set(range(14))


def test_edits_without_sets_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "corpus.yaml"
    path.write_text(
        "inputs: [{source: a, files: a.jsonl}]\ntokenizer: deepseek\nedits: [contamination]\n"
    )
    with pytest.raises(ConfigError, match="evaluation items, of which there are none; name sets"):
        editors(load_corpus(path))


def test_a_set_that_hits_a_hundredth_of_a_source_is_told() -> None:
    items = [{"item": f"a:{n}", "unmatched": "short", "excerpt": f"item {n}"} for n in range(10)]
    worst = {"id": "0123456789abcdef", "source": "web", "start": 1_000, "end": 1_060}
    found = [{"item": f"a:{n}", "documents": n, "share": 0.5, "worst": worst} for n in range(10)]
    assert ALARM_SHARE == 0.01

    def lines(hit: int) -> list[str]:
        by_source = [{"source": "web", "documents": hit}, {"source": "few", "documents": 4}]
        return list(of_set("a", items, by_source, found, {"web": 1_000, "few": 10}))

    quiet = lines(10)
    assert quiet[0] == "a: 10 items of 10 found, in documents of: web 10, few 4"
    assert quiet[1].startswith(
        "  cannot be found, shorter than an n-gram: 10 items: a:0 'item 0', "
    )
    assert quiet[1].endswith("a:7 'item 7', and 2 more")
    assert quiet[2] == (
        "  a:9: 9 documents, at most 50% in 0123456789ab of web, bytes 1,000 to 1,060: 'item 9'"
    )
    assert quiet[-1] == "  ... and 2 more items"
    documents = {"web": 1_000, "few": 10}
    by_source = [{"source": "web", "documents": 20}]
    for fields, remedy in (
        ((), "name the fields that are the item's own: `fields: [question, answer]`"),
        (("q", "passage"), "its fields are q, passage: leave out which of them is not its own"),
        (("q",), "it has one field already, q: look at those items, and take them out"),
    ):
        told = list(of_set("a", items, by_source, found, documents, fields))
        assert told[2].startswith("  ALARM: hits 2.0% of source web")
        assert told[2].endswith(f"; {remedy}")
    assert len(quiet) == 3 + SHOWN
    (alarm,) = set(lines(11)) - set(quiet[1:]) - {lines(11)[0]}
    assert alarm.startswith("  ALARM: hits 1.1% of source web: if that is no copy of the set")


# --- all of it ------------------------------------------------------------------------------------


def planted(folder: Path) -> Path:
    """corpus.yaml of a small corpus with two sets, of which one item stands in four documents."""
    path = small_corpus.write_inputs(folder, 30)
    with open(folder / "en.jsonl", "a", encoding="utf-8") as file:
        for n in range(4):
            text = f"{small_corpus.english(100 + n)} {EN['question']}"
            file.write(json.dumps({"id": f"planted-{n}", "text": text}) + "\n")
    (folder / "one.jsonl").write_text(json.dumps(EN) + "\n" + json.dumps({"text": "short"}) + "\n")
    (folder / "two.jsonl").write_text(json.dumps(ZH) + "\n")
    path.write_text(
        path.read_text() + "shard_bytes: 12000\nedits: [contamination]\n"
        "decontaminate: {sets: {one: one.jsonl, two: two*.jsonl}}\n"
    )
    return path


def files(root: Path) -> dict[str, bytes]:
    tables = ("contamination", "signals/contamination", "edits/contamination")
    return {
        str(path.relative_to(root)): path.read_bytes()
        for table in tables
        for path in (root / table).rglob("*.*")
    }


def made(path: Path, workers: int) -> set[str]:
    """Stages of which `prepare` made a part."""
    said = assay("prepare", path, "--workers", f"{workers}").stdout.splitlines()[-1]
    parts = said.removeprefix("made ").partition(";")[0].split(", ")
    return {part.split(" ")[0] for part in parts}


def test_from_a_set_to_a_mixture(tmp_path: Path) -> None:
    path = planted(tmp_path)
    tokenizer = tmp_path / "tokenizer.json"
    assay("tokenizer", "train", path, "--vocab-size", "500", "--output", tokenizer)
    assert "sample: 11 of 11 pieces" in assay("prepare", path, "--estimate").stdout
    assert "signals/contamination" in made(path, 2)
    root = tmp_path / "corpus"
    question = "select source_id from documents where contamination.score > 0 order by all"
    assert [row["source_id"] for row in rows(root, question)] == [f"planted-{n}" for n in range(4)]
    lines = list(report(root))
    assert lines[0].startswith("items of 2 sets, by n-grams of 8 words or 10 Han; found: 40%")
    assert lines[1] == "one: 1 item of 2 found, in documents of: tales-en 4"
    assert lines[2] == "  cannot be found, shorter than an n-gram: 1 item: one.jsonl:2 'short'"
    assert lines[3].startswith("  one.jsonl:1: 4 documents, at most 100% in ")
    assert lines[4] == "two: 0 items of 1 found, in documents of: none"
    one = tmp_path / "one.jsonl"
    before = one.read_bytes()
    one.write_bytes(before + b"\n")
    stale = (
        "  STALE: one: one.jsonl changed since `assay prepare`: what follows is of the items before"
    )
    assert list(report(root))[1] == f"{stale}; call it again"
    one.rename(tmp_path / "aside")
    assert list(report(root))[1].startswith("  STALE: key `decontaminate.sets.one`: ")
    (tmp_path / "aside").rename(one)
    one.write_bytes(before)
    assert list(report(root)) == lines

    again = tmp_path / "again.yaml"
    again.write_text(path.read_text().replace("output: corpus", "output: again"))
    made(again, 1)
    assert files(tmp_path / "again") == files(root)
    assert len(files(root)) > 15

    mixture = {
        "corpora": {"web": "corpus"},
        "sequence_length": 32,
        "sources": {"all": {"from": "web", "where": "contamination.score < 0.4"}},
    }
    where, edited = tmp_path / "where.yaml", tmp_path / "edited.yaml"
    where.write_text(yaml.safe_dump(mixture))
    mixture["sources"] = {"all": {"from": "web", "where": "starts_with(source_id, 'planted')"}}
    edited.write_text(yaml.safe_dump(mixture | {"edits": ["contamination"]}))
    kept = f"select count(*) n from selected('{where}') where starts_with(source_id, 'planted')"
    assert assay("sql", root, kept, "--format", "csv").stdout.split() == ["n", "0"]
    planned = json.loads(assay("mix", edited, "--tokens", "320", "--json").stdout)
    (changes,) = [source["changes"] for source in planned["sources"]]
    assert changes["edited"] == 3  # one of the four is held out
    assert changes["removed_bytes"] == 3 * (len(EN["question"]) - 1)

    (tmp_path / "two.jsonl").write_text(json.dumps({"text": "quite another item"}) + "\n")
    own = {"evaluation_items", "signals/contamination", "edits/contamination"}
    assert made(path, 1) == own
    path.write_text(path.read_text().replace("decontaminate: {", "decontaminate: {share: 0.9, "))
    assert made(path, 1) == own - {"evaluation_items"}
